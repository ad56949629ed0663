"""Communication between the processes of a program."""

from __future__ import annotations

import contextlib
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from minijax.api.jit import jit
from minijax.base import tree
from minijax.ir.primitive import Primitive
from minijax.partition.meshes import Mesh, P
from minijax.partition.shardings import NamedSharding
from minijax.primitives.host_local import global_to_local_p, local_to_global_p
from minijax.primitives.reduce import reduce_or, reduce_sum
from minijax.run.arrays import gather, transfer
from minijax.run.arrays.array import ArrayImpl
from minijax.run.clients import client, distributed


class ProcessFailureError(Exception):
    """Is raised where the processes of some devices have failed.

    Example:
        >>> from minijax.experimental.multihost_utils import ProcessFailureError
        >>> issubclass(ProcessFailureError, Exception)
        True
    """

    def __init__(self, failed_devices: set):
        super().__init__(f"Devices failed: {failed_devices}")
        self.failed_devices = failed_devices


def _is_multi_process() -> bool:
    return client.process_count() > 1


def _on_host(x: Any) -> np.ndarray:
    return np.asarray(x) if isinstance(x, ArrayImpl) else transfer.as_host(x)


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """Returns the values of the process where `is_source` is true, by default the first, as NumPy arrays.

    Example:
        >>> jax.experimental.multihost_utils.broadcast_one_to_all({"seed": np.int32(3)})
        {'seed': array(3, dtype=int32)}
    """
    if not _is_multi_process():
        return tree.tree_map(np.asarray, in_tree)
    is_source = client.process_index() == 0 if is_source is None else is_source
    mesh = gather.mesh_of_processes(tuple(client.devices()))

    def row(x):
        value = _on_host(x)
        return gather.array_of_process_rows(value if is_source else np.zeros_like(value), mesh)

    return tree.tree_map(np.asarray, _sum_over_processes(mesh)(tree.tree_map(row, in_tree)))


