"""Atomic updates of references."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from minijax.composed.refs import RefIndexer
from minijax.ir.types import typeof
from minijax.kernels.operations.base import KernelOperation, store, type_of, value_of
from minijax.kernels.operations.masked import fitting
from minijax.kernels.operations.trees import mark, printed, printed_view
from minijax.numpy.shaping import broadcast_to
from minijax.primitives import elementwise
from minijax.primitives.convert import convert
from minijax.primitives.elementwise import select
from minijax.primitives.moving import as_array_or_constant, filled


class AtomicOpType(enum.Enum):
    """Names what an atomic operation does."""

    XCHG = "xchg"
    ADD = "add"
    MAX = "max"
    MIN = "min"
    AND = "and"
    OR = "or"
    XOR = "xor"


_COMBINE = {
    AtomicOpType.XCHG: lambda old, value: value,
    AtomicOpType.ADD: elementwise.add,
    AtomicOpType.MAX: elementwise.max,
    AtomicOpType.MIN: elementwise.min,
    AtomicOpType.AND: elementwise.bitwise_and,
    AtomicOpType.OR: elementwise.bitwise_or,
    AtomicOpType.XOR: elementwise.bitwise_xor,
}


class AtomicRmw(KernelOperation):
    """Combines elements with values, and returns the old ones: (view, values, mask or None)."""

    name = "atomic_rmw"
    writes = True

    def as_printed(self, eqn):
        view, value, mask = self.arguments(eqn.invars, eqn.params)
        ref, leaves, tree_text = printed_view(view)
        tree_text = f"PyTreeDef((*, {tree_text}, *, {mark(mask)}))"
        return printed(eqn, [ref, *leaves, value, mask], args_tree=tree_text)

    result_types = KernelOperation.elements_of_view

    def performed(self, view, value, mask, *, atomic_type):
        old = as_array_or_constant(value_of(view))
        if atomic_type is AtomicOpType.ADD:  # elements that an index names twice get both values
            store(
                self, view, value if mask is None else select(mask, value, filled(value.shape, 0, value.dtype)), "add"
            )
            return [old]
        new = _COMBINE[atomic_type](old, value)
        store(self, view, new if mask is None else select(broadcast_to(mask, old.shape), new, old))
        return [old]


class AtomicCas(KernelOperation):
    """Sets a scalar to a value if it equals another, and returns the old one: (view, other, value)."""

    name = "atomic_cas"
    writes = True

    def as_printed(self, eqn):
        return eqn.replace(params={})

    result_types = KernelOperation.elements_of_view

    def performed(self, view, cmp, value):
        old = as_array_or_constant(value_of(view))
        store(self, view, select(elementwise.eq(old, cmp), value, old))
        return [old]


atomic_rmw_p, atomic_cas_p = AtomicRmw(), AtomicCas()


def _atomic(kind: AtomicOpType, ref: Any, idx: Any, val: Any, mask: Any) -> Any:
    """Binds the operation. Raises ValueError for a dtype that it does not have, or a value or mask of another shape."""
    name = f"atomic_{kind.value}"
    view = ref if isinstance(idx, tuple) and not idx else RefIndexer(ref)[idx]
    aval = type_of(view)
    if aval.dtype in (np.float16,) and kind is not AtomicOpType.ADD:
        raise ValueError(f"`{name}` does not support f16.")
    if aval.dtype in map(np.dtype, ("bool", "int8", "int16")):
        raise ValueError(f"`{name}` does not support {aval.dtype}.")
    value = as_array_or_constant(val)
    if typeof(value).dtype != aval.dtype and typeof(value).weak_type:
        value = convert(value, aval.dtype)
    if typeof(value).dtype != aval.dtype:
        raise ValueError(f"Invalid dtype for `{name}`. Ref dtype: {aval.dtype}. Value dtype: {typeof(value).dtype}. ")
    if typeof(value).shape != aval.shape:
        raise ValueError(
            f"{name}: Invalid shape for `swap`. Ref shape: {aval.shape}. Value shape: {typeof(value).shape}."
        )
    mask = fitting("mask", mask, aval, name)
    return atomic_rmw_p.call(view, value, mask, atomic_type=kind)[0]


def atomic_xchg(x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None) -> Any:
    """Sets elements to values at once, and returns the old ones.

    Args:
      x_ref_or_view: reference, or a view of one.
      idx: index of the elements.
      val: values, which broadcast to the shape of the elements.
      mask: array of bools; where it is false, nothing is written.

    Raises ValueError for a dtype that GPUs do not update at once.

    Example:
        >>> def kernel(o):
        ...     o[...] = jnp.zeros(2, jnp.int32)
        ...     old = pl.triton.atomic_xchg(o, 0, 7)
        ...     o[1] = old + 1
        >>> pl.pallas_call(kernel, jax.ShapeDtypeStruct((2,), jnp.int32), interpret=True)()
        Array([7, 1], dtype=int32)
    """
    return _atomic(AtomicOpType.XCHG, x_ref_or_view, idx, val, mask)


def atomic_add(x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None) -> Any:
    """Adds values to elements at once, and returns the old ones. Arguments and errors: as `atomic_xchg`.

    Example:
        >>> def kernel(x_ref, o_ref):
        ...     o_ref[...] = jnp.zeros((), jnp.int32)
        ...     pl.triton.atomic_add(o_ref, (), x_ref[2])
        >>> print(pl.pallas_call(kernel, jax.ShapeDtypeStruct((), jnp.int32), interpret=True)(jnp.arange(4)))
        2
    """
    return _atomic(AtomicOpType.ADD, x_ref_or_view, idx, val, mask)


def atomic_max(x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None) -> Any:
    """Sets elements to the larger of themselves and values, and returns the old ones. As `atomic_xchg`.

    Example:
        >>> def kernel(o):
        ...     o[...] = jnp.full(2, 5, jnp.int32)
        ...     pl.triton.atomic_max(o, 0, 7)
        >>> pl.pallas_call(kernel, jax.ShapeDtypeStruct((2,), jnp.int32), interpret=True)()
        Array([7, 5], dtype=int32)
    """
    return _atomic(AtomicOpType.MAX, x_ref_or_view, idx, val, mask)


def atomic_min(x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None) -> Any:
    """Sets elements to the smaller of themselves and values, and returns the old ones. As `atomic_xchg`.

    Example:
        >>> def kernel(o):
        ...     o[...] = jnp.full(2, 5, jnp.int32)
        ...     pl.triton.atomic_min(o, 0, 3)
        >>> pl.pallas_call(kernel, jax.ShapeDtypeStruct((2,), jnp.int32), interpret=True)()
        Array([3, 5], dtype=int32)
    """
    return _atomic(AtomicOpType.MIN, x_ref_or_view, idx, val, mask)


def atomic_and(x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None) -> Any:
    """Keeps the bits of elements that values have too, and returns the old elements. As `atomic_xchg`.

    Example:
        >>> def kernel(o):
        ...     o[...] = jnp.full(2, 0b1100, jnp.int32)
        ...     pl.triton.atomic_and(o, 0, 0b0110)
        >>> pl.pallas_call(kernel, jax.ShapeDtypeStruct((2,), jnp.int32), interpret=True)()
        Array([ 4, 12], dtype=int32)
    """
    return _atomic(AtomicOpType.AND, x_ref_or_view, idx, val, mask)


def atomic_or(x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None) -> Any:
    """Sets the bits of elements that values have, and returns the old elements. As `atomic_xchg`.

    Example:
        >>> def kernel(o):
        ...     o[...] = jnp.full(2, 0b1100, jnp.int32)
        ...     pl.triton.atomic_or(o, 0, 0b0110)
        >>> pl.pallas_call(kernel, jax.ShapeDtypeStruct((2,), jnp.int32), interpret=True)()
        Array([14, 12], dtype=int32)
    """
    return _atomic(AtomicOpType.OR, x_ref_or_view, idx, val, mask)


def atomic_xor(x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None) -> Any:
    """Inverts the bits of elements that values have, and returns the old elements. As `atomic_xchg`.

    Example:
        >>> def kernel(o):
        ...     o[...] = jnp.full(2, 0b1100, jnp.int32)
        ...     pl.triton.atomic_xor(o, 0, 0b0110)
        >>> pl.pallas_call(kernel, jax.ShapeDtypeStruct((2,), jnp.int32), interpret=True)()
        Array([10, 12], dtype=int32)
    """
    return _atomic(AtomicOpType.XOR, x_ref_or_view, idx, val, mask)


def atomic_cas(ref: Any, cmp: Any, val: Any) -> Any:
    """Sets a scalar to a value if it equals another one, and returns what it was.

    Args:
      ref: reference to a scalar, or a view of one.
      cmp: scalar that is compared.
      val: scalar that is written.

    Raises ValueError for an array.

    Example:
        >>> def kernel(o):
        ...     o[...] = jnp.ones((), jnp.int32)
        ...     pl.triton.atomic_cas(o, 1, 7)  # it is 1
        ...     pl.triton.atomic_cas(o, 1, 8)  # it is 7 now
        >>> print(pl.pallas_call(kernel, jax.ShapeDtypeStruct((), jnp.int32), interpret=True)())
        7
    """
    aval = type_of(ref)
    cmp, val = (convert(as_array_or_constant(x), aval.dtype) for x in (cmp, val))
    if aval.shape or typeof(cmp).shape or typeof(val).shape:
        raise ValueError(
            f"atomic_cas takes scalars, got shapes {aval.shape}, {typeof(cmp).shape} and {typeof(val).shape}"
        )
    return atomic_cas_p.call(ref, cmp, val)[0]
