"""SciPy's functions on arrays and tracers."""

from minijax.base.faces import Face

_MODULES = "cluster fft integrate interpolate linalg ndimage optimize signal sparse spatial special stats".split()
_FACE = Face(__name__, _MODULES, {})
__getattr__, __dir__ = _FACE.attribute, _FACE.names
