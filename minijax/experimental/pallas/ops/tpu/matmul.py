"""jax.experimental.pallas.ops.tpu.matmul: the product of two matrices."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(__name__, "minijax.kernels.ops.tpu_products: matmul matmul_kernel")
