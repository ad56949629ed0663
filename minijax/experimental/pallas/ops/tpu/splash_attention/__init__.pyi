# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as splash_attention_kernel
from minijax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as splash_attention_mask
from typing import Any

__all__ = [
    "BlockSizes", "CausalMask", "FullMask", "LocalMask", "Mask", "MultiHeadMask", "NumpyMask", "QKVLayout",
    "SegmentIds", "make_causal_mask", "make_local_attention_mask", "make_masked_mha_reference",
    "make_masked_mqa_reference", "make_random_mask", "make_splash_mha", "make_splash_mha_single_device",
    "make_splash_mqa", "make_splash_mqa_single_device", "splash_attention_kernel", "splash_attention_mask"
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
CausalMask: Any
FullMask: Any
LocalMask: Any
Mask: Any
MultiHeadMask: Any
NumpyMask: Any
make_causal_mask: Any
make_local_attention_mask: Any
make_random_mask: Any
