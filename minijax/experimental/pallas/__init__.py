"""jax.experimental.pallas: kernels. It can be imported; its names raise NotImplementedError."""

from minijax.base.faces import Face

_FACE = Face(
    __name__,
    ("ops", "tpu", "triton"),
    {},
    missing={
        "jax.experimental.pallas.{0} is not there: minijax has no kernels of its own.": """
        BlockDim BlockSpec Blocked BoundedSlice Buffered CompilerParams CostEstimate DeviceIdType Element
        GridSpec Indirect MemoryRef MemorySpace Slice Squeezed align_to broadcast_to cdiv core_map
        debug_check debug_checks_enabled debug_print delay dot ds dslice empty empty_like empty_ref_like
        estimate_cost get_global kernel loop lower_as_mlir multiple_of next_power_of_2 num_programs
        pallas_call program_id reciprocal run_scoped run_state semaphore_read semaphore_signal
        semaphore_wait strides_from_shape when with_scoped
    """
    },
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
