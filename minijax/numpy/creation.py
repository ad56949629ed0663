"""Array creation: from values, constant arrays, ranges, triangles and grids."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import numpy as np

from minijax.api.vmap import vmap
from minijax.base import dims, dtypes, errors, tree
from minijax.base.dims import as_index
from minijax.base.dtypes import DTypeLike
from minijax.base.source import hide_frames
from minijax.base.symbolic.dimension import Dim, is_dim, is_int, max_dim
from minijax.dispatch.fused import fused
from minijax.dispatch.jitted import jitted
from minijax.ir import state
from minijax.ir.trace import Tracer
from minijax.ir.types import is_hi_value, typeof, unwrapped
from minijax.numpy import ufuncs
from minijax.partition.shardings import Sharding
from minijax.primitives import convert as lax_convert, counting, elementwise as lax, moving, sharding, structural
from minijax.primitives.as_array import as_array
from minijax.primitives.convert import cast, convert, scalar_as
from minijax.primitives.device import REUSE_INPUT, device_put, place_like
from minijax.primitives.families import const_like
from minijax.primitives.promote import arrays, promote_shapes
from minijax.run.arrays import transfer
from minijax.run.arrays.array import Array, ArrayLike, DeviceLike, DimSize, ShardingLike
from minijax.run.clients import client


def arraylike(name: str, *args: Any) -> tuple:
    """Unwraps array-like arguments. Raises TypeError, naming the function, for others."""
    try:
        return tuple(arrays(name, *args))
    except Exception as error:
        hide_frames(error)
        raise


def values(name: str, *args: Any) -> tuple:
    """As `arraylike`, and converts NumPy arrays and Python numbers to arrays."""
    try:
        return tuple(x if isinstance(x, Array) else asarray(x) for x in arrays(name, *args))
    except Exception as error:
        hide_frames(error)
        raise


def value(name: str, x: Any) -> Any:
    return x if isinstance(x, Array) else values(name, x)[0]


def concrete(x: Any, name: str, argument: str) -> Any:
    """A concrete value as a NumPy or Python value. Raises ConcretizationTypeError for a traced one."""
    if isinstance(x, Tracer):
        known = x.concrete_value()
        if known is None:
            where = f"the jnp.{name} argument '{argument}'" if name else argument
            raise errors.ConcretizationTypeError(x, f"It arose in {where}")
        x = known
    return np.asarray(x)[()] if isinstance(x, Array) else x


def host_ints(name: str, xs: Any) -> list[int]:
    """A sequence of concrete ints or symbolic dimensions as a list."""
    try:
        ints = np.asarray(
            [concrete(x, name, "indices") for x in xs] if isinstance(xs, Sequence) else concrete(xs, name, "")
        )
        if ints.size and ints.dtype.kind not in "iu" and not all(map(is_dim, ints.flat)):
            raise TypeError(f"{name}: expected integers, got {ints.dtype}")
        return [as_index(i) for i in ints.reshape(-1)]
    except Exception as error:
        hide_frames(error)
        raise


# ---- from values -------------------------------------------------------------------------------------


def array(
    object: Any,
    dtype: DTypeLike | None = None,
    *args: Any,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    device: DeviceLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Makes an array on a device from a value, copying it.

    Args:
      object: number, array of this package or NumPy's, object with `__jax_array__` or `__array__`, buffer, or nested
        lists and tuples of these.
      dtype: dtype of the result. By default that of `object`, narrowed to 32 bits unless `jax_enable_x64` is set.
        Python numbers get the default dtypes, and the result has a strong type.
      copy: if false, an array of this package that need not change is returned as it is.
      order: must be "K" or `None`.
      ndmin: least rank of the result. Axes of length 1 are added in front.
      device: `Device` or `Sharding` to which the array is committed. By default it is uncommitted on the default
        device.
      out_sharding: sharding of the result, where the mesh has explicit axes.

    Returns:
      An array.

    Raises:
      TypeError: if `object` is no value of numbers, such as a string.
      NotImplementedError: for other orders.

    Differences from NumPy:
      Arrays are immutable and have a fixed set of dtypes: there are no strings, objects or records. 64-bit dtypes need
      `jax_enable_x64`. There are no arguments `subok` and `like`.

    See also: `jax.numpy.asarray`, `jax.device_put`, `jax.numpy.zeros`.

    Example:
      >>> jnp.array([1, 2, 3])
      Array([1, 2, 3], dtype=int32)
      >>> jnp.array([[1, 2], [3, 4]], dtype=jnp.bfloat16)
      Array([[1, 2],
             [3, 4]], dtype=bfloat16)
      >>> jnp.array(np.arange(3.0), ndmin=2).shape
      (1, 3)
    """
    try:
        if args:
            copy, order, ndmin = _positional(args, copy, order, ndmin)
        if order is not None and order != "K":
            raise NotImplementedError("array: Only implemented for order='K'")
        dtype = dtypes.requested_dtype(dtype, "array")
        return _from_value(_with_min_rank(as_array(object, dtype, bool(copy)), ndmin), device, out_sharding)
    except Exception as error:
        hide_frames(error)
        raise


