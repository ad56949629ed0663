"""Array creation: from values, constant arrays, ranges, triangles and grids."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.base import dims, dtypes, errors, tree
from minijax.base.dims import as_index
from minijax.base.documentation import filled
from minijax.base.dtypes import DTypeLike
from minijax.base.source import boundary, hide_frames
from minijax.base.symbolic.dimension import is_dim
from minijax.base.util import named
from minijax.dispatch.fused import fused
from minijax.ir import state
from minijax.ir.concrete import concrete_or_error
from minijax.ir.trace import Tracer
from minijax.ir.types import is_hi_value, is_value, typeof, unwrapped
from minijax.partition.shardings import Sharding, check_sharding_of_type
from minijax.primitives import convert as lax_convert, elementwise as lax, moving, sharding, structural
from minijax.primitives.as_array import as_array
from minijax.primitives.convert import cast, convert
from minijax.primitives.device import REUSE_INPUT, device_put, place_like
from minijax.primitives.families import const_like
from minijax.primitives.promote import arrays
from minijax.run.arrays import transfer
from minijax.run.arrays.array import Array, ArrayImpl, ArrayLike, DeviceLike, ShardingLike
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
        where = f"the jnp.{name} argument '{argument}'" if name else argument
        x = concrete_or_error(None, x, f"It arose in {where}. {errors.MAKE_STATIC}")
    return np.asarray(x)[()] if isinstance(x, Array) else x


@boundary
def host_ints(name: str, xs: Any) -> list[int]:
    """A sequence of concrete ints or symbolic dimensions as a list."""
    ints = np.asarray(
        [concrete(x, name, "indices") for x in xs] if isinstance(xs, Sequence) else concrete(xs, name, "")
    )
    if ints.size and ints.dtype.kind not in "iu" and not all(map(is_dim, ints.flat)):
        raise TypeError(f"{name}: expected integers, got {ints.dtype}")
    return [as_index(i) for i in ints.reshape(-1)]


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
        Python numbers get the default dtypes; one number gives a scalar of a weak type.
      copy: if false, an array of this package that need not change is returned as it is.
      order: must be "K" or `None`.
      ndmin: least rank of the result. Axes of length 1 are added in front.
      device: `Device` or `Sharding` to which the array is committed. By default it is uncommitted on the default
        device.
      out_sharding: sharding of the result, where the mesh has explicit axes.

    Returns:
      An array.

    Raises:
      TypeError: if `object` is not a value of numbers, such as a string.
      NotImplementedError: for other orders.

    Differences from NumPy:
      Arrays are immutable and have a fixed set of dtypes: strings, objects and records do not exist. 64-bit dtypes need
      `jax_enable_x64`. It does not take `subok` and `like`.

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
        made = _with_min_rank(as_array(object, dtype, bool(copy)), ndmin)
        return _from_value(made, object, dtype, device, out_sharding)
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
      copy: true for a copy always. Otherwise a copy is made where it is needed, also if false.
      device: `Device` or `Sharding` to which the array is committed.
      out_sharding: sharding of the result, where the mesh has explicit axes.

    Returns:
      An array. A Python number gives a scalar of a weak type, which does not widen the other operand of an operation.

    Raises:
      TypeError: if `a` is not a value of numbers, such as a string.
      NotImplementedError: for other orders.

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
        made = as_array(a, dtype, bool(copy))
        return _from_value(made, a, dtype, device, out_sharding)
    except Exception as error:
        hide_frames(error)
        raise


def _from_value(x: Any, given: Any, dtype: Any, device: Any, out_sharding: Any) -> Any:
    if device is None or out_sharding is not None:
        return placed(x, device, "jnp.array", out_sharding)
    return _at_place(x, given, dtype, device, "jnp.array")


def _at_place(x: Any, given: Any, dtype: Any, device: Any, name: str) -> Any:
    """Places a value, by a constraint under a trace. Raises ValueError for an array that is committed elsewhere."""
    transfer.check_place(device, name, ValueError)
    if isinstance(x, ArrayImpl):
        have, want = x.sharding, _sharding_at(device)
        if x is given and have == want:
            return x
        if x.committed and state.thread.trace is None and have._device_assignment != want._device_assignment:
            ids = [[d.id for d in s._device_assignment] for s in (have, want)]
            raise ValueError(
                "Received incompatible devices for jitted computation. Got an array that is committed to those with "
                f"device ids {ids[0]} and device={device}: `jax.device_put` moves it"
            )
    return placed(x, device) if state.thread.trace is None else constrained(x, given, dtype, device)


def _sharding_at(device: Any) -> Any:
    return client.single_device_sharding(device) if isinstance(device, client.Device) else device


def constrained(x: Any, given: Any, dtype: Any, device: Any) -> Any:
    """A value that is constrained to a device; as in jax converted, if it was not when `dtype` was asked for."""
    if dtype is None or not is_value(given) or ((t := typeof(given)).dtype == x.dtype and not t.weak_type):
        weak = dtype is None and x.weak_type
        x = lax_convert.convert_element_type_p.bind(x, new_dtype=x.dtype, weak_type=weak, sharding=None)
    return sharding.with_sharding_constraint(x, _sharding_at(device))


def placed(x: Any, device: Any, name: str = "", out_sharding: Any = None) -> Any:
    if out_sharding is not None:
        return sharding.with_out_sharding(name, x, out_sharding)
    if device is not None:
        transfer.check_place(device, name)
    if device is None or isinstance(x, Tracer):
        return moving.as_array_or_constant(x) if type(x) is np.ndarray and x.dtype != dtypes.float0 else x
    return transfer.filled_at(x, device)


def placed_or_recorded(x: Any, device: Any, name: str, out_sharding: Any = None) -> Any:
    """As `placed`, but records a `device_put` under a trace."""
    if isinstance(x, Tracer) and device is not None:
        transfer.check_place(device, name)
        if isinstance(device, Sharding):
            check_sharding_of_type(device, typeof(x), "device_put args")
        return device_put([x], [device], [None], [REUSE_INPUT])[0]
    return placed(x, device, name, out_sharding)


def _with_min_rank(x: Any, ndmin: int) -> Any:
    missing = ndmin - typeof(x).ndim
    return moving.expand_dims(x, tuple(range(missing))) if missing > 0 else x


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """Returns a copy of an array.

    Under `jit` XLA may leave the copy out, since arrays are immutable. `order` must be "K" or `None`.

    Example:
      >>> jnp.copy(jnp.array([1, 2]))
      Array([1, 2], dtype=int32)
    """
    return array(value("copy", a), copy=True, order=order)


@fused()
def astype(x: ArrayLike, dtype: DTypeLike | None, /, *, copy: bool = False, device: DeviceLike | None = None) -> Array:
    """Casts an array to another dtype.

    A cast of complex to real numbers drops the imaginary part and warns. 64-bit dtypes need `jax_enable_x64`. If `copy`
    is false, an array that has the dtype may be returned as it is. `device` commits the result to a device or sharding.

    Example:
      >>> jnp.astype(jnp.array([1.7, -1.7]), jnp.int8)
      Array([ 1, -1], dtype=int8)
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
    if device is not None:
        out = _at_place(out, x, target, device, "astype")
    return placed(lax_convert.copy_p.bind(out) if copy else out, None)


