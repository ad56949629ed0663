"""Cumulative sums, products, extrema and log-sum-exp."""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.base.errors import ShardingTypeError
from minijax.calls.custom_derivatives import bind_custom_jvp
from minijax.ir.primitive import Linear1
from minijax.ir.types import ShapedArray, Zero, typeof
from minijax.primitives import elementwise as ops, moving
from minijax.primitives.families import NUMBER, check_kinds, const_like, emit, full_of, is_complex, scalar_like
from minijax.primitives.reduce import lowest, reduce_max_p, reduce_min_p, reduce_prod_p
from minijax.primitives.structural import concatenate, pad, rev, slice_in_dim
from minijax.primitives.window import window_init_value
from minijax.run.arrays.array import Array
from minijax.transforms.jvp import jvp_flat

# ---- log-add-exp ------------------------------------------------------------------------------------


def logaddexp(x: Any, y: Any) -> Any:
    """log(exp(x) + exp(y)) of two arrays of the same inexact dtype, without overflow."""
    return bind_custom_jvp(_logaddexp_flat, _logaddexp_jvp, (x, y), False)[0]


def _logaddexp_flat(x: Any, y: Any) -> list:
    return [logaddexp_to_base(x, y, ops.exp, ops.log1p, pi, const_like)]


_logaddexp_flat.__name__ = "logaddexp"  # as jaxprs print it


def _logaddexp_jvp(x: Any, y: Any, tx: Any, ty: Any) -> list:
    return logaddexp_to_base_jvp(logaddexp, ops.exp, x, y, tx, ty)


def logaddexp_to_base(x: Any, y: Any, exp: Callable, log1p: Callable, half_turn: float, scalar: Callable) -> Any:
    """log(exp(x) + exp(y)) without overflow, to any base; `half_turn` is the angle of -1 to that base.

    `scalar(x, value)` makes a scalar of the dtype of `x`.
    """
    larger = ops.max(x, y)
    if is_complex(x):
        gap = ops.sub(ops.add(x, y), ops.mul(larger, scalar(larger, 2)))
        out = ops.add(larger, log1p(exp(gap)))
        return ops.complex(ops.real(out), _wrapped(ops.imag(out), half_turn, scalar))
    gap = ops.sub(x, y)
    is_nan, total = ops.ne(gap, gap), ops.add(x, y)
    out = ops.add(larger, log1p(exp(ops.neg(ops.abs(gap)))))
    return ops.select(is_nan, total, out)


def _wrapped(angle: Any, half_turn: float, scalar: Callable) -> Any:
    """Wraps an angle into one turn around zero."""
    turn = scalar(angle, 2 * half_turn)
    remainder = ops.rem(ops.add(angle, scalar(angle, half_turn)), turn)
    remainder = ops.select(ops.lt(remainder, scalar_like(remainder, 0)), ops.add(remainder, turn), remainder)
    return ops.sub(remainder, scalar(remainder, half_turn))


def logaddexp_to_base_jvp(function: Callable, exp: Callable, x: Any, y: Any, tx: Any, ty: Any) -> list:
    """The result of a `logaddexp_to_base`, named `function`, and its tangent."""
    out = function(x, y)
    terms = (ops.mul(t, exp(ops.sub(finite(z), finite(out)))) for t, z in ((tx, x), (ty, y)))
    return [out, ops.add(*terms)]


def finite(x: Any) -> Any:
    """`x` with infinity replaced by 0, to avoid inf - inf."""
    real = ops.real(x) if is_complex(x) else x
    return ops.select(ops.eq(real, scalar_like(real, np.inf)), full_of(x, 0), x)


# ---- the operations ---------------------------------------------------------------------------------


class Cumulative(moving.AxisWise):
    """Combines every element along `axis` with all those before it (after it, if `reverse`)."""

    has_bodies = False
    numbers = ("axis",)

    def __init__(self, name: str, combine: Callable, reduction: Any = None):
        self.name = name
        self.combine = combine
        self.reduction = reduction

    def infer(self, x, *, axis, reverse):
        check_kinds(self.name, NUMBER, x)
        return [x]

    def sharding_rule(self, mesh, avals, outs, *, axis, reverse):
        if avals[0].entries[axis] is not None:
            raise ShardingTypeError(
                f"{self.name}: Input should be unsharded over the axis being reduced, which is {axis}, but it is "
                f"{avals[0].str_short()}"
            )
        return None

    def start(self, e: Any, unit: ShapedArray) -> str:
        """The name of the neutral element."""
        return window_init_value(e, self.reduction.start(unit.dtype), unit)

    def reducer(self, e: Any, dtype: Any) -> Any:
        """The function of two scalars, or the name of an operation, that the Emitter's `reduce_window` takes."""
        return self.reduction.reducer(e, dtype)

    def lower(self, e, ins, outs, x, *, axis, reverse):
        (aval,) = ins

        def build(x):
            if not aval.shape[axis]:
                return [x]
            size, ones = aval.shape[axis], (1,) * aval.ndim
            edges = (0, size - 1) if reverse else (size - 1, 0)
            window = dict(window_strides=ones, base_dilation=ones, window_dilation=ones)
            window["window_dimensions"] = tuple(size if i == axis else 1 for i in range(aval.ndim))
            window["padding"] = [edges if i == axis else (0, 0) for i in range(aval.ndim)]
            start = self.start(e, ShapedArray((), aval.dtype))
            return e.reduce_window([x], [start], ins, outs, self.reducer(e, aval.dtype), **window)

        return e.call_shared(self.name, (axis, reverse), [x], ins, outs, build)

    def jvp(self, primals, tangents, *, axis, reverse):
        if type(tangents[0]) is Zero:
            results = self.bind_all(primals, dict(axis=axis, reverse=reverse))
            return results, [Zero.from_primal_value(results[0])]
        return jvp_flat(lambda x: [scanned(self.combine, x, axis, reverse)], primals, tangents)


