# The names of this module's table, written by tests/write_stubs.py.

from minijax.base.dtypes import DTypeLike
from minijax.kernels.ops.tpu_products import matmul_kernel as matmul_kernel
from minijax.run.arrays.array import Array

__all__ = [
    "matmul", "matmul_kernel"
]

def matmul(
    x: Array,
    y: Array,
    *,
    block_shape: tuple[int, int],
    block_k: int = 256,
    out_dtype: DTypeLike | None = None,
    debug: bool = False,
) -> Array: ...
