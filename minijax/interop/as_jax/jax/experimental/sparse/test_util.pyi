# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.sparse.test_util import (BatchedDotGeneralProperties as BatchedDotGeneralProperties,
    MATMUL_TOL as MATMUL_TOL, SparseLayout as SparseLayout, SparseTestCase as SparseTestCase, is_sparse as is_sparse,
    iter_bcsr_layouts as iter_bcsr_layouts, iter_sparse_layouts as iter_sparse_layouts, iter_subsets as iter_subsets,
    rand_bcoo as rand_bcoo, rand_bcsr as rand_bcsr, rand_sparse as rand_sparse)
