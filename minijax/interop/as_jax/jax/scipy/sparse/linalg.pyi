# The names of this module's table, written by tests/write_stubs.py.

from minijax.scipy.sparse.linalg import (bicgstab as bicgstab, cg as cg, gmres as gmres)
