# The names of this module's table, written by tests/write_stubs.py.

from minijax.run.arrays.array import Array
from typing import Any

__all__ = [
    "paged_attention", "paged_attention_kernel", "paged_attention_reference", "paged_attention_unbatched"
]

def paged_attention(
    q: Array,
    k_pages: Array,
    v_pages: Array,
    block_tables: Array,
    lengths: Array | None,
    k_scales_pages: Array | None = None,
    v_scales_pages: Array | None = None,
    *,
    block_h: int = 16,
    pages_per_compute_block: int = 8,
    k_splits: int = 16,
    num_warps: int = 8,
    num_stages: int = 2,
    interpret: bool = False,
    debug: bool = False,
    mask_value: float = -2.381976426469702e+38,
    attn_logits_soft_cap: float | None = None,
) -> Array: ...
def paged_attention_reference(
    q: Array,
    k: Array,
    v: Array,
    lengths: Array,
    *,
    mask_value: float = -2.381976426469702e+38,
    attn_logits_soft_cap: float | None = None,
) -> Array: ...
paged_attention_kernel: Any
paged_attention_unbatched: Any
