# The names of this module's table, written by tests/write_stubs.py.

from minijax.scipy.stats.poisson import (cdf as cdf, entropy as entropy, logpmf as logpmf, pmf as pmf)
