"""Spatial functions."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(__name__, {}, later=("transform",))
