"""jax.experimental.array_serialization.pytree_serialization: saves and loads pytrees of arrays."""

import asyncio
import json
import os
import re
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from os import PathLike
from pathlib import Path
from typing import Any

from minijax.api.processes import sync_global_devices
from minijax.api.shapes import ShapeDtypeStruct
from minijax.base import dtypes, tree
from minijax.base.faces import listing
from minijax.experimental.array_serialization import pytree_serialization_utils as utils, tensorstore_impl
from minijax.experimental.array_serialization.pytree_serialization_utils import PyTreeFuture
from minijax.run.clients import client

__all__, __dir__ = listing(__name__, "load load_pytreedef nonblocking_load nonblocking_save save")

_TREE, _ARRAYS = "pytreedef.json", "array_store"  # the file names that jax uses
_ARRAY = re.compile(r"Array\((\w+)\[(.*)\]\)")


def save(data: Any, directory: str | PathLike[str], *, overwrite: bool = True, ts_specs: Any = None) -> None:
    """Writes a pytree whose leaves are arrays or None. `ts_specs`, a prefix of it, has options for tensorstore.

    Raises ValueError for other leaves, and for a nonempty directory without `overwrite`; RuntimeError for a directory
    that holds files other than those of a saved pytree.
    """
    root, (leaves, treedef) = _local_path(directory), utils.flattened(data)
    if not all(x is None or _is_array(x) for x in leaves):
        raise ValueError("For serialization, all leaves must be either None or jax.Array-like objects.")
    specs = _specs(treedef, ts_specs)
    description = json.dumps(utils.described(treedef, list(map(_description, leaves))), indent=2)
    if client.process_index() == 0:
        _clear(root, overwrite)
    _barrier(root, "emptied")
    several = client.process_count() > 1
    number = client.process_index() if several else None
    writes = []
    for i, (x, extra) in enumerate(zip(leaves, specs, strict=True)):
        if x is not None:
            spec = tensorstore_impl.get_tensorstore_spec(root / _ARRAYS / str(i), process_idx=number, arr=x)
            writes.append((x, tensorstore_impl.merge_nested_ts_specs(spec, extra)))
    asyncio.run(_all(tensorstore_impl.async_serialize, writes))
    _barrier(root, "written")
    if client.process_index() == 0:
        if several and writes:
            _combine(root / _ARRAYS)
        (root / _TREE).write_text(description)
    _barrier(root, "described")


def load(directory: str | PathLike[str], shardings: Any, *, mask: Any = None, ts_specs: Any = None) -> Any:
    """Reads the pytree in a directory, sharded as `shardings`, a prefix of it; None where `mask` is False.

    Raises AssertionError if the directory does not exist.
    """
    root = _local_path(directory)
    if not root.is_dir():
        raise AssertionError(f"Checkpoint directory {root} does not exist")
    described, treedef = _read_structs(root)
    leaf_shardings = tree.flatten_axes("load shardings", treedef, shardings)
    leaf_mask = tree.flatten_axes("load mask", treedef, True if mask is None else mask)
    specs = _specs(treedef, ts_specs)
    reads, positions = [], []
    for i, (leaf, sharding, is_read, extra) in enumerate(zip(described, leaf_shardings, leaf_mask, specs, strict=True)):
        if leaf is not None and is_read:
            spec = tensorstore_impl.get_tensorstore_spec(root / _ARRAYS / str(i))
            reads.append((sharding, tensorstore_impl.merge_nested_ts_specs(spec, extra)))
            positions.append(i)
    results: list[Any] = [None] * len(described)
    for i, x in zip(positions, asyncio.run(_all(tensorstore_impl.async_deserialize, reads)), strict=True):
        results[i] = x
    return treedef.unflatten(results)


def load_pytreedef(directory: str | PathLike[str]) -> Any:
    """Reads the structure of the pytree in a directory, with a ShapeDtypeStruct for each array."""
    leaves, treedef = _read_structs(_local_path(directory))
    return treedef.unflatten(leaves)


