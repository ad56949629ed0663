# The names of this module's table, written by tests/write_stubs.py.

from minijax.base.dtypes import DTypeLike
from minijax.kernels.ops.tpu_products import Tiling
from minijax.run.arrays.array import Array

__all__ = [
    "gmm"
]

def gmm(
    lhs: Array,
    rhs: Array,
    group_sizes: Array,
    preferred_element_type: DTypeLike = ...,
    tiling: Tiling = ...,
    group_offset: Array | None = None,
    existing_out: Array | None = None,
    transpose_rhs: bool = False,
    interpret: bool = False,
) -> Array: ...
