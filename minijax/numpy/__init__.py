"""NumPy's functions on arrays and tracers."""

from minijax.numpy import methods as _methods  # noqa: F401 (installs the operators of arrays)
from minijax.numpy.names import FACE as _FACE

__getattr__, __dir__ = _FACE.attribute, _FACE.names
