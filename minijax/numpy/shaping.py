"""Reshaping, joining, splitting, repeating, shifting and reversing arrays, and differences."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.api.vmap import vmap
from minijax.base import dims, dtypes
from minijax.base.dtypes import DTypeLike
from minijax.base.symbolic.dimension import inconclusive, is_int
from minijax.base.util import named
from minijax.dispatch.fused import fused
from minijax.dispatch.jitted import jitted
from minijax.ir.types import typeof, unwrapped
from minijax.numpy import subscripts, ufuncs
from minijax.numpy.creation import arraylike, asarray, concrete, host_ints, value, values
from minijax.primitives import counting, dynamic_slice, elementwise as lax, moving, sharding, structural
from minijax.primitives.convert import convert
from minijax.primitives.promote import arrays, check_arraylike, check_out, promote_dtypes
from minijax.run.arrays.array import Array, ArrayLike, DimSize, Shape, ShardingLike

Axes = int | Sequence[int] | None


def nonnegative_axes(axis: Axes, ndim: int) -> tuple[int, ...]:
    """Axes as nonnegative indices; all axes for None."""
    if axis is None:
        return tuple(range(ndim))
    axes = (axis,) if np.ndim(axis) == 0 else tuple(axis)
    return tuple(dims.canonical_axis(a, ndim) for a in axes)


def flattened_if_no_axis(a: Any, axis: int | None) -> tuple[Any, int]:
    """The array and the axis as a nonnegative index; for None, the flattened array and axis 0."""
    return (ravel(a), 0) if axis is None else (a, dims.canonical_axis(axis, a.ndim))


# ---- reshaping ---------------------------------------------------------------------------------------


@fused()
def reshape(
    a: ArrayLike, shape: DimSize | Shape, order: str = "C", *, copy: bool | None = None, out_sharding: Any = None
) -> Array:
    """As `numpy.reshape`; the orders are "C" and "F"."""
    error = ValueError if isinstance(a, np.ndarray | np.generic) else TypeError  # that of the array's own method
    a = value("reshape", a)
    if order not in ("C", "F"):
        if order == "A":
            raise NotImplementedError("reshape: np.reshape order=A is not implemented.")
        raise ValueError(f"reshape: Unexpected value for 'order' argument: {order}.")
    sizes = _fill_in(a.shape, shape, error)
    if order == "F":
        transposed = moving.reshape(a, sizes[::-1], tuple(range(a.ndim))[::-1])
        a = moving.transpose(transposed, tuple(range(len(sizes)))[::-1])
    elif sizes != a.shape:
        return moving.reshape(a, sizes, out_sharding=out_sharding)
    return a if out_sharding is None else sharding.with_out_sharding("reshape", a, out_sharding)


def _fill_in(have: tuple, shape: Any, error: type[Exception]) -> tuple[int, ...]:
    """The requested sizes, with -1 replaced by the remaining factor. Raises `error` if they do not fit."""
    sizes = dims.shape_of_iterable(shape)
    total = math.prod(have)
    if sizes.count(-1) > 1:
        raise error(f"reshape: can only specify one unknown axis size with a `-1` value, got {sizes}")
    known = math.prod([n for n in sizes if n != -1])
    if any(is_int(n) and n < -1 for n in sizes):
        raise TypeError(f"reshape: sizes must be nonnegative or -1, got {sizes}")
    if -1 in sizes:
        rest = _quotient(total, known, have, sizes, error)
        return tuple(rest if n == -1 else n for n in sizes)
    if known != total:
        raise error(f"cannot reshape array of shape {have} (size {total}) into shape {sizes} (size {known})")
    return sizes


def _quotient(total: Any, known: Any, have: tuple, sizes: tuple, error: type[Exception]) -> Any:
    """`total / known`, for a reshape from `have` to `sizes`. Raises `error`, or for symbolic sizes another error."""
    # A constraint on symbolic dimensions may prove divisibility for one sign only.
    divisor = next((n for n in (known, -known) if n != 0 and total % n == 0), None)
    if divisor is not None:
        return total // divisor if divisor is known else -(total // divisor)
    if known != 0 and not (is_int(known) and is_int(total)):
        raise inconclusive(
            f"Cannot divide evenly the sizes of shapes {have} and {sizes}. The remainder {total % known} should be 0."
        )
    raise error(
        f"cannot reshape array of shape {have} (size {total}) into shape {sizes} because the product "
        f"of specified axis sizes ({known}) does not evenly divide {total}"
    )


@jitted("ravel", static=("order", "out_sharding"), inline=True)
def ravel(a: ArrayLike, order: str = "C", *, out_sharding: Any = None) -> Array:
    """As `numpy.ravel`; the orders are "C" and "F"."""
    if order == "K":
        raise NotImplementedError("ravel: order='K' is not implemented")
    a = value("ravel", a)
    return reshape(a, (a.size,), order, out_sharding=out_sharding)


@fused()
def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """As `numpy.transpose`."""
    a = value("transpose", a)
    order = range(a.ndim)[::-1] if axes is None else [dims.canonical_axis(i, a.ndim) for i in axes]
    return moving.transpose(a, tuple(order))


def permute_dims(a: ArrayLike, /, axes: Sequence[int]) -> Array:
    """As `numpy.permute_dims`."""
    return transpose(value("permute_dims", a), axes)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """As `numpy.matrix_transpose`."""
    x = value("matrix_transpose", x)
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: x must be at least two-dimensional, but got ndim={x.ndim}")
    return swapaxes(x, -1, -2)


@jitted("swapaxes", static=("axis1", "axis2"), inline=True)
def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """As `numpy.swapaxes`."""
    a = value("swapaxes", a)
    order = np.arange(a.ndim)  # its indexing checks the bounds
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return moving.transpose(a, order.tolist())


@fused()
def moveaxis(a: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """As `numpy.moveaxis`."""
    a = value("moveaxis", a)
    froms, tos = nonnegative_axes(source, a.ndim), nonnegative_axes(destination, a.ndim)
    if len(froms) != len(tos):
        raise ValueError(f"Inconsistent number of elements: moveaxis got source {source}, destination {destination}")
    if len(set(froms)) != len(froms) or len(set(tos)) != len(tos):
        raise TypeError(f"moveaxis: repeated axis in source {source} or destination {destination}")
    order = [i for i in range(a.ndim) if i not in froms]
    for to, i in sorted(zip(tos, froms, strict=True)):
        order.insert(to, i)
    return moving.transpose(a, order)


@jitted("rollaxis", static=("axis", "start"))
def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """As `numpy.rollaxis`."""
    a = value("rollaxis", a)
    i, to = dims.canonical_axis(axis, a.ndim), operator.index(start)
    if not -a.ndim <= to <= a.ndim:
        raise ValueError(f"rollaxis: start={start} must satisfy {-a.ndim}<=start<={a.ndim}")
    to += a.ndim if to < 0 else 0
    return moveaxis(a, i, to - 1 if to > i else to)


@fused()
def squeeze(a: ArrayLike, axis: Axes = None) -> Array:
    """As `numpy.squeeze`."""
    a = value("squeeze", a)
    if axis is None and not all(map(is_int, a.shape)):
        raise ValueError(f"jnp.squeeze with axis=None is not supported with shape polymorphism, got shape {a.shape}")
    axes = tuple(i for i, n in enumerate(a.shape) if n == 1) if axis is None else nonnegative_axes(axis, a.ndim)
    return structural.squeeze(a, axes) if axes else a


@fused()
def expand_dims(a: ArrayLike, axis: int | Sequence[int]) -> Array:
    """As `numpy.expand_dims`."""
    axis = concrete(axis, "expand_dims", "axis")
    return moving.expand_dims(value("expand_dims", a), (axis,) if np.ndim(axis) == 0 else tuple(axis))


@fused()
def broadcast_to(array: ArrayLike, shape: DimSize | Shape, *, out_sharding: ShardingLike | None = None) -> Array:
    """As `numpy.broadcast_to`."""
    array = value("broadcast_to", array)
    shape = dims.shape_of(shape)
    if len(shape) < array.ndim:
        raise ValueError(
            f"broadcast_to: Cannot broadcast to shape with fewer dimensions: arr_shape={array.shape} {shape=}"
        )
    if any(n not in (1, m) for n, m in zip(array.shape, shape[len(shape) - array.ndim :], strict=True)):
        raise ValueError(
            f"broadcast_to: Incompatible shapes for broadcasting: {array.shape} and requested shape {shape}"
        )
    requested = sharding.requested_sharding("jnp.broadcast_to", out_sharding, len(shape))
    if requested is not None:
        _check_unbroadcast(array, requested, shape)
    if requested is None or array.shape == shape:
        return sharding.with_out_sharding("jnp.broadcast_to", moving.broadcast_to_shape(array, shape), out_sharding)
    return moving.broadcast_to_shape(array, shape, requested)


def _check_unbroadcast(array: Any, requested: Any, shape: tuple[int, ...]) -> None:
    """Raises ValueError if the requested sharding differs along an axis that is not broadcast."""
    aval, spec = typeof(array), requested.spec.padded(len(shape))
    offset = len(shape) - aval.ndim
    for i, (size, entry) in enumerate(zip(aval.shape, aval.entries, strict=True), offset):
        if entry is not None and size == shape[i] and entry != spec[i]:
            wanted = aval.update(shape=shape, sharding=requested.update(spec=spec))
            raise ValueError(
                f"Incompatible types for broadcasting: input type={aval.str_short()} and requested "
                f"type={wanted.str_short()}"
            )


def broadcast_arrays(*args: ArrayLike) -> list[Array]:
    """As `numpy.broadcast_arrays`."""
    args = values("broadcast_arrays", *args)
    if not args:
        return []
    return moving.broadcast_all_to(structural.broadcast_shapes(*[x.shape for x in args]), *args)


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """As `numpy.broadcast_shapes`."""
    if not shapes:
        return ()
    return structural.broadcast_shapes(*[dims.shape_of(s) for s in shapes])


def _at_least(name: str, place: Any, calls_itself: bool = False) -> Any:
    def atleast(*arys: ArrayLike) -> Any:
        if len(arys) == 1:
            return place(value(name, arys[0]))
        return [jitted_atleast(x) if calls_itself else place(value(name, x)) for x in arys]

    jitted_atleast = jitted()(named(atleast, name, f"As `numpy.{name}`."))
    return jitted_atleast


def _to_3d(x: Any) -> Any:
    added = {0: (0, 1, 2), 1: (0, 2), 2: (2,)}.get(x.ndim, ())
    return moving.expand_dims(x, added)


atleast_1d = _at_least("atleast_1d", lambda x: moving.expand_dims(x, (0,)) if x.ndim < 1 else x)
atleast_2d = _at_least("atleast_2d", lambda x: moving.expand_dims(x, tuple(range(2 - x.ndim))))
atleast_3d = _at_least("atleast_3d", _to_3d, calls_itself=True)


# ---- joining -----------------------------------------------------------------------------------------


@fused()
def concatenate(
    arrays: np.ndarray | Array | Sequence[ArrayLike], axis: int | None = 0, dtype: DTypeLike | None = None
) -> Array:
    """As `numpy.concatenate`."""
    dtype = dtypes.requested_dtype(dtype, "concatenate")
    if isinstance(arrays, np.ndarray | Array):
        if not np.ndim(arrays):
            raise ValueError("Zero-dimensional arrays cannot be concatenated.")
        return _merge_first(_not_empty("concatenate", arrays), axis, dtype)
    parts = _checked_sequence("concatenate", arrays)
    if axis is None:
        return concatenate([ravel(x) for x in parts], 0, dtype)
    if any(typeof(x).ndim == 0 for x in parts):
        raise ValueError("Zero-dimensional arrays cannot be concatenated.")
    axis = dims.canonical_axis(axis, typeof(parts[0]).ndim)
    parts = _in_one_dtype(parts, dtype)
    return value("concatenate", parts[0]) if len(parts) == 1 else structural.concatenate(parts, axis)


def _not_empty(name: str, arrays: Any) -> Any:
    """One array as a sequence of arrays. Raises TypeError for a scalar, ValueError if there are none."""
    x = value(name, arrays)
    if not x.ndim:
        raise TypeError(f"{name}: len() of unsized object, the arrays are one scalar")
    if not x.shape[0]:
        raise ValueError(f"Need at least one array to {name}.")
    return x


def _checked_sequence(name: str, arrays: Any) -> Sequence:
    """The arrays to join. Raises TypeError unless they are a sequence, ValueError for an empty one."""
    if not isinstance(arrays, Sequence):
        raise TypeError(f"{name}: the arrays must be given as a sequence or as one array, got {type(arrays)}")
    if not arrays:
        raise ValueError(f"Need at least one array to {name}.")
    return arraylike(name, *arrays)


def _in_one_dtype(arrays: Sequence, dtype: Any) -> list:
    return promote_dtypes(*arrays) if dtype is None else [convert(x, dtype) for x in arrays]


def _merge_first(x: Any, axis: int | None, dtype: Any) -> Any:
    if x.ndim == 0:
        raise ValueError("concatenate: Zero-dimensional arrays cannot be concatenated.")
    if x.ndim == 1 and axis is not None:
        raise ValueError("Zero-dimensional arrays cannot be concatenated.")
    x = x if dtype is None else convert(x, dtype)
    if axis is None:
        return ravel(x)
    axis = dims.canonical_axis(axis, x.ndim - 1)
    order = [*range(1, axis + 1), 0, *range(axis + 1, x.ndim)]
    merged = (*x.shape[1 : axis + 1], x.shape[0] * x.shape[axis + 1], *x.shape[axis + 2 :])
    return moving.reshape(x, merged, order)


def concat(arrays: Sequence[ArrayLike], /, *, axis: int | None = 0) -> Array:
    """As `numpy.concat`."""
    check_arraylike("concat", *arrays)
    return concatenate(arrays, axis)


@fused()
def stack(
    arrays: np.ndarray | Array | Sequence[ArrayLike], axis: int = 0, out: None = None, dtype: DTypeLike | None = None
) -> Array:
    """As `numpy.stack`; `out` is not supported."""
    check_out("stack", out)
    dtype = dtypes.requested_dtype(dtype, "stack")
    if isinstance(arrays, np.ndarray | Array):
        x = _not_empty("stack", arrays)
        axis = dims.canonical_axis(axis, x.ndim)
        return concatenate(moving.expand_dims(x, (axis + 1,)), axis, dtype)
    parts = _checked_sequence("stack", arrays)
    axis = dims.canonical_axis(axis, typeof(parts[0]).ndim + 1)
    if any(typeof(x).shape != typeof(parts[0]).shape for x in parts):
        raise ValueError("All input arrays must have the same shape.")
    return structural.stack(_in_one_dtype(parts, dtype), axis)


def _with_min_ranks(at_least: Any, tup: Any) -> tuple[Any, int]:
    """The arrays with the axes that `at_least` adds, and their rank."""
    if isinstance(tup, np.ndarray | Array):
        stacked = vmap(at_least)(asarray(tup))
        return stacked, stacked.ndim - 1
    stacked = [at_least(x) for x in tup]
    return stacked, stacked[0].ndim if stacked else 1


def hstack(tup: np.ndarray | Array | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """As `numpy.hstack`."""
    arrays, ndim = _with_min_ranks(atleast_1d, tup)
    return concatenate(arrays, 0 if ndim == 1 else 1, dtype)


def vstack(tup: np.ndarray | Array | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """As `numpy.vstack`."""
    return concatenate(_with_min_ranks(atleast_2d, tup)[0], 0, dtype)


def dstack(tup: np.ndarray | Array | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """As `numpy.dstack`."""
    return concatenate(_with_min_ranks(atleast_3d, tup)[0], 2, dtype)


def column_stack(tup: np.ndarray | Array | Sequence[ArrayLike]) -> Array:
    """As `numpy.column_stack`."""
    if isinstance(tup, np.ndarray | Array):
        x = asarray(tup)
        return concatenate(vmap(lambda y: transpose(atleast_2d(y)))(x) if x.ndim < 3 else x, 1)
    return concatenate([transpose(atleast_2d(x)) if typeof(x).ndim < 2 else x for x in values("column_stack", *tup)], 1)


@jitted("block")
def block(arrays: ArrayLike | list[ArrayLike]) -> Array:
    """As `numpy.block`."""
    joined, _ = _block(arrays)
    return joined


def _block(arrays: Any) -> tuple[Any, int]:
    if isinstance(arrays, tuple):
        raise ValueError("jax.numpy.block does not allow tuples, got " + repr(type(arrays)))
    if not isinstance(arrays, list):
        return value("block", arrays), 1
    if not arrays:
        raise ValueError("jax.numpy.block does not allow empty list arguments")
    parts, depths = zip(*map(_block, arrays), strict=True)
    if len(set(depths)) != 1:
        raise ValueError("Mismatched list depths in jax.numpy.block")
    rank = max(depths[0], *(x.ndim for x in parts))
    parts = [structural.broadcast_to_rank(x, rank) for x in parts]
    return concatenate(parts, -depths[0]), depths[0] + 1


@jitted("append", static=("axis",))
def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """As `numpy.append`."""
    if axis is None:
        return concatenate([ravel(arr), ravel(values)], 0)
    return concatenate([arr, values], axis)


# ---- splitting ---------------------------------------------------------------------------------------


def _split(name: str, ary: Any, sections: Any, axis: int, equal: bool) -> list:
    ary = value(name, ary)
    axis, size = structural.size_along(name, ary, axis)
    if np.ndim(sections) > 1:
        raise TypeError(f"{name}: Only integer scalar arrays can be converted to a scalar index.")
    if isinstance(sections, Sequence) or np.ndim(sections) > 0:
        cuts = [0, *host_ints(name, sections), size]
        sizes = [b - a for a, b in zip(cuts, cuts[1:], strict=False)]
    else:
        count = concrete(sections, name, "indices_or_sections")
        if not is_int(count):
            raise ValueError(f"jax.numpy.{name} with a symbolic number of sections is not supported, got {count}")
        part, rest = divmod(size, count := int(count))
        if rest and equal:
            raise ValueError(f"{name}: array split does not result in an equal division: rest is {rest}")
        sizes = [part + (i < rest) for i in range(count)]
    return list(structural.split(ary, sizes, axis))


def split(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0) -> list[Array]:
    """As `numpy.split`."""
    return _split("split", ary, indices_or_sections, axis, True)


def array_split(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0) -> list[Array]:
    """As `numpy.array_split`."""
    return _split("array_split", ary, indices_or_sections, axis, False)


def hsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """As `numpy.hsplit`."""
    (ary,) = arrays("hsplit", ary)
    return _split("hsplit", ary, indices_or_sections, 0 if typeof(ary).ndim == 1 else 1, True)


def vsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """As `numpy.vsplit`."""
    return _split("vsplit", ary, indices_or_sections, 0, True)


def dsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """As `numpy.dsplit`."""
    return _split("dsplit", ary, indices_or_sections, 2, True)


@jitted("unstack", static=("axis",), inline=True)
def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """As `numpy.unstack`."""
    x = value("unstack", x)
    if x.ndim == 0:
        raise ValueError("Unstack requires arrays with rank > 0, however a scalar array was passed.")
    return structural.unstack(x, axis)


# ---- repeating, shifting and reversing ---------------------------------------------------------------


def tile(A: ArrayLike, reps: DimSize | Sequence[DimSize]) -> Array:
    """As `numpy.tile`."""
    a = value("tile", A)
    reps = dims.shape_of_iterable(reps)
    rank = max(a.ndim, len(reps))
    a = structural.broadcast_to_rank(a, rank)
    return structural.tile(a, (1,) * (rank - len(reps)) + reps)


def repeat_uniformly(a: Any, count: int, axis: int) -> Any:
    """`a` with each element along an axis repeated `count` times."""
    shape = (*a.shape[: axis + 1], count, *a.shape[axis + 1 :])
    others = [i for i in range(a.ndim + 1) if i != axis + 1]
    copies = moving.broadcast_in_dim(a, shape, others)
    return moving.reshape(copies, (*a.shape[:axis], a.shape[axis] * count, *a.shape[axis + 1 :]))


def roll(a: ArrayLike, shift: ArrayLike | Sequence[int], axis: Axes = None) -> Array:
    """As `numpy.roll`; `shift` may be traced."""
    a = value("roll", a)
    if axis is None:
        return reshape(roll(ravel(a), shift, 0), a.shape)
    axes = nonnegative_axes(axis, a.ndim)
    shift = [unwrapped(s) for s in shift] if isinstance(shift, Sequence) else unwrapped(shift)
    if isinstance(shift, list) and any(isinstance(s, Array) for s in shift):
        shift = asarray(shift)
    if isinstance(shift, Array):
        return _roll_dynamic(a, shift, axes)
    shifts = np.broadcast_to(np.asarray(shift), (len(axes),)) if np.ndim(shift) == 0 else np.asarray(shift)
    rolled = np.broadcast_shapes(shifts.shape, (len(axes),))
    if len(rolled) != 1:
        raise ValueError(f"roll: 'shift' and 'axis' arguments to roll must be scalars or 1D arrays, got shape {rolled}")
    shifts, axes = np.broadcast_to(shifts, rolled), np.broadcast_to(np.array(axes, int), rolled)
    return _roll_static(a, tuple(map(int, shifts)), tuple(map(int, axes)))


@jitted("_roll_static", static=("shift", "axis"))
def _roll_static(a, shift, axis):
    for s, i in zip(shift, axis, strict=True):
        n = a.shape[i]
        if n == 0:
            continue
        cut = -s % n
        a = structural.concatenate(
            [structural.slice_in_dim(a, cut, n, axis=i), structural.slice_in_dim(a, 0, cut, axis=i)], i
        )
    return a


@jitted("_roll_dynamic", static=("axis",))
def _roll_dynamic(a, shift, axis):
    if shift.ndim > 1:
        raise ValueError("roll: 'shift' and 'axis' arguments to roll must be scalars or 1D arrays")
    count = max(len(axis), shift.size)
    shifts = moving.broadcast_to_shape(shift if shift.ndim else moving.expand_dims(shift, (0,)), (count,))
    for k, i in enumerate(axis * count if len(axis) == 1 else axis):
        n = a.shape[i]
        dtype = np.dtype(np.int32)
        by = convert(structural.index_in_dim(shifts, k, keepdims=False), dtype)
        by = ufuncs.remainder(by, lax.max(dtype.type(n), dtype.type(1)))
        twice = structural.concatenate([a, a], i)
        a = dynamic_slice.dynamic_slice_in_dim(twice, lax.sub(dtype.type(n), by), n, axis=i)
    return a


def flip(m: ArrayLike, axis: Axes = None) -> Array:
    """As `numpy.flip`."""
    m = value("flip", m)
    return _flip(m, nonnegative_axes(axis, m.ndim))


_flip = jitted("_flip", static=("dimensions",))(structural.rev)


def fliplr(m: ArrayLike) -> Array:
    """As `numpy.fliplr`."""
    return flip(m, 1)


def flipud(m: ArrayLike) -> Array:
    """As `numpy.flipud`."""
    return flip(m, 0)


@jitted("rot90", static=("k", "axes"))
def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """As `numpy.rot90`."""
    m = value("rot90", m)
    if m.ndim < 2:
        raise ValueError(f"rot90 requires its first argument to have ndim at least two, but got shape {m.shape}")
    i, j = (dims.canonical_axis(a, m.ndim) for a in axes)
    if i == j:
        raise ValueError("rot90: Axes must be different")
    quarter_turns = operator.index(k) % 4
    if quarter_turns == 0:
        return m
    if quarter_turns == 2:
        return flip(flip(m, i), j)
    return swapaxes(flip(m, j), i, j) if quarter_turns == 1 else flip(swapaxes(m, i, j), j)


@jitted("resize", static=("new_shape",))
def resize(a: ArrayLike, new_shape: Shape) -> Array:
    """As `numpy.resize`."""
    shape = dims.shape_of(new_shape)
    if any(n < 0 for n in shape):
        raise ValueError("all elements of `new_shape` must be non-negative")
    flat, size = ravel(a), math.prod(shape)
    if flat.size == 0 or size == 0:
        return structural.blank(shape, flat.dtype, flat.weak_type)
    flat = tile(flat, math.ceil(size / flat.size))
    return reshape(subscripts.getitem(flat, slice(size)), shape)


# ---- differences -------------------------------------------------------------------------------------


def _differences(a: Any, axis: int) -> Any:
    before = [slice(None)] * axis
    later, earlier = subscripts.getitem(a, (*before, slice(1, None))), subscripts.getitem(a, (*before, slice(-1)))
    return lax.ne(later, earlier) if a.dtype == np.bool_ else lax.sub(later, earlier)


@jitted("diff", static=("n", "axis"))
def diff(
    a: ArrayLike, n: int = 1, axis: int = -1, prepend: ArrayLike | None = None, append: ArrayLike | None = None
) -> Array:
    """As `numpy.diff`."""
    a = value("diff", a)
    if n == 0:
        return a
    if n < 0:
        raise ValueError(f"diff: order must be non-negative but got {n}")
    if a.ndim == 0:
        raise ValueError("diff: diff requires input that is at least one dimensional")
    axis = dims.canonical_axis(axis, a.ndim)
    if prepend is not None or append is not None:
        edges = [[] if edge is None else [_edge_of(edge, a, axis)] for edge in (prepend, append)]
        a = concatenate([*edges[0], a, *edges[1]], axis)
    for _ in range(n):
        a = _differences(a, axis)
    return a


def _edge_of(edge: Any, a: Any, axis: int) -> Any:
    edge = value("diff", edge)
    if edge.ndim:
        return edge
    return moving.broadcast_to_shape(edge, tuple(1 if i == axis else m for i, m in enumerate(a.shape)))


@jitted("ediff1d")
def ediff1d(ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None) -> Array:
    """As `numpy.ediff1d`; `to_end` and `to_begin` are converted to the dtype of `ary`."""
    flat = ravel(ary)
    differences = lax.sub(flat[1:], flat[:-1])
    if to_begin is not None:
        differences = concatenate([ravel(convert(to_begin, flat.dtype)), differences], 0)
    if to_end is not None:
        differences = concatenate([differences, ravel(convert(to_end, flat.dtype))], 0)
    return differences


@jitted("vander", static=("N", "increasing"))
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """As `numpy.vander`."""
    x = value("vander", x)
    if x.ndim != 1:
        raise ValueError(f"vander: x must be a one-dimensional array, got shape {x.shape}")
    n = x.shape[0] if N is None else operator.index(concrete(N, "vander", "N"))
    if n < 0:
        raise ValueError(f"vander: N must be nonnegative, got {n}")
    powers = counting.iota(x.dtype, n)
    powers = powers if increasing else lax.sub(x.dtype.type(n - 1), powers)
    return ufuncs.power(moving.expand_dims(x, (1,)), moving.expand_dims(powers, (0,)))