def nonblocking_save(
    data: Any, directory: str | PathLike[str], *, overwrite: bool = True, ts_specs: Any = None
) -> PyTreeFuture:
    """As `save`, in a thread; returns a future."""
    started = _in_thread(lambda: save(data, directory, overwrite=overwrite, ts_specs=ts_specs))
    started.pytree = tree.tree_map(lambda x: ShapeDtypeStruct(x.shape, x.dtype) if _is_array(x) else x, data)
    return started


def nonblocking_load(
    directory: str | PathLike[str], shardings: Any, *, mask: Any = None, ts_specs: Any = None
) -> PyTreeFuture:
    """As `load`, in a thread; returns a future."""
    described = load_pytreedef(directory)
    started = _in_thread(lambda: load(directory, shardings, mask=mask, ts_specs=ts_specs))
    started.pytree = described
    return started


def _in_thread(call: Callable[[], Any]) -> PyTreeFuture:
    executor = ThreadPoolExecutor(1)
    future = executor.submit(call)
    executor.shutdown(wait=False)
    return PyTreeFuture(future)


async def _all(write: Callable, rows: list[tuple]) -> list:
    return await asyncio.gather(*(write(*row) for row in rows))


def _local_path(directory: str | PathLike[str]) -> Path:
    text = os.fspath(directory)
    if tensorstore_impl.is_remote_storage(text):
        raise NotImplementedError(f"saving pytrees in cloud storage is not implemented: {text}")
    return Path(text).absolute()


def _is_array(x: Any) -> bool:
    return hasattr(x, "shape") and hasattr(x, "dtype") and hasattr(x, "addressable_shards")


def _specs(treedef: Any, prefix: Any) -> list:
    """The spec of each leaf, from a prefix of the tree."""
    specs, prefix_def = tree.flatten(prefix, tensorstore_impl.is_tensorstore_spec_leaf)
    return tree.broadcast_leaves(specs, prefix_def, treedef)


def _description(x: Any) -> str | None:
    return None if x is None else f"Array({x.dtype.name}[{', '.join(map(str, x.shape))}])"


def _read_structs(root: Path) -> tuple[list, Any]:
    texts, treedef = utils.parse_description(json.loads((root / _TREE).read_text()))
    leaves: list[Any] = []
    for text in texts:
        found = _ARRAY.fullmatch(text or "")
        if text is not None and (found is None or found[1] not in dtypes.BY_NAME):
            raise ValueError(f"{root / _TREE} has an invalid description of an array: {text!r}")
        shape = tuple(int(n) for n in found[2].split(",") if n.strip()) if found else ()
        leaves.append(ShapeDtypeStruct(shape, dtypes.BY_NAME[found[1]]) if found else None)
    return leaves, treedef


def _clear(root: Path, overwrite: bool) -> None:
    """Creates the directory, or removes the pytree saved in it."""
    root.mkdir(parents=True, exist_ok=True)
    present = list(root.iterdir())
    if present and not overwrite:
        raise ValueError(f"Files already exist at path: `{root}`, but you specified `overwrite=False`")
    if others := [path for path in present if path.name not in (_TREE, _ARRAYS)]:
        raise RuntimeError(
            f"Refusing to work on a directory that is not a previous checkpoint. Unrecognized paths: {others}. Remove "
            f"them if they are not needed, and save to {root} again"
        )
    (root / _TREE).unlink(missing_ok=True)
    shutil.rmtree(root / _ARRAYS, ignore_errors=True)


def _combine(arrays: Path) -> None:
    """Combines the databases that the processes have written into one, which refers to their files."""
    kvstores = [{"driver": "ocdbt", "base": f"file://{part}/"} for part in sorted(arrays.glob("process_*"))]
    asyncio.run(tensorstore_impl.combine_kvstores({"driver": "ocdbt", "base": f"file://{arrays}/"}, kvstores))


def _barrier(root: Path, what: str) -> None:
    if client.process_count() > 1:
        sync_global_devices(f"{root} {what}")
