# The names of this module's table, written by tests/write_stubs.py.

from minijax.kernels.blocks import PrefetchScalarGridSpec as PrefetchScalarGridSpec
from minijax.kernels.chips import ChipVersion as ChipVersion
from minijax.kernels.chips import TpuInfo as TpuInfo
from minijax.kernels.chips import get_tpu_info as get_tpu_info
from minijax.kernels.chips import get_tpu_info_for_chip as get_tpu_info_for_chip
from minijax.kernels.chips import is_tpu_device as is_tpu_device
from minijax.kernels.cores import core_barrier as core_barrier
from minijax.kernels.cores import create_tensorcore_mesh as create_tensorcore_mesh
from minijax.kernels.cores import run_on_first_core as run_on_first_core
from minijax.kernels.memory import MemorySpace as _MemorySpace
from minijax.kernels.memory import SemaphoreType as SemaphoreType
from minijax.kernels.memory import TpuMemorySpace as MemorySpace
from minijax.kernels.memory import dma_semaphore as dma_semaphore
from minijax.kernels.memory import semaphore as semaphore
from minijax.kernels.mosaic.windows import LoweringException as LoweringException
from minijax.kernels.operations.constraint import with_memory_space_constraint as with_memory_space_constraint
from minijax.kernels.operations.copies import async_copy as async_copy
from minijax.kernels.operations.copies import async_remote_copy as async_remote_copy
from minijax.kernels.operations.copies import make_async_copy as make_async_copy
from minijax.kernels.operations.copies import make_async_remote_copy as make_async_remote_copy
from minijax.kernels.operations.copies import sync_copy as sync_copy
from minijax.kernels.operations.einshape import einshape as einshape
from minijax.kernels.operations.keys import sample_block as sample_block
from minijax.kernels.operations.keys import to_pallas_key as to_pallas_key
from minijax.kernels.operations.masked import load_tpu as load
from minijax.kernels.operations.masked import store_tpu as store
from minijax.kernels.operations.semaphores import DeviceIdType as DeviceIdType
from minijax.kernels.operations.semaphores import DeviceIdType as _DeviceIdType
from minijax.kernels.operations.semaphores import get_barrier_semaphore as get_barrier_semaphore
from minijax.kernels.operations.tpu import matmul_acc_lhs as matmul_acc_lhs
from minijax.kernels.operations.tpu import matmul_pop as matmul_pop
from minijax.kernels.operations.tpu import matmul_push_rhs as matmul_push_rhs
from minijax.kernels.operations.tpu import pack_elementwise as pack_elementwise
from minijax.kernels.operations.tpu import prng_random_bits as prng_random_bits
from minijax.kernels.operations.tpu import prng_seed as prng_seed
from minijax.kernels.operations.tpu import stochastic_round as stochastic_round
from minijax.kernels.operations.tpu import touch as touch
from minijax.kernels.operations.tpu import trace_value as trace_value
from minijax.kernels.operations.tpu import unpack_elementwise as unpack_elementwise
from minijax.kernels.operations.values import bitcast as bitcast
from minijax.kernels.operations.values import roll as roll
from minijax.kernels.parameters import ARBITRARY as ARBITRARY
from minijax.kernels.parameters import CORE_PARALLEL as CORE_PARALLEL
from minijax.kernels.parameters import CoreType as CoreType
from minijax.kernels.parameters import GridDimensionSemantics as GridDimensionSemantics
from minijax.kernels.parameters import PARALLEL as PARALLEL
from minijax.kernels.parameters import SUBCORE_PARALLEL as SUBCORE_PARALLEL
from minijax.kernels.parameters import SideEffectType as SideEffectType
from minijax.kernels.parameters import Tiling as Tiling
from minijax.kernels.parameters import TpuParams as CompilerParams
from minijax.kernels.pipeline.buffers import BufferType as BufferType
from minijax.kernels.pipeline.buffers import BufferedRef as BufferedRef
from minijax.kernels.pipeline.buffers import BufferedRefBase as BufferedRefBase
from minijax.kernels.pipeline.emit import emit_pipeline as emit_pipeline
from minijax.kernels.pipeline.emit import emit_pipeline_with_allocations as emit_pipeline_with_allocations
from minijax.kernels.simulator.options import InterpretParams as InterpretParams
from minijax.kernels.simulator.options import force_tpu_interpret_mode as force_tpu_interpret_mode
from minijax.kernels.simulator.options import reset_tpu_interpret_mode_state as reset_tpu_interpret_mode_state
from minijax.kernels.simulator.options import set_tpu_interpret_mode as set_tpu_interpret_mode
from typing import Any
from typing_extensions import deprecated

__all__ = [
    "ARBITRARY", "BufferType", "BufferedRef", "BufferedRefBase", "CMEM", "CORE_PARALLEL", "ChipVersion",
    "CompilerParams", "CoreType", "GridDimensionSemantics", "HBM", "InterpretParams", "LoweringException",
    "MemorySpace", "PARALLEL", "PrefetchScalarGridSpec", "SEMAPHORE", "SMEM", "SUBCORE_PARALLEL", "SemaphoreType",
    "SideEffectType", "Tiling", "TpuInfo", "VMEM", "VMEM_SHARED", "async_copy", "async_remote_copy", "bitcast",
    "core_barrier", "create_tensorcore_mesh", "dma_semaphore", "einshape", "emit_pipeline",
    "emit_pipeline_with_allocations", "force_tpu_interpret_mode", "get_barrier_semaphore", "get_tpu_info",
    "get_tpu_info_for_chip", "is_tpu_device", "load", "make_async_copy", "make_async_remote_copy", "matmul_acc_lhs",
    "matmul_pop", "matmul_push_rhs", "pack_elementwise", "prng_random_bits", "prng_seed",
    "reset_tpu_interpret_mode_state", "roll", "run_on_first_core", "sample_block", "set_tpu_interpret_mode",
    "stateful_bernoulli", "stateful_bits", "stateful_normal", "stateful_uniform", "stochastic_round", "store",
    "sync_copy", "to_pallas_key", "touch", "trace_value", "unpack_elementwise", "with_memory_space_constraint"
]

CMEM: _MemorySpace
HBM: _MemorySpace
SEMAPHORE: _MemorySpace
SMEM: _MemorySpace
VMEM: _MemorySpace
VMEM_SHARED: _MemorySpace
def stateful_bernoulli(*args: Any, **kwargs: Any) -> Any: ...
def stateful_bits(*args: Any, **kwargs: Any) -> Any: ...
def stateful_normal(*args: Any, **kwargs: Any) -> Any: ...
def stateful_uniform(*args: Any, **kwargs: Any) -> Any: ...
HOST: _MemorySpace
@deprecated("jax.experimental.pallas.tpu.semaphore_read is deprecated. Use jax.experimental.pallas.semaphore_read instead.")
def semaphore_read(sem_or_view: Any) -> Any: ...
@deprecated("jax.experimental.pallas.tpu.semaphore_signal is deprecated. Use jax.experimental.pallas.semaphore_signal instead.")
def semaphore_signal(
    sem_or_view: Any,
    inc: Any = 1,
    *,
    device_id: Any = None,
    device_id_type: _DeviceIdType = ...,
    core_index: Any = None,
) -> None: ...
@deprecated("jax.experimental.pallas.tpu.semaphore_wait is deprecated. Use jax.experimental.pallas.semaphore_wait instead.")
def semaphore_wait(sem_or_view: Any, value: Any = 1, *, decrement: bool = True) -> None: ...
