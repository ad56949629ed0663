"""jax.experimental.pallas.ops.gpu.decode_attention: attention of one query a sequence."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.kernels.ops.gpu_decode: gqa gqa_reference mha_reference mqa mqa_reference
""",
    missing={
        "jax.experimental.pallas.ops.gpu.decode_attention.{0} is not there: use gqa or mqa.": """
        attn_forward_kernel decode_attn_unbatched
    """
    },
)
