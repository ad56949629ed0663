"""Kummer's and Gauss's hypergeometric functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.api.custom import custom_jvp
from minijax.base import dtypes
from minijax.dispatch.jitted import jitted
from minijax.higher.cond import cond
from minijax.higher.fori_loop import fori_loop
from minijax.higher.while_loop import while_loop
from minijax.ir.types import typeof
from minijax.numpy.vectorizing import vectorize
from minijax.primitives import elementwise as lax
from minijax.primitives.families import is_complex, scalar_like
from minijax.primitives.promote import promote_args_inexact
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.special.gammas import gamma

_MOST_TERMS = 250


def _series(start: float, term: Any, share: Callable, ratio: Callable) -> Any:
    """start plus the sum of share(k, term_k), where term_(k+1) = ratio(k) * term_k."""

    def unsettled(state):
        total, k, term = state
        few = k < _MOST_TERMS
        return few & (lax.abs(term) / lax.abs(total) > dtypes.finfo(typeof(term).dtype).eps)

    def add_term(state):
        total, k, term = state
        total = total + share(k, term)
        term = term * ratio(k)
        return total, k + 1, term

    return while_loop(unsettled, add_term, (scalar_like(term, start), 1, term))[0]


def _power_series(a: Any, b: Any, x: Any, start: float, share: Callable) -> Any:
    return _series(start, a / b * x, share, lambda k: (a + k) / (b + k) * x / (k + 1))


def _near(a: Any, b: Any, x: Any) -> Any:
    return _power_series(a, b, x, 1, lambda k, term: term)


def _far(a: Any, b: Any, x: Any) -> Any:
    """The asymptotic series: J. W. Pearson, "Computation of hypergeometric functions", 2009, section 3.2."""
    first = (b - a) * (1 - a) / x
    total = _series(1, first, lambda k, term: term, lambda k: (b - a + k) * (1 - a + k) / (k + 1) / x)
    return gamma(b) / gamma(a) * lax.exp(x) * x ** (a - b) * total


@custom_jvp
@jitted()
@vectorize
def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Computes Kummer's confluent hypergeometric function 1F1(a, b, x) of real numbers.

    Arguments broadcast. Raises ValueError for complex ones.
    """
    a, b, x = promote_args_inexact("hyp1f1", a, b, x)
    if is_complex(x):
        raise ValueError("hyp1f1 does not support complex-valued inputs.")
    result = cond(lax.abs(x) < 100, _near, _far, a, b, x)
    case = (a == 0) * 1
    case = case + ((a == b) & (a != 0)) * 2
    case = case + ((b == 0) & (a != 0)) * 3
    return lax.select_n(case, result, scalar_like(x, 1), lax.exp(x), scalar_like(x, np.inf))


@jitted()
@vectorize
def _hyp1f1_a_derivative(a: Any, b: Any, x: Any) -> Any:
    return _power_series(a, b, x, 0, lambda k, term: term * (lax.digamma(a + k) - lax.digamma(a)))


@jitted()
@vectorize
def _hyp1f1_b_derivative(a: Any, b: Any, x: Any) -> Any:
    return _power_series(a, b, x, 0, lambda k, term: term * (lax.digamma(b) - lax.digamma(b + k)))


@jitted()
def _hyp1f1_x_derivative(a: Any, b: Any, x: Any) -> Any:
    return a / b * hyp1f1(a + 1, b + 1, x)


hyp1f1.defjvps(
    lambda t, _, a, b, x: _hyp1f1_a_derivative(a, b, x) * t,
    lambda t, _, a, b, x: _hyp1f1_b_derivative(a, b, x) * t,
    lambda t, _, a, b, x: _hyp1f1_x_derivative(a, b, x) * t,
)


def _eps(x: Any) -> Any:
    return dtypes.finfo(typeof(x).dtype).eps


def _is_whole(x: Any, rounded: Any) -> Any:
    return lax.abs(x - rounded) < 50 * _eps(x)


