"""`Array`: our own class that wraps a raw jaxlib array; raw arrays are used only in this room."""

import copy
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Union

import numpy as np
from jaxlib import _jax

from minijax.base import dtypes, errors, html
from minijax.base.cache import cache
from minijax.base.naming import known_as
from minijax.base.source import hide_frames
from minijax.hlo.spell import physical
from minijax.ir import types
from minijax.ir.types import AbstractValue, ShapedArray
from minijax.partition.explicit import sharding_in_type
from minijax.partition.layouts import Format, shown
from minijax.partition.meshes import AbstractMesh, PartitionSpec
from minijax.partition.shardings import NamedSharding, Sharding
from minijax.run.arrays import buffers, dlpack, host, pending, strings
from minijax.run.arrays.token import Token
from minijax.run.clients import client
from minijax.run.programs import exhausted, host_calls


@known_as("jax._src.array.Shard")
class Shard:
    """Describes the part of an array on one device: `device`, `index` (slices), `replica_id`, and `data`, an array.

    Example:
        >>> jnp.array([1, 2]).addressable_shards[0].data
        Array([1, 2], dtype=int32)
    """

    def __init__(self, device: Any, index: tuple, replica_id: int, data: Any):
        self.device, self.index, self.replica_id, self.data = device, index, replica_id, data

    def __repr__(self):
        fields = f"device={self.device!r}, index={self.index}, replica_id={self.replica_id}, data={self.data}"
        return f"Shard({fields})"


if TYPE_CHECKING:
    from minijax.run.arrays.array_methods import ArrayMethods
else:
    ArrayMethods = object

collect_garbage = _jax.collect_garbage  # jaxlib keeps a traceback of each launch until it is called

# ---- signatures -------------------------------------------------------------------------------------


class Signature:
    """An array's abstract value, sharding, commitment and layout, part of program keys; equal ones are one object."""

    # jaxlib takes signatures as avals and reads `shape`, `dtype` and `weak_type`; for an extended dtype these are the
    # physical ones. `wrap` makes an array of a raw array and this signature.
    __slots__ = ("aval", "sharding", "committed", "layout", "shape", "dtype", "weak_type", "native",
                 "device", "wrap", "hidden", "__weakref__")  # fmt: skip

    def __repr__(self):
        return f"Signature({self.aval}, {self.sharding}, committed={self.committed})"


class Hidden(NamedTuple):
    """Replaces the signature as jaxlib's aval for the library's internal arrays, which `live_arrays` leaves out."""

    shape: tuple[int, ...]
    dtype: np.dtype
    weak_type: bool


_signatures: dict[tuple, Signature] = {}
extended_arrays: dict[type, type["ArrayImpl"]] = {}  # by the kind of their extended dtype
array_types: set[type] = set()  # `ArrayImpl` and its subclasses
_MAX_SIGNATURES = 1 << 17
_SMALL_SHARD = 1 << 16  # bytes


def signature(aval: AbstractValue, sharding: Any, committed: bool, layout: Any = None) -> Signature:
    """Returns the interned signature with these fields; `aval` is the type of an array or of a token."""
    key = (aval, sharding, committed, layout)
    sig = _signatures.get(key)
    return sig if sig is not None else _new_signature(key)


def _new_signature(key):
    aval, sharding, committed, layout = key
    if aval is types.token_type:
        return _signatures.setdefault(key, _token_signature(sharding))
    if aval.memory_space is not sharding._memory_space:
        aval = aval.in_space(sharding._memory_space)
        return _signatures.setdefault(key, signature(aval, sharding, committed, layout))
    typed = sharding_in_type(sharding, aval.ndim)
    if typed != aval.own_sharding:
        return _signatures.setdefault(key, signature(aval.update(sharding=typed), sharding, committed, layout))
    sig = Signature()
    sig.aval, sig.sharding, sig.committed, sig.layout = key
    real = physical(aval)
    sig.shape, sig.dtype, sig.weak_type = sig.hidden = Hidden(real.shape, real.dtype, aval.weak_type)
    sig.wrap = _wrapper(aval) if real is aval else extended_arrays.get(aval.dtype.type, _earray)
    is_abstract = isinstance(getattr(sharding, "mesh", None), AbstractMesh)  # arrays never have such a sharding
    sig.native = None if is_abstract else client.native_sharding(sharding, real.ndim)
    devices = () if is_abstract else sharding._device_assignment
    if len(devices) > 1 and sig.dtype.name in ("int1", "uint1"):  # jaxlib would end the process
        raise _jax.JaxRuntimeError(f"UNIMPLEMENTED: arrays of {sig.dtype.name} on several devices")
    # An array on a device of another process cannot be read: it is handled as if it were on several devices.
    sig.device = devices[0] if len(devices) == 1 and sharding.has_addressable_devices else None
    if len(_signatures) >= _MAX_SIGNATURES:
        _signatures.clear()
    return _signatures.setdefault(key, sig)


