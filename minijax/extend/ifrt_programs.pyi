# The names of this module's table, written by tests/write_stubs.py.

from jaxlib._jax import ifrt_programs as ifrt_programs

__all__ = [
    "ifrt_programs"
]
