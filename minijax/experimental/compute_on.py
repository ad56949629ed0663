"""jax.experimental.compute_on: selects where operations are computed."""

from minijax.base.faces import Face

_FACE = Face(
    __name__,
    (),
    """
minijax.api.metadata: compute_on compute_on2
""",
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
