"""Arrays of ranges and grids: arange, linspace and their like, triangles, and coordinates."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import numpy as np

from minijax.api.vmap import vmap
from minijax.base import dims, dtypes, errors
from minijax.base.dims import as_index
from minijax.base.dtypes import DTypeLike
from minijax.base.symbolic.dimension import Dim, is_dim, is_int, max_dim
from minijax.dispatch.fused import fused
from minijax.dispatch.jitted import jitted
from minijax.ir.types import typeof
from minijax.numpy import creation, ufuncs
from minijax.primitives import counting, elementwise as lax, moving, sharding, structural
from minijax.primitives.convert import convert, scalar_as
from minijax.primitives.promote import promote_shapes
from minijax.run.arrays import transfer
from minijax.run.arrays.array import Array, ArrayLike, DeviceLike, DimSize, ShardingLike
from minijax.run.clients import client


@fused(0)
def arange(
    start: ArrayLike | DimSize,
    stop: ArrayLike | DimSize | None = None,
    step: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Makes a vector of numbers at equal distances.

    Args:
      start: first number; or the end, excluded, if `stop` is not given. The numbers then start at 0.
      stop: end, excluded.
      step: distance between numbers, 1 by default. It may be negative.
      dtype: dtype of the result. By default the one that the arguments promote to, where Python numbers have the
        default dtypes.
      device: `Device` or `Sharding` to which the array is committed.
      out_sharding: sharding of the result, where the mesh has explicit axes.

    Returns:
      A vector of `ceil((stop - start) / step)` numbers, empty if this is negative.

    Raises:
      ConcretizationTypeError: if an argument is traced, since the length would depend on it. Use `jax.lax.iota` or
        `linspace`, or make the argument static.

    Differences from NumPy:
      Floats of fewer than 32 bits are computed in float32, then rounded. Symbolic dimensions are possible.

    See also: `jax.numpy.linspace`, `jax.lax.iota`.

    Example:
      >>> jnp.arange(4)
      Array([0, 1, 2, 3], dtype=int32)
      >>> jnp.arange(1, 2, 0.25)
      Array([1.  , 1.25, 1.5 , 1.75], dtype=float32)
      >>> jnp.arange(5, 0, -2, dtype=jnp.uint8)
      Array([5, 3, 1], dtype=uint8)
    """
    bounds = _static_bounds(start, stop, step)
    if dtype is None:
        dtype = dtypes.result_type(*[x for x in bounds if x is not None])
    else:
        dtype = dtypes.check_and_canonicalize_user_dtype(dtype, "arange")
    first, end, step = (0, bounds[0], bounds[2]) if bounds[1] is None else bounds
    if all(map(is_int, (first, end, step))):
        size = _length(first, end, step)
    else:
        step = 1 if step is None else step
        size = _symbolic_length(first, end, step)
    requested = creation.traced_sharding("jnp.arange", out_sharding, (size,))
    numbers = _range(first, step, size, dtype, requested)
    device = client.single_device_sharding(device) if isinstance(device, client.Device) else device
    return creation.placed_or_recorded(numbers, device, "jnp.arange", None if requested else out_sharding)


def _static_bounds(start: Any, stop: Any, step: Any) -> list:
    """The arguments of `arange` as concrete real numbers. Raises TypeError if there is no end."""
    names = ("stop" if stop is None and step is None else "start", "stop", "step")
    bounds = [_static_bound(n, x) for n, x in zip(names, (start, stop, step), strict=True)]
    if bounds[0] is None and bounds[1] is None:
        raise TypeError("arange: stop must be real number, not NoneType")
    return bounds


