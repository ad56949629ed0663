# The names of this module's table, written by tests/write_stubs.py.

from minijax.api.custom_partitioning import custom_partitioning as custom_partitioning
from minijax.calls.custom_partitioning import custom_partitioning_p as custom_partitioning_p
from minijax.partition.factors import ArrayMapping as ArrayMapping
from minijax.partition.factors import BATCHING as BATCHING
from minijax.partition.factors import CompoundFactor as CompoundFactor
from minijax.partition.factors import SdyShardingRule as SdyShardingRule

__all__ = [
    "ArrayMapping", "BATCHING", "CompoundFactor", "SdyShardingRule", "custom_partitioning", "custom_partitioning_p"
]
