"""Collectives over named axes: sums, gathers, exchanges, and the index of a device along an axis.

Under `vmap` the named axis is a batch dimension: the batch rules turn collectives into reductions and shuffles.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import chain
from math import prod
from typing import Any, cast

import numpy as np

from minijax.base import config, dtypes, tree
from minijax.base.dims import canonical_axis
from minijax.base.source import boundary
from minijax.ir import state
from minijax.ir.primitive import Linear1, Primitive
from minijax.ir.result_types import vma_rule
from minijax.ir.rules import no_lowering
from minijax.ir.trace import Tracer
from minijax.ir.types import ShapedArray, typeof, varying_axes
from minijax.primitives import moving, varying
from minijax.primitives.convert import convert, strong
from minijax.primitives.counting import broadcasted_iota
from minijax.primitives.dynamic_slice import dynamic_slice_in_dim
from minijax.primitives.elementwise import add, div, eq, mul, select
from minijax.primitives.families import ANY, check_kinds, const_like, scalar_like
from minijax.primitives.moving import move_axis, reduced_aval
from minijax.primitives.reduce import reduce_max_p, reduce_min_p
from minijax.primitives.structural import collapse, index_in_dim, inserted, resized, squeeze
from minijax.primitives.zeros import ZeroJvp, zeros_like_aval
from minijax.run.arrays.array import Array


class Named(Primitive):
    """A collective whose parameter `axis_name` is a name or a tuple of names."""

    constrain_results = False
    caches_types = False  # result types may depend on the sizes of the named axes

    def names_axis(self, params):
        return varying.names_of(params["axis_name"])

    def is_over_batch_axis(self, axis: Any, axis_name: Any) -> bool:
        """Returns whether this collective runs over the batch axis. Raises NotImplementedError if over others too."""
        names = varying.names_of(axis_name)
        if axis.name not in names:
            return False
        if len(names) > 1:
            raise NotImplementedError(f"{self.name} over several axis names {names} is not supported in vmap")
        return True


def _pvary(x: Any, axis_name: Any) -> Any:
    """Casts `x` to vary over those named axes that are manual mesh axes (inside shard_map with check_vma)."""
    return varying.cast_to_vary(x, frozenset(varying.names_of(axis_name)).intersection(state.thread.manual))


# ---- reductions -------------------------------------------------------------------------------------


class AllReduce(Linear1):
    """Combines values over `axes`: names of axes, and positions of dimensions, which are reduced."""

    constrain_results = False

    def __init__(self, name: str, reduction: Primitive, **how: Any):
        self.name = name
        self.reduction = reduction
        self.how = how  # parameters of the reduction besides its axes

    def repeated(self, x: Any, size: int) -> Any:
        """The result for `size` members that all have the value `x`."""
        raise NotImplementedError

    def infer(self, x, *, axes, axis_index_groups):
        weak = x.weak_type and bool(varying_axes(x))
        return [reduced_aval(self.name, x, _positions(axes)).update(weak_type=weak)]

    def names_axis(self, params):
        return tuple(a for a in params["axes"] if not isinstance(a, int))

    def lower(self, e, ins, outs, x, *, axes, axis_index_groups):
        positions, names = _positions(axes), self.names_axis({"axes": axes})
        varying.check_summable(self.name, ins[0], ValueError if positions and type(self) is PExtremum else TypeError)
        if positions:
            (x,) = cast("Any", self.reduction).lower(e, ins, outs, x, axes=positions, **self.how)
        if not names:
            return [x]
        groups = varying.device_groups(e, self, names, axis_index_groups)
        return [e.all_reduce(x, outs[0], groups, cast("Any", self.reduction).reducer(e, ins[0].dtype))]

    def batch(self, axis, operands, dims, *, axes, axis_index_groups):
        (x,), (d,) = operands, dims
        named = axis.name in self.names_axis({"axes": axes})
        if named and axis_index_groups is not None:
            raise NotImplementedError(f"{self.name}: axis_index_groups not supported in vmap collectives.")
        if d is None:
            rest = tuple(a for a in axes if a != axis.name)
            x = self.repeated(x, axis.size)
            return [self.bind(x, axes=rest, axis_index_groups=axis_index_groups) if rest else x], [None]
        if not named and not _positions(axes):
            return [self.bind(x, axes=axes, axis_index_groups=axis_index_groups)], [d]
        axes = tuple(0 if a == axis.name else a + 1 if isinstance(a, int) else a for a in axes)
        x = move_axis(x, d, 0)
        return [self.bind(x, axes=axes, axis_index_groups=axis_index_groups)], [None if named else 0]


def _positions(axes: Sequence) -> tuple[int, ...]:
    return tuple(a for a in axes if isinstance(a, int))


class PSum(AllReduce):
    """The sum over `axes`."""

    def repeated(self, x, size):
        aval = typeof(x)
        if aval.dtype == np.bool_:
            x = convert(x, np.dtype(np.int32))
        elif aval.shape:
            x = strong(x)
        return mul(const_like(x, size), x)

    def transposed(self, ct, aval, *, axes, axis_index_groups):
        positions = _positions(axes)
        if positions:
            ct = moving.broadcast_in_dim(ct, aval.shape, moving.other_axes(aval.ndim, positions))
        return self.bind(ct, axes=self.names_axis({"axes": axes}), axis_index_groups=axis_index_groups)


class PExtremum(AllReduce):
    """The largest or smallest value over `axes`; it has no derivative."""

    def vma_rule(self, avals, params):
        return vma_rule(self, avals, params, varying_axes(avals[0]).difference(params["axes"]))

    jvp: Any = None
    transpose: Any = None

    def repeated(self, x, size):
        return x


# ---- exchanges --------------------------------------------------------------------------------------


class LinearNamed(Named, Linear1):
    """A linear collective of one operand; by default the result has the operand's type."""

    def infer(self, x, **params):
        return [x]

    def batch(self, axis, operands, dims, **params):
        (x,), (d,) = operands, dims
        if not self.is_over_batch_axis(axis, params["axis_name"]):
            params, d = self.shift_axes(d, params)
            return [self.bind(x, **params)], [d]
        if params.get("axis_index_groups") is not None:
            raise NotImplementedError(f"{self.name}: axis_index_groups not supported in vmap")
        out, d = self.run_over_batch_axis(axis.size, x, d, **params)
        return [out], [d]

    def shift_axes(self, d: int, params: dict) -> tuple[dict, int]:
        """Returns the parameters for an operand with an extra batch dimension `d`, and the result's batch dimension."""
        return params, d

    def run_over_batch_axis(self, size: int, x: Any, d: int | None, **params: Any) -> tuple[Any, int | None]:
        """Runs the collective over the batch axis, dimension `d` of `x`; returns (result, its batch dimension)."""
        raise NotImplementedError


