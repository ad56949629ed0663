"""jax.experimental.buffer_callback: host callbacks on the buffers of arrays."""

from minijax.base.faces import Face

_FACE = Face(
    __name__,
    (),
    """
minijax.composed.callbacks.callback: Buffer ExecutionContext ExecutionStage buffer_callback
""",
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
