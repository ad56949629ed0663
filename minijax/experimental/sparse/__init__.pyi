# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.sparse import ad as ad
from minijax.experimental.sparse import api as api
from minijax.experimental.sparse import bcoo as bcoo
from minijax.experimental.sparse import bcsr as bcsr
from minijax.experimental.sparse import coo as coo
from minijax.experimental.sparse import csr as csr
from minijax.experimental.sparse import linalg as linalg
from minijax.experimental.sparse import random as random
from minijax.experimental.sparse import test_util as test_util
from minijax.experimental.sparse import transform as transform
from minijax.experimental.sparse import util as util
from minijax.experimental.sparse._base import JAXSparse as JAXSparse
from minijax.experimental.sparse.ad import grad as grad
from minijax.experimental.sparse.ad import jacfwd as jacfwd
from minijax.experimental.sparse.ad import jacobian as jacobian
from minijax.experimental.sparse.ad import jacrev as jacrev
from minijax.experimental.sparse.ad import value_and_grad as value_and_grad
from minijax.experimental.sparse.api import empty as empty
from minijax.experimental.sparse.api import eye as eye
from minijax.experimental.sparse.api import todense as todense
from minijax.experimental.sparse.api import todense_p as todense_p
from minijax.experimental.sparse.bcoo_array import BCOO as BCOO
from minijax.experimental.sparse.bcoo_dense import bcoo_extract as bcoo_extract
from minijax.experimental.sparse.bcoo_dense import bcoo_extract_p as bcoo_extract_p
from minijax.experimental.sparse.bcoo_dense import bcoo_fromdense as bcoo_fromdense
from minijax.experimental.sparse.bcoo_dense import bcoo_fromdense_p as bcoo_fromdense_p
from minijax.experimental.sparse.bcoo_dense import bcoo_todense as bcoo_todense
from minijax.experimental.sparse.bcoo_dense import bcoo_todense_p as bcoo_todense_p
from minijax.experimental.sparse.bcoo_dot import bcoo_conv_general_dilated as bcoo_conv_general_dilated
from minijax.experimental.sparse.bcoo_dot import bcoo_dot_general as bcoo_dot_general
from minijax.experimental.sparse.bcoo_dot import bcoo_dot_general_p as bcoo_dot_general_p
from minijax.experimental.sparse.bcoo_dot import bcoo_dot_general_sampled as bcoo_dot_general_sampled
from minijax.experimental.sparse.bcoo_dot import bcoo_dot_general_sampled_p as bcoo_dot_general_sampled_p
from minijax.experimental.sparse.bcoo_dot import bcoo_multiply_dense as bcoo_multiply_dense
from minijax.experimental.sparse.bcoo_dot import bcoo_multiply_sparse as bcoo_multiply_sparse
from minijax.experimental.sparse.bcoo_dot import bcoo_spdot_general_p as bcoo_spdot_general_p
from minijax.experimental.sparse.bcoo_layout import bcoo_sort_indices as bcoo_sort_indices
from minijax.experimental.sparse.bcoo_layout import bcoo_sort_indices_p as bcoo_sort_indices_p
from minijax.experimental.sparse.bcoo_layout import bcoo_sum_duplicates as bcoo_sum_duplicates
from minijax.experimental.sparse.bcoo_layout import bcoo_sum_duplicates_p as bcoo_sum_duplicates_p
from minijax.experimental.sparse.bcoo_layout import bcoo_transpose as bcoo_transpose
from minijax.experimental.sparse.bcoo_layout import bcoo_transpose_p as bcoo_transpose_p
from minijax.experimental.sparse.bcoo_layout import bcoo_update_layout as bcoo_update_layout
from minijax.experimental.sparse.bcoo_shapes import bcoo_broadcast_in_dim as bcoo_broadcast_in_dim
from minijax.experimental.sparse.bcoo_shapes import bcoo_concatenate as bcoo_concatenate
from minijax.experimental.sparse.bcoo_shapes import bcoo_dynamic_slice as bcoo_dynamic_slice
from minijax.experimental.sparse.bcoo_shapes import bcoo_gather as bcoo_gather
from minijax.experimental.sparse.bcoo_shapes import bcoo_reduce_sum as bcoo_reduce_sum
from minijax.experimental.sparse.bcoo_shapes import bcoo_reshape as bcoo_reshape
from minijax.experimental.sparse.bcoo_shapes import bcoo_rev as bcoo_rev
from minijax.experimental.sparse.bcoo_shapes import bcoo_slice as bcoo_slice
from minijax.experimental.sparse.bcoo_shapes import bcoo_squeeze as bcoo_squeeze
from minijax.experimental.sparse.bcsr import BCSR as BCSR
from minijax.experimental.sparse.bcsr import DotGeneral
from minijax.experimental.sparse.bcsr import Extract
from minijax.experimental.sparse.bcsr import FromDense
from minijax.experimental.sparse.bcsr import ToDense
from minijax.experimental.sparse.bcsr import bcsr_broadcast_in_dim as bcsr_broadcast_in_dim
from minijax.experimental.sparse.bcsr import bcsr_concatenate as bcsr_concatenate
from minijax.experimental.sparse.bcsr import bcsr_dot_general as bcsr_dot_general
from minijax.experimental.sparse.bcsr import bcsr_extract as bcsr_extract
from minijax.experimental.sparse.bcsr import bcsr_fromdense as bcsr_fromdense
from minijax.experimental.sparse.bcsr import bcsr_sum_duplicates as bcsr_sum_duplicates
from minijax.experimental.sparse.bcsr import bcsr_todense as bcsr_todense
from minijax.experimental.sparse.coo import COO as COO
from minijax.experimental.sparse.coo import CooFromDense
from minijax.experimental.sparse.coo import CooMatMat
from minijax.experimental.sparse.coo import CooMatVec
from minijax.experimental.sparse.coo import CooToDense
from minijax.experimental.sparse.coo import coo_fromdense as coo_fromdense
from minijax.experimental.sparse.coo import coo_matmat as coo_matmat
from minijax.experimental.sparse.coo import coo_matvec as coo_matvec
from minijax.experimental.sparse.coo import coo_todense as coo_todense
from minijax.experimental.sparse.csr import CSC as CSC
from minijax.experimental.sparse.csr import CSR as CSR
from minijax.experimental.sparse.csr import CsrFromDense
from minijax.experimental.sparse.csr import CsrMatMat
from minijax.experimental.sparse.csr import CsrMatVec
from minijax.experimental.sparse.csr import CsrToDense
from minijax.experimental.sparse.csr import csr_fromdense as csr_fromdense
from minijax.experimental.sparse.csr import csr_matmat as csr_matmat
from minijax.experimental.sparse.csr import csr_matvec as csr_matvec
from minijax.experimental.sparse.csr import csr_todense as csr_todense
from minijax.experimental.sparse.random import random_bcoo as random_bcoo
from minijax.experimental.sparse.transform import SparseTracer as SparseTracer
from minijax.experimental.sparse.transform import sparsify as sparsify
from minijax.experimental.sparse.util import CuSparseEfficiencyWarning as CuSparseEfficiencyWarning
from minijax.experimental.sparse.util import SparseEfficiencyError as SparseEfficiencyError
from minijax.experimental.sparse.util import SparseEfficiencyWarning as SparseEfficiencyWarning

