"""jax.experimental.pallas.ops.gpu.paged_attention: attention of one query a sequence, with keys in pages."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.kernels.ops.gpu_decode: paged_attention paged_attention_reference
""",
    missing={
        "jax.experimental.pallas.ops.gpu.paged_attention.{0} is not there: use paged_attention.": """
        paged_attention_kernel paged_attention_unbatched
    """
    },
)
