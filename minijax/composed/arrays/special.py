"""Special functions computed by loops: the incomplete gamma and beta functions.

The series and the continued fraction of the incomplete gamma function are those of S. L. Moshier's Cephes;
their derivatives by the order are carried along, term by term.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.composed.arrays.selecting import floor_divide, remainder
from minijax.higher.while_loop import while_loop
from minijax.ir.types import typeof
from minijax.primitives import moving
from minijax.primitives.convert import convert
from minijax.primitives.elementwise import (
    abs as abs_,
    add,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    digamma,
    exp,
    integer_pow,
    lgamma,
    log,
    log1p,
    mul,
    neg,
    select,
    sub,
)
from minijax.primitives.families import Defined, check_same_dtypes, const_like, full_of
from minijax.primitives.reduce import reduce_or
from minijax.primitives.structural import broadcast_shapes
from minijax.run.arrays.array import Array, ArrayLike

# The quantity to compute: the function, its derivative by the order, or the derivative of a sample by the order.
VALUE, SLOPE, SAMPLE = range(3)
_MOST_TERMS = 2000.0
_F32 = np.dtype(np.float32)


def _epsilon(x: Any) -> Any:
    return const_like(x, dtypes.finfo(typeof(x).dtype).eps)


def _any(flags: Any) -> Any:
    return reduce_or(flags, tuple(range(typeof(flags).ndim)))


def _where(flags: Any, new: Sequence, old: Sequence) -> list:
    return [select(flags, n, o) for n, o in zip(new, old, strict=True)]


def _either(*flags: Any) -> Any:
    """The elementwise `or` of arrays of flags, from first to last."""
    # Flags about weak scalars are weak, as in jax; operators of flags would convert them.
    return functools.reduce(bitwise_or, flags)


def _is_nan(x: Any) -> Any:
    return x != x


def _in_float32(function: Callable) -> Callable:
    """The function, which computes half-precision arguments in float32."""

    def computed(*args):
        dtype = typeof(args[0]).dtype
        if dtype.name not in ("float16", "bfloat16"):
            return function(*args)
        return convert(function(*(convert(x, _F32) for x in args)), dtype)

    return computed


# ---- the incomplete gamma function ------------------------------------------------------------------


def _series(ax: Any, x: Any, a: Any, enabled: Any, want: int) -> Any:
    """P(a, x), or a derivative, as a power series; `ax` is x**a exp(-x) / Gamma(a)."""

    def body(carry):
        enabled, *old = carry
        r, c, ans, x, dc, dans = old
        r = r + 1
        new_dc = dc * (x / r) - c * x / (r * r)
        new_dans = dans + new_dc
        c = c * (x / r)
        ans = ans + c
        change = c / ans if want == VALUE else abs_(new_dc / new_dans)
        going = bitwise_and(enabled, convert(change, typeof(x).dtype, False) > _epsilon(x))
        return going, *_where(enabled, (r, c, ans, x, new_dc, new_dans), old)

    start = enabled, a, full_of(a, 1), full_of(a, 1), x, full_of(a, 0), full_of(a, 0)
    *_, ans, _, _, dans = while_loop(lambda carry: _any(carry[0]), body, start)
    if want == VALUE:
        return ans * ax / a
    slope = ans * (log(x) - digamma(a + 1))
    if want == SLOPE:
        return ax * (slope + dans) / a
    return -(dans + slope) * x / a


def _fraction_step(want: int) -> Callable[[Any], Any]:
    """The loop body that adds a term of the continued fraction to the elements that have not converged."""

    def body(carry):
        enabled, ans, t, y, z, c, pk1, qk1, pk2, qk2, dpk2, dqk2, dpk1, dqk1, dans = carry
        eps = _epsilon(ans)
        c, y, z = c + 1, y + 1, z + 2
        yc = y * c
        pk = pk1 * z - pk2 * yc
        qk = qk1 * z - qk2 * yc
        divides = qk != 0
        r = pk / qk
        t = select(divides, abs_((ans - r) / r), full_of(t, 1))
        new = select(divides, r, ans)
        dpk = dpk1 * z - pk1 - dpk2 * yc + pk2 * c
        dqk = dqk1 * z - qk1 - dqk2 * yc + qk2 * c
        slope = select(divides, (dpk - new * dqk) / qk, dans)
        change = select(divides, abs_(slope - dans), full_of(dans, 1))
        is_large = abs_(pk) > integer_pow(eps, -1)
        pk1, pk, qk1, qk, dpk1, dqk1, dpk, dqk = (
            select(is_large, v * eps, v) for v in (pk1, pk, qk1, qk, dpk1, dqk1, dpk, dqk)
        )
        going = bitwise_and(enabled, (t if want == VALUE else change) > eps)
        first = _where(enabled, (new, t, y, z), carry[1:5])
        rest = _where(enabled, (pk, qk, pk1, qk1, dpk1, dqk1, dpk, dqk, slope), carry[6:])
        return going, *first, c, *rest

    return body


def _fraction(ax: Any, x: Any, a: Any, enabled: Any, want: int) -> Any:
    """1 - P(a, x), or a derivative, as a continued fraction."""
    y = 1 - a
    z = x + y + 1
    pk2, pk1, qk1 = full_of(x, 1), x + 1, z * x
    ans = pk1 / qk1
    t, dpk2, dqk2, dpk1, dqk1 = full_of(x, 1), *(full_of(x, 0) for _ in range(3)), -x
    dans = (dpk1 - ans * dqk1) / qk1

    def going(carry):
        return bitwise_and(carry[5] < _MOST_TERMS, _any(carry[0]))

    start = (enabled, ans, t, y, z, const_like(x, 0), pk1, qk1, pk2, x, dpk2, dqk2, dpk1, dqk1, dans)
    _, ans, *_, dans = while_loop(going, _fraction_step(want), start)
    if want == VALUE:
        return ans * ax
    slope = ans * (log(x) - digamma(a))
    if want == SLOPE:
        return ax * (slope + dans)
    return -((dans + slope) * x)


def _log_ax(a: Any, x: Any) -> tuple[Any, Any]:
    """The logarithm of x**a exp(-x) / Gamma(a), and the mask of where its exponential underflows."""
    log_ax = a * log(x) - x - lgamma(a)
    return log_ax, log_ax < -log(const_like(x, dtypes.finfo(typeof(x).dtype).max))


def _undefined(a: Any, x: Any, a_is_zero: Any, x_is_zero: Any, is_nan: Any) -> Any:
    """The mask of where the functions are undefined: negative arguments, two zeros and NaN."""
    negative = x < full_of(x, 0), a < full_of(a, 0)
    return _either(*negative, a_is_zero & x_is_zero, is_nan)


def _igamma(a: Any, x: Any) -> Any:
    is_nan, x_is_inf = _either(_is_nan(a), _is_nan(x)), x == full_of(x, np.inf)
    a_is_zero, x_is_zero = a == full_of(a, 0), x == full_of(x, 0)
    undefined = _undefined(a, x, a_is_zero, x_is_zero, is_nan)
    by_fraction = (x >= full_of(x, 1)) & (x > a)
    log_ax, underflow = _log_ax(a, x)
    ax = exp(log_ax)
    enabled = ~_either(x_is_zero, undefined, underflow, x_is_inf)
    upper = 1 - _fraction(ax, x, a, enabled & by_fraction, VALUE)
    lower = _series(ax, x, a, enabled & ~by_fraction, VALUE)
    out = select(by_fraction, upper, lower)
    out = select(x_is_zero, full_of(a, 0), out)
    return select(undefined, full_of(a, np.nan), select(x_is_inf, full_of(a, 1), out))


def _igammac(a: Any, x: Any) -> Any:
    is_nan, a_is_zero = _either(_is_nan(a), _is_nan(x)), a == full_of(a, 0)
    x_is_zero, x_is_inf = x == full_of(x, 0), x == full_of(x, np.inf)
    undefined = _undefined(a, x, a_is_zero, x_is_zero, is_nan)
    by_series = (x < full_of(x, 1)) | (x < a)
    log_ax, underflow = _log_ax(a, x)
    enabled = ~_either(undefined, underflow, x_is_inf, a_is_zero)
    ax = exp(log_ax)
    lower = _series(ax, x, a, enabled & by_series, VALUE)
    upper = _fraction(ax, x, a, enabled & ~by_series, VALUE)
    out = select(by_series, 1 - lower, upper)
    out = select(x_is_inf | a_is_zero, full_of(a, 0), out)
    return select(undefined, full_of(a, np.nan), out)


def _by_order(a: Any, x: Any, want: int) -> Any:
    is_nan, x_is_zero = _either(_is_nan(a), _is_nan(x)), x == full_of(x, 0)
    undefined = _either(x < full_of(x, 0), a <= full_of(a, 0))
    by_fraction = bitwise_and(x > full_of(x, 1), x > a)
    log_ax, underflow = _log_ax(a, x)
    ax = exp(log_ax)
    enabled = bitwise_not(_either(x_is_zero, undefined, underflow, is_nan))
    upper = -_fraction(ax, x, a, bitwise_and(enabled, by_fraction), want)
    lower = _series(ax, x, a, bitwise_and(enabled, bitwise_not(by_fraction)), want)
    out = select(by_fraction, upper, lower)
    out = select(x_is_zero, full_of(a, 0), out)
    return select(_either(undefined, is_nan), full_of(a, np.nan), out)


def _density(a: Any, x: Any) -> Any:
    """The derivative of P(a, x) by x."""
    return exp(sub(add(neg(x), mul(sub(a, full_of(a, 1)), log(x))), lgamma(a)))


igamma_grad_a_p = Defined("igamma_grad_a", _in_float32(lambda a, x: _by_order(a, x, SLOPE)), None, None)
igamma_p = Defined(
    "igamma",
    _in_float32(_igamma),
    lambda t, ans, a, x: mul(t, igamma_grad_a(a, x)),
    lambda t, ans, a, x: mul(t, _density(a, x)),
)
igammac_p = Defined(
    "igammac",
    _in_float32(_igammac),
    lambda t, ans, a, x: neg(mul(t, igamma_grad_a(a, x))),
    lambda t, ans, a, x: neg(mul(t, _density(a, x))),
)


def igamma(a: ArrayLike, x: ArrayLike) -> Array:
    """Computes the regularized lower incomplete gamma function P(a, x); NaN for negative arguments.

    Raises TypeError for other dtypes than floats, or if they differ.

    Example:
        >>> jax.lax.igamma(1.0, jnp.array([0.0, 1.0])), 1 - jnp.exp(-1.0)
        (Array([0. , 0.632...], dtype=float32), Array(0.632..., dtype=float32, weak_type=True))
    """
    return igamma_p.bind(a, x)


def igammac(a: ArrayLike, x: ArrayLike) -> Array:
    """Computes the regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x).

    Raises TypeError for other dtypes than floats, or if they differ.

    Example:
        >>> jax.lax.igammac(1.0, jnp.array([0.0, 1.0])), jnp.exp(-1.0)
        (Array([1. , 0.367...], dtype=float32), Array(0.367..., dtype=float32, weak_type=True))
    """
    return igammac_p.bind(a, x)


def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Array:
    """Computes the derivative of `igamma` by `a`, which is not differentiable itself.

    Raises TypeError for other dtypes than floats, or if they differ.

    Example:
        >>> print(jax.lax.igamma_grad_a(2.0, 1.0), (jax.lax.igamma(2.01, 1.0) - jax.lax.igamma(1.99, 1.0)) / 0.02)
        -0.276... -0.276...
    """
    return igamma_grad_a_p.bind(a, x)


def random_gamma_grad(*args: Any) -> Any:
    """Computes the derivative of a sample of a gamma distribution by its shape; `args` are (shape, sample).

    Example:
        >>> implicit = -jax.lax.igamma_grad_a(2.0, 1.0) / jax.scipy.stats.gamma.pdf(1.0, 2.0)
        >>> print(jax.lax.random_gamma_grad(2.0, 1.0), implicit)
        0.750... 0.750...
    """
    shape = broadcast_shapes(*(typeof(x).shape for x in args))
    args = tuple(moving.as_array_or_constant(moving.broadcast_to_shape(x, shape)) for x in args)

    def slope(a, x):
        check_same_dtypes("random_gamma_grad", typeof(a), typeof(x))
        return _by_order(a, x, SAMPLE)

    return _in_float32(slope)(*args)


# ---- the incomplete beta function -------------------------------------------------------------------


def _beta_numerator(i: Any, a: Any, b: Any, x: Any) -> Any:
    """The numerators of the continued fraction: A. R. DiDonato and A. H. Morris, 1992."""
    i = moving.filled(typeof(a).shape, i)
    is_even = remainder(i, full_of(i, 2)) == full_of(i, 0)
    is_first = i == full_of(i, 1)
    m = floor_divide(i - full_of(i, 1), full_of(i, 2))
    at_start, m = m == full_of(m, 0), convert(m, typeof(a).dtype, False)
    one, two = full_of(a, 1), full_of(a, 2)
    second = -(a + b) * x / (a + one)
    top = -(a + m) * (a + b + m) * x
    even = top / ((a + two * m) * (a + two * m + one))
    even = select(at_start, second, even)
    top = m * (b - m) * x
    odd = top / ((a + two * m - one) * (a + two * m))
    return select(is_first, full_of(a, 1), select(is_even, even, odd))


def _beta_fraction(a: Any, b: Any, x: Any, small: float, most: int) -> Any:
    """The continued fraction, by the modified Lentz algorithm: I. J. Thompson and A. R. Barnett, 1986."""
    int_dtype = dtypes.canonicalize_dtype(np.int64)

    def denominator(i):
        i = moving.filled(typeof(a).shape, i)
        return select(i == full_of(i, 0), full_of(a, 0), full_of(a, 1))

    def away(value, least):
        return select(abs_(value) < least, least, value)

    def body(carry):
        a, b, x, i, _, c, d, h = carry
        numerator, below = _beta_numerator(i, a, b, x), denominator(i)
        c = below + numerator / c
        least = full_of(c, small)
        c = away(c, least)
        d = away(below + numerator * d, least)
        d = full_of(d, 1) / d
        factor = c * d
        h = h * factor
        i = i + 1
        left = abs_(factor - full_of(factor, 1)) >= full_of(factor, small)
        return a, b, x, i, _any(left), c, d, h

    def going(carry):
        return (carry[3] < most) & carry[4]

    h = denominator(int_dtype.type(0))
    h = away(h, full_of(h, small))
    start = a, b, x, int_dtype.type(1), np.True_, h, full_of(h, 0), h
    return while_loop(going, body, start)[-1]


def _betainc(a: Any, b: Any, x: Any) -> Any:
    zero = (a == full_of(a, 0)) | (b == full_of(b, np.inf))
    one = (b == full_of(b, 0)) | (a == full_of(a, np.inf))
    at_start, at_end = x == full_of(x, 0), x == full_of(x, 1)
    inside, before_end = ~at_start, ~at_end
    is_nan = _either(_is_nan(a), _is_nan(b), _is_nan(x))
    is_zero = one & before_end | zero & at_start
    is_one = zero & inside | one & at_end
    undefined = _either(*(v < full_of(v, 0) for v in (a, b, x)), x > full_of(x, 1))
    undefined |= zero & one | is_nan
    fast = x < (a + full_of(a, 1)) / (a + b + full_of(a, 2))
    a, b, x = select(fast, a, b), select(fast, b, a), select(fast, x, full_of(x, 1) - x)
    info = dtypes.finfo(typeof(x).dtype)
    h = _beta_fraction(a, b, x, float(info.eps) / 2, 600 if info.dtype == np.float64 else 200)
    short = lgamma(b) - lgamma(a + b)
    log_beta = lgamma(a) + short
    is_small = a < full_of(a, 2 * float(info.tiny))
    small = exp(log1p(-x) * b - short)
    factor = exp(log(x) * a + log1p(-x) * b - log_beta)
    out = h * select(is_small, small, factor / a)
    out = select(fast, out, full_of(out, 1) - out)
    out = select(is_one, full_of(out, 1), select(is_zero, full_of(out, 0), out))
    return select(undefined, full_of(out, np.nan), out)


def _beta_density(t, ans, a, b, x):
    log_beta = sub(add(lgamma(a), lgamma(b)), lgamma(add(a, b)))
    upper = mul(sub(b, const_like(b, 1)), log1p(neg(x)))
    lower = mul(sub(a, const_like(a, 1)), log(x))
    return mul(exp(sub(add(upper, lower), log_beta)), t)


def _no_derivative(*_):
    raise ValueError("betainc: Betainc gradient with respect to a and b not supported.")


regularized_incomplete_beta_p = Defined(
    "regularized_incomplete_beta", _in_float32(_betainc), _no_derivative, _no_derivative, _beta_density
)


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Computes the regularized incomplete beta function. Raises ValueError for a derivative by `a` or `b`.

    Example:
        >>> jax.lax.betainc(2.0, 2.0, jnp.array([0.0, 0.5, 1.0])).round(3)
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    return regularized_incomplete_beta_p.bind(a, b, x)
