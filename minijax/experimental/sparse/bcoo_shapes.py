"""Broadcasting, concatenating, reshaping, reversing, squeezing, summing, slicing and gathering BCOO."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import minijax.numpy as jnp
from minijax import lax
from minijax.api.vmap import vmap
from minijax.base.dims import canonical_axis
from minijax.experimental.sparse.bcoo_array import BCOO, by_kind
from minijax.experimental.sparse.bcoo_dot import remaining
from minijax.experimental.sparse.bcoo_layout import bcoo_sum_duplicates, bcoo_transpose, bcoo_update_layout
from minijax.experimental.sparse.util import batch_sizes, inverse, is_padding, row
from minijax.ir.types import typeof
from minijax.primitives.gather_dims import GatherScatterMode
from minijax.run.arrays.array import Array


def padded(indices: Any, columns: Any, old: Sequence[int], new: Sequence[int]) -> Any:
    """`columns`, computed from `indices`, with padding (`new`) where `indices` are padding (out of bounds of `old`)."""
    padding = row(new, indices)
    return jnp.where(is_padding(indices, old)[..., None], padding, columns.astype(indices.dtype))


def bcoo_broadcast_in_dim(
    mat: BCOO, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: Any = None
) -> BCOO:
    """Broadcasts a BCOO, as `lax.broadcast_in_dim`.

    New axes before a batch axis are batch axes, those after a dense axis are dense.

    Raises NotImplementedError for new sparse axes of a size other than one, and for `sharding`.

    Example:
        >>> x = jax.experimental.sparse.BCOO.fromdense(jnp.array([0, 5]))
        >>> jax.experimental.sparse.bcoo_broadcast_in_dim(x, shape=(2, 2), broadcast_dimensions=(1,)).todense()
        Array([[0, 5],
               [0, 5]], dtype=int32)
    """
    if sharding is not None:
        raise NotImplementedError("bcoo_broadcast_in_dim: sharding")
    shape, dims = tuple(map(operator.index, shape)), tuple(map(operator.index, broadcast_dimensions))
    if len(dims) != mat.ndim:
        raise ValueError(f"bcoo_broadcast_in_dim: {broadcast_dimensions=} needs an entry for each axis of {mat.shape}")
    n, m = mat.n_batch, mat.n_batch + mat.n_sparse
    n_batch = dims[n] if n < mat.ndim else len(shape)
    n_dense = len(shape) - dims[m] if mat.n_dense else 0
    end = len(shape) - n_dense
    kept = {dim: mat.shape[axis] for axis, dim in enumerate(dims)}
    if any(shape[k] != kept.get(k, 1) for k in range(n_batch, end)):
        raise NotImplementedError("Adding sparse dimensions with lengths != 1")
    dense_dims = [n_batch + 1 + dim - end for dim in dims[m:]]
    data = lax.broadcast_in_dim(mat.data, (*shape[:n_batch], mat.nse, *shape[end:]), [*dims[:n], n_batch, *dense_dims])
    indices = lax.broadcast_in_dim(
        mat.indices, (*shape[:n_batch], mat.nse, mat.n_sparse), [*dims[:n], n_batch, n_batch + 1]
    )
    if end - n_batch != mat.n_sparse:
        columns = jnp.array(dims[n:m]) - n_batch
        indices = jnp.zeros((*indices.shape[:-1], end - n_batch), indices.dtype).at[..., columns].set(indices)
    return BCOO((data, indices), shape=shape)


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """Concatenates BCOO along a batch or sparse axis. Raises NotImplementedError for a dense axis.

    Example:
        >>> x = jax.experimental.sparse.BCOO.fromdense(jnp.array([0, 5]))
        >>> jax.experimental.sparse.bcoo_concatenate([x, x], dimension=0).todense()
        Array([0, 5, 0, 5], dtype=int32)
    """
    dimension = operator.index(dimension)
    _check_concatenation(operands, dimension)
    shape = list(operands[0].shape)
    shape[dimension] = sum(mat.shape[dimension] for mat in operands)
    n = operands[0].n_batch
    joined = _joined_along_sparse if dimension >= n else _joined_along_batch
    return BCOO(joined(operands, dimension, shape), shape=shape)


def _check_concatenation(operands: Sequence[BCOO], dimension: int) -> None:
    if not operands:
        raise ValueError("bcoo_concatenate: concatenate requires a non-empty sequences of arrays")
    if not all(isinstance(mat, BCOO) for mat in operands):
        raise ValueError(f"bcoo_concatenate: expected operands to be a sequence of BCOO arrays. Got {operands}")
    first = operands[0]
    shapes = [mat.shape for mat in operands]
    others = {(s[:dimension], s[dimension + 1 :]) for s in shapes}
    if len(others) > 1:
        raise TypeError(
            "Cannot concatenate arrays with shapes that differ in dimensions other than the one being concatenated: "
            f"concatenating along dimension {dimension} for shapes {', '.join(map(str, shapes))}."
        )
    for kind in ("batch", "dense"):
        if len({getattr(mat, f"n_{kind}") for mat in operands}) > 1:
            raise ValueError(f"bcoo_concatenate requires inputs to have matching {kind} dimensions.")
    if dimension >= first.ndim - first.n_dense:
        raise NotImplementedError("Concatenation along dense dimensions.")


def _joined_along_batch(operands: Sequence[BCOO], dimension: int, shape: Sequence[int]) -> tuple[Any, Any]:
    """The buffers of a concatenation along a batch axis; operands with fewer elements are padded."""
    nse = max(mat.nse for mat in operands)
    longer = [_with_nse(*_with_full_batches(mat), nse, mat._sparse_shape) for mat in operands]
    indices = jnp.concatenate([indices for _, indices in longer], dimension)
    return jnp.concatenate([data for data, _ in longer], dimension), indices


def _with_full_batches(mat: BCOO) -> tuple[Any, Any]:
    """Data and indices with batch axes of size one broadcast."""
    n = mat.n_batch
    data, indices = (jnp.broadcast_to(x, (*mat.shape[:n], *x.shape[n:])) for x in mat._bufs)
    return data, indices


def _with_nse(data: Any, indices: Any, nse: int, sizes: Sequence[int]) -> tuple[Any, Any]:
    """Pads data and indices to `nse` elements: zeros at `sizes`, out of bounds of the sparse axes."""
    stored, n = typeof(indices).shape[-2], typeof(indices).ndim - 2
    if stored == nse:
        return data, indices
    batch = (slice(None),) * n
    data = jnp.zeros((*data.shape[:n], nse, *data.shape[n + 1 :]), data.dtype).at[*batch, :stored].set(data)
    longer = jnp.zeros((*indices.shape[:n], nse, len(sizes)), indices.dtype).at[*batch, :stored].set(indices)
    return data, longer.at[*batch, stored:].set(jnp.array(sizes, indices.dtype))


def _joined_along_sparse(operands: Sequence[BCOO], dimension: int, shape: Sequence[int]) -> tuple[Any, Any]:
    """The buffers of a concatenation along a sparse axis: indices along it are shifted."""
    n, start = operands[0].n_batch, 0
    sizes = shape[n : n + operands[0].n_sparse]
    batch = batch_sizes([mat.data for mat in operands], n)
    data = jnp.concatenate([jnp.broadcast_to(m.data, (*batch, *m.data.shape[n:])) for m in operands], n)
    batch, indices = batch_sizes([mat.indices for mat in operands], n), []
    for mat in operands:
        moved = mat.indices.at[..., dimension - n].add(start)
        if len(sizes) == 1:  # with more columns, the others still mark padding
            moved = padded(mat.indices, moved, mat._sparse_shape, sizes)
        indices.append(jnp.broadcast_to(moved, (*batch, *moved.shape[n:])))
        start += mat.shape[dimension]
    return data, jnp.concatenate(indices, n)


def bcoo_reshape(
    mat: BCOO, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None, sharding: Any = None
) -> BCOO:
    """Reshapes a BCOO, as `lax.reshape`. Raises ValueError if it would merge batch, sparse or dense axes.

    Example:
        >>> x = jax.experimental.sparse.BCOO.fromdense(jnp.array([[0, 5], [7, 0]]))
        >>> jax.experimental.sparse.bcoo_reshape(x, new_sizes=(4,)).todense()
        Array([0, 5, 7, 0], dtype=int32)
    """
    if sharding is not None:
        raise NotImplementedError("bcoo_reshape: sharding")
    if dimensions is not None and tuple(dimensions) != tuple(range(mat.ndim)):
        mat = bcoo_transpose(mat, permutation=dimensions)
    shape = tuple(map(operator.index, new_sizes))
    if math.prod(shape) != math.prod(mat.shape):
        raise _mixed(mat, shape, "sparse and dense", f"n_dense={mat.n_dense}")
    n, m = mat.n_batch, mat.n_batch + mat.n_sparse
    n_batch = _axes_of_size(mat.shape[:n], shape, max)
    if n_batch is None:
        raise _mixed(mat, shape, "batch and sparse", f"n_batch={n}")
    n_dense = _axes_of_size(mat.shape[m:][::-1], shape[n_batch:][::-1], min)
    if n_dense is None:
        raise _mixed(mat, shape, "sparse and dense", f"n_dense={mat.n_dense}")
    if not n and not mat.n_sparse:
        n_dense = len(shape)
    elif not mat.n_sparse and not mat.n_dense:
        n_batch = len(shape)
    batch, sparse, dense = shape[:n_batch], shape[n_batch : len(shape) - n_dense], shape[len(shape) - n_dense :]
    data, indices = _with_full_batches(mat)
    data = data.reshape(*batch, mat.nse, *dense)
    indices = indices.reshape(*batch, mat.nse, mat.n_sparse)
    old = mat._sparse_shape
    if old != sparse:
        number = (indices * row(_strides(old), indices)).sum(-1, dtype=indices.dtype)
        columns = [(number // stride) % size for stride, size in zip(_strides(sparse), sparse, strict=True)]
        stacked = jnp.stack(columns, -1) if columns else indices[..., :0]
        indices = padded(indices, stacked, old, sparse)
    return BCOO((data, indices), shape=shape)


def _mixed(mat: BCOO, shape: tuple, kinds: str, counts: str) -> ValueError:
    return ValueError(
        f"bcoo_reshape: new shape cannot mix {kinds} dimensions; got shape={mat.shape} new_shape={shape} with {counts}"
    )


def _strides(sizes: Sequence[int]) -> list[int]:
    return [max(math.prod(sizes[k + 1 :]), 1) for k in range(len(sizes))]


def _axes_of_size(old: Sequence[int], new: Sequence[int], choose: Callable) -> int | None:
    """The number of leading axes of `new` with the size of `old`, chosen from all that match, or None."""
    counts = [k for k in range(1, len(new) + 1) if math.prod(new[:k]) == math.prod(old)]
    return choose(counts, default=None) if old else 0


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """Reverses the elements of a BCOO along some axes, as `lax.rev`.

    Example:
        >>> x = jax.experimental.sparse.BCOO.fromdense(jnp.array([0, 5]))
        >>> jax.experimental.sparse.bcoo_rev(x, dimensions=(0,)).todense()
        Array([5, 0], dtype=int32)
    """
    dimensions = tuple(map(operator.index, dimensions))
    if any(axis >= operand.ndim for axis in dimensions):
        raise TypeError(
            f"rev dimensions must all be less than operand ndim, got dimensions {dimensions} for operand ndim "
            f"{operand.ndim}."
        )
    batch, columns, dense = by_kind(operand, dimensions)
    data = lax.rev(operand.data, [*batch, *dense])
    indices, sizes = lax.rev(operand.indices, batch), operand._sparse_shape
    if columns:
        reverse = row([k in columns for k in range(len(sizes))], indices) == 1
        flipped = jnp.where(reverse, row(sizes, indices) - 1 - indices, indices)
        indices = padded(indices, flipped, sizes, sizes)
    return BCOO((data, indices), shape=operand.shape)


def _without_padding(data: Any, indices: Any, sizes: tuple[int, ...]) -> Any:
    """Sets the data of padding to zero, since dropping columns of the indices may make padding look stored."""
    stored = (indices < row(sizes, indices)).all(-1)
    if data.ndim > stored.ndim:
        stored = stored.reshape(*stored.shape, *[1] * (data.ndim - stored.ndim))
    return jnp.where(stored, data, 0).astype(data.dtype)


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """Removes axes of size one of a BCOO, as `lax.squeeze`.

    Example:
        >>> x = jax.experimental.sparse.BCOO.fromdense(jnp.array([[0, 5]]))
        >>> jax.experimental.sparse.bcoo_squeeze(x, dimensions=(0,)).todense()
        Array([0, 5], dtype=int32)
    """
    dimensions = tuple(canonical_axis(axis, arr.ndim) for axis in dimensions)
    if any(arr.shape[axis] != 1 for axis in dimensions):
        raise ValueError(
            f"cannot select an axis to squeeze out which has size not equal to one, got shape={arr.shape} and "
            f"{dimensions=}"
        )
    batch, columns, dense = by_kind(arr, dimensions)
    data, indices = arr._bufs
    if columns:
        data = _without_padding(data, indices, arr._sparse_shape)
        indices = indices[..., list(remaining(arr.n_sparse, columns))]
    shape = tuple(arr.shape[axis] for axis in remaining(arr.ndim, dimensions))
    return BCOO((lax.squeeze(data, (*batch, *dense)), lax.squeeze(indices, batch)), shape=shape)


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """Computes the sum of a BCOO over some axes.

    Only dense axes are added; the other elements remain stored, with repeated indices.

    Example:
        >>> x = jax.experimental.sparse.BCOO.fromdense(jnp.array([[0, 5], [7, 0]]))
        >>> jax.experimental.sparse.bcoo_reduce_sum(x, axes=(0,)).todense()
        Array([7, 5], dtype=int32)
    """
    axes = tuple(sorted(set(map(operator.index, axes))))
    if not all(0 <= axis < mat.ndim for axis in axes):
        raise AssertionError(f"bcoo_reduce_sum: invalid {axes=} for {mat.ndim} dimensions")
    batch, columns, dense = by_kind(mat, axes)
    data, indices = mat.data.sum(tuple(dense), dtype=mat.dtype), mat.indices
    if columns:
        data, kept = _without_padding(data, indices, mat._sparse_shape), list(remaining(mat.n_sparse, columns))
        indices = indices[..., kept] if kept else jnp.zeros((*indices.shape[:-1], 0), indices.dtype)
    if batch:
        data, indices = (_merged_into_nse(mat, x, batch) for x in (data, indices))
    return BCOO((data, indices), shape=[mat.shape[axis] for axis in remaining(mat.ndim, axes)])


def _merged_into_nse(mat: BCOO, x: Any, batch: Sequence[int]) -> Any:
    """A buffer of `mat` with some batch axes merged into the axis of stored elements."""
    n, rest = mat.n_batch, remaining(mat.n_batch, batch)
    x = jnp.broadcast_to(x, (*[mat.shape[k] if k in batch else x.shape[k] for k in range(n)], *x.shape[n:]))
    x = jnp.transpose(x, [*rest, *batch, *range(n, x.ndim)])
    count = math.prod(mat.shape[axis] for axis in batch)
    return x.reshape(*x.shape[: len(rest)], count * mat.nse, *x.shape[n + 1 :])


def bcoo_slice(
    mat: BCOO, *, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> BCOO:
    """Slices a BCOO, as `lax.slice`. Elements outside become padding; `nse` shrinks if the slice has fewer elements.

    Example:
        >>> x = jax.experimental.sparse.BCOO.fromdense(jnp.array([0, 5, 7]))
        >>> jax.experimental.sparse.bcoo_slice(x, start_indices=(1,), limit_indices=(3,)).todense()
        Array([5, 7], dtype=int32)
    """
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
    """Slices a BCOO, as `lax.dynamic_slice`: start indices are clamped to keep the slice in bounds.

    Example:
        >>> x = jax.experimental.sparse.BCOO.fromdense(jnp.array([0, 5, 7]))
        >>> jax.experimental.sparse.bcoo_dynamic_slice(x, [1], (2,)).todense()
        Array([5, 7], dtype=int32)
    """
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

    Example:
        >>> from minijax.experimental import sparse
        >>> x = sparse.BCOO.fromdense(jnp.array([[1, 0], [0, 4]]))
        >>> row = jax.lax.GatherDimensionNumbers((0,), (0,), (0,))
        >>> sparse.bcoo_gather(x, jnp.array([1]), row, (1, 2)).todense()
        Array([0, 4], dtype=int32)
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
