"""The kernel of paged attention."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.kernels.ops.tpu_paged: paged_attention
""",
    missing={
        "jax.experimental.pallas.ops.tpu.paged_attention.{0} is not there: use paged_attention.": """
        MultiPageAsyncCopyDescriptor paged_flash_attention_kernel paged_flash_attention_kernel_inline_seq_dim
    """
    },
)
