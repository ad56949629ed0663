"""jax.extend.sharding: conversions between shardings and XLA's protos."""

from minijax.base.faces import Face

_TABLE = """
minijax.partition.shardings: GSPMDSharding
minijax.run.programs.compiled_shardings: get_hlo_sharding_from_serialized_proto get_op_sharding_from_serialized_proto
    get_serialized_proto_from_hlo_sharding
"""
__getattr__, __dir__ = _FACE = Face(__name__, _TABLE)
