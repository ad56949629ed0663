# The names of this module's table, written by tests/write_stubs.py.

from minijax.interop.source_maps import canonicalize_filename as canonicalize_filename
from minijax.interop.source_maps import compile_jaxpr as compile_jaxpr
from minijax.interop.source_maps import make_jaxpr_dump as make_jaxpr_dump

__all__ = [
    "canonicalize_filename", "compile_jaxpr", "make_jaxpr_dump"
]
