# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.pallas import ops as ops
from minijax.experimental.pallas import tpu as tpu
from minijax.experimental.pallas import triton as triton
from typing import Any

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
