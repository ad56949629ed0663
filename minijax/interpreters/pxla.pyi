# The names of this module's table, written by tests/write_stubs.py.

from minijax.interop.introspection import ArrayMapping as ArrayMapping
from minijax.interop.introspection import Index as Index
from minijax.interop.introspection import thread_resources as thread_resources
from minijax.partition.shardings import Unspecified
from typing import _AnyMeta

__all__ = [
]

_UNSPECIFIED: Unspecified
MeshAxisName: _AnyMeta
