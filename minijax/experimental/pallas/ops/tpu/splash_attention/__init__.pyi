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
from minijax.kernels.ops.tpu_splash import BlockSizes as BlockSizes
from minijax.kernels.ops.tpu_splash import QKVLayout as QKVLayout
from minijax.kernels.ops.tpu_splash import SegmentIds as SegmentIds
from typing import Any

__all__ = [
    "BlockSizes", "CausalMask", "FullMask", "LocalMask", "Mask", "MultiHeadMask", "NumpyMask", "QKVLayout",
    "SegmentIds", "make_causal_mask", "make_local_attention_mask", "make_masked_mha_reference",
    "make_masked_mqa_reference", "make_random_mask", "make_splash_mha", "make_splash_mha_single_device",
    "make_splash_mqa", "make_splash_mqa_single_device", "splash_attention_kernel", "splash_attention_mask",
    "splash_attention_mask_info"
]

def make_masked_mha_reference(
    mask: Any,
    *,
    is_mqa: bool = False,
    backward_impl: str = 'vanilla',
    **params: Any,
) -> Any: ...
def make_masked_mqa_reference(
    mask: Any,
    *,
    is_mqa: bool = True,
    backward_impl: str = 'vanilla',
    **params: Any,
) -> Any: ...
def make_splash_mha(
    mask: Any,
    *,
    block_sizes: Any = None,
    is_mqa: bool = False,
    save_residuals: bool = False,
    mask_value: float = -2.381976426469702e+38,
    attn_logits_soft_cap: float | None = None,
    downcast_smem_data: bool = True,
    head_shards: int,
    q_seq_shards: int,
    residual_checkpoint_name: str | None = None,
    interpret: bool = False,
) -> Any: ...
def make_splash_mha_single_device(
    mask: Any,
    *,
    block_sizes: Any = None,
    is_mqa: bool = False,
    save_residuals: bool = False,
    mask_value: float = -2.381976426469702e+38,
    attn_logits_soft_cap: float | None = None,
    downcast_smem_data: bool = True,
    head_shards: int = 1,
    q_seq_shards: int = 1,
    residual_checkpoint_name: str | None = None,
    interpret: bool = False,
) -> Any: ...
def make_splash_mqa(
    mask: Any,
    *,
    block_sizes: Any = None,
    is_mqa: bool = True,
    save_residuals: bool = False,
    mask_value: float = -2.381976426469702e+38,
    attn_logits_soft_cap: float | None = None,
    downcast_smem_data: bool = True,
    head_shards: int,
    q_seq_shards: int,
    residual_checkpoint_name: str | None = None,
    interpret: bool = False,
) -> Any: ...
def make_splash_mqa_single_device(
    mask: Any,
    *,
    block_sizes: Any = None,
    is_mqa: bool = True,
    save_residuals: bool = False,
    mask_value: float = -2.381976426469702e+38,
    attn_logits_soft_cap: float | None = None,
    downcast_smem_data: bool = True,
    head_shards: int = 1,
    q_seq_shards: int = 1,
    residual_checkpoint_name: str | None = None,
    interpret: bool = False,
) -> Any: ...
