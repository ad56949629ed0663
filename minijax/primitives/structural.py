"""Structural operations: slices, padding, joining and splitting, filled arrays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import prod
from operator import index
from typing import Any, cast

import numpy as np

from minijax.base import dims, dtypes
from minijax.base.dims import as_index
from minijax.base.dtypes import DTypeLike
from minijax.base.errors import ShardingTypeError
from minijax.base.symbolic.dimension import SymbolicDim, max_dim
from minijax.ir import result_types, state
from minijax.ir.primitive import FirstOrder, Folding, Linear1, fold_as, is_undefined_primal
from minijax.ir.types import ShapedArray, Zero, is_value, typeof, value_kinds
from minijax.partition.explicit import common_sharding, entries_of, sharding_in_type
from minijax.partition.shardings import NamedSharding, Sharding
from minijax.primitives import moving
from minijax.primitives.convert import convert, scalar_as
from minijax.primitives.device import place_like
from minijax.primitives.elementwise import select, sub
from minijax.primitives.families import check_same_dtypes, reduce_scalars_like, scalar_like
from minijax.primitives.sharding import cotangent_sharding, replicated_over_mesh
from minijax.primitives.zeros import instantiate
from minijax.run.arrays import transfer
from minijax.run.arrays.array import Array, ArrayLike

_Shape = tuple[int, ...]
_INT32 = np.dtype(np.int32)


def inserted(items: Sequence, at: int, item: Any) -> tuple:
    """Inserts `item` into `items` before position `at`."""
    return (*items[:at], item, *items[at:])


def resized(shape: _Shape, axis: int, size: int) -> _Shape:
    """Replaces the size of one axis in a shape."""
    return (*shape[:axis], size, *shape[axis + 1 :])


def shifted(axes: Sequence[int], by: int = 1) -> _Shape:
    """The numbers of axes after `by` axes are inserted in front."""
    return tuple(a + by for a in axes)


def operand_type(x: Any) -> ShapedArray:
    """The type of an operand of a transpose rule: of a `UndefinedPrimal`, or of a known value."""
    return x.aval if is_undefined_primal(x) else typeof(x)


class Squeeze(FirstOrder, Linear1):
    """Drops axes of size 1."""

    moves_data = True
    name = "squeeze"

    def infer(self, x, *, dimensions):
        return [ShapedArray(tuple(x.shape[i] for i in moving.other_axes(x.ndim, dimensions)), x.dtype, x.weak_type)]

    def sharding_rule(self, mesh, avals, outs, *, dimensions):
        return result_types.sharded_without_axes(self, mesh, avals, outs, axes=dimensions)

    def lower(self, e, ins, outs, x, *, dimensions):
        return [e.reshape(x, ins[0], outs[0])]

    def transposed(self, ct, aval, *, dimensions):
        return moving.expand_dims(ct, dimensions)

    def batch(self, axis, operands, dims_in, *, dimensions):
        return [squeeze(moving.move_axis(operands[0], dims_in[0], 0), shifted(dimensions))], [0]


class SliceAt(FirstOrder):
    """A window of given sizes at given starts; the starts are clamped to keep it in bounds."""

    moves_data = True
    name = "dynamic_slice"

    def infer(self, x, *starts, slice_sizes):
        if len(starts) != x.ndim or len(slice_sizes) != x.ndim:
            raise TypeError(
                f"dynamic_slice: {len(starts)} starts, {len(slice_sizes)} sizes for operand of rank {x.ndim}"
            )
        if any(s < 0 for s in slice_sizes):
            raise TypeError(f"{self.name}: slice_sizes must not be negative, got {slice_sizes}")
        if any(s > n for s, n in zip(slice_sizes, x.shape, strict=True)):
            raise TypeError(f"{self.name}: slice_sizes {slice_sizes} exceed the operand's shape {x.shape}. Take fewer.")
        check_starts(self.name, starts)
        return [ShapedArray(slice_sizes, x.dtype, x.weak_type)]

    sharding_rule = result_types.sharded_as_first

    def reduction_state(self, avals, params):
        return result_types.state_of_elements(self, avals[:1], params)

    def lower(self, e, ins, outs, x, *starts, slice_sizes):
        if not starts:
            return [x]  # MLIR cannot read the operation without starts
        return [e.dynamic_slice(x, starts, ins[0], ins[1:], outs[0])]


def check_starts(name: str, starts: Sequence[ShapedArray]) -> None:
    """Raises TypeError unless the starts are scalar integers of one dtype."""
    if any(i.shape for i in starts):
        raise TypeError(f"{name}: start_indices must be scalars, got {starts}")
    kinds = {i.dtype for i in starts}
    if len(kinds) > 1 or not all(dtypes.issubdtype(k, np.integer) for k in kinds):
        names = ", ".join(i.dtype.name for i in starts)
        raise TypeError(f"index arguments to {name} must be integers of the same type, got: {names}")


slice_at_p = SliceAt()


class Slice(moving.AxisWise, FirstOrder, Linear1):
    """The elements from starts to limits, by strides."""

    moves_data = True
    name = "slice"
    entries = dict(start_indices=0, limit_indices=moving.WHOLE, strides=1)

    def infer(self, x, *, start_indices, limit_indices, strides):
        _check_slice(x, start_indices, limit_indices, strides)
        sizes = zip(start_indices, limit_indices, strides or (1,) * x.ndim, strict=True)
        shape = tuple(max_dim(0, -(-(limit - start) // stride)) for start, limit, stride in sizes)
        return [ShapedArray(shape, x.dtype, x.weak_type)]

    sharding_rule = result_types.sharded_as_first

    def at_once(self, x, *, start_indices, limit_indices, strides):
        params = dict(start_indices=start_indices, limit_indices=limit_indices, strides=strides)
        ((out,), _) = self.typed([typeof(x)], params)
        # Without strides the starts are operands, to compile one program for all starts.
        if strides is None:
            return slice_at_p.bind_all([x, *start_indices], dict(slice_sizes=out.shape))
        return strided_slice_p.bind_all([x], params)

    def lower(self, e, ins, outs, x, *, start_indices, limit_indices, strides):
        return [e.slice(x, ins[0], outs[0], start_indices, limit_indices, strides)]

    def transposed(self, ct, aval, *, start_indices, limit_indices, strides):
        strides = strides or (1,) * aval.ndim
        config = []
        for start, size, count, stride in zip(start_indices, aval.shape, typeof(ct).shape, strides, strict=True):
            end = start + (count - 1) * stride + 1 if count else start
            config.append((start, size - end, stride - 1))
        return pad(ct, scalar_like(ct, 0), config)


class StridedSlice(Slice):
    """A slice that is compiled with its starts as constants."""

    at_once: Any = None


def _check_slice(x, starts, limits, strides):
    for name, values in (("start_indices", starts), ("limit_indices", limits), ("strides", strides)):
        if values is not None and len(values) != x.ndim:
            raise TypeError(f"slice: {name} {values} must have one entry per axis of operand shape {x.shape}")
    moving.check_nonnegative("slice start_indices", starts)
    if any(limit > size for limit, size in zip(limits, x.shape, strict=True)):
        raise TypeError(
            f"slice: limit_indices {limits} exceed the operand's shape {x.shape}. Lower them; `x[start:limit]` clips."
        )
    if any(limit < start for start, limit in zip(starts, limits, strict=True)):
        raise TypeError(f"slice: limit_indices {limits} are less than start_indices {starts}")
    if strides is not None and any(s <= 0 for s in strides):
        raise TypeError(f"slice strides must be positive, got {strides}")


class JointlyLinear(FirstOrder):
    """An operation that is jointly linear in all its operands, except for indices."""

    reduction_state: Any = result_types.state_of_first

    def jvp(self, primals, tangents, **params):
        outs = self.bind_all(primals, params)
        if all(type(t) is Zero for t in tangents):
            return outs, [Zero.from_primal_value(out) for out in outs]
        operands = [x if _is_integer_tangent(t) else instantiate(t) for x, t in zip(primals, tangents, strict=True)]
        return outs, self.bind_all(operands, params)

    def transpose(self, cts, *operands, **params):
        if all(type(ct) is Zero for ct in cts):
            return [Zero(x.aval) if is_undefined_primal(x) else None for x in operands]
        cts = list(map(instantiate, cts))
        return self.transposed(cts if self.multiple_results else cts[0], *operands, **params)

    def transposed(self, ct: Any, *operands: Any, **params: Any) -> Sequence:
        """The cotangents of `UndefinedPrimal` operands, and None for others; `ct` is a list for several results."""
        raise NotImplementedError


def _is_integer_tangent(tangent: Any) -> bool:
    """Returns whether a tangent belongs to an operand of integers."""
    return type(tangent) is Zero and tangent.aval.dtype == dtypes.float0


class Pad(JointlyLinear):
    """Pads with a scalar before, after and between elements; negative padding removes elements."""

    moves_data = True
    name = "pad"

    def bind(self, *operands, **params):
        return super().bind(*(reduce_scalars_like(operands) or operands), **params)

    def infer(self, x, value, *, padding_config):
        if x.dtype != value.dtype:
            raise TypeError(
                f"pad: operand ({x.dtype.name}) and padding_value ({value.dtype.name}) must be same dtype. Convert the "
                f"value: `jnp.{x.dtype.name}(value)`."
            )
        if value.shape:
            raise ValueError(f"pad: padding_value must be a scalar, got shape {value.shape}")
        if len(padding_config) != x.ndim:
            raise ValueError(f"pad: padding_config {padding_config} needs one entry per axis of {x.shape}")
        if any(between < 0 for _, _, between in padding_config):
            raise ValueError(f"pad: interior padding in padding_config must be nonnegative, got {padding_config}")
        shape = tuple(
            low + high + size + (max_dim(0, size - 1) * between if between else 0)
            for size, (low, high, between) in zip(x.shape, padding_config, strict=True)
        )
        if any(size < 0 for size in shape):
            raise ValueError(
                f"pad: Dimension size after padding is not at least 0: padding_config {padding_config} removes "
                f"more elements than an axis of shape {x.shape} has"
            )
        return [ShapedArray(shape, x.dtype, x.weak_type and value.weak_type)]

    sharding_rule = result_types.sharded_as_first

    def lower(self, e, ins, outs, x, value, *, padding_config):
        low, high, between = zip(*padding_config, strict=True) if padding_config else ((), (), ())
        return [e.pad(x, value, ins[0], outs[0], low, high, between)]

    def transposed(self, ct, x, value, *, padding_config):
        inner = pad(ct, scalar_like(ct, 0), [(-low, -high, 0) for low, high, _ in padding_config])
        ct_x = slice(inner, (0,) * len(padding_config), typeof(inner).shape, tuple(c + 1 for _, _, c in padding_config))
        if not is_undefined_primal(value):
            return [ct_x, None]
        axes = tuple(range(len(padding_config)))
        sums = [moving.reduce_sum_p.bind(v, axes=axes, out_sharding=None) for v in (ct, ct_x)]
        return [ct_x if is_undefined_primal(x) else None, sub(*sums)]

    def batch(self, axis, operands, dims_in, *, padding_config):
        (x, value), (d, value_dim) = operands, dims_in
        if d is None:
            x, d = moving.broadcast_axis(x, axis, 0), 0
        config = inserted(padding_config, d, (0, 0, 0))
        if value_dim is None:
            return [pad(x, value, config)], [d]
        padded = pad(x, scalar_like(x, 0), config)
        inside = pad(moving.filled(typeof(x).shape, np.True_), np.False_, config)
        if typeof(padded).ndim > 1:
            value = moving.broadcast_in_dim(value, typeof(padded).shape, (d,))
        return [select(inside, padded, value)], [d]


class Join(JointlyLinear):
    """An operation that joins its operands along an axis."""

    def transposed(self, ct, *operands, **params):
        parts = self.parts(ct, [operand_type(x).shape for x in operands], **params)
        return [part if is_undefined_primal(x) else None for part, x in zip(parts, operands, strict=True)]

    def parts(self, ct: Any, shapes: Sequence[_Shape], **params: Any) -> Sequence:
        """The cotangents of operands of these shapes."""
        raise NotImplementedError


class Concatenate(Join):
    """Joins arrays along an existing axis."""

    moves_data = True
    defaults_to_context_mesh = True
    name = "concatenate"

    def infer(self, *xs, dimension):
        shapes = [x.shape for x in xs]
        if len({len(s) for s in shapes}) > 1:
            raise TypeError(
                f"Cannot concatenate arrays with different numbers of dimensions: got {_listed(shapes)}. Reshape one, "
                "or add axes with `jnp.expand_dims`."
            )
        if not 0 <= dimension < xs[0].ndim:
            raise TypeError(f"concatenate: dimension {dimension} out of bounds for shapes {_listed(shapes)}")
        if len({s[:dimension] + s[dimension + 1 :] for s in shapes}) > 1:
            raise TypeError(
                "Cannot concatenate arrays with shapes that differ in dimensions other than the one being "
                f"concatenated: concatenating along dimension {dimension} for shapes {_listed(shapes)}. Slice or pad "
                "them to equal sizes, or join them along another dimension."
            )
        check_same_dtypes(self.name, *xs)
        shape = resized(shapes[0], dimension, sum(s[dimension] for s in shapes))
        return [ShapedArray(shape, xs[0].dtype, all(x.weak_type for x in xs))]

    sharding_rule = result_types.sharded_as_all

    def lower(self, e, ins, outs, *xs, dimension):
        return [e.concatenate(xs, ins, outs[0], dimension)]

    def parts(self, ct, shapes, *, dimension):
        return split(ct, [s[dimension] for s in shapes], dimension)

    def batch(self, axis, operands, dims_in, *, dimension):
        fronted = [moving.axis_to_front(x, d, axis) for x, d in zip(operands, dims_in, strict=True)]
        return [concatenate(fronted, dimension + 1)], [0]


def _listed(shapes):
    return ", ".join(map(str, shapes))


class Stack(Join):
    """Joins arrays of one shape along a new axis."""

    defaults_to_context_mesh = True
    name = "stack"

    def infer(self, *xs, axis):
        if len({x.shape for x in xs}) > 1:
            raise ValueError(f"stack: arrays must have the same shape, got {_listed(x.shape for x in xs)}")
        check_same_dtypes(self.name, *xs)
        return [ShapedArray(inserted(xs[0].shape, axis, len(xs)), xs[0].dtype, all(x.weak_type for x in xs))]

    def sharding_rule(self, mesh, avals, outs, *, axis):
        return [inserted(common_sharding(avals).entries, axis, None)]

    def lower(self, e, ins, outs, *xs, axis):
        single = ShapedArray(inserted(ins[0].shape, axis, 1), ins[0].dtype)
        axes = moving.other_axes(single.ndim, (axis,))
        parts = [e.broadcast_in_dim(x, ins[0], single, axes) for x in xs]
        return parts if len(parts) == 1 else [e.concatenate(parts, [single] * len(parts), outs[0], axis)]

    def parts(self, ct, shapes, *, axis):
        return unstack_p.bind(ct, axis=axis)

    def batch(self, axis_data, operands, dims_in, *, axis):
        (d, *rest) = dims_in
        if d is None or any(other != d for other in rest):
            size, pairs = axis_data.size, zip(operands, dims_in, strict=True)
            operands = [moving.axis_to_front(x, e, size) for x, e in pairs]
            return [self.bind(*operands, axis=axis + 1)], [0]
        if axis <= d:
            return [self.bind(*operands, axis=axis)], [d + 1]
        return [self.bind(*operands, axis=axis + 1)], [d]


class Split(moving.AxisWise, JointlyLinear):
    """Splits an array into pieces of given sizes along an axis."""

    constrain_results = False  # `lower` constrains each piece
    moves_data = True
    multiple_results = True
    name = "split"
    numbers = ("axis",)

    def infer(self, x, *, sizes, axis):
        return [ShapedArray(resized(x.shape, axis, s), x.dtype, x.weak_type) for s in sizes]

    sharding_rule = result_types.sharded_as_first

    def lower(self, e, ins, outs, x, *, sizes, axis):
        (have,) = ins
        names, ends = [], [0, *accumulate(sizes)]
        for out, (start, end) in zip(outs, pairwise(ends), strict=True):
            names.append(e.slice(x, have, out, *_bounds_along(have.shape, axis, start, end)))
            names[-1:] = names[-1:] if e.explicit is None else e.constrained_by_type(names[-1:], [out])
        return names

    def transposed(self, cts, x, *, sizes, axis):
        return [concatenate(cts, axis)]


def _bounds_along(shape: _Shape, axis: int, start: int, limit: int) -> tuple[_Shape, _Shape]:
    """The starts and limits of a slice from start to limit along one axis."""
    starts = tuple(start if i == axis else 0 for i in range(len(shape)))
    return starts, tuple(limit if i == axis else n for i, n in enumerate(shape))


class Unstack(moving.AxisWise, JointlyLinear):
    """Splits an array into slices along an axis, and drops that axis."""

    multiple_results = True
    name = "unstack"
    numbers, drops = ("axis",), "axis"

    def infer(self, x, *, axis):
        out = ShapedArray(x.shape[:axis] + x.shape[axis + 1 :], x.dtype, x.weak_type)
        return [out] * x.shape[axis]

    def sharding_rule(self, mesh, avals, outs, *, axis):
        if avals[0].entries[axis] is not None:
            raise ShardingTypeError(
                f"unstack operand cannot be sharded on the unstacking axis, which is {axis}, but it is {avals[0].text}"
            )
        return [entries_of(avals[0].entries, moving.other_axes(avals[0].ndim, (axis,)))] * len(outs)

    def lower(self, e, ins, outs, x, *, axis):
        (have,) = ins
        single = have.update(shape=resized(have.shape, axis, 1))
        return [
            e.reshape(e.slice(x, have, single, *_bounds_along(have.shape, axis, k, k + 1)), single, out)
            for k, out in enumerate(outs)
        ]

    def transposed(self, cts, x, *, axis):
        return [stack_p.bind(*cts, axis=axis)]


class Rev(moving.AxisWise, FirstOrder, Linear1):
    """Reverses the order of elements along some axes."""

    moves_data = True
    name = "rev"
    reduction_state = None
    numbers = ("dimensions",)

    def infer(self, x, *, dimensions):
        if len(set(dimensions)) != len(dimensions):
            raise TypeError(f"rev: dimensions must be unique, got {dimensions}")
        moving.check_nonnegative("rev dimensions", dimensions)
        if any(d >= x.ndim for d in dimensions):
            raise TypeError(f"rev: dimensions {dimensions} out of bounds for rank {x.ndim}")
        return [x]

    def lower(self, e, ins, outs, x, *, dimensions):
        return [e.reverse(x, ins[0], dimensions)]

    def transposed(self, ct, aval, *, dimensions):
        return rev(ct, dimensions)


class Tile(moving.AxisWise, FirstOrder, Linear1):
    """Repeats the operand `reps[i]` times along axis i."""

    name = "tile"
    same_memory_space = False
    entries = dict(reps=1)

    def infer(self, x, *, reps):
        if len(reps) != x.ndim:
            raise TypeError(f"tile: reps {reps} needs one entry per axis of shape {x.shape}")
        moving.check_nonnegative("tile reps", reps)
        return [x.update(shape=tuple(r * s for r, s in zip(reps, x.shape, strict=True)))]

    def sharding_rule(self, mesh, avals, outs, *, reps):
        for i, (reps_of_axis, entry) in enumerate(zip(reps, avals[0].entries, strict=True)):
            if entry is not None and reps_of_axis != 1:
                raise ShardingTypeError(
                    f"tile: the operand {avals[0].str_short()} cannot be sharded on dimension {i}, where its "
                    f"tiling is non-trivial: reps={reps}"
                )
        return None

    def lower(self, e, ins, outs, x, *, reps):
        (have,) = ins
        pairs = list(zip(reps, have.shape, strict=True))
        interleaved = have.update(shape=tuple(n for _, s in pairs for n in (1, s)))
        copied = have.update(shape=tuple(n for pair in pairs for n in pair))
        x = e.reshape(x, have, interleaved)
        return [e.reshape(e.broadcast_in_dim(x, interleaved, copied, tuple(range(interleaved.ndim))), copied, outs[0])]

    def transposed(self, ct, aval, *, reps):
        interleaved = tuple(n for pair in zip(reps, aval.shape, strict=True) for n in pair)
        sharding = cotangent_sharding(aval)
        if sharding is not None:
            entries = [e for entry in aval.entries for e in (None, entry)]
            sharding = sharding.update(spec=sharding.spec.update(partitions=entries))
        return moving.sum_axes(moving.reshape_to(ct, interleaved, sharding), tuple(range(0, len(interleaved), 2)))


squeeze_p, slice_p, strided_slice_p, pad_p = Squeeze(), Slice(), StridedSlice(), Pad()
concatenate_p, stack_p, split_p, unstack_p = Concatenate(), Stack(), Split(), Unstack()
rev_p, tile_p = Rev(), Tile()
fold_as(Folding.MOVE, squeeze_p, rev_p, slice_p, strided_slice_p)
fold_as(Folding.EXACT, concatenate_p, slice_at_p)


# ---- slices and padding -----------------------------------------------------------------------------


def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Drops the axes `dimensions`; raises ValueError unless they are of size 1.

    Example:
        >>> jax.lax.squeeze(jnp.array([[[1], [2]]]), (0, 2))
        Array([1, 2], dtype=int32)
    """
    aval = typeof(array)
    axes = tuple(dims.canonical_axis(d, aval.ndim) for d in dimensions)
    if len(set(axes)) != len(axes):
        raise ValueError(f"squeeze: dimensions are not unique: {tuple(dimensions)}")
    if any(aval.shape[a] != 1 for a in axes):
        raise ValueError(
            "squeeze: cannot select an axis to squeeze out which has size not equal to one, got "
            f"shape={aval.shape} and dimensions={axes}. Drop a longer axis by an index or a reduction."
        )
    if not axes and isinstance(array, Array):
        return array
    return squeeze_p.bind(array, dimensions=tuple(sorted(axes)))