def _sum_over_processes(mesh: Mesh) -> Callable:
    def total(x):
        return (reduce_or if x.dtype == np.bool_ else reduce_sum)(x, (0,))

    return jit(lambda xs: tree.tree_map(total, xs), out_shardings=NamedSharding(mesh, P()))


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """Returns the values of all processes as NumPy arrays, stacked along a leading axis, or concatenated if `tiled`.

    A global array is gathered. Raises ValueError for one that spans processes unless `tiled`.

    Example:
        >>> jax.experimental.multihost_utils.process_allgather(np.array([1, 2]), tiled=True)
        array([1, 2])
    """

    def gathered(x):
        if isinstance(x, ArrayImpl) and not x.is_fully_addressable:
            if not tiled:
                raise ValueError(
                    "process_allgather: Gathering global non-fully-addressable arrays only supports tiled=True, "
                    f"and this is one of shape {x.shape}"
                )
            return gather.on_all(x)
        if not _is_multi_process():
            return np.asarray(x) if tiled else np.asarray(x)[None]
        rows = gather.gathered(_on_host(x))
        return rows.reshape(-1, *rows.shape[2:]) if tiled and rows.ndim > 1 else rows

    return tree.tree_map(gathered, in_tree)


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Raises AssertionError in all processes if their values differ.

    Example:
        >>> jax.experimental.multihost_utils.assert_equal({"step": 3}, "processes differ in their step")
    """
    if not _is_multi_process():
        broadcast_one_to_all(in_tree)
        return
    for x in tree.tree_leaves(in_tree):
        gather.check_equal(_on_host(x), client.devices(), fail_message)


def sync_global_devices(name: str) -> None:
    """Waits until all processes have called this. Raises AssertionError if their names differ.

    Example:
        >>> jax.experimental.multihost_utils.sync_global_devices("saved")
    """
    crc = zlib.crc32(name.encode())
    if _is_multi_process():
        assert_equal(np.uint32(crc), f"sync_global_devices name mismatch ({name!r}).")


def reached_preemption_sync_point(step_id: int) -> bool:
    """Returns whether the processes should save their state now because one of them will be preempted.

    Raises RuntimeError if `jax_enable_preemption_service` was off at `jax.distributed.initialize`.

    Example:
        >>> from minijax.experimental import multihost_utils
        >>> multihost_utils.reached_preemption_sync_point(100)
        False
    """
    if not distributed.state.client:
        return False
    manager = distributed.state.preemption_sync_manager
    if manager is None:
        raise RuntimeError(
            "Preemption sync manager has not been initialized: jax_enable_preemption_service was off when "
            "jax.distributed.initialize was called."
        )
    return manager.reached_sync_point(step_id)


# ---- processes that fail ----------------------------------------------------------------------------

_VOTE_MILLISECONDS = 60_000
_rounds: Counter = Counter()  # by the incarnations of the participating processes


@contextlib.contextmanager
def _live_context(devices: Sequence[Any], coordinator: Any) -> Iterator[list]:
    processes = sorted({d.process_index for d in devices})
    alive = coordinator.get_live_nodes(processes)  # waits for the live processes
    live = [d for d in devices if d.process_index in alive]
    incarnations = tuple(sorted(alive.items()))
    _rounds[incarnations] += 1
    ballot = f"minijax/live_devices/{hash(incarnations)}/{_rounds[incarnations]}/"
    try:
        yield live
    except BaseException:
        coordinator.key_value_set(f"{ballot}{client.process_index()}", "failed")
        coordinator.get_live_nodes(sorted(alive))
        raise
    coordinator.key_value_set(f"{ballot}{client.process_index()}", "done")
    after = coordinator.get_live_nodes(sorted(alive))
    failed = {process for process, incarnation in alive.items() if after.get(process) != incarnation}
    failed |= {int(key.rpartition("/")[2]) for key, vote in coordinator.key_value_dir_get(ballot) if vote == "failed"}
    if failed:
        raise ProcessFailureError({d for d in live if d.process_index in failed})


def live_devices(devices: Any) -> Any:
    """Returns, as a context manager, the devices whose processes have not failed. All live processes enter it together.

    They leave it together: if one fails or raises inside, the others raise ProcessFailureError. Raises RuntimeError
    in a program of one process, and ValueError if no device belongs to this process.

    Example:
        >>> from minijax.experimental import multihost_utils
        >>> with multihost_utils.live_devices(jax.devices()) as alive:
        ...     print(len(alive))
        Traceback (most recent call last):
        RuntimeError: Distributed JAX not initialized: live_devices asks about other processes.
    """
    if distributed.state.client is None:
        raise RuntimeError("Distributed JAX not initialized: live_devices asks about other processes.")
    devices = list(devices)
    if not any(d.process_index == client.process_index() for d in devices):
        raise ValueError("live_devices: Provided devices do not have any local devices.")
    return _live_context(devices, distributed.state.client)


# ---- process-local and global arrays ----------------------------------------------------------------


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """Assembles global arrays from each process's data; `pspecs` is a tree prefix of specs.

    Example:
        >>> mesh = jax.make_mesh((1,), ("i",))
        >>> local = np.arange(4.0)
        >>> jax.experimental.multihost_utils.host_local_array_to_global_array(local, mesh, jax.P("i"))
        Array([0., 1., 2., 3.], dtype=float32)
    """
    return _bind_leaves(local_to_global_p, "input pspecs", local_inputs, global_mesh, pspecs)


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """Returns this process's data of global arrays; `pspecs` is a tree prefix of specs.

    Example:
        >>> x = jnp.arange(4.0)
        >>> mesh = jax.make_mesh((1,), ("i",))
        >>> jax.experimental.multihost_utils.global_array_to_host_local_array(x, mesh, jax.P("i"))
        Array([0., 1., 2., 3.], dtype=float32)
    """
    return _bind_leaves(global_to_local_p, "output pspecs", global_inputs, global_mesh, pspecs)


def _bind_leaves(primitive: Primitive, what: str, values: Any, mesh: Any, pspecs: Any) -> Any:
    leaves, treedef = tree.flatten(values)
    if pspecs is None:
        raise ValueError(
            "`None` is not a valid input to the pspecs argument. Please use jax.sharding.PartitionSpec() if you wanted "
            "to replicate your input."
        )
    specs = tree.flatten_axes(what, treedef, pspecs)
    pairs = zip(leaves, specs, strict=True)
    return treedef.unflatten([primitive.bind(x, global_mesh=mesh, pspec=spec) for x, spec in pairs])
