"""Pytrees: all of `jax.tree` and `jax.tree_util`, based on our own jaxlib registry of node types."""

import dataclasses
import functools
import operator
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn, TypeVar

from minijax.base.naming import known_as
from minijax.base.native import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    PyTreeDef,
    SequenceKey,
    registry,
    registry_all_leaves,
    registry_treedef_tuple,
)
from minijax.base.util import unzip2

T = TypeVar("T")
KeyEntry = TypeVar("KeyEntry", bound=Hashable)
KeyPath = tuple[KeyEntry, ...]
IsLeaf = Callable[[Any], bool]

# jaxlib pickles a registry, and with it every treedef, by the object's `__module__` and `__name__`.
registry.__module__, registry.__name__ = __name__, "registry"
known_as("jax._src.tree_util.default_registry")(registry)
default_registry = registry

# The fast form for internal use: `flatten(tree, is_leaf=None) -> (leaves, treedef)`, positional only.
flatten = registry.flatten


class Unspecified:
    """The default of an argument for which None is a valid value."""


UNSPECIFIED = Unspecified()


# Flatten, unflatten, map.


def tree_flatten(tree: Any, is_leaf: IsLeaf | None = None) -> tuple[list[Any], PyTreeDef]:
    """Flattens a pytree to a list of its leaves and its structure.

    Tuples, lists, dicts (in the order of sorted keys), namedtuples, None (which has no leaves) and registered types are
    nodes. All other values are leaves.

    Args:
        tree: The pytree.
        is_leaf: A function that is called with each subtree; where it returns true, the subtree is a leaf.

    Returns:
        A pair (list of leaves, `PyTreeDef`).

    See also: `jax.tree.unflatten`, `jax.tree.leaves`, `jax.tree.structure`.

    Example:
        >>> leaves, treedef = jax.tree.flatten({"b": (1, 2), "a": None, "c": [3]})
        >>> leaves, treedef
        ([1, 2, 3], PyTreeDef({'a': None, 'b': (*, *), 'c': [*]}))
        >>> jax.tree.unflatten(treedef, [10, 20, 30])
        {'a': None, 'b': (10, 20), 'c': [30]}
    """
    return flatten(tree, is_leaf)


def tree_leaves(tree: Any, is_leaf: IsLeaf | None = None) -> list[Any]:
    """Returns a list of the leaves of a pytree, in order.

    Args:
        tree: The pytree.
        is_leaf: A function that is called with each subtree; where it returns true, the subtree is a leaf.

    See also: `jax.tree.flatten`, `jax.tree.leaves_with_path`.

    Example:
        >>> jax.tree.leaves({"b": 2, "a": (1, None)})
        [1, 2]
        >>> jax.tree.leaves([1, None, 2], is_leaf=lambda x: x is None)
        [1, None, 2]
    """
    return flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: IsLeaf | None = None) -> PyTreeDef:
    """Returns the structure of a pytree: its nodes without its leaves.

    Structures can be compared, hashed and printed; `num_leaves` is the number of leaves.

    Args:
        tree: The pytree.
        is_leaf: A function that is called with each subtree; where it returns true, the subtree is a leaf.

    Returns:
        A `jax.tree_util.PyTreeDef`.

    Example:
        >>> jax.tree.structure((1, [2, 3])) == jax.tree.structure((4, [5, 6]))
        True
    """
    return flatten(tree, is_leaf)[1]


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """Builds the pytree of a structure from its leaves; the inverse of `jax.tree.flatten`.

    Args:
        treedef: The structure.
        leaves: The leaves, in order. They may be of any type.

    Raises:
        ValueError: If the number of leaves is not that of the structure.

    Example:
        >>> jax.tree.unflatten(jax.tree.structure({"a": 0, "b": 0}), ["x", "y"])
        {'a': 'x', 'b': 'y'}
    """
    try:
        return treedef.unflatten(leaves)
    except ValueError as error:
        if "leaves for PyTreeDef" not in str(error):
            raise  # of a user's class
        raise ValueError(f"{error}. Pass one leaf for each `*` of {treedef}.") from None


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf | None = None) -> Any:
    """Applies a function to the leaves of a pytree, and returns the pytree of the results.

    Args:
        f: A function of as many arguments as there are trees.
        tree: The first tree, which determines the structure.
        *rest: More trees. Each has the nodes of `tree`; below these it may have subtrees, which are passed as they are.
        is_leaf: A function that is called with each subtree of `tree`; where it returns true, the subtree is a leaf.

    Returns:
        A pytree with the structure of `tree`. None is a node without leaves and remains None.

    Raises:
        ValueError: If the structures differ.

    See also: `jax.tree.map_with_path`, `jax.tree.reduce`.

    Example:
        >>> params, grads = {"w": 1.0, "b": 2.0}, {"w": 0.5, "b": 1.0}
        >>> jax.tree.map(lambda p, g: p - 2 * g, params, grads)
        {'b': 0.0, 'w': 0.0}
    """
    leaves, treedef = flatten(tree, is_leaf)
    # Generators, since in them a StopIteration raised by `f` is not mistaken for the end of the leaves.
    if not rest:
        return treedef.unflatten(f(leaf) for leaf in leaves)
    try:
        # flatten_up_to guarantees equal lengths; a strict zip would cost 3 % of a small map.
        rows = zip(leaves, *map(treedef.flatten_up_to, rest))  # noqa: B905
    except ValueError as error:
        _raise_explained("tree_map tree", tree, rest, is_leaf, error)
    return treedef.unflatten(f(*row) for row in rows)


