# The names of this module's table, written by tests/write_stubs.py.

from typing import Any

__all__ = [
    "CompilerParams", "approx_tanh", "atomic_add", "atomic_and", "atomic_cas", "atomic_max", "atomic_min",
    "atomic_or", "atomic_xchg", "atomic_xor", "debug_barrier", "dot", "elementwise_inline_asm", "load",
    "max_contiguous", "store"
]

CompilerParams: Any
approx_tanh: Any
atomic_add: Any
atomic_and: Any
atomic_cas: Any
atomic_max: Any
atomic_min: Any
atomic_or: Any
atomic_xchg: Any
atomic_xor: Any
debug_barrier: Any
dot: Any
elementwise_inline_asm: Any
load: Any
max_contiguous: Any
store: Any
