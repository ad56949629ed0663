"""Arrays in tensorstore: specs with paths and chunks, and writing and reading by shards."""

import asyncio
import os
import re
from collections.abc import Sequence
from math import prod
from os import PathLike
from typing import Any

import numpy as np
import tensorstore as ts

from minijax.api.shapes import ShapeDtypeStruct
from minijax.base import dtypes
from minijax.base.faces import listing
from minijax.ir.types import ShapedArray
from minijax.partition.layouts import Format
from minijax.partition.shardings import NamedSharding, Sharding
from minijax.run.arrays import transfer
from minijax.run.arrays.array import ArrayImpl, joined
from minijax.run.clients import client

__all__, __dir__ = listing(
    __name__,
    """
    async_deserialize async_serialize combine_kvstores estimate_read_memory_footprint get_tensorstore_spec
    is_tensorstore_spec_leaf merge_nested_ts_specs
""",
)

_GB = 10**9
TS_CONTEXT = ts.Context(
    {
        "file_io_concurrency": {"limit": 128},
        "cache_pool": {"total_bytes_limit": 10 * _GB},
        "cache_pool#remote": {"total_bytes_limit": 10 * _GB},
        "data_copy_concurrency": {"limit": 128},
    }
)
_CHUNK_LAYOUT = ts.ChunkLayout(chunk_elements=100_000_000)
_FILE_SIZE_TARGET = 2 * 1024**3
_REMOTE = {"gs": "gcs", "s3": "s3"}  # {scheme of a path: driver}


# ---- specs ------------------------------------------------------------------------------------------


def get_tensorstore_spec(
    ckpt_path: str | PathLike[str], ocdbt: bool = True, process_idx: int | None = None, arr: Any = None,
    driver: str = "zarr3",
) -> dict[str, Any]:  # fmt: skip
    """The tensorstore spec of the array at this path: its own file, or with `ocdbt` an entry of its folder's database.

    Raises ValueError for a cloud path without a file name in a bucket, and for a relative path with `ocdbt`.
    """
    path = os.fspath(ckpt_path) if isinstance(ckpt_path, PathLike) else str(ckpt_path)
    scheme = re.match(r"(gs|s3)://", path)
    path = f"{scheme[0]}{os.path.normpath(path[scheme.end() :])}" if scheme else os.path.normpath(path)
    if process_idx is not None:
        parent, name = os.path.split(path)
        path = os.path.join(parent, f"process_{process_idx}", name)
    if ocdbt:
        base, name = os.path.split(path)
        if scheme and base.count("/") < 3:
            raise ValueError(
                "Using OCDBT requires the bucket name, the directory name and the array name, your path is: "
                f"{ckpt_path}"
            )
        if not scheme and not os.path.isabs(base):
            raise ValueError(f"Checkpoint path should be absolute. Got {base}")
        kvstore: dict[str, Any] = {"driver": "ocdbt", "base": _kvstore(base), "path": name}
    else:
        kvstore = _kvstore(path)
    spec: dict[str, Any] = {"driver": driver, "kvstore": kvstore}
    if arr is not None:
        spec["metadata"] = _metadata(arr, driver)
    return spec


def _kvstore(path: str) -> dict[str, str]:
    scheme, found, rest = path.partition("://")
    if not found:
        return {"driver": "file", "path": path}
    bucket, _, inner = rest.partition("/")
    if not inner:
        raise ValueError(
            f"The ckpt_path should contain the bucket name and the file path inside the bucket. Got: {path}"
        )
    return {"driver": _REMOTE[scheme], "bucket": bucket, "path": inner}


def _metadata(arr: Any, driver: str, is_remote: bool = False) -> dict[str, Any]:
    """The shape, dtype, chunks and compression of an array's file. A chunk is at most one shard."""
    part = arr.sharding.shard_shape(arr.shape) if isinstance(arr, ArrayImpl) else arr.shape
    if driver == "zarr":
        return {"compressor": {"id": "zstd"}, "shape": arr.shape, "chunks": [max(n, 1) for n in part]}
    return {
        "codecs": [{"name": "zstd"}] if is_remote else [],
        "shape": arr.shape,
        "data_type": np.dtype(arr.dtype).name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": _chunk_shape(part, arr.dtype)}},
    }


def _chunk_shape(part: Sequence[int], dtype: Any, target: int = _FILE_SIZE_TARGET) -> list[int]:
    """Divides a shard's shape by prime factors, smallest first, until a chunk fits; keeps the largest of each axis."""
    sizes = [max(n, 1) for n in part]
    divisors = sorted((factor, axis) for axis, n in enumerate(sizes) for factor in _factors(n)[:-1])
    for factor, axis in divisors:
        if prod(sizes) * np.dtype(dtype).itemsize <= target:
            break
        sizes[axis] //= factor
    return sizes