def frombuffer(buffer: Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0) -> Array:
    """Makes a vector of the numbers in a buffer.

    The memory is copied, and dtypes of 64 bits are narrowed unless `jax_enable_x64` is set. `count` is how many numbers
    to read, -1 for all, and `offset` where they start, in bytes.

    Example:
      >>> jnp.frombuffer(bytes([1, 2]), jnp.uint8)
      Array([1, 2], dtype=uint8)
    """
    return asarray(np.frombuffer(buffer=buffer, dtype=np.dtype(dtype), count=count, offset=offset))


def from_dlpack(x: Any, /, *, device: DeviceLike | None = None, copy: bool | None = None) -> Array:
    """Imports an array of another library through the DLPack protocol.

    `x` has the methods `__dlpack__` and `__dlpack_device__`. The memory is shared if it is on the same device and
    suitably aligned; `copy` true asks for a copy, and false makes it an error if one is needed. `device` is where the
    result is placed. A view must not be changed by its owner, as arrays are immutable.

    Example:
      >>> jnp.from_dlpack(np.arange(3, dtype=np.float32))
      Array([0., 1., 2.], dtype=float32)
    """
    return transfer.from_dlpack(x, device, copy)


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
    requested = traced_sharding(f"jnp.{name}", out_sharding, shape)
    out = _constant(shape, fill, dtype, out_sharding=requested)
    return placed(out, device, f"jnp.{name}", None if requested else out_sharding)


