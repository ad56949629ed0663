"""Functions with custom derivative rules: sinc, i0, logaddexp, logaddexp2, log1mexp and logsumexp."""

from __future__ import annotations

from collections.abc import Callable
from math import log as math_log, pi
from typing import Any, Literal, overload

import numpy as np

from minijax.api.autodiff import jvp
from minijax.api.custom import custom_jvp
from minijax.calls.custom_derivatives import bind_custom_jvp
from minijax.composed.arrays import cumulative
from minijax.composed.arrays.selecting import where, where as choose
from minijax.dispatch.jitted import jitted
from minijax.ir.types import typeof
from minijax.numpy import taking
from minijax.numpy.reductions import Axis, canonical_axes, max as largest, static_axis, sum as total
from minijax.numpy.ufuncs import exp, expm1, log, log1p, promoting
from minijax.primitives import bessel, elementwise as lax, moving, structural
from minijax.primitives.convert import as_type, stop_gradient
from minijax.primitives.families import const_like, is_complex, scalar_like
from minijax.primitives.promote import promote_args_inexact
from minijax.run.arrays.array import Array, ArrayLike


@promoting(promote_args_inexact, inline=True, has_body=True)
def logaddexp(x1: Any, x2: Any, /) -> Any:
    """Computes `log(exp(x1) + exp(x2))` without overflow, elementwise.

    Integers become floats. The derivative in an argument of minus infinity is 0, unless both are.

    Example:
      >>> jnp.logaddexp(1000.0, 1000.0)
      Array(1000.6932, dtype=float32, weak_type=True)
    """
    return cumulative.logaddexp(x1, x2)


@promoting(promote_args_inexact, inline=True, has_body=True)
def logaddexp2(x1: Any, x2: Any, /) -> Any:
    """Computes `log2(2 ** x1 + 2 ** x2)` without overflow, elementwise.

    Integers become floats. The derivative in an argument of minus infinity is 0, unless both are.

    Example:
      >>> jnp.logaddexp2(10.0, 10.0)
      Array(11., dtype=float32, weak_type=True)
    """
    return _log2_of_sum(x1, x2)


def _log2_of_sum(x: Any, y: Any) -> Any:
    return bind_custom_jvp(_log2_of_sum_flat, _logaddexp2_jvp, (x, y), False)[0]


def _log2_of_sum_flat(x: Any, y: Any) -> list:
    return [cumulative.logaddexp_to_base(x, y, lax.exp2, _log2_of_one_more, pi / math_log(2), const_like)]


_log2_of_sum_flat.__name__ = "logaddexp2"  # as jaxprs print it


def _log2_of_one_more(x: Any) -> Any:
    log = lax.log1p(x)
    return lax.mul(const_like(log, 1 / math_log(2)), log)


def _logaddexp2_jvp(x: Any, y: Any, tx: Any, ty: Any) -> list:
    return cumulative.logaddexp_to_base_jvp(_log2_of_sum, lax.exp2, x, y, tx, ty)


@promoting(promote_args_inexact)
def sinc(x: ArrayLike, /) -> Array:
    """Computes `sin(pi * x) / (pi * x)`, and 1 at zero, elementwise.

    Integers become floats. Derivatives of all orders are correct at zero.

    Example:
      >>> jnp.sinc(jnp.array([0.0, 1.0])).round(5)
      Array([ 1., -0.], dtype=float32)
    """
    at_zero = x == 0
    angle = pi * x
    safe = where(at_zero, const_like(x, 1), angle)
    series = _series_at_zero(0)(angle)
    return where(at_zero, series, lax.sin(safe) / safe)


