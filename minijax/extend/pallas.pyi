# The names of this module's table, written by tests/write_stubs.py.

from minijax.kernels.mapping import GridMapping as GridMapping
from minijax.kernels.primitive import register_lowering_rule as register_lowering_rule

__all__ = [
    "GridMapping", "register_lowering_rule"
]
