"""The trees of arguments that jaxprs print: views of references in jax's classes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from minijax.base import tree
from minijax.composed.refs import parts_of
from minijax.indexing.language import Index, Slot, Span, Window
from minijax.ir.jaxpr import JaxprEqn, Literal
from minijax.kernels.grid import INDEX
from minijax.kernels.operations.base import is_view


def printed_view(view: Any) -> tuple[Any, list, str]:
    """The reference of a view, the operands of its indices as jax has them, and the text of the tree of its indices."""
    ref, path, arrays = parts_of(view)
    leaves: list[Any] = []
    return ref, leaves, _tuple([_indexer(index, arrays, leaves) for index in path])


def printed_argument(x: Any) -> tuple[list, str]:
    """The leaves of an argument, a view or a tree of plain values, and the text of its tree, as jax has them."""
    if is_view(x):
        ref, leaves, text = printed_view(x)
        return [ref, *leaves], f"CustomNode(TransformedRef[()], [*, {text}])"
    leaves, treedef = tree.flatten(x)
    return leaves, str(treedef).removeprefix("PyTreeDef(").removesuffix(")")


def printed(eqn: JaxprEqn, operands: Sequence, **params: Any) -> JaxprEqn:
    """The equation with operands, those that are not None, and with other parameters."""
    return eqn.replace(invars=[x for x in operands if x is not None], params={**eqn.params, **params})


def mark(x: Any) -> str:
    """The text of an optional leaf in a tree."""
    return "None" if x is None else "*"


def _tuple(parts: Sequence[str]) -> str:
    return f"({', '.join(parts)}{',' * (len(parts) == 1)})"


def _indexer(index: Any, arrays: Sequence, leaves: list) -> str:
    """The text of one index of a view, whose operands are appended to `leaves`."""
    if type(index) is not Index:
        return f"CustomNode({type(index).__name__}[{index}], [])"
    parts, count = [], len(leaves)
    for text, leaf in _items(index, arrays):
        parts.append(text)
        leaves += leaf
    shape = next((e.shape for e in index.entries if type(e) is Slot and e.shape), ())
    marks = ", ".join("*" * (len(leaves) - count))
    return f"CustomNode(NDIndexer[(PyTreeDef({_tuple(parts)}), {index.shape}, {shape})], [{marks}])"


def _items(index: Index, arrays: Sequence) -> Iterator[tuple[str, list]]:
    entries = [e for e in index.entries if e is not Ellipsis]
    for e in entries or [Span(0, n, 1, n) for n in index.shape]:
        if type(e) is Span:
            yield f"CustomNode(Slice[({e.start}, {e.size}, {e.step})], [None, None])", []
        elif type(e) is Window:
            yield f"CustomNode(Slice[(None, {e.size}, {e.step})], [*, None])", [arrays[e.place]]
        elif isinstance(e, int):
            yield "*", [Literal(np.int32(e), INDEX)]
        else:
            yield "*", [arrays[e.place]]
