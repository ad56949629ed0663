# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.pallas import ops as ops
from minijax.experimental.pallas import tpu as tpu
from minijax.experimental.pallas import triton as triton
from typing import Any

__all__ = [
    "BlockDim", "BlockSpec", "Blocked", "BoundedSlice", "Buffered", "CompilerParams", "CostEstimate", "DeviceIdType",
    "Element", "GridSpec", "Indirect", "MemoryRef", "MemorySpace", "Slice", "Squeezed", "align_to", "broadcast_to",
    "cdiv", "core_map", "debug_check", "debug_checks_enabled", "debug_print", "delay", "dot", "ds", "dslice", "empty",
    "empty_like", "empty_ref_like", "estimate_cost", "get_global", "kernel", "loop", "lower_as_mlir", "multiple_of",
    "next_power_of_2", "num_programs", "ops", "pallas_call", "program_id", "reciprocal", "run_scoped", "run_state",
    "semaphore_read", "semaphore_signal", "semaphore_wait", "strides_from_shape", "tpu", "triton", "when",
    "with_scoped"
]

BlockDim: Any
BlockSpec: Any
Blocked: Any
BoundedSlice: Any
Buffered: Any
CompilerParams: Any
CostEstimate: Any
DeviceIdType: Any
Element: Any
GridSpec: Any
Indirect: Any
MemoryRef: Any
MemorySpace: Any
Slice: Any
Squeezed: Any
align_to: Any
broadcast_to: Any
cdiv: Any
core_map: Any
debug_check: Any
debug_checks_enabled: Any
debug_print: Any
delay: Any
dot: Any
ds: Any
dslice: Any
empty: Any
empty_like: Any
empty_ref_like: Any
estimate_cost: Any
get_global: Any
kernel: Any
loop: Any
lower_as_mlir: Any
multiple_of: Any
next_power_of_2: Any
num_programs: Any
pallas_call: Any
program_id: Any
reciprocal: Any
run_scoped: Any
run_state: Any
semaphore_read: Any
semaphore_signal: Any
semaphore_wait: Any
strides_from_shape: Any
when: Any
with_scoped: Any
