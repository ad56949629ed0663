"""jax.experimental.pallas.tpu_sc: kernels for SparseCores, which are traced, but not compiled."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.kernels.operations.sparse: PackFormat addupdate_scatter all_reduce_ffs all_reduce_population_count bitcast
    cummax cumsum load_gather pack parallel_loop scan_count sort_key_val store_scatter subcore_barrier unpack
minijax.kernels.subcores: ScalarSubcoreMesh VectorSubcoreMesh get_sparse_core_info
""",
    missing={
        "jax.experimental.pallas.tpu_sc.{0} is not there: kernels are compiled for TensorCores only.": """
        Indices addupdate addupdate_compressed fetch_and_add load_expanded store_compressed
    """
    },
)
