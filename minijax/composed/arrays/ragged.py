"""Ragged products: one axis of lhs is divided into groups of given sizes."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.base import config, dtypes
from minijax.base.dtypes import DTypeLike
from minijax.base.symbolic.dimension import max_dim, min_dim
from minijax.composed.arrays.cumulative import cumsum
from minijax.composed.linalg.matrices import map_over_batch
from minijax.ir.primitive import Primitive, cotangents, is_undefined_primal
from minijax.ir.types import ShapedArray, Zero, typeof
from minijax.primitives import moving
from minijax.primitives.convert import cast
from minijax.primitives.counting import broadcasted_iota
from minijax.primitives.dot import PrecisionLike, canonical_precision, dot_general_p, precision_pair
from minijax.primitives.elementwise import add, bitwise_and, le, lt, select
from minijax.primitives.families import emit, scalar_like
from minijax.primitives.sharding import with_out_sharding
from minijax.primitives.structural import concatenate, slice_in_dim
from minijax.run.arrays.array import Array, ShardingLike

_Axes = tuple[int, ...]
_AS_INSTRUCTION = config.option("ragged_dot_use_ragged_dot_instruction")


@dataclasses.dataclass(frozen=True)
class RaggedDotDimensionNumbers:
    """Names the axes of a ragged product: those of `dot_general`, the ragged axis of lhs, the group axis of rhs.

    Example:
        >>> columns = jax.lax.RaggedDotDimensionNumbers((([1], [0]), ([], [])), [1], [])  # groups of what is contracted
        >>> x, y = jnp.array([[1.0, 2.0, 3.0]]), jnp.ones((3, 1))
        >>> jax.lax.ragged_dot_general(x, y, jnp.array([1, 2]), columns).ravel()
        Array([1., 5.], dtype=float32)
    """

    dot_dimension_numbers: Any
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]

    def __init__(self, dot_dimension_numbers, lhs_ragged_dimensions, rhs_group_dimensions):
        pairs = tuple(tuple(tuple(side) for side in pair) for pair in dot_dimension_numbers)
        object.__setattr__(self, "dot_dimension_numbers", pairs)
        object.__setattr__(self, "lhs_ragged_dimensions", tuple(lhs_ragged_dimensions))
        object.__setattr__(self, "rhs_group_dimensions", tuple(rhs_group_dimensions))


class _Mode(enum.Enum):
    """The role of the ragged axis of lhs in the product."""

    NONCONTRACTING = enum.auto()
    CONTRACTING = enum.auto()
    BATCH = enum.auto()


@dataclasses.dataclass(frozen=True)
class _Plan:
    """The axes of a ragged product, by role."""

    contract: tuple[_Axes, _Axes]
    batch: tuple[_Axes, _Axes]
    free: tuple[_Axes, _Axes]
    ragged: int
    group: int | None
    mode: _Mode

    def group_size_axes(self, side: int) -> _Axes:
        """The axes along which group sizes may differ."""
        if self.mode is _Mode.BATCH:
            return self.batch[side][: self.batch[0].index(self.ragged)]
        if self.mode is _Mode.CONTRACTING:
            return self.batch[side] + self.contract[side][: self.contract[0].index(self.ragged)]
        return self.batch[side] + self.free[side][: self.free[side].index(self.ragged)]


def _make_plan(numbers: RaggedDotDimensionNumbers, left: int, right: int) -> _Plan:
    contract, batch = numbers.dot_dimension_numbers
    ragged, groups = numbers.lhs_ragged_dimensions, numbers.rhs_group_dimensions
    name = "ragged_dot_general"
    if len(ragged) != 1:
        raise TypeError(f"{name} expects exactly one lhs ragged dimension, got {ragged}.")
    for side, what, axes, ndim in (("lhs", "ragged", ragged, left), ("rhs", "group", groups, right)):
        if any(not 0 <= i < ndim for i in axes):
            raise TypeError(
                f"{name} requires {side} {what} dimension numbers to be nonnegative and less than the "
                f"number of axes of the {side} value, got {axes} for {side} of rank {ndim}."
            )
    if ragged[0] in contract[0]:
        mode = _Mode.CONTRACTING
    else:
        mode = _Mode.BATCH if ragged[0] in batch[0] else _Mode.NONCONTRACTING
    if mode is not _Mode.NONCONTRACTING and groups:
        raise TypeError(
            f"{name} requires zero group dimensions in the rhs when lhs ragged dimension is contracting or "
            f"batch, got {groups}."
        )
    if mode is _Mode.NONCONTRACTING and len(groups) != 1:
        raise TypeError(
            f"{name} requires exactly one rhs group dimension when lhs ragged dimension is noncontracting, "
            f"got {groups}."
        )
    if set(groups) & {*contract[1], *batch[1]}:
        raise TypeError(
            f"{name} requires rhs group dimension numbers to be distinct from contracting and batch "
            f"dimensions, got {groups}."
        )
    free = moving.other_axes(left, contract[0], batch[0]), moving.other_axes(right, contract[1], batch[1], groups)
    return _Plan(contract, batch, free, ragged[0], groups[0] if groups else None, mode)


def _check_group_sizes(plan: _Plan, lhs: ShapedArray, rhs: ShapedArray, sizes: ShapedArray) -> None:
    if not dtypes.issubdtype(sizes.dtype, np.integer):
        raise TypeError(
            f"ragged_dot_general requires that group_sizes.dtype is subtype of np.integer, got {sizes.dtype}."
        )
    if not sizes.ndim:
        raise TypeError("ragged_dot_general: expected rank of group_sizes to be >=1.")
    shape = (*(lhs.shape[i] for i in plan.group_size_axes(0)), sizes.shape[-1])
    if sizes.ndim > 1 and sizes.shape != shape:
        raise TypeError(f"ragged_dot_general: expected group_sizes to have shape {shape}, got {sizes.shape}.")
    if plan.group is not None and rhs.shape[plan.group] != sizes.shape[-1]:
        raise TypeError(
            f"ragged_dot_general: expected rhs group dimension size to be {sizes.shape[-1]}, got "
            f"{rhs.shape[plan.group]}."
        )


class RaggedDotGeneral(Primitive):
    """The product of each group of `lhs` with the same group of `rhs`."""

    has_bodies = False
    name = "ragged_dot_general"

    def infer(
        self, lhs, rhs, group_sizes, *, ragged_dot_dimension_numbers, preferred_element_type, group_offset, **params
    ):
        plan = _make_plan(ragged_dot_dimension_numbers, lhs.ndim, rhs.ndim)
        _check_group_sizes(plan, lhs, rhs, group_sizes)
        params["dimension_numbers"] = ragged_dot_dimension_numbers.dot_dimension_numbers
        (out,) = dot_general_p.infer(lhs, rhs, preferred_element_type=_dtype(preferred_element_type), **params)
        if plan.mode is _Mode.CONTRACTING:
            return [out.update(shape=(group_sizes.shape[-1], *out.shape))]
        if plan.mode is _Mode.NONCONTRACTING:
            at = len(plan.batch[0]) + len(plan.free[0]) + sum(i < plan.group for i in plan.free[1])
            return [out.update(shape=out.shape[:at] + out.shape[at + 1 :])]
        return [out]

    def lower(self, e, ins, outs, *operands, ragged_dot_dimension_numbers, group_offset, **params):
        if group_offset is not None:
            raise NotImplementedError("ragged_dot_general: group_offset")
        numbers, precision = ragged_dot_dimension_numbers, params["precision"]
        if e.platform != "cpu" and _AS_INSTRUCTION.value:
            return [e.ragged_dot(operands, ins, outs[0], _axes_by_name(numbers), precision_pair(precision))]
        preferred = _dtype(params["preferred_element_type"])
        return emit(e, _with_masks, ins, operands, numbers=numbers, precision=precision, preferred=preferred)

    def jvp(self, primals, tangents, **params):
        (out,) = self.bind_all(primals, params)
        (x, y, sizes), (tx, ty, _) = primals, tangents
        if type(tx) is Zero and type(ty) is Zero:
            return [out], [Zero.from_primal_value(out)]
        terms = [
            moving.filled(typeof(out).shape, scalar_like(out, 0))
            if type(t) is Zero
            else self.bind(*operands, sizes, **params)
            for t, operands in ((tx, (tx, y)), (ty, (x, ty)))
        ]
        return [out], [add(*terms)]

    def transpose(self, cts, lhs, rhs, group_sizes, *, ragged_dot_dimension_numbers, **params):
        (ct,), side = cts, 0 if is_undefined_primal(lhs) else 1
        linear, known = ((lhs, rhs), (rhs, lhs))[side]
        if type(ct) is Zero:
            return cotangents((lhs, rhs, group_sizes), (), (False,))
        ndims = [x.aval.ndim if is_undefined_primal(x) else typeof(x).ndim for x in (lhs, rhs)]
        plan = _make_plan(ragged_dot_dimension_numbers, *ndims)
        if plan.mode is not _Mode.NONCONTRACTING:
            raise NotImplementedError(
                f"ragged_dot_general: the gradient with respect to {('lhs', 'rhs')[side]} where the ragged "
                f"dimension is {plan.mode.name.lower()}"
            )
        numbers, places = (_numbers_of_lhs, _numbers_of_rhs)[side](plan)
        operands = (known, ct) if side else (ct, known)
        grad = self.bind(*operands, group_sizes, ragged_dot_dimension_numbers=numbers, **params)
        grad = _permuted(grad, moving.inverse(places))
        dtype = linear.aval.dtype
        grad = grad if typeof(grad).dtype == dtype else cast(grad, dtype)
        return cotangents((lhs, rhs, group_sizes), (grad,), (True,))

    def batch(self, axis, operands, dims, *, ragged_dot_dimension_numbers, **params):
        if any(d != 0 for d in dims):
            raise NotImplementedError(f"ragged_dot vmap over any dim but 0 - NYI: got {tuple(dims)}")
        numbers = ragged_dot_dimension_numbers
        contract, batch = ([*map(_shifted, pair)] for pair in numbers.dot_dimension_numbers)
        ragged, groups = map(_shifted, (numbers.lhs_ragged_dimensions, numbers.rhs_group_dimensions))
        wider = RaggedDotDimensionNumbers((contract, [(0, *side) for side in batch]), ragged, groups)
        out = self.bind(*operands, ragged_dot_dimension_numbers=wider, **params)
        return [out], [1 if ragged[0] in contract[0] else 0]


ragged_dot_general_p = RaggedDotGeneral()


def _dtype(preferred: Any) -> Any:
    return None if preferred is None else dtypes.canonicalize_dtype(np.dtype(preferred))


def _axes_by_name(numbers: RaggedDotDimensionNumbers) -> dict[str, Sequence[int]]:
    """The axes by their names in the module."""
    contract, batch = numbers.dot_dimension_numbers
    names = "lhs_batching rhs_batching lhs_contracting rhs_contracting lhs_ragged rhs_group".split()
    axes = *batch, *contract, numbers.lhs_ragged_dimensions, numbers.rhs_group_dimensions
    return {f"{name}_dimensions": of_side for name, of_side in zip(names, axes, strict=True)}


def _numbers_of_lhs(plan: _Plan) -> tuple[RaggedDotDimensionNumbers, _Axes]:
    """The gradient of lhs as a product of the cotangent and rhs, and the axis of lhs for each axis of the product."""
    (left, right), (_, batch), (free, rhs_free) = plan.contract, plan.batch, plan.free
    first = len(batch) + len(free)
    dot = (range(first, first + len(rhs_free)), rhs_free), (range(len(batch)), batch)
    ragged = len(batch) + free.index(plan.ragged)
    ordered = (left[i] for i in sorted(range(len(right)), key=right.__getitem__))
    return RaggedDotDimensionNumbers(dot, (ragged,), (plan.group,)), (*plan.batch[0], *free, *ordered)


def _numbers_of_rhs(plan: _Plan) -> tuple[RaggedDotDimensionNumbers, _Axes]:
    """The gradient of rhs as a product of lhs and the cotangent, and the axis of rhs for each axis of the product."""
    (left, right), (batch, rhs_batch), (free, rhs_free) = plan.contract, plan.batch, plan.free
    dot = (free, range(len(batch), len(batch) + len(free))), (batch, range(len(batch)))
    ordered = (right[i] for i in sorted(range(len(left)), key=left.__getitem__))
    return RaggedDotDimensionNumbers(dot, (plan.ragged,), ()), (plan.group, *rhs_batch, *ordered, *rhs_free)


def _with_masks(
    lhs: Any, rhs: Any, sizes: Any, numbers: RaggedDotDimensionNumbers, precision: Any, preferred: Any
) -> list:
    """The product as a `dot_general` with an axis of groups, where the elements of other groups are zero."""
    plan = _make_plan(numbers, lhs.ndim, rhs.ndim)
    how = dict(precision=precision, preferred_element_type=preferred, out_sharding=None)
    if plan.mode is _Mode.BATCH:
        return [dot_general_p.bind(lhs, rhs, dimension_numbers=numbers.dot_dimension_numbers, **how)]
    if sizes.ndim == 1 and plan.group_size_axes(0):
        shape = (*(lhs.shape[i] for i in plan.group_size_axes(0)), *sizes.shape)
        sizes = moving.broadcast_in_dim(sizes, shape, (len(shape) - 1,))
    (cl, cr), (bl, br) = plan.contract, plan.batch
    lhs, cl, bl = _split_groups(lhs, plan.group_size_axes(0), plan.ragged, sizes), _shifted(cl), _shifted(bl)
    if plan.mode is _Mode.CONTRACTING:
        rhs_ragged = cr[plan.contract[0].index(plan.ragged)]
        rhs, cr = _split_groups(rhs, plan.group_size_axes(1), rhs_ragged, sizes), _shifted(cr)
        pairs = (cl, cr), ((0, *bl), (0, *_shifted(br)))
    else:
        pairs = ((*cl, 0), (*cr, plan.group)), (bl, br)
    return [dot_general_p.bind(lhs, rhs, dimension_numbers=pairs, **how)]


def _permuted(x: Any, order: _Axes) -> Any:
    return x if order == tuple(range(len(order))) else moving.transpose(x, order)


def _shifted(axes: _Axes) -> _Axes:
    return tuple(i + 1 for i in axes)


def _split_groups(x: Any, leading: _Axes, ragged: int, sizes: Any) -> Any:
    """[groups, *x]: for each group, `x` with zeros in place of other groups. Groups are contiguous along `ragged`."""
    others = moving.other_axes(typeof(x).ndim, leading)
    at = others.index(ragged)

    def masked(x, sizes):
        (groups,) = typeof(sizes).shape
        shape = (groups, *typeof(x).shape)
        x = moving.broadcast_in_dim(x, shape, tuple(range(1, len(shape))))
        place = broadcasted_iota(typeof(sizes).dtype, shape, at + 1)
        ends = cumsum(sizes)
        first = slice_in_dim(moving.filled((groups,), scalar_like(sizes, 0)), 0, min_dim(groups, 1))
        starts = concatenate([first, slice_in_dim(ends, 0, max_dim(groups - 1, 0))], 0)
        ends, starts = (moving.broadcast_in_dim(y, shape, (0,)) for y in (ends, starts))
        inside = bitwise_and(le(starts, place), lt(place, ends))
        return [select(inside, x, moving.filled(shape, scalar_like(x, 0)))]

    order = (*leading, *others)
    x = _permuted(x, order)
    (x,) = map_over_batch(masked, typeof(x).shape[: len(leading)])(x, sizes)
    # [leading, groups, others] -> [groups, the order of x]
    return _permuted(x, (len(leading), *(i if i < len(leading) else i + 1 for i in moving.inverse(order))))


def ragged_dot_general(
    lhs: Array,
    rhs: Array,
    group_sizes: Array,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: Array | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Computes the `dot_general` of arrays with a ragged axis, which is divided into groups of given sizes.

    The ragged axis is a free axis of lhs (each group is multiplied by its own slice along the group axis of rhs),
    or contracted in both (the result has a leading axis of groups), or a batch axis in both. `group_sizes` has one
    axis, or also the batch axes of lhs and the axes of the same kind before the ragged one.

    Example:
        >>> rows = jax.lax.RaggedDotDimensionNumbers((([1], [1]), ([], [])), [0], [0])
        >>> weights = jnp.array([[[1.0], [1.0]], [[10.0], [10.0]]])
        >>> jax.lax.ragged_dot_general(jnp.ones((3, 2)), weights, jnp.array([1, 2]), rows)
        Array([[ 2.],
               [20.],
               [20.]], dtype=float32)
    """
    numbers = dict(ragged_dot_dimension_numbers=ragged_dot_dimension_numbers, group_offset=group_offset)
    types = dict(precision=canonical_precision(precision), preferred_element_type=preferred_element_type)
    product = ragged_dot_general_p.bind(lhs, rhs, group_sizes, **numbers, **types, out_sharding=None)
    return with_out_sharding("ragged_dot_general", product, out_sharding)


def ragged_dot(
    lhs: Array,
    rhs: Array,
    group_sizes: Array,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: Array | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Multiplies each group of rows of lhs, [m, k], by its own matrix of rhs, [groups, k, n].

    Example:
        >>> lhs, rhs = jnp.ones((3, 2)), jnp.array([jnp.eye(2), 10 * jnp.eye(2)])
        >>> jax.lax.ragged_dot(lhs, rhs, jnp.array([1, 2]))
        Array([[ 1.,  1.],
               [10., 10.],
               [10., 10.]], dtype=float32)
    """
    numbers = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    return ragged_dot_general(
        lhs, rhs, group_sizes, numbers, precision, preferred_element_type, group_offset, out_sharding
    )
