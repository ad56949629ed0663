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
    """As `numpy.array`; the order can only be "K"."""
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
    """As `numpy.asarray`; a Python scalar gives an array of a weak type."""
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
    """As `numpy.copy`."""
    return array(value("copy", a), copy=True, order=order)


@fused()
def astype(x: ArrayLike, dtype: DTypeLike | None, /, *, copy: bool = False, device: DeviceLike | None = None) -> Array:
    """Casts an array to another dtype; warns if an imaginary part is discarded."""
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
    """As `numpy.frombuffer`; the memory is copied."""
    return asarray(np.frombuffer(buffer=buffer, dtype=np.dtype(dtype), count=count, offset=offset))


def from_dlpack(x: Any, /, *, device: DeviceLike | None = None, copy: bool | None = None) -> Array:
    """Imports an array of another library by DLPack, without a copy if possible."""
    return transfer.from_dlpack(x, device, copy)


def fromfunction(function: Callable, shape: Any, *, dtype: DTypeLike = float, **kwargs: Any) -> Array:
    """As `numpy.fromfunction`, but `function` gets scalars: it is mapped over the indices by `vmap`."""
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
    """As `numpy.zeros`."""
    return _filled("zeros", shape, 0, dtype, device, out_sharding)


@fused(0)
def ones(
    shape: Any,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """As `numpy.ones`."""
    return _filled("ones", shape, 1, dtype, device, out_sharding)


def empty(
    shape: Any,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """As `numpy.empty`; the array is filled with zeros."""
    return _filled("empty", shape, 0, dtype, device, out_sharding)


def full(
    shape: Any,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """As `numpy.full`; the dtype is by default that of the value, weak if the value's is and no device is given."""
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
    """As `numpy.zeros_like`."""
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
    """As `numpy.ones_like`."""
    return _like("jnp.ones_like", a, 1, dtype, shape, device, out_sharding)


def empty_like(
    prototype: Any, dtype: DTypeLike | None = None, shape: Any = None, *, device: DeviceLike | None = None
) -> Array:
    """As `numpy.empty_like`; the array is filled with zeros."""
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
    """As `numpy.full_like`."""
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
    """As `numpy.arange`; the arguments must be concrete."""
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
    """As `numpy.linspace`."""
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
    """As `numpy.logspace`."""
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
    """As `numpy.geomspace`."""
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
    """As `numpy.eye`."""
    dtype = dtypes.requested_dtype(dtype, "eye", float)
    n, m = (dims.canonical_dim(v) for v in (N, N if M is None else M))
    if n < 0 or m < 0:
        raise ValueError(f"eye: negative dimensions are not allowed, got {N} and {M}")
    return _place_or_record(convert(_diagonal_mask(n, m, k), dtype), device)


def identity(n: DimSize, dtype: DTypeLike | None = None) -> Array:
    """As `numpy.identity`."""
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:
    """As `numpy.tri`."""
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
    """As `numpy.tril`."""
    return _triangle("tril", m, k, True)


@jitted("triu", static=("k",))
def triu(m: ArrayLike, k: int = 0) -> Array:
    """As `numpy.triu`."""
    return _triangle("triu", m, k, False)


def broadcast_along(x: Any, axis: int, shape: Sequence[int], sparse: bool = True) -> Any:
    """A vector broadcast along an axis of a grid; the other axes have size 1 if `sparse`."""
    return moving.broadcast_in_dim(x, [n if i == axis or not sparse else 1 for i, n in enumerate(shape)], (axis,))


def meshgrid(*xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> list[Array]:
    """As `numpy.meshgrid`; the arguments must be of rank 1, and the results are always copies."""
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
    """As `numpy.indices`."""
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
    """As `numpy.shape`."""
    return tuple(_property("shape", a))


def ndim(a: Any) -> int:
    """As `numpy.ndim`."""
    return _property("ndim", a)


def size(a: Any, axis: int | Sequence[int] | None = None) -> int:
    """As `numpy.size`; `axis` may be a sequence of axes."""
    if axis is None:
        return _property("size", a)
    sizes = tuple(_property("shape", a))
    axes = [dims.canonical_axis(i, len(sizes)) for i in (axis if isinstance(axis, Sequence) else (axis,))]
    if len(set(axes)) < len(axes):
        raise ValueError(f"size: repeated axis in {axis} for shape {sizes}")
    return math.prod(sizes[i] for i in axes)


def iscomplexobj(x: Any) -> bool:
    """As `numpy.iscomplexobj`."""
    if x is None:
        return False
    x = unwrapped(x)
    leaves = [x] if hasattr(x, "dtype") else tree.tree_leaves(x)
    return any(dtypes.is_complex(leaf.dtype if hasattr(leaf, "dtype") else typeof(leaf).dtype) for leaf in leaves)


def isrealobj(x: Any) -> bool:
    """As `numpy.isrealobj`."""
    return not iscomplexobj(x)


def can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    """As `numpy.can_cast`; an array is treated as its dtype."""
    return np.can_cast(from_.dtype if isinstance(from_, Array) else from_, to, casting=casting)