__all__ = [
    "BCOO", "BCSR", "COO", "CSC", "CSR", "CuSparseEfficiencyWarning", "JAXSparse", "SparseEfficiencyError",
    "SparseEfficiencyWarning", "SparseTracer", "ad", "api", "bcoo", "bcoo_broadcast_in_dim", "bcoo_concatenate",
    "bcoo_conv_general_dilated", "bcoo_dot_general", "bcoo_dot_general_p", "bcoo_dot_general_sampled",
    "bcoo_dot_general_sampled_p", "bcoo_dynamic_slice", "bcoo_extract", "bcoo_extract_p", "bcoo_fromdense",
    "bcoo_fromdense_p", "bcoo_gather", "bcoo_multiply_dense", "bcoo_multiply_sparse", "bcoo_reduce_sum",
    "bcoo_reshape", "bcoo_rev", "bcoo_slice", "bcoo_sort_indices", "bcoo_sort_indices_p", "bcoo_spdot_general_p",
    "bcoo_squeeze", "bcoo_sum_duplicates", "bcoo_sum_duplicates_p", "bcoo_todense", "bcoo_todense_p",
    "bcoo_transpose", "bcoo_transpose_p", "bcoo_update_layout", "bcsr", "bcsr_broadcast_in_dim", "bcsr_concatenate",
    "bcsr_dot_general", "bcsr_dot_general_p", "bcsr_extract", "bcsr_extract_p", "bcsr_fromdense", "bcsr_fromdense_p",
    "bcsr_sum_duplicates", "bcsr_todense", "bcsr_todense_p", "coo", "coo_fromdense", "coo_fromdense_p", "coo_matmat",
    "coo_matmat_p", "coo_matvec", "coo_matvec_p", "coo_todense", "coo_todense_p", "csr", "csr_fromdense",
    "csr_fromdense_p", "csr_matmat", "csr_matmat_p", "csr_matvec", "csr_matvec_p", "csr_todense", "csr_todense_p",
    "empty", "eye", "grad", "jacfwd", "jacobian", "jacrev", "linalg", "random", "random_bcoo", "sparsify",
    "test_util", "todense", "todense_p", "transform", "util", "value_and_grad"
]

bcsr_dot_general_p: DotGeneral
bcsr_extract_p: Extract
bcsr_fromdense_p: FromDense
bcsr_todense_p: ToDense
coo_fromdense_p: CooFromDense
coo_matmat_p: CooMatMat
coo_matvec_p: CooMatVec
coo_todense_p: CooToDense
csr_fromdense_p: CsrFromDense
csr_matmat_p: CsrMatMat
csr_matvec_p: CsrMatVec
csr_todense_p: CsrToDense
