# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.sparse.coo import (COO as COO, COOInfo as COOInfo, Dtype as Dtype, Shape as Shape,
    coo_fromdense as coo_fromdense, coo_fromdense_p as coo_fromdense_p, coo_matmat as coo_matmat, coo_matmat_p as
    coo_matmat_p, coo_matvec as coo_matvec, coo_matvec_p as coo_matvec_p, coo_todense as coo_todense, coo_todense_p as
    coo_todense_p)
