"""The kernels of splash attention."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.kernels.ops.tpu_splash: BlockSizes QKVLayout SegmentIds SplashAttentionKernel attention_reference
    attention_reference_custom=attention_reference get_kernel_name make_attention_reference make_masked_mha_reference
    make_masked_mqa_reference make_splash_mha make_splash_mha_single_device make_splash_mqa
    make_splash_mqa_single_device
""",
)
