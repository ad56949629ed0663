# The names of this module's table, written by tests/write_stubs.py.

from minijax.api.metadata import set_xla_metadata as set_xla_metadata

__all__ = [
    "set_xla_metadata"
]
