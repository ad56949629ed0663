"""jax.experimental.mosaic."""

from minijax.base.faces import Face

_FACE = Face(__name__, ("gpu",), {})
__getattr__, __dir__ = _FACE.attribute, _FACE.names