def traced_sharding(name: str, out_sharding: Any, shape: tuple) -> Any:
    """The `out_sharding` for an operation under a trace; None for eager values, which are placed afterwards."""
    return sharding.requested_sharding(name, out_sharding, len(shape)) if shape and not state.is_eager() else None


def _constant(shape: tuple, fill: Any, dtype: Any, weak: bool = False, out_sharding: Any = None) -> Any:
    if dtypes.is_extended(dtype):
        return structural.full_extended(shape, fill, dtype)
    if dtype == dtypes.float0:
        zero = np.zeros((), dtype)
        return moving.broadcast_to_shape(zero, shape) if shape and not state.is_eager() else np.zeros(shape, dtype)
    return moving.filled(shape, convert(fill, dtype, weak), weak_type=weak, sharding=out_sharding)


def _constants(name: str, fill: int, differs: str = "", **texts: str) -> Callable[..., Array]:
    def function(
        shape: Any,
        dtype: DTypeLike | None = None,
        *,
        device: DeviceLike | None = None,
        out_sharding: ShardingLike | None = None,
    ) -> Array:
        """Makes an array {of}.

        Args:
          shape: int, or sequence of ints. Dimensions must be static under `jit`; symbolic ones are possible.
          dtype: dtype of the result, by default the default floating dtype (float32, or float64 with `jax_enable_x64`).
          device: `Device` or `Sharding` to which the array is committed.
          out_sharding: sharding of the result, where the mesh has explicit axes.

        Returns:
          An array of this shape and dtype.

        Raises:
          TypeError: if a dimension is not a concrete integer, such as a traced value.

        Differences from NumPy:
          {differs}It does not take `order` and `like`.

        See also: `jax.numpy.{name}_like`, {related}.

        Example:
          >>> jnp.{name}((2, 3))
          Array([[{number}., {number}., {number}.],
                 [{number}., {number}., {number}.]], dtype=float32)
          >>> jnp.{name}(2, dtype=jnp.int32)
          Array([{number}, {number}], dtype=int32)
        """
        return _filled(name, shape, fill, dtype, device, out_sharding)

    return named(function, name, filled(function, dict(texts, name=name, number=fill, differs=differs)))


zeros = fused(0)(_constants("zeros", 0, of="of zeros", related="`jax.numpy.ones`, `jax.numpy.full`"))
ones = fused(0)(_constants("ones", 1, of="of ones", related="`jax.numpy.zeros`, `jax.numpy.full`"))
empty = _constants(
    *("empty", 0, "The array holds zeros, as memory is never shown uninitialized: `zeros` is as fast. "),
    **dict(of="for values that do not matter", related="`jax.numpy.zeros`"),
)


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
      TypeError: if a dimension is not a concrete integer.
      ValueError: if `fill_value` does not broadcast to `shape`.

    Differences from NumPy:
      It does not take `order` and `like`.

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
    requested = traced_sharding("full", out_sharding, shape)
    if typeof(fill).ndim:
        requested = requested if _must_broadcast("full", fill, shape) else None
        out = moving.broadcast_to_shape(as_array(fill, dtype), shape, requested)
    elif dtype is None and dtypes.is_extended(typeof(fill).dtype):
        out = moving.broadcast_to_shape(fill, shape, requested)
    else:
        weak = dtype is None and typeof(fill).weak_type and (device is None or not state.is_eager())
        out = _constant(shape, fill, dtype or typeof(fill).dtype, weak, requested)
    return placed(out, device, "full", None if requested else out_sharding)


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
    requested = traced_sharding(name, out_sharding, new_shape)
    if typeof(fill).ndim:
        requested = requested if _must_broadcast(name, fill, new_shape) else None
        out = moving.broadcast_to_shape(as_array(fill, dtype or like.dtype), new_shape, requested)
    else:
        inherited = _inherited_sharding(a, like) if shape is None and device is None else None
        is_weak = not dtype and like.weak_type and (device is None or not state.is_eager())
        out = _constant(new_shape, fill, dtype or like.dtype, is_weak, requested or inherited)
    if device is None and out_sharding is None:
        return place_like(out, a)
    return placed(out, device, name, None if requested else out_sharding)


def _inherited_sharding(a: Any, like: Any) -> Any:
    """The sharding of `like`, the type of `a`, for an operation under a trace; None for eager values."""
    return like.own_sharding if isinstance(a, Tracer) or not (state.is_eager() or isinstance(a, Array)) else None