def _token_signature(sharding):
    """The signature of a token: to jaxlib it is an uncommitted array without elements."""
    sig = copy.copy(signature(ShapedArray((0,), np.bool_), sharding, False))
    sig.aval, sig.wrap, sig.device = types.token_type, Token, sharding._device_assignment[0]
    return sig


def _wrapper(aval):
    """The function that wraps a raw array: float0 results become NumPy arrays of zeros."""
    is_float0 = aval.dtype.names == ("float0",)
    return (lambda raw, sig: np.zeros(aval.shape, aval.dtype)) if is_float0 else wrapped


def wrapped(raw: Any, sig: Signature) -> "ArrayImpl":
    """The array of a raw array and its signature."""
    array = blank()
    array._raw = raw
    array._sig = sig
    return array


def single_signature(aval: ShapedArray, device: Any, committed: bool) -> Signature:
    """The signature of an array on one device, in its default memory."""
    return signature(aval, client.single_device_sharding(device), committed)


# ---- the public class -------------------------------------------------------------------------------

_registered: dict[type, Any] = {}
_array_like: dict[type, Any] = {}  # by class: whether its instances are instances of `Array`, or a predicate on them


class ArrayMeta(type):
    """Lets tracers and key arrays be instances of `Array` without being subclasses."""

    def __instancecheck__(cls, x):
        kind = type(x)
        if kind is ArrayImpl:
            return cls is Array or cls is ArrayImpl
        if cls is not Array:
            return type.__instancecheck__(cls, x)
        test = _array_like.get(kind)
        if test is None:
            registered = (_registered[base] for base in kind.__mro__ if base in _registered)
            test = _array_like[kind] = next(registered, Array in kind.__mro__)
        return test if type(test) is bool else test(x)

    # As in jax, the class takes an aval, a sharding and the shards on its devices. The library calls `wrapped`.
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return joined(*args, **kwargs) if cls is ArrayImpl else type.__call__(cls, *args, **kwargs)


def register_array_like(cls: type, test: Callable[[Any], bool] | bool = True) -> None:
    """Makes instances of `cls` that pass `test` count as instances of `Array`."""
    _registered[cls] = test
    _array_like.clear()


class Array(ArrayMethods, metaclass=ArrayMeta):
    """Is the type of arrays: of those that functions return, and of the tracers inside functions that are traced.

    Arrays are immutable: `x[i] = y` raises TypeError; `x.at[i].set(y)` returns a changed copy. They are created by
    `jax.numpy` and by `jax.device_put`, never by this class. Operations return before they have been computed;
    printing, `np.asarray(x)` and `float(x)` wait. An array may be distributed over several devices, see `x.sharding`.

    Attributes:
        shape, dtype, ndim, size, nbytes: As those of NumPy's arrays.
        sharding: How the array is distributed over devices.
        committed: Whether it is bound to its devices; others are moved to where a computation needs them.
        addressable_shards: The parts on devices of this process, as `jax.Shard`s.
        at: `x.at[index]` has methods that return a copy of `x` with some elements changed: `set(y)`, `add(y)`,
            `subtract(y)`, `multiply(y)`, `divide(y)`, `power(y)`, `min(y)`, `max(y)`, `apply(function)`; `get()` reads.
            All have keywords `mode` (out of bounds: `"drop"`, `"clip"`, `"promise_in_bounds"`; for `get` `"fill"`),
            `indices_are_sorted` and `unique_indices`. Repeated indices add up in `add`.

    Methods are those of NumPy's arrays (`sum`, `reshape`, `astype`, ...), and `block_until_ready()`, which waits;
    `devices()`; `delete()`, which frees the memory; `is_deleted()`, `is_ready()`, `copy_to_host_async()`.

    Use it in annotations, and in `isinstance(x, jax.Array)`, which is true for arrays and tracers and false for NumPy
    arrays and numbers; `jax.typing.ArrayLike` includes these.

    See also: `jax.numpy.array`, `jax.device_get`, `jax.block_until_ready`, `jax.typeof`.

    Example:
        >>> x = jnp.arange(3.0)
        >>> isinstance(x, jax.Array), jax.jit(lambda x: isinstance(x, jax.Array))(x)
        (True, Array(True, dtype=bool))
        >>> x.at[0].set(10).at[jnp.array([1, 1])].add(5)
        Array([10., 11.,  2.], dtype=float32)
        >>> x[0] = 10
        Traceback (most recent call last):
            ...
        TypeError: JAX arrays are immutable and do not support in-place item assignment...
    """

    __slots__ = ("__weakref__",)
    __hash__ = None  # pyright: ignore[reportAssignmentType]
    __array_priority__ = 100

    @property
    def __numpy_dtype__(self) -> Any:
        text = "Implicit conversion of an array to a dtype is deprecated; rather than dtype=arr use dtype=arr.dtype."
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return self.dtype

    def addressable_data(self, index: int) -> "Array":
        """Returns the part of the array on one device of this process, by its number."""
        raise _unimplemented(self, "addressable_data")

    def copy_to_host_async(self):
        """Starts to copy the value to the host; a later `np.asarray` then has less to wait for."""
        raise _unimplemented(self, "copy_to_host_async")

    def item(self, *args: int) -> Any:
        """Returns an element as a Python number; without an index, that of an array of one element."""
        raise _unimplemented(self, "item")


