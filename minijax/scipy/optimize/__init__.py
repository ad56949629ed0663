"""Minimization of functions of several variables."""

from minijax.base.faces import Face

_FACE = Face(__name__, (), {"minijax.scipy.optimize.minimization": "OptimizeResults minimize"})
__getattr__, __dir__ = _FACE.attribute, _FACE.names
