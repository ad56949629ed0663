# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.mosaic.gpu import core as core

__all__ = [
    "core"
]
