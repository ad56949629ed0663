"""Global arrays assembled from shards: single-device arrays, results of a callback, or this process's data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.api.transfer import device_put, on_context_mesh
from minijax.base import dtypes, tree
from minijax.base.dtypes import DTypeLike
from minijax.base.errors import UnexpectedTracerError
from minijax.ir import state
from minijax.ir.trace import Tracer
from minijax.ir.types import ShapedArray
from minijax.partition.layouts import Format, check_not_auto
from minijax.partition.meshes import PartitionSpec
from minijax.partition.shardings import Sharding, SingleDeviceSharding
from minijax.run.arrays import transfer
from minijax.run.arrays.array import ArrayImpl, joined


def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Sharding, arrays: Sequence[Any], *, dtype: DTypeLike | None = None
) -> ArrayImpl:
    """Returns the global array whose addressable shards are `arrays`, one on each device; it shares their memory.

    Raises TypeError or ValueError if they are not the shards of an array with this shape and sharding.
    """
    name = "jax.make_array_from_single_device_arrays"
    if not isinstance(arrays, (list, tuple)):
        raise TypeError(f"{name} `arrays` argument must be a list or tuple, but got {type(arrays)}.")
    if any(isinstance(x, Tracer) for x in arrays):
        kinds = {type(x) for x in arrays}
        raise ValueError(f"{name} requires a list of concrete arrays as input, but got types {kinds}")
    for x in arrays:
        if not isinstance(x, ArrayImpl):
            raise TypeError(f"Unsupported type for elements in `arrays`: {type(x)}")
        x._check_alive()
        if x._sig.device is None:
            raise ValueError(
                "When making an array from single-device arrays the input arrays must have one shard each. "
                f"An argument array had {x.sharding.num_devices} shard(s)."
            )
    if not arrays and dtype is None:
        raise ValueError(
            f"If the Array has no addressable shards, `dtype` must be provided via the `dtype` argument to `{name}`."
        )
    kinds = {x.dtype for x in arrays} or {dtypes.canonicalize_dtype(np.dtype(dtype))}
    if dtype is not None and np.dtype(dtype) not in kinds:
        raise ValueError(
            f"If `dtype` is provided to `{name}`, it must match the dtype of the addressable shards. Got "
            f"dtype={np.dtype(dtype)} and shard dtypes {sorted(map(str, kinds))}."
        )
    aval = ShapedArray(tuple(shape), arrays[0].dtype if arrays else kinds.pop())
    return joined(aval, sharding, list(arrays), True)


def make_array_from_callback(
    shape: Sequence[int],
    sharding: Sharding | Format,
    data_callback: Callable[[Any], Any],
    dtype: DTypeLike | None = None,
) -> ArrayImpl:
    """Returns the array whose shard at an index, a tuple of slices, is `data_callback(index)`.

    Raises ValueError if a shard has the wrong shape, or another dtype than the one given.
    """
    if not state.is_eager():
        raise UnexpectedTracerError(
            "jax.make_array_from_callback cannot be called within a traced context: its parts are values on devices"
        )
    target = sharding
    check_not_auto(target, "`jax.make_array_from_callback`")
    sharding = target.sharding if isinstance(target, Format) else target
    if not isinstance(sharding, Sharding):
        raise TypeError(f"sharding should be an instance of `jax.sharding`. Got {sharding} of type {type(sharding)}")
    places = sharding.addressable_devices_indices_map(tuple(shape))
    if not places:
        if dtype is None:
            raise ValueError(
                "If the Array has no addressable shards, `dtype` must be provided via the `dtype` argument to "
                "`jax.make_array_from_callback`."
            )
        return joined(ShapedArray(tuple(shape), dtypes.canonicalize_dtype(np.dtype(dtype))), sharding, [], True)
    once = data_callback(next(iter(places.values()))) if sharding.is_fully_replicated else None
    values = [data_callback(index) if once is None else once for index in places.values()]
    parts = [
        transfer.to_device(v if isinstance(v, ArrayImpl) else np.asarray(v), d)
        for v, d in zip(values, places, strict=True)
    ]
    if dtype is not None and any(x.dtype != np.dtype(dtype) for x in parts):
        raise ValueError(
            "If `dtype` is provided to `jax.make_array_from_callback`, it must match the dtype of the "
            f"addressable shards. Got dtype={np.dtype(dtype)} and shard dtype={parts[0].dtype}`."
        )
    array = joined(ShapedArray(tuple(shape), parts[0].dtype), sharding, parts, True)
    return transfer.to_device(array, target) if isinstance(target, Format) else array


def make_array_from_process_local_data(sharding: Any, local_data: Any, global_shape: Any = None) -> Any:
    """Returns global arrays of these shardings, assembled from the leaves of `local_data` of each process.

    Each dimension of `global_shape` is that of the local data, if every process has all of it, or the sum over
    processes; None infers it. Raises ValueError for a shape that is neither.
    """
    leaves, treedef = tree.flatten(local_data)
    shardings = tree.flatten_axes("make_array_from_process_local_data sharding", treedef, sharding)
    shardings = [on_context_mesh(s) if isinstance(s, PartitionSpec) else s for s in shardings]
    shardings = [s if isinstance(s, Sharding) else SingleDeviceSharding(s) for s in shardings]
    is_shape = isinstance(global_shape, tuple) and all(isinstance(n, int | None) for n in global_shape)
    shapes = [global_shape] * len(leaves) if global_shape is None or is_shape else treedef.flatten_up_to(global_shape)
    rows = zip(leaves, shardings, shapes, strict=True)
    return treedef.unflatten([_from_local_data(x, s, shape) for x, s, shape in rows])


def _from_local_data(x: Any, sharding: Sharding, shape: Any) -> ArrayImpl:
    local = np.shape(x)
    if shape is not None and None in shape:
        raise ValueError(f"make_array_from_process_local_data: global_shape={shape} has Nones. This is not supported.")
    if not sharding.is_fully_addressable:
        return _from_local_shards(np.asarray(x), sharding, shape)
    if shape is not None and tuple(shape) != local:
        raise ValueError(
            "When calling `make_array_from_process_local_data` on a single process, global_shape should be None "
            f"or equal to local_data.shape. Got global_shape={shape} and local_data.shape={local}."
        )
    sharding.check_compatible_aval(local)
    sharding.shard_shape(local)
    return device_put(x, sharding)


def _from_local_shards(value: np.ndarray, sharding: Sharding, shape: Sequence[int] | None) -> ArrayImpl:
    if shape is not None and len(shape) != value.ndim:
        raise ValueError(
            f"make_array_from_process_local_data: global_shape={shape} and the data, {value.shape}, differ in rank"
        )
    local_tiles = _local_tiles(sharding, value.ndim)
    if shape is None:
        shape = [
            _global_size(axis, *rest)
            for axis, rest in enumerate(zip(value.shape, sharding.tiling(value.ndim), local_tiles, strict=True))
        ]
    sizes = tuple(shape)
    sharding.check_compatible_aval(sizes)
    part = sharding.shard_shape(sizes)
    for axis, (size, total, n, tiles) in enumerate(zip(value.shape, sizes, part, local_tiles, strict=True)):
        if size != total and (tiles is None or size != n * len(tiles)):
            raise ValueError(
                "make_array_from_process_local_data: each dimension should match either global or process shape. "
                f"In dimension {axis}, the process data has {size} elements, for {tiles and n * len(tiles)} of this "
                f"process and global_shape={sizes}."
            )

    def data(index):
        rows = []
        for size, total, n, tiles, wanted in zip(value.shape, sizes, part, local_tiles, index, strict=True):
            tile = (wanted.start or 0) // n if n else 0
            start = n * (tile if size == total else tiles.index(tile))
            rows.append(slice(start, start + n))
        return value[tuple(rows)]

    return make_array_from_callback(sizes, sharding, data)


def _global_size(axis: int, size: int, count: int, tiles: list[int] | None) -> int:
    if tiles is None:
        raise ValueError(
            f"make_array_from_process_local_data: the shards of processes along axis {axis} overlap without "
            "being equal: global_shape must be given"
        )
    return size * count // len(tiles)


def _local_tiles(sharding: Sharding, ndim: int) -> list[list[int] | None]:
    """Returns the tiles that this process has along each axis; None if processes share some of them, but not all."""
    of_process: dict[bool | int, list[set]] = {}
    local_devices = sharding.addressable_devices
    for device, position in sharding._positions(ndim):
        process = True if device in local_devices else -device.process_index
        tiles = of_process.setdefault(process, [set() for _ in range(ndim)])
        for seen, (tile, _) in zip(tiles, position, strict=True):
            seen.add(tile)
    own: list[list[int] | None] = []
    for axis in range(ndim):
        sets = {frozenset(tiles[axis]) for tiles in of_process.values()}
        is_uniform = sum(map(len, sets)) == len(frozenset().union(*sets)) and len({*map(len, sets)}) == 1
        own.append(sorted(of_process[True][axis]) if is_uniform else None)
    return own