def _factors(n: int) -> list[int]:
    factors, divisor = [], 2
    while divisor * divisor <= n:
        while n % divisor == 0:
            factors.append(divisor)
            n //= divisor
        divisor += 1
    return [*factors, n] if n > 1 else factors


def is_tensorstore_spec_leaf(leaf: Any) -> bool:
    """Returns whether a node of a tree is None or a spec."""
    return leaf is None or isinstance(leaf, dict) and ("driver" in leaf or "kvstore" in leaf)


def is_remote_storage(tspec: dict[str, Any] | str) -> bool:
    """Returns whether a spec or a path is in cloud storage."""
    if isinstance(tspec, str):
        return tspec.startswith(tuple(f"{scheme}://" for scheme in _REMOTE))
    is_inner_remote = any(is_remote_storage(tspec[key]) for key in ("base", "kvstore") if key in tspec)
    return is_inner_remote or tspec.get("driver") in _REMOTE.values()


def merge_nested_ts_specs(dict1: dict[str, Any], dict2: dict[str, Any] | None) -> dict[str, Any]:
    """Updates a spec with another one, except for its location (`kvstore`)."""
    merged = dict(dict1)
    for key, value in (dict2 or {}).items():
        if key == "kvstore":
            continue
        inner = merged.get(key)
        merged[key] = (
            merge_nested_ts_specs(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
        )
    return merged


# ---- writing ----------------------------------------------------------------------------------------


async def async_serialize(
    arr_inp: Any, tensorstore_spec: dict[str, Any], commit_future: list | None = None, context: Any = TS_CONTEXT,
    chunk_layout: Any = _CHUNK_LAYOUT, primary_host: int | None = None, replica_id: int = 0, transaction: Any = None,
) -> list:  # fmt: skip
    """Writes the shards of an array that this process holds, and adds missing metadata to the spec.

    With `commit_future`, waits only until the data are copied and appends the pending commits to that list. Raises
    ValueError for a fully addressable array in a program of several processes without a `primary_host`.
    """
    count = client.process_count()
    if isinstance(arr_inp, ArrayImpl) and arr_inp.is_fully_addressable and count > 1 and primary_host is None:
        raise ValueError(
            f"async_serialize: fully addressable arrays, here one of shape {arr_inp.shape}, cannot be written by all "
            f"{count} processes to the same file, {tensorstore_spec}: set primary_host to the process that writes them"
        )
    driver = tensorstore_spec["driver"]
    if "metadata" not in tensorstore_spec:
        tensorstore_spec["metadata"] = _metadata(arr_inp, driver, is_remote_storage(tensorstore_spec))
    if driver == "zarr" and "dtype" not in tensorstore_spec:
        tensorstore_spec["dtype"] = np.dtype(arr_inp.dtype).name
    options = dict(open=True, context=context, chunk_layout=chunk_layout, transaction=transaction)
    spec = ts.Spec(tensorstore_spec)
    if primary_host is None or client.process_index() == primary_host:
        created = ts.open(spec, create=True, **options)
        # A store may be opened without reading its metadata only after it was created.
        await created if commit_future is None else commit_future.append(created)
    store = await ts.open(spec, assume_metadata=True, **options)

    async def write(shard: Any) -> None:
        if shard.replica_id != replica_id:
            return
        # Another program may reuse this memory (donation) while it is read: tensorstore must copy it.
        future = store[shard.index].write(np.asarray(shard.data), can_reference_source_data_indefinitely=False)
        if commit_future is None:
            return await future.commit
        commit_future.append(future.commit)
        await future.copy

    return await asyncio.gather(*map(write, arr_inp.addressable_shards))


async def combine_kvstores(
    combined_kvstore: dict[str, Any], kvstores: Sequence[dict[str, Any]], context: Any = TS_CONTEXT
) -> None:
    """Copies the entries of several databases, for example one of each process, into one."""
    target = await ts.KvStore.open(ts.KvStore.Spec(combined_kvstore), context=context)
    sources = await asyncio.gather(*(ts.KvStore.open(ts.KvStore.Spec(k), context=context) for k in kvstores))
    transaction = ts.Transaction(atomic=True)
    target = target.with_transaction(transaction)
    await asyncio.gather(*(source.experimental_copy_range_to(target) for source in sources))
    await transaction.commit_async()


# ---- reading ----------------------------------------------------------------------------------------


class LimitInFlightBytes:
    """Limits the number of bytes that concurrent reads take in the host's memory."""

    def __init__(self, host_memory_bytes_limit: int):
        self._limit = self._available = host_memory_bytes_limit
        self._condition = asyncio.Condition()

    async def wait_for_bytes(self, requested: int) -> int:
        """Waits until these bytes, at most the limit, may be read. Returns the number of bytes to release."""
        requested = min(requested, self._limit)
        async with self._condition:
            await self._condition.wait_for(lambda: self._available >= requested)
            self._available -= requested
        return requested

    async def release_bytes(self, requested: int) -> None:
        """Returns bytes that were read."""
        async with self._condition:
            self._available += requested
            self._condition.notify_all()


def estimate_read_memory_footprint(t: Any, domain: Any) -> int:
    """The size in bytes of all chunks that overlap a domain."""
    chunk = t.chunk_layout.read_chunk_template.shape
    bounds = zip(domain.inclusive_min, domain.exclusive_max, chunk, strict=True)
    return t.dtype.numpy_dtype.itemsize * prod(
        (-(-stop // n) - start // n) * n if n else 0 for start, stop, n in bounds
    )


async def async_deserialize(
    in_type: Any, tensorstore_spec: Any, global_shape: Sequence[int] | None = None, dtype: Any = None,
    byte_limiter: LimitInFlightBytes | None = None, context: Any = TS_CONTEXT, chunk_layout: Any = _CHUNK_LAYOUT,
    assume_metadata: bool = False,
) -> ArrayImpl:  # fmt: skip
    """Reads an array with the sharding or format `in_type`, or with those and the dtype of a ShapeDtypeStruct.

    It is truncated or zero-padded to `global_shape`. Raises TypeError for an `in_type` without a concrete sharding.
    """
    form, sharding = _format_and_sharding(in_type)
    if isinstance(in_type, ShapeDtypeStruct) and dtype is None:
        dtype = in_type.dtype
    options = dict(assume_metadata=assume_metadata, context=context, chunk_layout=chunk_layout)
    store = await ts.open(ts.Spec(tensorstore_spec), open=True, **options)
    shape = tuple(store.shape if global_shape is None else global_shape)
    target = dtypes.canonicalize_dtype(store.dtype.numpy_dtype if dtype is None else dtype)
    if len(shape) != store.rank:
        raise ValueError(
            f"async_deserialize: global_shape {shape} does not have the rank of the stored array of shape {store.shape}"
        )

    async def read(device: Any, index: tuple) -> ArrayImpl:
        bounds = [i.indices(n)[:2] for i, n in zip(index, shape, strict=True)]
        return transfer.to_device((await _read(store, bounds, byte_limiter)).astype(target, copy=False), device)

    places = sharding.addressable_devices_indices_map(shape)
    shards = await asyncio.gather(*(read(device, index) for device, index in places.items()))
    array = joined(ShapedArray(shape, target), sharding, shards, True)
    return transfer.to_device(array, form) if isinstance(form, Format) else array


def _format_and_sharding(in_type: Any) -> tuple[Any, Sharding]:
    """The format or sharding of an array to read, and its sharding. Raises TypeError unless that is concrete."""
    form = in_type.format if isinstance(in_type, ShapeDtypeStruct) else in_type
    sharding = form.sharding if isinstance(form, Format) else form
    if not isinstance(sharding, Sharding) or isinstance(sharding, NamedSharding) and not sharding._is_concrete:
        raise TypeError(
            "sharding passed to deserialization should be specified, concrete and an instance of "
            f"`jax.sharding.Sharding`. Got {sharding}"
        )
    return form, sharding


async def _read(store: Any, bounds: Sequence[tuple[int, int]], limiter: LimitInFlightBytes | None) -> np.ndarray:
    """Reads a part of a stored array, with zeros out of its bounds."""
    part = np.zeros([stop - start for start, stop in bounds], store.dtype.numpy_dtype)
    stored = [(start, max(start, min(stop, n))) for (start, stop), n in zip(bounds, store.shape, strict=True)]
    if any(start >= stop for start, stop in stored):
        return part
    source = store[tuple(slice(*b) for b in stored)]
    inner = tuple(slice(stop - start) for start, stop in stored)
    if limiter is None:
        part[inner] = await source.read()
    else:
        size = await limiter.wait_for_bytes(estimate_read_memory_footprint(store, source.domain))
        part[inner] = await source.read()
        await limiter.release_bytes(size)
    return part