def _is_fraction(x: Any, rounded: Any) -> Any:
    return lax.abs(x - rounded) >= 50 * _eps(x)


def _gauss_series(a: Any, b: Any, c: Any, x: Any) -> Any:
    def unsettled(state):
        total, k, term = state
        return (k < _MOST_TERMS) & (lax.abs(term) > _eps(x) * lax.abs(total))

    def add_term(state):
        total, k, term = state
        total = total + term
        term = term * ((a + k - 1) * (b + k - 1) / (c + k - 1) / k * x)
        return total, k + 1, term

    return while_loop(unsettled, add_term, tuple(scalar_like(x, n) for n in (0, 1, 1)))[0]


def _gauss_polynomial(a: Any, b: Any, c: Any, x: Any) -> Any:
    """The series where a or b is a non-positive integer: a polynomial."""
    whole = jnp.round(b)
    b_ends_first = (b < a) & (_is_whole(b, whole) & ~((c % 1 == 0) & ((c <= 0) & (c > b))))
    ending, other = jnp.where(b_ends_first, b, a), jnp.where(b_ends_first, a, b)
    degree, one = lax.abs(ending), scalar_like(x, 1)

    def add_term(k, state):
        total, term = state
        term = term * (-(degree - k + 1) / (c + k - 1) * (other + k - 1) / k * x)
        return total + term, term

    return fori_loop(one, degree + 1, add_term, (one, one))[0]


def _gauss_near_one(a: Any, b: Any, c: Any, x: Any) -> Any:
    """The series near 1 where c - a - b is an integer: M. Abramowitz and I. Stegun, 15.3.10 to 15.3.12."""
    d, s = c - a - b, 1 - x
    m, zero = jnp.round(d), scalar_like(x, 0)
    e, above = jnp.where(m >= 0, d, -d), jnp.where(m >= 0, d, zero)
    below, count = jnp.where(m >= 0, zero, d), jnp.where(m >= 0, m, -m).astype(np.int32)
    logarithm = lax.log(s)
    total = lax.digamma(1.0) + lax.digamma(1 + e) - lax.digamma(a + above)
    total = (total - lax.digamma(b + above) - logarithm) / gamma(e + 1)
    factor = (a + above) * (b + above) * s / gamma(e + 2)

    def unsettled(state):
        *_, term, _, k, total = state
        return (k < _MOST_TERMS) & (lax.abs(term) >= _eps(x) * lax.abs(total))

    def add_logarithmic(state):
        a, logarithm, b, above, e, s, factor, _, _, k, total = state
        psi = lax.digamma(1 + k) + lax.digamma(1 + k + e) - lax.digamma(a + k + above)
        psi = psi - lax.digamma(b + k + above) - logarithm
        term = factor * psi
        total = total + term
        factor = factor * (s * (a + k + above) / (k + 1))
        factor = factor * ((b + k + above) / (k + 1 + e))
        return a, logarithm, b, above, e, s, factor, term, psi, k + 1, total

    start = a, logarithm, b, above, e, s, factor, total, scalar_like(x, 0), scalar_like(x, 1), total
    total = while_loop(unsettled, add_logarithmic, start)[-1]
    is_zero = m == 0
    whole = total * gamma(c) / (gamma(a) * gamma(b))

    def add_finite(_, state):
        a, b, below, e, s, term, k, finite = state
        term = term * (s * (a + k + below) * (b + k + below) / (1 - e + k))
        k = k + 1
        term = term / k
        return a, b, below, e, s, term, k, finite + term

    start = a, b, below, e, s, *(scalar_like(x, n) for n in (1, 0, 1))
    finite = fori_loop(1, count, add_finite, start)[-1]
    gamma_c = gamma(c)
    finite = finite * (gamma(e) * gamma_c / (gamma(a + above) * gamma(b + above)))
    total = total * (gamma_c / (gamma(a + below) * gamma(b + below)))
    total = jnp.where(count & 1 != 0, -total, total)
    power = s**m
    return jnp.where(is_zero, whole, jnp.where(m > 0, total * power + finite, total + finite * power))


