"""Reads and updates arrays at an index by slice, gather and scatter operations."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from minijax.base import dtypes, errors
from minijax.base.symbolic.dimension import is_dim, is_int
from minijax.indexing.language import Index, Options, Slot, Span, Window, index_dtype, keeps_axis
from minijax.indexing.plan import Plan, plan
from minijax.ir.types import ShapedArray, typeof
from minijax.partition.explicit import typed_sharding
from minijax.primitives import counting, gather_dims, gather_scatter, moving, structural
from minijax.primitives.as_array import as_array
from minijax.primitives.convert import as_type, convert, scalar_as
from minijax.primitives.dynamic_slice import dynamic_slice
from minijax.primitives.elementwise import add, lt, mul, select_n
from minijax.primitives.promote import promote_dtypes
from minijax.primitives.sharding import reshard_like
from minijax.run.arrays.array import Array

# ---- reading -----------------------------------------------------------------------------------------


def read(x: Any, operands: Sequence, index: Index, options: Options, steps_gather: bool = False) -> Any:
    """The elements of `x` at a parsed index; `steps_gather` uses a gather for slices with a step."""
    mode = None if options.mode is None else gather_dims.GatherScatterMode.from_any(options.mode)
    if index.is_whole():
        return _adapt_axes(x if isinstance(x, Array) else as_array(x), index)
    if mode in (gather_dims.FILL_OR_DROP, gather_dims.ONE_HOT) or index.has_arrays():
        return _gathered(x, operands, index, options)
    if mode is gather_dims.CLIP:
        wraps = options.wrap_negative_indices
        index = index._replace(entries=tuple(_clipped(e, index.shape[a], wraps) for a, e in index.places()))
    has_steps = any(e.step not in (1, -1) for _, e in index.on_axes() if keeps_axis(e))
    if _is_static(index, options.wrap_negative_indices) and not (steps_gather and has_steps):
        return _adapt_axes(_sliced(x, index), index)
    if has_steps or _slices_symbolic_array(index):
        return _gathered(x, operands, index, options)
    return _adapt_axes(_dynamic_sliced(x, operands, index, options), index)


def _clipped(e: Any, size: Any, wraps: bool) -> Any:
    if type(e) is not int or not (is_int(size) and size):
        return e
    return min(max(e + size * (wraps and e < 0), 0), size - 1)


def _is_static(index: Index, wraps: bool) -> bool:
    """Returns whether all sizes are known, and all entries are slices or ints in bounds: `lax.slice` can read it."""

    def is_static_entry(entry: Any, size: int) -> bool:
        return type(entry) is Span or type(entry) is int and (-size if wraps else 0) <= entry < size

    return all(map(is_int, index.shape)) and all(is_static_entry(e, index.shape[a]) for a, e in index.on_axes())


def _slices_symbolic_array(index: Index) -> bool:
    """Returns whether a slice selects a part of an axis of an array with symbolic dimensions."""
    if all(map(is_int, index.shape)):
        return False
    return any(keeps_axis(e) and not e.is_whole(index.shape[a]) for a, e in index.on_axes())


def _sliced(x: Any, index: Index) -> Any:
    windows = [
        e.positive(index.shape[a]) if type(e) is Span else (e % index.shape[a], e % index.shape[a] + 1, 1)
        for a, e in index.on_axes()
    ]
    if all(w == (0, n, 1) for w, n in zip(windows, index.shape, strict=True)):
        return x
    starts, limits, strides = zip(*windows, strict=True)
    return structural.slice(x, starts, limits, None if all(s == 1 for s in strides) else strides)


def _dynamic_sliced(x: Any, operands: Sequence, index: Index, options: Options) -> Any:
    entries = [e for _, e in index.on_axes()]
    if len(entries) == 1 and type(entries[0]) is Slot:
        (slot,) = entries
        wraps = options.wrap_negative_indices and not slot.ready
        return dynamic_slice(x, [operands[slot.place]], [1], allow_negative_indices=wraps)
    # As in jax, one number is an index of the default integer type.
    dtype = dtypes.scalar_dtype(int) if list(map(type, entries)) == [int] else index_dtype(index.shape)
    starts = [_start(e, n, operands, dtype) for e, n in zip(entries, index.shape, strict=True)]
    sizes = [e.size if keeps_axis(e) else 1 for e in entries]
    if options.wrap_negative_indices and not all(type(e) is not int and e.ready for e in entries):
        starts = [from_front(s, n) for s, n in zip(starts, index.shape, strict=True)]
    return dynamic_slice(x, starts, sizes, allow_negative_indices=False)


def _start(e: Any, size: int, operands: Sequence, dtype: np.dtype) -> Any:
    if type(e) in (Slot, Window):
        return as_type(operands[e.place], dtype)
    start = e if type(e) is int else e.positive(size)[0]
    return scalar_as(start, dtype)


def _adapt_axes(x: Any, index: Index) -> Any:
    """Adapts the axes of a slice to the index: reverses some, drops those of ints, adds those of None."""
    on_axes = index.on_axes()
    reversed_axes = tuple(a for a, e in on_axes if type(e) is Span and e.step < 0)
    squeezed_axes = tuple(a for a, e in on_axes if not keeps_axis(e))
    x = structural.rev(x, reversed_axes) if reversed_axes else x
    x = structural.squeeze(x, squeezed_axes) if squeezed_axes else x
    remaining = [e for e in index.entries if e is None or keeps_axis(e)]
    return moving.expand_dims(x, tuple(i for i, e in enumerate(remaining) if e is None))


def from_front(i: Any, size: int) -> Any:
    """A nonnegative index for one that may count from the end; a NumPy value is compared eagerly."""
    dtype = typeof(i).dtype
    if dtypes.issubdtype(dtype, np.unsignedinteger):
        return i
    narrow = np.dtype(np.int32) if is_int(size) and size > dtypes.iinfo(dtype).max else dtypes.available(dtype, "dtype")
    if narrow is not dtype:
        i, dtype = convert(i, narrow), narrow
    size = size if is_int(size) and typeof(i).weak_type else scalar_as(size, dtype)
    below = i < 0 if isinstance(i, np.ndarray) and is_int(size) else lt(i, dtype.type(0))
    return select_n(below, i, add(i, size))


# ---- index vectors -----------------------------------------------------------------------------------


def _index_vectors(p: Plan, shape: tuple, operands: Sequence, wraps: bool) -> Any:
    """The index vectors of a plan, as the last axis of one array."""
    dtype = index_dtype(shape)
    members = {axis: _member(e, shape[axis], operands, wraps) for axis, e in p.members}
    columns = []
    for part in p.parts:
        if p.group and part.axis == p.group[0][0]:
            members = _broadcast_together(members, p.group_shape, dtype)
        column = members[part.axis] if part.axis in members else _column(part.entry, operands, dtype)
        column = scalar_as(column, dtype) if is_dim(column) else column
        columns.append(_as_index(column, dtype, typeof(column).ndim))
    if not columns:
        return np.zeros(0, dtype)
    wide = (*p.index_shape, 1)
    columns = [moving.broadcast_in_dim(c, wide, part.dims) for c, part in zip(columns, p.parts, strict=True)]
    return structural.concatenate(columns, len(p.index_shape))


def _member(e: int | Slot, size: int, operands: Sequence, wraps: bool) -> Any:
    if type(e) is int:
        return e + size if wraps and e < 0 else e
    return from_front(operands[e.place], size) if wraps and not e.ready else operands[e.place]


def _broadcast_together(members: dict[int, Any], shape: tuple, dtype: np.dtype) -> dict[int, Any]:
    ranks = [typeof(v).ndim for v in members.values()]
    wide = [moving.broadcast_to_shape(v, shape) for v in members.values()]
    columns = [_as_index(v, dtype, rank) for v, rank in zip(wide, ranks, strict=True)]
    return dict(zip(members, columns, strict=True))


def _as_index(x: Any, dtype: Any, rank: int) -> Any:
    """`x` with this dtype; an array whose `rank` was above 0 may stay weakly typed."""
    return x if rank and isinstance(x, Array) and typeof(x).dtype == dtype else as_type(x, dtype)


def _column(e: Span | Window, operands: Sequence, dtype: np.dtype) -> Any:
    """The start of a slice, a scalar; if its step is not 1, the ascending vector of its indices."""
    start = scalar_as(e.start, dtype) if type(e) is Span else as_type(operands[e.place], dtype)
    if e.step == 1:
        return start
    indices = add(start, mul(scalar_as(e.step, dtype), counting.iota(dtype, e.size)))
    return structural.rev(indices, (0,)) if e.step < 0 else indices


# ---- gather and scatter ------------------------------------------------------------------------------


def _flags(p: Plan, options: Options) -> dict:
    """The flags of the gather: index vectors made only of scalars and slices are sorted and unique."""
    return dict(
        indices_are_sorted=not p.group or options.indices_are_sorted,
        unique_indices=not p.group or options.unique_indices,
    )


def _gathered(x: Any, operands: Sequence, index: Index, options: Options) -> Any:
    p = plan(index)
    vectors = _index_vectors(p, index.shape, operands, options.wrap_negative_indices)
    x = moving.expand_dims(x, index.expanded)
    if prod(p.gathered) == 0:
        aval = typeof(x)
        return structural.blank(p.result, aval.dtype, aval.weak_type)
    mode = gather_dims.PROMISE_IN_BOUNDS if options.mode is None else options.mode
    elements = gather_scatter.gather(
        x, vectors, p.numbers, p.slice_sizes, mode=mode, fill_value=options.fill_value, **_flags(p, options)
    )
    elements = structural.rev(elements, p.reversed_axes) if p.reversed_axes else elements
    return moving.expand_dims(elements, p.new_axes)


def scatter(x: Any, operands: Sequence, values: Any, index: Index, options: Options, update: Callable) -> Any:
    """Updates the elements of `x` at an index by `update`, a scatter of lax."""
    aval, p = typeof(x), plan(index)
    vectors = _index_vectors(p, index.shape, operands, options.wrap_negative_indices)
    if prod(p.gathered) == 0:
        return x
    mode = gather_dims.FILL_OR_DROP if options.mode is None else gather_dims.GatherScatterMode.from_any(options.mode)
    values = structural.blank(p.result, aval.dtype, aval.weak_type) if values is None else values
    x, values = _promoted(x, values)
    values = _broadcast_values(values, _type_of_elements(aval, p, index))
    values = structural.squeeze(values, p.new_axes) if p.new_axes else values
    values = structural.rev(values, p.reversed_axes) if p.reversed_axes else values
    numbers = gather_dims.scatter_numbers(p.numbers)
    x = moving.expand_dims(x, index.expanded)
    x = update(x, vectors, values, numbers, mode=mode, **_flags(p, options))
    x = structural.squeeze(x, index.expanded) if index.expanded else x
    return convert(x, aval.dtype, aval.weak_type)


def _promoted(x: Any, values: Any) -> Sequence:
    aval, of_values = typeof(x), typeof(values)
    if dtypes.is_extended(aval.dtype):
        if of_values.dtype != aval.dtype:
            raise TypeError(f"at[].set: an array of {aval.dtype} cannot take values of {of_values.dtype}")
        return x, values
    if type(values) in (bool, int) and np.issubdtype(aval.dtype, np.integer):
        values = convert(values, aval.dtype)
        of_values = typeof(values)
    dtype, _ = dtypes.promote((aval.dtype, False), dtypes.typed(values))
    if dtype != aval.dtype:
        errors.warn(
            f"scatter inputs have incompatible types: cannot safely cast value from dtype={of_values.dtype} to "
            f"dtype={aval.dtype} with jax_numpy_dtype_promotion={dtypes.config.state().numpy_dtype_promotion}. In "
            "future JAX releases this will result in an error.",
            FutureWarning,
        )
    return promote_dtypes(x, values)


def _type_of_elements(aval: ShapedArray, p: Plan, index: Index) -> ShapedArray:
    """The type of the elements at an index of a value of type `aval`; axes selected entirely keep their sharding."""
    if not aval.has_mesh or any(aval.reduction_state):
        return ShapedArray(p.result, aval.dtype)
    entries = list(aval.entries)
    for axis in sorted(index.expanded):
        entries.insert(axis, None)
    kept = [
        e if p.slice_sizes[axis] == index.shape[axis] else None
        for axis, e in enumerate(entries)
        if axis not in p.collapsed
    ]
    places = dict(zip(p.offset_dims, kept, strict=True))
    found = [places.get(i) for i in range(len(p.gathered))]
    for axis in p.new_axes:
        found.insert(axis, None)
    return ShapedArray(p.result, aval.dtype, sharding=typed_sharding(aval.own_sharding.mesh, tuple(found)))


def _broadcast_values(values: Any, aval: ShapedArray) -> Any:
    shape = aval.shape
    have = typeof(values).shape
    if len(have) > len(shape):
        raise ValueError(f"Cannot broadcast to shape with fewer dimensions: arr_shape={have} shape={shape}")
    if any(n not in (1, m) for n, m in zip(have, shape[len(shape) - len(have) :], strict=True)):
        raise ValueError(
            f"Incompatible types for broadcasting: at[] was given values of type={typeof(values).str_short()} and "
            f"requested type={ShapedArray(shape, typeof(values).dtype).str_short()}. Pass a scalar or values of that "
            "shape, or index as many elements."
        )
    values = moving.broadcast_to_shape(values, shape, aval.own_sharding)
    return values if any(typeof(values).reduction_state) else reshard_like(values, aval)
