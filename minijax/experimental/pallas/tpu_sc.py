"""jax.experimental.pallas.tpu_sc: kernels for SparseCores."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.composed.ref_views: Indices
minijax.kernels.operations.sparse: PackFormat addupdate addupdate_compressed addupdate_scatter all_reduce_ffs
    all_reduce_population_count bitcast cummax cumsum fetch_and_add load_expanded load_gather pack parallel_loop
    scan_count sort_key_val store_compressed store_scatter subcore_barrier unpack
minijax.kernels.subcores: ScalarSubcoreMesh VectorSubcoreMesh get_sparse_core_info
""",
)
