# The names of this module's table, written by tests/write_stubs.py.

from typing import Any

__all__ = [
    "CausalMask", "ChunkedCausalMask", "FullMask", "LocalMask", "LogicalAnd", "LogicalOr", "Mask", "MultiHeadMask",
    "NumpyMask", "make_causal_mask", "make_chunk_attention_mask", "make_local_attention_mask", "make_random_mask"
]

CausalMask: Any
FullMask: Any
LocalMask: Any
Mask: Any
MultiHeadMask: Any
NumpyMask: Any
make_causal_mask: Any
make_local_attention_mask: Any
make_random_mask: Any
ChunkedCausalMask: Any
LogicalAnd: Any
LogicalOr: Any
make_chunk_attention_mask: Any
