# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as splash_attention_kernel
from minijax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as splash_attention_mask
from minijax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask_info as splash_attention_mask_info
from minijax.kernels.ops.splash_masks import CausalMask as CausalMask
from minijax.kernels.ops.splash_masks import FullMask as FullMask
from minijax.kernels.ops.splash_masks import LocalMask as LocalMask
from minijax.kernels.ops.splash_masks import Mask as Mask
from minijax.kernels.ops.splash_masks import MultiHeadMask as MultiHeadMask
from minijax.kernels.ops.splash_masks import NumpyMask as NumpyMask
from minijax.kernels.ops.splash_masks import make_causal_mask as make_causal_mask
from minijax.kernels.ops.splash_masks import make_local_attention_mask as make_local_attention_mask
from minijax.kernels.ops.splash_masks import make_random_mask as make_random_mask
from typing import Any

__all__ = [
    "BlockSizes", "CausalMask", "FullMask", "LocalMask", "Mask", "MultiHeadMask", "NumpyMask", "QKVLayout",
    "SegmentIds", "make_causal_mask", "make_local_attention_mask", "make_masked_mha_reference",
    "make_masked_mqa_reference", "make_random_mask", "make_splash_mha", "make_splash_mha_single_device",
    "make_splash_mqa", "make_splash_mqa_single_device", "splash_attention_kernel", "splash_attention_mask",
    "splash_attention_mask_info"
]

BlockSizes: Any
QKVLayout: Any
SegmentIds: Any
make_masked_mha_reference: Any
make_masked_mqa_reference: Any
make_splash_mha: Any
make_splash_mha_single_device: Any
make_splash_mqa: Any
make_splash_mqa_single_device: Any