def _constants_like(name: str, fill: int, related: str) -> Callable[..., Array]:
    def function(
        a: Any,
        dtype: DTypeLike | None = None,
        shape: Any = None,
        *,
        device: DeviceLike | None = None,
        out_sharding: ShardingLike | None = None,
    ) -> Array:
        """Makes an array of {of} with the shape and dtype of another.

        Args:
          a: array, number, or object with a shape and a dtype, such as a `jax.ShapeDtypeStruct`. Only these are read.
          dtype: dtype to use instead of that of `a`.
          shape: shape to use instead of that of `a`.
          device: `Device` or `Sharding` to which the array is committed.
          out_sharding: sharding of the result, where the mesh has explicit axes.

        Returns:
          An array. It is sharded as `a` is, unless `shape`, `device` or `out_sharding` is given.

        Differences from NumPy:
          It does not take `order` and `subok`. The type is weak if that of `a` is and no dtype is given.

        See also: `jax.numpy.{of}`, `jax.numpy.{related}`, `jax.numpy.full_like`.

        Example:
          >>> jnp.{of}_like(jnp.arange(3))
          Array([{number}, {number}, {number}], dtype=int32)
          >>> jnp.{of}_like(jnp.arange(3), dtype=float, shape=(1, 2))
          Array([[{number}., {number}.]], dtype=float32)
        """
        return _like(label, a, fill, dtype, shape, device, out_sharding)

    label = f"jnp.{name}"
    texts = dict(of=name.removesuffix("_like"), number=fill, related=related)
    return fused()(named(function, name, filled(function, texts)))


zeros_like = _constants_like("zeros_like", 0, "ones_like")
ones_like = _constants_like("ones_like", 1, "zeros_like")


def empty_like(
    prototype: Any, dtype: DTypeLike | None = None, shape: Any = None, *, device: DeviceLike | None = None
) -> Array:
    """Makes an array with the shape and dtype of another, for values that do not matter.

    The array holds zeros, unlike NumPy's. `dtype` and `shape` replace those of `prototype`, whose values are not read.
    `device` is a `Device` or `Sharding`.

    Example:
      >>> jnp.empty_like(jnp.ones((2, 3))).shape
      (2, 3)
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
      It does not take `order` and `subok`.

    See also: `jax.numpy.full`, `jax.numpy.zeros_like`.

    Example:
      >>> jnp.full_like(jnp.arange(3), 7.5)
      Array([7, 7, 7], dtype=int32)
      >>> jnp.full_like(jnp.arange(3), 7.5, dtype=float)
      Array([7.5, 7.5, 7.5], dtype=float32)
    """
    (fill,) = arraylike("full_like", fill_value)
    return _like("full_like", a, fill, dtype, shape, device, out_sharding)


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
      a: array, tracer, number, or nested lists of numbers.

    Returns:
      The lengths of the axes, which are static also for a traced value. Dimensions may be symbolic in an exported
      function.

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
      a: array, tracer, number, or nested lists of numbers.

    Returns:
      The rank, which is static also for a traced value.

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

    `axis` may be one axis or a sequence. The size is static also for a traced value.

    Example:
      >>> jnp.size(jnp.ones((2, 3, 4)))
      24
      >>> jnp.size(jnp.ones((2, 3, 4)), axis=(0, 1))
      6
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

    Example:
      >>> jnp.iscomplexobj(jnp.array([1 + 0j]))
      True
    """
    if x is None:
        return False
    x = unwrapped(x)
    leaves = [x] if hasattr(x, "dtype") else tree.tree_leaves(x)
    return any(dtypes.is_complex(leaf.dtype if hasattr(leaf, "dtype") else typeof(leaf).dtype) for leaf in leaves)


def isrealobj(x: Any) -> bool:
    """Returns whether a value has a dtype that is not complex, as a bool.

    Only the type is read, so a traced value may be given.

    Example:
      >>> jnp.isrealobj(1.0), jnp.isrealobj(1j)
      (True, False)
    """
    return not iscomplexobj(x)


def can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    """Returns whether values of a dtype can be cast to another by a casting rule.

    `casting` is "no", "equiv", "safe", "same_kind" or "unsafe". An array is treated as its dtype; a Python number
    raises TypeError.

    Example:
      >>> jnp.can_cast(jnp.int32, jnp.float32), jnp.can_cast(jnp.int8, jnp.float32)
      (False, True)
    """
    return np.can_cast(from_.dtype if isinstance(from_, Array) else from_, to, casting=casting)
