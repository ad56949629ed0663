"""jax.custom_batching: functions with custom batching rules."""

from minijax.base.faces import Face

_FACE = Face(
    __name__,
    (),
    """
minijax.api.custom_batching: custom_vmap sequential_vmap
""",
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
