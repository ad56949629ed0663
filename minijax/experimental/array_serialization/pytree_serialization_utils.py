"""jax.experimental.array_serialization.pytree_serialization_utils: the structure of a tree as text, and futures."""

import base64
from collections.abc import Generator
from concurrent.futures import Future
from typing import Any

from minijax.api.export import schema
from minijax.api.export.trees import (
    register_pytree_node_serialization as register_pytree_node_serialization,
    tree_of,
    tree_table,
)
from minijax.api.export.wire import decoded, encoded
from minijax.base import tree
from minijax.base.faces import listing
from minijax.base.native import PyTreeDef

__all__, __dir__ = listing(__name__, "deserialize_pytreedef register_pytree_node_serialization serialize_pytreedef")

_STRUCTURE, _LEAVES = "__jax_pytreedef_repr", "__jax_leaf_ids"  # the names in jax's files


class PyTreeFuture(Future):
    """A tree that is being written or read; `pytree` describes it."""

    def __init__(self, future: Future):
        super().__init__()
        self.pytree: Any = None
        future.add_done_callback(self._copy)

    def _copy(self, future: Future) -> None:
        if (error := future.exception()) is not None:
            self.set_exception(error)
        else:
            self.set_result(future.result())

    def __await__(self) -> Generator[Any, None, Any]:
        while not self.done():
            yield
        return self.result()

    def __repr__(self):
        return f"PyTreeFuture(done={self.done()}, pytree={self.pytree})"


def serialize_pytreedef(node: PyTreeDef) -> dict[str, Any]:
    """A structure, with its leaves numbered, as what JSON can hold.

    Raises ValueError for types of nodes that `jax.export` does not know, ImportError without flatbuffers.
    """
    data = encoded(schema.TABLES, "PyTreeDef", tree_table(node), has_checksum=False)
    return {_STRUCTURE: base64.b64encode(data).decode(), _LEAVES: list(range(node.num_leaves))}


def deserialize_pytreedef(pytreedef_repr: dict[str, Any]) -> PyTreeDef:
    """The structure that `serialize_pytreedef` wrote. Raises ValueError where it is damaged."""
    data = base64.b64decode(pytreedef_repr[_STRUCTURE])
    return tree_of(decoded(schema.TABLES, "PyTreeDef", data), iter(pytreedef_repr[_LEAVES]))


def described(node: PyTreeDef, leaves: list[str | None]) -> dict[str, Any]:
    """As `serialize_pytreedef`, with these texts for the leaves."""
    return serialize_pytreedef(node) | {_LEAVES: leaves}


def of_description(description: dict[str, Any]) -> tuple[list[str | None], PyTreeDef]:
    """The texts of leaves, and the structure."""
    return description[_LEAVES], deserialize_pytreedef(description)


def flattened(x: Any) -> tuple[list, PyTreeDef]:
    """The leaves of a tree, None among them, and its structure."""
    return tree.flatten(x, lambda leaf: leaf is None)
