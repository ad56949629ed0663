"""jax.experimental.pallas: kernels, written as Python functions of references."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.kernels.blocks: BlockDim BlockSpec Blocked BoundedSlice Buffered CostEstimate Element GridSpec Indirect
    RevisitMode Squeezed no_block_spec squeezed
minijax.kernels.call: pallas_call
minijax.kernels.cost: estimate_cost
minijax.kernels.grid: num_programs program_id
minijax.kernels.lowered: lower_as_mlir
minijax.kernels.mpmd: core_map kernel
minijax.kernels.memory: ANY=MemorySpace.ANY HOST=MemorySpace.HOST MemoryRef MemorySpace semaphore
minijax.kernels.operations.helpers: align_to cdiv debug_check debug_print ds=dslice dslice empty empty_like
    empty_ref_like enable_debug_checks enable_poison_buffers loop next_power_of_2 run_state strides_from_shape when
minijax.kernels.operations.scoped: get_global run_scoped with_scoped
minijax.kernels.operations.selection: select_ref
minijax.kernels.operations.semaphores: DeviceIdType semaphore_read semaphore_signal semaphore_wait
minijax.kernels.operations.tpu: delay
minijax.kernels.operations.values: broadcast_to multiple_of reciprocal
minijax.kernels.parameters: CompilerParams
minijax.kernels.primitive: pallas_call_p
minijax.kernels.symbolic: pallas_export_experimental
minijax.primitives.gather_dims: Slice
""",
    ("fuser", "mosaic_gpu", "ops", "tpu", "tpu_sc", "triton"),
    deprecated={
        "jax.experimental.pallas.{0} is deprecated. Use jax.experimental.pallas.triton.{0} instead.": """
minijax.kernels.operations.asm: dot
""",
        "jax.experimental.pallas.{0} is deprecated, use pl.enable_debug_checks.value instead.": """
minijax.kernels.operations.helpers: debug_checks_enabled
""",
    },
)
