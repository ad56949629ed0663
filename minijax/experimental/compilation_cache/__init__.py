"""jax.experimental.compilation_cache: the persistent compilation cache."""

from minijax.base.faces import Face

_FACE = Face(__name__, ("compilation_cache",), {})
__getattr__, __dir__ = _FACE.attribute, _FACE.names
