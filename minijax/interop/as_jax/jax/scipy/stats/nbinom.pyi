# The names of this module's table, written by tests/write_stubs.py.

from minijax.scipy.stats.nbinom import (logpmf as logpmf, pmf as pmf)
