"""Reductions over axes: sums, products, extrema, logic, argmax and argmin."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.base.documentation import filled
from minijax.base.dtypes import DTypeLike
from minijax.base.source import boundary
from minijax.base.util import named
from minijax.ir.primitive import FirstOrder, Folding, Primitive, fold_as
from minijax.ir.result_types import sharded_without_axes
from minijax.ir.types import ShapedArray, Zero, typeof
from minijax.primitives import moving
from minijax.primitives.convert import convert
from minijax.primitives.elementwise import div, eq, mul
from minijax.primitives.families import ANY, NUMBER, Kinds, check_kinds, scalar_like
from minijax.primitives.moving import AxisWise, reduce_sum_p, reduced_aval
from minijax.primitives.sharding import requested_sharding
from minijax.primitives.structural import pad, slice_in_dim, squeeze
from minijax.primitives.zeros import ZeroJvp, add_any, zeros_like_aval
from minijax.run.arrays.array import Array, ArrayLike


def lowest(dtype: Any, highest: bool = False) -> Any:
    """The lowest value of a dtype (the highest, if `highest`)."""
    if dtype == np.bool_:
        return np.bool_(highest)
    if dtypes.is_complex(dtype):
        return np.asarray(np.inf if highest else -np.inf, dtype)[()]
    if dtypes.issubdtype(dtype, np.integer):
        info = dtypes.iinfo(dtype)
    elif dtypes.supports_inf(dtype):
        return np.asarray(np.inf if highest else -np.inf, dtype)[()]
    else:
        info = dtypes.finfo(dtype)
    return np.asarray(info.max if highest else info.min, dtype)[()]


def merge_axes_to_front(x: Any, axes: Sequence[int]) -> Any:
    """Moves `axes` of `x` to the front and merges them into one axis, of size 1 if `axes` is empty."""
    aval = typeof(x)
    others = tuple(i for i in range(aval.ndim) if i not in axes)
    shape = (prod(aval.shape[i] for i in axes), *(aval.shape[i] for i in others))
    order = (*axes, *others)
    if order == tuple(range(aval.ndim)):
        return moving.reshape_to(x, shape)
    return moving.reshape(x, shape, order)


def strong_reduced_aval(name: str, x: ShapedArray, axes: Sequence[int]) -> ShapedArray:
    """As `reduced_aval`, but strongly typed; raises IndexError for axes beyond the last one, as jax does."""
    if any(a >= x.ndim for a in axes):
        raise IndexError(f"{name}: axes {axes} are out of bounds for an operand of shape {x.shape}")
    return reduced_aval(name, x, axes).update(weak_type=False)


class AxisReduction(AxisWise, FirstOrder):
    """Combines the elements along the axes that the parameter `axes` lists."""

    numbers, drops = ("axes",), "axes"


class Reduction(AxisReduction):
    """Combines the elements along `axes` by the StableHLO operation `hlo`."""

    def __init__(self, name: str, hlo: str):
        self.name = name
        self.hlo = hlo

    def check(self, x: ShapedArray) -> None:
        """Raises TypeError for a dtype that the operation does not accept."""
        raise NotImplementedError

    def start(self, dtype: Any) -> Any:
        """The result of an empty reduction."""
        raise NotImplementedError

    def infer(self, x, *, axes):
        self.check(x)
        return [reduced_aval(self.name, x, axes)]

    sharding_rule = sharded_without_axes

    def reducer(self, e: Any, dtype: Any) -> Any:
        return self.hlo

    def lower(self, e, ins, outs, x, *, axes):
        start = e.constant(self.start(ins[0].dtype), ShapedArray((), ins[0].dtype))
        return e.reduce([x], [start], ins, outs, axes, self.reducer(e, ins[0].dtype))


class ReduceProd(Reduction):
    """The product. Its derivative multiplies halves pairwise: dividing the product would fail for zeros."""

    def check(self, x):
        check_kinds(self.name, NUMBER, x)

    def start(self, dtype):
        return 1

    def jvp(self, primals, tangents, *, axes):
        (x,), (t,) = primals, tangents
        if type(t) is Zero:
            out = self.bind(x, axes=axes)
            return [out], [Zero.from_primal_value(out)]
        x, t = merge_axes_to_front(x, axes), merge_axes_to_front(t, axes)
        aval = typeof(x)
        if not aval.shape[0]:
            ones = ShapedArray(aval.shape[1:], aval.dtype)
            return [moving.filled(ones.shape, scalar_like(x, 1))], [zeros_like_aval(ones)]
        return self.pushed(x, t)

    def pushed(self, x: Any, t: Any) -> tuple[list, list]:
        """Returns the product along the first axis, which is not empty, and its tangent."""
        while (size := typeof(x).shape[0]) > 1:
            half = (size + 1) // 2
            (x1, t1), (x2, t2) = ([slice_in_dim(v, a, b) for v in (x, t)] for a, b in ((0, half), (half, size)))
            if size % 2:
                config = ((0, 1, 0), *((0, 0, 0),) * (typeof(x).ndim - 1))
                # An array, which becomes a residual where the derivative is linearized, as in jax's jaxprs.
                zero = moving.as_array_or_constant(scalar_like(x, 0))
                x2, t2 = pad(x2, scalar_like(x, 1), config), pad(t2, zero, config)
            x = mul(x1, x2)
            t = add_any(mul(t1, x2), mul(x1, t2))
        return [squeeze(x, (0,))], [squeeze(t, (0,))]


class ReduceExtremum(Reduction):
    """The largest or smallest element; its derivative is shared by all elements that are equal to it."""

    def check(self, x):
        if dtypes.is_extended(x.dtype):
            raise ValueError(f"{self.name} does not accept dtype {x.dtype}.")

    def start(self, dtype):
        return lowest(dtype, highest=self.hlo == "minimum")

    def reducer(self, e, dtype):
        if not dtypes.is_complex(dtype):
            return self.hlo
        unit = ShapedArray((), dtype)
        part = ShapedArray((), np.finfo(dtype).dtype)
        direction = "GT" if self.hlo == "maximum" else "LT"

        def lexicographic(x, y):
            real = [e.map_to("real", v, unit, part) for v in (x, y)]
            tie, first = e.compare("EQ", *real, part), e.compare(direction, *real, part)
            imag = [e.map_to("imag", v, unit, part) for v in (x, y)]
            second = e.compare(direction, *imag, part)
            flag = ShapedArray((), np.bool_)
            return e.select(e.select(tie, second, first, flag, flag), x, y, flag, unit)

        return lexicographic

    def jvp(self, primals, tangents, *, axes):
        (x,), (t,) = primals, tangents
        out = self.bind(x, axes=axes)
        if type(t) is Zero:
            return [out], [Zero.from_primal_value(out)]
        shape = tuple(1 if i in axes else size for i, size in enumerate(typeof(x).shape))
        unreduced = moving.reshape_to(out, shape) if shape else moving.reshape(out, ())
        chosen = convert(eq(x, unreduced), typeof(x).dtype)
        count = reduce_sum_p.bind(chosen, axes=axes, out_sharding=None)
        return [out], [div(reduce_sum_p.bind(mul(t, chosen), axes=axes, out_sharding=None), count)]


class ReduceLogical(ZeroJvp, Reduction):
    """Combines bits or booleans."""

    def check(self, x):
        if dtypes.is_extended(x.dtype) or x.dtype.kind not in "biu":
            raise TypeError(f"{self.name}: a logical reduction takes bool or int, got dtype {x.dtype}.")

    def infer(self, x, *, axes):
        self.check(x)
        return [strong_reduced_aval(self.name, x, axes)]

    def start(self, dtype):
        if self.hlo != "and":
            return np.zeros((), dtype)[()]
        return np.bool_(True) if dtype == np.bool_ else np.invert(np.zeros((), dtype))


ORDERED = Kinds((np.integer, np.floating, np.bool_))


class ArgExtremum(ZeroJvp, AxisReduction):
    """The index along an axis of the first largest or smallest element, or of the first NaN."""

    def __init__(self, name: str, direction: str):
        self.name = name
        self.direction = direction

    def infer(self, x, *, axes, index_dtype):
        (axis,) = axes
        if not 0 <= axis < x.ndim:
            raise ValueError(f"{self.name}: Invalid axis {axis} for operand shape {x.shape}")
        if not x.shape[axis]:
            raise ValueError(f"{self.name}: require non-empty reduced dimension, got axis {axis} of shape {x.shape}")
        if not dtypes.issubdtype(index_dtype, np.integer):
            raise TypeError(f"{self.name}: index_dtype must be an integer type, but got {index_dtype}")
        if dtypes.is_extended(x.dtype):
            raise ValueError(f"{self.name}: Unsupported dtype {x.dtype}")
        check_kinds(self.name, ANY, x)
        return [ShapedArray(x.shape[:axis] + x.shape[axis + 1 :], index_dtype)]

    sharding_rule = sharded_without_axes

    def lower(self, e, ins, outs, x, *, axes, index_dtype):
        (aval,), (out,) = ins, outs
        check_kinds(self.name, ORDERED, aval)  # only now, as in jax: results that nothing reads are not computed
        value, index, flag = (ShapedArray((), d) for d in (aval.dtype, index_dtype, np.bool_))

        def better(x, i, y, j):
            wins = e.compare(self.direction, x, y, value)
            wins = e.binary("or", wins, e.compare("NE", x, x, value), flag)
            first = e.binary("and", e.compare("EQ", x, y, value), e.compare("LT", i, j, index), flag)
            chosen = e.binary("or", wins, first, flag)
            return e.select(wins, x, y, flag, value), e.select(chosen, i, j, flag, index)

        def build(x):
            places = ShapedArray(aval.shape, index_dtype)
            numbers = e.iota(axes[0], places)
            starts = [e.constant(lowest(aval.dtype, self.direction == "LT"), value), e.constant(0, index)]
            results = [ShapedArray(out.shape, aval.dtype), out]
            return [e.reduce([x, numbers], starts, [aval, places], results, axes, better)[1]]

        return e.call_shared(self.name, axes, [x], ins, outs, build)


reduce_prod_p = ReduceProd("reduce_prod", "multiply")
reduce_max_p = ReduceExtremum("reduce_max", "maximum")
reduce_min_p = ReduceExtremum("reduce_min", "minimum")
reduce_and_p = ReduceLogical("reduce_and", "and")
reduce_or_p = ReduceLogical("reduce_or", "or")
reduce_xor_p = ReduceLogical("reduce_xor", "xor")
argmax_p = ArgExtremum("argmax", "GT")
argmin_p = ArgExtremum("argmin", "LT")
fold_as(Folding.EXACT, reduce_max_p, reduce_min_p, argmax_p, argmin_p)
fold_as(Folding.PLAIN, reduce_and_p, reduce_or_p)


@boundary
def _axes(axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(map(operator.index, axes))


def reduce_sum(operand: ArrayLike, axes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """Computes the sum along `axes`, a sequence of axes.

    The axes are counted from the front and are removed. `out_sharding` is the sharding of the result over Explicit mesh
    axes. Raises TypeError for booleans, ValueError for an axis out of bounds.

    Example:
        >>> jax.lax.reduce_sum(jnp.array([[1, 2], [3, 4]]), axes=(0,))
        Array([4, 6], dtype=int32)
    """
    check_kinds("reduce_sum", NUMBER, typeof(operand))
    requested = requested_sharding("reduce_sum", out_sharding, typeof(operand).ndim - len(axes))
    return reduce_sum_p.bind(operand, axes=_axes(axes), out_sharding=requested)


def _reduction(primitive: Primitive, result: str, example: list) -> Callable[[Any, Sequence[int]], Any]:
    def reduction(operand: ArrayLike, axes: Sequence[int]) -> Array:
        """Computes the {result} along `axes`.

        The axes are counted from the front and are removed. Raises ValueError for an axis out of bounds.

        Example:
            >>> jax.lax.{name}(jnp.array([[5, 6], [3, 2]]), axes=(0,)).tolist()
            {example}
        """
        return primitive.bind(operand, axes=_axes(axes))

    doc = dict(name=primitive.name, result=result, example=example)
    return named(reduction, primitive.name, filled(reduction, doc))


reduce_prod = _reduction(reduce_prod_p, "product of the elements", [15, 12])
reduce_max = _reduction(reduce_max_p, "largest element (of complex numbers, by parts)", [5, 6])
reduce_min = _reduction(reduce_min_p, "smallest element (of complex numbers, by parts)", [3, 2])
reduce_and = _reduction(reduce_and_p, "bitwise and of the integers or booleans", [1, 2])
reduce_or = _reduction(reduce_or_p, "bitwise or of the integers or booleans", [7, 6])
reduce_xor = _reduction(reduce_xor_p, "bitwise exclusive or of the integers or booleans", [6, 4])


def argmax(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """Computes the index of the first largest element along `axis`, or of the first NaN.

    `axis` is counted from the front and is removed. `index_dtype` is an integer dtype. Raises TypeError for another
    `index_dtype`, ValueError for an axis out of bounds or of size 0.

    Example:
        >>> jax.lax.argmax(jnp.array([[1, 7, 7], [9, 2, 3]]), axis=1, index_dtype=jnp.int32)
        Array([1, 0], dtype=int32)
    """
    return _arg(argmax_p, operand, axis, index_dtype)


def argmin(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """Computes the index of the first smallest element along `axis`, or of the first NaN.

    `axis` is counted from the front and is removed. `index_dtype` is an integer dtype. Raises TypeError for another
    `index_dtype`, ValueError for an axis out of bounds or of size 0.

    Example:
        >>> jax.lax.argmin(jnp.array([[1, 7, 1], [9, 2, 3]]), axis=1, index_dtype=jnp.int32)
        Array([0, 1], dtype=int32)
    """
    return _arg(argmin_p, operand, axis, index_dtype)


def _arg(primitive, operand, axis, index_dtype):
    if index_dtype is None:
        raise ValueError(f"{primitive.name}: the dtype index_dtype must be specified.")
    dtype = dtypes.check_and_canonicalize_user_dtype(index_dtype, primitive.name)
    return primitive.bind(operand, axes=(operator.index(axis),), index_dtype=dtype)
