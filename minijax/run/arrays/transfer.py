"""Transfers: host to device, device to device, device to host, and dlpack."""

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxlib import _jax

from minijax.base import config, dtypes
from minijax.base.cache import Keyed
from minijax.ir import types
from minijax.ir.types import ShapedArray
from minijax.partition.layouts import Format, Layout, check_layout, stored
from minijax.partition.shardings import NamedSharding, Sharding, sharding_of_rank
from minijax.run.arrays import dlpack, reshard, strings
from minijax.run.arrays.array import (
    DURING_CALL,
    ArrayImpl,
    Signature,
    copied,
    copied_raw,
    hidden,
    put_host,
    row_major,
    signature,
    single_signature,
    unreduced_as_replicated,
    wrapped,
)
from minijax.run.arrays.token import Token
from minijax.run.clients import client, guards
from minijax.run.programs import ahead

_WIDE = frozenset((dtypes.int64, dtypes.float64, dtypes.complex128))


def to_device(x: Any, device: Any = None, *, committed: bool | None = None, copy: bool = False) -> ArrayImpl:
    """Puts a value on a device, or as a sharding or format specifies; by default on the default device.

    The array never shares memory with a NumPy value, nor, with `copy`, with another array. Raises TypeError for a
    value that cannot be an array, OverflowError for an int that its dtype cannot hold.
    """
    kind, aval = type(x), None
    if kind is np.ndarray and device is committed is None:
        return from_numpy(x)
    if kind is ArrayImpl or isinstance(x, ArrayImpl):
        array = _from_array(x, device, committed)
        return copied(array) if copy and array._sig.device is x._sig.device else array
    if kind in types.WITH_TYPES:
        x, aval = x.value, x.aval
    elif kind is not np.ndarray and kind not in dtypes.PYTHON_SCALARS:
        x = _to_numpy(x)
        if type(x) is tuple:
            x, weak = x
            aval = ShapedArray(x.shape, dtypes.canonicalize_dtype(x.dtype), weak)
        kind = type(x)
    if kind not in dtypes.PYTHON_SCALARS:
        dtypes.check_array_dtype(x.dtype)
    if aval is None:
        aval = types.typeof(x)
        if kind in dtypes.PYTHON_SCALARS and not isinstance(device, Sharding | Format):
            return _from_scalar(x, aval, device, committed)
    sig = _target(aval, device, committed)
    guards.check("host-to-device", aval, sig.sharding)
    return wrapped(_put_with_layout(_as_dtype(x, aval), sig), sig)


def _put_with_layout(value, sig):
    plain = unreduced_as_replicated(sig)
    raw = put_host(value, plain)
    return raw if plain is sig else reshard.laid_out(raw, plain, sig)


def as_host(x: Any) -> np.ndarray:
    """The NumPy array, with a valid array dtype, as which `to_device` treats a host value."""
    aval = types.typeof(x)
    value = x.value if type(x) in types.WITH_TYPES else x
    return _as_dtype(value, aval)


_of_numpy = Keyed(4096)


def from_numpy(x: np.ndarray) -> ArrayImpl:
    """As `to_device(x)`, for a NumPy array."""
    key = config.state(), x.shape, x.dtype
    sig = _of_numpy.get(key)
    if sig is None:
        dtypes.check_array_dtype(x.dtype)
        if guards.is_guarded():
            sig = _target(types.typeof(x), None, None)
            guards.check("host-to-device", sig.aval, sig.sharding)
        else:
            sig = _of_numpy.once(key, _target, types.typeof(x), None, None)
    if sig.device is None:
        return wrapped(put_host(_as_dtype(x, sig.aval), sig), sig)
    return wrapped(put_numpy(x, sig), sig)


def signature_of_numpy(options: Any, x: np.ndarray) -> Signature | None:
    """The signature that `from_numpy` gives an array that `put_numpy` can put; None if that is unknown."""
    sig = _of_numpy.get((options, x.shape, x.dtype))
    return None if sig is None or sig.device is None else sig


