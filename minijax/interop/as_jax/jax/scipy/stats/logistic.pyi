# The names of this module's table, written by tests/write_stubs.py.

from minijax.scipy.stats.logistic import (cdf as cdf, isf as isf, logpdf as logpdf, pdf as pdf, ppf as ppf, sf as sf)
