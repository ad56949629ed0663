"""jax.extend.pallas: how other compilers of kernels are added."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.kernels.mapping: GridMapping
minijax.kernels.primitive: register_lowering_rule
""",
)
