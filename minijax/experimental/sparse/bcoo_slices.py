"""Slicing and gathering BCOO."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import minijax.numpy as jnp
from minijax import lax
from minijax.api.vmap import vmap
from minijax.experimental.sparse.bcoo_array import BCOO, by_kind
from minijax.experimental.sparse.bcoo_layout import bcoo_sum_duplicates, bcoo_transpose, bcoo_update_layout
from minijax.experimental.sparse.bcoo_shapes import bcoo_reshape
from minijax.experimental.sparse.util import inverse, row
from minijax.primitives.gather_dims import GatherScatterMode
from minijax.run.arrays.array import Array


def bcoo_slice(
    mat: BCOO, *, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> BCOO:
    """Slices a BCOO, as `lax.slice`. Elements outside become padding; `nse` shrinks if the slice has fewer elements."""
    starts, limits, steps = _checked_slice(mat, start_indices, limit_indices, strides)
    shape = tuple(-(-(high - low) // step) for low, high, step in zip(starts, limits, steps, strict=True))

    def part(x, axes):
        begin, end = _at_axes(axes, starts, [0] * x.ndim), _at_axes(axes, limits, x.shape)
        step = _at_axes(axes, steps, [1] * x.ndim)
        strides = step if any(s > 1 for s in step) else None
        is_all = (begin, end, strides) == ([0] * x.ndim, list(x.shape), None)
        return x if is_all else lax.slice(x, begin, end, strides)

    data, indices = map(part, mat._bufs, _buffer_axes(mat))
    if not mat.n_sparse:
        return BCOO((data, indices), shape=shape)
    n, m = mat.n_batch, mat.n_batch + mat.n_sparse
    low, high, step = (row(xs[n:m], indices) for xs in (starts, limits, steps))
    inside = ((indices >= low) & (indices < high) & ((indices - low) % step == 0)).all(-1, keepdims=True)
    indices, sizes = (indices - low + step - 1) // step, (high - low + step - 1) // step
    return _compacted(data, indices, inside, sizes, shape)


def _checked_slice(mat: BCOO, start_indices: Any, limit_indices: Any, strides: Any) -> tuple[list, list, list]:
    starts, limits = (list(map(operator.index, xs)) for xs in (start_indices, limit_indices))
    steps = [1] * mat.ndim if strides is None else list(map(operator.index, strides))
    if not len(starts) == len(limits) == len(steps) == mat.ndim:
        raise ValueError(f"bcoo_slice: {start_indices=}, {limit_indices=} and {strides=} must have {mat.ndim} entries")
    if any(step <= 0 for step in steps):
        raise ValueError(f"strides must be a sequence of positive integers; got {steps}")
    if not all(0 <= low <= high <= n for low, high, n in zip(starts, limits, mat.shape, strict=True)):
        raise ValueError(
            f"bcoo_slice: invalid indices. Got start_indices={starts}, limit_indices={limits} and shape={mat.shape}"
        )
    return starts, limits, steps


def _buffer_axes(mat: BCOO) -> list[dict[int, int]]:
    """For data and for indices {axis: axis of the array}, of the batch and dense axes that are not broadcast."""
    batch, _, dense = by_kind(mat, range(mat.ndim))
    places = dict(zip([*batch, *dense], [*batch, *range(mat.ndim - len(dense), mat.ndim)], strict=True))
    rows = zip(mat._bufs, (len(places) + 1, mat.n_batch), strict=True)
    return [{k: axis for k, axis in places.items() if k < end and x.shape[k] == mat.shape[axis]} for x, end in rows]


def _at_axes(axes: dict[int, int], values: Sequence, default: Sequence) -> list:
    """For each axis of a buffer the value of the array's axis, or the default."""
    return [values[axes[k]] if k in axes else x for k, x in enumerate(default)]


def _compacted(data: Any, indices: Any, inside: Any, sizes: Any, shape: tuple[int, ...]) -> BCOO:
    """A BCOO of the elements that are `inside`; others are padding (`sizes`). `nse` is at most the array's size."""
    indices = jnp.where(inside, indices, sizes)
    inside = lax.squeeze(inside, (inside.ndim - 1,))
    inside = lax.expand_dims(inside, range(inside.ndim, data.ndim))
    mat = BCOO((jnp.where(inside, data, 0), indices), shape=shape)
    nse = math.prod(mat._sparse_shape)
    if mat.nse <= nse:
        return mat
    mat = bcoo_sum_duplicates(mat, nse=nse)
    return BCOO(mat._bufs, shape=shape)