def put_numpy(x: np.ndarray, sig: Signature) -> Any:
    """The raw array of a NumPy array, converted to the dtype of `sig`, on its one device."""
    if x.dtype is not sig.dtype:
        x = _as_dtype(x, sig.aval)
    return _jax.batched_device_put(sig, sig.native, [x], [sig.device], sig.committed, False, DURING_CALL, True)


def ready_token(place: Any = None) -> Token:
    """A token that is ready, on a device or devices."""
    with guards.explicit_transfers(free=True):
        x = hidden(to_device(np.zeros((0,), np.bool_), place))
    return Token(x._raw, signature(types.token_type, x._sig.sharding, False))


def token_on_devices(x: Token, place: Any) -> Token:
    """A token on a device or devices; waits for the given token."""
    x.block_until_ready()
    return ready_token(place)


def float0_operand(x: np.ndarray) -> ArrayImpl:
    """A float0 operand for a program, stored as bools that the program does not read."""
    return wrapped(to_device(np.zeros(x.shape, bool))._raw, _target(types.typeof(x), None, False))


def _from_scalar(x, aval, device, committed, is_internal=False):
    sig = _target(aval, device, committed)
    guards.check("host-to-device", aval, sig.sharding)
    if type(x) is int:
        dtypes.check_int_fits(x, aval.dtype)
    wide = aval.dtype in _WIDE  # not `enable_x64`, which another thread may have changed
    described = sig.hidden if is_internal else sig
    raw = _jax.batched_device_put(described, sig.native, [x], [sig.device], sig.committed, False, DURING_CALL, wide)
    return wrapped(raw, sig)


def _target(aval, device, committed):
    """The signature of a value of this type on a device, or with a sharding or format."""
    layout = None
    if aval.dtype is dtypes.string:
        strings.check_place(device)
    if isinstance(device, Format):
        if device.layout is not None and not isinstance(device.layout, Layout):
            raise ValueError(
                f"sharding and layout in `Layout` instance should be concrete. Got layout: {device} for input "
                f"{aval.str_short()}"
            )
        check_layout(device.layout, aval, "device_put arguments")
        layout, device = stored(device.layout, aval.ndim), device.sharding
    if committed is None:
        committed = device is not None
    if isinstance(device, Sharding):
        device.check_compatible_aval(aval.shape)
        device.shard_shape(aval.shape)
        return signature(aval, device, committed, layout)
    return single_signature(aval, client.default_device() if device is None else device, committed)


def filled_at(x: Any, sharding: Any) -> ArrayImpl:
    """Puts a filled array as `sharding` specifies; a spec may have more Nones than array axes, and keeps them."""
    array = to_device(x, sharding_of_rank(sharding, types.typeof(x).ndim))
    sig = array._sig
    if not isinstance(sharding, NamedSharding) or sig.sharding == sharding:
        return array
    return array._as(signature(sig.aval, sharding, sig.committed, sig.layout))


def check_place(place: Any, name: str, kind: type[Exception] = AttributeError) -> None:
    """Raises an error of that kind, unless a new array can go to that place: a device, a sharding or a format."""
    if not isinstance(place, Sharding | Format | client.Device):
        raise kind(
            f"{name}: a place must be a jax.Device or an instance of jax.sharding.Sharding, got {place!r}. A "
            "PartitionSpec needs a mesh: jax.NamedSharding(mesh, spec)."
        )


def _as_dtype(x, aval):
    if type(x) is int and aval.dtype.kind in "iu":
        dtypes.check_int_fits(x, aval.dtype)
    value = np.asarray(x)
    if value.dtype != aval.dtype:
        with np.errstate(all="ignore"):
            value = value.astype(aval.dtype)
    return value