def _declare(name: str, text: str) -> None:
    """Declares a property of `Array` that its subclasses implement."""

    def declared(self) -> Any:
        raise _unimplemented(self, name)

    declared.__name__, declared.__doc__ = name, text
    setattr(Array, name, property(declared))


def _unimplemented(x: Array, name: str) -> NotImplementedError:
    return NotImplementedError(f"{type(x).__name__} must have {name}")


for _line in """
shape: The size of each axis.
dtype: The type of the elements.
ndim: The number of axes.
size: The number of elements.
itemsize: The size of an element in bytes.
nbytes: The size of all elements in bytes.
sharding: The sharding of the array over its devices.
committed: Whether the array is committed to its devices.
device: The device that holds the array, or the sharding of an array on several devices.
is_fully_addressable: Whether this process can read all of the array.
is_fully_replicated: Whether each device holds all of the array.
addressable_shards: The shards on devices of this process.
global_shards: The shards on all devices.
""".strip().splitlines():
    _declare(*_line.split(": "))


def install_operators(table: dict[str, Any]) -> None:
    """Sets operators and methods on `Array`; called once, by the numpy room."""
    for name, value in table.items():
        setattr(Array, name, value)


ArrayLike = Union[Array, np.ndarray, np.bool_, np.number, bool, int, float, complex]  # noqa: UP007
DeviceLike = client.Device | Sharding
ShardingLike = NamedSharding | PartitionSpec
Axis = int | Sequence[int] | None
DimSize = int | Any  # which may be symbolic
Shape = Sequence[DimSize]


def _is_unreduced(sharding: Any) -> bool:
    return isinstance(sharding, NamedSharding) and bool(sharding.spec.unreduced)


def _conversion(convert: Callable) -> Callable:
    def method(self):
        return convert(self._scalar())

    method.__name__ = f"__{convert.__name__}__"
    return method


