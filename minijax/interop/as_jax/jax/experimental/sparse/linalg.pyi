# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.sparse.linalg import (lobpcg_standard as lobpcg_standard, spsolve as spsolve, spsolve_p as
    spsolve_p)
