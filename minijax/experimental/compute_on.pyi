# The names of this module's table, written by tests/write_stubs.py.

from minijax.api.metadata import compute_on as compute_on
from minijax.api.metadata import compute_on2 as compute_on2

__all__ = [
    "compute_on", "compute_on2"
]
