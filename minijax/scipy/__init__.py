"""SciPy's functions on arrays and tracers."""

from minijax.base.faces import Face

_MODULES = "cluster fft integrate interpolate linalg ndimage signal sparse special stats".split()
__getattr__, __dir__ = _FACE = Face(__name__, {}, _MODULES, later=("optimize", "spatial"))
