# The names of this module's table, written by tests/write_stubs.py.

from typing import Any

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
