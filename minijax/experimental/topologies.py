"""jax.experimental.topologies: the devices of machines that need not be attached, to compile for."""

from collections.abc import Sequence
from typing import Any

from minijax.base.faces import listing
from minijax.experimental import mesh_utils
from minijax.partition.meshes import Mesh
from minijax.run.clients import client

__all__, __dir__ = listing(__name__, "Device TopologyDescription get_attached_topology get_topology_desc make_mesh")

Device = client.Device


class TopologyDescription:
    """Holds the devices of a topology.

    Example:
        >>> jax.experimental.topologies.TopologyDescription(jax.devices()).devices == jax.devices()
        True
    """

    def __init__(self, devices: list[Any]):
        self.devices = devices


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """Returns the attached devices of a platform. Raises RuntimeError for a platform without devices.

    Example:
        >>> jax.experimental.topologies.get_attached_topology().devices[0].platform
        'cpu'
    """
    return TopologyDescription(client.devices(platform))


def get_topology_desc(topology_name: str = "", platform: str | None = None, **kwargs: Any) -> TopologyDescription:
    """Returns the devices of a named topology, which need not be attached, as a platform's plugin describes them.

    Raises RuntimeError if the plugin is not installed, NotImplementedError for platforms without topologies.

    Example:
        >>> from minijax.experimental import topologies
        >>> topologies.get_topology_desc("mine", platform="cpu")
        Traceback (most recent call last):
        NotImplementedError: ...
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
    """Creates a mesh of the devices of a topology, in an order that suits their interconnect.

    Example:
        >>> topology = jax.experimental.topologies.get_attached_topology()
        >>> jax.experimental.topologies.make_mesh(topology, (len(topology.devices),), ("i",)).axis_names
        ('i',)
    """
    devices = mesh_utils.create_device_mesh(mesh_shape, list(topo.devices), contiguous_submeshes=contiguous_submeshes)
    return Mesh(devices, axis_names)
