"""`in_shardings` and `out_shardings` of jitted functions: one sharding for each leaf of the values' tree."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from minijax.base import cache, tree
from minijax.partition import meshes
from minijax.partition.layouts import AutoLayout, Format, Layout
from minijax.partition.meshes import P
from minijax.partition.shardings import UNSPECIFIED, NamedSharding, Sharding
from minijax.primitives.sharding import check_distinct_axes, concrete_sharding


class Shardings(NamedTuple):
    """A tree of shardings in a hashable form."""

    leaves: tuple
    treedef: Any


def shardings_of(argument: str, value: Any, caller: str = "jit") -> Shardings | None:
    """The argument `in_shardings` or `out_shardings` of `jit`, checked; None if it is unspecified.

    Raises TypeError for a leaf that is not a sharding, partition spec or None, ValueError for unconstrained dimensions.
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
        spec = leaf if isinstance(leaf, P) else getattr(leaf, "spec", ())
        if any(entry is P.UNCONSTRAINED for entry in spec):
            raise ValueError(f"Unconstrained dims are not allowed in {argument} of {caller}, got {leaf}")
    # For pjit None is a sharding under `with mesh:`: replicated over the mesh.
    if value is UNSPECIFIED or value is None and caller != "pjit":
        return None
    return Shardings(tuple(leaves), treedef)


def leaf_shardings(caller: str, argument: str, shardings: Shardings | None, treedef: Any) -> tuple:
    """One sharding for each leaf of a tree; () if they are unspecified.

    Raises ValueError if the shardings are not a prefix of the tree, RuntimeError for a partition spec without a
    context mesh.
    """
    mesh = meshes.legacy_context_mesh() if caller == "pjit" else meshes.context_mesh()
    return () if shardings is None else _leaf_shardings(caller, argument, shardings, treedef, mesh)


@cache.cache(maxsize=1024)
def _leaf_shardings(caller, argument, shardings, treedef, mesh):
    default = NamedSharding(mesh, P()) if caller == "pjit" and mesh is not None else UNSPECIFIED
    concrete = []
    for leaf in _leaves(argument, shardings, treedef):
        sharding = leaf.sharding if isinstance(leaf, Format) else leaf
        sharding = default if sharding is None else sharding
        concrete.append(sharding if sharding is UNSPECIFIED else concrete_sharding(caller, argument, sharding))
    return tuple(concrete)


def leaf_layouts(argument: str, shardings: Shardings | None, treedef: Any) -> tuple:
    """One layout, or None, for each leaf of a tree; () if no `Format` names one."""
    if shardings is None or not any(isinstance(leaf, Format) and leaf.layout for leaf in shardings.leaves):
        return ()
    leaves = _leaves(argument, shardings, treedef)
    return tuple([leaf.layout if isinstance(leaf, Format) else None for leaf in leaves])


def _leaves(argument: str, shardings: Shardings, treedef: Any) -> Sequence:
    prefix = shardings.treedef.unflatten(shardings.leaves)
    if argument == "in_shardings":
        count = len(treedef.children())
        must = "pjit in_shardings specification must be a tree prefix of the positional arguments tuple."
        if type(prefix) in (tuple, list) and len(prefix) != count:
            raise ValueError(
                f"{must} In particular, pjit in_shardings must either be a Sharding, a PartitionSpec, or a tuple of "
                "length equal to the number of positional arguments. But pjit in_shardings is the wrong length: got a "
                f"tuple or list of length {len(prefix)} for an args tuple of length {count}."
            )
        if isinstance(prefix, tuple) and type(prefix) is not tuple:
            raise ValueError(f"{must} pjit in_shardings is not a tuple, {prefix}: it might need to be wrapped in one")
        if isinstance(prefix, list):
            prefix = tuple(prefix)
    return tree.flatten_axes(f"pjit {argument}", treedef, prefix)
