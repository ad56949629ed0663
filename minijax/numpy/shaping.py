"""Reshaping, joining, splitting, repeating, shifting and reversing arrays, and differences."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.api.vmap import vmap
from minijax.base import dims, dtypes
from minijax.base.documentation import filled
from minijax.base.dtypes import DTypeLike
from minijax.base.symbolic.dimension import SymbolicDim, inconclusive, is_int
from minijax.base.util import named
from minijax.dispatch.fused import fused
from minijax.dispatch.jitted import jitted
from minijax.ir.types import typeof, unwrapped
from minijax.numpy import subscripts, ufuncs
from minijax.numpy.creation import array, arraylike, asarray, concrete, host_ints, value, values
from minijax.primitives import counting, dynamic_slice, elementwise as lax, moving, sharding, structural
from minijax.primitives.convert import convert
from minijax.primitives.dimension_value import dimension_as_value
from minijax.primitives.promote import arrays, check_arraylike, check_out, promote_dtypes
from minijax.run.arrays.array import Array, ArrayLike, DimSize, Shape, ShardingLike

Axes = int | Sequence[int] | None


def nonnegative_axes(axis: Axes, ndim: int) -> tuple[int, ...]:
    """Axes as nonnegative indices; all axes for None."""
    if axis is None:
        return tuple(range(ndim))
    axis = axis if type(axis) in (int, tuple) else concrete(axis, "", "an axis")
    axes = tuple(axis) if isinstance(axis, (tuple, list)) or np.ndim(axis) else (axis,)
    return tuple(dims.canonical_axis(a, ndim) for a in axes)


def flattened_if_no_axis(a: Any, axis: int | None) -> tuple[Any, int]:
    """The array and the axis as a nonnegative index; for None, the flattened array and axis 0."""
    return (ravel(a), 0) if axis is None else (a, dims.canonical_axis(axis, a.ndim))


# ---- reshaping ---------------------------------------------------------------------------------------


@fused()
def reshape(
    a: ArrayLike, shape: DimSize | Shape, order: str = "C", *, copy: bool | None = None, out_sharding: Any = None
) -> Array:
    """Gives an array another shape with the same elements.

    Args:
      a: array.
      shape: int, or sequence of ints. One may be -1, and is then computed from the size.
      order: "C", where the last axis changes fastest, or "F", where the first does.
      copy: true for a copy always. Otherwise a copy is made where it is needed, also if false.
      out_sharding: sharding of the result, where the mesh has explicit axes and it cannot be derived.

    Returns:
      An array of this shape and the dtype of `a`.

    Raises:
      TypeError: if the sizes differ (ValueError if `a` is NumPy's), or if a dimension is traced.
      ValueError: for an unknown order.
      NotImplementedError: for the order "A".

    Differences from NumPy:
      The result is never a view. Under `jit` XLA leaves the copy out where it can.

    See also: `jax.numpy.ravel`, `jax.numpy.expand_dims`, `jax.lax.reshape`.

    Example:
      >>> x = jnp.arange(6)
      >>> jnp.reshape(x, (2, -1))
      Array([[0, 1, 2],
             [3, 4, 5]], dtype=int32)
      >>> jnp.reshape(x, (2, 3), order="F")
      Array([[0, 2, 4],
             [1, 3, 5]], dtype=int32)
    """
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
        raise error(
            f"reshape: can only specify one unknown axis size with a `-1` value, got {sizes}. Replace the others by "
            "numbers."
        )
    known = math.prod([n for n in sizes if n != -1])
    if any(is_int(n) and n < -1 for n in sizes):
        raise TypeError(f"reshape: sizes must be nonnegative or -1, got {sizes}")
    if -1 in sizes:
        rest = _quotient(total, known, have, sizes, error)
        return tuple(rest if n == -1 else n for n in sizes)
    if known != total:
        raise error(
            f"cannot reshape array of shape {have} (size {total}) into shape {sizes} (size {known}). The sizes must be "
            "equal; -1 stands for the axis length that makes them so."
        )
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
    """Flattens an array to a vector.

    `order` is "C", where the last axis changes fastest, or "F", where the first does; "K" raises NotImplementedError.
    `out_sharding` is the sharding of the result, which is never a view.

    Example:
      >>> jnp.ravel(jnp.array([[1, 2], [3, 4]]))
      Array([1, 2, 3, 4], dtype=int32)
      >>> jnp.ravel(jnp.array([[1, 2], [3, 4]]), order="F")
      Array([1, 3, 2, 4], dtype=int32)
    """
    if order == "K":
        raise NotImplementedError("ravel: order='K' is not implemented")
    a = value("ravel", a)
    return reshape(a, (a.size,), order, out_sharding=out_sharding)


@fused()
def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """Permutes the axes of an array.

    Args:
      a: array.
      axes: the axes of `a` in their new order, as a sequence of static ints. By default they are reversed.

    Returns:
      An array whose axis `i` is axis `axes[i]` of `a`.

    Raises:
      TypeError: if `axes` is not a permutation of the axes.

    Differences from NumPy:
      The result is never a view.

    See also: `jax.numpy.swapaxes`, `jax.numpy.moveaxis`, `jax.numpy.matrix_transpose`.

    Example:
      >>> jnp.transpose(jnp.ones((2, 3, 4))).shape
      (4, 3, 2)
      >>> jnp.transpose(jnp.ones((2, 3, 4)), (1, 0, 2)).shape
      (3, 2, 4)
    """
    a = value("transpose", a)
    order = range(a.ndim)[::-1] if axes is None else [dims.canonical_axis(i, a.ndim) for i in axes]
    return moving.transpose(a, tuple(order))


def permute_dims(a: ArrayLike, /, axes: Sequence[int]) -> Array:
    """Permutes the axes of an array.

    It is `transpose` under the name of the array API standard; `axes` must be given.

    Example:
      >>> jnp.permute_dims(jnp.ones((2, 3, 4)), (1, 2, 0)).shape
      (3, 4, 2)
    """
    return transpose(value("permute_dims", a), axes)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """Exchanges the last two axes of an array.

    Raises ValueError if the rank is less than 2. `x.mT` is the same.

    Example:
      >>> jnp.matrix_transpose(jnp.ones((2, 3, 4))).shape
      (2, 4, 3)
    """
    x = value("matrix_transpose", x)
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: x must be at least two-dimensional, but got ndim={x.ndim}")
    return swapaxes(x, -1, -2)


@jitted("swapaxes", static=("axis1", "axis2"), inline=True)
def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """Exchanges two axes of an array.

    Args:
      a: array.
      axis1: axis, a static int. Negative ones count from the end.
      axis2: axis.

    Returns:
      An array in which `axis1` is at the place of `axis2` and the reverse. It is never a view.

    Raises:
      IndexError: if an axis is out of bounds.

    See also: `jax.numpy.moveaxis`, `jax.numpy.transpose`.

    Example:
      >>> jnp.swapaxes(jnp.ones((2, 3, 4)), 0, -1).shape
      (4, 3, 2)
    """
    a = value("swapaxes", a)
    order = np.arange(a.ndim)  # its indexing checks the bounds
    try:
        order[axis1], order[axis2] = order[axis2], order[axis1]
    except IndexError as error:
        raise IndexError(f"swapaxes: {error}. The array has {a.ndim} axes, counted from 0.") from None
    return moving.transpose(a, order.tolist())


@fused()
def moveaxis(a: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """Moves axes of an array to other places; the others keep their order.

    Args:
      a: array.
      source: axis, or sequence of axes.
      destination: places of these axes in the result, in the same form.

    Returns:
      An array with the axes in their new order. It is never a view.

    Raises:
      ValueError: if axes are out of bounds, or if the numbers of axes and of places differ.
      TypeError: if axes or places are repeated.

    See also: `jax.numpy.swapaxes`, `jax.numpy.transpose`.

    Example:
      >>> jnp.moveaxis(jnp.ones((2, 3, 4)), 0, -1).shape
      (3, 4, 2)
      >>> jnp.moveaxis(jnp.ones((2, 3, 4)), (0, 1), (1, 2)).shape
      (4, 2, 3)
    """
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
    """Moves an axis before another one.

    `start` is the place before which it goes, in the array as it was. `moveaxis` is easier to read.

    Example:
      >>> jnp.rollaxis(jnp.ones((2, 3, 4)), 2).shape
      (4, 2, 3)
    """
    a = value("rollaxis", a)
    i, to = dims.canonical_axis(axis, a.ndim), operator.index(start)
    if not -a.ndim <= to <= a.ndim:
        raise ValueError(f"rollaxis: start={start} must satisfy {-a.ndim}<=start<={a.ndim}")
    to += a.ndim if to < 0 else 0
    return moveaxis(a, i, to - 1 if to > i else to)


@fused()
def squeeze(a: ArrayLike, axis: Axes = None) -> Array:
    """Removes axes of length 1.

    Args:
      a: array.
      axis: axis or tuple of axes to remove. By default all axes of length 1.

    Returns:
      An array with the elements of `a`, of a smaller rank.

    Raises:
      ValueError: if an axis of `axis` has another length than 1.

    See also: `jax.numpy.expand_dims`, `jax.numpy.reshape`.

    Example:
      >>> jnp.squeeze(jnp.ones((1, 3, 1))).shape
      (3,)
      >>> jnp.squeeze(jnp.ones((1, 3, 1)), axis=0).shape
      (3, 1)
    """
    a = value("squeeze", a)
    if axis is None and not all(map(is_int, a.shape)):
        raise ValueError(f"jnp.squeeze with axis=None is not supported with shape polymorphism, got shape {a.shape}")
    axes = tuple(i for i, n in enumerate(a.shape) if n == 1) if axis is None else nonnegative_axes(axis, a.ndim)
    return structural.squeeze(a, axes) if axes else a


@fused()
def expand_dims(a: ArrayLike, axis: int | Sequence[int]) -> Array:
    """Inserts axes of length 1.

    Args:
      a: array.
      axis: place, or sequence of places, of the new axes in the result.

    Returns:
      An array with the elements of `a`, of a larger rank.

    Raises:
      ValueError: if places are out of bounds or repeated.

    Differences from NumPy:
      `axis` may be a list. `a[None]` and `a[:, None]` give the same arrays.

    See also: `jax.numpy.squeeze`, `jax.numpy.reshape`, `jax.numpy.newaxis`.

    Example:
      >>> jnp.expand_dims(jnp.ones(3), 0).shape
      (1, 3)
      >>> jnp.expand_dims(jnp.ones(3), (0, -1)).shape
      (1, 3, 1)
    """
    axis = concrete(axis, "expand_dims", "axis")
    return moving.expand_dims(
        value("expand_dims", a), tuple(axis) if isinstance(axis, (tuple, list)) or np.ndim(axis) else (axis,)
    )


@fused()
def broadcast_to(array: ArrayLike, shape: DimSize | Shape, *, out_sharding: ShardingLike | None = None) -> Array:
    """Broadcasts an array to a shape.

    Args:
      array: array or number.
      shape: int, or sequence of ints. Its last dimensions must be those of `array`, except where these are 1.
      out_sharding: sharding of the result, where the mesh has explicit axes.

    Returns:
      An array of this shape, in which `array` is repeated along new axes and along axes of length 1.

    Raises:
      ValueError: if the shapes are not compatible, or if `array` has the larger rank.

    Differences from NumPy:
      The result is a full array and no view. Under `jit` XLA rarely writes it to memory. It does not take `subok`.

    See also: `jax.numpy.broadcast_arrays`, `jax.numpy.tile`, `jax.lax.broadcast_in_dim`.

    Example:
      >>> jnp.broadcast_to(jnp.arange(3), (2, 3))
      Array([[0, 1, 2],
             [0, 1, 2]], dtype=int32)
    """
    array = value("broadcast_to", array)
    shape = dims.shape_of(shape)
    if len(shape) < array.ndim:
        raise ValueError(
            f"broadcast_to: Cannot broadcast to shape with fewer dimensions: arr_shape={array.shape} {shape=}"
        )
    if any(n not in (1, m) for n, m in zip(array.shape, shape[len(shape) - array.ndim :], strict=True)):
        raise ValueError(
            f"broadcast_to: Incompatible shapes for broadcasting: {array.shape} and requested shape {shape}. Aligned "
            "at their ends, sizes must be equal, or 1 in the array: `x[:, None]` inserts an axis."
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
    """Broadcasts arrays to one shape.

    Returns a list of arrays, which are not views. Raises ValueError for shapes that are not compatible.

    Example:
      >>> [x.shape for x in jnp.broadcast_arrays(jnp.ones((2, 1)), jnp.ones(3))]
      [(2, 3), (2, 3)]
    """
    args = values("broadcast_arrays", *args)
    if not args:
        return []
    return moving.broadcast_all_to(structural.broadcast_shapes(*[x.shape for x in args]), *args)


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """Returns the shape to which shapes broadcast, as a tuple.

    A shape is a sequence of ints or an int. Dimensions may be symbolic. Raises ValueError for shapes that are not
    compatible.

    Example:
      >>> jnp.broadcast_shapes((2, 1), (3,))
      (2, 3)
    """
    if not shapes:
        return ()
    return structural.broadcast_shapes(*[dims.shape_of(s) for s in shapes])


def _at_least(name: str, place: Any, where: str = "", calls_itself: bool = False) -> Any:
    def atleast(*arys: ArrayLike) -> Any:
        """Adds axes of length 1 to arrays, up to a rank of {rank}{where}.

        One array gives an array, several give a list.

        Example:
          >>> jnp.{name}(jnp.array(2.0)).shape, jnp.{name}(jnp.ones(3)).shape
          {shapes}
        """
        if len(arys) == 1:
            return place(value(name, arys[0]))
        return [jitted_atleast(x) if calls_itself else place(value(name, x)) for x in arys]

    rank = int(name[-2])
    shapes = (1,) * rank, ((3,), (1, 3), (1, 3, 1))[rank - 1]
    doc = filled(atleast, dict(name=name, rank=rank, where=where, shapes=shapes))
    jitted_atleast = jitted()(named(atleast, name, doc))
    return jitted_atleast


def _to_3d(x: Any) -> Any:
    added = {0: (0, 1, 2), 1: (0, 2), 2: (2,)}.get(x.ndim, ())
    return moving.expand_dims(x, added)


atleast_1d = _at_least("atleast_1d", lambda x: moving.expand_dims(x, (0,)) if x.ndim < 1 else x)
atleast_2d = _at_least("atleast_2d", lambda x: moving.expand_dims(x, tuple(range(2 - x.ndim))), ", in front")
atleast_3d = _at_least("atleast_3d", _to_3d, ", such that a matrix gets a last axis", True)


# ---- repeating, shifting and reversing ---------------------------------------------------------------


def tile(A: ArrayLike, reps: DimSize | Sequence[DimSize]) -> Array:
    """Repeats an array as a whole along its axes.

    Args:
      A: array.
      reps: number of copies along each axis, the last ones if there are fewer than axes. More numbers than axes add
        axes in front.

    Returns:
      An array in which each axis is longer by its factor.

    Raises:
      TypeError: if `reps` is traced.

    See also: `jax.numpy.repeat`, `jax.numpy.broadcast_to`.

    Example:
      >>> jnp.tile(jnp.array([1, 2]), 2)
      Array([1, 2, 1, 2], dtype=int32)
      >>> jnp.tile(jnp.array([1, 2]), (2, 1))
      Array([[1, 2],
             [1, 2]], dtype=int32)
    """
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
    """Shifts elements along axes; those that leave at one end enter at the other.

    Args:
      a: array.
      shift: number of places, or one for each axis of `axis`. Positive ones shift towards higher indices. It may be
        traced.
      axis: axis or tuple of axes. For `None` the array is shifted as if it were flat.

    Returns:
      An array of the shape and dtype of `a`.

    Raises:
      ValueError: if an axis is out of bounds, or if `shift` and `axis` do not broadcast.

    Differences from NumPy:
      The shift need not be static under `jit`.

    See also: `jax.numpy.flip`, `jax.numpy.rot90`.

    Example:
      >>> jnp.roll(jnp.arange(5), 2)
      Array([3, 4, 0, 1, 2], dtype=int32)
      >>> jnp.roll(jnp.arange(4).reshape(2, 2), 1, axis=1)
      Array([[1, 0],
             [3, 2]], dtype=int32)
    """
    a = value("roll", a)
    if axis is None:
        return reshape(roll(ravel(a), shift, 0), a.shape)
    axes = nonnegative_axes(axis, a.ndim)
    shift = [unwrapped(s) for s in shift] if isinstance(shift, Sequence) else dimension_as_value(unwrapped(shift))
    if isinstance(shift, list) and any(isinstance(s, Array | SymbolicDim) for s in shift):
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
        by = structural.index_in_dim(shifts, k, keepdims=False)
        size = dtype.type(n) if is_int(n) else array(n, dtype)
        by = ufuncs.remainder(convert(by, dtype), lax.max(size, dtype.type(1)))
        twice = structural.concatenate([a, a], i)
        a = dynamic_slice.dynamic_slice_in_dim(twice, lax.sub(size, by), n, axis=i)
    return a


def flip(m: ArrayLike, axis: Axes = None) -> Array:
    """Reverses the order of elements along axes.

    Args:
      m: array.
      axis: axis or tuple of axes. By default all axes.

    Returns:
      An array of the shape and dtype of `m`. It is a copy, not a view.

    Raises:
      ValueError: if an axis is out of bounds.

    See also: `jax.numpy.flipud`, `jax.numpy.fliplr`, `jax.numpy.rot90`, `jax.lax.rev`.

    Example:
      >>> jnp.flip(jnp.arange(4).reshape(2, 2))
      Array([[3, 2],
             [1, 0]], dtype=int32)
      >>> jnp.flip(jnp.arange(4).reshape(2, 2), axis=1)
      Array([[1, 0],
             [3, 2]], dtype=int32)
    """
    m = value("flip", m)
    return _flip(m, nonnegative_axes(axis, m.ndim))


_flip = jitted("_flip", static=("dimensions",))(structural.rev)


def fliplr(m: ArrayLike) -> Array:
    """Reverses the order of elements along axis 1.

    Raises ValueError for arrays of rank less than 2.

    Example:
      >>> jnp.fliplr(jnp.array([[1, 2], [3, 4]]))
      Array([[2, 1],
             [4, 3]], dtype=int32)
    """
    return flip(m, 1)


def flipud(m: ArrayLike) -> Array:
    """Reverses the order of elements along axis 0.

    Raises ValueError for scalars.

    Example:
      >>> jnp.flipud(jnp.array([[1, 2], [3, 4]]))
      Array([[3, 4],
             [1, 2]], dtype=int32)
    """
    return flip(m, 0)


@jitted("rot90", static=("k", "axes"))
def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """Rotates an array by quarter turns in the plane of two axes.

    `k` is the number of turns, from the first axis towards the second, and static. Raises ValueError unless `axes` are
    two different axes.

    Example:
      >>> jnp.rot90(jnp.array([[1, 2], [3, 4]]))
      Array([[2, 4],
             [1, 3]], dtype=int32)
    """
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
    """Gives an array another shape, repeating or leaving out elements.

    Elements are taken in order and repeated if there are too few; an array without elements gives zeros.

    Example:
      >>> jnp.resize(jnp.array([1, 2, 3]), (2, 2))
      Array([[1, 2],
             [3, 1]], dtype=int32)
    """
    shape = dims.shape_of(new_shape)
    if any(n < 0 for n in shape):
        raise ValueError("all elements of `new_shape` must be non-negative")
    flat, size = ravel(a), math.prod(shape)
    if flat.size == 0 or size == 0:
        return structural.blank(shape, flat.dtype, flat.weak_type)
    flat = tile(flat, math.ceil(size / flat.size))
    return reshape(subscripts.getitem(flat, slice(size)), shape)


# ---- joining and splitting ---------------------------------------------------------------------------


@fused()
def concatenate(
    arrays: np.ndarray | Array | Sequence[ArrayLike], axis: int | None = 0, dtype: DTypeLike | None = None
) -> Array:
    """Joins arrays along an axis that they have.

    Args:
      arrays: sequence of arrays, or an array whose first axis counts them. They may differ in length along `axis` only.
      axis: axis along which to join. For `None` the arrays are flattened.
      dtype: dtype of the result. By default the one that the arrays promote to.

    Returns:
      An array whose axis is as long as those of the arrays together.

    Raises:
      ValueError: if no array is given, or if one is a scalar.
      TypeError: if ranks differ, or other axes in length.

    Differences from NumPy:
      It does not take `out` and `casting`. A value is cast to `dtype` by any cast.

    See also: `jax.numpy.stack`, `jax.numpy.split`, `jax.lax.concatenate`.

    Example:
      >>> jnp.concatenate([jnp.array([1, 2]), jnp.array([3.5])])
      Array([1. , 2. , 3.5], dtype=float32)
      >>> jnp.concatenate([jnp.ones((2, 3)), jnp.zeros((2, 1))], axis=1).shape
      (2, 4)
    """
    if isinstance(arrays, np.ndarray | Array):
        if not np.ndim(arrays):
            raise ValueError(_SCALARS)
        return _merge_first(_not_empty("concatenate", arrays), axis, dtype)
    parts = _checked_sequence("concatenate", arrays)
    if axis is None:
        return concatenate([ravel(x) for x in parts], 0, dtype)
    if any(typeof(x).ndim == 0 for x in parts):
        raise ValueError(_SCALARS)
    axis = dims.canonical_axis(axis, typeof(parts[0]).ndim)
    parts = _in_one_dtype(parts, dtype)
    return value("concatenate", parts[0]) if len(parts) == 1 else structural.concatenate(parts, axis)


_SCALARS = "Zero-dimensional arrays cannot be concatenated. `jnp.stack` joins a sequence of scalars."
_NONE = "Pass a sequence that is not empty."


def _not_empty(name: str, arrays: Any) -> Any:
    """One array as a sequence of arrays. Raises TypeError for a scalar, ValueError if there are none."""
    x = value(name, arrays)
    if not x.ndim:
        raise TypeError(f"{name}: len() of unsized object, the arrays are one scalar")
    if not x.shape[0]:
        raise ValueError(f"Need at least one array to {name}. {_NONE}")
    return x


def _checked_sequence(name: str, arrays: Any) -> Sequence:
    """The arrays to join. Raises TypeError unless they are a sequence, ValueError for an empty one."""
    if not isinstance(arrays, Sequence):
        raise TypeError(f"{name}: the arrays must be given as a sequence or as one array, got {type(arrays)}")
    if not arrays:
        raise ValueError(f"Need at least one array to {name}. {_NONE}")
    return arraylike(name, *arrays)


def _asked(dtype: DTypeLike) -> Any:
    """The dtype that a user asks for; warns, for each array, if 64 bits are not available."""
    return dtypes.requested_dtype(dtype, "asarray")


def _in_one_dtype(arrays: Sequence, dtype: Any) -> list:
    return promote_dtypes(*arrays) if dtype is None else [convert(x, _asked(dtype)) for x in arrays]


def _merge_first(x: Any, axis: int | None, dtype: Any) -> Any:
    if x.ndim == 1 and axis is not None:
        raise ValueError(_SCALARS)
    x = x if dtype is None else convert(x, _asked(dtype))
    if axis is None:
        return ravel(x)
    axis = dims.canonical_axis(axis, x.ndim - 1)
    order = [*range(1, axis + 1), 0, *range(axis + 1, x.ndim)]
    merged = (*x.shape[1 : axis + 1], x.shape[0] * x.shape[axis + 1], *x.shape[axis + 2 :])
    return moving.reshape(x, merged, order)


def concat(arrays: Sequence[ArrayLike], /, *, axis: int | None = 0) -> Array:
    """Joins arrays along an axis that they have.

    It is `concatenate` under the name of the array API standard, where `axis` is a keyword. For `None` the arrays are
    flattened.

    Example:
      >>> jnp.concat([jnp.array([1, 2]), jnp.array([3])])
      Array([1, 2, 3], dtype=int32)
    """
    check_arraylike("concat", *arrays)
    return concatenate(arrays, axis)


@fused()
def stack(
    arrays: np.ndarray | Array | Sequence[ArrayLike], axis: int = 0, out: None = None, dtype: DTypeLike | None = None
) -> Array:
    """Joins arrays of one shape along a new axis.

    Args:
      arrays: sequence of arrays, or an array whose first axis counts them.
      axis: place of the new axis in the result.
      out: must be `None`.
      dtype: dtype of the result. By default the one that the arrays promote to.

    Returns:
      An array of a rank larger by 1, whose new axis counts the arrays.

    Raises:
      ValueError: if no array is given, or if shapes differ.
      NotImplementedError: for `out`.

    Differences from NumPy:
      It does not take `casting`.

    See also: `jax.numpy.concatenate`, `jax.numpy.unstack`, `jax.tree.map`.

    Example:
      >>> jnp.stack([jnp.array([1, 2]), jnp.array([3, 4])])
      Array([[1, 2],
             [3, 4]], dtype=int32)
      >>> jnp.stack([jnp.array([1, 2]), jnp.array([3, 4])], axis=1)
      Array([[1, 3],
             [2, 4]], dtype=int32)
    """
    check_out("stack", out)
    if isinstance(arrays, np.ndarray | Array):
        x = _not_empty("stack", arrays)
        axis = dims.canonical_axis(axis, x.ndim)
        return concatenate(moving.expand_dims(x, (axis + 1,)), axis, dtype)
    parts = _checked_sequence("stack", arrays)
    axis = dims.canonical_axis(axis, typeof(parts[0]).ndim + 1)
    if any(typeof(x).shape != typeof(parts[0]).shape for x in parts):
        shapes = ", ".join(str(typeof(x).shape) for x in parts)
        raise ValueError(
            f"All input arrays must have the same shape. Got {shapes}. `jnp.stack` joins equal shapes, "
            "`jnp.concatenate` arrays of other sizes along an axis that they have."
        )
    return structural.stack(_in_one_dtype(parts, dtype), axis)


def _with_min_ranks(at_least: Any, tup: Any) -> tuple[Any, int]:
    """The arrays with the axes that `at_least` adds, and their rank."""
    if isinstance(tup, np.ndarray | Array):
        stacked = vmap(at_least)(asarray(tup))
        return stacked, stacked.ndim - 1
    stacked = [at_least(x) for x in tup]
    return stacked, stacked[0].ndim if stacked else 1


def hstack(tup: np.ndarray | Array | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Joins arrays along axis 1, or vectors along axis 0.

    `tup` is a sequence of arrays, or an array whose first axis counts them. `dtype` is that of the result. It does not
    take `casting`.

    Example:
      >>> jnp.hstack([jnp.array([1, 2]), jnp.array([3])])
      Array([1, 2, 3], dtype=int32)
    """
    arrays, ndim = _with_min_ranks(atleast_1d, tup)
    return concatenate(arrays, 0 if ndim == 1 else 1, dtype)


def vstack(tup: np.ndarray | Array | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Joins arrays along axis 0, after giving each a rank of at least 2.

    `tup` is a sequence of arrays, or an array whose first axis counts them. `dtype` is that of the result. It does not
    take `casting`.

    Example:
      >>> jnp.vstack([jnp.array([1, 2]), jnp.array([3, 4])])
      Array([[1, 2],
             [3, 4]], dtype=int32)
    """
    return concatenate(_with_min_ranks(atleast_2d, tup)[0], 0, dtype)


def dstack(tup: np.ndarray | Array | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Joins arrays along axis 2, after giving each a rank of at least 3.

    `tup` is a sequence of arrays, or an array whose first axis counts them. `dtype` is that of the result.

    Example:
      >>> jnp.dstack([jnp.array([1, 2]), jnp.array([3, 4])])
      Array([[[1, 3],
              [2, 4]]], dtype=int32)
    """
    return concatenate(_with_min_ranks(atleast_3d, tup)[0], 2, dtype)


def column_stack(tup: np.ndarray | Array | Sequence[ArrayLike]) -> Array:
    """Joins vectors as the columns of a matrix; matrices are joined along their columns.

    The dtype is the one that all promote to.

    Example:
      >>> jnp.column_stack([jnp.array([1, 2]), jnp.array([3, 4])])
      Array([[1, 3],
             [2, 4]], dtype=int32)
    """
    if isinstance(tup, np.ndarray | Array):
        x = asarray(tup)
        return concatenate(vmap(lambda y: transpose(atleast_2d(y)))(x) if x.ndim < 3 else x, 1)
    return concatenate([transpose(atleast_2d(x)) if typeof(x).ndim < 2 else x for x in values("column_stack", *tup)], 1)


@jitted("block")
def block(arrays: ArrayLike | list[ArrayLike]) -> Array:
    """Joins nested lists of arrays to one array.

    Innermost lists are joined along the last axis, outer ones along the axes before it. Arrays of smaller rank get axes
    of length 1 in front.

    Example:
      >>> jnp.block([[jnp.ones((1, 1)), jnp.zeros((1, 2))], [jnp.zeros((1, 3))]])
      Array([[1., 0., 0.],
             [0., 0., 0.]], dtype=float32)
    """
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
    """Joins values to the end of an array.

    For `axis=None` both are flattened; else their shapes may differ along the axis only. The dtype is the one that both
    promote to.

    Example:
      >>> jnp.append(jnp.array([1, 2]), 3)
      Array([1, 2, 3], dtype=int32)
    """
    if axis is None:
        return concatenate([ravel(arr), ravel(values)], 0)
    return concatenate([arr, values], axis)


def _split(name: str, ary: Any, sections: Any, axis: int, equal: bool) -> list:
    ary = value(name, ary)
    axis, size = structural.size_along(name, ary, concrete(axis, name, "axis"))
    if np.ndim(sections) > 1:
        raise TypeError(f"{name}: Only integer scalar arrays can be converted to a scalar index.")
    if isinstance(sections, Sequence) or np.ndim(sections) > 0:
        cuts = [0, *host_ints(name, sections), size]
        sizes = [b - a for a, b in zip(cuts, cuts[1:], strict=False)]
    else:
        count = concrete(sections, name, "indices_or_sections")
        if not is_int(count):
            raise ValueError(f"jax.numpy.{name} with a symbolic number of sections is not supported, got {count}")
        if not (count := int(count)):
            raise ZeroDivisionError(f"{name}: an axis cannot be divided into 0 sections")
        part, rest = divmod(size, count)
        if rest and equal:
            raise ValueError(
                f"{name}: array split does not result in an equal division: rest is {rest}. "
                f"Axis {axis} has size {size}: choose a divisor of it, or use `jnp.array_split`."
            )
        sizes = [part + (i < rest) for i in range(count)]
    return list(structural.split(ary, sizes, axis))


def split(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0) -> list[Array]:
    """Divides an array along an axis into a list of arrays.

    Args:
      ary: array.
      indices_or_sections: number of parts of equal lengths, or an ascending sequence of the indices at which parts
        start, but for the first one. It must be static.
      axis: axis to divide.

    Returns:
      A list of arrays.

    Raises:
      ValueError: if the length of the axis is not a multiple of the number of parts: use `array_split`.
      ConcretizationTypeError: if `indices_or_sections` is traced.

    Differences from NumPy:
      Parts are copies, not views.

    See also: `jax.numpy.array_split`, `jax.numpy.unstack`, `jax.lax.split`.

    Example:
      >>> jnp.split(jnp.arange(4), 2)
      [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32)]
      >>> [x.shape for x in jnp.split(jnp.ones((5, 2)), [1, 3])]
      [(1, 2), (2, 2), (2, 2)]
    """
    return _split("split", ary, indices_or_sections, axis, True)


def array_split(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0) -> list[Array]:
    """Divides an array along an axis into parts, of lengths that differ by at most 1.

    Takes the arguments of `split`, but any number of parts. Returns a list of arrays.

    Example:
      >>> jnp.array_split(jnp.arange(5), 2)
      [Array([0, 1, 2], dtype=int32), Array([3, 4], dtype=int32)]
    """
    return _split("array_split", ary, indices_or_sections, axis, False)


def hsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Divides an array along axis 1, or a vector along axis 0.

    Takes the other arguments of `split`, and returns a list of arrays.

    Example:
      >>> jnp.hsplit(jnp.arange(4), 2)
      [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32)]
    """
    (ary,) = arrays("hsplit", ary)
    return _split("hsplit", ary, indices_or_sections, 0 if typeof(ary).ndim == 1 else 1, True)


def vsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Divides an array along axis 0.

    Takes the other arguments of `split`, and returns a list of arrays.

    Example:
      >>> [x.shape for x in jnp.vsplit(jnp.ones((4, 2)), 2)]
      [(2, 2), (2, 2)]
    """
    return _split("vsplit", ary, indices_or_sections, 0, True)


def dsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Divides an array along axis 2.

    Takes the other arguments of `split`, and returns a list of arrays.

    Example:
      >>> [x.shape for x in jnp.dsplit(jnp.ones((2, 2, 4)), [1])]
      [(2, 2, 1), (2, 2, 3)]
    """
    return _split("dsplit", ary, indices_or_sections, 2, True)


@jitted("unstack", static=("axis",), inline=True)
def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Divides an array along an axis into a tuple of arrays without this axis.

    Raises ValueError for scalars.

    Example:
      >>> jnp.unstack(jnp.array([[1, 2], [3, 4]]))
      (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    x = value("unstack", x)
    if x.ndim == 0:
        raise ValueError("Unstack requires arrays with rank > 0, however a scalar array was passed.")
    return structural.unstack(x, axis)


# ---- differences -------------------------------------------------------------------------------------


def _differences(a: Any, axis: int) -> Any:
    before = [slice(None)] * axis
    later, earlier = subscripts.getitem(a, (*before, slice(1, None))), subscripts.getitem(a, (*before, slice(-1)))
    return ufuncs.not_equal(later, earlier) if a.dtype == np.bool_ else lax.sub(later, earlier)


@jitted("diff", static=("n", "axis"))
def diff(
    a: ArrayLike, n: int = 1, axis: int = -1, prepend: ArrayLike | None = None, append: ArrayLike | None = None
) -> Array:
    """Computes differences of neighboring elements along an axis, `n` times.

    `prepend` and `append` are values that are joined to the ends of the axis first. Differences of booleans are whether
    they differ. `n` and `axis` are static.

    Example:
      >>> jnp.diff(jnp.array([1, 4, 9, 16]))
      Array([3, 5, 7], dtype=int32)
      >>> jnp.diff(jnp.array([1, 4, 9, 16]), n=2)
      Array([2, 2], dtype=int32)
    """
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
    """Computes differences of neighboring elements of a flattened array.

    `to_begin` and `to_end` are values to put before and after them, converted to the dtype of `ary`.

    Example:
      >>> jnp.ediff1d(jnp.array([1, 4, 9]), to_begin=0)
      Array([0, 3, 5], dtype=int32)
    """
    flat = ravel(ary)
    differences = lax.sub(flat[1:], flat[:-1])
    if to_begin is not None:
        differences = concatenate([ravel(convert(to_begin, flat.dtype)), differences], 0)
    if to_end is not None:
        differences = concatenate([differences, ravel(convert(to_end, flat.dtype))], 0)
    return differences


@jitted("vander", static=("N", "increasing"))
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """Makes a Vandermonde matrix, whose columns are powers of a vector.

    It has `N` columns, by default as many as rows. Powers descend unless `increasing`. The dtype is that of `x`.

    Example:
      >>> jnp.vander(jnp.array([1, 2, 3]), 3)
      Array([[1, 1, 1],
             [4, 2, 1],
             [9, 3, 1]], dtype=int32)
    """
    x = value("vander", x)
    if x.ndim != 1:
        raise ValueError(f"vander: x must be a one-dimensional array, got shape {x.shape}")
    n = x.shape[0] if N is None else operator.index(concrete(N, "vander", "N"))
    if n < 0:
        raise ValueError(f"vander: N must be nonnegative, got {n}")
    powers = counting.iota(x.dtype, n)
    powers = powers if increasing else lax.sub(x.dtype.type(n - 1), powers)
    return ufuncs.power(moving.expand_dims(x, (1,)), moving.expand_dims(powers, (0,)))