def bcoo_dynamic_slice(mat: BCOO, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> BCOO:
    """Slices a BCOO, as `lax.dynamic_slice`: start indices are clamped to keep the slice in bounds."""
    starts, sizes = _checked_dynamic_slice(mat, start_indices, slice_sizes)

    def part(x, axes):
        return lax.dynamic_slice(x, _at_axes(axes, starts, [0] * x.ndim), _at_axes(axes, sizes, x.shape))

    data, indices = map(part, mat._bufs, _buffer_axes(mat))
    if not mat.n_sparse:
        return BCOO((data, indices), shape=sizes)
    n, m = mat.n_batch, mat.n_batch + mat.n_sparse
    taken, whole = (jnp.array(xs[n:m], indices.dtype) for xs in (sizes, mat.shape))
    low = jnp.array(starts[n:m], indices.dtype)
    low = jnp.clip(jnp.where(low < 0, low + whole, low), 0, whole - taken)
    low, taken, _ = (lax.expand_dims(x, range(indices.ndim - 1)) for x in (low, taken, whole))
    inside = ((indices >= low) & (indices < low + taken)).all(-1, keepdims=True)
    return _compacted(data, indices - low, inside, taken, sizes)


def _checked_dynamic_slice(mat: BCOO, start_indices: Any, slice_sizes: Any) -> tuple[list, tuple[int, ...]]:
    sizes = tuple(map(operator.index, slice_sizes))
    starts = [jnp.asarray(start) for start in start_indices]
    if not len(starts) == len(sizes) == mat.ndim:
        raise ValueError(
            f"Length of slice indices must match number of operand dimensions ({len(starts)} vs {mat.shape})"
        )
    if any(size > n for size, n in zip(sizes, mat.shape, strict=True)):
        raise TypeError(
            f"slice slice_sizes must be less than or equal to operand shape, got slice_sizes {sizes} for operand shape "
            f"{mat.shape}."
        )
    if any(size < 0 for size in sizes):
        raise TypeError(f"slice slice_sizes must be greater than or equal to zero, got slice_sizes of {sizes}.")
    if any(start.ndim or not jnp.issubdtype(start.dtype, jnp.integer) for start in starts):
        raise TypeError("index arguments to dynamic_slice must be integers of the same type")
    return starts, sizes


def bcoo_gather(
    operand: BCOO,
    start_indices: Array,
    dimension_numbers: Any,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None,
    fill_value: Any = None,
) -> BCOO:
    """Gathers slices of a BCOO, as `lax.gather`.

    The axes of the start indices become batch axes if they are the first ones, else sparse axes.

    Raises NotImplementedError for batching dimensions and for fill values other than zero.
    """
    numbers = dimension_numbers
    if numbers.operand_batching_dims or numbers.start_indices_batching_dims:
        raise NotImplementedError("bcoo_gather: batching dimensions")
    mode = lax.GatherScatterMode.from_any(mode)
    if mode is lax.GatherScatterMode.FILL_OR_DROP and fill_value not in (None, 0):
        raise NotImplementedError(f"bcoo_gather: {mode=}, {fill_value=}")
    starts: Any = jnp.asarray(start_indices)
    count, batch = math.prod(starts.shape[:-1]), starts.shape[:-1]
    offsets = [axis for axis in range(operand.ndim) if axis not in numbers.collapsed_slice_dims]
    del unique_indices, indices_are_sorted

    def one(start):
        places = dict(zip(numbers.start_index_map, start, strict=True))
        begin = [places.get(axis, jnp.zeros((), starts.dtype)) for axis in range(operand.ndim)]
        begin = [jnp.maximum(x, 0) for x in begin]
        part = bcoo_dynamic_slice(operand, begin, slice_sizes)
        return bcoo_reshape(part, new_sizes=[slice_sizes[axis] for axis in offsets])

    if not batch:
        return one(starts)
    out: Any = vmap(one)(starts.reshape(count, starts.shape[-1]))
    if len(batch) > 1:
        out = bcoo_reshape(out, new_sizes=(*batch, *out.shape[1:]))
    offset_dims = list(numbers.offset_dims)
    if offset_dims == list(range(len(batch), out.ndim)):
        return out
    order = [k for k in range(out.ndim) if k not in offset_dims] + offset_dims
    out = bcoo_update_layout(out, n_batch=0, on_inefficient=None)
    return bcoo_transpose(out, permutation=inverse(order))
