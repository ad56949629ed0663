# The names of this module's table, written by tests/write_stubs.py.

from minijax.kernels.ops.tpu_products import double as double
from minijax.kernels.ops.tpu_products import double_kernel as double_kernel

__all__ = [
    "double", "double_kernel"
]
