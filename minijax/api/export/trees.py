"""Serializes the tree structures of arguments and results, with users' types of nodes."""

import json
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from minijax.api.export.schema import CUSTOM, DICT, LEAF, LIST, NONE, TUPLE
from minijax.base import tree
from minijax.base.native import PyTreeDef, registry

T = TypeVar("T")


class _NodeType(NamedTuple):
    """How nodes of a type are serialized, besides their children."""

    nodetype: type
    name: str
    serialize: Callable[[Any], bytes | bytearray]
    deserialize: Callable[[bytes], Any]
    from_children: Callable[[Any, Sequence], Any] | None


_by_type: dict[type, _NodeType] = {}
_by_name: dict[str, _NodeType] = {}
_HINT = "Use `export.register_pytree_node_serialization` or `export.register_namedtuple_serialization`."


def register_pytree_node_serialization(
    nodetype: type[T],
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes | bytearray],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: Callable[[Any, Sequence], Any] | None = None,
) -> type[T]:
    """Registers a name for a type of nodes in exported programs, and how its metadata is serialized; returns the type.

    `from_children`: (metadata, children) -> node, by default that of the type's registration as a pytree node. Raises
    ValueError for a type without one, and for a type or name that has a serialization.

    Example:
        >>> class Box(list):
        ...     pass
        >>> parts = lambda box: (tuple(box), len(box))
        >>> jax.tree_util.register_pytree_node(Box, parts, lambda _, children: Box(children))
        >>> _ = jax.export.register_pytree_node_serialization(
        ...     Box, serialized_name="docs.Box", serialize_auxdata=lambda n: str(n).encode(), deserialize_auxdata=int)
        >>> blob = jax.export.export(jax.jit(lambda box: box[0] + box[1]))(Box([1.0, 2.0])).serialize()
        >>> jax.export.deserialize(blob).call(Box([3.0, 4.0]))
        Array(7., dtype=float32)
    """
    if from_children is None and nodetype not in tree.registered_types:
        raise ValueError(
            "If `from_children` is not present, you must call first`jax.tree_util.register_pytree_node` for "
            f"`{nodetype}`"
        )
    _register(_NodeType(nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, from_children))
    return nodetype


def register_namedtuple_serialization(nodetype: type[T], *, serialized_name: str) -> type[T]:
    """Registers a name for a namedtuple in exported programs; see `register_pytree_node_serialization`.

    Example:
        >>> import collections
        >>> Point = collections.namedtuple("Point", "x y")
        >>> _ = jax.export.register_namedtuple_serialization(Point, serialized_name="docs.Point")
        >>> blob = jax.export.export(jax.jit(lambda p: p.x + p.y))(Point(1.0, 2.0)).serialize()
        >>> jax.export.deserialize(blob).call(Point(3.0, 4.0))
        Array(7., dtype=float32)
    """
    if not (issubclass(nodetype, tuple) and hasattr(nodetype, "_fields")):
        raise ValueError(
            "Use `jax.export.register_pytree_node_serialization` for types other than `collections.namedtuple`."
        )

    def read(data: bytes) -> None:
        if (fields := json.loads(data.decode())) != list(nodetype._fields):
            raise ValueError(f"`{serialized_name}` was serialized with the fields {fields}: {nodetype} has others")

    fields = json.dumps(nodetype._fields).encode()
    _register(_NodeType(nodetype, serialized_name, lambda _: fields, read, None))
    return nodetype


def _register(node: _NodeType) -> None:
    if known := _by_type.get(node.nodetype):
        raise ValueError(
            f"Duplicate serialization registration for type `{node.nodetype}`. Previous registration was with "
            f"serialized_name `{known.name}`."
        )
    if known := _by_name.get(node.name):
        raise ValueError(
            f"Duplicate serialization registration for serialized_name `{node.name}`. Previous registration was for "
            f"type `{known.nodetype}`."
        )
    _by_type[node.nodetype] = _by_name[node.name] = node


_register(
    _NodeType(
        OrderedDict,
        "collections.OrderedDict",
        lambda keys: json.dumps(keys).encode(),
        lambda data: tuple(json.loads(data.decode())),
        None,
    )
)


# ---- tables --------------------------------------------------------------------------------------

_BUILTIN = {tuple: TUPLE, list: LIST, dict: DICT}


def tree_table(treedef: PyTreeDef) -> dict[str, Any]:
    """The table of a structure. Raises ValueError or TypeError for nodes that cannot be serialized."""
    if (node := treedef.node_data()) is None:
        return {"kind": LEAF}
    nodetype, metadata = node
    if nodetype is type(None):
        return {"kind": NONE}
    children = [tree_table(child) for child in treedef.children()]
    if nodetype in _BUILTIN:
        names = _checked_keys(metadata) if nodetype is dict else None
        return {"kind": _BUILTIN[nodetype], "children": children, "children_names": names}
    if (known := _by_type.get(nodetype)) is None:
        raise ValueError(f"Cannot serialize PyTreeDef containing an unregistered type `{nodetype}`. {_HINT}")
    data = known.serialize(metadata)
    if not isinstance(data, bytes | bytearray):
        raise ValueError(
            f"The custom serialization function for `{nodetype}` must return a `bytes` object. It returned a "
            f"{type(data)}."
        )
    return {"kind": CUSTOM, "children": children, "custom_name": known.name, "custom_auxdata": data}


def _checked_keys(keys: Sequence) -> list[str]:
    for key in keys:
        if not isinstance(key, str):
            raise TypeError(
                "Serialization is supported only for dictionaries with string keys. Found key "
                f"{key} of type {type(key)}."
            )
    return list(keys)


def tree_of(table: dict[str, Any], leaves: Iterator[Any]) -> PyTreeDef:
    """The structure that a table encodes; takes the types of its leaves from `leaves`.

    Raises ValueError for types that are not registered, and for a damaged table.
    """
    kind = table["kind"]
    if kind == LEAF:
        next(leaves, None)
        return _LEAF
    if kind == NONE:
        return _NONE
    within: list = []
    recorded = (within.append(x) or x for x in leaves)
    children = [tree_of(child, recorded) for child in table["children"] or ()]
    if kind == DICT:
        names = table["children_names"] or []
        if names != sorted(set(names)) or len(names) != len(children):
            raise ValueError(f"the serialized program is damaged: a dictionary has the keys {names}")
        return PyTreeDef.from_node_data_and_children(registry, (dict, names), children)
    if kind in (TUPLE, LIST):
        nodetype = tuple if kind == TUPLE else list
        return PyTreeDef.from_node_data_and_children(registry, (nodetype, None), children)
    if kind != CUSTOM:
        raise ValueError(f"the serialized program is damaged: there is no tree of kind {kind}")
    return _custom_tree(table, children, within)


def _custom_tree(table: dict[str, Any], children: list, leaves: list) -> PyTreeDef:
    name = table["custom_name"]
    if (known := _by_name.get(name)) is None:
        raise ValueError(f"Cannot deserialize a PyTreeDef containing an unregistered type `{name}`. {_HINT}")
    metadata = known.deserialize(bytes(table["custom_auxdata"] or b""))
    if known.from_children is None:
        return PyTreeDef.from_node_data_and_children(registry, (known.nodetype, metadata), children)
    rest = iter(leaves)
    values = [child.unflatten([next(rest) for _ in range(child.num_leaves)]) for child in children]
    return tree.tree_structure(known.from_children(metadata, values))


_LEAF, _NONE = tree.tree_structure(0), tree.tree_structure(None)
