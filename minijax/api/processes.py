"""What the processes of a program tell each other; a program of this library is one process."""

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.api.transfer import device_put
from minijax.base import tree
from minijax.ir.trace import Tracer
from minijax.partition.shardings import NamedSharding
from minijax.primitives.sharding import with_sharding_constraint
from minijax.run.array import Array


class ProcessFailureError(Exception):
    """Some devices' processes have failed."""

    def __init__(self, failed_devices: set):
        super().__init__(f"Devices failed: {failed_devices}")
        self.failed_devices = failed_devices


def is_initialized() -> bool:
    """Whether this process was made one of several."""
    return False


def shutdown() -> None:
    """Leaves the other processes; there are none."""


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """The first process's values, as NumPy arrays."""
    return tree.tree_map(np.asarray, in_tree)


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """All processes' values as NumPy arrays, stacked over a leading axis, or concatenated if `tiled`."""
    return tree.tree_map(lambda x: np.asarray(x) if tiled else np.asarray(x)[None], in_tree)


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Raises AssertionError if the processes' values differ; those of one process do not."""
    broadcast_one_to_all(in_tree)


def sync_global_devices(name: str) -> None:
    """Waits until all processes have come here."""
    name.encode()


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether the processes should save their state now, for one of them will be stopped."""
    return False


def live_devices(devices: Any) -> Any:
    """The devices whose processes have not failed. Raises RuntimeError in a program of one process."""
    raise RuntimeError("Distributed JAX not initialized: live_devices asks about other processes.")


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """Arrays over a mesh, of each process's part; `pspecs` is a tree prefix of specs."""
    return _each(_over_mesh, "input pspecs", local_inputs, global_mesh, pspecs)


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """This process's part of arrays over a mesh."""

    def part(x, mesh, spec):
        return x if isinstance(x, Array) else _over_mesh(x, mesh, spec)

    return _each(part, "output pspecs", global_inputs, global_mesh, pspecs)


def _over_mesh(x, mesh, spec):
    # Under a transformation the spec is of what the function sees, which a constraint knows.
    put = with_sharding_constraint if isinstance(x, Tracer) else device_put
    return put(x, NamedSharding(mesh, spec))


def _each(f: Callable, what: str, values: Any, mesh: Any, pspecs: Any) -> Any:
    leaves, treedef = tree.flatten(values)
    if pspecs is None:
        raise ValueError(
            "`None` is not a valid input to the pspecs argument. Please use jax.sharding.PartitionSpec() if you wanted "
            "to replicate your input."
        )
    specs = tree.flatten_axes(what, treedef, pspecs)
    return treedef.unflatten([f(x, mesh, p) for x, p in zip(leaves, specs, strict=True)])