@known_as("jaxlib._jax.ArrayImpl")
class ArrayImpl(Array):
    """The concrete class of arrays."""

    # Users may set attributes: `__dict__`. CPython sorts slots by name, and `buffers` needs `_raw` to be the first.
    __slots__ = ("__dict__", "_raw", "_sig", "_stored_value", "_small_shards")

    def __init_subclass__(cls):
        array_types.add(cls)
        buffers.export_no_buffer(cls)  # the physical values of an extended dtype are not its elements

    # -- its type

    aval = property(lambda self: self._sig.aval)
    shape = property(lambda self: self._sig.shape)
    dtype = property(lambda self: self._sig.dtype)
    weak_type = property(lambda self: self._sig.weak_type)
    ndim = property(lambda self: self._sig.aval.ndim)
    size = property(lambda self: self._sig.aval.size)
    itemsize = property(lambda self: self._sig.dtype.itemsize)
    nbytes = property(lambda self: self._sig.aval.size * self._sig.dtype.itemsize)
    sharding = property(lambda self: self._sig.sharding)
    committed = property(lambda self: self._sig.committed)
    _committed = committed
    is_fully_addressable = property(lambda self: self._sig.sharding.is_fully_addressable)
    is_fully_replicated = property(lambda self: self._sig.sharding.is_fully_replicated)
    traceback = property(lambda self: self._raw.traceback)

    @property
    def device(self):
        self._check_alive()
        devices = self._sig.sharding._device_assignment
        return devices[0] if len(devices) == 1 else self._sig.sharding

    def devices(self) -> set:
        """Returns the set of devices that hold this array."""
        self._check_alive()
        return self._sig.sharding.device_set

    def platform(self) -> str:
        """Returns the name of the platform that holds this array."""
        return self._raw.platform()

    @property
    def format(self) -> Format:
        layout = None if self.is_deleted() else shown(self._sig.layout, self.ndim)
        return Format(layout, self._sig.sharding)

    def __len__(self):
        if not self._sig.shape:
            raise TypeError(errors.NO_LENGTH)
        return self._sig.shape[0]

    # -- its memory

    @property
    def _settled_raw(self):
        """The raw array, for functions of jaxlib that are not a launch."""
        raw = self._raw
        return raw.raw() if type(raw) is pending.Pending else raw

    def _as(self, sig):
        """The array in the same memory with another signature."""
        raw = self._raw
        array = sig.wrap(raw, sig)
        if type(raw) is pending.Pending:
            raw.fill_later(array)
        return array

    def _check_alive(self):
        if self._raw.is_deleted():
            raise errors.deleted(self._sig.aval.str_short())

    def is_deleted(self) -> bool:
        """Returns whether the memory was freed or donated."""
        return self._raw.is_deleted()

    def delete(self) -> None:
        """Frees the memory now; using the array afterwards raises RuntimeError."""
        pending.run_all()  # one of them may read this array
        self._raw.delete()
        self.__dict__["_was_freed"] = True  # as opposed to donated

    def is_ready(self) -> bool:
        """Returns whether the value has been computed."""
        self._check_alive()
        collect_garbage()  # a caller that polls launches no programs meanwhile, which would call it
        return self._raw.is_ready()

    def block_until_ready(self):
        """Waits until the value has been computed, and returns the array. Errors of the computation are raised here."""
        try:
            self._raw.block_until_ready()
        except _jax.JaxRuntimeError as failure:
            host_calls.raise_host_error(failure)
            exhausted.raise_explained(failure)
            raise
        return self

    def copy_to_host_async(self) -> None:
        """Starts to copy the value to the host; on CPU there is nothing to copy."""
        self._check_alive()

    def on_device_size_in_bytes(self) -> int:
        """Returns the size of the memory in bytes, including padding."""
        return self._raw.on_device_size_in_bytes()

    def unsafe_buffer_pointer(self) -> int:
        """Returns the address of the memory, valid only while the array is alive."""
        if self.is_deleted():
            raise _jax.JaxRuntimeError("INVALID_ARGUMENT: UnsafeBufferPointer() called on deleted or donated buffer")
        if self._sig.device is None:
            raise _jax.JaxRuntimeError(
                "INVALID_ARGUMENT: UnsafeBufferPointer() is supported only for unsharded arrays."
            )
        return host.address(self._raw)

    def _shard(self, k):
        if self._sig.device is not None:
            return self
        kept = getattr(self, "_small_shards", None)
        part = kept and kept.get(k)
        return part if part is not None and not part._raw.is_deleted() else self._read_shard(k)

    def _read_shard(self, k):
        sig = self._sig
        part, read = _shard_readers(sig)[k]
        value = read(self._row_major)
        if sig.dtype is dtypes.string:
            return wrapped(strings.put(value, part), part)
        # A view of the memory makes freeing the whole array slow: a small shard is copied, once.
        is_small = value.nbytes <= _SMALL_SHARD
        how = DURING_CALL if is_small else _jax.HostBufferSemantics.ZERO_COPY
        raw = _jax.batched_device_put(part, part.native, [value], [part.device], True, False, how, True)
        x = wrapped(raw, part)
        if is_small:
            try:
                self._small_shards[k] = x
            except AttributeError:
                self._small_shards = {k: x}
        return x

    @property
    def addressable_shards(self) -> list[Shard]:
        self._check_alive()
        return [Shard(*place, self._shard(k)) for k, place in _shard_places(self._sig) if k is not None]

    @property
    def global_shards(self) -> list[Shard]:
        self._check_alive()
        return [Shard(*place, None if k is None else self._shard(k)) for k, place in _shard_places(self._sig)]

    def addressable_data(self, index: int):
        """Returns the shard on device number `index` of this process."""
        self._check_alive()
        return self._shard(0 if self.is_fully_replicated else index)

    # -- its value

    @property
    def _row_major(self):
        sig = self._sig
        raw = self._settled_raw
        return raw if sig.layout is None else copied_raw(raw, sig, _jax.ArrayCopySemantics.ALWAYS_COPY)

    def _numbers(self) -> np.ndarray:
        """The value as a NumPy array; the physical values for an extended dtype."""
        try:
            self._check_alive()
            sig = self._sig
            try:
                if sig.device is None:
                    return self._gathered()
                if sig.layout is not None:
                    order = sig.layout.major_to_minor
                    value = host.read_with_layout(self._settled_raw, sig.shape, sig.dtype, sig.device, order)
                    if value is not None:
                        return value
                return host.read_single(self._row_major, sig.shape, sig.dtype, sig.device)
            except _jax.JaxRuntimeError as failure:
                host_calls.raise_host_error(failure)
                exhausted.raise_explained(failure)
                raise
        except Exception as error:
            hide_frames(error)
            raise

    _value = property(_numbers)

    def _gathered(self):
        sig, value = self._sig, getattr(self, "_stored_value", None)
        if value is not None:
            return value
        if _is_unreduced(sig.sharding):
            raise NotImplementedError(
                f"{self!r} cannot be read: each device has a partial sum. `jax.sharding.reshard` reduces it"
            )
        value = host.read_sharded(self._row_major, sig.sharding, sig.shape, sig.dtype)
        if value.flags.owndata:  # a view would keep memory alive that may be deleted or donated
            self._stored_value = value
        return value

    def __array__(self, dtype=None, context=None, copy=None):
        value = self._value
        if copy is None and (dtype is None or dtype == value.dtype):
            return value
        return np.asarray(value, dtype=dtype, copy=copy)

    @property
    def __jax_array__(self):
        """Converts the value for the real jax, if that is imported beside this library."""
        real = sys.modules.get("jax.numpy")
        if getattr(real, "__name__", "") != "jax.numpy" or type(self) is not ArrayImpl:
            raise AttributeError(f"{type(self).__name__} has no __jax_array__: no other jax is loaded")
        return lambda: real.asarray(types.Typed(self._value, self.aval))

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        self._check_alive()
        if self._sig.device is None:
            raise BufferError(
                "to_dlpack can only pack a dlpack tensor from an array on a singular device, but this "
                f"array's sharding has {self._sig.sharding.num_devices} devices."
            )
        here = self._sig.device
        target = here if dl_device is None else dlpack.device_at(dl_device)
        if copy is False and target is not here:
            raise dlpack.needs_copy(here, target)
        raw = self._raw.clone()
        if copy or target is not here:
            raw = copied_raw(raw, single_signature(self.aval, target, True), _jax.ArrayCopySemantics.ALWAYS_COPY)
        return _jax.buffer_to_dlpack_managed_tensor(raw, stream=stream)

    def __dlpack_device__(self):
        if self._sig.device is None:
            raise BufferError("__dlpack__ is only supported for arrays on one device.")
        return dlpack.place_of(self._sig.device)

    @property
    def __cuda_array_interface__(self):
        if self._sig.device is None or self._sig.device.platform == "cpu":
            raise AttributeError("__cuda_array_interface__ is only defined for GPU buffers.")
        return self._raw.__cuda_array_interface__

    def __bool__(self):
        if self.size != 1:
            raise ValueError(errors.AMBIGUOUS if self.size else errors.AMBIGUOUS_EMPTY)
        return bool(self._value)

    def _scalar(self):
        if self._sig.shape:
            raise TypeError(errors.SCALARS_ONLY.format(self.ndim))
        return self._value.item()

    __int__, __float__, __complex__, __oct__, __hex__ = map(_conversion, (int, float, complex, oct, hex))

    def __index__(self):
        if self._sig.shape or self._sig.dtype.kind not in "iu" and "int" not in self._sig.dtype.name:
            raise TypeError(errors.NO_INDEX)
        return int(self._scalar())

    def __format__(self, format_spec):
        if self._is_remote or _is_unreduced(self._sig.sharding):
            return format(repr(self), format_spec)
        return format(self._value[()] if self.ndim == 0 else self._value, format_spec)

    @html.bundled
    def _repr_mimebundle_(self):
        if self._sig.device is not None or not 1 <= self.ndim <= 2:
            return None
        return html.code(repr(self)) + self.sharding.grid_of(self.shape)

    def __repr__(self):
        ending = f"dtype={self._sig.dtype.name}" + (", weak_type=True)" if self._sig.weak_type else ")")
        if self._is_remote:
            return f"Array(shape={self.shape}, {ending}"
        if _is_unreduced(self._sig.sharding):
            return f"Array(shape={self.shape}, dtype={self._sig.dtype.name}, sharding={self.sharding})"
        if not self.size:
            self._check_alive()
            return f"Array([], shape={self.shape}, {ending}"
        text = np.array2string(self._value, prefix="Array(", suffix=",", separator=", ")
        last = len(text) - (text.rfind("\n") + 1)
        # Unlike in NumPy, a dtype that is too long for the last line is not moved to a line of its own.
        gap = " " * (6 if last + len(ending) + 3 > np.get_printoptions()["linewidth"] else 1)
        return f"Array({text},{gap}{ending}"

    def __str__(self):
        return repr(self) if self._is_remote or _is_unreduced(self._sig.sharding) else str(self._value)

    @property
    def _is_remote(self):
        sharding = self._sig.sharding
        return not sharding.is_fully_addressable and not (
            sharding.is_fully_replicated and sharding.has_addressable_devices
        )

    def item(self, *args) -> Any:
        """As `numpy.ndarray.item`."""
        if not args and self.size != 1 and not self._is_remote:
            self._check_alive()
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return self._value.item(*args)

    def tolist(self) -> Any:
        """As `numpy.ndarray.tolist`."""
        return self._value.tolist()

    def tobytes(self, order: str = "C") -> bytes:
        """As `numpy.ndarray.tobytes`."""
        return self._value.tobytes(order)

    def __bytes__(self):
        return self._value.tobytes()

    def __setitem__(self, index, value):
        raise TypeError(errors.IMMUTABLE)

    # -- copies

    def clone(self):
        """Another array that shares the memory; a copy if the array is on several devices."""
        self._check_alive()
        if self._sig.device is None or self._sig.dtype is dtypes.string:
            return copied(self)
        return self._sig.wrap(self._raw.clone(), self._sig)

    def __reduce__(self):
        value = self._value
        return reconstruct_array, (*value.__reduce__(), {"weak_type": self._sig.weak_type})

    def __copy__(self):
        self._check_alive()
        return copied(self)

    def __deepcopy__(self, memo):
        return self.__copy__()


