# The names of this module's table, written by tests/write_stubs.py.

from minijax.kernels.ops.gpu_attention import BlockSizes as BlockSizes
from minijax.kernels.ops.gpu_attention import BlockSizes as _BlockSizes
from minijax.kernels.ops.gpu_attention import mha_forward_kernel as mha_forward_kernel
from minijax.kernels.ops.gpu_attention import segment_mask as segment_mask
from minijax.run.arrays.array import Array
from typing import Any

__all__ = [
    "BlockSizes", "mha", "mha_backward_kernel", "mha_forward_kernel", "mha_reference", "segment_mask"
]

def mha(
    q: Array,
    k: Array,
    v: Array,
    segment_ids: Array | None,
    sm_scale: float = 1.0,
    causal: bool = False,
    block_sizes: _BlockSizes = ...,
    backward_pass_impl: str = 'triton',
    num_warps: int | None = None,
    num_stages: int = 2,
    grid: tuple[int, ...] | None = None,
    interpret: bool = False,
    debug: bool = False,
    return_residuals: bool = False,
) -> Any: ...
def mha_reference(
    q: Array,
    k: Array,
    v: Array,
    segment_ids: Array | None,
    sm_scale: float = 1.0,
    causal: bool = False,
) -> Array: ...
mha_backward_kernel: Any
