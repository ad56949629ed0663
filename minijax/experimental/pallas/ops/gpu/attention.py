"""jax.experimental.pallas.ops.gpu.attention: attention by kernels for GPUs."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.kernels.ops.gpu_attention: BlockSizes mha mha_forward_kernel mha_reference segment_mask
""",
    missing={
        "jax.experimental.pallas.ops.gpu.attention.{0} is not there: mha has two kernels for its derivatives.": """
        mha_backward_kernel
    """
    },
)