buffers.export_buffer_of_slot(ArrayImpl, "_raw")


@cache(maxsize=1024)
def _shard_places(sig: Signature) -> list[tuple[int | None, tuple]]:
    """For each shard: its number among those of this process or None, and the fields of `Shard` without its data."""
    return [(k, tuple(place)) for k, *place in host.places(sig.sharding, sig.shape)]


@cache(maxsize=1024)
def _shard_readers(sig: Signature) -> list[tuple[Signature, Callable[[Any], np.ndarray]]]:
    """For each shard on this process's devices: its signature, and a function from the raw array to its value."""
    aval = ShapedArray(sig.sharding.shard_shape(sig.shape), sig.dtype, sig.weak_type)
    devices, kind = sig.sharding._addressable_device_assignment, sig.sharding.memory_kind
    signatures = [signature(aval, client.single_device_sharding(device, kind), True) for device in devices]
    return list(zip(signatures, host.shard_readers(sig.sharding, sig.shape, sig.dtype), strict=True))


def copied(x: ArrayImpl) -> ArrayImpl:
    """Copies an array."""
    sig = row_major(x._sig)
    if sig.dtype is dtypes.string:
        return sig.wrap(strings.put(x._value, sig), sig)
    if not sig.sharding.is_fully_addressable:  # jaxlib would not copy it
        return joined(sig.aval, sig.sharding, [shard.data for shard in x.addressable_shards], sig.committed)
    return sig.wrap(copied_raw(x._settled_raw, sig, _jax.ArrayCopySemantics.ALWAYS_COPY), sig)


