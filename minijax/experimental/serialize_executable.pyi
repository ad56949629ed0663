# The names of this module's table, written by tests/write_stubs.py.

from minijax.api.serialized import deserialize_and_load as deserialize_and_load
from minijax.api.serialized import serialize as serialize

__all__ = [
    "deserialize_and_load", "serialize"
]
