# The names of this module's table, written by tests/write_stubs.py.

from minijax.kernels.ops.tpu_splash import BlockSizes as BlockSizes
from minijax.kernels.ops.tpu_splash import QKVLayout as QKVLayout
from minijax.kernels.ops.tpu_splash import SegmentIds as SegmentIds
from minijax.kernels.ops.tpu_splash import SplashAttentionKernel as SplashAttentionKernel
from minijax.kernels.ops.tpu_splash import attention_reference as attention_reference
from minijax.kernels.ops.tpu_splash import attention_reference as attention_reference_custom
from minijax.kernels.ops.tpu_splash import get_kernel_name as get_kernel_name
from minijax.kernels.ops.tpu_splash import make_attention_reference as make_attention_reference
from typing import Any

__all__ = [
    "BlockSizes", "QKVLayout", "SegmentIds", "SplashAttentionKernel", "attention_reference",
    "attention_reference_custom", "get_kernel_name", "make_attention_reference", "make_masked_mha_reference",
    "make_masked_mqa_reference", "make_splash_mha", "make_splash_mha_single_device", "make_splash_mqa",
    "make_splash_mqa_single_device"
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
