"""jax.experimental.sparse: sparse arrays."""

from minijax.base.faces import Face
from minijax.experimental.sparse import methods as _methods  # noqa: F401 (gives BCOO and BCSR their operators)
from minijax.experimental.sparse.bcoo_names import BCOO_FUNCTIONS

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.experimental.sparse._base: JAXSparse
minijax.experimental.sparse.bcoo_array: BCOO
minijax.experimental.sparse.util: CuSparseEfficiencyWarning SparseEfficiencyError SparseEfficiencyWarning
minijax.experimental.sparse.transform: SparseTracer sparsify
minijax.experimental.sparse.ad: grad jacfwd jacobian jacrev value_and_grad
minijax.experimental.sparse.random: random_bcoo
minijax.experimental.sparse.api: empty eye todense todense_p
minijax.experimental.sparse.bcsr: BCSR bcsr_broadcast_in_dim bcsr_concatenate bcsr_dot_general bcsr_dot_general_p
    bcsr_extract bcsr_extract_p bcsr_fromdense bcsr_fromdense_p bcsr_sum_duplicates bcsr_todense bcsr_todense_p
minijax.experimental.sparse.coo: COO coo_fromdense coo_fromdense_p coo_matmat coo_matmat_p coo_matvec coo_matvec_p
    coo_todense coo_todense_p
minijax.experimental.sparse.csr: CSC CSR csr_fromdense csr_fromdense_p csr_matmat csr_matmat_p csr_matvec csr_matvec_p
    csr_todense csr_todense_p
"""
    + BCOO_FUNCTIONS,
    "ad api bcoo bcsr coo csr linalg random transform util".split(),
    later=("test_util",),
)
