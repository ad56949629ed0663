"""jax.experimental.pallas.ops.tpu.flash_attention: attention by kernels for TPUs."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.kernels.ops.tpu_flash: BlockSizes SegmentIds flash_attention mha_reference mha_reference_no_custom_vjp
""",
    missing={
        "jax.experimental.pallas.ops.tpu.flash_attention.{0} is not there: use flash_attention.": """
        below_or_on_diag mha_reference_bwd
    """
    },
)