def _to_numpy(x):
    """`x` as a NumPy value, or as (value, weak type) for arrays of other libraries."""
    if isinstance(x, np.generic | np.ndarray):
        dtypes.check_unmasked(x)
        return np.asarray(x)
    if isinstance(x, dtypes.PYTHON_SCALARS):
        return next(kind(x) for kind in dtypes.PYTHON_SCALARS if isinstance(x, kind))
    if types.offers_array(x):
        types.typeof(x)  # raises an error: such objects are converted only by `asarray`
    if isinstance(x, str | bytes):
        raise TypeError(f"Argument {x!r} of type {type(x)} is not a valid JAX type")
    if not hasattr(x, "dtype"):
        raise TypeError(
            f"Cannot interpret value of type {type(x)} as an abstract array; it does not have a dtype attribute"
        )
    if hasattr(x, "__array__"):
        return np.asarray(x), bool(getattr(x, "weak_type", False))
    if hasattr(x, "__dlpack__"):
        return dlpack.numpy_of(x), bool(getattr(x, "weak_type", False))
    raise TypeError(f"Value of type {type(x)} has a dtype but offers neither __array__ nor __dlpack__")


def _from_array(x, device, committed):
    x._check_alive()
    old = x._sig
    if device is None and committed is None:
        return x._as(old)
    where = old.sharding if old.layout is None else Format(old.layout, old.sharding)
    new = _target(old.aval, where if device is None else device, committed)
    return new.wrap(copy_raw(x, new), new)


def copy_raw(x: ArrayImpl, new: Signature) -> Any:
    """Transfers an array to the devices and sharding of `new`; shares memory if it is there already."""
    raw, old = x._settled_raw, x._sig
    if old.dtype is dtypes.string:
        return strings.put(x._value, new)
    if old.layout != new.layout or old.layout is not None and old.native is not new.native:
        return _with_layout(raw, old, new)
    if old.native is new.native:
        # An array on several devices keeps its raw array, so that a buffer passed twice to a program is detected.
        same = old is new or old.device is None
        return raw if same else raw._rewrap_with_aval_and_sharding(new, new.native)
    if old.device is not None or old.sharding.device_set != new.sharding.device_set:
        guards.check("device-to-device", new.aval, new.sharding)  # resharding on the same devices is not guarded
    moved = reshard.moved(raw, old, new)
    if moved is None and not old.sharding.is_fully_addressable:
        raise ValueError(
            f"device_put: an array on devices of several processes, {old.sharding}, cannot be transferred to other "
            f"devices: {new.sharding}. jaxlib's {new.sharding._device_assignment[0].platform} client does not support "
            "cross-host device transfers."
        )
    return put_host(x._numbers(), new) if moved is None else moved


def _with_layout(raw, old, new):
    """As `copy_raw`, between layouts, through the default layout."""
    plain = row_major(old)
    if old.layout is not None:
        raw = copied_raw(raw, plain, _jax.ArrayCopySemantics.ALWAYS_COPY)
        raw = raw._rewrap_with_aval_and_sharding(plain, plain.native)
    to = row_major(new)
    raw = copy_raw(wrapped(raw, plain), to)
    return raw if new.layout is None else reshard.laid_out(raw, to, new)


# ---- scalars as operands ----------------------------------------------------------------------------

_bits = struct.Struct("<d").pack


def scalar_operand(x: Any) -> ArrayImpl:
    """A Python or NumPy number as an uncommitted array; cached, hence never given to users, who could delete it."""
    name = config.state(), type(x), _key_of_number(x)
    scalar = _scalars.get(name)
    if scalar is None or scalar._raw.is_deleted():
        if guards.is_guarded():
            return to_device(x, committed=False)
        _scalars.pop(name)
        scalar = _scalars.once(name, _new_scalar, x)
    return scalar


def _key_of_number(x: Any) -> Any:
    kind = type(x)
    if kind is float:
        return _bits(x)
    if kind is complex:
        return _bits(x.real), _bits(x.imag)
    return x.tobytes() if isinstance(x, np.generic) else x


NUMBERS = frozenset((*dtypes.PYTHON_SCALARS, *[kind for kind in np.sctypeDict.values() if issubclass(kind, np.number)]))


