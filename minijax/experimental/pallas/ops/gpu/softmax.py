"""jax.experimental.pallas.ops.gpu.softmax: a kernel for GPUs."""

from minijax.base.faces import Face

_FACE = Face(
    __name__,
    (),
    """
minijax.kernels.ops.gpu_rows: softmax
""",
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