def _range(start: Any, step: Any, size: Dim, dtype: np.dtype, out_sharding: Any) -> Any:
    """`size` numbers from `start` on; floats narrower than 32 bits are computed in float32, unless `step` is None."""
    is_narrow = step is not None and dtypes.issubdtype(dtype, np.floating) and dtype.itemsize < 4
    computed = dtypes.float32 if is_narrow else dtype
    numbers = counting.broadcasted_iota(computed, (size,), 0, out_sharding=out_sharding)
    if step is not None:
        numbers = lax.mul(scalar_as(step, computed), numbers)
    if step is not None or not is_int(start) or start != 0:
        numbers = lax.add(scalar_as(start, computed), numbers)
    return convert(numbers, dtype) if is_narrow else numbers


def _length(start: Any, stop: Any, step: Any) -> int:
    """The number of elements of the range. Raises ZeroDivisionError for a step of 0."""
    if step is not None and step == 0:
        raise ZeroDivisionError("arange: division by zero, step must not be 0")
    return max(0, math.ceil((stop - start) / (1 if step is None else step)))


def _symbolic_length(start: Any, stop: Any, step: Any) -> Dim:
    """As `_length`, for symbolic dimensions and ints. Raises ValueError for other numbers, and for a step of 0."""
    if not all(map(is_dim, (start, stop, step))):
        raise ValueError(
            "arange: beside a symbolic dimension, start, stop and step must be either dimension expressions or "
            f"integers, got {start}, {stop}, {step}"
        )
    if step == 0:
        raise ValueError("arange has step == 0")
    try:
        return max_dim(-((start - stop) // step), 0)
    except errors.InconclusiveDimensionOperation as error:
        raise errors.InconclusiveDimensionOperation(
            f"In arange with non-constant arguments the step ({step}) must be resolved statically if it is > 0 or < 0. "
            f"{error}"
        ) from None


def _static_bound(name: str, x: Any) -> Any:
    """An argument of `arange` as a concrete real number. Raises TypeError or ValueError for another value."""
    if x is None or not is_int(x):
        return x
    x = creation.concrete(x, "arange", name)
    if isinstance(x, Sequence):
        raise TypeError(f"arange requires ndarray, scalar, or None arguments, got {name}={x!r}")
    if np.ndim(x):
        raise ValueError(f"jax.numpy.arange: arguments must be scalars; got {name}={x}")
    if isinstance(x, complex | np.complexfloating):
        raise ValueError("Passing complex start/stop/step to jnp.arange is no longer supported")
    return x


@overload
def linspace(
    start: ArrayLike, stop: ArrayLike, num: int = ..., endpoint: bool = ..., retstep: Literal[False] = ...,
    dtype: DTypeLike | None = ..., axis: int = ..., *, device: DeviceLike | None = ...,
) -> Array: ...  # fmt: skip


@overload
def linspace(
    start: ArrayLike, stop: ArrayLike, num: int = ..., endpoint: bool = ..., *, retstep: Literal[True],
    dtype: DTypeLike | None = ..., axis: int = ..., device: DeviceLike | None = ...,
) -> tuple[Array, Array]: ...  # fmt: skip


def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: DeviceLike | None = None,
) -> Any:
    """Makes a given number of numbers at equal distances between two ends.

    Args:
      start: first number; an array gives one sequence for each element.
      stop: last number, or the end that is excluded. It broadcasts with `start`.
      num: how many numbers, a static integer that is not negative.
      endpoint: whether `stop` is the last number.
      retstep: whether to return the distance too. It must be static.
      dtype: dtype of the result. By default the floating dtype that `start` and `stop` promote to. Numbers are rounded
        down for integers.
      axis: axis of the result along which the sequences run.
      device: `Device` or `Sharding` to which the array is committed.

    Returns:
      An array of shape `(num, *shape)`, with `num` at `axis`; or with `retstep` a pair of it and the distance.

    Raises:
      ValueError: if `num` is negative.

    Differences from NumPy:
      `start` and `stop` may be traced, and the result is differentiable in both.

    See also: `jax.numpy.arange`, `jax.numpy.logspace`, `jax.numpy.geomspace`.

    Example:
      >>> jnp.linspace(0, 1, 5)
      Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
      >>> jnp.linspace(0, 10, 4, endpoint=False, retstep=True)
      (Array([0. , 2.5, 5. , 7.5], dtype=float32), Array(2.5, dtype=float32))
    """
    if type(num) is not int:
        num = as_index(creation.concrete(num, "linspace", "num"))
    if num < 0:
        raise ValueError(f"linspace: Number of samples, {num}, must be non-negative.")
    start, stop = creation.arraylike("linspace", start, stop)
    dtype = dtypes.requested_dtype(dtype, "linspace")
    axis = operator.index(creation.concrete(axis, "linspace", "axis"))
    how = num, bool(endpoint), bool(retstep), dtype, axis
    if device is None:
        return _linspace(start, stop, *how)
    transfer.check_place(device, "linspace", ValueError)
    return _linspace_on(start, stop, *how, device)


def _typed_ends(start: Any, stop: Any, dtype: Any) -> tuple[Any, Any, Any, Any]:
    """The ends of a range in the dtype to compute in, that dtype, and the dtype of the result."""
    result = dtypes.to_inexact_dtype(dtypes.result_type(start, stop)) if dtype is None else dtype
    computed = dtypes.to_inexact_dtype(result)
    return creation.astype(start, computed), creation.astype(stop, computed), computed, result


_STATIC = "num", "endpoint", "retstep", "dtype", "axis"


@jitted("_linspace", static=_STATIC)
def _linspace(start, stop, num, endpoint, retstep, dtype, axis):
    out, step, result = _samples(start, stop, num, endpoint, dtype, axis)
    out = convert(out, result)
    return (out, step) if retstep else out


@jitted("_linspace", static=(*_STATIC, "device"))
def _linspace_on(start, stop, num, endpoint, retstep, dtype, axis, device):
    out, step, result = _samples(start, stop, num, endpoint, dtype, axis)
    out = creation.constrained(convert(out, result), out, result, device)
    return (out, step) if retstep else out


def _samples(start: Any, stop: Any, num: int, endpoint: bool, dtype: Any, axis: int) -> tuple[Any, Any, Any]:
    """Returns (the numbers, their distance, the dtype to convert the numbers to)."""
    start, stop, computed, result = _typed_ends(start, stop, dtype)
    shape = structural.broadcast_shapes(start.shape, stop.shape)
    ends = stop, start
    start, stop = moving.broadcast_to_shape(start, shape), moving.broadcast_to_shape(stop, shape)
    if not -len(shape) <= axis + 1 <= len(shape) + 1:
        raise IndexError(f"linspace: axis {axis} is out of range for {len(shape) + 1} axes of samples")
    axis %= len(shape) + 1
    bounds = (*shape[:axis], 1, *shape[axis:])
    div = num - 1 if endpoint else num
    real = dtypes.to_floating_dtype(computed)
    step = None
    if num > 1:
        step = lax.div(lax.sub(*promote_shapes("subtract", *ends)), scalar_as(div, computed))
        wide = tuple(div if i == axis else 1 for i in range(len(bounds)))
        part = moving.reshape_to(counting.iota(real, div), wide)
        part = convert(lax.div(part, scalar_as(div, real)), computed)
        left = lax.mul(moving.reshape(start, bounds), lax.sub(scalar_as(1, computed), part))
        out = lax.add(left, lax.mul(moving.reshape(stop, bounds), part))
        if endpoint:
            out = structural.concatenate([out, moving.expand_dims(stop, (axis,))], axis)
    elif num == 1:
        step = np.array(np.nan, computed)[()] if endpoint else lax.sub(stop, start)
        out = moving.reshape(start, bounds)
    else:
        step = np.array(np.nan, computed)[()]
        out = moving.filled((*shape[:axis], 0, *shape[axis:]), 0, computed)
    if dtypes.issubdtype(result, np.integer) and not dtypes.issubdtype(out.dtype, np.integer):
        out = lax.floor(out)
    return out, step, result


def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """Makes a given number of numbers whose logarithms are at equal distances.

    The first is `base ** start` and the last `base ** stop`, which is left out unless `endpoint`. `num` is static; the
    other arguments may be arrays that broadcast, with the sequences along `axis`. The dtype is by default the floating
    one that the arguments promote to.

    Example:
      >>> jnp.logspace(0, 2, 3).round(3)
      Array([  1.     ,  10.     , 100.00001], dtype=float32)
    """
    num = operator.index(creation.concrete(num, "logspace", "num"))
    start, stop, base = creation.arraylike("logspace", start, stop, base)
    dtype = dtypes.requested_dtype(dtype, "logspace")
    return _logspace(start, stop, base, num=num, endpoint=bool(endpoint), dtype=dtype, axis=operator.index(axis))


@jitted("_logspace", static=("num", "endpoint", "dtype", "axis"))
def _logspace(start, stop, base, num, endpoint, dtype, axis):
    start, stop, computed, result = _typed_ends(start, stop, dtype)
    powers = linspace(start, stop, num, endpoint=endpoint, axis=axis)
    base = convert(base, computed)
    base = moving.expand_dims(base, (axis,)) if base.ndim else base
    shape = structural.broadcast_shapes(base.shape, powers.shape)
    base = moving.broadcast_to_shape(base, shape) if base.ndim else base
    return convert(lax.pow(base, moving.broadcast_to_shape(powers, shape)), result)


def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """Makes a given number of numbers in geometric progression.

    The first is `start` and the last `stop`, which is left out unless `endpoint`. Both must have one sign, and may be
    arrays that broadcast, with the sequences along `axis`. `num` is static. The dtype is by default the floating one
    that the arguments promote to.

    Example:
      >>> jnp.geomspace(1, 8, 4).round(3)
      Array([1., 2., 4., 8.], dtype=float32)
    """
    num = operator.index(creation.concrete(num, "geomspace", "num"))
    start, stop = creation.arraylike("geomspace", start, stop)
    dtype = dtypes.requested_dtype(dtype, "geomspace")
    return _geomspace(start, stop, num=num, endpoint=bool(endpoint), dtype=dtype, axis=operator.index(axis))


@jitted("_geomspace", static=("num", "endpoint", "dtype", "axis"))
def _geomspace(start, stop, num, endpoint, dtype, axis):
    start, stop, computed, result = _typed_ends(start, stop, dtype)
    sign = lax.sign(start)
    ends = [ufuncs.log10(lax.div(*promote_shapes("geomspace", x, sign))) for x in (start, stop)]
    powers = logspace(*ends, num, endpoint=endpoint, base=10.0, dtype=computed, axis=0)
    sign = moving.expand_dims(sign, (0,)) if sign.ndim else sign
    powers = lax.mul(*promote_shapes("geomspace", sign, powers)) if sign.ndim else lax.mul(sign, powers)
    if axis:
        powers = moving.move_axis(powers, 0, dims.canonical_axis(axis, powers.ndim))
    return convert(powers, result)


def _lower_mask(n: int, m: int, k: Any) -> Any:
    """The mask of the lower triangle of an n by m matrix."""
    return counting.diagonal_mask(n, m, k, lax.ge, dtypes.default_int_dtype())


def _diagonal_mask(n: int, m: int, k: Any) -> Any:
    int_type = dtypes.default_int_dtype()
    if isinstance(k, int):
        bounds = np.iinfo(int_type)
        k = int_type.type(min(max(k, bounds.min), bounds.max))
    (k,) = creation.arraylike("eye", k)
    aval = typeof(k)
    if aval.shape or not dtypes.issubdtype(aval.dtype, np.integer):
        raise ValueError(f"eye: k must be a scalar integer; got {k}")
    rows, columns = (counting.broadcasted_iota(aval.dtype, (n, m), i) for i in (0, 1))
    return lax.eq(lax.add(rows, convert(k, aval.dtype)), columns)


@fused(0)
def eye(
    N: DimSize,
    M: DimSize | None = None,
    k: int | ArrayLike = 0,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
) -> Array:
    """Makes a matrix with ones on a diagonal and zeros elsewhere.

    Args:
      N: number of rows.
      M: number of columns, by default `N`.
      k: the diagonal: above the main one if positive, below it if negative. It may be traced.
      dtype: dtype of the result, by default the default floating dtype.
      device: `Device` or `Sharding` to which the array is committed.

    Returns:
      A matrix of shape `(N, M)`.

    Raises:
      TypeError: if `N` or `M` is traced: a shape must be static under `jit`.
      ValueError: if `N` or `M` is negative.

    Differences from NumPy:
      It does not take `order` and `like`.

    See also: `jax.numpy.identity`, `jax.numpy.diag`.

    Example:
      >>> jnp.eye(2, 3)
      Array([[1., 0., 0.],
             [0., 1., 0.]], dtype=float32)
      >>> jnp.eye(3, k=-1, dtype=int)
      Array([[0, 0, 0],
             [1, 0, 0],
             [0, 1, 0]], dtype=int32)
    """
    dtype = dtypes.requested_dtype(dtype, "eye", float)
    n, m = (dims.canonical_dim(v) for v in (N, N if M is None else M))
    if n < 0 or m < 0:
        raise ValueError(f"eye: negative dimensions are not allowed, got {N} and {M}")
    return creation.placed_or_recorded(convert(_diagonal_mask(n, m, k), dtype), device, "jnp.eye")


def identity(n: DimSize, dtype: DTypeLike | None = None) -> Array:
    """Makes a square matrix with ones on the diagonal and zeros elsewhere.

    `n` is static. The dtype is by default the default floating dtype.

    Example:
      >>> jnp.identity(2)
      Array([[1., 0.],
             [0., 1.]], dtype=float32)
    """
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Makes a matrix with ones on and below a diagonal and zeros above.

    It has `N` rows and `M` columns, by default `N`; both are static. `k` is the diagonal: above the main one if
    positive. The dtype is by default the default floating dtype.

    Example:
      >>> jnp.tri(2, 3)
      Array([[1., 0., 0.],
             [1., 1., 0.]], dtype=float32)
    """
    dtype = dtypes.requested_dtype(dtype, "tri", np.float32)
    return convert(_lower_mask(dims.canonical_dim(N), dims.canonical_dim(N if M is None else M), k), dtype)


def _triangle(name: str, m: Any, k: int, lower: bool) -> Any:
    m = creation.value(name, m)
    if m.ndim < 2:
        raise ValueError(f"Argument to jax.numpy.{name} must be at least 2D, got shape {m.shape}")
    aval = typeof(m)
    mask = moving.broadcast_to_shape(_lower_mask(*m.shape[-2:], k if lower else k - 1), m.shape, aval.own_sharding)
    mask = sharding.reshard_like(mask, aval)
    blank = structural.full_like(m, 0)
    return lax.select_n(mask, *((blank, m) if lower else (m, blank)))


@jitted("tril", static=("k",))
def tril(m: ArrayLike, k: int = 0) -> Array:
    """Returns the lower triangle of a matrix, or of each matrix in an array.

    Args:
      m: array of rank 2 or more; matrices are in the last two axes.
      k: the last diagonal that is kept: 0 is the main one, positive ones are above it, negative ones below.

    Returns:
      An array of the shape and dtype of `m`, with zeros above diagonal `k`.

    Raises:
      ValueError: if the rank is less than 2.

    Differences from NumPy:
      A vector is an error, not the rows of a matrix.

    See also: `jax.numpy.triu`, `jax.numpy.tri`.

    Example:
      >>> jnp.tril(jnp.arange(1, 10).reshape(3, 3))
      Array([[1, 0, 0],
             [4, 5, 0],
             [7, 8, 9]], dtype=int32)
    """
    return _triangle("tril", m, k, True)


@jitted("triu", static=("k",))
def triu(m: ArrayLike, k: int = 0) -> Array:
    """Returns the upper triangle of a matrix, or of each matrix in an array.

    Elements below the diagonal `k` become zero. Matrices are in the last two axes. Raises ValueError if the rank is
    less than 2.

    Example:
      >>> jnp.triu(jnp.arange(1, 10).reshape(3, 3))
      Array([[1, 2, 3],
             [0, 5, 6],
             [0, 0, 9]], dtype=int32)
    """
    return _triangle("triu", m, k, False)


def broadcast_along(x: Any, axis: int, shape: Sequence[int], sparse: bool = True) -> Any:
    """A vector broadcast along an axis of a grid; the other axes have size 1 if `sparse`."""
    return moving.broadcast_in_dim(x, [n if i == axis or not sparse else 1 for i, n in enumerate(shape)], (axis,))


def meshgrid(*xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> list[Array]:
    """Makes arrays of coordinates from vectors of coordinates.

    There is one array for each vector, with one axis for each vector; with `indexing="xy"` the first two axes are
    exchanged, with "ij" they are not. With `sparse`, other axes have length 1. Arguments must be of rank 0 or 1. `copy`
    must be true: arrays are immutable.

    Example:
      >>> x, y = jnp.meshgrid(jnp.array([1, 2, 3]), jnp.array([10, 20]))
      >>> x
      Array([[1, 2, 3],
             [1, 2, 3]], dtype=int32)
      >>> y
      Array([[10, 10, 10],
             [20, 20, 20]], dtype=int32)
    """
    args = list(creation.values("meshgrid", *xi))
    if not copy:
        raise ValueError("jax.numpy.meshgrid only supports copy=True")
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: Valid values for indexing are 'xy' and 'ij', got {indexing}")
    if any(x.ndim != 1 for x in args):
        raise ValueError(f"Arguments to jax.numpy.meshgrid must be 1D, got shapes {[x.shape for x in args]}")
    swap = indexing == "xy" and len(args) >= 2
    if swap:
        args[:2] = args[1::-1]
    shape = [x.shape[0] for x in args]
    grids = [broadcast_along(x, i, shape, sparse) for i, x in enumerate(args)]
    if swap:
        grids[:2] = grids[1::-1]
    return grids


def indices(dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False) -> Any:
    """Makes the arrays of the indices of a grid.

    `dimensions` is the shape of the grid, and static. The result has shape `(rank, *dimensions)`; with `sparse` it is a
    tuple of arrays whose other axes have length 1. The dtype is by default the default integer dtype.

    Example:
      >>> jnp.indices((2, 2))[0]
      Array([[0, 0],
             [1, 1]], dtype=int32)
    """
    dtype = dtypes.requested_dtype(dtype, "indices", int)
    shape = dims.canonical_shape(dimensions)
    grids = [broadcast_along(counting.iota(dtype, n), i, shape, sparse) for i, n in enumerate(shape)]
    if sparse:
        return tuple(grids)
    return structural.stack(grids, 0) if grids else creation.asarray(np.zeros(0, dtype))


def fromfunction(function: Callable, shape: Any, *, dtype: DTypeLike = float, **kwargs: Any) -> Array:
    """Makes an array by calling a function of indices.

    Unlike in NumPy, `function` gets scalars and is mapped over the indices by `vmap`; hence it must be traceable.
    Further keyword arguments are passed to it. `dtype` is that of the indices.

    Example:
      >>> jnp.fromfunction(lambda i, j: i + j, (2, 2))
      Array([[0., 1.],
             [1., 2.]], dtype=float32)
    """
    shape = dims.shape_of(shape)

    def mapped(*xs):
        return function(*xs, **kwargs)

    for i in reversed(range(len(shape))):
        mapped = vmap(mapped, in_axes=tuple(0 if j == i else None for j in range(len(shape))))
    return mapped(*[arange(n, dtype=dtype) for n in shape])
