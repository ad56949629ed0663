# The names of this module's table, written by tests/write_stubs.py.

from minijax.base.dtypes import DTypeLike
from minijax.experimental.pallas.ops.tpu.megablox import common as common
from minijax.experimental.pallas.ops.tpu.megablox import ops as ops
from minijax.kernels.ops.tpu_products import Tiling
from minijax.run.arrays.array import Array

__all__ = [
    "common", "gmm", "ops"
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
