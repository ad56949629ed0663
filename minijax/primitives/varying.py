"""Inside `shard_map`: the mesh axes over which values vary, and casts between such types."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from minijax.base import config, dtypes, tree
from minijax.ir import state
from minijax.ir.primitive import Linear1, Primitive
from minijax.ir.types import ManualAxisType, typeof, varying_axes
from minijax.partition.meshes import abstract_context

Groups = tuple[tuple[int, ...], ...] | None

_STATES = ("varying", "unreduced", "reduced")  # the fields of `ManualAxisType`


class OverMeshAxes(Linear1):
    """An operation that changes the state of a value over the manual mesh axes `axes`, and keeps its shape.

    `takes` and `gives` are fields of `ManualAxisType`, or None for invarying.
    """

    same_memory_space = False
    constrain_results = False
    takes: str | None = None
    gives: str | None = None

    def infer(self, x, *, axes):
        kind = x.manual_axis_type
        if self.takes is not None and not getattr(kind, self.takes).issuperset(axes):
            raise ValueError(
                f"{self.name.removesuffix('_p')} is a {_title(self.takes)}->{_title(self.gives)} collective, which "
                f"only accepts inputs that are {self.takes} over {set(axes)}. Got {x.text}"
            )
        for field in ("unreduced", "reduced") if self.takes is None else ():
            if getattr(kind, field).intersection(axes):
                raise ValueError(f"{self.name} cannot accept args which are {field}. Got {x.text} and axes={set(axes)}")
        return [x]

    def vma_rule(self, avals, params):
        return avals[0].manual_axis_type.moved(params["axes"], self.takes, self.gives)

    def lower(self, e, ins, outs, x, *, axes):
        return [x]

    def batch(self, axis, operands, dims, **params):
        return self.bind_all(operands, params), dims


class PVary(OverMeshAxes):
    """Casts a value to vary over `axes` too."""

    name, gives = "pvary", "varying"

    def transposed(self, ct, aval, *, axes):
        return psum_invariant_p.bind(ct, axes=axes)


def check_summable(name: str, aval: Any, refusal: type[Exception] = TypeError) -> None:
    """Raises the refusal for keys and float0, whose types pass as long as nothing is computed."""
    if not (dtypes.issubdtype(aval.dtype, np.number) or aval.dtype == np.bool_):
        raise refusal(f"{name} does not accept dtype {aval.dtype.name}; it reduces numbers and booleans")


class PSumInvariant(OverMeshAxes):
    """The sum over `axes`, which no longer varies over them."""

    name = "psum_invariant"

    def vma_rule(self, avals, params):
        return avals[0].manual_axis_type.moved(params["axes"], "varying", None)

    def lower(self, e, ins, outs, x, *, axes):
        check_summable(self.name, ins[0])
        return [e.all_reduce(x, outs[0], device_groups(e, self, axes), "add")]

    def transposed(self, ct, aval, *, axes):
        return pvary_p.bind(ct, axes=axes)


class VaryUnreducedCast(OverMeshAxes):
    """Casts a varying value to unreduced over `axes`: its values become partial sums."""

    name, takes, gives = "vary_unreduced_cast_p", "varying", "unreduced"

    def transposed(self, ct, aval, *, axes):
        return reduced_vary_cast_p.bind(ct, axes=axes)


class ReducedVaryCast(OverMeshAxes):
    """Casts a value from reduced to varying over `axes`: its cotangents vary over them instead of being unreduced."""

    name, takes, gives = "reduced_vary_cast_p", "reduced", "varying"

    def transposed(self, ct, aval, *, axes):
        return vary_unreduced_cast_p.bind(ct, axes=axes)


class PReduced(OverMeshAxes):
    """Casts a value to reduced over `axes`: its cotangents are unreduced over them."""

    name, gives = "preduced", "reduced"

    def transposed(self, ct, aval, *, axes):
        return unreduced_psum_p.bind(ct, axes=axes)


class UnreducedPSum(PSumInvariant):
    """The sum over `axes` of an unreduced value."""

    name, takes = "unreduced_psum", "unreduced"
    vma_rule = OverMeshAxes.vma_rule

    def transposed(self, ct, aval, *, axes):
        return preduced_p.bind(ct, axes=axes)


pvary_p, psum_invariant_p = PVary(), PSumInvariant()
preduced_p, unreduced_psum_p = PReduced(), UnreducedPSum()
vary_unreduced_cast_p, reduced_vary_cast_p = VaryUnreducedCast(), ReducedVaryCast()

_CASTS = {
    (None, "varying"): pvary_p,
    (None, "reduced"): preduced_p,
    ("reduced", "varying"): reduced_vary_cast_p,
    ("varying", "unreduced"): vary_unreduced_cast_p,
}


def _title(state: str | None) -> str:
    return "Invarying" if state is None else state.title()


def manual_state(function: str, x: Any, axis_name: Any) -> str | None:
    """The state of `x` over the named manual mesh axes: a field of `ManualAxisType`, or None for invarying.

    Raises ValueError if it differs among the axes.
    """
    names = {name for name in names_of(axis_name) if not isinstance(name, int)}
    if config.remove_size_one_mesh_axis_from_type.value:
        names = {name for name in names if state.axis_size(name) > 1}
    kind, fields = typeof(x).manual_axis_type, {}
    if state.thread.manual and names:
        fields = {f: axes & names for f, axes in zip(_STATES, kind.sets, strict=True) if axes & names}
    if len(fields) > 1 or any(axes != names for axes in fields.values()):
        raise ValueError(
            f"jax.lax.{function} can only accept axis_name which corresponds to one of varying, unreduced, reduced or "
            f"invarying state of the input: over {sorted(map(str, names))} a value of type {typeof(x).str_short()} is "
            "in several. jax.lax.pcast brings it to another"
        )
    return next(iter(fields), None)


def names_of(axis_name: Any) -> tuple:
    """One axis name, or several, as a tuple."""
    return tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)


def device_groups(e: Any, primitive: Primitive, axis_name: Any, groups: Groups = None) -> np.ndarray:
    """The groups of devices of a collective, as rows of positions in the manual mesh of the emitter."""
    bound = e.manual[0].axis_names if e.manual else ()
    if missing := [name for name in names_of(axis_name) if name not in bound]:
        words = f"To fix this, call {primitive.name} inside shard_map, pmap or vmap"
        raise NameError(f"Found an unbound axis name: {missing[0]}. {words}")
    mesh = e.manual[0]
    ids = np.arange(mesh.size).reshape(mesh.axis_sizes)
    at = [mesh.axis_names.index(name) for name in names_of(axis_name)]
    rows = np.moveaxis(ids, at, range(-len(at), 0)).reshape(-1, prod(ids.shape[i] for i in at))
    return rows if groups is None else _rows_of_one_length([row[list(group)] for row in rows for group in groups])


def _rows_of_one_length(groups):
    """The groups as a matrix; shorter ones are padded with -1."""
    longest = max(map(len, groups))
    return np.array([np.pad(group, (0, longest - len(group)), constant_values=-1) for group in groups])


def _mesh_axes() -> tuple:
    mesh = abstract_context()
    return () if mesh is None else mesh.shape_tuple


def in_mesh_order(axes: frozenset) -> tuple:
    """Names of manual mesh axes in the order of the mesh."""
    return tuple([name for name in state.thread.manual if name in axes])


def cast_to_vary(x: Any, axes: frozenset) -> Any:
    """Casts `x` to vary over the manual mesh axes `axes` too."""
    missing = axes - varying_axes(typeof(x))
    return pvary_p.bind(x, axes=in_mesh_order(missing)) if missing else x


def cast_replicated_to(x: Any, kind: ManualAxisType) -> Any:
    """Casts an invarying `x` to this manual axis type, if varying axes are checked."""
    if not state.thread.manual:
        return x
    x = cast_to_vary(x, kind.varying | kind.unreduced)
    for axes, cast_p in ((kind.unreduced, vary_unreduced_cast_p), (kind.reduced, preduced_p)):
        x = cast_p.bind(x, axes=in_mesh_order(axes)) if axes else x
    return x


def _pvary_reduced(x: Any, axes: frozenset) -> Any:
    """Casts an operand, which may be reduced over these axes, to vary over them."""
    reduced = typeof(x).manual_axis_type.reduced & axes if axes else axes
    return cast_to_vary(reduced_vary_cast_p.bind(x, axes=in_mesh_order(reduced)) if reduced else x, axes)


def match_varying(values: Any, like: Any) -> Any:
    """Casts the leaves of a tree to vary over the manual mesh axes over which any leaf of `like` varies."""
    if not state.thread.manual:
        return values
    axes = frozenset().union(*(varying_axes(typeof(x)) for x in tree.tree_leaves(like)))
    return tree.tree_map(lambda x: cast_to_vary(x, axes), values)


class ManualAxes(tuple[Any, ...]):
    """The names of the mesh axes that `shard_map` makes manual, in their order."""

    __slots__ = ()

    def unite(self, operands: Sequence) -> Sequence:
        """Casts the operands of one operation to vary over the axes over which any of them varies."""
        if len(operands) < 2:
            return operands
        axes = [varying_axes(typeof(x)) for x in operands]
        together = frozenset().union(*axes)
        if not all(mine == together for mine in axes) and not config.auto_pcast.value:
            raise ValueError(
                f"an operation requires varying manual axes to match, but got {axes}. Cast the operands with "
                "jax.lax.pcast, set jax_auto_pcast, or pass check_vma=False to jax.shard_map"
            )
        return [_pvary_reduced(x, together) for x in operands]


def pcast(x: Any, axis_name: Any, *, to: str) -> Any:
    """Casts the leaves of `x` to be varying, unreduced or reduced over the named mesh axes.

    The casts are from invarying to varying or reduced, from reduced to varying, and from varying to unreduced. Raises
    ValueError for other casts, TypeError for a set of names.

    Example:
        >>> mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Explicit,))
        >>> print_type = lambda x: print(jax.typeof(x), jax.typeof(jax.lax.pcast(x, "i", to="varying")))
        >>> f = jax.shard_map(print_type, mesh=mesh, in_specs=jax.P(), out_specs=None)
        >>> _ = jax.eval_shape(f, jnp.ones(2))
        float32[2] float32[2]{V:i}
    """
    if isinstance(axis_name, set | frozenset):
        raise TypeError(f"pcast: axis_name={axis_name} must be a tuple or a str: the names have an order")
    if to not in _STATES:
        raise ValueError(f"pcast: `to` must be one of 'unreduced', 'reduced' or 'varying', got {to!r}")
    names = tuple(dict.fromkeys(names_of(axis_name)))
    if state.is_eager():
        raise ValueError(f"pvary should be called under jax.shard_map: pcast was given the axes {names}")
    if config.remove_size_one_mesh_axis_from_type.value:
        sizes = {name: size for name, size, *_ in state.thread.axes} | dict(_mesh_axes())
        names = tuple([name for name in names if sizes.get(name) != 1])
    for name in names:
        state.axis_size(name, "pvary")

    def cast(leaf):
        have = manual_state("pcast", leaf, names)
        cast_p = _CASTS.get((have, to))
        if cast_p is None and names:
            raise ValueError(
                f"Unsupported pcast from={have or 'invarying'}, to={to!r} over {names}, of a value of type "
                f"{typeof(leaf).str_short()}"
            )
        return cast_p.bind(leaf, axes=names) if cast_p is not None and state.thread.manual and names else leaf

    return tree.tree_map(cast, x)
