"""jax.experimental.topologies: the devices of machines that need not be there."""

from collections.abc import Sequence
from typing import Any

from minijax.base.faces import listing
from minijax.experimental import mesh_utils
from minijax.partition.meshes import Mesh
from minijax.run import client

__all__, __dir__ = listing(__name__, "Device TopologyDescription get_attached_topology get_topology_desc make_mesh")


class TopologyDescription:
    """The devices of a machine."""

    def __init__(self, devices: list[Any]):
        self.devices = devices


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """The devices that are there. Raises RuntimeError for a platform that is not."""
    return TopologyDescription(client.devices(platform))


def get_topology_desc(topology_name: str = "", platform: str | None = None, **kwargs: Any) -> TopologyDescription:
    """The devices of a machine with that name, by default of TPUs, as the plugin of a platform knows it.

    Raises RuntimeError where the plugin is not installed, NotImplementedError for platforms that describe none.
    """
    topology = client.topology_of("tpu" if platform is None else platform, topology_name, kwargs)
    return TopologyDescription(topology._make_compile_only_devices())


def make_mesh(
    topo: TopologyDescription,
    mesh_shape: Sequence[int],
    axis_names: tuple[str, ...],
    *,
    contiguous_submeshes: bool = False,
) -> Mesh:
    """A mesh of these devices, in an order that fits how they are connected."""
    devices = mesh_utils.create_device_mesh(mesh_shape, list(topo.devices), contiguous_submeshes=contiguous_submeshes)
    return Mesh(devices, axis_names)
