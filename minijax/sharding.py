"""jax.sharding: meshes and shardings."""

from minijax.ir.meshes import (
    AbstractMesh as AbstractMesh,
    AxisType as AxisType,
    Mesh as Mesh,
    PartitionSpec as PartitionSpec,
)
from minijax.ir.shardings import (
    NamedSharding as NamedSharding,
    Sharding as Sharding,
    SingleDeviceSharding as SingleDeviceSharding,
)
