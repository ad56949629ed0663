"""jax.experimental.custom_partitioning: functions with user-defined partitioning."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.api.custom_partitioning: custom_partitioning
minijax.calls.custom_partitioning: custom_partitioning_p
minijax.partition.factors: ArrayMapping BATCHING CompoundFactor SdyShardingRule
""",
)
