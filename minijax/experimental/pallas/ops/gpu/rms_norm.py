"""jax.experimental.pallas.ops.gpu.rms_norm: a kernel for GPUs."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.kernels.ops.gpu_rows: rms_norm rms_norm_backward rms_norm_backward_kernel_dw_db rms_norm_backward_kernel_dx
    rms_norm_forward rms_norm_forward_kernel rms_norm_reference
""",
)
