"""Minimization of functions of several variables."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(__name__, {"minijax.scipy.optimize.bfgs": "OptimizeResults minimize"})
