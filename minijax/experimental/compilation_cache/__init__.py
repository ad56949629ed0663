"""jax.experimental.compilation_cache: the persistent compilation cache."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(__name__, {}, ("compilation_cache",))
