# The names of this module's table, written by tests/write_stubs.py.

from jaxlib.version import __version__ as __version__

__all__ = [
]
