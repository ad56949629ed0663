"""jax.sharding: meshes and shardings."""

from minijax.api.meshes import (
    auto_axes as auto_axes,
    get_abstract_mesh as get_abstract_mesh,
    get_mesh as get_mesh,
    make_single_device_sharding as make_single_device_sharding,
    reshard as reshard,
)
from minijax.partition.meshes import (
    AbstractDevice as AbstractDevice,
    AbstractMesh as AbstractMesh,
    AxisType as AxisType,
    Mesh as Mesh,
    PartitionSpec as PartitionSpec,
    set_mesh as set_mesh,
)
from minijax.partition.shardings import (
    NamedSharding as NamedSharding,
    Sharding as Sharding,
    SingleDeviceSharding as SingleDeviceSharding,
)
