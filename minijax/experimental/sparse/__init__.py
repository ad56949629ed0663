"""jax.experimental.sparse: sparse arrays."""

from minijax.base.faces import Face
from minijax.experimental.sparse import methods as _methods  # noqa: F401 (gives BCOO and BCSR their operators)

_FACE = Face(
    __name__,
    "ad api bcoo bcsr coo csr linalg random transform util".split(),
    """
minijax.experimental.sparse._base: JAXSparse
minijax.experimental.sparse.util: CuSparseEfficiencyWarning SparseEfficiencyError SparseEfficiencyWarning
minijax.experimental.sparse.transform: SparseTracer sparsify
minijax.experimental.sparse.ad: grad jacfwd jacobian jacrev value_and_grad
minijax.experimental.sparse.random: random_bcoo
minijax.experimental.sparse.api: empty eye todense todense_p
minijax.experimental.sparse.bcoo_array: BCOO
minijax.experimental.sparse.bcsr: BCSR bcsr_broadcast_in_dim bcsr_concatenate bcsr_dot_general bcsr_dot_general_p
    bcsr_extract bcsr_extract_p bcsr_fromdense bcsr_fromdense_p bcsr_sum_duplicates bcsr_todense bcsr_todense_p
minijax.experimental.sparse.coo: COO coo_fromdense coo_fromdense_p coo_matmat coo_matmat_p coo_matvec coo_matvec_p
    coo_todense coo_todense_p
minijax.experimental.sparse.csr: CSC CSR csr_fromdense csr_fromdense_p csr_matmat csr_matmat_p csr_matvec csr_matvec_p
    csr_todense csr_todense_p
minijax.experimental.sparse.bcoo_dense: bcoo_extract bcoo_extract_p bcoo_fromdense bcoo_fromdense_p bcoo_todense
    bcoo_todense_p
minijax.experimental.sparse.bcoo_layout: bcoo_sort_indices bcoo_sort_indices_p bcoo_sum_duplicates
    bcoo_sum_duplicates_p bcoo_transpose bcoo_transpose_p bcoo_update_layout
minijax.experimental.sparse.bcoo_dot: bcoo_dot_general bcoo_dot_general_p bcoo_dot_general_sampled
    bcoo_dot_general_sampled_p bcoo_spdot_general_p
minijax.experimental.sparse.bcoo_shapes: bcoo_broadcast_in_dim bcoo_concatenate bcoo_reduce_sum bcoo_reshape bcoo_rev
    bcoo_squeeze
minijax.experimental.sparse.bcoo_slices: bcoo_dynamic_slice bcoo_gather bcoo_slice
minijax.experimental.sparse.bcoo_multiply: bcoo_conv_general_dilated bcoo_multiply_dense bcoo_multiply_sparse
""",
    later=("test_util",),
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
