# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.sparse.util import (CuSparseEfficiencyWarning as CuSparseEfficiencyWarning, Shape as Shape,
    SparseEfficiencyError as SparseEfficiencyError, SparseEfficiencyWarning as SparseEfficiencyWarning, SparseInfo as
    SparseInfo, broadcasting_vmap as broadcasting_vmap, nfold_vmap as nfold_vmap)
