# The names of this module's table, written by tests/write_stubs.py.

from minijax.composed.callbacks.ffi import ffi_call as ffi_call
from minijax.interop.lowering import build_ffi_lowering_function as build_ffi_lowering_function
from minijax.interop.lowering import ffi_lowering as ffi_lowering
from minijax.run.programs.ffi import include_dir as include_dir
from minijax.run.programs.ffi import pycapsule as pycapsule
from minijax.run.programs.ffi import register_ffi_target as register_ffi_target
from minijax.run.programs.ffi import register_ffi_target_as_batch_partitionable as register_ffi_target_as_batch_partitionable
from minijax.run.programs.ffi import register_ffi_type as register_ffi_type
from minijax.run.programs.ffi import register_ffi_type_id as register_ffi_type_id

__all__ = [
    "build_ffi_lowering_function", "ffi_call", "ffi_lowering", "include_dir", "pycapsule", "register_ffi_target",
    "register_ffi_target_as_batch_partitionable", "register_ffi_type", "register_ffi_type_id"
]
