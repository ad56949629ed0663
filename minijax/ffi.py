"""jax.ffi: calls of functions that are registered with XLA."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.composed.callbacks.ffi: ffi_call
minijax.interop.lowering: build_ffi_lowering_function ffi_lowering
minijax.run.programs.ffi: include_dir pycapsule register_ffi_target register_ffi_target_as_batch_partitionable
    register_ffi_type register_ffi_type_id
""",
)
