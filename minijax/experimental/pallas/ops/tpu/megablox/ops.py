"""jax.experimental.pallas.ops.tpu.megablox.ops: products of groups, with derivatives."""

from minijax.base.faces import Face

_FACE = Face(
    __name__,
    (),
    """
minijax.kernels.ops.tpu_products: gmm=differentiable_gmm
""",
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
