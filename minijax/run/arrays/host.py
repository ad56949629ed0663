"""Reads device memory as NumPy arrays; never imports jax."""

import ctypes
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from jaxlib import _jax, xla_client as xc

from minijax.base import dtypes
from minijax.base.cache import cache
from minijax.hlo.emitter import Emitter
from minijax.ir.types import ShapedArray
from minijax.run.clients import client, guards, jaxlib_versions

# dtypes narrower than a byte, and the dtypes they are converted to.
_PACKED = {
    dtypes.BY_NAME[name]: dtypes.BY_NAME[wide]
    for wide, names in (("int8", "int1 int2 int4"), ("uint8", "uint1 uint2 uint4"), ("float32", "float4_e2m1fn"))
    for name in names.split()
    if name in dtypes.BY_NAME
}
_BUILT_IN = 1  # `dtype.isbuiltin` of NumPy's own dtypes, the only ones that the buffer protocol supports

_REUSE = xc.ArrayCopySemantics.REUSE_INPUT

capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def read_single(raw: Any, shape: tuple[int, ...], dtype: np.dtype, device: Any) -> np.ndarray:
    """The value of an array on one device, as a read-only view if its memory allows one."""
    if device.platform != "cpu":
        return _fetched(raw, shape, dtype)
    if dtype.isbuiltin == _BUILT_IN:
        value = np.asarray(raw)
        if value.dtype is not dtype and value.dtype.hasobject:  # NumPy hides why the value could not be computed
            raw.block_until_ready()
        return value
    if dtype is dtypes.string:
        return raw._npy_value
    if dtype in _PACKED:
        wide = _unpacked(raw, client.single_device_sharding(device), shape, dtype)
        return _read_only(np.asarray(wide).astype(dtype))
    return _read_opaque(raw.clone(), shape, dtype)


def read_with_layout(
    raw: Any, shape: tuple[int, ...], dtype: np.dtype, device: Any, order: Sequence[int]
) -> np.ndarray | None:
    """As `read_single` for an array with this major-to-minor order; None if the memory cannot be viewed that way."""
    if device.platform != "cpu":
        return None
    stored = tuple([shape[axis] for axis in order])
    # CPU programs only read bytes: the program that unpacks treats them as an array of shape `stored`.
    read = read_single(raw, stored, dtype, device) if dtype in _PACKED else _read_opaque(raw.clone(), stored, dtype)
    return read.transpose(np.argsort(order))


def _fetched(raw, shape, dtype):
    guards.check("device-to-host", f"{dtype.name}{list(shape)}", "the host")
    return _read_only(raw._single_device_array_to_np_array_did_copy()[0])


def _read_opaque(raw, shape, dtype):
    # The buffer protocol lacks bfloat16 and float8. A capsule keeps `raw` from being deleted: pass a clone.
    raw.block_until_ready()
    size = math.prod(shape) * dtype.itemsize
    if not size:
        return _read_only(np.empty(shape, dtype))
    capsule, start = _exported(raw)
    memory = (ctypes.c_char * size).from_address(start)
    memory._capsule = capsule
    return _read_only(np.frombuffer(memory, dtype).reshape(shape))


def _exported(raw):
    capsule = _jax.buffer_to_dlpack_managed_tensor(raw)
    # A DLTensor begins with its data pointer.
    return capsule, ctypes.c_void_p.from_address(capsule_pointer(capsule, b"dltensor")).value


def address(raw: Any) -> int:
    """The address of the memory of an array on one device."""
    raw.block_until_ready()
    return _exported(raw.clone())[1] or 0


def can_read(dtype: np.dtype) -> bool:
    """Returns whether shards of arrays of this dtype can be read without unpacking them on the device."""
    return dtype not in _PACKED


def _unpacked(raw, sharding, shape, dtype):
    """A raw array with the same sharding and values, whose elements are whole bytes."""
    unpack, handler = _unpacker(sharding, shape, dtype)
    return unpack.execute_sharded([raw]).consume_with_handlers([handler])[0]


def _read_only(value):
    value.flags.writeable = False
    return value


@cache(maxsize=1024)
def _unpacker(sharding, shape, dtype):
    """A program that each device runs on its own shard, and a handler that makes an array of its results."""
    devices, part = sharding._device_assignment, sharding.shard_shape(shape)
    packed, wide = ShapedArray(part, dtype), ShapedArray(part, _PACKED[dtype])
    e = Emitter()
    e.main([packed], [wide], lambda names: [e.convert(names[0], packed, wide)])
    options = xc.CompileOptions()
    options.num_replicas = options.executable_build_options.num_replicas = len(devices)
    options.device_assignment = xc.DeviceAssignment.create(np.array([[device.id] for device in devices]))
    program = devices[0].client.compile_and_load(e.written("unpack", {}).text(), list(devices), options)
    native = client.native_sharding(sharding, len(shape))
    handler = jaxlib_versions.result_handler(ShapedArray(shape, _PACKED[dtype]), native, committed=True)
    return program, handler


