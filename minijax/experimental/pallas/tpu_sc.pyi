# The names of this module's table, written by tests/write_stubs.py.

from minijax.composed.ref_views import Indices as Indices
from minijax.kernels.operations.sparse import PackFormat as PackFormat
from minijax.kernels.operations.sparse import addupdate as addupdate
from minijax.kernels.operations.sparse import addupdate_compressed as addupdate_compressed
from minijax.kernels.operations.sparse import addupdate_scatter as addupdate_scatter
from minijax.kernels.operations.sparse import all_reduce_ffs as all_reduce_ffs
from minijax.kernels.operations.sparse import all_reduce_population_count as all_reduce_population_count
from minijax.kernels.operations.sparse import bitcast as bitcast
from minijax.kernels.operations.sparse import cummax as cummax
from minijax.kernels.operations.sparse import cumsum as cumsum
from minijax.kernels.operations.sparse import fetch_and_add as fetch_and_add
from minijax.kernels.operations.sparse import load_expanded as load_expanded
from minijax.kernels.operations.sparse import load_gather as load_gather
from minijax.kernels.operations.sparse import pack as pack
from minijax.kernels.operations.sparse import parallel_loop as parallel_loop
from minijax.kernels.operations.sparse import scan_count as scan_count
from minijax.kernels.operations.sparse import sort_key_val as sort_key_val
from minijax.kernels.operations.sparse import store_compressed as store_compressed
from minijax.kernels.operations.sparse import store_scatter as store_scatter
from minijax.kernels.operations.sparse import subcore_barrier as subcore_barrier
from minijax.kernels.operations.sparse import unpack as unpack
from minijax.kernels.subcores import ScalarSubcoreMesh as ScalarSubcoreMesh
from minijax.kernels.subcores import VectorSubcoreMesh as VectorSubcoreMesh
from minijax.kernels.subcores import get_sparse_core_info as get_sparse_core_info

__all__ = [
    "Indices", "PackFormat", "ScalarSubcoreMesh", "VectorSubcoreMesh", "addupdate", "addupdate_compressed",
    "addupdate_scatter", "all_reduce_ffs", "all_reduce_population_count", "bitcast", "cummax", "cumsum",
    "fetch_and_add", "get_sparse_core_info", "load_expanded", "load_gather", "pack", "parallel_loop", "scan_count",
    "sort_key_val", "store_compressed", "store_scatter", "subcore_barrier", "unpack"
]
