# The names of this module's table, written by tests/write_stubs.py.

from minijax.scipy import cluster as cluster
from minijax.scipy import fft as fft
from minijax.scipy import integrate as integrate
from minijax.scipy import interpolate as interpolate
from minijax.scipy import linalg as linalg
from minijax.scipy import ndimage as ndimage
from minijax.scipy import optimize as optimize
from minijax.scipy import signal as signal
from minijax.scipy import sparse as sparse
from minijax.scipy import spatial as spatial
from minijax.scipy import special as special
from minijax.scipy import stats as stats

__all__ = [
    "cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "spatial",
    "special", "stats"
]
