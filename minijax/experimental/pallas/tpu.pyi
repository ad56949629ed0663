# The names of this module's table, written by tests/write_stubs.py.

from typing import Any

__all__ = [
    "BufferedRef", "CompilerParams", "CoreType", "DeviceIdType", "GridDimensionSemantics", "InterpretParams",
    "MemorySpace", "PrefetchScalarGridSpec", "SemaphoreType", "SideEffectType", "Tiling", "TpuInfo", "async_copy",
    "async_remote_copy", "bitcast", "core_barrier", "create_tensorcore_mesh", "einshape", "emit_pipeline",
    "emit_pipeline_with_allocations", "force_tpu_interpret_mode", "get_barrier_semaphore", "get_tpu_info",
    "is_tpu_device", "load", "make_async_copy", "make_async_remote_copy", "prng_random_bits", "prng_seed", "roll",
    "run_on_first_core", "store", "sync_copy"
]

BufferedRef: Any
CompilerParams: Any
CoreType: Any
DeviceIdType: Any
GridDimensionSemantics: Any
InterpretParams: Any
MemorySpace: Any
PrefetchScalarGridSpec: Any
SemaphoreType: Any
SideEffectType: Any
Tiling: Any
TpuInfo: Any
async_copy: Any
async_remote_copy: Any
bitcast: Any
core_barrier: Any
create_tensorcore_mesh: Any
einshape: Any
emit_pipeline: Any
emit_pipeline_with_allocations: Any
force_tpu_interpret_mode: Any
get_barrier_semaphore: Any
get_tpu_info: Any
is_tpu_device: Any
load: Any
make_async_copy: Any
make_async_remote_copy: Any
prng_random_bits: Any
prng_seed: Any
roll: Any
run_on_first_core: Any
store: Any
sync_copy: Any