def row_major(sig: Signature) -> Signature:
    """The same signature with the default layout."""
    return sig if sig.layout is None else signature(sig.aval, sig.sharding, sig.committed)


def unreduced_as_replicated(sig: Signature) -> Signature:
    """As `row_major`, with unreduced mesh axes replicated, since the host cannot provide partial sums."""
    if not _is_unreduced(sig.sharding):
        return row_major(sig)
    whole = sig.sharding.update(spec=sig.sharding.spec.update(unreduced=frozenset()))
    return signature(sig.aval, whole, sig.committed)


def copied_raw(raw: Any, sig: Signature, semantics: Any) -> Any:
    """Copies the shards to the devices and memory kind of `sig`; `semantics` define when memory is shared.

    A copy has the default layout.
    """
    devices = client.device_list(sig.sharding._device_assignment)
    return _jax.batched_copy_array_to_devices_with_sharding([raw], [devices], [sig.native], [semantics])[0]


def reconstruct_array(make: Any, args: tuple, state: tuple, aval_state: dict[str, bool]) -> ArrayImpl:
    """Unpickles an array from NumPy's pickle of its value and its weak type."""
    value = make(*args)
    value.__setstate__(state)
    value = value.astype(dtypes.canonicalize_dtype(value.dtype), copy=False)
    aval = ShapedArray(value.shape, value.dtype, aval_state["weak_type"])
    sig = single_signature(aval, client.default_device(), False)
    return wrapped(put_host(value, sig), sig)


