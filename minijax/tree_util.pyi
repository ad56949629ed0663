# The names of this module's table, written by tests/write_stubs.py.

from jaxlib._jax.pytree import PyTreeRegistry
from minijax.base.tree import DictKey as DictKey
from minijax.base.tree import FlattenedIndexKey as FlattenedIndexKey
from minijax.base.tree import GetAttrKey as GetAttrKey
from minijax.base.tree import KeyPath as KeyPath
from minijax.base.tree import Partial as Partial
from minijax.base.tree import PyTreeDef as PyTreeDef
from minijax.base.tree import SequenceKey as SequenceKey
from minijax.base.tree import all_leaves as all_leaves
from minijax.base.tree import flatten_one_level as flatten_one_level
from minijax.base.tree import flatten_one_level_with_keys as flatten_one_level_with_keys
from minijax.base.tree import is_tree_node as is_tree_node
from minijax.base.tree import keystr as keystr
from minijax.base.tree import register_dataclass as register_dataclass
from minijax.base.tree import register_pytree_node as register_pytree_node
from minijax.base.tree import register_pytree_node_class as register_pytree_node_class
from minijax.base.tree import register_pytree_with_keys as register_pytree_with_keys
from minijax.base.tree import register_pytree_with_keys_class as register_pytree_with_keys_class
from minijax.base.tree import register_static as register_static
from minijax.base.tree import tree_all as tree_all
from minijax.base.tree import tree_broadcast as tree_broadcast
from minijax.base.tree import tree_flatten as tree_flatten
from minijax.base.tree import tree_flatten_with_path as tree_flatten_with_path
from minijax.base.tree import tree_leaves as tree_leaves
from minijax.base.tree import tree_leaves_with_path as tree_leaves_with_path
from minijax.base.tree import tree_map as tree_map
from minijax.base.tree import tree_map_with_path as tree_map_with_path
from minijax.base.tree import tree_reduce as tree_reduce
from minijax.base.tree import tree_reduce_associative as tree_reduce_associative
from minijax.base.tree import tree_structure as tree_structure
from minijax.base.tree import tree_transpose as tree_transpose
from minijax.base.tree import tree_unflatten as tree_unflatten
from minijax.base.tree import treedef_children as treedef_children
from minijax.base.tree import treedef_is_leaf as treedef_is_leaf
from minijax.base.tree import treedef_tuple as treedef_tuple
from typing import TypeVar

__all__ = [
    "DictKey", "FlattenedIndexKey", "GetAttrKey", "KeyEntry", "KeyPath", "Partial", "PyTreeDef", "SequenceKey",
    "all_leaves", "default_registry", "flatten_one_level", "flatten_one_level_with_keys", "is_tree_node", "keystr",
    "register_dataclass", "register_pytree_node", "register_pytree_node_class", "register_pytree_with_keys",
    "register_pytree_with_keys_class", "register_static", "tree_all", "tree_broadcast", "tree_flatten",
    "tree_flatten_with_path", "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_with_path", "tree_reduce",
    "tree_reduce_associative", "tree_structure", "tree_transpose", "tree_unflatten", "treedef_children",
    "treedef_is_leaf", "treedef_tuple"
]

KeyEntry: TypeVar
default_registry: PyTreeRegistry
