"""Semaphores of kernels."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from minijax.base import tree
from minijax.ir.primitive import Primitive
from minijax.ir.refs import AbstractRef
from minijax.ir.types import ShapedArray, is_value, typeof
from minijax.kernels.grid import INDEX
from minijax.kernels.memory import SemaphoreType, TpuMemorySpace, is_semaphore
from minijax.kernels.operations.base import KernelOperation, check_reference, store, text_of, type_of, value_of
from minijax.kernels.operations.trees import printed, printed_view
from minijax.primitives.convert import convert
from minijax.primitives.elementwise import add, sub
from minijax.primitives.moving import as_array_or_constant

COUNTER = np.dtype(np.int16)


class DeviceIdType(enum.Enum):
    """Says how devices are named: MESH, by coordinates in the mesh or a dict of axis names; LOGICAL, by one number.

    Example:
        >>> pl.DeviceIdType.LOGICAL
        <DeviceIdType.LOGICAL: 'logical'>
    """

    MESH = "mesh"
    LOGICAL = "logical"


class SemaphoreRead(KernelOperation):
    """The value of a semaphore: [semaphore]."""

    name = "semaphore_read"
    reads_only = True

    def result_types(self, view):
        return [INDEX]

    def as_printed(self, eqn):
        ref, leaves, tree_text = printed_view(*self.arguments(eqn.invars, eqn.params))
        return printed(eqn, [ref, *leaves], args_tree=f"PyTreeDef([*, {tree_text}])")

    def performed(self, view):
        return [convert(as_array_or_constant(value_of(view)), np.dtype(np.int32))]


class SemaphoreSignal(KernelOperation):
    """Adds to a semaphore: (semaphore, increment, device or None, core or None)."""

    name = "semaphore_signal"

    def performed(self, view, inc, device_id, core_index, *, device_id_type):
        if device_id is not None or core_index is not None:
            raise NotImplementedError(
                "semaphore_signal: signals to other devices and cores cannot be interpreted as one program"
            )
        store(self, view, add(as_array_or_constant(value_of(view)), convert(inc, COUNTER)))
        return []

    def show_eqn(self, eqn, name):
        view, inc, device, core = self.arguments(eqn.invars, eqn.params)
        shown = [text_of(view, name), name(inc, False), *([] if device is None else [text_of(device, name)])]
        return f"{self.name} {' '.join(shown)}"


class SemaphoreWait(KernelOperation):
    """Waits until a semaphore has a value, and then subtracts it: (semaphore, value)."""

    name = "semaphore_wait"

    def performed(self, view, value, *, decrement):
        if decrement:
            store(self, view, sub(as_array_or_constant(value_of(view)), convert(value, COUNTER)))
        return []

    def show_eqn(self, eqn, name):
        view, value = self.arguments(eqn.invars, eqn.params)
        return f"{self.name}[dec] {text_of(view, name)} {name(value, False)}"


class GetBarrierSemaphore(Primitive):
    """The semaphore of all devices that run the kernel."""

    name = "get_barrier_semaphore"

    def infer(self):
        return [AbstractRef(ShapedArray((), SemaphoreType.BARRIER.dtype), TpuMemorySpace.SEMAPHORE)]


semaphore_read_p, semaphore_signal_p, semaphore_wait_p = SemaphoreRead(), SemaphoreSignal(), SemaphoreWait()
get_barrier_semaphore_p = GetBarrierSemaphore()


def _checked(verb: str, view: Any) -> Any:
    """Raises ValueError for what is not one semaphore."""
    check_reference(view, f"Cannot {verb} on a non-semaphore Ref: {view}", f"semaphore_{verb}")
    aval = type_of(view)
    if aval.shape:
        raise ValueError(f"Cannot {verb} on a non-()-shaped semaphore: {aval.shape}")
    if not is_semaphore(aval.dtype):
        raise ValueError(f"Must {verb} a semaphore, not a reference to {aval.str_short()}")
    return aval


def check_device_ids(device_id: Any) -> None:
    """Raises ValueError for a number of a device that is not an int32."""
    for x in tree.tree_leaves(device_id):
        if is_value(x) and typeof(x).dtype != np.int32:
            raise ValueError(f"`device_id`s must be an int32 value, but got {typeof(x).dtype}")


def _count(x: Any) -> Any:
    return convert(as_array_or_constant(x), np.dtype(np.int32))


def semaphore_read(sem_or_view: Any) -> Any:
    """Returns the value of a semaphore, an int32 scalar. Raises ValueError for an array of semaphores.

    See also: `pl.semaphore_signal`, `pl.semaphore_wait`.

    Example:
        >>> def kernel(o, semaphore):
        ...     pl.semaphore_signal(semaphore, 3)
        ...     o[0] = pl.semaphore_read(semaphore)
        ...     pl.semaphore_wait(semaphore, 3)
        >>> out, memory = jax.ShapeDtypeStruct((1,), jnp.int32), pl.BlockSpec(memory_space=pltpu.SMEM)
        >>> scratch = [pltpu.SemaphoreType.REGULAR]
        >>> pl.pallas_call(kernel, out, out_specs=memory, scratch_shapes=scratch, interpret=pltpu.InterpretParams())()
        Array([3], dtype=int32)
    """
    _checked("read", sem_or_view)
    return semaphore_read_p.call(sem_or_view)[0]


def semaphore_signal(
    sem_or_view: Any,
    inc: Any = 1,
    *,
    device_id: Any = None,
    device_id_type: DeviceIdType = DeviceIdType.MESH,
    core_index: Any = None,
) -> None:
    """Adds to a semaphore, on this or another device.

    Args:
      sem_or_view: reference to a semaphore, or a view of one.
      inc: the increment, an integer.
      device_id: device; None: this one.
      device_id_type: how `device_id` names it: by coordinates in the mesh (a tuple, or a dict of axis names), or by a
        number.
      core_index: number of the core; None: this one.

    Raises ValueError for an array of semaphores, or another reference.

    See also: `pl.semaphore_wait`.

    Example:
        >>> def kernel(o, semaphore):
        ...     pl.semaphore_signal(semaphore, 2)
        ...     pl.semaphore_wait(semaphore, 2)
        ...     o[0] = pl.semaphore_read(semaphore)
        >>> out, memory = jax.ShapeDtypeStruct((1,), jnp.int32), pl.BlockSpec(memory_space=pltpu.SMEM)
        >>> simulated = dict(scratch_shapes=[pltpu.SemaphoreType.REGULAR], interpret=pltpu.InterpretParams())
        >>> pl.pallas_call(kernel, out, out_specs=memory, **simulated)()
        Array([0], dtype=int32)
    """
    _checked("signal", sem_or_view)
    check_device_ids(device_id)
    semaphore_signal_p.call(sem_or_view, _count(inc), device_id, core_index, device_id_type=device_id_type)


def semaphore_wait(sem_or_view: Any, value: Any = 1, *, decrement: bool = True) -> None:
    """Waits until a semaphore has at least a value, which it then subtracts.

    Args:
      sem_or_view: reference to a regular semaphore, or a view of one.
      value: the value, an integer.
      decrement: whether to subtract it.

    Raises ValueError for an array of semaphores, or another reference.

    See also: `pl.semaphore_signal`.

    Example:
        >>> def kernel(o, semaphore):
        ...     pl.semaphore_signal(semaphore, 5)
        ...     pl.semaphore_wait(semaphore, 2)
        ...     o[0] = pl.semaphore_read(semaphore)
        ...     pl.semaphore_wait(semaphore, 3)
        >>> out, memory = jax.ShapeDtypeStruct((1,), jnp.int32), pl.BlockSpec(memory_space=pltpu.SMEM)
        >>> simulated = dict(scratch_shapes=[pltpu.SemaphoreType.REGULAR], interpret=pltpu.InterpretParams())
        >>> pl.pallas_call(kernel, out, out_specs=memory, **simulated)()
        Array([3], dtype=int32)
    """
    _checked("wait", sem_or_view)
    semaphore_wait_p.call(sem_or_view, _count(value), decrement=decrement)


def get_barrier_semaphore() -> Any:
    """Returns a reference to the semaphore that all devices which run the kernel share.

    The kernel must have a `collective_id` among its compiler's parameters.

    Example:
        >>> def kernel(o):
        ...     pl.semaphore_signal(pltpu.get_barrier_semaphore())
        ...     pl.semaphore_wait(pltpu.get_barrier_semaphore())
        ...     o[0] = 1
        >>> out, memory = jax.ShapeDtypeStruct((1,), jnp.int32), pl.BlockSpec(memory_space=pltpu.SMEM)
        >>> options = dict(compiler_params=pltpu.CompilerParams(collective_id=0), interpret=pltpu.InterpretParams())
        >>> print(pl.pallas_call(kernel, out, out_specs=memory, **options)())
        [1]
    """
    return get_barrier_semaphore_p.bind()
