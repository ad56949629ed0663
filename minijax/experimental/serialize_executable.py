"""jax.experimental.serialize_executable: compiled programs as bytes."""

from minijax.base.faces import Face

_FACE = Face(__name__, (), "minijax.api.serialized: deserialize_and_load serialize")
__getattr__, __dir__ = _FACE.attribute, _FACE.names
