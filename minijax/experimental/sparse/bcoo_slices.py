"""Slicing and gathering BCOO."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import minijax.numpy as jnp
from minijax import lax
from minijax.api.vmap import vmap
from minijax.experimental.sparse.bcoo_array import BCOO
from minijax.experimental.sparse.bcoo_layout import bcoo_sum_duplicates, bcoo_transpose, bcoo_update_layout
from minijax.experimental.sparse.bcoo_shapes import bcoo_reshape
from minijax.experimental.sparse.util import row
from minijax.primitives.gather_dims import GatherScatterMode
from minijax.run.array import Array


def bcoo_slice(
    mat: BCOO, *, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> BCOO:
    """`lax.slice`. Elements outside become padding; `nse` shrinks if the slice has fewer elements."""
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
    shape = tuple(-(-(high - low) // step) for low, high, step in zip(starts, limits, steps, strict=True))
    n, m = mat.n_batch, mat.n_batch + mat.n_sparse

    def cut(x, axes):
        begin, end, step = [0] * x.ndim, list(x.shape), [1] * x.ndim
        for place, axis in axes:
            if x.shape[place] == mat.shape[axis]:
                begin[place], end[place], step[place] = starts[axis], limits[axis], steps[axis]
        strides = step if any(s > 1 for s in step) else None
        return x if (begin, end, strides) == ([0] * x.ndim, list(x.shape), None) else lax.slice(x, begin, end, strides)

    batch = [(axis, axis) for axis in range(n)]
    data = cut(mat.data, [*batch, *[(axis - m + n + 1, axis) for axis in range(m, mat.ndim)]])
    indices = cut(mat.indices, batch)
    if not mat.n_sparse:
        return BCOO((data, indices), shape=shape)
    low, high, step = (row(xs[n:m], indices) for xs in (starts, limits, steps))
    inside = ((indices >= low) & (indices < high) & ((indices - low) % step == 0)).all(-1, keepdims=True)
    indices, sizes = (indices - low + step - 1) // step, (high - low + step - 1) // step
    return _compacted(data, indices, inside, sizes, shape)


def _compacted(data: Any, indices: Any, inside: Any, sizes: Any, shape: tuple[int, ...]) -> BCOO:
    """A BCOO of the elements that are `inside`; others are padding (`sizes`). `nse` is at most the array's size."""
    indices = jnp.where(inside, indices, sizes)
    inside = lax.squeeze(inside, (inside.ndim - 1,))
    inside = lax.expand_dims(inside, range(inside.ndim, data.ndim))
    mat = BCOO((jnp.where(inside, data, 0), indices), shape=shape)
    nse = math.prod(shape[mat.n_batch : mat.n_batch + mat.n_sparse])
    if mat.nse <= nse:
        return mat
    mat = bcoo_sum_duplicates(mat, nse=nse)
    return BCOO(mat._bufs, shape=shape)


def bcoo_dynamic_slice(mat: BCOO, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> BCOO:
    """`lax.dynamic_slice`: start indices are clamped to keep the slice in bounds."""
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
    n, m = mat.n_batch, mat.n_batch + mat.n_sparse

    def cut(x, axes):
        places = {place: axis for place, axis in axes if x.shape[place] == mat.shape[axis]}
        begin = [starts[places[k]] if k in places else 0 for k in range(x.ndim)]
        return lax.dynamic_slice(x, begin, [sizes[places[k]] if k in places else x.shape[k] for k in range(x.ndim)])

    batch = [(axis, axis) for axis in range(n)]
    data = cut(mat.data, [*batch, *[(axis - m + n + 1, axis) for axis in range(m, mat.ndim)]])
    indices = cut(mat.indices, batch)
    if not mat.n_sparse:
        return BCOO((data, indices), shape=sizes)
    taken, whole = (jnp.array(xs[n:m], indices.dtype) for xs in (sizes, mat.shape))
    low = jnp.array(starts[n:m], indices.dtype)
    low = jnp.clip(jnp.where(low < 0, low + whole, low), 0, whole - taken)
    low, taken, _ = (lax.expand_dims(x, range(indices.ndim - 1)) for x in (low, taken, whole))
    inside = ((indices >= low) & (indices < low + taken)).all(-1, keepdims=True)
    return _compacted(data, indices - low, inside, taken, sizes)


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
    """`lax.gather`. The axes of the start indices become batch axes if they are the first ones, else sparse axes.

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
    out: Any = vmap(one)(starts.reshape(count, -1))
    if len(batch) > 1:
        out = bcoo_reshape(out, new_sizes=(*batch, *out.shape[1:]))
    places = list(numbers.offset_dims)
    if places == list(range(len(batch), out.ndim)):
        return out
    order = [k for k in range(out.ndim) if k not in places] + places
    out = bcoo_update_layout(out, n_batch=0, on_inefficient=None)
    return bcoo_transpose(out, permutation=[order.index(k) for k in range(out.ndim)])
