# The names of this module's table, written by tests/write_stubs.py.

from minijax.base.config import Option
from minijax.experimental.pallas import fuser as fuser
from minijax.experimental.pallas import mosaic_gpu as mosaic_gpu
from minijax.experimental.pallas import ops as ops
from minijax.experimental.pallas import tpu as tpu
from minijax.experimental.pallas import tpu_sc as tpu_sc
from minijax.experimental.pallas import triton as triton
from minijax.kernels.blocks import BlockDim as BlockDim
from minijax.kernels.blocks import BlockSpec as BlockSpec
from minijax.kernels.blocks import Blocked as Blocked
from minijax.kernels.blocks import BoundedSlice as BoundedSlice
from minijax.kernels.blocks import Buffered as Buffered
from minijax.kernels.blocks import CostEstimate as CostEstimate
from minijax.kernels.blocks import Element as Element
from minijax.kernels.blocks import GridSpec as GridSpec
from minijax.kernels.blocks import Indirect as Indirect
from minijax.kernels.blocks import RevisitMode as RevisitMode
from minijax.kernels.blocks import Squeezed as Squeezed
from minijax.kernels.blocks import no_block_spec as no_block_spec
from minijax.kernels.blocks import squeezed as squeezed
from minijax.kernels.call import pallas_call as pallas_call
from minijax.kernels.cost import estimate_cost as estimate_cost
from minijax.kernels.grid import num_programs as num_programs
from minijax.kernels.grid import program_id as program_id
from minijax.kernels.lowered import lower_as_mlir as lower_as_mlir
from minijax.kernels.memory import MemoryRef as MemoryRef
from minijax.kernels.memory import MemorySpace as MemorySpace
from minijax.kernels.memory import MemorySpace as _MemorySpace
from minijax.kernels.memory import semaphore as semaphore
from minijax.kernels.mpmd import core_map as core_map
from minijax.kernels.mpmd import kernel as kernel
from minijax.kernels.operations.helpers import align_to as align_to
from minijax.kernels.operations.helpers import cdiv as cdiv
from minijax.kernels.operations.helpers import debug_check as debug_check
from minijax.kernels.operations.helpers import debug_print as debug_print
from minijax.kernels.operations.helpers import dslice as ds
from minijax.kernels.operations.helpers import dslice as dslice
from minijax.kernels.operations.helpers import empty as empty
from minijax.kernels.operations.helpers import empty_like as empty_like
from minijax.kernels.operations.helpers import empty_ref_like as empty_ref_like
from minijax.kernels.operations.helpers import loop as loop
from minijax.kernels.operations.helpers import next_power_of_2 as next_power_of_2
from minijax.kernels.operations.helpers import run_state as run_state
from minijax.kernels.operations.helpers import strides_from_shape as strides_from_shape
from minijax.kernels.operations.helpers import when as when
from minijax.kernels.operations.scoped import get_global as get_global
from minijax.kernels.operations.scoped import run_scoped as run_scoped
from minijax.kernels.operations.scoped import with_scoped as with_scoped
from minijax.kernels.operations.selection import select_ref as select_ref
from minijax.kernels.operations.semaphores import DeviceIdType as DeviceIdType
from minijax.kernels.operations.semaphores import semaphore_read as semaphore_read
from minijax.kernels.operations.semaphores import semaphore_signal as semaphore_signal
from minijax.kernels.operations.semaphores import semaphore_wait as semaphore_wait
from minijax.kernels.operations.tpu import delay as delay
from minijax.kernels.operations.values import broadcast_to as broadcast_to
from minijax.kernels.operations.values import multiple_of as multiple_of
from minijax.kernels.operations.values import reciprocal as reciprocal
from minijax.kernels.parameters import CompilerParams as CompilerParams
from minijax.kernels.primitive import pallas_call_p as pallas_call_p
from minijax.kernels.symbolic import pallas_export_experimental as pallas_export_experimental
from minijax.primitives.gather_dims import Slice as Slice
from typing import Any
from typing_extensions import deprecated

__all__ = [
    "ANY", "BlockDim", "BlockSpec", "Blocked", "BoundedSlice", "Buffered", "CompilerParams", "CostEstimate",
    "DeviceIdType", "Element", "GridSpec", "HOST", "Indirect", "MemoryRef", "MemorySpace", "RevisitMode", "Slice",
    "Squeezed", "align_to", "broadcast_to", "cdiv", "core_map", "debug_check", "debug_print", "delay", "ds", "dslice",
    "empty", "empty_like", "empty_ref_like", "enable_debug_checks", "enable_poison_buffers", "estimate_cost", "fuser",
    "get_global", "kernel", "loop", "lower_as_mlir", "mosaic_gpu", "multiple_of", "next_power_of_2", "no_block_spec",
    "num_programs", "ops", "pallas_call", "pallas_call_p", "pallas_export_experimental", "program_id", "reciprocal",
    "run_scoped", "run_state", "select_ref", "semaphore", "semaphore_read", "semaphore_signal", "semaphore_wait",
    "squeezed", "strides_from_shape", "tpu", "tpu_sc", "triton", "when", "with_scoped"
]

ANY: _MemorySpace
HOST: _MemorySpace
enable_debug_checks: Option
enable_poison_buffers: Option
@deprecated("jax.experimental.pallas.dot is deprecated. Use jax.experimental.pallas.triton.dot instead.")
def dot(
    a: Any,
    b: Any,
    trans_a: bool = False,
    trans_b: bool = False,
    allow_tf32: bool | None = None,
    precision: Any = None,
) -> Any: ...
@deprecated("jax.experimental.pallas.debug_checks_enabled is deprecated, use pl.enable_debug_checks.value instead.")
def debug_checks_enabled() -> bool: ...
