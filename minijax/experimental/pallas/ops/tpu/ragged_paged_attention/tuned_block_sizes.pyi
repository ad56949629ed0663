# The names of this module's table, written by tests/write_stubs.py.

from minijax.kernels.ops.tpu_ragged import get_tuned_block_sizes as get_tuned_block_sizes

__all__ = [
    "get_tuned_block_sizes"
]