def _gauss(a: Any, b: Any, c: Any, x: Any) -> Any:
    d = c - a - b
    a_whole, b_whole, d_whole = jnp.round(a), jnp.round(b), jnp.round(d)
    ends = ((a <= 0) & _is_whole(a, a_whole)) | ((b <= 0) & _is_whole(b, b_whole))
    endless = ~ends
    near_one = (x > 0.9) & endless
    case = jnp.where(_is_fraction(d, d_whole), 0, 1)
    case = jnp.where(near_one, case, jnp.where(ends, 2, 0))
    functions = _gauss_series, _gauss_near_one, _gauss_polynomial
    return lax.select_n(case, *(f(a, b, c, x) for f in functions))


@custom_jvp
@jitted()
@vectorize
def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """Computes Gauss's hypergeometric function 2F1(a, b, c, x) of real numbers, for x <= 1.

    The methods are those of Pearson, Olver and Porter, 2017, section 4. Precision is lost where the value is large.
    Infinite where x > 1 and where the series diverges.
    """
    a, b, c, x = promote_args_inexact("hyp2f1", a, b, c, x)
    d, s, ca, cb = c - a - b, 1 - x, c - a, c - b
    whole = jnp.round(d)
    cases = (
        ((x == 0) | (((a == 0) | (b == 0)) & (c != 0)), 0),
        ((c == 0) | ((c < 0) & (c % 1 == 0)), 1),
        ((d <= -1) & ~(_is_fraction(d, whole) & (s < 0)), 2),
        ((d <= 0) & (x == 1), 1),
        ((x < 1) & (b == c), 3),
        ((x < 1) & (a == c), 4),
        (x > 1, 1),
    )
    case = jnp.where(x == 1, 5, 6)
    for holds, number in reversed(cases):
        case = jnp.where(holds, number, case)
    transformed = s**d * _gauss(ca, cb, c, x)
    powers = s**-a, s**-b
    at_one = gamma(c) * gamma(d) / (gamma(ca) * gamma(cb))
    plain = _gauss(a, b, c, x)
    return lax.select_n(case, scalar_like(x, 1), scalar_like(x, np.inf), transformed, *powers, at_one, plain)


def _gauss_sum(a: Any, b: Any, c: Any, x: Any, share: Callable) -> Any:
    return _series(0, a * b / c * x, share, lambda k: (a + k) * (b + k) / (c + k) / (k + 1) * x)


@jitted()
@vectorize
def _hyp2f1_a_derivative(a: Any, b: Any, c: Any, x: Any) -> Any:
    return _gauss_sum(a, b, c, x, lambda k, term: term * (lax.digamma(a + k) - lax.digamma(a)))


@jitted()
@vectorize
def _hyp2f1_b_derivative(a: Any, b: Any, c: Any, x: Any) -> Any:
    return _gauss_sum(a, b, c, x, lambda k, term: term * (lax.digamma(b + k) - lax.digamma(b)))


@jitted()
@vectorize
def _hyp2f1_c_derivative(a: Any, b: Any, c: Any, x: Any) -> Any:
    return _gauss_sum(a, b, c, x, lambda k, term: term * (lax.digamma(c) - lax.digamma(c + k)))


@jitted()
def _hyp2f1_x_derivative(a: Any, b: Any, c: Any, x: Any) -> Any:
    return a * b / c * hyp2f1(a + 1, b + 1, c + 1, x)


hyp2f1.defjvps(
    lambda t, _, a, b, c, x: _hyp2f1_a_derivative(a, b, c, x) * t,
    lambda t, _, a, b, c, x: _hyp2f1_b_derivative(a, b, c, x) * t,
    lambda t, _, a, b, c, x: _hyp2f1_c_derivative(a, b, c, x) * t,
    lambda t, _, a, b, c, x: _hyp2f1_x_derivative(a, b, c, x) * t,
)
