# The names of this module's table, written by tests/write_stubs.py.

from minijax.api.metadata import scheduling_group as scheduling_group
from minijax.api.metadata import xla_metadata_call as xla_metadata_call
from minijax.calls.marked_calls import xla_metadata_call_p as xla_metadata_call_p

__all__ = [
    "scheduling_group", "xla_metadata_call", "xla_metadata_call_p"
]
