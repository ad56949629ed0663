# The names of this module's table, written by tests/write_stubs.py.

from minijax.scipy.stats.pareto import (cdf as cdf, logcdf as logcdf, logpdf as logpdf, logsf as logsf, pdf as pdf,
    ppf as ppf, sf as sf)
