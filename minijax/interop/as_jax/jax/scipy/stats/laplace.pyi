# The names of this module's table, written by tests/write_stubs.py.

from minijax.scipy.stats.laplace import (cdf as cdf, logpdf as logpdf, pdf as pdf)
