"""jax.experimental.pallas.ops.gpu.softmax: a kernel for GPUs."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(__name__, "minijax.kernels.ops.gpu_rows: softmax")
