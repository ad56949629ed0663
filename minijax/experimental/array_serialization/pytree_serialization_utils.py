"""jax.experimental.array_serialization.pytree_serialization_utils: tree structures as JSON, and futures."""

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

_STRUCTURE, _LEAVES = "__jax_pytreedef_repr", "__jax_leaf_ids"  # the keys that jax uses


class PyTreeFuture(Future):
    """The future of a pytree that is being saved or loaded; `pytree` has a ShapeDtypeStruct for each array."""

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
    """Converts a tree structure to a JSON object, with numbers for its leaves.

    Raises ValueError for node types that are not registered for `jax.export`, ImportError without flatbuffers.
    """
    data = encoded(schema.TABLES, "PyTreeDef", tree_table(node), has_checksum=False)
    return {_STRUCTURE: base64.b64encode(data).decode(), _LEAVES: list(range(node.num_leaves))}


def deserialize_pytreedef(pytreedef_repr: dict[str, Any]) -> PyTreeDef:
    """The inverse of `serialize_pytreedef`. Raises ValueError for corrupted data."""
    data = base64.b64decode(pytreedef_repr[_STRUCTURE])
    return tree_of(decoded(schema.TABLES, "PyTreeDef", data), iter(pytreedef_repr[_LEAVES]))


def described(node: PyTreeDef, leaves: list[str | None]) -> dict[str, Any]:
    """As `serialize_pytreedef`, with these descriptions of the leaves."""
    return serialize_pytreedef(node) | {_LEAVES: leaves}


def parse_description(description: dict[str, Any]) -> tuple[list[str | None], PyTreeDef]:
    """The inverse of `described`: the descriptions of the leaves, and the structure."""
    return description[_LEAVES], deserialize_pytreedef(description)


def flattened(x: Any) -> tuple[list, PyTreeDef]:
    """Flattens a tree, with None as a leaf."""
    return tree.flatten(x, lambda leaf: leaf is None)
