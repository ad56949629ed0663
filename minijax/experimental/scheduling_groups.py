"""jax.experimental.scheduling_groups: calls that bear metadata for XLA."""

from minijax.api.metadata import scheduling_group as scheduling_group, xla_metadata_call as xla_metadata_call
from minijax.higher.marked_calls import xla_metadata_call_p as xla_metadata_call_p
