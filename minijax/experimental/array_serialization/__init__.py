"""jax.experimental.array_serialization: saves arrays to files and loads them."""

from minijax.base.faces import Face

_FACE = Face(
    __name__, (), {}, later="pytree_serialization pytree_serialization_utils serialization tensorstore_impl".split()
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
