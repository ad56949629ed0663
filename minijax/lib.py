"""jax.lib: the version of jaxlib."""

from minijax.base.faces import Face

_FACE = Face(__name__, (), {"jaxlib.version": "__version__"})
__getattr__, __dir__ = _FACE.attribute, _FACE.names
