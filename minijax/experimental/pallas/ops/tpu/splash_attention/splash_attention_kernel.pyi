# The names of this module's table, written by tests/write_stubs.py.

from typing import Any

__all__ = [
    "BlockSizes", "QKVLayout", "SegmentIds", "SplashAttentionKernel", "attention_reference",
    "attention_reference_custom", "make_attention_reference", "make_masked_mha_reference",
    "make_masked_mqa_reference", "make_splash_mha", "make_splash_mha_single_device", "make_splash_mqa",
    "make_splash_mqa_single_device"
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
SplashAttentionKernel: Any
attention_reference: Any
attention_reference_custom: Any
make_attention_reference: Any
