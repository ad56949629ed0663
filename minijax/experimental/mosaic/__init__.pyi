# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.mosaic import gpu as gpu

__all__ = [
    "gpu"
]
