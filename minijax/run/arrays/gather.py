"""Gathers the values of all processes of a program in each process."""

from collections.abc import Sequence

import numpy as np

from minijax.base.cache import cache
from minijax.ir import types
from minijax.partition.meshes import Mesh, P
from minijax.partition.shardings import GSPMDSharding, NamedSharding, Sharding
from minijax.run.arrays import reshard
from minijax.run.arrays.array import ArrayImpl, put_host, signature, wrapped
from minijax.run.clients import client


@cache(maxsize=64)
def mesh_of_processes(devices: tuple) -> Mesh:
    """A mesh with one row of devices for each process; surplus devices of a process are left out."""
    rows: dict[int, list] = {}
    for device in devices:
        rows.setdefault(device.process_index, []).append(device)
    width = min(map(len, rows.values()))
    return Mesh(np.array([row[:width] for _, row in sorted(rows.items())], dtype=object), ("processes", "devices"))


def array_of_process_rows(value: np.ndarray, mesh: Mesh) -> ArrayImpl:
    """An array with one row for each process of the mesh; `value` is the row of this process."""
    rows = len(mesh.devices)
    aval = types.ShapedArray((rows, *value.shape), value.dtype)
    sig = signature(aval, NamedSharding(mesh, P("processes")), True)
    # In this view every row is the value, since each process puts only its own row on its devices.
    return wrapped(put_host(np.broadcast_to(value, aval.shape), sig), sig)


def on_all(x: ArrayImpl) -> np.ndarray:
    """The global value of an array whose shards are on several processes; all of them must call this."""
    if x.is_fully_replicated:
        return np.asarray(x)
    new = signature(x.aval, GSPMDSharding.get_replicated(x.sharding._device_assignment), True)
    raw = reshard.moved(x._settled_raw, x._sig, new)
    return np.asarray(wrapped(raw, new))


def gathered(value: np.ndarray, devices: Sequence | None = None) -> np.ndarray:
    """The values of all processes that have the devices (by default all devices), as rows."""
    return on_all(array_of_process_rows(value, mesh_of_processes(tuple(devices or client.devices()))))


def check_equal(value: np.ndarray, devices: Sequence, message: str) -> None:
    """Raises AssertionError, in all processes that have the devices, if their values differ."""
    rows = gathered(value, devices)
    if not all(np.array_equal(row, value) for row in rows):
        raise AssertionError(f"{message} Expected: {rows.tolist()}; got: {value.tolist()}.")


def check_same_everywhere(value: np.ndarray, sharding: Sharding) -> None:
    """Raises AssertionError if the processes of a sharding pass different values."""
    if sharding.has_addressable_devices and not sharding.is_fully_addressable:
        what = f"device_put: the value, {value.dtype.name}{list(value.shape)}, is not the same on each process."
        check_equal(value, sharding._device_assignment, what)
