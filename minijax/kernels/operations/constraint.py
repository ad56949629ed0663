"""`with_memory_space_constraint`: the memory in which an operand of a kernel for TPUs must be."""

from __future__ import annotations

from typing import Any

from minijax.ir.primitive import FirstOrder, Linear1
from minijax.kernels.memory import MemorySpace, TpuMemorySpace

_ALLOWED = (TpuMemorySpace.HBM, TpuMemorySpace.VMEM, TpuMemorySpace.SMEM)


class WithMemorySpaceConstraint(FirstOrder, Linear1):
    """The same array, whose type has a memory space."""

    name = "with_memory_space_constraint"
    moves_data, constrain_results = True, False

    def infer(self, x, *, memory_space):
        return [x.update(memory_space=memory_space)]

    def at_once(self, x, *, memory_space):
        raise ValueError("Cannot eagerly run with_memory_space_constraint. Call it in a function under jax.jit.")

    def lower(self, e, ins, outs, x, *, memory_space):
        return [x]

    def transposed(self, ct, aval, *, memory_space):
        return ct

    def batch(self, axis, operands, dims, **params):
        return self.bind_all(operands, params), list(dims)


constraint_p = WithMemorySpaceConstraint()


def with_memory_space_constraint(x: Any, memory_space: Any) -> Any:
    """Returns the array, which must be in a memory space where a kernel for TPUs takes it.

    Args:
      x: array.
      memory_space: `pltpu.HBM`, `pltpu.VMEM` or `pltpu.SMEM`; `pl.ANY` leaves it to the compiler.

    Raises:
      NotImplementedError: for another memory space.
      ValueError: outside of a traced function.

    Example:
        >>> f = jax.jit(lambda x: pltpu.with_memory_space_constraint(2 * x, pltpu.VMEM))
        >>> jax.make_jaxpr(f)(jnp.ones(2)).eqns[0].params["jaxpr"].eqns[1].primitive
        with_memory_space_constraint
    """
    if memory_space is MemorySpace.ANY:
        return x
    if memory_space not in _ALLOWED:
        raise NotImplementedError("with_memory_space_constraint only supports HBM, VMEM and SMEM.")
    return constraint_p.bind(x, memory_space=memory_space)