class AllGather(LinearNamed):
    """The values of all members, stacked along a new dimension, or concatenated if `tiled`."""

    name = "all_gather"

    def infer(self, x, *, all_gather_dimension, axis_name, axis_index_groups, axis_size, tiled):
        at = all_gather_dimension
        shape = resized(x.shape, at, x.shape[at] * axis_size) if tiled else inserted(x.shape, at, axis_size)
        return [x.update(shape=shape)]

    def lower(self, e, ins, outs, x, *, all_gather_dimension, axis_name, axis_index_groups, axis_size, tiled):
        groups, (aval,) = varying.device_groups(e, self, axis_name, axis_index_groups), ins
        if not tiled:
            at = all_gather_dimension
            expanded = aval.update(shape=inserted(aval.shape, at, 1))
            x, aval = e.broadcast_in_dim(x, aval, expanded, moving.other_axes(expanded.ndim, (at,))), expanded
        return [e.all_gather(x, aval, outs[0], all_gather_dimension, groups)]

    def transposed(self, ct, aval, *, all_gather_dimension, **params):
        return reduce_scatter_p.bind(ct, scatter_dimension=all_gather_dimension, **params)

    def shift_axes(self, d, params):
        at = params["all_gather_dimension"]
        return {**params, "all_gather_dimension": at + (d <= at)}, d + (d > at and not params["tiled"])

    def run_over_batch_axis(self, size, x, d, *, all_gather_dimension, tiled, **params):
        x = moving.broadcast_axis(x, size, 0) if d is None else x
        x = move_axis(x, d or 0, all_gather_dimension)
        return (collapse(x, all_gather_dimension, all_gather_dimension + 2) if tiled else x), None