def putter_like(options: Any, x: Any, sig: Signature) -> Callable[[Any], Any] | None:
    """Returns a function that puts values like a NumPy array or number whose operand has the signature.

    Of an array with that signature it returns the raw array, and None for others, or it raises AttributeError. The
    result is None if `x` cannot be put alone.
    """
    if type(x) is np.ndarray:
        return _put_arrays(options, sig) if signature_of_numpy(options, x) is sig else None
    return _put_numbers(type(x), sig) if type(x) in NUMBERS else None


def _put_arrays(options: Any, sig: Signature) -> Callable[[Any], Any]:
    def put(x: Any) -> Any:
        if type(x) is np.ndarray:
            return put_numpy(x, sig) if signature_of_numpy(options, x) is sig else None
        return x._raw if x._sig == sig else None

    return put


def _put_numbers(kind: type, sig: Signature) -> Callable[[Any], Any]:
    # A number that stays the same object from call to call is put once.
    described, native, device, wide = sig.hidden, sig.native, [sig.device], sig.dtype in _WIDE
    limits = dtypes.limits(sig.dtype) if kind is int and sig.dtype.kind in "iu" else None
    last = None, None

    def put(x: Any) -> Any:
        nonlocal last
        if type(x) is not kind:
            return x._raw if x._sig == sig else None
        number, raw = last
        if x is not number or raw.is_deleted():
            if limits is not None and not limits[0] <= x <= limits[1]:
                return None
            value = x if kind in dtypes.PYTHON_SCALARS else _as_dtype(x, sig.aval)
            raw = _jax.batched_device_put(described, native, [value], device, sig.committed, False, DURING_CALL, wide)
            last = x, raw
        return raw

    return put


def _new_scalar(x):
    if type(x) in dtypes.PYTHON_SCALARS:
        return _from_scalar(x, types.typeof(x), None, False, is_internal=True)
    return hidden(to_device(x, committed=False))


_scalars = Keyed(4096)


# ---- dlpack -----------------------------------------------------------------------------------------


def _importing_device(device, source):
    if not isinstance(device, Sharding | client.Device | None):
        raise ValueError(f"from_dlpack: device must be a Device, a Sharding or None, got {device!r}")
    if isinstance(device, Sharding):
        if device.num_devices != 1:
            raise ValueError(f"from_dlpack can only unpack a dlpack tensor onto a singular device, got {device}")
        return device._device_assignment[0]
    return source if device is None else device


def from_dlpack(x: Any, device: Any = None, copy: bool | None = None) -> ArrayImpl:
    """Imports another library's array; shares its memory if that is aligned and `copy` is not True."""
    if not (hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__")):
        raise TypeError("The array passed to from_dlpack must have __dlpack__ and __dlpack_device__ methods.")
    place = x.__dlpack_device__()
    if int(place[0]) not in dlpack.PLATFORMS:
        raise TypeError(
            f"Array passed to from_dlpack is on unsupported device type (DLDeviceType: {int(place[0])}, array: {x!r}"
        )
    source = dlpack.device_at(place)
    if source.platform != "cpu":
        raise NotImplementedError(f"from_dlpack: memory of {source} cannot be shared; copy it through the host")
    target = _importing_device(device, source)
    if copy is False and target is not source:
        raise dlpack.needs_copy(source, target)
    value = dlpack.numpy_of(x)
    aval = ShapedArray(value.shape, dtypes.canonicalize_dtype(value.dtype))
    sig = single_signature(aval, target, True)
    shareable = value.flags.c_contiguous and value.ctypes.data % dlpack.ALIGNMENT == 0
    if copy is False and not shareable:
        raise ValueError(
            "Specified input which requires a copy since the source data buffer is not aligned to "
            f"{dlpack.ALIGNMENT} bytes or not row-major. However copy=False. Set copy=True or copy=None to perform "
            "the requested operation."
        )
    if copy or not shareable or target is not source or value.dtype != aval.dtype:
        return wrapped(put_host(_as_dtype(value, aval), sig), sig)
    ahead.stop()  # the owner of the memory may write into it as soon as a call returns
    return wrapped(_jax.batched_device_put(sig, sig.native, [value], [sig.device], enable_x64=True), sig)
