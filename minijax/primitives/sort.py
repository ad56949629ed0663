"""Sorting, and the largest k."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from minijax.base import dims, dtypes
from minijax.base.errors import ShardingTypeError
from minijax.base.symbolic.dimension import is_int
from minijax.ir.primitive import Folding, fold_as
from minijax.ir.types import ShapedArray, Zero, typeof
from minijax.partition.explicit import common_sharding
from minijax.primitives import moving
from minijax.primitives.counting import broadcasted_iota
from minijax.primitives.dynamic_slice import GatherDimensionNumbers, GatherScatterMode, gather
from minijax.primitives.elementwise import ORDERED, Compare
from minijax.primitives.families import check_kinds
from minijax.run.arrays.array import Array, ArrayLike


class TotalCompare(Compare):
    """A comparison in the total order: NaN equals itself and is greater than the other numbers."""

    def lower(self, e, ins, outs, x, y):
        x, y = self.broadcast(e, ins, outs[0], (x, y))
        dtype = ins[0].dtype
        kind = "TOTALORDER" if dtypes.issubdtype(dtype, np.floating) else None
        return [e.compare(self.direction, x, y, ShapedArray(outs[0].shape, dtype), kind)]


eq_to_p, le_to_p = TotalCompare("eq_to", "EQ", ORDERED), TotalCompare("le_to", "LE", ORDERED)
lt_to_p = TotalCompare("lt_to", "LT", ORDERED)
_FLAG = ShapedArray((), np.bool_)


def take_along(x: Any, indices: Any, axis: int) -> Any:
    """Gathers the elements of `x` at `indices` along `axis`; `indices` has a last axis of size 1."""
    others = tuple(i for i in range(typeof(x).ndim) if i != axis)
    numbers = GatherDimensionNumbers((), (axis,), (axis,), others, others)
    return gather(x, indices, numbers, (1,) * typeof(x).ndim, mode=GatherScatterMode.PROMISE_IN_BOUNDS)


def _check_no_keys(name: str, *avals: ShapedArray) -> None:
    """Raises ValueError for random keys, which XLA cannot sort."""
    if any(dtypes.is_extended(a.dtype) for a in avals):
        raise ValueError(f"{name}: cannot lower operands that are random keys, got {', '.join(map(str, avals))}")


class Sort(moving.AxisWise):
    """Sorts all operands by the first `num_keys` of them: NaN last, -0.0 as 0.0, complex numbers by their parts."""

    has_bodies = False
    name = "sort"
    multiple_results = True
    same_memory_space = False
    numbers = ("dimension",)

    def infer(self, *avals, dimension, is_stable, num_keys):
        if any(a.shape != avals[0].shape for a in avals):
            shapes = " ".join(str(a.shape) for a in avals)
            raise TypeError(f"sort: operands must have equal shapes, got: {shapes}")
        for a in avals[:num_keys]:
            if not dtypes.is_complex(a.dtype):
                check_kinds("sort", ORDERED, a)
        return list(avals)

    def sharding_rule(self, mesh, avals, outs, *, dimension, **params):
        for a in avals:
            if a.entries[dimension] is not None:
                raise ShardingTypeError(
                    f"Arguments to sort must be unsharded over the sorting dimension, which is {dimension}, "
                    f"but one is {a.str_short()}"
                )
        common_sharding(avals)
        return [a.entries for a in avals]

    def lower(self, e, ins, outs, *operands, dimension, is_stable, num_keys):
        _check_no_keys("sort", *ins)

        def comparator(*pairs):
            keys = [
                (a, b)
                for k in range(num_keys)
                for a, b in zip(*(_keys(e, pairs[2 * k + i], ins[k].dtype) for i in (0, 1)), strict=True)
            ]
            return _lexicographic(e, keys)

        return e.sort(operands, ins, dimension, comparator, bool(is_stable))

    def jvp(self, primals, tangents, *, dimension, **params):
        shape = typeof(primals[0]).shape
        places = broadcasted_iota(np.uint32, shape, dimension)
        *outs, order = self.bind(*primals, places, dimension=dimension, **params)
        indices = moving.expand_dims(order, (len(shape),))
        pushed = [
            Zero.from_primal_value(x) if type(t) is Zero else take_along(t, indices, dimension)
            for x, t in zip(primals, tangents, strict=True)
        ]
        return outs, pushed


def _keys(e: Any, x: str, dtype: Any) -> list[tuple[str, ShapedArray]]:
    """The keys for comparisons: -0.0 becomes 0.0, all NaNs become equal, complex numbers become their parts."""
    unit = ShapedArray((), dtype)
    if dtypes.is_complex(dtype):
        part = np.finfo(dtype).dtype
        return [
            key for name in ("real", "imag") for key in _keys(e, e.map_to(name, x, unit, ShapedArray((), part)), part)
        ]
    if not dtypes.issubdtype(dtype, np.floating):
        return [(x, unit)]
    is_zero = e.compare("EQ", x, e.constant(0, unit), unit)
    plain = e.select(is_zero, e.constant(0, unit), x, _FLAG, unit)
    is_nan = e.compare("NE", x, x, unit)
    return [(e.select(is_nan, e.constant(np.nan, unit), plain, _FLAG, unit), unit)]


def _lexicographic(e: Any, keys: Sequence) -> str:
    later: Any = None
    for (x, unit), (y, _) in reversed(keys):
        kind = "TOTALORDER" if dtypes.issubdtype(unit.dtype, np.floating) else None
        less = e.compare("LT", x, y, unit, kind)
        if later is not None:
            tie = e.compare("EQ", x, y, unit, kind)
            less = e.binary("or", less, e.binary("and", tie, later, _FLAG), _FLAG)
        later = less
    return later


class TopK(moving.AxisWise):
    """The `k` largest elements along `axis`, in descending order, and their indices."""

    has_bodies = False
    name = "top_k"
    multiple_results = True
    numbers = ("axis",)

    def infer(self, x, *, k, axis):
        if k < 0:
            raise ValueError(f"top_k: k must be nonnegative, got {k}")
        if k > x.shape[axis]:
            raise ValueError(
                f"top_k: k={k} is larger than the size along axis {axis} of shape {x.shape}. Use at most "
                f"{x.shape[axis]}."
            )
        if dtypes.is_complex(x.dtype):
            raise ValueError(f"top_k: complex numbers have no order, got dtype {x.dtype}.")
        if is_int(x.shape[axis]) and x.shape[axis] > 2**31:
            raise ValueError(
                "top_k returns int32 indices, which will overflow for array dimensions larger than the maximum "
                f"int32, got shape {x.shape}"
            )
        shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
        return [ShapedArray(shape, x.dtype, x.weak_type), ShapedArray(shape, np.dtype(np.int32), x.weak_type)]

    def sharding_rule(self, mesh, avals, outs, *, axis, k):
        if avals[0].entries[axis] is not None:
            raise ShardingTypeError(
                f"top_k: the operand should be unsharded over the axis {axis}, but it is {avals[0].str_short()}"
            )
        return [avals[0].entries] * 2

    def lower(self, e, ins, outs, x, *, k, axis):
        _check_no_keys("top_k", *ins)
        (aval,), last = ins, ins[0].ndim - 1
        if axis == last:
            return e.top_k(x, aval, outs, k)
        perm = list(range(aval.ndim))
        perm[axis], perm[last] = last, axis
        turn = lambda a: ShapedArray(tuple(a.shape[i] for i in perm), a.dtype)  # noqa: E731
        results = e.top_k(e.transpose(x, aval, turn(aval), perm), turn(aval), [turn(o) for o in outs], k)
        return [e.transpose(f, turn(o), o, perm) for f, o in zip(results, outs, strict=True)]

    def jvp(self, primals, tangents, *, k, axis):
        values, places = self.bind(*primals, k=k, axis=axis)
        none = Zero.from_primal_value(places)
        if type(tangents[0]) is Zero:
            return [values, places], [Zero.from_primal_value(values), none]
        indices = moving.reshape(places, (*typeof(places).shape, 1))
        return [values, places], [take_along(tangents[0], indices, axis), none]


sort_p = Sort()
fold_as(Folding.EXACT, sort_p)

top_k_p = TopK()


def sort(operand: Array | Sequence[Array], dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """Sorts an array in ascending order along an axis, or several arrays by the first `num_keys` of them.

    NaN counts as the largest number. A stable sort keeps the order of equal elements.

    Args:
        operand: An array, or a tuple or list of arrays of one shape.
        dimension: The axis, by default the last.
        is_stable: Whether the sort is stable, by default true.
        num_keys: The number of arrays that are compared, lexicographically.

    Raises ValueError for a dimension out of bounds, TypeError or ValueError for arrays that differ in shape.

    Example:
        >>> jax.lax.sort((jnp.array([3, 1, 2]), jnp.array([30, 10, 20])))
        (Array([1, 2, 3], dtype=int32), Array([10, 20, 30], dtype=int32))
    """
    several = isinstance(operand, (tuple, list))
    operands = tuple(operand) if several else (operand,)
    if not operands:
        raise TypeError("sort: at least one operand is needed")
    if not 1 <= num_keys <= len(operands):
        raise ValueError(f"sort: {num_keys=} must be between 1 and the number of operands, {len(operands)}.")
    dimension = dims.canonical_axis(dimension, typeof(operands[0]).ndim)
    results = sort_p.bind(*operands, dimension=dimension, is_stable=is_stable, num_keys=num_keys)
    return tuple(results) if several else results[0]


def sort_key_val(keys: Array, values: ArrayLike, dimension: int = -1, is_stable: bool = True) -> tuple[Array, Array]:
    """Sorts `keys` in ascending order along an axis, and brings `values` into the same order. Returns both.

    Raises TypeError for arrays that differ in shape, ValueError for a dimension out of bounds.

    Example:
        >>> jax.lax.sort_key_val(jnp.array([3, 1, 2]), jnp.array([30, 10, 20]))
        (Array([1, 2, 3], dtype=int32), Array([10, 20, 30], dtype=int32))
    """
    return sort((keys, cast("Array", values)), dimension, is_stable, num_keys=1)


def top_k(operand: ArrayLike, k: int, *, axis: int = -1) -> tuple[Array, Array]:
    """Returns the largest elements along an axis, in descending order, and their indices.

    Of equal elements, the one with the smaller index comes first. NaN counts as the largest number.

    Args:
        operand: An array of real numbers, with one axis or more.
        k: The number of elements; a Python integer, not more than the size of the axis.
        axis: The axis, by default the last.

    Returns:
        A pair (values, indices). Both have the shape of `operand`, with size `k` along the axis. Indices are int32.

    Raises:
        ValueError: If `k` is larger than the axis, or negative.

    See also: `jax.lax.approx_max_k`, `jax.numpy.argsort`.

    Example:
        >>> jax.lax.top_k(jnp.array([3.0, 9.0, 7.0]), 2)
        [Array([9., 7.], dtype=float32), Array([1, 2], dtype=int32)]
    """
    axis = dims.canonical_axis(axis, typeof(operand).ndim)
    return top_k_p.bind(operand, k=dims.canonical_dim(k), axis=axis)
