"""jax.sharding: meshes and shardings."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.api.meshes: auto_axes explicit_axes get_abstract_mesh get_mesh make_single_device_sharding reshard
minijax.ir.types: ManualAxisType
minijax.partition.meshes: AbstractDevice AbstractMesh AxisType Mesh PartitionSpec set_mesh use_abstract_mesh
minijax.partition.shardings: NamedSharding Sharding SingleDeviceSharding
""",
)
