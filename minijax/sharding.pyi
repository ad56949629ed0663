# The names of this module's table, written by tests/write_stubs.py.

from minijax.api.meshes import auto_axes as auto_axes
from minijax.api.meshes import explicit_axes as explicit_axes
from minijax.api.meshes import get_abstract_mesh as get_abstract_mesh
from minijax.api.meshes import get_mesh as get_mesh
from minijax.api.meshes import make_single_device_sharding as make_single_device_sharding
from minijax.api.meshes import reshard as reshard
from minijax.ir.types import ManualAxisType as ManualAxisType
from minijax.partition.meshes import AbstractDevice as AbstractDevice
from minijax.partition.meshes import AbstractMesh as AbstractMesh
from minijax.partition.meshes import AxisType as AxisType
from minijax.partition.meshes import Mesh as Mesh
from minijax.partition.meshes import PartitionSpec as PartitionSpec
from minijax.partition.meshes import set_mesh as set_mesh
from minijax.partition.meshes import use_abstract_mesh as use_abstract_mesh
from minijax.partition.shardings import NamedSharding as NamedSharding
from minijax.partition.shardings import Sharding as Sharding
from minijax.partition.shardings import SingleDeviceSharding as SingleDeviceSharding

__all__ = [
    "AbstractDevice", "AbstractMesh", "AxisType", "ManualAxisType", "Mesh", "NamedSharding", "PartitionSpec",
    "Sharding", "SingleDeviceSharding", "auto_axes", "explicit_axes", "get_abstract_mesh", "get_mesh",
    "make_single_device_sharding", "reshard", "set_mesh", "use_abstract_mesh"
]
