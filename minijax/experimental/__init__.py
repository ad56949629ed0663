"""jax.experimental: what may still change."""

from minijax.base.faces import Face

_FACE = Face(__name__, ("checkify",), {})
__getattr__, __dir__ = _FACE.attribute, _FACE.names
