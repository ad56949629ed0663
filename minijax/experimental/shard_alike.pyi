# The names of this module's table, written by tests/write_stubs.py.

from minijax.primitives.shard_alike import shard_alike as shard_alike

__all__ = [
    "shard_alike"
]
