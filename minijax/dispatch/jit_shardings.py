"""`in_shardings` and `out_shardings` of jitted functions: trees of shardings against trees of values."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from minijax.base import cache, tree
from minijax.partition import meshes
from minijax.partition.layouts import AutoLayout, Format, Layout
from minijax.partition.meshes import P
from minijax.partition.shardings import UNSPECIFIED, Sharding
from minijax.primitives.sharding import check_distinct_axes, concrete_sharding


class Shardings(NamedTuple):
    """A tree of shardings, in a form that can stand in keys."""

    leaves: tuple
    treedef: Any


def shardings_of(argument: str, value: Any) -> Shardings | None:
    """What `jit` was given as `in_shardings` or `out_shardings`; None where nothing is laid down.

    Raises TypeError for a leaf that is no sharding, partition spec or None.
    """
    leaves, treedef = tree.flatten(value, lambda x: x is None)
    for leaf in leaves:
        if isinstance(leaf, Layout | AutoLayout):
            raise ValueError(
                f"`jax.jit` does not accept device-local layouts directly, but in a `Format`: {argument} has {leaf}"
            )
        if leaf is not None and not isinstance(leaf, Sharding | P | Format) and leaf is not UNSPECIFIED:
            raise TypeError(
                f"{argument} leaf specifications are expected to be PartitionSpec instances or None, but got {leaf}"
            )
        if isinstance(leaf, P):
            check_distinct_axes(argument, leaf)
    if all(leaf is None or leaf is UNSPECIFIED for leaf in leaves):
        return None
    return Shardings(tuple(leaves), treedef)


def leaf_shardings(caller: str, argument: str, shardings: Shardings | None, treedef: Any) -> tuple:
    """One sharding for each leaf of a tree; () where nothing is laid down.

    Raises ValueError if the shardings are no prefix of the tree, RuntimeError for a partition spec where no
    mesh is set.
    """
    mesh = meshes.context_mesh() or (meshes.entered_mesh() if caller == "pjit" else None)
    return () if shardings is None else _leaf_shardings(caller, argument, shardings, treedef, mesh)


@cache.cache(maxsize=1024)
def _leaf_shardings(caller, argument, shardings, treedef, mesh):
    concrete = [
        UNSPECIFIED if (s := _sharding(leaf)) is None or s is UNSPECIFIED else concrete_sharding(caller, argument, s)
        for leaf in _leaves(argument, shardings, treedef)
    ]
    return tuple(concrete)


def _sharding(leaf):
    return leaf.sharding if isinstance(leaf, Format) else leaf


def leaf_layouts(argument: str, shardings: Shardings | None, treedef: Any) -> tuple:
    """One layout, or None, for each leaf of a tree; () where no `Format` names one."""
    if shardings is None or not any(isinstance(leaf, Format) and leaf.layout for leaf in shardings.leaves):
        return ()
    leaves = _leaves(argument, shardings, treedef)
    return tuple([leaf.layout if isinstance(leaf, Format) else None for leaf in leaves])


def _leaves(argument: str, shardings: Shardings, treedef: Any) -> Sequence:
    prefix = shardings.treedef.unflatten(shardings.leaves)
    if argument == "in_shardings":
        count = len(treedef.children())
        if isinstance(prefix, (tuple, list)) and len(prefix) != count:
            raise ValueError(
                "pjit in_shardings specification must be a tree prefix of the positional arguments tuple: "
                f"it has {len(prefix)} entries for {count} arguments"
            )
        if isinstance(prefix, list):
            prefix = tuple(prefix)
    return tree.flatten_axes(f"pjit {argument}", treedef, prefix)
