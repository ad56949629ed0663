# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.sparse.transform import (Array as Array, ArrayOrSparse as ArrayOrSparse, SparseTrace as
    SparseTrace, SparseTracer as SparseTracer, SparsifyEnv as SparsifyEnv, SparsifyValue as SparsifyValue,
    arrays_to_spvalues as arrays_to_spvalues, eval_sparse as eval_sparse, sparse_rules_bcoo as sparse_rules_bcoo,
    sparse_rules_bcsr as sparse_rules_bcsr, sparsify as sparsify, sparsify_fun as sparsify_fun, sparsify_raw as
    sparsify_raw, sparsify_subtrace as sparsify_subtrace, spvalues_to_arrays as spvalues_to_arrays, spvalues_to_avals
    as spvalues_to_avals)
