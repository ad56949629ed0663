# The names of this module's table, written by tests/write_stubs.py.

from minijax.run.arrays.array import Array

__all__ = [
    "softmax"
]

def softmax(
    x: Array,
    *,
    axis: int = -1,
    num_warps: int = 4,
    interpret: bool = False,
    debug: bool = False,
) -> Array: ...
