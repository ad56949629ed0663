# The names of this module's table, written by tests/write_stubs.py.

from minijax.scipy.stats.chi2 import (cdf as cdf, logcdf as logcdf, logpdf as logpdf, logsf as logsf, pdf as pdf, sf
    as sf)
