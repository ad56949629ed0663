# The names of this module's table, written by tests/write_stubs.py.

from collections.abc import Sequence
from minijax.kernels.memory import TpuMemorySpace
from minijax.kernels.ops.tpu_all_gather import ag_kernel as ag_kernel
from minijax.kernels.ops.tpu_all_gather import get_neighbor as get_neighbor
from minijax.partition.meshes import Mesh
from minijax.run.arrays.array import Array

__all__ = [
    "ag_kernel", "all_gather", "get_neighbor"
]

def all_gather(
    x: Array,
    *,
    mesh: Mesh,
    axis_name: str | Sequence[str],
    memory_space: TpuMemorySpace = ...,
) -> Array: ...
