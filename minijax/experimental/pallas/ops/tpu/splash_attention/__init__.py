"""jax.experimental.pallas.ops.tpu.splash_attention: attention with block-sparse masks."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.kernels.ops.splash_masks: CausalMask FullMask LocalMask Mask MultiHeadMask NumpyMask make_causal_mask
    make_local_attention_mask make_random_mask
minijax.kernels.ops.tpu_splash: BlockSizes QKVLayout SegmentIds make_masked_mha_reference make_masked_mqa_reference
    make_splash_mha make_splash_mha_single_device make_splash_mqa make_splash_mqa_single_device
""",
    ("splash_attention_kernel", "splash_attention_mask", "splash_attention_mask_info"),
)
