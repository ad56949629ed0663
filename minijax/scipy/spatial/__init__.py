"""Spatial functions."""

from minijax.base.faces import Face

_FACE = Face(__name__, (), {}, later=("transform",))
__getattr__, __dir__ = _FACE.attribute, _FACE.names
