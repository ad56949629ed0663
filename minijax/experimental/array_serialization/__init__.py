"""jax.experimental.array_serialization: arrays in files."""

from minijax.base.faces import Face

_FACE = Face(__name__, ("serialization", "tensorstore_impl"), {})
__getattr__, __dir__ = _FACE.attribute, _FACE.names
