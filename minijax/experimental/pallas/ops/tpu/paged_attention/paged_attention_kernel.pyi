# The names of this module's table, written by tests/write_stubs.py.

from minijax.kernels.ops.tpu_paged import QuantizedTensor
from minijax.run.arrays.array import Array
from typing import Any

__all__ = [
    "MultiPageAsyncCopyDescriptor", "paged_attention", "paged_flash_attention_kernel",
    "paged_flash_attention_kernel_inline_seq_dim"
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
MultiPageAsyncCopyDescriptor: Any
paged_flash_attention_kernel: Any
paged_flash_attention_kernel_inline_seq_dim: Any
