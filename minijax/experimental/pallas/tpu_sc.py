"""jax.experimental.pallas.tpu_sc: kernels for SparseCores, which are not there."""

from minijax.base.faces import Face

_FACE = Face(
    __name__,
    (),
    {},
    missing={
        "jax.experimental.pallas.tpu_sc.{0} is not there: kernels are lowered for TensorCores only.": """
        Indices PackFormat ScalarSubcoreMesh VectorSubcoreMesh addupdate addupdate_compressed addupdate_scatter
        all_reduce_ffs all_reduce_population_count bitcast cummax cumsum fetch_and_add get_sparse_core_info
        load_expanded load_gather pack parallel_loop scan_count sort_key_val store_compressed store_scatter
        subcore_barrier unpack
    """
    },
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
