"""jax.experimental.pallas.ops.tpu.matmul: the product of two matrices."""

from minijax.base.faces import Face

_FACE = Face(
    __name__,
    (),
    """
minijax.kernels.ops.tpu_products: matmul matmul_kernel
""",
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
