# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.array_serialization import pytree_serialization as pytree_serialization
from minijax.experimental.array_serialization import pytree_serialization_utils as pytree_serialization_utils
from minijax.experimental.array_serialization import serialization as serialization
from minijax.experimental.array_serialization import tensorstore_impl as tensorstore_impl

__all__ = [
    "pytree_serialization", "pytree_serialization_utils", "serialization", "tensorstore_impl"
]
