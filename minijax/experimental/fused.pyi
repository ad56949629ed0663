# The names of this module's table, written by tests/write_stubs.py.

from minijax.api.metadata import fused as fused
from minijax.calls.marked_calls import fused_call_p as fused_p

__all__ = [
    "fused", "fused_p"
]
