"""jax.experimental.pallas.tpu: kernels for TPUs."""

from minijax.base.faces import Face

_FACE = Face(
    __name__,
    (),
    {},
    missing={
        "jax.experimental.pallas.tpu.{0} is not there: minijax has no kernels of its own.": """
        BufferedRef CompilerParams CoreType DeviceIdType GridDimensionSemantics InterpretParams MemorySpace
        PrefetchScalarGridSpec SemaphoreType SideEffectType Tiling TpuInfo async_copy async_remote_copy
        bitcast core_barrier create_tensorcore_mesh einshape emit_pipeline emit_pipeline_with_allocations
        force_tpu_interpret_mode get_barrier_semaphore get_tpu_info is_tpu_device load make_async_copy
        make_async_remote_copy prng_random_bits prng_seed roll run_on_first_core store sync_copy
    """
    },
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
