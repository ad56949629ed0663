"""jax.experimental.array_serialization: saves arrays to files and loads them."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__, {}, later="pytree_serialization pytree_serialization_utils serialization tensorstore_impl".split()
)
