# The names of this module's table, written by tests/write_stubs.py.

from minijax.kernels.ops.tpu_random import blocked_iota as blocked_iota
from minijax.kernels.ops.tpu_random import compute_scalar_offset as compute_scalar_offset
from minijax.kernels.ops.tpu_random import round_up as round_up

__all__ = [
    "blocked_iota", "compute_scalar_offset", "round_up"
]
