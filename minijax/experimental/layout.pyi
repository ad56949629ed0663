# The names of this module's table, written by tests/write_stubs.py.

from minijax.partition.layouts import Format as Format
from minijax.partition.layouts import Layout as Layout
from minijax.primitives.sharding import with_layout_constraint as with_layout_constraint

__all__ = [
    "Format", "Layout", "with_layout_constraint"
]
