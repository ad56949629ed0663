"""jax.experimental.buffer_callback: host callbacks on the buffers of arrays."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__, "minijax.composed.callbacks.callback: Buffer ExecutionContext ExecutionStage buffer_callback"
)
