"""Inside `shard_map`: over which mesh axes values vary, and casting between such types."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from minijax.base import config, tree
from minijax.ir import state
from minijax.ir.primitive import Linear1, Primitive
from minijax.ir.types import typeof, varying_axes
from minijax.partition.meshes import abstract_context

Groups = tuple[tuple[int, ...], ...] | None


class OverAxes(Linear1):
    """An operation that changes over which mesh axes, by `axes`, a value of the same shape varies."""

    in_one_memory = False
    constrains = False

    def infer(self, x, *, axes):
        return [x]

    def batch(self, axis, operands, dims, **params):
        return self.bind_all(operands, params), dims


class PVary(OverAxes):
    """The same value, whose type says that it varies over `axes` too."""

    name = "pvary"

    def varying(self, axes, params):
        return axes[0].union(params["axes"])

    def lower(self, e, ins, outs, x, *, axes):
        return [x]

    def transposed(self, ct, aval, *, axes):
        return psum_invariant_p.bind(ct, axes=axes)


class PSumInvariant(OverAxes):
    """The sum over `axes`, whose type says that it no longer varies over them."""

    name = "psum_invariant"

    def varying(self, axes, params):
        return axes[0].difference(params["axes"])

    def lower(self, e, ins, outs, x, *, axes):
        return [e.all_reduce(x, outs[0], device_groups(e, self, axes), "add")]

    def transposed(self, ct, aval, *, axes):
        return pvary_p.bind(ct, axes=axes)


pvary_p, psum_invariant_p = PVary(), PSumInvariant()


def names_of(axis_name: Any) -> tuple:
    """One axis name, or several, as a tuple."""
    return tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)


def device_groups(e: Any, primitive: Primitive, axis_name: Any, groups: Groups = None) -> np.ndarray:
    """The positions in the mesh that work together, a row a group, where the emitter stands."""
    if e.manual is None:
        raise NotImplementedError(
            f"{primitive.name}: the axis {axis_name} is bound to no mesh; use it inside shard_map, pmap or vmap"
        )
    mesh = e.manual[0]
    ids = np.arange(mesh.size).reshape(mesh.axis_sizes)
    at = [mesh.axis_names.index(name) for name in names_of(axis_name)]
    rows = np.moveaxis(ids, at, range(-len(at), 0)).reshape(-1, prod(ids.shape[i] for i in at))
    return rows if groups is None else _rows_of_one_length([row[list(group)] for row in rows for group in groups])


def _rows_of_one_length(groups):
    """The groups as a matrix, in which -1 stands behind the members of shorter ones."""
    longest = max(map(len, groups))
    return np.array([np.pad(group, (0, longest - len(group)), constant_values=-1) for group in groups])


def _mesh_axes() -> tuple:
    mesh = abstract_context()
    return () if mesh is None else mesh.shape_tuple


def in_mesh_order(axes: frozenset) -> tuple:
    """Names of manual mesh axes in the order of the mesh."""
    return tuple([name for name in state.thread.manual if name in axes])


def cast_to_vary(x: Any, axes: frozenset) -> Any:
    """`x`, cast to vary over the manual mesh axes `axes` too."""
    missing = axes - varying_axes(typeof(x))
    return pvary_p.bind(x, axes=in_mesh_order(missing)) if missing else x


def vary_alike(values: Any, like: Any) -> Any:
    """The leaves of a tree, cast to vary over all manual mesh axes that one of `like` varies over."""
    if not state.thread.manual:
        return values
    axes = frozenset().union(*(varying_axes(typeof(x)) for x in tree.tree_leaves(like)))
    return tree.tree_map(lambda x: cast_to_vary(x, axes), values)


class ManualAxes(tuple[Any, ...]):
    """The names of the mesh axes that `shard_map` makes manual, in their order."""

    __slots__ = ()

    def unite(self, operands: Sequence) -> Sequence:
        """The operands of one operation, each cast to vary over all of these axes that one of them varies over."""
        if len(operands) < 2:
            return operands
        axes = [varying_axes(typeof(x)) for x in operands]
        together = frozenset().union(*axes)
        if not all(mine == together for mine in axes) and not config.auto_pcast.value:
            raise ValueError(
                f"an operation requires varying manual axes to match, but got {axes}. Cast the operands with "
                "jax.lax.pcast, set jax_auto_pcast, or pass check_vma=False to jax.shard_map"
            )
        return [cast_to_vary(x, together) for x in operands]


def pcast(x: Any, axis_name: Any, *, to: str) -> Any:
    """The same values, whose types say that they vary over the named mesh axes; `to` must be "varying".

    Raises ValueError if they do already, TypeError for a set of names.
    """
    if isinstance(axis_name, set | frozenset):
        raise TypeError(f"pcast: axis_name={axis_name} must be a tuple or a str: the names have an order")
    if to != "varying":
        if to in ("unreduced", "reduced"):
            raise NotImplementedError(f"pcast: to={to!r} needs explicit sharding, which is not there yet")
        raise ValueError(f"pcast: `to` must be one of 'unreduced', 'reduced' or 'varying', got {to!r}")
    names = names_of(axis_name)
    if state.is_eager():
        raise ValueError(f"pvary should be called under jax.shard_map: pcast was given the axes {names}")
    if config.remove_size_one_mesh_axis_from_type.value:
        sizes = {name: size for name, size, *_ in state.thread.axes} | dict(_mesh_axes())
        names = tuple([name for name in names if sizes.get(name) != 1])
    for name in names:
        state.axis_size(name, "pvary")

    def cast(leaf):
        have = varying_axes(typeof(leaf)).intersection(names)
        if have:
            raise ValueError(
                f"pcast: the value of type {typeof(leaf).str_short()} varies over {sorted(map(str, have))} "
                "already; only an invarying value can be cast to varying"
            )
        return pvary_p.bind(leaf, axes=names) if state.thread.manual and names else leaf

    return tree.tree_map(cast, x)
