"""jax.experimental.pallas.ops.tpu.megablox.ops: products of groups, with derivatives."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(__name__, "minijax.kernels.ops.tpu_products: gmm=differentiable_gmm")
