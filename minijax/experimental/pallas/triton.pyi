# The names of this module's table, written by tests/write_stubs.py.

from minijax.kernels.operations.asm import approx_tanh as approx_tanh
from minijax.kernels.operations.asm import dot as dot
from minijax.kernels.operations.asm import elementwise_inline_asm as elementwise_inline_asm
from minijax.kernels.operations.atomics import atomic_add as atomic_add
from minijax.kernels.operations.atomics import atomic_and as atomic_and
from minijax.kernels.operations.atomics import atomic_cas as atomic_cas
from minijax.kernels.operations.atomics import atomic_max as atomic_max
from minijax.kernels.operations.atomics import atomic_min as atomic_min
from minijax.kernels.operations.atomics import atomic_or as atomic_or
from minijax.kernels.operations.atomics import atomic_xchg as atomic_xchg
from minijax.kernels.operations.atomics import atomic_xor as atomic_xor
from minijax.kernels.operations.masked import load as load
from minijax.kernels.operations.masked import store as store
from minijax.kernels.operations.tpu import debug_barrier as debug_barrier
from minijax.kernels.operations.values import max_contiguous as max_contiguous
from minijax.kernels.parameters import TritonParams as CompilerParams

__all__ = [
    "CompilerParams", "approx_tanh", "atomic_add", "atomic_and", "atomic_cas", "atomic_max", "atomic_min",
    "atomic_or", "atomic_xchg", "atomic_xor", "debug_barrier", "dot", "elementwise_inline_asm", "load",
    "max_contiguous", "store"
]
