"""Arrays put together from parts: of single devices, of a callback, of this process."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.api.transfer import device_put
from minijax.base import dtypes, tree
from minijax.ir.types import ShapedArray
from minijax.partition.shardings import Sharding, SingleDeviceSharding
from minijax.run import transfer
from minijax.run.array import ArrayImpl, Format, assembled, signature


def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Sharding, arrays: Sequence[Any], *, dtype: Any = None
) -> ArrayImpl:
    """The array whose parts are `arrays`, one on each device of this process; their memory is shared.

    Raises TypeError or ValueError if they are not the parts of an array that lies so.
    """
    name = "jax.make_array_from_single_device_arrays"
    if not isinstance(arrays, (list, tuple)):
        raise TypeError(f"{name} `arrays` argument must be a list or tuple, but got {type(arrays)}.")
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
    if len(kinds) > 1:
        raise ValueError(f"{name}: the parts have several dtypes: {sorted(map(str, kinds))}")
    aval = ShapedArray(tuple(shape), *kinds)
    return _assembled(aval, sharding, list(arrays))


def _assembled(aval: ShapedArray, sharding: Sharding, parts: list) -> ArrayImpl:
    part_shape = sharding.shard_shape(aval.shape)
    devices = sharding._addressable_device_assignment
    if len(parts) != len(devices):
        raise ValueError(
            f"Expected {len(devices)} per-device arrays (this is how many devices are addressable by the "
            f"sharding), but got {len(parts)}"
        )
    for x in parts:
        if x.shape != part_shape:
            raise ValueError(
                f"Expected shard shape {part_shape} doesn't match the single device array shape {x.shape}. "
                f"Shape of Array is {aval.str_short()} with sharding {sharding}"
            )
    by_device = {x._sig.device: x for x in parts}
    if set(by_device) != set(devices):
        raise ValueError(
            "Addressable devices and per-device arrays devices do not match. Sharding contains devices "
            f"{set(devices)}, the arrays lie on {set(by_device)}"
        )
    return assembled(signature(aval, sharding, True), [by_device[d]._raw for d in devices])


def make_array_from_callback(
    shape: Sequence[int], sharding: Sharding | Format, data_callback: Callable[[Any], Any], dtype: Any = None
) -> ArrayImpl:
    """The array whose part at an index, a tuple of slices, is `data_callback(index)`.

    Raises ValueError if a part has another shape, or not the `dtype` that is given.
    """
    if isinstance(sharding, Format):
        sharding = sharding.sharding
    places = sharding.addressable_devices_indices_map(tuple(shape))
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
    return _assembled(ShapedArray(tuple(shape), parts[0].dtype), sharding, parts)


def make_array_from_process_local_data(sharding: Any, local_data: Any, global_shape: Any = None) -> Any:
    """The leaves of `local_data`, all that there is of them, as arrays that lie so.

    Raises ValueError for a global shape that is another, NotImplementedError for devices of other processes.
    """
    leaves, treedef = tree.flatten(local_data)
    shardings = tree.flatten_axes("make_array_from_process_local_data sharding", treedef, sharding)
    shardings = [s if isinstance(s, Sharding) else SingleDeviceSharding(s) for s in shardings]
    is_shape = isinstance(global_shape, tuple) and all(isinstance(n, int) for n in global_shape)
    shapes = [global_shape] * len(leaves) if global_shape is None or is_shape else treedef.flatten_up_to(global_shape)
    for x, s, shape in zip(leaves, shardings, shapes, strict=True):
        if not s.is_fully_addressable:
            raise NotImplementedError(
                "make_array_from_process_local_data: arrays on several processes are not there yet"
            )
        if shape is not None and tuple(shape) != np.shape(x):
            raise ValueError(
                "When calling `make_array_from_process_local_data` on a single process, global_shape should be None "
                f"or equal to local_data.shape. Got global_shape={shape} and local_data.shape={np.shape(x)}."
            )
        s.shard_shape(np.shape(x))
    return device_put(local_data, treedef.unflatten(shardings))
