"""Reading and writing of blocks under a mask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.base import dtypes, tree
from minijax.composed.refs import parts_of, write
from minijax.indexing.language import Index, Slot, Span, Window
from minijax.ir.types import Zero, typeof
from minijax.kernels.operations.base import (
    KernelOperation,
    check_reference,
    store as store_view,
    text_of,
    type_of,
    value_of,
    view_of_tangent,
)
from minijax.kernels.uninitialized import uninitialized_element
from minijax.numpy.shaping import broadcast_to
from minijax.primitives.convert import convert
from minijax.primitives.dynamic_slice import dynamic_slice, dynamic_update_slice
from minijax.primitives.elementwise import select
from minijax.primitives.moving import as_array_or_constant, reshape
from minijax.primitives.structural import pad, slice as lax_slice
from minijax.primitives.zeros import instantiate
from minijax.transforms.discharge import mixed_error


class MaskedLoad(KernelOperation):
    """Reads elements where a mask is true: (view, mask or None, other values or None)."""

    name = "masked_load"
    reads_only = True

    result_types = KernelOperation.elements_of_view

    def performed(self, view, mask, other, **params):
        value = _padded_read(view)
        if mask is not None and other is not None:
            value = select(broadcast_to(mask, value.shape), value, _like(other, value))
        return [value]

    def pushed(self, args, tangents):
        view, mask, other = args
        moved = view_of_tangent(view, tangents[0])
        return None if moved is None else (moved, mask, None if other is None else instantiate(tangents[2]))

    def show_eqn(self, eqn, name):
        view, mask, other = self.arguments(eqn.invars, eqn.params)
        ends = [f" {key}={name(x, False)}" for key, x in (("mask", mask), ("other", other)) if x is not None]
        return f"{name(eqn.outvars[0], True)} <- {text_of(view, name)}{''.join(ends)}"


class MaskedSwap(KernelOperation):
    """Writes elements where a mask is true, and returns the old ones: (view, values, mask or None)."""

    name = "masked_swap"
    writes = True

    result_types = KernelOperation.elements_of_view

    def performed(self, view, value, mask, **params):
        before = _padded_read(view)
        if mask is None:
            _padded_write(self, view, value)
            return [before]
        mask = broadcast_to(mask, value.shape)
        _padded_write(self, view, select(mask, value, before))
        return [select(mask, before, value)]

    def pushed(self, args, tangents):
        view, _, mask = args
        moved = view_of_tangent(view, tangents[0])
        if moved is None and type(tangents[1]) is not Zero:
            raise mixed_error(self.name, "a differentiated", "a non-differentiated", type_of(view))
        return None if moved is None else (moved, instantiate(tangents[1]), mask)

    def show_eqn(self, eqn, name):
        view, value, mask = self.arguments(eqn.invars, eqn.params)
        place, end = text_of(view, name), "" if mask is None else f" mask={name(mask, False)}"
        return f"{name(eqn.outvars[0], True)}, {place} <- {place}, {name(value, False)}{end}"


masked_load_p, masked_swap_p = MaskedLoad(), MaskedSwap()


def _like(other: Any, value: Any) -> Any:
    return broadcast_to(convert(as_array_or_constant(other), value.dtype), value.shape)


# A read beyond the end of an axis finds what memory has before it is written, and a write there is dropped.


def _window(view: Any) -> tuple[Any, list, list, tuple] | None:
    """(reference, starts, sizes, shape) of a view that is a window of the reference with a dynamic start."""
    ref, path, arrays = parts_of(view)
    if len(path) != 1 or type(path[0]) is not Index:
        return None
    index = path[0]
    entries = [e for e in index.entries if e is not Ellipsis]
    may_leave = any(map(_may_leave, entries, index.shape))
    if not may_leave or index.has_arrays() or len(entries) != len(index.shape):
        return None
    if any(getattr(e, "step", 1) != 1 for e in entries):
        raise NotImplementedError("Unimplemented stride support.")
    starts = [convert(as_array_or_constant(_start(e, arrays)), np.dtype(np.int32)) for e in entries]
    return ref, starts, [e.size if type(e) in (Window, Span) else 1 for e in entries], type_of(view).shape


def _start(entry: Any, arrays: Sequence) -> Any:
    """The first element that an entry of an index selects."""
    if type(entry) in (Window, Slot):
        return arrays[entry.place]
    return entry if isinstance(entry, int) else entry.start


def _may_leave(entry: Any, size: int) -> bool:
    """Returns whether an entry of an index may go beyond its axis."""
    return type(entry) in (Window, Slot) or type(entry) is Span and entry.start + entry.size > size


def _padded(x: Any, sizes: list) -> Any:
    return pad(x, uninitialized_element(x.dtype), [(0, n, 0) for n in sizes])


def _padded_read(view: Any) -> Any:
    window = _window(view)
    if window is None:
        return as_array_or_constant(value_of(view))
    ref, starts, sizes, shape = window
    return reshape(dynamic_slice(_padded(ref._value, sizes), starts, sizes), shape)


def _padded_write(primitive: KernelOperation, view: Any, value: Any) -> None:
    window = _window(view)
    if window is None:
        store_view(primitive, view, value)
        return
    ref, starts, sizes, _ = window
    x = dynamic_update_slice(_padded(ref._value, sizes), reshape(value, sizes), starts)
    write(primitive, ref, lax_slice(x, (0,) * len(sizes), ref._value.shape))


def load(
    ref: Any,
    *,
    mask: Any = None,
    other: Any = None,
    cache_modifier: str | None = None,
    eviction_policy: str | None = None,
    volatile: bool = False,
) -> Any:
    """Reads a reference, or a view of one, where a mask is true.

    Args:
      ref: reference, or a view `ref.at[index]`.
      mask: array of bools that broadcasts to the shape of the view.
      other: value of the elements where the mask is false; undefined if it is not given.
      cache_modifier: how a GPU caches it: ".ca" or ".cg".
      eviction_policy: "evict_first" or "evict_last", for a GPU's cache.
      volatile: whether a GPU reads it each time anew.

    Returns:
      An array of the view's shape and dtype.

    Raises ValueError for a mask whose shape does not broadcast.

    See also: `pl.triton.store`.

    Example:
        >>> def kernel(x_ref, o_ref):
        ...     i = jnp.arange(4)
        ...     o_ref[...] = pl.triton.load(x_ref, mask=i < 3, other=-1)
        >>> print(pl.pallas_call(kernel, jax.ShapeDtypeStruct((4,), jnp.int32), interpret=True)(jnp.arange(4)))
        [ 0  1  2 -1]
    """
    aval = _type_of_target("load", ref)
    mask, other = fitting("mask", mask, aval, "load"), fitting("other", other, aval, "load")
    how = dict(cache_modifier=cache_modifier, eviction_policy=eviction_policy, is_volatile=volatile)
    return masked_load_p.call(ref, mask, other, **how)[0]


def _type_of_target(name: str, ref: Any) -> Any:
    """The type of what a reference or a view shows. Raises ValueError for another thing."""
    if not tree.tree_leaves(ref):
        raise TypeError(f"{name}: Argument {str(ref)!r} of type {str(type(ref))!r} is not a valid JAX type")
    check_reference(ref, f"Can only call `{name}` on a `Ref`: {ref}.", name)
    return type_of(ref)


def swap(ref: Any, value: Any, mask: Any, eviction_policy: str | None, name: str) -> Any:
    """Writes a value where a mask is true, and returns the old one."""
    aval = _type_of_target(name, ref)
    value = as_array_or_constant(value)
    have = typeof(value)
    if have.dtype != aval.dtype:
        if not have.weak_type or not dtypes.issubdtype(aval.dtype, np.inexact if have.dtype.kind == "f" else np.number):
            raise ValueError(f"Invalid dtype for `swap`. Ref dtype: {aval.dtype}. Value dtype: {have.dtype}. ")
        value = convert(value, aval.dtype)
    if have.shape != aval.shape:
        raise ValueError(
            f"Invalid shape for `swap`. Ref shape: {ref.shape}. Expected shape: {aval.shape}. Value shape: "
            f"{have.shape}."
        )
    mask = fitting("mask", mask, aval, name)
    return masked_swap_p.call(ref, value, mask, eviction_policy=eviction_policy)[0]


def store(ref: Any, val: Any, *, mask: Any = None, eviction_policy: str | None = None) -> None:
    """Writes a reference, or a view of one, where a mask is true.

    Args:
      ref: reference, or a view `ref.at[index]`.
      val: array of the view's shape and dtype.
      mask: array of bools that broadcasts to the shape of the view.
      eviction_policy: "evict_first" or "evict_last", for a GPU's cache.

    Raises ValueError for a value or mask of another shape or dtype.

    See also: `pl.triton.load`.

    Example:
        >>> def kernel(x, o):
        ...     o[...] = jnp.zeros_like(o)
        ...     pl.triton.store(o, x[...], mask=x[...] > 1)
        >>> pl.pallas_call(kernel, jax.ShapeDtypeStruct((2,), jnp.int32), interpret=True)(jnp.array([1, 2]))
        Array([0, 2], dtype=int32)
    """
    swap(ref, val, mask, eviction_policy, "store")


def load_tpu(ref: Any, *, mask: Any = None) -> Any:
    """Reads a reference, or a view of one, where a mask is true; other elements are undefined.

    Raises ValueError for a mask of another shape.

    Example:
        >>> kernel = lambda x, o: o.set(pltpu.load(x))
        >>> pl.pallas_call(kernel, jax.ShapeDtypeStruct((2,), jnp.int32), interpret=True)(jnp.array([1, 2]))
        Array([1, 2], dtype=int32)
    """
    return load(ref, mask=mask)


def store_tpu(ref: Any, val: Any, *, mask: Any = None) -> None:
    """Writes a reference, or a view of one, where a mask is true.

    Raises ValueError for a value or mask of another shape or dtype.

    Example:
        >>> def kernel(x, o):
        ...     o[...] = jnp.zeros_like(o)
        ...     pltpu.store(o, x[...], mask=x[...] > 1)
        >>> pl.pallas_call(kernel, jax.ShapeDtypeStruct((2,), jnp.int32), interpret=True)(jnp.array([1, 2]))
        Array([0, 2], dtype=int32)
    """
    store(ref, val, mask=mask)


def fitting(what: str, x: Any, aval: Any, name: str) -> Any:
    """The mask, or the other values. Raises ValueError if they do not broadcast to the shape of the view."""
    if x is None:
        return None
    x = as_array_or_constant(x)
    shape = typeof(x).shape
    try:
        fits = np.broadcast_shapes(shape, aval.shape) == aval.shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"Cannot broadcast {what} shape {shape} to {name} shape {aval.shape}")
    return x
