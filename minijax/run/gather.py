"""What the processes of a program have each, brought together on all of them."""

from collections.abc import Sequence

import numpy as np

from minijax.base.cache import cache
from minijax.ir import types
from minijax.partition.meshes import Mesh, P
from minijax.partition.shardings import GSPMDSharding, NamedSharding, Sharding
from minijax.run import client, reshard
from minijax.run.array import ArrayImpl, put_host, signature


@cache(maxsize=64)
def mesh_of_processes(devices: tuple) -> Mesh:
    """A mesh whose first axis has a row for each process; devices that fill no rectangle are left out."""
    rows: dict[int, list] = {}
    for device in devices:
        rows.setdefault(device.process_index, []).append(device)
    width = min(map(len, rows.values()))
    return Mesh(np.array([row[:width] for _, row in sorted(rows.items())], dtype=object), ("processes", "devices"))


def of_each_process(value: np.ndarray, mesh: Mesh) -> ArrayImpl:
    """The array of a row for each process of the mesh, of which `value` is this one's."""
    rows = len(mesh.devices)
    aval = types.ShapedArray((rows, *value.shape), value.dtype)
    sig = signature(aval, NamedSharding(mesh, P("processes")), True)
    # A view in which every row is the value: each process puts its own row alone on its devices.
    return ArrayImpl(put_host(np.broadcast_to(value, aval.shape), sig), sig)


def on_all(x: ArrayImpl) -> np.ndarray:
    """All of an array, some of which other processes have; they must ask for it too."""
    if x.is_fully_replicated:
        return np.asarray(x)
    new = signature(x.aval, GSPMDSharding.get_replicated(x.sharding._device_assignment), True)
    raw = reshard.moved(x._raw, x._sig, new)
    return np.asarray(ArrayImpl(raw, new))


def gathered(value: np.ndarray, devices: Sequence | None = None) -> np.ndarray:
    """The values of all processes of the devices, by default of all there are, in rows."""
    return on_all(of_each_process(value, mesh_of_processes(tuple(devices or client.devices()))))


def check_equal(value: np.ndarray, devices: Sequence, message: str) -> None:
    """Raises AssertionError, in all processes of the devices, if their values differ."""
    rows = gathered(value, devices)
    if not all(np.array_equal(row, value) for row in rows):
        raise AssertionError(f"{message} Expected: {rows.tolist()}; got: {value.tolist()}.")


def check_same_everywhere(value: np.ndarray, sharding: Sharding) -> None:
    """Raises AssertionError if the processes that a sharding spans put different values there."""
    if sharding.has_addressable_devices and not sharding.is_fully_addressable:
        what = f"device_put: the value, {value.dtype.name}{list(value.shape)}, is not the same on each process."
        check_equal(value, sharding._device_assignment, what)
