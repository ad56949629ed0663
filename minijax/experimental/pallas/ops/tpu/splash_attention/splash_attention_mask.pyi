# The names of this module's table, written by tests/write_stubs.py.

from minijax.kernels.ops.splash_masks import CausalMask as CausalMask
from minijax.kernels.ops.splash_masks import ChunkedCausalMask as ChunkedCausalMask
from minijax.kernels.ops.splash_masks import FullMask as FullMask
from minijax.kernels.ops.splash_masks import LocalMask as LocalMask
from minijax.kernels.ops.splash_masks import LogicalAnd as LogicalAnd
from minijax.kernels.ops.splash_masks import LogicalOr as LogicalOr
from minijax.kernels.ops.splash_masks import Mask as Mask
from minijax.kernels.ops.splash_masks import MultiHeadMask as MultiHeadMask
from minijax.kernels.ops.splash_masks import NumpyMask as NumpyMask
from minijax.kernels.ops.splash_masks import make_causal_mask as make_causal_mask
from minijax.kernels.ops.splash_masks import make_chunk_attention_mask as make_chunk_attention_mask
from minijax.kernels.ops.splash_masks import make_local_attention_mask as make_local_attention_mask
from minijax.kernels.ops.splash_masks import make_random_mask as make_random_mask

__all__ = [
    "CausalMask", "ChunkedCausalMask", "FullMask", "LocalMask", "LogicalAnd", "LogicalOr", "Mask", "MultiHeadMask",
    "NumpyMask", "make_causal_mask", "make_chunk_attention_mask", "make_local_attention_mask", "make_random_mask"
]
