# The names of this module's table, written by tests/write_stubs.py.

from minijax.tools import jax_to_ir as jax_to_ir
from minijax.tools import pgo_nsys_converter as pgo_nsys_converter

__all__ = [
    "jax_to_ir", "pgo_nsys_converter"
]
