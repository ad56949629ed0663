"""The kernels of splash attention."""

from minijax.base.faces import Face

_FACE = Face(
    __name__,
    (),
    {},
    missing={
        "jax.experimental.pallas.ops.tpu.splash_attention.{0} is not there: minijax has no kernels of its own.": """
        BlockSizes QKVLayout SegmentIds make_masked_mha_reference make_masked_mqa_reference make_splash_mha
        make_splash_mha_single_device make_splash_mqa make_splash_mqa_single_device SplashAttentionKernel
        attention_reference attention_reference_custom make_attention_reference
    """
    },
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
