# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.compilation_cache import compilation_cache as compilation_cache

__all__ = [
    "compilation_cache"
]
