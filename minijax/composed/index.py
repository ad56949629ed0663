"""Indexing along one axis as jitted functions, which they are to users."""

from minijax.control.jitted import jitted
from minijax.ops import index

_STATIC = ("axis", "keepdims", "allow_negative_indices")

dynamic_index_in_dim = jitted(static=_STATIC)(index.dynamic_index_in_dim)
dynamic_update_index_in_dim = jitted(static=_STATIC)(index.dynamic_update_index_in_dim)
