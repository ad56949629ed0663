"""jax.experimental.pallas.ops.gpu.layer_norm: a kernel for GPUs."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.kernels.ops.gpu_rows: layer_norm layer_norm_backward layer_norm_backward_kernel_dw_db
    layer_norm_backward_kernel_dx layer_norm_forward layer_norm_forward_kernel layer_norm_reference
""",
)
