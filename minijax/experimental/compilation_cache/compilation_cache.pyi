# The names of this module's table, written by tests/write_stubs.py.

from minijax.run.programs.disk_cache import reset_cache as reset_cache
from minijax.run.programs.disk_cache import set_cache_dir as set_cache_dir

__all__ = [
    "reset_cache", "set_cache_dir"
]
