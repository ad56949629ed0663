"""jax.experimental.pallas.ops.tpu.megablox.gmm: products of groups, without derivatives."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(__name__, "minijax.kernels.ops.tpu_products: gmm make_group_metadata tgmm")