# Pickles refer to the module that sets the operators of arrays, so that unpickling imports it.
reconstruct_array.__module__ = "minijax.numpy.methods"
known_as("jax._src.array._reconstruct_array")(reconstruct_array)


def put_host(value: np.ndarray, sig: Signature) -> Any:
    """Puts a host value, whose dtype must be the signature's, on devices; the raw array never aliases `value`."""
    if sig.dtype is dtypes.string:
        return strings.put(value, sig)
    if sig.device is not None:
        return _jax.batched_device_put(sig, sig.native, [value], [sig.device], sig.committed, False, DURING_CALL, True)
    parts = sig.sharding.addressable_devices_indices_map(sig.shape)
    # jaxlib does not copy the host buffers of several devices, hence each gets a private copy here.
    values = [np.array(value[index], order="C", copy=True) for index in parts.values()]
    return _jax.batched_device_put(sig, sig.native, values, list(parts), sig.committed, enable_x64=True)


def assembled(sig: Signature, raws: Sequence[Any]) -> ArrayImpl:
    """The array with these raw arrays as shards, one on each of its addressable devices in order."""
    if sig.dtype is dtypes.string:
        return sig.wrap(strings.joined(raws, sig), sig)
    devices = list(sig.sharding._addressable_device_assignment)
    raw = _jax.batched_device_put(sig, sig.native, list(raws), devices, sig.committed, enable_x64=True)
    return sig.wrap(raw, sig)


def joined(
    aval: ShapedArray, sharding: Any, arrays: Sequence[ArrayImpl], committed: bool = True, _skip_checks: bool = False
) -> ArrayImpl:
    """The array with these shards, one on each device of this process, in any order.

    Raises TypeError or ValueError if their types or devices do not match the sharding.
    """
    if wrong := [x for x in arrays if not isinstance(x, ArrayImpl)]:
        raise TypeError(f"the shards of an array must be arrays on one device, got one of type {type(wrong[0])}")
    devices = sharding._addressable_device_assignment
    part_shape = sharding.shard_shape(aval.shape)
    if len(arrays) != len(devices):
        raise ValueError(
            f"Expected {len(devices)} per-device arrays (this is how many devices are addressable by the "
            f"sharding), but got {len(arrays)}"
        )
    by_device = {x._sig.device: x for x in arrays}
    if missing := set(devices) - set(by_device) if len(by_device) == len(arrays) else ():
        raise ValueError(
            "Addressable devices and per-device arrays devices do not match. Sharding contains devices "
            f"{ {d.id for d in missing} } that are not present in per-device arrays. Per-device arrays contain devices "
            f"{ {d.id for d in set(by_device) - set(devices)} } that are not present in the sharding."
        )
    for x in arrays:
        if x.dtype != aval.dtype:
            raise ValueError(
                f"Input buffers to `Array` must have matching dtypes. Got {x.dtype}, expected {aval.dtype}: that of {x}"
            )
        if x.shape != part_shape:
            raise ValueError(
                f"Expected shard shape {part_shape} doesn't match the single device array shape {x.shape} for "
                f"{sharding} of {aval.str_short()}"
            )
    if len(by_device) != len(arrays):
        ids = [x._sig.device.id for x in arrays]
        raise ValueError(
            "When making an array from single-device arrays, the input arrays must be from distinct devices: "
            f"their ids are {ids}"
        )
    return assembled(signature(aval, sharding, committed), [by_device[d]._settled_raw for d in devices])


DURING_CALL = _jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL  # afterwards NumPy may write into its memory


def hidden(x: ArrayImpl) -> ArrayImpl:
    """Marks an array as internal to the library, see `Hidden`."""
    return x._sig.wrap(x._raw._rewrap_with_aval_and_sharding(x._sig.hidden, x._sig.native), x._sig)