class _FirstShard:
    """Exports a sharded array by dlpack, through which NumPy sees its first shard."""

    __slots__ = ("raw",)

    def __init__(self, raw):
        self.raw = raw

    def __dlpack__(self, **_):
        return _jax.buffer_to_dlpack_managed_tensor(self.raw)

    def __dlpack_device__(self):
        return (1, 0)


def shard_raw(raw: Any, k: int, sharding: Any, ndim: int) -> Any:
    """The same buffers, reordered so that shard `k` comes first."""
    if k == 0 and sharding.is_fully_addressable:
        return raw
    return _jax.reorder_shards(raw, _fronts(sharding, ndim)[k], _REUSE)


@cache(maxsize=1024)
def _fronts(sharding, ndim):
    """For each device of this process, jaxlib's sharding of the same buffers with that device first."""
    order, tiles = sharding._device_assignment, client.hlo_sharding(sharding, ndim)
    fronts = [(first, *[d for d in order if d is not first]) for first in sharding._addressable_device_assignment]
    return [client.native_layout(front, tiles, sharding.memory_kind) for front in fronts]


def read_shard(raw: Any, k: int, sharding: Any, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """The value of shard `k` of a sharded array."""
    return shard_readers(sharding, shape, dtype)[k](raw)


@cache(maxsize=1024)
def shard_readers(sharding: Any, shape: tuple[int, ...], dtype: np.dtype) -> list[Callable[[Any], np.ndarray]]:
    """For each device of this process, a function from a sharded raw array to the value of its shard there."""
    devices, part = sharding._addressable_device_assignment, sharding.shard_shape(shape)
    numbers = range(len(devices))
    if dtype is dtypes.string or dtype.isbuiltin != _BUILT_IN or sharding._device_assignment[0].platform != "cpu":
        return [partial(_read_shard, k=k, sharding=sharding, shape=shape, dtype=dtype) for k in numbers]
    fronts: list[Any] = list(_fronts(sharding, len(shape)))
    if sharding.is_fully_addressable:
        fronts[0] = None
    return [partial(_read_plain, front=front, part=part) for front in fronts]


def _read_plain(raw: Any, front: Any, part: tuple[int, ...]) -> np.ndarray:
    first = raw if front is None else _jax.reorder_shards(raw, front, _REUSE)
    return np.from_dlpack(_FirstShard(first)).reshape(part)


def _read_shard(raw: Any, k: int, sharding: Any, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    if dtype is dtypes.string:
        return raw._npy_value[list(sharding.devices_indices_map(shape).values())[k]]
    if dtype in _PACKED and sharding.is_fully_addressable:
        wide = _unpacked(raw, sharding, shape, dtype)
        return _read_only(read_shard(wide, k, sharding, shape, _PACKED[dtype]).astype(dtype))
    first = shard_raw(raw, k, sharding, len(shape))
    part = sharding.shard_shape(shape)
    if sharding._device_assignment[0].platform != "cpu":
        return _fetched(first, part, dtype)
    if dtype in _PACKED:
        raise NotImplementedError(
            f"a shard of an array of {dtype.name} on devices of several processes cannot be read here"
        )
    # jaxlib cannot clone an array that has shards on other processes.
    return _read_opaque(first.clone() if sharding.is_fully_addressable else first, part, dtype)


def read_sharded(raw: Any, sharding: Any, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """The value of an array on several devices."""
    if dtype is dtypes.string:
        return raw._npy_value
    if sharding.is_fully_replicated and sharding.has_addressable_devices:
        return read_shard(raw, 0, sharding, shape, dtype)
    if not sharding.is_fully_addressable:
        raise RuntimeError(
            "Fetching value for an array that spans non-addressable (non process local) devices is not possible. "
            "jax.experimental.multihost_utils.process_allgather gathers all of it; `.addressable_shards` are the "
            "shards of this process."
        )
    if dtype in _PACKED:
        wide = _unpacked(raw, sharding, shape, dtype)
        return _read_only(read_sharded(wide, sharding, shape, _PACKED[dtype]).astype(dtype))
    whole, readers = np.empty(shape, dtype), shard_readers(sharding, shape, dtype)
    for k, _, index, replica in places(sharding, shape):
        if not replica:
            whole[index] = readers[k](raw)
    return _read_only(whole)


def shard_key(index: tuple[slice, ...]) -> tuple:
    """The index of a shard as a key: slices have no hash before Python 3.12."""
    return tuple([(part.start, part.stop) for part in index])


@cache(maxsize=1024)
def places(sharding: Any, shape: tuple[int, ...]) -> list[tuple]:
    """For each shard: its number among those of this process or None, its device, its index, its replica id."""
    mine = {device: k for k, device in enumerate(sharding._addressable_device_assignment)}
    seen: dict[tuple, int] = {}
    parts = []
    for device, index in sharding.devices_indices_map(shape).items():
        place = shard_key(index)
        seen[place] = replica = seen.get(place, -1) + 1
        parts.append((mine.get(device), device, index, replica))
    return parts
