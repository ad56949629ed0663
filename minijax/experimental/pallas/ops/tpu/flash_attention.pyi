# The names of this module's table, written by tests/write_stubs.py.

from minijax.kernels.ops.tpu_flash import BlockSizes as BlockSizes
from minijax.kernels.ops.tpu_flash import BlockSizes as _BlockSizes
from minijax.kernels.ops.tpu_flash import SegmentIds as SegmentIds
from minijax.kernels.ops.tpu_flash import SegmentIds as _SegmentIds
from minijax.kernels.ops.tpu_flash import mha_reference_no_custom_vjp as mha_reference_no_custom_vjp
from minijax.run.arrays.array import Array
from typing import Any

__all__ = [
    "BlockSizes", "SegmentIds", "below_or_on_diag", "flash_attention", "mha_reference", "mha_reference_bwd",
    "mha_reference_no_custom_vjp"
]

def flash_attention(
    q: Array,
    k: Array,
    v: Array,
    ab: Array | None = None,
    segment_ids: _SegmentIds | None = None,
    *,
    causal: bool = False,
    sm_scale: float = 1.0,
    block_sizes: _BlockSizes | None = None,
    debug: bool = False,
) -> Array: ...
def mha_reference(
    q: Array,
    k: Array,
    v: Array,
    ab: Array | None,
    segment_ids: _SegmentIds | None = None,
    causal: bool = False,
    mask_value: float = -2.381976426469702e+38,
    sm_scale: float = 1.0,
) -> Array: ...
below_or_on_diag: Any
mha_reference_bwd: Any
