"""Sparse linear algebra."""

from minijax.base.faces import Face

_FACE = Face(__name__, ("linalg",), {})
__getattr__, __dir__ = _FACE.attribute, _FACE.names
