# The names of this module's table, written by tests/write_stubs.py.

from minijax.api.custom_batching import custom_vmap as custom_vmap
from minijax.api.custom_batching import sequential_vmap as sequential_vmap

__all__ = [
    "custom_vmap", "sequential_vmap"
]
