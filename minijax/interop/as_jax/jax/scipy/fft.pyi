# The names of this module's table, written by tests/write_stubs.py.

from minijax.scipy.fft import (dct as dct, dctn as dctn, idct as idct, idctn as idctn)
