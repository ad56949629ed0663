"""The functions of `jax.tree`."""

from minijax.base import tree as _tree

all = _tree.tree_all
broadcast = _tree.tree_broadcast
flatten = _tree.tree_flatten
flatten_with_path = _tree.tree_flatten_with_path
leaves = _tree.tree_leaves
leaves_with_path = _tree.tree_leaves_with_path
map = _tree.tree_map
map_with_path = _tree.tree_map_with_path
reduce = _tree.tree_reduce
reduce_associative = _tree.tree_reduce_associative
static = _tree.static
structure = _tree.tree_structure
transpose = _tree.tree_transpose
unflatten = _tree.tree_unflatten
