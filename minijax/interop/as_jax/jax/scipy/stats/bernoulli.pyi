# The names of this module's table, written by tests/write_stubs.py.

from minijax.scipy.stats.bernoulli import (cdf as cdf, logpmf as logpmf, pmf as pmf, ppf as ppf)
