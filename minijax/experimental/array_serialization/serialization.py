"""jax.experimental.array_serialization.serialization: arrays of several processes in files."""

from minijax.base.faces import Face

_FACE = Face(
    __name__,
    (),
    {},
    missing={
        "jax.experimental.array_serialization.serialization.{0} is not there yet.": """
        AsyncManager BarrierTimeoutError GlobalAsyncCheckpointManager GlobalAsyncCheckpointManagerBase
        get_tensorstore_spec is_remote_storage run_deserialization run_serialization
    """
    },
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
