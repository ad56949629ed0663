# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.pallas.ops.tpu.paged_attention import paged_attention_kernel as paged_attention_kernel
from minijax.experimental.pallas.ops.tpu.paged_attention import quantization_utils as quantization_utils
from minijax.experimental.pallas.ops.tpu.paged_attention import util as util
from minijax.kernels.ops.tpu_paged import QuantizedTensor
from minijax.run.arrays.array import Array

__all__ = [
    "paged_attention", "paged_attention_kernel", "quantization_utils", "util"
]

def paged_attention(
    q: Array,
    k_pages: Array | QuantizedTensor,
    v_pages: Array | QuantizedTensor,
    lengths: Array,
    page_indices: Array,
    *,
    mask_value: float = -2.381976426469702e+38,
    attn_logits_soft_cap: float | None = None,
    pages_per_compute_block: int,
    megacore_mode: str | None = None,
    inline_seq_dim: bool = True,
) -> Array: ...