def tree_all(tree: Any, *, is_leaf: IsLeaf | None = None) -> bool:
    """Returns whether all leaves of a pytree are true, as Python's `all`.

    Example:
        >>> jax.tree.all({"a": True, "b": [True, False]})
        False
    """
    return all(flatten(tree, is_leaf)[0])


def tree_reduce(
    function: Callable[[T, Any], T],
    tree: Any,
    initializer: T | Unspecified = UNSPECIFIED,
    is_leaf: IsLeaf | None = None,
) -> T:
    """Combines the leaves of a pytree by a function of two arguments, from left to right.

    Args:
        function: A function (accumulated, leaf) -> accumulated.
        tree: The pytree.
        initializer: The first accumulated value. By default it is the first leaf.
        is_leaf: A function that is called with each subtree; where it returns true, the subtree is a leaf.

    Raises:
        TypeError: If there are neither leaves nor an initializer.

    Example:
        >>> jax.tree.reduce(lambda total, x: total + x, {"a": 1, "b": (2, 3)}, 0)
        6
    """
    leaves = flatten(tree, is_leaf)[0]
    if initializer is UNSPECIFIED:
        return functools.reduce(function, leaves)
    return functools.reduce(function, leaves, initializer)


def tree_reduce_associative(
    operation: Callable[[T, T], T], tree: Any, *, identity: T | Unspecified = UNSPECIFIED, is_leaf: IsLeaf | None = None
) -> T:
    """Combines the leaves of a pytree by recursive halving, for an associative operation.

    `identity` is the result for a tree without leaves; without it such a tree raises TypeError.

    Example:
        >>> jax.tree.reduce_associative(lambda x, y: x + y, {"a": 1, "b": [2, 3]})
        6
    """
    leaves = flatten(tree, is_leaf)[0]
    if leaves:
        return _reduce_by_halves(operation, leaves)
    if identity is UNSPECIFIED:
        raise TypeError("tree_reduce_associative: Must specify identity, for the tree is empty of leaves")
    return identity


def _reduce_by_halves(operation: Callable[[T, T], T], items: list[T]) -> T:
    if len(items) == 1:
        return items[0]
    half = len(items) // 2
    return operation(_reduce_by_halves(operation, items[:half]), _reduce_by_halves(operation, items[half:]))


def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any) -> Any:
    """Converts an outer tree of inner trees to an inner tree of outer trees.

    `inner_treedef` of None is inferred. Raises TypeError if the tree is not composed of these structures.

    Example:
        >>> outer = jax.tree.structure({"a": 0, "b": 0})
        >>> jax.tree.transpose(outer, None, {"a": (1, 2), "b": (3, 4)})
        ({'a': 1, 'b': 3}, {'a': 2, 'b': 4})
    """
    leaves, treedef = flatten(pytree_to_transpose)
    if inner_treedef is None:
        inner_treedef = flatten(outer_treedef.flatten_up_to(pytree_to_transpose)[0])[1]
    width, depth = inner_treedef.num_leaves, outer_treedef.num_leaves
    if treedef.num_leaves != width * depth:
        expected = outer_treedef.compose(inner_treedef)
        advice = "Pass a tree of the outer structure in which each leaf has the inner one."
        raise TypeError(f"tree_transpose: Mismatch of the tree's structure\n{treedef}\n != \n{expected}\n{advice}")
    return inner_treedef.unflatten(outer_treedef.unflatten(leaves[i::width]) for i in range(width))


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf | None = None) -> bool:
    """Returns whether every element of an iterable is a leaf.

    Example:
        >>> jax.tree_util.all_leaves([1, 2]), jax.tree_util.all_leaves([1, [2]])
        (True, False)
    """
    if is_leaf is None:
        return registry_all_leaves(registry, iterable)
    items = list(iterable)
    leaves = flatten(items, is_leaf)[0]
    return len(items) == len(leaves) and all(map(operator.is_, items, leaves))