def _series_at_zero(k: int) -> Callable:
    """The k-th derivative of sin(x) / x at x = 0."""

    def _sinc_maclaurin(x):
        zero = x * 0
        return [zero if k % 2 else zero + (-1) ** (k // 2) / (k + 1)]

    def _sinc_maclaurin_jvp(x, t):
        return [_series_at_zero(k)(x), _series_at_zero(k + 1)(x) * t]

    return lambda x: bind_custom_jvp(_sinc_maclaurin, _sinc_maclaurin_jvp, (x,), False)[0]


@jitted()
def i0(x: ArrayLike) -> Array:
    """Computes the modified Bessel function of the first kind of order 0, elementwise.

    Integers become floats. Raises ValueError for complex numbers.

    Example:
      >>> jnp.i0(jnp.array([0.0, 1.0])).round(3)
      Array([1.   , 1.266], dtype=float32)
    """
    (x,) = promote_args_inexact("i0", x)
    if is_complex(x):
        raise ValueError(f"Unsupported input type to jax.numpy.i0: {typeof(x).dtype}")
    return bind_custom_jvp(_i0, _i0_jvp, (x,), False)[0]


def _i0(x: Any) -> list:
    x = lax.abs(x)
    return [lax.exp(x) * bessel.bessel_i0e(x)]


def _i0_jvp(x: Any, t: Any) -> list:
    (out,), (slope,) = jvp(_i0, (x,), (t,))
    return [out, where(x == 0, 0.0, slope)]


@custom_jvp
@jitted()
def log1mexp(x: ArrayLike) -> Array:
    """log(1 - exp(-x)) for positive x, accurate near zero too.

    By M. Mächler, "Accurately computing log(1 - exp(-|a|))", 2012.

    Example:
      >>> print(jax.nn.log1mexp(1e-10), jnp.log(1 - jnp.exp(-1e-10)))
      -23.025... -inf
    """
    return taking.where(x < log(2.0), log(-expm1(-x)), log1p(-exp(-x)))


log1mexp.defjvps(lambda t, _, x: t / expm1(x))


def shifted_sum(a: Any, axis: Axis, keepdims: bool, where: Any = None, factors: Any = None) -> tuple[Any, Any]:
    """The sum of `factors * exp(a - shift)`, and the shift: the largest of `a` or of its real part."""
    axes = canonical_axes(static_axis(axis), typeof(a).ndim)
    height = lax.real(a) if is_complex(a) else a
    top = largest(height, axes, keepdims=keepdims, where=where, initial=const_like(height, -np.inf))
    shift = stop_gradient(lax.select(lax.is_finite(top), top, structural.full_like(top, 0)))
    wide_shift = shift if keepdims else moving.expand_dims(shift, axes)
    powers = lax.exp(lax.sub(a, as_type(wide_shift, typeof(a).dtype)))
    if factors is not None:
        powers = powers * factors
    return total(powers, axes, keepdims=keepdims, where=where), shift


@overload
def logsumexp(
    a: ArrayLike, axis: Axis = ..., b: ArrayLike | None = ..., keepdims: bool = ...,
    return_sign: Literal[False] = ..., where: ArrayLike | None = ...,
) -> Array: ...  # fmt: skip
@overload
def logsumexp(
    a: ArrayLike, axis: Axis = ..., b: ArrayLike | None = ..., keepdims: bool = ...,
    *, return_sign: Literal[True], where: ArrayLike | None = ...,
) -> tuple[Array, Array]: ...  # fmt: skip
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Array | tuple[Array, Array]:
    """Computes the logarithm of a sum of exponentials, without overflow.

    Args:
      a: array of exponents.
      axis: axis or tuple of axes to sum over. By default all axes.
      b: array of factors of the exponentials, which broadcasts with `a`. They may be negative.
      keepdims: whether reduced axes stay, with length 1.
      return_sign: whether to return the sign of the sum too. It must be static.
      where: booleans that broadcast to `a`: elements to include. By default all.

    Returns:
      `log(sum(b * exp(a)))`, of a floating or complex dtype: NaN where the sum is negative. With `return_sign` a pair:
      `log(abs(sum))`, and the sign of the sum.

    Differences from SciPy:
      `where` is an addition. The largest exponent is subtracted first, and no gradient passes through it.

    See also: `jax.nn.logsumexp`, `jax.numpy.logaddexp`, `jax.scipy.special.softmax`.

    Example:
      >>> jax.scipy.special.logsumexp(jnp.array([1000.0, 1000.0]))
      Array(1000.6932, dtype=float32)
      >>> jax.scipy.special.logsumexp(jnp.zeros((2, 3)), axis=1)
      Array([1.0986123, 1.0986123], dtype=float32)
    """
    if where is not None:
        a = choose(where, a, 0)
    a, *factors = promote_args_inexact("logsumexp", a) if b is None else promote_args_inexact("logsumexp", a, b)
    if factors:
        a = choose(lax.ne(factors[0], scalar_like(factors[0], 0)), a, -np.inf)
    powers, shift = shifted_sum(a, axis, keepdims, where, *factors)
    sign = lax.sign(powers)
    if return_sign or not is_complex(powers):
        powers = lax.abs(powers)
    result = lax.add(lax.log(powers), as_type(shift, typeof(powers).dtype))
    if return_sign:
        return result, sign
    if factors and not is_complex(a):
        return choose(lax.lt(sign, scalar_like(sign, 0)), scalar_like(result, np.nan), result)
    return result
