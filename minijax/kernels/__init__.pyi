# The names of this module's table, written by tests/write_stubs.py.

from minijax.kernels.picture import visualize as visualize

__all__ = [
    "visualize"
]
