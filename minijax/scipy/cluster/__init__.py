"""Clusters of points."""

from minijax.base.faces import Face

_FACE = Face(__name__, ("vq",), {})
__getattr__, __dir__ = _FACE.attribute, _FACE.names