def _positional(args: tuple, *named: Any) -> tuple:
    """The `copy`, `order` and `ndmin` of `array` as positional arguments, which are deprecated."""
    names, defaults = ("copy", "order", "ndmin"), (True, "K", 0)
    if len(args) > len(names):
        raise TypeError(f"array() takes at most 5 positional arguments, but {2 + len(args)} were given")
    for name, x, default in zip(names, named[: len(args)], defaults, strict=False):
        if x != default:
            raise TypeError(f"array() got multiple values for argument {name!r}")
    errors.warn(
        "Passing the copy, order, and ndmin arguments to jnp.array positionally is deprecated: name them.",
        DeprecationWarning,
    )
    return (*args, *named[len(args) :])


def asarray(
    a: Any,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: DeviceLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Converts a value to an array, without a copy where possible.

    Args:
      a: number, array of this package or NumPy's, object with `__jax_array__` or `__array__`, buffer, or nested lists
        and tuples of these.
      dtype: dtype of the result. By default that of `a`, narrowed to 32 bits unless `jax_enable_x64` is set.
      order: must be "K" or `None`.
      copy: true for a copy always, false for an error where a copy would be needed, `None` for a copy where it is
        needed.
      device: `Device` or `Sharding` to which the array is committed.
      out_sharding: sharding of the result, where the mesh has explicit axes.

    Returns:
      An array. A Python number gives a scalar of a weak type, which does not widen the other operand of an operation.

    Raises:
      TypeError: if `a` is no value of numbers, such as a string.
      ValueError: if `copy` is false and the value cannot be used in place.

    Differences from NumPy:
      An array of NumPy is copied to the device of JAX. Later writes to it do not change the result. 64-bit dtypes need
      `jax_enable_x64`.

    See also: `jax.numpy.array`, `jax.device_put`, `jax.numpy.astype`.

    Example:
      >>> x = jnp.asarray(np.array([1.5, 2.5]))
      >>> x
      Array([1.5, 2.5], dtype=float32)
      >>> jnp.asarray(x) is x
      True
      >>> jnp.asarray(2)
      Array(2, dtype=int32, weak_type=True)
    """
    try:
        if order is not None and order != "K":
            raise NotImplementedError("asarray: Only implemented for order='K'")
        dtype = dtypes.requested_dtype(dtype, "asarray")
        return _from_value(as_array(a, dtype, bool(copy)), device, out_sharding)
    except Exception as error:
        hide_frames(error)
        raise


def _from_value(x: Any, device: Any, out_sharding: Any) -> Any:
    """Places a value on `device`, or constrains a tracer to it. Raises ValueError for an array committed elsewhere."""
    if device is None or out_sharding is not None:
        return _place(x, device, "jnp.array", out_sharding)
    if isinstance(x, Tracer):
        target = device if isinstance(device, Sharding) else client.single_device_sharding(device)
        x = lax_convert.convert_element_type_p.bind(x, new_dtype=x.dtype, weak_type=False, sharding=None)
        return sharding.with_sharding_constraint(x, target)
    if isinstance(x, Array) and x.committed:
        want = device._device_assignment if isinstance(device, Sharding) else (device,)
        if (have := x.sharding._device_assignment) != want:
            ids = [[d.id for d in devices] for devices in (have, want)]
            raise ValueError(
                "Received incompatible devices for jitted computation. Got an array that is committed to those with "
                f"device ids {ids[0]} and device={device}: `jax.device_put` moves it"
            )
    return _place(x, device)


def _place(x: Any, device: Any, name: str = "", out_sharding: Any = None) -> Any:
    if out_sharding is not None:
        return sharding.with_out_sharding(name, x, out_sharding)
    if device is None or isinstance(x, Tracer):
        return moving.as_array_or_constant(x) if type(x) is np.ndarray and x.dtype != dtypes.float0 else x
    return transfer.filled_at(x, device)


def _place_or_record(x: Any, device: Any, *named: Any) -> Any:
    """As `_place`, but records a `device_put` under a trace."""
    if isinstance(x, Tracer) and device is not None:
        return device_put([x], [device], [None], [REUSE_INPUT])[0]
    return _place(x, device, *named)


def _with_min_rank(x: Any, ndmin: int) -> Any:
    missing = ndmin - typeof(x).ndim
    return moving.expand_dims(x, tuple(range(missing))) if missing > 0 else x


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """Returns a copy of an array.

    Under `jit` XLA may leave the copy out, since arrays are immutable. `order` must be "K" or `None`.
    """
    return array(value("copy", a), copy=True, order=order)


@fused()
def astype(x: ArrayLike, dtype: DTypeLike | None, /, *, copy: bool = False, device: DeviceLike | None = None) -> Array:
    """Casts an array to another dtype.

    A cast of complex to real numbers drops the imaginary part and warns. 64-bit dtypes need `jax_enable_x64`. If `copy`
    is false, an array that has the dtype may be returned as it is. `device` commits the result to a device or sharding.
    """
    x = value("astype", x)
    target = dtypes.requested_dtype(dtype, "astype", float)
    drops = dtypes.is_complex(x.dtype) and not dtypes.is_complex(target)
    if drops and target == np.bool_:
        out = cast(lax.ne(x, const_like(x, 0)), target)
    else:
        if drops:
            errors.warn(
                "Casting from complex to real dtypes will soon raise a ValueError. Please first use jnp.real "
                "or jnp.imag to take the real/imaginary component of your input.",
                DeprecationWarning,
            )
        out = cast(x, target)
    return _place(lax_convert.copy_p.bind(out) if copy else out, device)


def frombuffer(buffer: Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0) -> Array:
    """Makes a vector of the numbers in a buffer.

    The memory is copied, and dtypes of 64 bits are narrowed unless `jax_enable_x64` is set. `count` is how many numbers
    to read, -1 for all, and `offset` where they start, in bytes.
    """
    return asarray(np.frombuffer(buffer=buffer, dtype=np.dtype(dtype), count=count, offset=offset))


def from_dlpack(x: Any, /, *, device: DeviceLike | None = None, copy: bool | None = None) -> Array:
    """Imports an array of another library through the DLPack protocol.

    `x` has the methods `__dlpack__` and `__dlpack_device__`. The memory is shared if it is on the same device and
    suitably aligned; `copy` true asks for a copy, and false makes it an error if one is needed. `device` is where the
    result is placed. A view must not be changed by its owner, as arrays are immutable.
    """
    return transfer.from_dlpack(x, device, copy)


def fromfunction(function: Callable, shape: Any, *, dtype: DTypeLike = float, **kwargs: Any) -> Array:
    """Makes an array by calling a function of indices.

    Unlike in NumPy, `function` gets scalars and is mapped over the indices by `vmap`; hence it must be traceable.
    Further keyword arguments are passed to it. `dtype` is that of the indices.
    """
    shape = dims.shape_of(shape)

    def mapped(*xs):
        return function(*xs, **kwargs)

    for i in reversed(range(len(shape))):
        mapped = vmap(mapped, in_axes=tuple(0 if j == i else None for j in range(len(shape))))
    return mapped(*[arange(n, dtype=dtype) for n in shape])


# ---- constant arrays ---------------------------------------------------------------------------------


def _shape_of(shape: Any) -> tuple[int, ...]:
    shape = dims.shape_of(shape)
    moving.check_nonnegative("broadcast_in_dim shape", shape)
    return shape


def _filled(name: str, shape: Any, fill: Any, dtype: Any, device: Any, out_sharding: Any) -> Any:
    if isinstance(dtype, int) and not isinstance(shape, Sequence):
        raise TypeError(
            f"Cannot interpret '{dtype}' as a data type. Did you accidentally write `jax.numpy.{name}({shape}, "
            f"{dtype})` when you meant `jax.numpy.{name}(({shape}, {dtype}))`, with one tuple for the shape?"
        )
    dtype = dtypes.requested_dtype(dtype, name, float)
    shape = _shape_of(shape)
    requested = _traced_sharding(f"jnp.{name}", out_sharding, shape)
    out = _constant(shape, fill, dtype, out_sharding=requested)
    return _place(out, device, f"jnp.{name}", None if requested else out_sharding)


def _traced_sharding(name: str, out_sharding: Any, shape: tuple) -> Any:
    """The `out_sharding` for an operation under a trace; None for eager values, which are placed afterwards."""
    return sharding.requested_sharding(name, out_sharding, len(shape)) if shape and not state.is_eager() else None


def _constant(shape: tuple, fill: Any, dtype: Any, weak: bool = False, out_sharding: Any = None) -> Any:
    if dtypes.is_extended(dtype):
        return structural.full_extended(shape, fill, dtype)
    if dtype == dtypes.float0:
        zero = np.zeros((), dtype)
        return moving.broadcast_to_shape(zero, shape) if shape and not state.is_eager() else np.zeros(shape, dtype)
    fill = convert(fill, dtype, weak)
    if shape:
        return moving.broadcast_to_shape(fill, shape, out_sharding)
    fill = fill if isinstance(fill, Array) else moving.as_array_or_constant(fill)
    return fill if out_sharding is None else sharding.replicated_over_mesh(fill, out_sharding)


@fused(0)
def zeros(
    shape: Any,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Makes an array of zeros.

    Args:
      shape: int, or sequence of ints. Dimensions must be static under `jit`; symbolic ones are possible.
      dtype: dtype of the result, by default the default floating dtype (float32, or float64 with `jax_enable_x64`).
      device: `Device` or `Sharding` to which the array is committed.
      out_sharding: sharding of the result, where the mesh has explicit axes.

    Returns:
      An array of this shape and dtype.

    Raises:
      TypeError: if a dimension is no concrete integer, such as a traced value.

    Differences from NumPy:
      There are no arguments `order` and `like`.

    See also: `jax.numpy.zeros_like`, `jax.numpy.ones`, `jax.numpy.full`.

    Example:
      >>> jnp.zeros((2, 3))
      Array([[0., 0., 0.],
             [0., 0., 0.]], dtype=float32)
      >>> jnp.zeros(2, dtype=bool)
      Array([False, False], dtype=bool)
    """
    return _filled("zeros", shape, 0, dtype, device, out_sharding)


@fused(0)
def ones(
    shape: Any,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Makes an array of ones.

    Args:
      shape: int, or sequence of ints. Dimensions must be static under `jit`; symbolic ones are possible.
      dtype: dtype of the result, by default the default floating dtype (float32, or float64 with `jax_enable_x64`).
      device: `Device` or `Sharding` to which the array is committed.
      out_sharding: sharding of the result, where the mesh has explicit axes.

    Returns:
      An array of this shape and dtype.

    Raises:
      TypeError: if a dimension is no concrete integer, such as a traced value.

    Differences from NumPy:
      There are no arguments `order` and `like`.

    See also: `jax.numpy.ones_like`, `jax.numpy.zeros`, `jax.numpy.full`.

    Example:
      >>> jnp.ones((2, 3))
      Array([[1., 1., 1.],
             [1., 1., 1.]], dtype=float32)
      >>> jnp.ones(2, dtype=jnp.int32)
      Array([1, 1], dtype=int32)
    """
    return _filled("ones", shape, 1, dtype, device, out_sharding)


def empty(
    shape: Any,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Makes an array for values that do not matter.

    Args:
      shape: int, or sequence of ints. Dimensions must be static under `jit`.
      dtype: dtype of the result, by default the default floating dtype.
      device: `Device` or `Sharding` to which the array is committed.
      out_sharding: sharding of the result, where the mesh has explicit axes.

    Returns:
      An array of this shape and dtype.

    Differences from NumPy:
      The array holds zeros, since memory of a device is never shown uninitialized. Hence this is no faster than
      `zeros`. There are no arguments `order` and `like`.

    See also: `jax.numpy.zeros`, `jax.numpy.empty_like`.

    Example:
      >>> jnp.empty(3)
      Array([0., 0., 0.], dtype=float32)
    """
    return _filled("empty", shape, 0, dtype, device, out_sharding)


def full(
    shape: Any,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Makes an array that is filled with a value.

    Args:
      shape: int, or sequence of ints. Dimensions must be static under `jit`.
      fill_value: number, or array that broadcasts to `shape`. It may be traced.
      dtype: dtype of the result, by default that of `fill_value`. The result has a weak type if the value has one, such
        as a Python number, and neither `dtype` nor `device` is given.
      device: `Device` or `Sharding` to which the array is committed.
      out_sharding: sharding of the result, where the mesh has explicit axes.

    Returns:
      An array of this shape.

    Raises:
      TypeError: if a dimension is no concrete integer.
      ValueError: if `fill_value` does not broadcast to `shape`.

    Differences from NumPy:
      There are no arguments `order` and `like`.

    See also: `jax.numpy.full_like`, `jax.numpy.zeros`, `jax.numpy.broadcast_to`.

    Example:
      >>> jnp.full((2, 3), 7)
      Array([[7, 7, 7],
             [7, 7, 7]], dtype=int32, weak_type=True)
      >>> jnp.full((2, 2), jnp.array([0.0, 1.0]))
      Array([[0., 1.],
             [0., 1.]], dtype=float32)
    """
    (fill,) = arraylike("full", fill_value)
    dtype = dtypes.requested_dtype(dtype, "full")
    shape = _shape_of(shape)
    requested = _traced_sharding("full", out_sharding, shape)
    if typeof(fill).ndim:
        requested = requested if _must_broadcast("full", fill, shape) else None
        out = moving.broadcast_to_shape(as_array(fill, dtype), shape, requested)
    elif dtype is None and dtypes.is_extended(typeof(fill).dtype):
        out = moving.broadcast_to_shape(fill, shape, requested)
    else:
        weak = dtype is None and device is None and typeof(fill).weak_type
        out = _constant(shape, fill, dtype or typeof(fill).dtype, weak, requested)
    return _place(out, device, "full", None if requested else out_sharding)


def _must_broadcast(name: str, fill: Any, shape: tuple) -> bool:
    """Returns whether `fill` has another shape. Raises ValueError if it does not broadcast to `shape`."""
    have = typeof(fill).shape
    if structural.broadcast_shapes(have, shape) != shape:
        raise ValueError(f"{name}: Incompatible shapes for broadcasting: {have} and requested shape {shape}")
    return have != shape


def _with_shape_and_dtype(name: str, a: Any) -> Any:
    """`a` if it has a shape and a dtype, for example as a `ShapeDtypeStruct`; otherwise its value."""
    if is_hi_value(a) or not (hasattr(a, "shape") and hasattr(a, "dtype")):
        (a,) = arraylike(name, a)
    return a


def _like(name: str, a: Any, fill: Any, dtype: Any, shape: Any, device: Any, out_sharding: Any = None) -> Any:
    """An array with the type of `a`, except for what is given, and with its placement by default."""
    a = _with_shape_and_dtype(name, a)
    dtype = dtypes.requested_dtype(dtype, name)
    like = structural.aval_like(a)
    new_shape = like.shape if shape is None else _shape_of(shape)
    requested = _traced_sharding(name, out_sharding, new_shape)
    if typeof(fill).ndim:
        requested = requested if _must_broadcast(name, fill, new_shape) else None
        out = moving.broadcast_to_shape(as_array(fill, dtype or like.dtype), new_shape, requested)
    else:
        inherited = _inherited_sharding(a, like) if shape is None and device is None else None
        is_weak = not dtype and like.weak_type
        out = _constant(new_shape, fill, dtype or like.dtype, is_weak, requested or inherited)
    if device is None and out_sharding is None:
        return place_like(out, a)
    return _place(out, device, name, None if requested else out_sharding)


def _inherited_sharding(a: Any, like: Any) -> Any:
    """The sharding of `like`, the type of `a`, for an operation under a trace; None for eager values."""
    return like._sharding if isinstance(a, Tracer) or not (state.is_eager() or isinstance(a, Array)) else None


@fused()
def zeros_like(
    a: Any,
    dtype: DTypeLike | None = None,
    shape: Any = None,
    *,
    device: DeviceLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Makes an array of zeros with the shape and dtype of another.

    Args:
      a: array, number, or object with a shape and a dtype, such as a `jax.ShapeDtypeStruct`. Only these are read.
      dtype: dtype to use instead of that of `a`.
      shape: shape to use instead of that of `a`.
      device: `Device` or `Sharding` to which the array is committed.
      out_sharding: sharding of the result, where the mesh has explicit axes.

    Returns:
      An array. It is sharded as `a` is, unless `shape`, `device` or `out_sharding` is given.

    Differences from NumPy:
      There are no arguments `order` and `subok`. The type is weak if that of `a` is and no dtype is given.

    See also: `jax.numpy.zeros`, `jax.numpy.ones_like`, `jax.numpy.full_like`.

    Example:
      >>> jnp.zeros_like(jnp.arange(3))
      Array([0, 0, 0], dtype=int32)
      >>> jnp.zeros_like(jnp.arange(3), dtype=float, shape=(1, 2))
      Array([[0., 0.]], dtype=float32)
    """
    return _like("jnp.zeros_like", a, 0, dtype, shape, device, out_sharding)


@fused()
def ones_like(
    a: Any,
    dtype: DTypeLike | None = None,
    shape: Any = None,
    *,
    device: DeviceLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Makes an array of ones with the shape and dtype of another.

    Args:
      a: array, number, or object with a shape and a dtype, such as a `jax.ShapeDtypeStruct`. Only these are read.
      dtype: dtype to use instead of that of `a`.
      shape: shape to use instead of that of `a`.
      device: `Device` or `Sharding` to which the array is committed.
      out_sharding: sharding of the result, where the mesh has explicit axes.

    Returns:
      An array. It is sharded as `a` is, unless `shape`, `device` or `out_sharding` is given.

    Differences from NumPy:
      There are no arguments `order` and `subok`. The type is weak if that of `a` is and no dtype is given.

    See also: `jax.numpy.ones`, `jax.numpy.zeros_like`, `jax.numpy.full_like`.

    Example:
      >>> jnp.ones_like(jnp.arange(3))
      Array([1, 1, 1], dtype=int32)
      >>> jnp.ones_like(jnp.arange(3), dtype=float, shape=(1, 2))
      Array([[1., 1.]], dtype=float32)
    """
    return _like("jnp.ones_like", a, 1, dtype, shape, device, out_sharding)


def empty_like(
    prototype: Any, dtype: DTypeLike | None = None, shape: Any = None, *, device: DeviceLike | None = None
) -> Array:
    """Makes an array with the shape and dtype of another, for values that do not matter.

    The array holds zeros, unlike NumPy's. `dtype` and `shape` replace those of `prototype`, of which only these are
    read. `device` is a `Device` or `Sharding`.
    """
    return _like("empty_like", prototype, 0, dtype, shape, device)


def full_like(
    a: Any,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Any = None,
    *,
    device: DeviceLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Makes an array that is filled with a value, with the shape and dtype of another.

    Args:
      a: array, number, or object with a shape and a dtype, such as a `jax.ShapeDtypeStruct`. Only these are read.
      fill_value: number, or array that broadcasts to the shape. It is cast to the dtype of the result.
      dtype: dtype to use instead of that of `a`.
      shape: shape to use instead of that of `a`.
      device: `Device` or `Sharding` to which the array is committed.
      out_sharding: sharding of the result, where the mesh has explicit axes.

    Returns:
      An array. It is sharded as `a` is, unless `shape`, `device` or `out_sharding` is given.

    Differences from NumPy:
      There are no arguments `order` and `subok`.

    See also: `jax.numpy.full`, `jax.numpy.zeros_like`.

    Example:
      >>> jnp.full_like(jnp.arange(3), 7.5)
      Array([7, 7, 7], dtype=int32)
      >>> jnp.full_like(jnp.arange(3), 7.5, dtype=float)
      Array([7.5, 7.5, 7.5], dtype=float32)
    """
    (fill,) = arraylike("full_like", fill_value)
    return _like("full_like", a, fill, dtype, shape, device, out_sharding)


# ---- ranges ------------------------------------------------------------------------------------------


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
    requested = _traced_sharding("jnp.arange", out_sharding, (size,))
    numbers = _range(first, step, size, dtype, requested)
    device = client.single_device_sharding(device) if isinstance(device, client.Device) else device
    return _place_or_record(numbers, device, "jnp.arange", None if requested else out_sharding)


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
    x = concrete(x, "arange", name)
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
        num = as_index(concrete(num, "linspace", "num"))
    if num < 0:
        raise ValueError(f"linspace: Number of samples, {num}, must be non-negative.")
    start, stop = arraylike("linspace", start, stop)
    dtype = dtypes.requested_dtype(dtype, "linspace")
    samples = _linspace(start, stop, num, bool(endpoint), bool(retstep), dtype, operator.index(axis))
    return (_place(samples[0], device), samples[1]) if retstep else _place(samples, device)


def _typed_ends(start: Any, stop: Any, dtype: Any) -> tuple[Any, Any, Any, Any]:
    """The ends of a range in the dtype to compute in, that dtype, and the dtype of the result."""
    result = dtypes.to_inexact_dtype(dtypes.result_type(start, stop)) if dtype is None else dtype
    result = dtypes.canonicalize_dtype(result)
    computed = dtypes.to_inexact_dtype(result)
    return astype(start, computed), astype(stop, computed), computed, result


@jitted("_linspace", static=("num", "endpoint", "retstep", "dtype", "axis"))
def _linspace(start, stop, num, endpoint, retstep, dtype, axis):
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
        out = moving.full((*shape[:axis], 0, *shape[axis:]), computed.type(0))
    if dtypes.issubdtype(result, np.integer) and not dtypes.issubdtype(out.dtype, np.integer):
        out = lax.floor(out)
    out = convert(out, result)
    return (out, step) if retstep else out


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
    """
    num = operator.index(concrete(num, "logspace", "num"))
    start, stop, base = arraylike("logspace", start, stop, base)
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
    """
    num = operator.index(concrete(num, "geomspace", "num"))
    start, stop = arraylike("geomspace", start, stop)
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


# ---- triangles and diagonals -------------------------------------------------------------------------


def _lower_mask(n: int, m: int, k: Any) -> Any:
    """The mask of the lower triangle of an n by m matrix."""
    return counting.diagonal_mask(n, m, k, lax.ge, dtypes.default_int_dtype())


def _diagonal_mask(n: int, m: int, k: Any) -> Any:
    int_type = dtypes.default_int_dtype()
    if isinstance(k, int):
        bounds = np.iinfo(int_type)
        k = int_type.type(min(max(k, bounds.min), bounds.max))
    (k,) = arraylike("eye", k)
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
      There are no arguments `order` and `like`.

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
    return _place_or_record(convert(_diagonal_mask(n, m, k), dtype), device)


def identity(n: DimSize, dtype: DTypeLike | None = None) -> Array:
    """Makes a square matrix with ones on the diagonal and zeros elsewhere.

    `n` is static. The dtype is by default the default floating dtype.
    """
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Makes a matrix with ones on and below a diagonal and zeros above.

    It has `N` rows and `M` columns, by default `N`; both are static. `k` is the diagonal: above the main one if
    positive. The dtype is by default the default floating dtype.
    """
    dtype = dtypes.requested_dtype(dtype, "tri", np.float32)
    return convert(_lower_mask(dims.canonical_dim(N), dims.canonical_dim(N if M is None else M), k), dtype)


def _triangle(name: str, m: Any, k: int, lower: bool) -> Any:
    m = value(name, m)
    if m.ndim < 2:
        raise ValueError(f"Argument to jax.numpy.{name} must be at least 2D, got shape {m.shape}")
    aval = typeof(m)
    mask = moving.broadcast_to_shape(_lower_mask(*m.shape[-2:], k if lower else k - 1), m.shape, aval._sharding)
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
    """
    args = list(values("meshgrid", *xi))
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
    """
    dtype = dtypes.requested_dtype(dtype, "indices", int)
    shape = dims.canonical_shape(dimensions)
    grids = [broadcast_along(counting.iota(dtype, n), i, shape, sparse) for i, n in enumerate(shape)]
    if sparse:
        return tuple(grids)
    return structural.stack(grids, 0) if grids else asarray(np.zeros(0, dtype))


# ---- attributes --------------------------------------------------------------------------------------


def _property(name: str, a: Any) -> Any:
    """A property of an array; for other types that of NumPy's function, with a warning."""
    if hasattr(a, name):
        return getattr(a, name)
    try:
        return getattr(np, name)(*arraylike(name, a))
    except TypeError:
        errors.warn(
            f"{name} requires ndarray or scalar arguments, got {type(a)} at position 0. In a future JAX "
            "release this will be an error.",
            DeprecationWarning,
        )
        return getattr(np, name)(a)


def shape(a: Any) -> tuple[int, ...]:
    """Returns the shape of a value as a tuple of ints.

    Args:
      a: array, tracer or number. Lists are an error.

    Returns:
      The lengths of the axes, which are static also for a traced value. Dimensions may be symbolic in an exported
      function.

    Raises:
      TypeError: if `a` is no array or number.

    See also: `jax.numpy.ndim`, `jax.numpy.size`, `jax.typeof`.

    Example:
      >>> jnp.shape(jnp.ones((2, 3)))
      (2, 3)
      >>> jnp.shape(1.0)
      ()
    """
    return tuple(_property("shape", a))


def ndim(a: Any) -> int:
    """Returns the number of axes of a value as an int.

    Args:
      a: array, tracer or number. Lists are an error.

    Returns:
      The rank, which is static also for a traced value.

    Raises:
      TypeError: if `a` is no array or number.

    See also: `jax.numpy.shape`, `jax.numpy.size`.

    Example:
      >>> jnp.ndim(jnp.ones((2, 3)))
      2
      >>> jnp.ndim(1.0)
      0
    """
    return _property("ndim", a)


def size(a: Any, axis: int | Sequence[int] | None = None) -> int:
    """Returns the number of elements, or of those along axes, as an int.

    `axis` may be one axis or a sequence. The size is static also for a traced value. Lists are an error.
    """
    if axis is None:
        return _property("size", a)
    sizes = tuple(_property("shape", a))
    axes = [dims.canonical_axis(i, len(sizes)) for i in (axis if isinstance(axis, Sequence) else (axis,))]
    if len(set(axes)) < len(axes):
        raise ValueError(f"size: repeated axis in {axis} for shape {sizes}")
    return math.prod(sizes[i] for i in axes)


def iscomplexobj(x: Any) -> bool:
    """Returns whether a value has a complex dtype, as a bool.

    Only the type is read, so a traced value may be given.
    """
    if x is None:
        return False
    x = unwrapped(x)
    leaves = [x] if hasattr(x, "dtype") else tree.tree_leaves(x)
    return any(dtypes.is_complex(leaf.dtype if hasattr(leaf, "dtype") else typeof(leaf).dtype) for leaf in leaves)


def isrealobj(x: Any) -> bool:
    """Returns whether a value has a dtype that is not complex, as a bool.

    Only the type is read, so a traced value may be given.
    """
    return not iscomplexobj(x)


def can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    """Returns whether values of a dtype can be cast to another by a casting rule.

    `casting` is "no", "equiv", "safe", "same_kind" or "unsafe". An array is treated as its dtype; a Python number
    raises TypeError.
    """
    return np.can_cast(from_.dtype if isinstance(from_, Array) else from_, to, casting=casting)