class UngroupedCollective(LinearNamed):
    """A collective without groups that changes the type of its operand over the named manual axes.

    `input_state` and `result_state` are fields of `ManualAxisType`; None: the result is replicated (invarying).
    """

    input_state: str = "varying"
    result_state: str | None = None

    def vma_rule(self, avals, params):
        return avals[0].manual_axis_type.moved(
            varying.names_of(params["axis_name"]), self.input_state, self.result_state
        )

    def infer(self, x, **params):
        manual = frozenset(varying.names_of(params["axis_name"])).intersection(state.thread.manual)
        if not manual <= getattr(x.manual_axis_type, self.input_state):
            raise ValueError(
                f"{self.name} only accepts inputs that are {self.input_state} over {set(manual)}. Got {x.text}"
            )
        return super().infer(x, axis_index_groups=None, **params)

    def lower(self, e, ins, outs, x, **params):
        return cast("Any", super()).lower(e, ins, outs, x, axis_index_groups=None, **params)


class AllGatherInvariant(UngroupedCollective, AllGather):
    """As `all_gather`, but the type of the result does not vary over the named axes."""

    name = "all_gather_invariant"

    def transposed(self, ct, aval, *, all_gather_dimension, axis_name, tiled, **params):
        size = aval.shape[all_gather_dimension] if tiled else 1
        start = mul(axis_index(axis_name), np.int32(size))
        part = dynamic_slice_in_dim(ct, start, size, all_gather_dimension)
        return part if tiled else squeeze(part, (all_gather_dimension,))


class AllGatherReduced(UngroupedCollective, AllGather):
    """As `all_gather`, but the result is reduced over the named axes: its cotangent is unreduced."""

    name, result_state = "all_gather_reduced", "reduced"

    def transposed(self, ct, aval, *, all_gather_dimension, **params):
        return unreduced_reduce_scatter_p.bind(ct, scatter_dimension=all_gather_dimension, **params)


