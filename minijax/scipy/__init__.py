"""SciPy's functions on arrays and tracers."""

from minijax.base.faces import Face

_FACE = Face(__name__, ("cluster", "fft", "integrate", "interpolate", "ndimage", "signal", "special", "stats"), {})
__getattr__, __dir__ = _FACE.attribute, _FACE.names
