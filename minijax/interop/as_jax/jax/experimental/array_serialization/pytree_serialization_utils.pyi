# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.array_serialization.pytree_serialization_utils import (deserialize_pytreedef as
    deserialize_pytreedef, register_pytree_node_serialization as register_pytree_node_serialization,
    serialize_pytreedef as serialize_pytreedef)
