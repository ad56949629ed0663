"""jax.sharding: meshes and shardings."""

from minijax.api.meshes import get_abstract_mesh as get_abstract_mesh, get_mesh as get_mesh
from minijax.ir.meshes import (
    AbstractDevice as AbstractDevice,
    AbstractMesh as AbstractMesh,
    AxisType as AxisType,
    Mesh as Mesh,
    PartitionSpec as PartitionSpec,
    set_mesh as set_mesh,
)
from minijax.ir.shardings import (
    NamedSharding as NamedSharding,
    Sharding as Sharding,
    SingleDeviceSharding as SingleDeviceSharding,
)
