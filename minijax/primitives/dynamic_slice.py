"""Slices whose starts are values: dynamic_slice and dynamic_update_slice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.base import dims, dtypes
from minijax.base.dims import as_index
from minijax.base.errors import ShardingTypeError
from minijax.base.symbolic.dimension import Dim, is_int
from minijax.ir.primitive import Folding, fold_as, is_undefined_primal
from minijax.ir.types import ShapedArray, Zero, typeof
from minijax.primitives import moving, structural
from minijax.primitives.convert import convert
from minijax.primitives.dimension_value import dimension_as_value
from minijax.primitives.elementwise import add, lt, select
from minijax.primitives.families import check_same_dtypes, scalar_like
from minijax.primitives.gather_dims import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers
from minijax.primitives.gather_scatter import gather as gather, gather_p, scatter_p
from minijax.run.arrays.array import Array, ArrayLike

_IN_ORDER = dict(indices_are_sorted=True, unique_indices=True, mode=GatherScatterMode.CLIP)


class DynamicSlice(structural.SliceAt, structural.JointlyLinear):
    """A window of given sizes at given starts; the starts are clamped to keep it in bounds."""

    def jvp(self, primals, tangents, *, slice_sizes):
        params, (t, *_) = dict(slice_sizes=slice_sizes), tangents
        # As in jax, the tangent comes first.
        moved = None if type(t) is Zero else self.bind_all([t, *primals[1:]], params)
        outs = self.bind_all(primals, params)
        return outs, moved or [Zero(typeof(outs[0]).to_tangent_aval())]

    def transposed(self, ct, x, *starts, slice_sizes):
        zeros = moving.filled(x.aval.shape, scalar_like(ct, 0), sharding=x.aval.own_sharding)
        return [dynamic_update_slice_p.bind(zeros, ct, *starts), *[None] * len(starts)]

    def batch(self, axis, operands, dims_in, *, slice_sizes):
        indices, indices_dim = _index_vector(axis, operands[1:], dims_in[1:])
        every = tuple(range(len(slice_sizes)))
        params = dict(dimension_numbers=GatherDimensionNumbers(every, (), every), slice_sizes=slice_sizes, **_IN_ORDER)
        return gather_p.batch(axis, [operands[0], indices], [dims_in[0], indices_dim], fill_value=None, **params)


class DynamicUpdateSlice(structural.JointlyLinear):
    """The operand with the window at given starts replaced; the starts are clamped to keep it in bounds."""

    name = "dynamic_update_slice"

    def infer(self, x, update, *starts):
        if update.ndim != x.ndim:
            raise TypeError(
                f"{self.name}: update shape {update.shape} and operand shape {x.shape} differ in rank. Add axes of "
                "size 1 to the update, with `jnp.expand_dims`."
            )
        if any(u > n for u, n in zip(update.shape, x.shape, strict=True)):
            raise TypeError(f"{self.name}: update shape {update.shape} exceeds operand shape {x.shape}")
        if len(starts) != x.ndim:
            raise TypeError(f"{self.name}: {len(starts)} starts for an operand of rank {x.ndim}")
        check_same_dtypes(self.name, x, update)
        structural.check_starts(self.name, starts)
        return [ShapedArray(x.shape, x.dtype, all(a.weak_type for a in (x, update, *starts)))]

    def sharding_rule(self, mesh, avals, outs):
        x, update, *_ = avals
        if x.own_sharding != update.own_sharding:
            raise ShardingTypeError(
                "dynamic_update_slice operand sharding must be equal to update sharding: the operand is "
                f"{x.str_short(mesh_axis_types=True)}, the update {update.str_short(mesh_axis_types=True)}"
            )
        return [x.entries]

    def lower(self, e, ins, outs, x, update, *starts):
        if not starts:
            return [update]
        return [e.dynamic_update_slice(x, update, starts, *ins[:2], ins[2:])]

    def transposed(self, ct, x, update, *starts):
        shape = structural.operand_type(update).shape
        zeros = moving.filled(shape, scalar_like(ct, 0), sharding=structural.operand_type(update).own_sharding)
        ct_x = self.bind(ct, zeros, *starts) if is_undefined_primal(x) else None
        ct_update = dynamic_slice_p.bind(ct, *starts, slice_sizes=shape) if is_undefined_primal(update) else None
        return [ct_x, ct_update, *[None] * len(starts)]

    def batch(self, axis, operands, dims_in):
        (x, update, *starts), (d, update_dim, *start_dims) = operands, dims_in
        indices, indices_dim = _index_vector(axis, starts, start_dims)
        every = tuple(range(len(starts)))
        params = dict(dimension_numbers=ScatterDimensionNumbers(every, (), every), **_IN_ORDER)
        operands, dims_in = [x, indices, update], [d, indices_dim, update_dim]
        return scatter_p.batch(axis, operands, dims_in, update_jaxpr=None, update_consts=(), **params)


def _index_vector(axis: Any, starts: Sequence, start_dims: Sequence) -> tuple[Any, int | None]:
    """Returns (starts as one vector, None), or (one vector per element of the batch axis, that axis)."""
    if not starts:
        return np.zeros((0,), np.int32), None
    if all(d is None for d in start_dims):
        return structural.concatenate([moving.broadcast_in_dim(i, (1,), ()) for i in starts], 0), None
    column = ShapedArray((1,), np.int32).with_axis(0, axis.size, axis.entry, axis.mesh)
    columns = [
        moving.broadcast_as(i, column, ()) if d is None else moving.broadcast_in_dim(i, column.shape, (0,))
        for i, d in zip(starts, start_dims, strict=True)
    ]
    return structural.concatenate(columns, 1), 0


_SURE = 2**30  # below this size, an index and its sum with a size fit every dtype of indices

dynamic_slice_p, dynamic_update_slice_p = DynamicSlice(), DynamicUpdateSlice()
fold_as(Folding.EXACT, dynamic_slice_p)
fold_as(Folding.PLAIN, dynamic_update_slice_p)


def _starts(name: str, operand: Any, start_indices: Any, allow_negative: bool | Sequence[bool]) -> list:
    """Converts the starts to scalars; negative ones count from the end."""
    shape = typeof(operand).shape
    if type(start_indices) is not tuple and isinstance(start_indices, Array | np.ndarray):
        indices_shape = typeof(start_indices).shape
        if len(indices_shape) != 1:
            raise ValueError(f"{name}: Slice indices must be a 1D sequence, got {indices_shape}")
        if isinstance(start_indices, np.ndarray):
            start_indices = list(start_indices)
        else:
            start_indices = [structural.index_in_dim(start_indices, i, keepdims=False) for i in range(indices_shape[0])]
    if not isinstance(start_indices, Sequence):
        raise TypeError(f"{name}: start_indices must be a sequence of scalars or a vector, got {start_indices!r}")
    if len(start_indices) != len(shape):
        raise ValueError(
            f"{name}: {len(start_indices)} indices for operand dimensions {shape}. Give a start for every axis."
        )
    allowed = (allow_negative,) * len(shape) if isinstance(allow_negative, bool) else allow_negative
    return [_from_front(i, n, a) for i, n, a in zip(start_indices, shape, allowed, strict=True)]


def _from_front(i: Any, size: int, allow_negative: bool) -> Any:
    """Converts a negative index to one counted from the front: in Python if its value is known, else by operations."""
    if type(i) is int and -_SURE < i < _SURE and type(size) is int and size < _SURE:
        return dtypes.default_int_dtype().type(i + size if i < 0 and allow_negative else i)
    aval = typeof(i)
    if not dtypes.issubdtype(aval.dtype, np.integer):
        return i
    if not is_int(size):
        return _from_symbolic_end(i, size, allow_negative)
    if isinstance(i, int | np.integer):
        return np.asarray(i + size if i < 0 and allow_negative else i).astype(aval.dtype)[()]
    if not allow_negative or np.issubdtype(aval.dtype, np.unsignedinteger):
        return i
    # In a dtype too narrow for the size, both the size and the sum wrap around, which cancels out.
    below = lt(i, scalar_like(i, 0))
    strong = convert(i, aval.dtype) if aval.weak_type else i
    return select(below, add(strong, np.asarray(size).astype(aval.dtype)[()]), i)


def _from_symbolic_end(i: Any, size: Dim, allow_negative: bool) -> Any:
    aval, is_number = typeof(i), isinstance(i, int | np.integer)
    dtype = aval.dtype
    if not allow_negative or np.issubdtype(dtype, np.unsignedinteger):
        return dtype.type(i) if is_number else i
    value = dimension_as_value(size)
    if is_number:
        return dtype.type(i) if i >= 0 else add(dtype.type(i), convert(value, dtype))
    value, below = convert(value, dtype), lt(i, scalar_like(i, 0))
    return select(below, add(convert(i, dtype) if aval.weak_type else i, value), i)


def dynamic_slice(
    operand: Array | np.ndarray,
    start_indices: Array | np.ndarray | Sequence[ArrayLike],
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """Cuts a window of static sizes out of an array, at a position that may be traced.

    A window that would pass the ends of the array is moved inside: the starts are clamped.

    Args:
        operand: An array.
        start_indices: The first index along each axis: a sequence of integer scalars, or a vector of integers.
        slice_sizes: The size of the window along each axis; Python integers.
        allow_negative_indices: Whether negative starts count from the end, for all axes or for each.

    Returns:
        An array of shape `slice_sizes`.

    Raises:
        TypeError, ValueError: If the numbers of starts, sizes and axes differ, or a size is larger than the axis.

    See also: `jax.lax.slice`, for static starts; `jax.lax.dynamic_slice_in_dim`, `jax.lax.dynamic_update_slice`.

    Example:
        >>> x = jnp.arange(10)
        >>> jax.jit(lambda start: jax.lax.dynamic_slice(x, (start,), (3,)))(4)
        Array([4, 5, 6], dtype=int32)
        >>> jax.lax.dynamic_slice(x, (9,), (3,))
        Array([7, 8, 9], dtype=int32)
    """
    starts = _starts("dynamic_slice", operand, start_indices, allow_negative_indices)
    sizes = dims.canonical_shape(slice_sizes)
    if len(sizes) != len(starts):
        raise ValueError(f"dynamic_slice: {len(sizes)} slice_sizes for {len(starts)} axes")
    return dynamic_slice_p.bind(operand, *starts, slice_sizes=sizes)


def dynamic_update_slice(
    operand: Array | np.ndarray,
    update: ArrayLike,
    start_indices: Array | Sequence[ArrayLike],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """Returns an array in which a window is replaced, at a position that may be traced.

    A window that would pass the ends of the array is moved inside: the starts are clamped. Under `jax.jit` XLA updates
    in place where the old array is not used any more.

    Args:
        operand: An array. It is not changed.
        update: The window: an array of the dtype and rank of `operand`, no larger along any axis.
        start_indices: The first index along each axis: a sequence of integer scalars, or a vector of integers.
        allow_negative_indices: Whether negative starts count from the end, for all axes or for each.

    Returns:
        An array of the shape of `operand`.

    Raises:
        TypeError: If `update` has another dtype or rank, or is too large.

    See also: `jax.lax.dynamic_update_slice_in_dim`, and `x.at[i:j].set(y)` for static positions.

    Example:
        >>> jax.lax.dynamic_update_slice(jnp.zeros(5), jnp.ones(2), (3,))
        Array([0., 0., 0., 1., 1.], dtype=float32)
    """
    starts = _starts("dynamic_update_slice", operand, start_indices, allow_negative_indices)
    return dynamic_update_slice_p.bind(operand, update, *starts)


def _starts_in_dim(operand: Any, start: Any, axis: int) -> list:
    """The start indices: `start` along `axis`, zero along the others."""
    return [start if i == axis else scalar_like(start, 0) for i in range(typeof(operand).ndim)]


def dynamic_slice_in_dim(
    operand: Array | np.ndarray,
    start_index: ArrayLike,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Cuts a window out of an array along one axis, at a start that may be traced; see `jax.lax.dynamic_slice`.

    Raises TypeError for a size beyond the axis, or a start that is not an integer.

    Example:
        >>> jax.lax.dynamic_slice_in_dim(jnp.arange(6).reshape(3, 2), 1, 2, axis=0)
        Array([[2, 3],
               [4, 5]], dtype=int32)
    """
    shape = typeof(operand).shape
    axis, _ = structural.size_along("dynamic_slice_in_dim", operand, as_index(axis))
    sizes = tuple(slice_size if i == axis else n for i, n in enumerate(shape))
    starts = _starts_in_dim(operand, start_index, axis)
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=allow_negative_indices)


