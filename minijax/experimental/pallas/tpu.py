"""jax.experimental.pallas.tpu: kernels for TPUs."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.kernels.blocks: PrefetchScalarGridSpec
minijax.kernels.chips: ChipVersion TpuInfo get_tpu_info get_tpu_info_for_chip is_tpu_device
minijax.kernels.cores: core_barrier create_tensorcore_mesh run_on_first_core
minijax.kernels.memory: CMEM=TpuMemorySpace.CMEM HBM=TpuMemorySpace.HBM MemorySpace=TpuMemorySpace
    SEMAPHORE=TpuMemorySpace.SEMAPHORE SMEM=TpuMemorySpace.SMEM SemaphoreType VMEM=TpuMemorySpace.VMEM
    VMEM_SHARED=TpuMemorySpace.VMEM_SHARED dma_semaphore
minijax.kernels.mosaic.windows: LoweringException
minijax.kernels.operations.constraint: with_memory_space_constraint
minijax.kernels.operations.copies: async_copy async_remote_copy make_async_copy make_async_remote_copy sync_copy
minijax.kernels.operations.einshape: einshape
minijax.kernels.operations.keys: sample_block stateful_bernoulli stateful_bits stateful_normal stateful_uniform
    to_pallas_key
minijax.kernels.operations.masked: load=load_tpu store=store_tpu
minijax.kernels.operations.semaphores: get_barrier_semaphore
minijax.kernels.operations.tpu: matmul_acc_lhs matmul_pop matmul_push_rhs pack_elementwise prng_random_bits prng_seed
    stochastic_round touch trace_value unpack_elementwise
minijax.kernels.operations.values: bitcast roll
minijax.kernels.pipeline.buffers: BufferType BufferedRef BufferedRefBase
minijax.kernels.pipeline.emit: emit_pipeline emit_pipeline_with_allocations
minijax.kernels.parameters: ARBITRARY CORE_PARALLEL CompilerParams=TpuParams CoreType GridDimensionSemantics PARALLEL
    SUBCORE_PARALLEL SideEffectType Tiling
minijax.kernels.simulator.options: InterpretParams force_tpu_interpret_mode reset_tpu_interpret_mode_state
    set_tpu_interpret_mode
""",
    deprecated={
        "jax.experimental.pallas.tpu.{0} is deprecated. Use jax.experimental.pallas.{0} instead.": """
minijax.kernels.memory: HOST=MemorySpace.HOST semaphore
minijax.kernels.operations.semaphores: DeviceIdType semaphore_read semaphore_signal semaphore_wait
"""
    },
)
