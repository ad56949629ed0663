# The names of this module's table, written by tests/write_stubs.py.

from minijax.partition.shardings import GSPMDSharding as GSPMDSharding
from minijax.run.programs.compiled_shardings import get_hlo_sharding_from_serialized_proto as get_hlo_sharding_from_serialized_proto
from minijax.run.programs.compiled_shardings import get_op_sharding_from_serialized_proto as get_op_sharding_from_serialized_proto
from minijax.run.programs.compiled_shardings import get_serialized_proto_from_hlo_sharding as get_serialized_proto_from_hlo_sharding

__all__ = [
    "GSPMDSharding", "get_hlo_sharding_from_serialized_proto", "get_op_sharding_from_serialized_proto",
    "get_serialized_proto_from_hlo_sharding"
]
