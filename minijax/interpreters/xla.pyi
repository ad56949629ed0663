# The names of this module's table, written by tests/write_stubs.py.

from jaxlib._jax import Client as Backend
from minijax.dispatch.operations import apply_primitive as apply_primitive
from minijax.interop.introspection import canonicalize_dtype_handlers as canonicalize_dtype_handlers

__all__ = [
    "Backend", "apply_primitive", "canonicalize_dtype_handlers"
]