# Key paths.


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """Flattens a pytree to pairs of a key path and a leaf, and its structure.

    A key path is a tuple of keys from the root to the leaf: `DictKey`, `SequenceKey` (an index), `GetAttrKey` (an
    attribute), or `FlattenedIndexKey` for a registered type without keys. `jax.tree_util.keystr` prints it.

    Args:
        tree: The pytree.
        is_leaf: A function that is called with each subtree; where it returns true, the subtree is a leaf.
        is_leaf_takes_path: If true, `is_leaf` is called with (key path, subtree).

    Returns:
        A pair (list of (key path, leaf), `PyTreeDef`).

    Example:
        >>> pairs, treedef = jax.tree.flatten_with_path({"a": [1, 2]})
        >>> [(jax.tree_util.keystr(path), leaf) for path, leaf in pairs]
        [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    if is_leaf is None or is_leaf_takes_path:
        return registry.flatten_with_path(tree, is_leaf)
    return registry.flatten_with_path(tree, lambda _, subtree: is_leaf(subtree))


def tree_leaves_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """Returns a list of pairs (key path, leaf) of a pytree, in order; see `jax.tree.flatten_with_path`.

    Example:
        >>> [(jax.tree_util.keystr(path), leaf) for path, leaf in jax.tree.leaves_with_path({"a": [1, 2]})]
        [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def tree_map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """Applies a function of key path and leaves to a pytree, and returns the pytree of the results.

    Args:
        f: A function (key path, leaf, *subtrees of `rest`).
        tree, *rest: As for `jax.tree.map`.
        is_leaf: A function that is called with each subtree; where it returns true, the subtree is a leaf.
        is_leaf_takes_path: If true, `is_leaf` is called with (key path, subtree).

    Raises:
        ValueError: If the structures differ.

    See also: `jax.tree.flatten_with_path`, `jax.tree_util.keystr`.

    Example:
        >>> jax.tree.map_with_path(lambda path, x: (path[-1].key, x), {"a": 1, "b": 2})
        {'a': ('a', 1), 'b': ('b', 2)}
    """
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    if not rest:
        return treedef.unflatten(f(path, leaf) for path, leaf in pairs)
    try:
        columns = [treedef.flatten_up_to(other) for other in rest]
    except ValueError as error:
        leaves = [leaf for _, leaf in pairs]
        name = "tree_map_with_path tree"
        _raise_explained(name, tree, rest, lambda subtree: any(subtree is leaf for leaf in leaves), error)
    return treedef.unflatten(f(*pair, *row) for pair, *row in zip(pairs, *columns, strict=True))


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """Prints a key path as text.

    Args:
        keys: The key path.
        simple: If true, only the names and numbers of the keys are used.
        separator: The text between them.

    Example:
        >>> path = jax.tree.leaves_with_path({"a": [0]})[0][0]
        >>> jax.tree_util.keystr(path), jax.tree_util.keystr(path, simple=True, separator="/")
        ("['a'][0]", 'a/0')
    """
    return separator.join(map(_simple_key if simple else str, keys))


def _simple_key(key: Any) -> str:
    match key:
        case SequenceKey():
            return str(key.idx)
        case DictKey() | FlattenedIndexKey():
            return str(key.key)
        case GetAttrKey():
            return key.name
    return str(key)


# Parts of trees and of structures.


def is_tree_node(typ: type) -> bool:
    """Returns whether values of a type are nodes: built-in containers, registered types and namedtuples.

    Example:
        >>> jax.tree_util.is_tree_node(dict), jax.tree_util.is_tree_node(set)
        (True, False)
    """
    return registry.is_node(typ)


def flatten_one_level(tree: Any) -> tuple[Iterable[Any], Hashable]:
    """Returns the children and the metadata of a node. Raises ValueError for a leaf.

    Example:
        >>> jax.tree_util.flatten_one_level([1, (2, 3)])
        ([1, (2, 3)], None)
    """
    level = registry.flatten_one_level(tree)
    if level is None:
        raise ValueError(f"flatten_one_level: can't tree-flatten type: {type(tree)}")
    return level


def flatten_one_level_with_keys(tree: Any) -> tuple[Iterable[tuple[KeyEntry, Any]], Hashable]:
    """Returns the (key, child) pairs and the metadata of a node. Raises ValueError for a leaf.

    Example:
        >>> jax.tree_util.flatten_one_level_with_keys({"a": 1})
        (((DictKey(key='a'), 1),), ('a',))
    """
    level = registry.flatten_one_level_with_keys(tree)
    if level is None:
        raise ValueError(f"flatten_one_level_with_keys: can't tree-flatten type: {type(tree)}")
    return level


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Returns whether a structure is a single node: a leaf, None or an empty container.

    Example:
        >>> jax.tree_util.treedef_is_leaf(jax.tree.structure(1)), jax.tree_util.treedef_is_leaf(jax.tree.structure([1]))
        (True, False)
    """
    return treedef.num_nodes == 1


def treedef_is_strict_leaf(treedef: PyTreeDef) -> bool:
    """Returns whether the structure is a leaf, and not an empty node."""
    return treedef.node_data() is None


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """Returns the structures of the children of the root.

    Example:
        >>> jax.tree_util.treedef_children(jax.tree.structure({"a": 1, "b": (2, 3)}))
        [PyTreeDef(*), PyTreeDef((*, *))]
    """
    return treedef.children()


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """Returns the structure of a tuple of trees of these structures. Raises RuntimeError for anything else.

    Example:
        >>> jax.tree_util.treedef_tuple([jax.tree.structure(1), jax.tree.structure([2, 3])])
        PyTreeDef((*, [*, *]))
    """
    treedefs = list(treedefs)
    for x in treedefs:
        if not isinstance(x, PyTreeDef):  # jaxlib ends the process for None
            raise RuntimeError(f"treedef_tuple: expected structures of trees, got {x!r}")
    return registry_treedef_tuple(registry, treedefs)


# Prefixes.


def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf | None = None) -> Any:
    """Returns a tree with the structure of `full_tree`, in which each leaf of the prefix fills its subtree.

    Raises ValueError if `prefix_tree` is not a tree prefix of `full_tree`.

    Example:
        >>> jax.tree.broadcast((0, 1), ({"a": None, "b": 5}, [6, 7]))
        ({'a': None, 'b': 0}, [1, 1])
    """
    return flatten(full_tree)[1].unflatten(broadcast_prefix(prefix_tree, full_tree, is_leaf))


def broadcast_prefix(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf | None = None) -> list[Any]:
    """Each leaf of the prefix, repeated once for each leaf of the corresponding subtree."""
    leaves, treedef = flatten(prefix_tree, is_leaf)
    try:
        subtrees = treedef.flatten_up_to(full_tree)
    except ValueError as error:
        _raise_explained("broadcast_prefix prefix_tree", prefix_tree, (full_tree,), is_leaf, error)
    broadcast = []
    for leaf, subtree in zip(leaves, subtrees, strict=True):
        broadcast += [leaf] * flatten(subtree)[1].num_leaves
    return broadcast


def broadcast_leaves(leaves: Sequence[Any], prefix: PyTreeDef, full: PyTreeDef) -> list[Any]:
    """As `broadcast_prefix`, for structures; does not call the functions of user-defined node types."""
    if prefix == full:
        return list(leaves)
    source, pairs = iter(leaves), [(prefix, full)]
    broadcast: list[Any] = []
    while pairs:
        part, whole = pairs.pop()
        node = part.node_data()
        if node is None:
            broadcast.extend([next(source)] * whole.num_leaves)
            continue
        ours, theirs = part.children(), whole.children()
        if node != whole.node_data() or len(ours) != len(theirs):
            raise ValueError(f"broadcast_leaves: {part} is not a tree prefix of {whole}")
        pairs += reversed(list(zip(ours, theirs, strict=True)))
    return broadcast


def flatten_axes(name: str, treedef: PyTreeDef, axis_tree: Any, of_args: bool = False) -> list[Any]:
    """One axis for each leaf of `treedef`, from a tree prefix of axes in which None is a leaf.

    With `of_args` the tree is one of (args, kwargs), and keyword arguments are mapped over axis 0.
    """
    axes, axes_treedef = flatten((axis_tree, 0) if of_args else axis_tree, _is_none)
    try:
        return broadcast_leaves(axes, axes_treedef, treedef)
    except ValueError:
        treedef = treedef.children()[0] if of_args else treedef
        reasons = [str(make_error(name)) for make_error in prefix_errors(axis_tree, Structure(treedef), _is_none)]
        raise ValueError(
            f"{name} specification must be a tree prefix of the corresponding value; got specification {axis_tree} "
            f"for value tree {treedef}.\nMismatch details ({len(reasons)} found):\n"
            + "\n".join([*reasons, "Give it the containers of the value, or one entry for a whole subtree of it."])
        ) from None


def _is_none(tree: Any) -> bool:
    return tree is None


# Differences between two trees.


class Structure:
    """A structure in the place of a tree in a comparison, which then makes no objects of users' classes."""

    def __init__(self, treedef: PyTreeDef):
        node = treedef.node_data()
        self.kind, self.data = (None, None) if node is None else node
        self.treedef = treedef

    def level(self) -> tuple[list[tuple[Any, Any]], Any] | None:
        """The children by key, and the metadata; None for a leaf."""
        if self.kind is None:
            return None
        children = self.treedef.children()
        pairs = zip(child_keys(self.kind, self.data, len(children)), map(Structure, children), strict=True)
        is_named = self.kind not in registered_types and issubclass(self.kind, tuple)
        data = tuple(self.data) if self.kind is dict else self.data
        return list(pairs), self.kind if is_named else data


def child_keys(kind: type, data: Any, count: int) -> list[Any]:
    """The keys of a node's children, by its type and metadata; numbers where only the object tells its keys."""
    if kind in (list, tuple):
        return [SequenceKey(i) for i in range(count)]
    if kind in (dict, OrderedDict, defaultdict):
        return [DictKey(key) for key in (data[1] if kind is defaultdict else data)]
    fields = fields_of.get(kind, ())
    if kind not in registered_types and issubclass(kind, tuple):
        fields = getattr(kind, "_fields", ())
    if len(fields) == count:
        return [GetAttrKey(name) for name in fields]
    return [FlattenedIndexKey(i) for i in range(count)]


class Mismatch(NamedTuple):
    """The key path at which two trees differ, the kind of difference, a text for each tree, and a reason."""

    path: KeyPath
    kind: str
    one: str
    two: str
    reason: str


def mismatches(
    one: Any, two: Any, is_leaf: IsLeaf | None = None, prefix: bool = False, path: KeyPath = ()
) -> Iterator[Mismatch]:
    """Yields the structural differences of two trees; with `prefix`, those by which `one` is not a prefix of `two`."""
    left = _level(one, is_leaf)
    if prefix and left is None:
        return
    right = _level(two, None if prefix else is_leaf)
    if left is None and right is None:
        return
    if left is None or right is None or _type_of(one) is not _type_of(two):
        reason = "their Python types differ"
        yield Mismatch(path, "different types", _type_text(one), _type_text(two), reason)
        return
    (pairs, metadata), (other_pairs, other_metadata) = left, right
    keys, children = unzip2(pairs)
    other_keys, other_children = unzip2(other_pairs)
    if len(keys) != len(other_keys):
        yield _count_mismatch(path, one, keys, other_keys)
        return
    if metadata != other_metadata:
        texts = [f"{_type_text(one)} with pytree metadata {data}" for data in (metadata, other_metadata)]
        yield Mismatch(path, "different pytree metadata", *texts, "the pytree node metadata does not match")
        return
    for key, child, counterpart in zip(keys, children, other_children, strict=True):
        yield from mismatches(child, counterpart, is_leaf, prefix, (*path, key))


def _level(tree: Any, is_leaf: IsLeaf | None) -> tuple[Iterable[Any], Any] | None:
    if isinstance(tree, Structure):
        return tree.level()
    if is_leaf is not None and is_leaf(tree):
        return None
    level = registry.flatten_one_level_with_keys(tree)
    # The metadata of a namedtuple is its type; jaxlib's keys for it all have the first field's name.
    if level is not None and level[1] is type(tree) and type(tree) not in registered_types:
        return [(GetAttrKey(name), child) for name, child in zip(tree._fields, tree, strict=True)], level[1]
    return level


def _type_of(tree: Any) -> Any:
    return tree.kind if isinstance(tree, Structure) else type(tree)


def _type_text(tree: Any) -> str:
    kind = _type_of(tree)
    return "pytree leaf" if kind is None else str(kind)


def _count_mismatch(path: KeyPath, node: Any, keys: tuple, other_keys: tuple) -> Mismatch:
    kind, counts = _type_of(node), (len(keys), len(other_keys))
    if kind in (list, tuple):
        name = kind.__name__
        texts = [f"{name} of length {count}" for count in counts]
        return Mismatch(path, f"different lengths of {name}", *texts, "the lengths do not match")
    texts = [f"{kind} with {count} child{'' if count == 1 else 'ren'}" for count in counts]
    odd = ", ".join(_simple_key(key) for key in (*keys, *other_keys) if (key in keys) != (key in other_keys))
    reason = f"the numbers of children do not match, with the symmetric difference of key sets: {{{odd}}}"
    return Mismatch(path, "different numbers of pytree children", *texts, reason)


def equality_errors(tree1: Any, tree2: Any, is_leaf: IsLeaf | None = None) -> Iterator[tuple[KeyPath, str, str, str]]:
    """Yields the key path, a text for each tree and the reason for each difference between two trees."""
    for mismatch in mismatches(tree1, tree2, is_leaf):
        yield mismatch.path, mismatch.one, mismatch.two, mismatch.reason


def equality_errors_pytreedef(tree1: PyTreeDef, tree2: PyTreeDef) -> Iterator[tuple[KeyPath, str, str, str]]:
    """As `equality_errors`, for structures."""
    return equality_errors(Structure(tree1), Structure(tree2))


def prefix_errors(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf | None = None) -> list[Callable[[str], ValueError]]:
    """For each mismatch of a tree prefix with a full tree, a function from the tree's name to the error."""
    different = mismatches(prefix_tree, full_tree, is_leaf, prefix=True)
    return [functools.partial(_prefix_error, mismatch) for mismatch in different]


def _prefix_error(mismatch: Mismatch, name: str) -> ValueError:
    path, kind, one, two, reason = mismatch
    return ValueError(
        f"pytree structure error: {kind} at key path\n    {name}{keystr(path)}\n"
        f"There the prefix pytree {name} has a subtree that is a\n    {one}\n"
        f"and the full pytree one that is a\n    {two}\nbut {reason}."
    )


def _raise_explained(name: str, tree: Any, fulls: Iterable[Any], is_leaf: IsLeaf | None, error: ValueError) -> NoReturn:
    for full in fulls:
        for make_error in prefix_errors(tree, full, is_leaf):
            advice = "Give all trees the structure of the first, which jax.tree.structure shows."
            raise ValueError(f"{make_error(name)}\n({error})\n{advice}") from None
    raise error


# Registration of node types.


class NodeType(NamedTuple):
    """The functions of a node type: node -> (children, metadata), and (metadata, children) -> node."""

    to_iter: Callable[[Any], tuple[Iterable[Any], Any]]
    from_iter: Callable[[Any, Iterable[Any]], Any]


registered_types: dict[type, NodeType] = {
    tuple: NodeType(lambda node: (node, None), lambda _, children: tuple(children)),
    list: NodeType(lambda node: (node, None), lambda _, children: list(children)),
    dict: NodeType(registry.flatten_one_level, lambda keys, children: dict(zip(keys, children, strict=True))),
    type(None): NodeType(lambda _: ((), None), lambda _, children: None),
}


keyed_types: set[type] = set()  # users' node types with keys of their own
fields_of: dict[type, Sequence[str]] = {}  # of registered dataclasses, by type


def register_pytree_node(
    nodetype: type[T],
    flatten_func: Callable[[T], tuple[Iterable[Any], Any]],
    unflatten_func: Callable[[Any, Iterable[Any]], T],
    flatten_with_keys_func: Callable[[T], tuple[Iterable[tuple[Any, Any]], Any]] | None = None,
) -> None:
    """Registers a type as a node of pytrees.

    Args:
        nodetype: The type. It cannot be registered twice.
        flatten_func: A function of a node that returns (children, metadata). Metadata is hashable and comparable; it is
            part of the structure, and static under `jax.jit`.
        unflatten_func: A function (metadata, children) that builds a node. Children may be any values, not only
            arrays: do not check or convert them.
        flatten_with_keys_func: A function of a node that returns (pairs (key, child), metadata), for key paths.

    Raises:
        ValueError: If the type is registered already.

    See also: `jax.tree_util.register_dataclass`, `jax.tree_util.register_pytree_node_class`.

    Example:
        >>> class Pair:
        ...     def __init__(self, x, y):
        ...         self.x, self.y = x, y
        >>> jax.tree_util.register_pytree_node(Pair, lambda p: ((p.x, p.y), None), lambda _, xs: Pair(*xs))
        >>> jax.tree.leaves(Pair(1, [2, 3]))
        [1, 2, 3]
    """
    try:
        registry.register_node(nodetype, flatten_func, unflatten_func, flatten_with_keys_func)
    except ValueError as error:
        raise ValueError(f"{error} Register a class once, beside its definition.") from None
    registered_types[nodetype] = NodeType(flatten_func, unflatten_func)
    if flatten_with_keys_func is not None:
        keyed_types.add(nodetype)


def register_pytree_node_class(cls: type[T]) -> type[T]:
    """Registers a class as a node of pytrees; use it as a decorator.

    The class has a method `tree_flatten`, which returns (children, metadata), and a class method
    `tree_unflatten(metadata, children)`, which builds an instance. Metadata is hashable; it is static under `jax.jit`.

    Returns:
        The class.

    Raises:
        ValueError: If the class is registered already. Subclasses must be registered on their own.

    See also: `jax.tree_util.register_dataclass`, `jax.tree_util.register_pytree_with_keys_class`.

    Example:
        >>> @jax.tree_util.register_pytree_node_class
        ... class Scaled:
        ...     def __init__(self, value, factor):
        ...         self.value, self.factor = value, factor
        ...     def tree_flatten(self):
        ...         return (self.value,), self.factor
        ...     @classmethod
        ...     def tree_unflatten(cls, factor, children):
        ...         return cls(*children, factor)
        >>> jax.tree.map(lambda x: x + 1, Scaled(1.0, 10)).value
        2.0
    """
    register_pytree_node(cls, operator.methodcaller("tree_flatten"), cls.tree_unflatten)
    return cls


def register_pytree_with_keys(
    nodetype: type[T],
    flatten_with_keys: Callable[[T], tuple[Iterable[tuple[Any, Any]], Any]],
    unflatten_func: Callable[[Any, Iterable[Any]], T],
    flatten_func: Callable[[T], tuple[Iterable[Any], Any]] | None = None,
) -> None:
    """Registers a type as a node of pytrees whose children have keys, for key paths.

    `flatten_with_keys` returns (pairs (key, child), metadata); `flatten_func` is a faster variant without keys.

    Example:
        >>> class Pair:
        ...     def __init__(self, x, y):
        ...         self.x, self.y = x, y
        >>> key = jax.tree_util.GetAttrKey
        >>> with_keys = lambda p: ([(key("x"), p.x), (key("y"), p.y)], None)
        >>> jax.tree_util.register_pytree_with_keys(Pair, with_keys, lambda _, children: Pair(*children))
        >>> [jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path(Pair(1, 2))]
        ['.x', '.y']
    """

    def flatten_without_keys(node):
        pairs, metadata = flatten_with_keys(node)
        return [child for _, child in pairs], metadata

    register_pytree_node(nodetype, flatten_func or flatten_without_keys, unflatten_func, flatten_with_keys)


def register_pytree_with_keys_class(cls: type[T]) -> type[T]:
    """Registers a class with methods `tree_flatten_with_keys` and `tree_unflatten` as a node; use it as a decorator.

    Example:
        >>> @jax.tree_util.register_pytree_with_keys_class
        ... class Box:
        ...     def __init__(self, value):
        ...         self.value = value
        ...     def tree_flatten_with_keys(self):
        ...         return [(jax.tree_util.GetAttrKey("value"), self.value)], None
        ...     @classmethod
        ...     def tree_unflatten(cls, _, children):
        ...         return cls(*children)
        >>> [jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path([Box(1)])]
        ['[0].value']
    """
    flatten_func = operator.methodcaller("tree_flatten") if hasattr(cls, "tree_flatten") else None
    with_keys = operator.methodcaller("tree_flatten_with_keys")
    register_pytree_with_keys(cls, with_keys, cls.tree_unflatten, flatten_func)
    return cls


def register_static(cls: type[T]) -> type[T]:
    """Registers a hashable class as a node without leaves, which is static under `jax.jit`; use it as a decorator.

    Example:
        >>> @jax.tree_util.register_static
        ... class Mode(str):
        ...     pass
        >>> jax.jit(lambda mode, x: -x if mode == "negate" else x)(Mode("negate"), 1).item()
        -1
    """
    register_pytree_node(cls, lambda node: ((), node), lambda node, _: node, lambda node: ((), node))
    return cls


def register_dataclass(
    nodetype: type[T],
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> type[T]:
    """Registers a dataclass, or a class with a similar constructor, as a node of pytrees; use it as a decorator.

    Args:
        nodetype: The class.
        data_fields: Names of the fields that are children. By default, all that are not metadata.
        meta_fields: Names of the fields that are metadata: hashable, and static under `jax.jit`. By default, those
            declared with `jax.tree.static()`.
        drop_fields: Names of fields that are in neither.

    Raises:
        ValueError: If fields are missing, unknown, or in both lists.
        TypeError: If a list is needed and missing.

    Example:
        >>> import dataclasses
        >>> @jax.tree_util.register_dataclass
        ... @dataclasses.dataclass
        ... class Layer:
        ...     weight: jax.Array
        ...     name: str = jax.tree.static(default="layer")
        >>> jax.tree.leaves(Layer(3.0, "first"))
        [3.0]
    """
    data, meta = _dataclass_fields(nodetype, data_fields, meta_fields)
    if both := set(data) & set(meta):
        raise ValueError(
            f"register_dataclass: data_fields and meta_fields must not overlap. Overlapping fields: {both}."
        )
    if dataclasses.is_dataclass(nodetype):
        _check_dataclass_fields(nodetype, {*data, *meta}, drop_fields)
    registry.register_dataclass_node(nodetype, data, meta)
    fields_of[nodetype] = data
    names = (*meta, *data)
    registered_types[nodetype] = NodeType(
        registry.flatten_one_level,
        lambda metadata, children: nodetype(**dict(zip(names, (*metadata, *children), strict=True))),
    )
    return nodetype


def _dataclass_fields(
    nodetype: type, data_fields: Sequence[str] | None, meta_fields: Sequence[str] | None
) -> tuple[list[str], list[str]]:
    if data_fields is not None and meta_fields is not None:
        return list(data_fields), list(meta_fields)
    if data_fields is not None or meta_fields is not None:
        raise TypeError(
            "register_dataclass: data_fields and meta_fields must both be specified when either is specified."
            f" Got {data_fields=} {meta_fields=}."
        )
    if not dataclasses.is_dataclass(nodetype):
        raise TypeError(
            "register_dataclass: data_fields and meta_fields are required when nodetype is not a dataclass."
            f" Got {nodetype=}."
        )
    fields = dataclasses.fields(nodetype)
    meta = [field.name for field in fields if field.metadata.get("static", False)]
    return [field.name for field in fields if field.name not in meta], meta


def _check_dataclass_fields(nodetype: type, named: set[str], drop_fields: Sequence[str]) -> None:
    required = {field.name for field in dataclasses.fields(nodetype) if field.init} - set(drop_fields)
    if named == required:
        return
    text = (
        f"register_dataclass of {nodetype}: data_fields and meta_fields must include all dataclass fields "
        "with ``init=True`` and only them."
    )
    if missing := required - named:
        text += f" Missing fields: {missing}. Add them to drop_fields to suppress this error."
    if unexpected := named - required:
        text += f" Unexpected fields: {unexpected}."
    raise ValueError(text)


def static(**kwargs: Any) -> Any:
    """Declares a field of a dataclass as metadata for `register_dataclass`; otherwise as `dataclasses.field`.

    Example:
        >>> import dataclasses
        >>> @jax.tree_util.register_dataclass
        ... @dataclasses.dataclass
        ... class Layer:
        ...     weight: object
        ...     name: str = jax.tree.static(default="dense")
        >>> jax.tree.map(lambda x: 2 * x, Layer(1))
        Layer(weight=2, name='dense')
    """
    return dataclasses.field(**{**kwargs, "metadata": {"static": True, **(kwargs.get("metadata") or {})}})


# Node types that are always registered; a new registry treats these two as leaves.


def _flatten_defaultdict(node):
    keys = tuple(sorted(node))
    return [node[key] for key in keys], (node.default_factory, keys)


def _flatten_defaultdict_with_keys(node):
    keys = tuple(sorted(node))
    return [(DictKey(key), node[key]) for key in keys], (node.default_factory, keys)


def _unflatten_defaultdict(metadata, children):
    factory, keys = metadata
    return defaultdict(factory, zip(keys, children, strict=True))


register_pytree_node(
    OrderedDict,
    lambda node: (list(node.values()), tuple(node)),
    lambda keys, children: OrderedDict(zip(keys, children, strict=True)),
    lambda node: ([(DictKey(key), child) for key, child in node.items()], tuple(node)),
)
register_pytree_node(defaultdict, _flatten_defaultdict, _unflatten_defaultdict, _flatten_defaultdict_with_keys)
keyed_types.clear()  # the keys of these two are in their structures


class _HashableCallableShim:
    """Wraps a partial inside a Partial, since functools.partial would merge the two."""

    __slots__ = ("fun",)

    def __init__(self, fun: functools.partial):
        self.fun = fun

    func = property(lambda self: self.fun.func)
    args = property(lambda self: self.fun.args)
    keywords = property(lambda self: self.fun.keywords)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fun(*args, **kwargs)

    def __hash__(self) -> int:
        return hash(self.fun)

    def __eq__(self, other: object) -> bool:
        return self.fun == (other.fun if isinstance(other, _HashableCallableShim) else other)

    def __repr__(self) -> str:
        return f"_HashableCallableShim({self.fun!r})"


@known_as("jax.tree_util.Partial")
class Partial(functools.partial):
    """Binds arguments to a function as `functools.partial`, and is a pytree node, which jitted functions accept.

    The bound arguments are children, and are traced; the function is metadata, and static.

    Example:
        >>> scale = jax.tree_util.Partial(jnp.multiply, 3.0)
        >>> float(jax.jit(lambda f, x: f(x))(scale, 2.0))
        6.0
    """

    __module__ = "minijax.tree_util"

    def __new__(cls, func: Callable[..., Any], *args: Any, **kw: Any) -> "Partial":
        if isinstance(func, functools.partial):
            func = _HashableCallableShim(func)
        return super().__new__(cls, func, *args, **kw)


register_pytree_node(
    Partial,
    lambda partial: ((partial.args, partial.keywords), partial.func),
    lambda func, children: Partial(func, *children[0], **children[1]),
)
