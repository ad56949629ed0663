"""jax.experimental.serialize_executable: compiled programs as bytes."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(__name__, "minijax.api.serialized: deserialize_and_load serialize")
