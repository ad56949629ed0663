"""jax.experimental.pallas.ops.tpu.paged_attention: attention of one query a sequence, with keys in pages."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.kernels.ops.tpu_paged: paged_attention
""",
    later=("paged_attention_kernel", "quantization_utils", "util"),
)
