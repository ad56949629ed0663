# The names of this module's table, written by tests/write_stubs.py.

from minijax.api.distributed import initialize as initialize
from minijax.api.distributed import is_initialized as is_initialized
from minijax.api.distributed import shutdown as shutdown

__all__ = [
    "initialize", "is_initialized", "shutdown"
]
