"""jax.experimental.colocated_python.api: functions and objects colocated with devices."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.base.faces import listing
from minijax.experimental.colocated_python.func import make_callable
from minijax.experimental.colocated_python.obj import wrap_class
from minijax.ir.body import source_of
from minijax.partition.meshes import Mesh
from minijax.run.clients import client

__all__, __dir__ = listing(__name__, "colocated_cpu_devices colocated_python colocated_python_class")


def colocated_cpu_devices(devices_or_mesh: Sequence[Any] | Mesh) -> Any:
    """The CPU devices colocated with these devices, in the same order, or a mesh of them.

    Raises ValueError if a process has too few CPU devices.
    """
    if isinstance(devices_or_mesh, Mesh):
        mesh = devices_or_mesh
        devices = np.array(list(map(_colocated_cpu, mesh._flat_devices_tuple)), dtype=object).reshape(
            mesh.devices.shape
        )
        return Mesh(devices, mesh.axis_names, mesh.axis_types)
    return list(map(_colocated_cpu, devices_or_mesh))


def _colocated_cpu(device: Any) -> Any:
    if device.platform == "cpu":
        return device
    cpus, number = client.local_devices(device.process_index, "cpu"), device.local_hardware_id
    if number >= len(cpus):
        raise ValueError(
            f"colocated_cpu_devices: process {device.process_index} has {len(cpus)} CPU devices, too few for {device}: "
            "set `jax_num_cpu_devices` to get more"
        )
    return cpus[number]


def colocated_python(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Makes `fun`, a function of arrays, run on their hosts. `specialize` gives specs of arguments and results.

    A call raises ValueError for results that are not arrays, and if no argument or `specialize` gives the devices.
    """
    try:
        signature = inspect.signature(fun)
    except (ValueError, TypeError):
        signature = None
    return make_callable(fun, source_of(fun), signature)


def colocated_python_class(cls: type) -> type:
    """Makes the objects of a class live on the hosts of devices. They are created at the first method call."""
    return wrap_class(cls, source_of(cls))