class CumSum(Cumulative):
    def start(self, e, unit):
        return window_init_value(e, 0, unit)

    def reducer(self, e, dtype):
        return "add"

    jvp = Linear1.jvp
    transpose = Linear1.transpose

    def transposed(self, ct: Any, aval: ShapedArray, *, axis: int, reverse: bool) -> Any:
        return self.bind(ct, axis=axis, reverse=not reverse)


class CumProd(Cumulative):
    def start(self, e, unit):
        return e.constant(1, unit)


class CumLogSumExp(Cumulative):
    def start(self, e, unit):
        if not dtypes.is_inexact(unit.dtype):
            raise OverflowError(f"{self.name}: {unit.dtype.name} cannot represent the logarithm of zero.")
        return e.constant(lowest(unit.dtype), unit)

    def reducer(self, e, dtype):
        unit = ShapedArray((), dtype)
        return lambda x, y: emit(e, _logaddexp_flat, [unit, unit], [x, y])


def scanned(combine: Callable, x: Any, axis: int, reverse: bool) -> Any:
    """The cumulative results of an associative operation, in a logarithmic number of steps."""
    if reverse:
        return rev(scanned(combine, rev(x, (axis,)), axis, False), (axis,))
    size = typeof(x).shape[axis]
    if size < 2:
        return x
    # The results for pairs are the odd results. Each even one combines the odd one before with one more element.
    pairs = combine(slice_in_dim(x, 0, size - 1, 2, axis), slice_in_dim(x, 1, size, 2, axis))
    odd = scanned(combine, pairs, axis, False)
    before = odd if size % 2 else slice_in_dim(odd, 0, size // 2 - 1, 1, axis)
    even = combine(before, slice_in_dim(x, 2, size, 2, axis))
    even = concatenate([slice_in_dim(x, 0, 1, 1, axis), even], axis)
    return ops.add(_dilated(even, axis, 0, 1 - size % 2), _dilated(odd, axis, 1, size % 2))


def _dilated(x: Any, axis: int, low: int, high: int) -> Any:
    """`x` with zeros between its elements, and at its ends."""
    config = [(low, high, 1) if i == axis else (0, 0, 0) for i in range(typeof(x).ndim)]
    return pad(x, scalar_like(x, 0), config)


def _cumulative(primitive: Cumulative, operand: Any, axis: int, reverse: bool) -> Any:
    axis, shape = int(axis), typeof(operand).shape
    if axis < 0:
        raise ValueError(f"{primitive.name}: XLA operations do not allow negative axes, got {axis}")
    if axis >= len(shape):
        raise ValueError(f"{primitive.name}: axis {axis} is out of bounds for array of shape {shape}")
    return primitive.bind(operand, axis=axis, reverse=bool(reverse))


cumsum_p = CumSum("cumsum", ops.add)
cumprod_p = CumProd("cumprod", ops.mul, reduce_prod_p)
cummax_p = Cumulative("cummax", ops.max, reduce_max_p)
cummin_p = Cumulative("cummin", ops.min, reduce_min_p)
cumlogsumexp_p = CumLogSumExp("cumlogsumexp", logaddexp)


def cumsum(operand: Array, axis: int = 0, reverse: bool = False) -> Array:
    """Computes the sums of the elements up to each one along `axis` (from each one on, if `reverse`).

    Raises ValueError for an axis out of bounds.

    Example:
        >>> jax.lax.cumsum(jnp.array([1, 2, 3]), reverse=True)
        Array([6, 5, 3], dtype=int32)
    """
    return _cumulative(cumsum_p, operand, axis, reverse)


def cumprod(operand: Array, axis: int = 0, reverse: bool = False) -> Array:
    """Computes the products of the elements up to each one along `axis` (from each one on, if `reverse`).

    Raises ValueError for an axis out of bounds.

    Example:
        >>> jax.lax.cumprod(jnp.array([1, 2, 3]))
        Array([1, 2, 6], dtype=int32)
    """
    return _cumulative(cumprod_p, operand, axis, reverse)


def cummax(operand: Array, axis: int = 0, reverse: bool = False) -> Array:
    """Computes the largest of the elements up to each one along `axis` (from each one on, if `reverse`).

    Raises ValueError for an axis out of bounds.

    Example:
        >>> jax.lax.cummax(jnp.array([1, 3, 2]))
        Array([1, 3, 3], dtype=int32)
    """
    return _cumulative(cummax_p, operand, axis, reverse)


def cummin(operand: Array, axis: int = 0, reverse: bool = False) -> Array:
    """Computes the smallest of the elements up to each one along `axis` (from each one on, if `reverse`).

    Raises ValueError for an axis out of bounds.

    Example:
        >>> jax.lax.cummin(jnp.array([1, 3, 2]), reverse=True)
        Array([1, 2, 2], dtype=int32)
    """
    return _cumulative(cummin_p, operand, axis, reverse)


def cumlogsumexp(operand: Array, axis: int = 0, reverse: bool = False) -> Array:
    """Computes the log of the summed exponentials up to each element along `axis` (from it on, if `reverse`).

    Raises ValueError for an axis out of bounds.

    Example:
        >>> jnp.exp(jax.lax.cumlogsumexp(jnp.log(jnp.array([1.0, 2.0, 3.0])))).round(2)
        Array([1., 3., 6.], dtype=float32)
    """
    return _cumulative(cumlogsumexp_p, operand, axis, reverse)
