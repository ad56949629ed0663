# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.sparse.csr import (CSC as CSC, CSR as CSR, Shape as Shape, csr_fromdense as csr_fromdense,
    csr_fromdense_p as csr_fromdense_p, csr_matmat as csr_matmat, csr_matmat_p as csr_matmat_p, csr_matvec as
    csr_matvec, csr_matvec_p as csr_matvec_p, csr_todense as csr_todense, csr_todense_p as csr_todense_p)