def slice(
    operand: ArrayLike, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> Array:
    """Cuts a window with static bounds out of an array: elements from starts up to limits, by strides.

    Raises TypeError for bounds that do not fit the shape.

    Example:
        >>> jax.lax.slice(jnp.array([[1, 2, 3], [4, 5, 6]]), (0, 0), (2, 3), (1, 2))
        Array([[1, 3],
               [4, 6]], dtype=int32)
    """
    starts, limits = (tuple(map(dims.canonical_dim, v)) for v in (start_indices, limit_indices))
    steps = None if strides is None else tuple(map(dims.canonical_dim, strides))
    return slice_p.bind(operand, start_indices=starts, limit_indices=limits, strides=steps)


def size_along(name: str, operand: Any, axis: int) -> tuple[int, int]:
    """Returns an axis number counted from the front, and the size of that axis."""
    shape = typeof(operand).shape
    if not -len(shape) <= axis < len(shape):
        raise IndexError(f"{name}: axis {axis} is out of range for an operand of shape {shape}")
    return axis % len(shape), shape[axis]


def slice_in_dim(
    operand: Array | np.ndarray, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0
) -> Array:
    """Slices along one axis; None and negative numbers as in Python's slices, but limits are not clamped.

    Raises TypeError for a limit beyond the axis, IndexError for an axis out of bounds.

    Example:
        >>> jax.lax.slice_in_dim(jnp.array([[1, 2, 3], [4, 5, 6]]), -2, None, axis=1)
        Array([[2, 3],
               [5, 6]], dtype=int32)
    """
    axis, size = size_along("slice_in_dim", operand, int(axis))
    start, limit = (
        default if v is None else as_index(v) + (size if v < 0 else 0)
        for v, default in ((start_index, 0), (limit_index, size))
    )
    shape = typeof(operand).shape
    starts, limits = _bounds_along(shape, axis, start, limit)
    return slice(operand, starts, limits, tuple(as_index(stride) if i == axis else 1 for i in range(len(shape))))


def index_in_dim(operand: Array | np.ndarray, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """Returns one slice along an axis. Raises IndexError if `index` is out of bounds.

    Example:
        >>> jax.lax.index_in_dim(jnp.array([[1, 2], [3, 4]]), -1, axis=1, keepdims=False)
        Array([2, 4], dtype=int32)
    """
    axis, size = size_along("index_in_dim", operand, int(axis))
    i = as_index(index)
    if not -size <= i < size:
        raise IndexError(f"index {i} is out of bounds for axis {axis} with size {size}")
    i %= size
    out = slice_in_dim(operand, i, i + 1, 1, axis)
    return out if keepdims else squeeze(out, (axis,))


def pad(operand: ArrayLike, padding_value: ArrayLike, padding_config: Sequence[tuple[int, int, int]]) -> Array:
    """Pads an array; `padding_config` has (before, after, between) for each axis, and negative padding removes.

    Raises TypeError for a `padding_value` of another dtype, ValueError if `padding_config` does not fit.

    Example:
        >>> jax.lax.pad(jnp.array([1, 2, 3]), 0, [(2, 0, 1)]), jax.lax.pad(jnp.array([1, 2, 3]), 0, [(-1, 0, 0)])
        (Array([0, 0, 1, 0, 2, 0, 3], dtype=int32), Array([2, 3], dtype=int32))
    """
    config = tuple(tuple(map(as_index, edges)) for edges in padding_config)
    return pad_p.bind(operand, padding_value, padding_config=config)


def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Reverses the axes `dimensions` of an array.

    Raises TypeError for an axis that is out of bounds or stands twice.

    Example:
        >>> jax.lax.rev(jnp.array([[1, 2], [3, 4]]), (1,))
        Array([[2, 1],
               [4, 3]], dtype=int32)
    """
    return rev_p.bind(operand, dimensions=tuple(map(int, dimensions)))


# ---- joining and splitting --------------------------------------------------------------------------


def concatenate(operands: Array | Sequence[ArrayLike], dimension: int) -> Array:
    """Joins arrays of one dtype along an axis; their other axes have equal sizes.

    `jax.numpy.concatenate` promotes dtypes, too. Raises TypeError or ValueError for operands that do not fit.

    Example:
        >>> jax.lax.concatenate([jnp.array([1, 2]), jnp.array([3])], dimension=0)
        Array([1, 2, 3], dtype=int32)
    """
    if isinstance(operands, Array):
        operands = _rows(operands)
    if not len(operands):
        raise ValueError("concatenate requires a non-empty sequences of arrays")
    if len(operands) == 1 and isinstance(operands[0], Array):
        return operands[0]
    return concatenate_p.bind(*operands, dimension=as_index(dimension))


def _rows(x: Array) -> list[Array]:
    """The slices along the first axis, in the operations that jax records here: unlike `unstack`, two for each."""
    if not x.ndim:
        raise TypeError("iteration over a 0-d array")
    return [index_in_dim(x, i, keepdims=False) for i in range(x.shape[0])]


def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> Sequence[Array]:
    """Splits into pieces of the given sizes along an axis. Raises ValueError unless the sizes add up.

    Example:
        >>> jax.lax.split(jnp.array([1, 2, 3, 4]), (1, 3))
        [Array([1], dtype=int32), Array([2, 3, 4], dtype=int32)]
    """
    aval = typeof(operand)
    axis, sizes = dims.canonical_axis(axis, aval.ndim), dims.canonical_shape(sizes)
    if any(s < 0 for s in sizes):
        raise ValueError(f"Sizes passed to split must be nonnegative, got {list(sizes)}")
    if sum(sizes) != aval.shape[axis]:
        raise ValueError(
            f"split: Sum of sizes {sum(sizes)} must be equal to the size of dimension {axis} of shape {aval.shape}"
        )
    return split_p.bind(operand, sizes=sizes, axis=axis)


def stack(operands: Sequence, axis: int = 0) -> Array:
    """Joins arrays of one shape and dtype along a new axis.

    Raises TypeError or ValueError for arrays that differ in shape or dtype.

    Example:
        >>> jax.lax.stack([jnp.array([1, 2]), jnp.array([3, 4])], axis=1)
        Array([[1, 3],
               [2, 4]], dtype=int32)
    """
    operands = _rows(operands) if isinstance(operands, Array) else list(operands)
    if not operands:
        raise IndexError("stack: list index out of range, it needs at least one array")
    return stack_p.bind(*operands, axis=dims.canonical_axis(axis, typeof(operands[0]).ndim + 1))


def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """Splits into slices along an axis, and drops that axis.

    Raises ValueError for an axis out of bounds.

    Example:
        >>> jax.lax.unstack(jnp.array([[1, 2], [3, 4]]), axis=1)
        (Array([1, 3], dtype=int32), Array([2, 4], dtype=int32))
    """
    return tuple(unstack_p.bind(x, axis=dims.canonical_axis(axis, typeof(x).ndim)))


def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """Repeats `operand` `reps[i]` times along axis i.

    Raises TypeError unless `reps` has a number for each axis.

    Example:
        >>> jax.lax.tile(jnp.array([[1, 2]]), (2, 2))
        Array([[1, 2, 1, 2],
               [1, 2, 1, 2]], dtype=int32)
    """
    return tile_p.bind(operand, reps=dims.canonical_shape(reps))


# ---- broadcasting and collapsing --------------------------------------------------------------------


def broadcast(operand: ArrayLike, sizes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """Broadcasts along new leading axes of the given sizes.

    Raises TypeError for sizes that are not integers.

    Example:
        >>> jax.lax.broadcast(jnp.array([1, 2]), (3,))
        Array([[1, 2],
               [1, 2],
               [1, 2]], dtype=int32)
    """
    if not len(sizes) and isinstance(operand, Array):
        return operand
    shape = (*dims.canonical_shape(sizes), *typeof(operand).shape)
    moving.check_nonnegative("broadcast_in_dim shape", shape)
    return moving.broadcast_in_dim(operand, shape, tuple(range(len(sizes), len(shape))), out_sharding=out_sharding)


def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """Adds leading axes of size 1, up to `rank` axes.

    Example:
        >>> jax.lax.broadcast_to_rank(jnp.array([1, 2]), 3)
        Array([[[1, 2]]], dtype=int32)
    """
    shape = typeof(x).shape
    new = rank - len(shape)
    if new <= 0:
        return cast("Array", x)
    axes = tuple(range(new, rank))
    return moving.broadcast_in_dim_p.bind(x, shape=(1,) * new + shape, broadcast_dimensions=axes, sharding=None)


def broadcast_shapes(*shapes: Sequence[int]) -> _Shape:
    """Returns the shape to which shapes broadcast by NumPy's rules. Raises ValueError if they do not.

    Example:
        >>> jax.lax.broadcast_shapes((3, 1), (4,))
        (3, 4)
    """
    known = [dims.canonical_shape(s) for s in shapes]
    rank = max(map(len, known))
    padded = [(1,) * (rank - len(s)) + s for s in known]
    if any(n < 0 for s in padded for n in s):
        raise TypeError(f"broadcast_shapes: Only non-negative indices are allowed when broadcasting, got {shapes}")
    sizes = [{n for n in column if n != 1} or {1} for column in zip(*padded, strict=True)]
    if any(len(column) > 1 for column in sizes):
        raise ValueError(
            f"Incompatible shapes for broadcasting: {shapes=}. Aligned at their ends, the sizes of an axis must be "
            "equal or 1: slice an operand, or insert an axis of size 1 (`x[:, None]`)."
        )
    return tuple(column.pop() for column in sizes)


def broadcast_like(arr: ArrayLike, like_arr: ArrayLike) -> Array:
    """Broadcasts `arr` to the shape of `like_arr` by NumPy's rules. Raises ValueError if it does not fit.

    Example:
        >>> jax.lax.broadcast_like(jnp.array([1, 2]), jnp.zeros((2, 2)))
        Array([[1, 2],
               [1, 2]], dtype=int32)
    """
    have, shape = typeof(arr).shape, typeof(like_arr).shape
    if len(have) > len(shape):
        raise ValueError(f"broadcast_like: Cannot broadcast to shape with fewer dimensions: arr_shape={have} {shape=}")
    sides = zip(reversed(typeof(arr).entries), reversed(typeof(like_arr).entries), strict=False)
    fits = all(n in (1, m) for n, m in zip(reversed(have), reversed(shape), strict=False))
    if not fits or any(a not in (None, b) for a, b in sides):
        raise ValueError(
            f"broadcast_like: Incompatible types for broadcasting: input shape={have} and requested {shape=}, of types "
            f"{typeof(arr)} and {typeof(like_arr)}"
        )
    return (
        moving.as_array_or_constant(arr)
        if have == shape
        else moving.broadcast_to_shape(arr, shape, typeof(like_arr).own_sharding)
    )


def shape_as_value(shape: Sequence[int]) -> Any:
    """Converts a shape to an array of int32.

    Example:
        >>> jax.lax.shape_as_value((2, 3))
        array([2, 3], dtype=int32)
    """
    if not len(shape):
        return moving.filled((0,), np.int32(0))
    if any(isinstance(n, SymbolicDim) for n in shape):
        return concatenate([moving.filled((1,), scalar_as(n, np.int32)) for n in shape], 0)
    return np.array([index(n) for n in shape], np.int32)


def collapse(operand: Array, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """Merges the axes from start up to stop into one. Raises ValueError if start is after stop.

    Example:
        >>> jax.lax.collapse(jnp.array([[[1], [2]], [[3], [4]]]), 0, 2)
        Array([[1],
               [2],
               [3],
               [4]], dtype=int32)
    """
    shape = typeof(operand).shape
    start, stop, _ = _builtin_slice(start_dimension, stop_dimension).indices(len(shape))
    if start > stop:
        raise ValueError(f"collapse: invalid range {start}:{stop} of the axes of shape {shape}")
    return moving.reshape(operand, (*shape[:start], prod(shape[start:stop]), *shape[stop:]))


_builtin_slice = type(np.s_[:])

# ---- filled arrays ----------------------------------------------------------------------------------


def full(
    shape: Sequence[int], fill_value: ArrayLike, dtype: DTypeLike | None = None, *, sharding: Sharding | None = None
) -> Array:
    """Creates an array filled with one scalar. Raises TypeError for a value that is not a scalar.

    Example:
        >>> jax.lax.full((2, 3), 7), jax.lax.full((2,), 7, jnp.float32)
        (Array([[7, 7, 7],
               [7, 7, 7]], dtype=int32, weak_type=True), Array([7., 7.], dtype=float32))
    """
    aval = typeof(fill_value)
    if aval.shape:
        raise TypeError(f"full: fill_value must be a scalar, got shape {aval.shape}")
    return _filled(dims.shape_of_iterable(shape), fill_value, dtype, aval, sharding)


def filled_keys(shape: Sequence[int], value: Any, dtype: Any) -> Any:
    """An array of random keys, filled with one key, or with keys all of whose words are one number.

    Raises ValueError for a key of another generator.
    """
    impl = dtype._impl
    is_key = dtypes.is_extended(typeof(value).dtype)
    words = impl.unwrapped(value) if is_key else convert(value, dtype.physical_dtype)
    wide = (*shape, *impl.key_shape)
    if is_key and typeof(words).shape != impl.key_shape:
        raise ValueError(f"full: a key with words of shape {typeof(words).shape} cannot fill an array of {dtype}")
    return impl.wrapped(moving.broadcast_to_shape(words, wide))


def full_extended(shape: Sequence[int], value: Any, dtype: Any) -> Any:
    """An array of an extended dtype, filled with one element."""
    if isinstance(dtype, dtypes.KeyType):
        return filled_keys(shape, value, dtype)
    return (
        moving.broadcast_to_shape(value, tuple(shape))
        if typeof(value).dtype == dtype
        else dtype._rules.full(shape, value, dtype)
    )


def blank(shape: Sequence[int], dtype: Any, weak_type: bool = False) -> Any:
    """An array of zeros, or of random keys whose words are zero."""
    if dtypes.is_extended(dtype):
        return full_extended(shape, 0, dtype)
    return moving.filled(shape, np.zeros((), dtype)[()], weak_type=weak_type)


def _filled(shape: Any, value: Any, dtype: Any, like: ShapedArray, sharding: Any) -> Any:
    """An array filled with one value; if `dtype` is None, it has the dtype and weak type of `like`."""
    keeps_type = dtype is None and like is typeof(value)
    if sharding is not None:
        transfer.check_place(sharding, "full")
    is_placed = sharding is not None and state.is_eager()
    weak_type = dtype is None and like.weak_type and not is_placed
    dtype = like.dtype if dtype is None else dtypes.requested_dtype(dtype, "full")
    shape = dims.shape_of(shape)
    moving.check_nonnegative("broadcast_in_dim shape", shape)
    if dtypes.is_extended(dtype) and not keeps_type:
        return full_extended(shape, value, dtype)
    own = None if state.is_eager() or shape != like.shape else like.own_sharding
    number, trace = convert(value, dtype, weak_type), state.thread.trace
    if not shape and trace is not None and trace.records_rules:
        # In the equations of a rule, a number is a literal and not a residual.
        return replicated_over_mesh(number, own)
    array = moving.filled(shape, number, weak_type=weak_type, sharding=own)
    return transfer.filled_at(array, sharding) if is_placed else array


def full_like(
    x: Any,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Sequence[int] | None = None,
    sharding: Sharding | None = None,
) -> Array:
    """Creates an array filled with one value; shape, dtype and weak type default to those of `x`.

    A value in place of a dtype gives its own. Raises TypeError for a value that is not a scalar.

    Example:
        >>> jax.lax.full_like(jnp.array([1.0, 2.0]), 7)
        Array([7., 7.], dtype=float32)
    """
    aval = aval_like(x)
    if dtype is not None and is_value(dtype):
        dtype = typeof(dtype).dtype
    if typeof(fill_value).shape:
        raise TypeError(f"full_like: fill_value must be a scalar, got shape {typeof(fill_value).shape}.")
    if shape is not None and aval.has_mesh:
        aval = aval.update(sharding=None)
    array = _filled(aval.shape if shape is None else shape, fill_value, dtype, aval, sharding)
    return array if sharding is not None else place_like(array, x)


def aval_like(x: Any) -> ShapedArray:
    """The type of a value, or of anything with `shape` and `dtype`."""
    if type(x) not in value_kinds and hasattr(x, "shape") and hasattr(x, "dtype"):
        sharding = getattr(x, "sharding", None)
        in_type = sharding_in_type(sharding, len(x.shape)) if isinstance(sharding, NamedSharding) else None
        return ShapedArray(
            tuple(x.shape),
            dtypes.canonicalize_dtype(x.dtype, True),
            bool(getattr(x, "weak_type", False)),
            sharding=in_type,
        )
    if is_value(x):
        return typeof(x)
    raise TypeError(f"full_like: Cannot determine dtype of {x!r}")