def dynamic_index_in_dim(
    operand: Array | np.ndarray,
    index: ArrayLike,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Returns one slice of an array along an axis, at an index that may be traced.

    An index out of bounds is clamped. With `keepdims`, the default, the axis remains, with size 1. Raises TypeError for
    an index that is not an integer.

    Example:
        >>> x = jnp.array([[1, 2], [3, 4]])
        >>> jax.lax.dynamic_index_in_dim(x, 1, axis=1), jax.lax.dynamic_index_in_dim(x, 9, keepdims=False)
        (Array([[2],
               [4]], dtype=int32), Array([3, 4], dtype=int32))
    """
    out = dynamic_slice_in_dim(operand, index, 1, axis, allow_negative_indices=allow_negative_indices)
    return out if keepdims else structural.squeeze(out, (axis,))


def dynamic_update_slice_in_dim(
    operand: Array | np.ndarray,
    update: ArrayLike,
    start_index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Replaces a window of an array along one axis, at a start that may be traced; see `dynamic_update_slice`.

    Raises TypeError for an `update` of another dtype, or that does not fit.

    Example:
        >>> jax.lax.dynamic_update_slice_in_dim(jnp.zeros(5), jnp.array([1.0, 2.0]), 2, axis=0)
        Array([0., 0., 1., 2., 0.], dtype=float32)
    """
    axis, _ = structural.size_along("dynamic_update_slice_in_dim", operand, as_index(axis))
    starts = _starts_in_dim(operand, start_index, axis)
    return dynamic_update_slice(operand, update, starts, allow_negative_indices=allow_negative_indices)


def dynamic_update_index_in_dim(
    operand: Array | np.ndarray, update: ArrayLike, index: ArrayLike, axis: int, *, allow_negative_indices: bool = True
) -> Array:
    """Replaces one slice of an array along an axis, at an index that may be traced; `update` may lack that axis.

    Raises TypeError for an `update` of another dtype, or that does not fit.

    Example:
        >>> jax.lax.dynamic_update_index_in_dim(jnp.zeros((2, 3)), jnp.array([5.0, 6.0]), 1, axis=1)
        Array([[0., 5., 0.],
               [0., 6., 0.]], dtype=float32)
    """
    ndim = typeof(operand).ndim
    if typeof(update).ndim != ndim:
        if typeof(update).ndim + 1 != ndim:
            raise TypeError(f"update must have rank {ndim} or {ndim - 1}, got {typeof(update).ndim}")
        update = moving.expand_dims(update, (axis,))
    return dynamic_update_slice_in_dim(operand, update, index, axis, allow_negative_indices=allow_negative_indices)
