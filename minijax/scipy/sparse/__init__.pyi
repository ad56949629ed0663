# The names of this module's table, written by tests/write_stubs.py.

from minijax.scipy.sparse import linalg as linalg

__all__ = [
    "linalg"
]
