# The names of this module's table, written by tests/write_stubs.py.

from typing import Any

__all__ = [
    "Indices", "PackFormat", "ScalarSubcoreMesh", "VectorSubcoreMesh", "addupdate", "addupdate_compressed",
    "addupdate_scatter", "all_reduce_ffs", "all_reduce_population_count", "bitcast", "cummax", "cumsum",
    "fetch_and_add", "get_sparse_core_info", "load_expanded", "load_gather", "pack", "parallel_loop", "scan_count",
    "sort_key_val", "store_compressed", "store_scatter", "subcore_barrier", "unpack"
]

Indices: Any
PackFormat: Any
ScalarSubcoreMesh: Any
VectorSubcoreMesh: Any
addupdate: Any
addupdate_compressed: Any
addupdate_scatter: Any
all_reduce_ffs: Any
all_reduce_population_count: Any
bitcast: Any
cummax: Any
cumsum: Any
fetch_and_add: Any
get_sparse_core_info: Any
load_expanded: Any
load_gather: Any
pack: Any
parallel_loop: Any
scan_count: Any
sort_key_val: Any
store_compressed: Any
store_scatter: Any
subcore_barrier: Any
unpack: Any
