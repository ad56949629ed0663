"""jax.experimental.xla_metadata: attributes of operations that XLA passes on."""

from minijax.base.faces import Face

_FACE = Face(
    __name__,
    (),
    """
minijax.api.metadata: set_xla_metadata
""",
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
