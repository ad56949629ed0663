"""jax.experimental."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.composed.callbacks.callback: io_callback
minijax.interop.primal_tangent: primal_tangent_dtype
minijax.ir.hitypes: cur_qdd
minijax.run.arrays.array: EArray
""",
    ("compilation_cache",),
    later="""
    array_serialization buffer_callback checkify colocated_python compute_on control_deps custom_partitioning fused
    hijax jet key_reuse layout mesh_utils mosaic multihost_utils ode pallas pjit profiler random rnn roofline
    scheduling_groups serialize_executable shard_alike shard_map source_mapper sparse topologies transfer xla_metadata
    """.split(),
    removed={
        "module 'jax.experimental' has no attribute '{0}'; use jax.pure_callback, jax.experimental.io_callback or "
        "jax.debug.callback.": "host_callback",
        "module 'jax.experimental' has no attribute '{0}'; use jax.shard_map.": "maps",
        "module 'jax.experimental' has no attribute '{0}'; use jax.enable_x64.": "disable_x64 enable_x64",
        "module 'jax.experimental' has no attribute '{0}'; use jax.new_ref.": "mutable_array",
    },
)