def live_arrays(platform: str | None = None) -> list[Array]:
    """Returns the arrays of a backend that are alive and not deleted.

    Example:
        >>> x = jnp.ones((2, 3, 5, 7))
        >>> [array.dtype for array in jax.live_arrays() if array.shape == (2, 3, 5, 7)]
        [dtype('float32')]
    """
    pending.run_all()
    collect_garbage()
    raws = [raw for raw in client.get_client(platform).live_arrays() if type(raw.aval) is Signature]
    return [raw.aval.wrap(raw, raw.aval) for raw in raws if not raw.is_deleted()]


# ---- arrays of extended dtypes ----------------------------------------------------------------------


class _Unsupported:
    """A method of arrays that arrays of extended dtypes lack: calling it raises, or, with `error`, reading it does."""

    def __init__(self, name: str, text: str, error: type[Exception] | None = None):
        self.name, self.text, self.error = name, text, error

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        if self.error:
            raise self.error(f"{owner.__name__!r} object has no attribute {self.name!r}")
        return self._call

    def _call(self, *args: Any, **options: Any) -> NoReturn:
        raise NotImplementedError(self.text.format(self.name))


_METHODS = """
    __array_namespace__ all any argmax argmin argpartition argsort astype byteswap choose clip compress conj conjugate
    cumprod cumsum diagonal dot item max mean min nonzero prod ptp repeat round searchsorted sort std sum to_device
    trace var view
"""
_ABSENT = "__dlpack__ __dlpack_device__ clone format is_ready platform tobytes tolist traceback".split()
_PROPERTIES = dict.fromkeys("imag mT real".split(), NotImplementedError) | dict.fromkeys(_ABSENT, AttributeError)


def remove_numeric_methods(cls: type[ArrayImpl], text: str) -> None:
    """Removes methods and properties of numeric arrays from a class; `text` is the error, with the name as `{0}`."""
    for name in (*_METHODS.split(), *_PROPERTIES):
        setattr(cls, name, _Unsupported(name, text, _PROPERTIES.get(name)))


class ExtendedArray(ArrayImpl):
    """An array of an extended dtype, stored as the physical values of its elements."""

    __slots__ = ()

    def __init__(self, raw: Any, sig: Signature):
        self._raw = raw
        self._sig = sig

    shape = property(lambda self: self._sig.aval.shape)
    dtype = property(lambda self: self._sig.aval.dtype)

    @property
    def _base_array(self) -> ArrayImpl:
        """The array of physical values, in the same memory."""
        sharding, ndim = self._sig.sharding, self.ndim
        if isinstance(sharding, NamedSharding) and len(sharding.spec) == ndim:
            sharding = sharding.update(spec=sharding.spec.padded(ndim + 1))
        return self._as(signature(physical(self._sig.aval), sharding, self._sig.committed))

    def __len__(self):
        if not self.shape:
            raise TypeError(errors.NO_LENGTH)
        return self.shape[0]


class EArray(ExtendedArray):
    """Is an array of a user-defined extended dtype, with type `aval`, in the memory of `data`."""

    __slots__ = ()

    def __init__(self, aval: ShapedArray, data: ArrayImpl):
        super().__init__(data._settled_raw, signature(aval, data.sharding, data.committed))

    _data = ExtendedArray._base_array

    @property
    def _value(self) -> NoReturn:
        raise NotImplementedError(f"arrays of {self.dtype} have no values; lax.convert_element_type gives numbers")

    def __repr__(self):
        return f"E{self._data!r}"

    def __reduce__(self):
        raise TypeError(f"cannot pickle an array of {self.dtype}")

    __str__ = __repr__

    __format__ = object.__format__


remove_numeric_methods(EArray, "arrays of users' dtypes have no {0}; lax.convert_element_type gives numbers")
for _name in ("at", "T", "nbytes", "__getitem__", "__iter__", "__deepcopy__"):
    setattr(EArray, _name, _Unsupported(_name, "arrays of users' dtypes have no {0}", NotImplementedError))


def _earray(raw: Any, sig: Signature) -> EArray:
    array = EArray.__new__(EArray)
    ExtendedArray.__init__(array, raw, sig)
    return array


# An array without its slots, made in C: a class with a constructor takes twice the time.
blank: Callable[[], ArrayImpl] = type.__call__.__get__(ArrayImpl)
array_types.add(ArrayImpl)
types.register_value_type(ArrayImpl, lambda x: x._sig.aval)
types.register_value_type(EArray, lambda x: x._sig.aval)
