"""jax.lib: the version of jaxlib."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(__name__, {"jaxlib.version": "__version__"})
