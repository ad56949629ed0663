# The names of this module's table, written by tests/write_stubs.py.

from minijax.run.arrays.array import Array
from typing import Any

__all__ = [
    "attn_forward_kernel", "decode_attn_unbatched", "gqa", "gqa_reference", "mha_reference", "mqa", "mqa_reference"
]

def gqa(
    q: Array,
    k: Array,
    v: Array,
    start_idx: Any = None,
    kv_seq_len: Any = None,
    sm_scale: float | None = None,
    block_h: int = 16,
    block_k: int = 128,
    k_splits: int = 16,
    num_warps: int | None = None,
    num_stages: int = 2,
    grid: tuple[int, ...] | None = None,
    interpret: bool = False,
    debug: bool = False,
    return_residuals: bool = False,
    normalize_output: bool = True,
) -> Any: ...
def gqa_reference(
    q: Array,
    k: Array,
    v: Array,
    start_idx: Any = None,
    kv_seq_len: Any = None,
    sm_scale: float | None = None,
    return_residuals: bool = False,
    normalize_output: bool = True,
) -> Any: ...
def mha_reference(
    q: Array,
    k: Array,
    v: Array,
    start_idx: Any = None,
    kv_seq_len: Any = None,
    sm_scale: float | None = None,
) -> Array: ...
def mqa(
    q: Array,
    k: Array,
    v: Array,
    start_idx: Any = None,
    kv_seq_len: Any = None,
    sm_scale: float | None = None,
    block_h: int = 16,
    block_k: int = 256,
    k_splits: int = 16,
    num_warps: int | None = None,
    num_stages: int = 2,
    grid: tuple[int, ...] | None = None,
    interpret: bool = False,
    debug: bool = False,
    return_residuals: bool = False,
    normalize_output: bool = True,
) -> Any: ...
def mqa_reference(
    q: Array,
    k: Array,
    v: Array,
    start_idx: Any = None,
    kv_seq_len: Any = None,
    sm_scale: float | None = None,
    return_residuals: bool = False,
    normalize_output: bool = True,
) -> Any: ...
attn_forward_kernel: Any
decode_attn_unbatched: Any
