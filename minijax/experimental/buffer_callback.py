"""jax.experimental.buffer_callback: functions of the host that are handed the memory of arrays."""

from minijax.base.faces import Face

_FACE = Face(
    __name__,
    (),
    """
minijax.composed.buffer_callback: Buffer ExecutionContext ExecutionStage buffer_callback
""",
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
