"""jax.experimental.pallas: kernels, written as Python functions of references."""

from minijax.base.faces import Face

_FACE = Face(
    __name__,
    ("ops", "tpu", "triton"),
    """
minijax.kernels.blocks: BlockDim BlockSpec Blocked BoundedSlice Buffered CostEstimate Element GridSpec Indirect RevisitMode
    Squeezed no_block_spec squeezed
minijax.kernels.call: pallas_call
minijax.kernels.grid: num_programs program_id
minijax.kernels.memory: MemoryRef MemorySpace semaphore
minijax.kernels.primitive: pallas_call_p
minijax.primitives.gather_dims: Slice
""",
    missing={
        "jax.experimental.pallas.{0} is not there: minijax has no kernels of its own.": """
        CompilerParams DeviceIdType
        align_to broadcast_to cdiv core_map
        debug_check debug_checks_enabled debug_print delay dot ds dslice empty empty_like empty_ref_like
        estimate_cost get_global kernel loop lower_as_mlir multiple_of next_power_of_2
        reciprocal run_scoped run_state semaphore_read semaphore_signal
        semaphore_wait strides_from_shape when with_scoped
    """
    },
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