class ReduceScatter(LinearNamed):
    """Sums over the members of the axis, then gives each member its chunk of one dimension."""

    name = "reduce_scatter"

    def infer(self, x, *, scatter_dimension, axis_name, axis_index_groups, axis_size, tiled):
        check_kinds(self.name, ANY, x)
        at, size = scatter_dimension, x.shape[scatter_dimension]
        if tiled and size % axis_size:
            raise ValueError(f"psum_scatter: {axis_size} members cannot share a dimension of size {size}")
        if not tiled and size != axis_size:
            raise ValueError(f"psum_scatter: the scattered dimension must have size {axis_size}, not {size}")
        parts = (size // axis_size,) if tiled else ()
        return [x.update(shape=(*x.shape[:at], *parts, *x.shape[at + 1 :]))]

    def lower(self, e, ins, outs, x, *, scatter_dimension, axis_name, axis_index_groups, axis_size, tiled):
        groups, (out,) = varying.device_groups(e, self, axis_name, axis_index_groups), outs
        if tiled:
            return [e.reduce_scatter(x, ins[0], out, scatter_dimension, groups, "add")]
        at = scatter_dimension
        expanded = out.update(shape=inserted(out.shape, at, 1))
        return [e.reshape(e.reduce_scatter(x, ins[0], expanded, at, groups, "add"), expanded, out)]

    def transposed(self, ct, aval, *, scatter_dimension, **params):
        return all_gather_p.bind(ct, all_gather_dimension=scatter_dimension, **params)

    def shift_axes(self, d, params):
        at = params["scatter_dimension"]
        return {**params, "scatter_dimension": at + (d <= at)}, d - (d > at and not params["tiled"])

    def run_over_batch_axis(self, size, x, d, *, scatter_dimension, tiled, **params):
        if d is not None and typeof(x).dtype == np.bool_:
            raise TypeError("psum_scatter: booleans that differ over a mapped axis have no sum; convert them first")
        x = x * size if d is None else moving.sum_axis(x, d)
        return (moving.divide_axis(x, scatter_dimension, size) if tiled else x), scatter_dimension


class UnreducedReduceScatter(UngroupedCollective, ReduceScatter):
    """As `reduce_scatter`, for an operand that is unreduced over the named axes."""

    name, input_state, result_state = "unreduced_reduce_scatter", "unreduced", "varying"

    def transposed(self, ct, aval, *, scatter_dimension, **params):
        return all_gather_reduced_p.bind(ct, all_gather_dimension=scatter_dimension, **params)


class AllToAll(LinearNamed):
    """Each member splits one dimension, exchanges the chunks, and joins those received along another one."""

    name = "all_to_all"

    def infer(self, x, *, axis_name, split_axis, concat_axis, axis_index_groups, tiled):
        size = _group_size(axis_name, axis_index_groups, self.name)
        shape = list(x.shape)
        shape[split_axis] //= size
        shape[concat_axis] *= size
        return [x.update(shape=tuple(shape), weak_type=False)]

    def lower(self, e, ins, outs, x, *, axis_name, split_axis, concat_axis, axis_index_groups, tiled):
        groups = varying.device_groups(e, self, axis_name, axis_index_groups)
        return [e.all_to_all(x, ins[0], outs[0], split_axis, concat_axis, groups.shape[1], groups)]

    def transposed(self, ct, aval, *, split_axis, concat_axis, **params):
        return self.bind(ct, split_axis=concat_axis, concat_axis=split_axis, **params)

    def shift_axes(self, d, params):
        return {**params, **{name: params[name] + (d <= params[name]) for name in ("split_axis", "concat_axis")}}, d

    def batch(self, axis, operands, dims, **params):
        names = varying.names_of(params["axis_name"])
        if len(names) == 1 or axis.name not in names or params["axis_index_groups"] is not None:
            return super().batch(axis, operands, dims, **params)
        return [self._over_batch_axis(names, axis, operands[0], dims[0], **params)], [0]

    def _over_batch_axis(self, names, axis, x, d, *, axis_name, split_axis, concat_axis, **params):
        """Exchanges along the batch axis, and binds the collective over the other names. The batch dimension is 0."""
        at, s, c = names.index(axis.name), split_axis + 2, concat_axis + 2
        before = prod(axis_size(name) for name in names[:at])
        x = moving.axis_to_front(x, d, axis)
        # [b, .., (before, n, after), ..] -> [n, b, .., (before, after), ..]
        x = moving.divide_axis(moving.divide_axis(x, s - 1, before), s, axis.size)
        x = moving.move_axis(x, s, 0)
        x = collapse(x, s, s + 2)
        x = self.bind(x, axis_name=(*names[:at], *names[at + 1 :]), split_axis=s, concat_axis=c, **params)
        # [n, b, .., (before, after), ..] -> [n, .., (before, b, after), ..]
        x = moving.move_axis(moving.divide_axis(x, c, before), 1, c)
        return collapse(x, c - 1, c + 2)

    def run_over_batch_axis(self, size, x, d, *, split_axis, concat_axis, **params):
        if d is None:
            x, d = moving.broadcast_axis(x, size, 0), 0
        if split_axis != concat_axis:
            joined = collapse(move_axis(x, d, concat_axis), concat_axis, concat_axis + 2)
            return moving.divide_axis(joined, split_axis, size), split_axis
        at = split_axis + (d <= split_axis)
        x = moving.divide_axis(x, at, size)
        return collapse(moving.swap_axes(x, at, d + (d > at)), at, at + 2), d


class PPermute(LinearNamed):
    """Each member sends its value to another member, as the (source, target) pairs of `perm` specify."""

    name = "ppermute"

    def infer(self, x, *, axis_name, perm):
        return [x]

    def lower(self, e, ins, outs, x, *, axis_name, perm):
        if any(len({*side}) < len(side) for side in zip(*perm, strict=True)):
            raise ValueError(f"ppermute sources and destinations must be unique, got {perm}.")
        rows = varying.device_groups(e, self, axis_name)
        return [e.collective_permute(x, ins[0], [(row[a], row[b]) for row in rows for a, b in perm])]

    def transposed(self, ct, aval, *, axis_name, perm):
        return self.bind(ct, axis_name=axis_name, perm=tuple((b, a) for a, b in perm))

    def run_over_batch_axis(self, size, x, d, *, axis_name, perm):
        sources = dict((b, a) for a, b in perm)
        if sorted(sources) != list(range(size)) or sorted(sources.values()) != sorted(sources):
            raise AssertionError(f"ppermute: perm {perm} doesn't match the axis size {size}")
        if d is None:
            return x, None
        # As in jax a method, which NumPy arrays compute at once.
        return cast("Any", x).take(np.array([sources[i] for i in range(size)]), d), d


class PBroadcast(LinearNamed):
    """The value of the member `source`, sent to all members."""

    name = "pbroadcast"

    def lower(self, e, ins, outs, x, *, axis_name, source):
        if e.platform not in ("cuda", "rocm"):
            no_lowering(self, e.platform)
        rows = varying.device_groups(e, self, axis_name)
        return [e.collective_broadcast(x, ins[0], [[row[source], *row[:source], *row[source + 1 :]] for row in rows])]

    def transposed(self, ct, aval, *, axis_name, source):
        total = psum_p.bind(ct, axes=varying.names_of(axis_name), axis_index_groups=None)
        chosen = eq(axis_index(axis_name), np.int32(source))
        return select(moving.broadcast_in_dim(chosen, aval.shape, ()), total, zeros_like_aval(typeof(total)))

    def run_over_batch_axis(self, size, x, d, *, axis_name, source):
        return (x if d is None else index_in_dim(x, source, d, keepdims=False)), None


class AxisIndex(Named, ZeroJvp):
    """The index of the device along the named axis."""

    name = "axis_index"

    def infer(self, *, axis_name):
        return [ShapedArray((), np.dtype(np.int32))]

    def vma_rule(self, avals, params):
        names = varying.names_of(params["axis_name"])
        if config.remove_size_one_mesh_axis_from_type.value:
            names = [name for name in names if state.axis_size(name) > 1]
        return vma_rule(self, avals, params, frozenset(names).intersection(state.thread.manual))

    def lower(self, e, ins, outs, *, axis_name):
        varying.device_groups(e, self, axis_name)
        mesh = e.manual[0]
        return e.fully_manual([], [], outs, lambda: [e.index_along_mesh_axis(mesh, axis_name, outs[0])])

    def batch(self, axis, operands, dims, *, axis_name):
        return [broadcasted_iota(np.int32, (axis.size,), 0)], [0]


psum_p = PSum("psum", moving.reduce_sum_p, out_sharding=None)
pmax_p = PExtremum("pmax", reduce_max_p)
pmin_p = PExtremum("pmin", reduce_min_p)
all_gather_p = AllGather()
all_gather_invariant_p = AllGatherInvariant()
all_gather_reduced_p = AllGatherReduced()
reduce_scatter_p = ReduceScatter()
unreduced_reduce_scatter_p = UnreducedReduceScatter()
all_to_all_p = AllToAll()
ppermute_p = PPermute()
pbroadcast_p = PBroadcast()
axis_index_p = AxisIndex()


# ---- functions --------------------------------------------------------------------------------------


def axis_size(axis_name: Hashable) -> int:
    """Returns the size of a named axis, an int, or the product of the sizes of several.

    Raises NameError for a name that no axis has.

    Example:
        >>> jax.vmap(lambda x: x / jax.lax.axis_size("i"), axis_name="i")(jnp.array([1.0, 2.0]))
        Array([0.5, 1. ], dtype=float32)
    """
    return size_of_axes(axis_name, "axis_size")


@boundary
def size_of_axes(axis_name: Hashable, function: str) -> int:
    """As `axis_size`; an error names the calling `function`."""
    return prod(state.axis_size(name, function) for name in varying.names_of(axis_name))


def _check_groups(groups: Any) -> varying.Groups:
    if groups is None:
        return None
    groups = tuple(tuple(map(int, group)) for group in groups)
    members = sorted(chain(*groups))
    if members != list(range(len(members))):
        raise ValueError(f"axis_index_groups must cover all indices exactly once, got {groups}")
    return groups


@boundary
def _group_size(axis_name: Any, groups: varying.Groups, function: str, must_be_equal: bool = True) -> int:
    """The size of the first group. Raises ValueError if `must_be_equal` and the groups differ in size."""
    size = size_of_axes(axis_name, function)
    if groups is None:
        return size
    if must_be_equal and len({len(group) for group in groups}) > 1:
        raise ValueError(f"axis_index_groups must all be the same size, got {groups}")
    return len(groups[0])


@boundary
def _group_params(function: str, axis_name: Any, groups: Any, tiled: bool) -> dict:
    """The parameters that all_gather and reduce_scatter share."""
    groups = _check_groups(groups)
    size = _group_size(axis_name, groups, function)
    return dict(axis_index_groups=groups, axis_name=varying.names_of(axis_name), axis_size=size, tiled=tiled)


def _reduce_all(primitive: AllReduce, x: Any, axis_name: Any, groups: Any) -> Any:
    groups = _check_groups(groups)
    axes = varying.names_of(axis_name)
    size_of_axes(tuple([name for name in axes if not isinstance(name, int)]), primitive.name)

    def one(leaf):
        if not axes:
            return leaf
        if primitive is psum_p and typeof(leaf).dtype == np.bool_:
            leaf = convert(leaf, np.dtype(np.int32))
        typed = primitive is psum_p and state.thread.manual and set(axes) <= set(state.thread.manual)
        if typed and groups is not None:
            raise NotImplementedError("psum: axis_index_groups under shard_map with check_vma=True")
        if primitive is psum_p and varying.manual_state("psum", leaf, axes) == "unreduced":
            return varying.unreduced_psum_p.bind(leaf, axes=axes)
        leaf = _pvary(leaf, axes)
        if typed:
            return varying.psum_invariant_p.bind(leaf, axes=axes)
        return primitive.bind(leaf, axes=axes, axis_index_groups=groups)

    return tree.tree_map(one, x)


def psum(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Sums values over a named axis: each member of the axis gets the total.

    The name is that of an axis of `jax.vmap` or `jax.pmap`, or of a mesh inside `jax.shard_map`. Of a constant the
    total is the constant times the size of the axis; `psum(1, name)` is the size itself, an int.

    Args:
        x: An array, a number, or a pytree of these. Booleans are counted.
        axis_name: A name, or a tuple of names to sum over.
        axis_index_groups: Lists of indices along the axis; sums are within each group. Not inside `jax.shard_map` with
            `check_vma`.

    Returns:
        `x` with each leaf summed. Inside `jax.shard_map` its type does not vary over the axis.

    Raises:
        NameError: If no axis has the name.

    See also: `jax.lax.pmean`, `jax.lax.pmax`, `jax.lax.psum_scatter`, `jax.lax.all_gather`.

    Example:
        >>> jax.vmap(lambda x: x / jax.lax.psum(x, "i"), axis_name="i")(jnp.array([1.0, 1.0, 2.0]))
        Array([0.25, 0.25, 0.5 ], dtype=float32)
    """
    leaves = tree.tree_leaves(x)
    has_positions = any(isinstance(a, int) for a in varying.names_of(axis_name))
    if not has_positions and not any(isinstance(leaf, Tracer) for leaf in leaves):
        size = _group_size(axis_name, _check_groups(axis_index_groups), "psum", must_be_equal=False)
        return tree.tree_map(lambda leaf: _times_axis_size(leaf, size), x)

    def one(leaf):
        if isinstance(leaf, dtypes.PYTHON_SCALARS):
            return _times_axis_size(leaf, _group_size(axis_name, axis_index_groups, "psum", must_be_equal=False))
        return _reduce_all(psum_p, leaf, axis_name, axis_index_groups)

    return tree.tree_map(one, x)


def _times_axis_size(leaf: Any, size: int) -> Any:
    if isinstance(leaf, Array):
        return leaf if size == 1 else psum_p.repeated(leaf, size)
    if isinstance(leaf, bool):
        return np.int32(leaf * size)
    if isinstance(leaf, (np.ndarray, np.generic)):
        leaf = leaf.astype(np.int32) if leaf.dtype == np.bool_ else leaf
        return leaf * scalar_like(leaf, size)
    return leaf * size


def pmean(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Computes the mean of values over a named axis: each member of the axis gets it.

    Args:
        x: An array, a number, or a pytree of these.
        axis_name: A name, or a tuple of names.
        axis_index_groups: Lists of indices along the axis; means are within each group. If groups differ in size, sums
            are divided by the size of the first, as in jax.

    Raises:
        NameError: If no axis has the name.

    Example:
        >>> jax.vmap(lambda x: x - jax.lax.pmean(x, "i"), axis_name="i")(jnp.array([1.0, 3.0]))
        Array([-1.,  1.], dtype=float32)
    """
    size = _group_size(axis_name, _check_groups(axis_index_groups), "pmean", must_be_equal=False)

    def mean(total):
        if isinstance(total, dtypes.PYTHON_SCALARS):
            return total / size
        check_kinds("pmean", ANY, typeof(total))
        dtype = dtypes.to_inexact_dtype(typeof(total).dtype)
        if isinstance(total, (np.ndarray, np.generic)):
            return np.asarray(np.true_divide(total, size), dtype)
        total = convert(total, dtype, typeof(total).weak_type)
        return div(total, const_like(total, size))

    return tree.tree_map(mean, psum(x, axis_name, axis_index_groups=axis_index_groups))


def pmax(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Computes the largest value over a named axis, leaf by leaf; see `jax.lax.psum` for the arguments.

    Raises NameError for a name that no axis has.

    Example:
        >>> jax.vmap(lambda x: jax.lax.pmax(x, "i"), axis_name="i")(jnp.array([10, 30, 20]))
        Array([30, 30, 30], dtype=int32)
    """
    return _reduce_all(pmax_p, x, axis_name, axis_index_groups)


def pmin(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Computes the smallest value over a named axis, leaf by leaf; see `jax.lax.psum` for the arguments.

    Raises NameError for a name that no axis has.

    Example:
        >>> jax.vmap(lambda x: jax.lax.pmin(x, "i"), axis_name="i")(jnp.array([10, 30, 20]))
        Array([10, 10, 10], dtype=int32)
    """
    return _reduce_all(pmin_p, x, axis_name, axis_index_groups)


_GATHERS = {"varying": all_gather_p, "invarying": all_gather_invariant_p, "reduced": all_gather_reduced_p}


def all_gather(
    x: Any, axis_name: Any, *, axis_index_groups: Any = None, axis: int = 0, tiled: bool = False, to: str = "varying"
) -> Any:
    """Gathers the values of all members of a named axis: each member gets all of them.

    They are stacked along a new array axis `axis`, or concatenated along it if `tiled`. Inside `shard_map` the result
    varies over the named axis; with `to="invarying"` its type does not vary, and with `to="reduced"` it is reduced, so
    that its cotangent is unreduced. Raises NameError for a name that no axis has.

    Example:
        >>> jax.vmap(lambda x: jax.lax.all_gather(x, "i"), axis_name="i")(jnp.array([1, 2]))
        Array([[1, 2],
               [1, 2]], dtype=int32)
    """
    how = _group_params("all_gather", axis_name, axis_index_groups, tiled)
    if to not in _GATHERS:
        raise ValueError(f"all_gather: `to` must be one of 'varying', 'invarying' or 'reduced', got {to!r}")
    if to != "varying" and how.pop("axis_index_groups") is not None:
        raise NotImplementedError(f"all_gather: axis_index_groups with to={to!r}")

    def one(leaf):
        at = canonical_axis(axis, typeof(leaf).ndim + (not tiled))
        leaf = leaf if to == "reduced" else _pvary(leaf, axis_name)
        return _GATHERS[to].bind(leaf, all_gather_dimension=at, **how)

    return tree.tree_map(one, x)


def psum_scatter(
    x: Any, axis_name: Any, *, scatter_dimension: int = 0, axis_index_groups: Any = None, tiled: bool = False
) -> Any:
    """Sums over a named axis, then gives each member its chunk of the array axis `scatter_dimension`.

    Without `tiled`, that axis has the size of the named axis and is removed; with it, the axis is divided into chunks.
    Raises NameError for a name that no axis has.

    Example:
        >>> jax.vmap(lambda x: jax.lax.psum_scatter(x, "i"), axis_name="i")(jnp.array([[1, 2], [3, 4]]))
        Array([4, 6], dtype=int32)
    """
    how = _group_params("psum_scatter", axis_name, axis_index_groups, tiled)

    def one(leaf):
        at = canonical_axis(scatter_dimension, typeof(leaf).ndim)
        if varying.manual_state("psum_scatter", leaf, axis_name) != "unreduced":
            return reduce_scatter_p.bind(_pvary(leaf, axis_name), scatter_dimension=at, **how)
        if axis_index_groups is not None:
            raise NotImplementedError("psum_scatter: axis_index_groups of an unreduced value")
        ungrouped = {k: v for k, v in how.items() if k != "axis_index_groups"}
        return unreduced_reduce_scatter_p.bind(leaf, scatter_dimension=at, **ungrouped)

    return tree.tree_map(one, x)


def all_to_all(
    x: Any, axis_name: Any, split_axis: int, concat_axis: int, *, axis_index_groups: Any = None, tiled: bool = False
) -> Any:
    """Splits the array axis `split_axis` over a named axis, exchanges the chunks, and joins them along `concat_axis`.

    Without `tiled`, `split_axis` has the size of the named axis and is removed, and the received chunks are stacked
    along a new axis; with it, axes are divided and concatenated. Raises ValueError if sizes do not fit.

    Example:
        >>> exchange = lambda x: jax.lax.all_to_all(x, "i", split_axis=0, concat_axis=0)
        >>> jax.vmap(exchange, axis_name="i")(jnp.array([[1, 2], [3, 4]]))
        Array([[1, 3],
               [2, 4]], dtype=int32)
    """
    groups = _check_groups(axis_index_groups)
    size = _group_size(axis_name, groups, "all_to_all")

    def one(leaf):
        shape = typeof(leaf).shape
        split, concat = (canonical_axis(a, len(shape)) for a in (split_axis, concat_axis))
        if not tiled and shape[split] != size:
            raise ValueError(
                f"all_to_all: x.shape[split_axis] must be the size of the axis {axis_name}, {size}, not {shape[split]}."
            )
        if shape[split] % size:
            raise ValueError(
                f"all_to_all: split_axis has size {shape[split]}, which is not divisible by the "
                f"size of the named axis {axis_name}, {size}"
            )
        # [.., n, ..] -> [.., n, .., 1, ..] -> [.., 1, .., n, ..]
        inserts_axis = not tiled and split != concat
        if inserts_axis:
            concat, split = (concat + 1, split) if split < concat else (concat, split + 1)
            leaf = moving.expand_dims(leaf, (concat,))
        how = dict(axis_index_groups=groups, tiled=tiled)
        leaf = _pvary(leaf, axis_name)
        out = all_to_all_p.bind(leaf, axis_name=axis_name, split_axis=split, concat_axis=concat, **how)
        return squeeze(out, (split,)) if inserts_axis else out

    return tree.tree_map(one, x)


def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Sends values along a named axis by (source, target) pairs; a member that receives nothing gets zeros.

    Raises NameError for a name that no axis has.

    Example:
        >>> ring = [(0, 1), (1, 2), (2, 0)]
        >>> jax.vmap(lambda x: jax.lax.ppermute(x, "i", ring), axis_name="i")(jnp.array([1, 2, 3]))
        Array([3, 1, 2], dtype=int32)
    """
    size_of_axes(axis_name, "ppermute")
    pairs = tuple((int(a), int(b)) for a, b in perm)
    return tree.tree_map(
        lambda leaf: ppermute_p.bind(_pvary(leaf, axis_name), axis_name=varying.names_of(axis_name), perm=pairs), x
    )


def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """Gives each member i of a named axis the value of member `perm[i]`. Raises ValueError for no permutation.

    Example:
        >>> jax.vmap(lambda x: jax.lax.pshuffle(x, "i", [2, 0, 1]), axis_name="i")(jnp.array([10, 20, 30]))
        Array([30, 10, 20], dtype=int32)
    """
    if sorted(perm) != list(range(len(perm))):
        raise ValueError(f"pshuffle: `perm` does not represent a permutation: {perm}")
    return ppermute(x, axis_name, list(zip(perm, range(len(perm)), strict=True)))


def pswapaxes(x: Any, axis_name: Any, axis: int, *, axis_index_groups: Any = None) -> Any:
    """Swaps a named axis with the dimension `axis`, which must have the same size.

    Raises NameError for a name that no axis has.

    Example:
        >>> jax.vmap(lambda x: jax.lax.pswapaxes(x, "i", 0), axis_name="i")(jnp.array([[1, 2], [3, 4]]))
        Array([[1, 3],
               [2, 4]], dtype=int32)
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def pbroadcast(x: Any, axis_name: Any, source: int) -> Any:
    """Sends the value of the member `source` of a named axis to all its members.

    Raises NameError for a name that no axis has.

    Example:
        >>> jax.vmap(lambda x: jax.lax.pbroadcast(x, "i", 1), axis_name="i")(jnp.array([10, 20, 30]))
        Array([20, 20, 20], dtype=int32)
    """
    size_of_axes(axis_name, "pbroadcast")

    def one(leaf):
        missing = frozenset(varying.names_of(axis_name)).intersection(state.thread.manual) - varying_axes(typeof(leaf))
        if missing:
            raise ValueError(
                f"pbroadcast must be applied to a device-varying type, but {typeof(leaf).str_short()} does not vary "
                f"over {sorted(map(str, missing))}"
            )
        return pbroadcast_p.bind(leaf, axis_name=axis_name, source=source)

    return tree.tree_map(one, x)


def axis_index(axis_name: Hashable) -> Array:
    """Returns the index of this member along a named axis; for several axes, the index in row-major order.

    Raises NameError for a name that no axis has.

    Example:
        >>> jax.vmap(lambda x: x + jax.lax.axis_index("i"), axis_name="i")(jnp.zeros(3, int))
        Array([0, 1, 2], dtype=int32)
    """
    if not isinstance(axis_name, (tuple, list)):
        state.axis_size(axis_name, "axis_index")
        return axis_index_p.bind(axis_name=axis_name)
    index: Any = np.int32(0)
    inner = 1
    for name in reversed(axis_name):
        index = add(index, mul(axis_index(name), np.int32(inner)))
        inner *= state.axis_size(name)
    return index
