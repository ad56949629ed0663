"""The gamma function and functions related to it: Hurwitz's zeta, Kummer's and Gauss's hypergeometric functions."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.api.autodiff import jvp
from minijax.api.custom import custom_jvp
from minijax.api.vmap import vmap
from minijax.base import dtypes
from minijax.composed.arrays import special
from minijax.dispatch.jitted import jitted
from minijax.higher.cond import cond
from minijax.higher.fori_loop import fori_loop
from minijax.higher.scan import scan
from minijax.higher.while_loop import while_loop
from minijax.ir.concrete import concrete_or_error
from minijax.ir.types import typeof
from minijax.numpy.vectorizing import vectorize
from minijax.primitives import bessel, elementwise as lax, structural
from minijax.primitives.families import const_like, is_complex, scalar_like
from minijax.primitives.promote import promote_args_inexact
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.formulas import real
from minijax.scipy.special.series import eps_of


def _bernoulli_fractions(count: int) -> list[Fraction]:
    """The numbers B(0), B(1), ... by their recurrence (NIST DLMF 24.5.3)."""
    numbers = [Fraction(1)]
    for n in range(1, count):
        numbers.append(-sum(math.comb(n + 1, k) * b for k, b in enumerate(numbers)) / (n + 1))
    return numbers


def _summed(x: Any, q: Any) -> Any:
    """The zeta function by the Euler-Maclaurin formula (F. Johansson, arXiv:1309.2877)."""
    x, q = promote_args_inexact("zeta", x, q)
    dtype = np.dtype(typeof(x).dtype)
    # Scalars of the dtype and no Python scalars, beside which weak types would stay.
    count, one = 8 if dtype == np.float32 else 16, dtype.type(1)
    end = dtype.type(count)
    wide_x, wide_q = jnp.expand_dims(x, -1), jnp.expand_dims(q, -1)
    head = jnp.sum((wide_q + np.arange(count, dtype=dtype)) ** -wide_x, -1)
    tail = lax.div((q + end) ** (one - x), x - one)
    edge = (q + end) ** -x
    rising = jnp.cumprod((wide_x + np.arange(2 * count, dtype=dtype)) / (wide_q + end), -1)
    rising = jnp.clip(rising[..., ::2], max=dtypes.finfo(dtype).max)
    numbers = _bernoulli_fractions(2 * count + 1)[2::2]
    scale = np.array([float(math.factorial(2 * k) / b) for k, b in enumerate(numbers, 1)], dtype)
    correction = edge * (0.5 + jnp.sum(rising / np.expand_dims(scale, tuple(range(typeof(x).ndim))), -1))
    return head + tail + correction


@custom_jvp
def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """Computes the Hurwitz zeta function, the sum of `(n + q) ** -x` over n >= 0.

    `q` must be given: with 1 it is the Riemann zeta function. Raises NotImplementedError without `q`.

    Example:
      >>> jax.scipy.special.zeta(2.0, 1.0).round(4)
      Array(1.6449, dtype=float32, weak_type=True)
    """
    if q is None:
        raise NotImplementedError(
            "Riemann zeta function not implemented; pass q != None to compute the Hurwitz Zeta function."
        )
    return bessel.zeta(*promote_args_inexact("zeta", x, q))


zeta.defjvp(functools.partial(jvp, _summed))


def bernoulli(n: int) -> Array:
    """Returns the Bernoulli numbers B(0), ..., B(n), as a vector of floats.

    `n` is static. B(1) is -1/2. Raises ValueError for negative `n`.

    Example:
      >>> jax.scipy.special.bernoulli(2).round(4)
      Array([ 1.        , -0.5       ,  0.16669999], dtype=float32)
    """
    n = concrete_or_error(operator.index, n, "Argument n of bernoulli")
    if n < 0:
        raise ValueError("n must be a non-negative integer.")
    first = jnp.array([1, -1 / 2, 1 / 6])
    if n < 3:
        return first[: n + 1]
    numbers = jnp.zeros(n + 1).at[:3].set(first)
    orders = jnp.arange(4, n + 1, 2, dtype=numbers.dtype)
    products = (1 / np.pi**2) * jnp.cumprod(-(orders - 1) * orders / 4 / np.pi**2)
    sums = jnp.sum(jnp.arange(2, 50, dtype=numbers.dtype)[:, None] ** -orders[None], axis=0)
    return numbers.at[4::2].set(products * (1 + sums))


def gammaln(x: ArrayLike) -> Array:
    """Computes the logarithm of the absolute value of the gamma function.

    Arguments are real; integers become floats. Infinite at zero and the negative integers.

    Example:
      >>> jax.scipy.special.gammaln(1.0)
      Array(4.7683716e-07, dtype=float32, weak_type=True)
    """
    return lax.lgamma(*promote_args_inexact("gammaln", x))


def loggamma(x: ArrayLike) -> Array:
    """Computes the principal branch of the logarithm of the gamma function.

    Arguments may be complex. Real numbers that are not positive give NaN.

    Example:
      >>> jax.scipy.special.loggamma(jnp.array(3.0 + 0j)).real.round(4)
      Array(0.6931, dtype=float32)
    """
    (x,) = promote_args_inexact("loggamma", x)
    if is_complex(x):
        return _complex_loggamma(x)
    logarithm = lax.lgamma(x)
    return jnp.where(lax.gt(x, const_like(x, 0)), logarithm, np.nan)


# Lanczos's coefficients for g = 7: P. Godfrey, "A note on the computation of the convergent Lanczos complex gamma
# approximation", 2001.
_LANCZOS = (0.99999999999980993227684700473478, 676.520368121885098567009190444019, -1259.13921672240287047156078755283,
            771.3234287776530788486528258894, -176.61502916214059906584551354, 12.507343278686904814458936853,
            -0.13857109526572011689554707, 9.984369578019570859563e-6, 1.50563273514931155834e-7)  # fmt: skip


@jitted("_complex_loggamma_scipy")
def _complex_loggamma(z: Any) -> Any:
    outside, z = _without_poles(z)
    # Shifts the argument by this many steps to the right, where the approximation holds.
    steps = jnp.maximum(0, jnp.ceil(0.5 - lax.real(z)).astype(int))

    def step(state):
        i, total = state
        left = i < steps
        factor = jnp.where(left, z + i, structural.full_like(z, 1))
        return i + 1, total + jnp.where(left, lax.log(factor), structural.full_like(z, 0))

    _, logarithms = while_loop(lambda state: jnp.any(state[0] < steps), step, (0, structural.full_like(z, 0)))
    return _nan_where(outside, _lanczos(z + steps) - logarithms)


def _without_poles(z: Any) -> tuple[Any, Any]:
    """(whether z is a pole or NaN, z with 1 in those places)."""
    is_nan = lax.ne(z, z)
    pole = (lax.imag(z) == 0) & (lax.real(z) == lax.floor(lax.real(z))) & (lax.real(z) <= 0)
    outside = pole | is_nan
    return outside, jnp.where(outside, structural.full_like(z, 1), z)


def _nan_where(outside: Any, x: Any) -> Any:
    return jnp.where(outside, scalar_like(x, complex(np.nan, np.nan)), x)


def _lanczos(z: Any) -> Any:
    """The logarithm of the gamma function by Lanczos's approximation, reflected at 0.5."""
    dtype, axes = typeof(z).dtype, tuple(range(typeof(z).ndim))
    coefficients = jnp.array(_LANCZOS, dtype)
    reflected = lax.real(z) < 0.5
    x = jnp.where(reflected, 1 - z, z) - 1
    places = jnp.expand_dims(jnp.arange(1, len(_LANCZOS), dtype=dtype), axes)
    first, rest = coefficients[0], jnp.expand_dims(coefficients[1:], axes)
    series = first + jnp.sum(rest / (jnp.expand_dims(x, -1) + places), axis=-1)
    t = x + 7 + 0.5
    logarithm = math.log(2 * np.pi) / 2 + (x + 0.5) * lax.log(t) - t + lax.log(series)
    inside = jnp.where(reflected, z, structural.full_like(z, 0.5))
    mirrored = lax.log(scalar_like(z, np.pi)) - lax.log(lax.sin(np.pi * inside)) - logarithm
    return jnp.where(reflected, mirrored, logarithm)


@jitted()
def gammasgn(x: ArrayLike) -> Array:
    """Returns the sign of the gamma function.

    NaN at negative integers. Raises ValueError for complex numbers.

    Example:
      >>> jax.scipy.special.gammasgn(jnp.array([-0.5, 0.5]))
      Array([-1.,  1.], dtype=float32)
    """
    (x,) = promote_args_inexact("gammasgn", x)
    if is_complex(x):
        raise ValueError("gammasgn does not support complex-valued inputs.")
    floor, is_negative = lax.floor(x), lax.lt(x, const_like(x, 0))
    pole = (is_negative & lax.eq(x, floor)) | lax.ne(x, x)
    odd = is_negative & (floor % 2 != 0)
    minus = odd | (lax.eq(x, const_like(x, 0)) & jnp.signbit(x))
    return jnp.select([pole, minus], [scalar_like(x, np.nan), scalar_like(x, -1)], scalar_like(x, 1))


def gamma(x: ArrayLike) -> Array:
    """Computes the gamma function.

    Arguments are real; integers become floats. NaN at the negative integers.

    Example:
      >>> jax.scipy.special.gamma(jnp.array([4.0, 5.0])).round(3)
      Array([ 6.0000005, 24.000002 ], dtype=float32)
    """
    (x,) = promote_args_inexact("gamma", x)
    if is_complex(x):
        outside, x = _without_poles(x)
        return _nan_where(outside, lax.exp(_lanczos(x)))
    return gammasgn(x) * lax.exp(lax.lgamma(x))


def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """Computes the factorial as `gamma(n + 1)`, and 0 of negative numbers.

    The result is a float. Raises NotImplementedError for `exact`.

    Example:
      >>> jax.scipy.special.factorial(jnp.array([3, 4])).round(3)
      Array([ 6.0000005, 24.000002 ], dtype=float32)
    """
    if exact:
        raise NotImplementedError("factorial with exact=True")
    (n,) = promote_args_inexact("factorial", n)
    return jnp.where(lax.lt(n, const_like(n, 0)), 0, lax.exp(lax.lgamma(jnp.add(n, 1))))


def digamma(x: ArrayLike) -> Array:
    """Computes the digamma function, the derivative of `gammaln`.

    Arguments are real; integers become floats. NaN at zero and the negative integers.

    Example:
      >>> jax.scipy.special.digamma(1.0).round(4)
      Array(-0.5772, dtype=float32, weak_type=True)
    """
    return lax.digamma(*promote_args_inexact("digamma", x))


def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """Computes the derivative of order `n` of `digamma`.

    `n` is an array of integers that broadcasts with `x`. Raises ValueError for other dtypes.

    Example:
      >>> jax.scipy.special.polygamma(1, 1.0).round(4)
      Array(1.6449, dtype=float32, weak_type=True)
    """
    if not jnp.issubdtype(typeof(n).dtype, np.integer):
        raise ValueError(f"Argument `n` to polygamma must be of integer type. Got dtype {typeof(n).dtype}.")
    return lax.polygamma(*real("polygamma", n, x))


def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """Computes the regularized lower incomplete gamma function.

    `a` is the parameter and `x` the upper limit of the integral; both are real and broadcast.

    Example:
      >>> jax.scipy.special.gammainc(1.0, 1.0).round(4)
      Array(0.6321, dtype=float32, weak_type=True)
    """
    return special.igamma(*promote_args_inexact("gammainc", a, x))


def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """Computes the regularized upper incomplete gamma function, `1 - gammainc(a, x)`.

    `a` is the parameter and `x` the lower limit of the integral; both are real and broadcast.

    Example:
      >>> jax.scipy.special.gammaincc(1.0, 1.0).round(4)
      Array(0.36789998, dtype=float32, weak_type=True)
    """
    return special.igammac(*promote_args_inexact("gammaincc", a, x))


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Computes the regularized incomplete beta function, from 0 to `x` in [0, 1].

    Arguments are real and broadcast. It is differentiable in `x` only.

    Example:
      >>> jax.scipy.special.betainc(1.0, 1.0, 0.25).round(3)
      Array(0.25, dtype=float32, weak_type=True)
    """
    return special.betainc(*real("betainc", a, b, x))


# Coefficients of Stirling's series, of the highest order first: DiDonato & Morris, ACM Algorithm 708, 1992.
_STIRLING = (-0.165322962780713e-02, 0.837308034031215e-03, -0.595202931351870e-03, 0.793650666825390e-03,
             -0.277777777760991e-02, 0.833333333333333e-01)  # fmt: skip


def _log_gamma_ratio(a: Any, b: Any) -> Any:
    """log(gamma(b) / gamma(a + b)) where b >= 8, as Algorithm 708 has it."""
    ratio = a / b
    c, x = ratio / (1.0 + ratio), ratio / (1.0 + ratio)
    d = b + (a - 0.5)
    square = x * x
    sums = [1.0 + (x + square)]
    while len(sums) < len(_STIRLING) - 1:
        sums.append(1.0 + (x + square * sums[-1]))
    t = (1.0 / b) ** 2
    correction = _STIRLING[0] * sums.pop()
    for coefficient in _STIRLING[1:-1]:
        correction = correction * t + coefficient * sums.pop()
    correction = (correction * t + _STIRLING[-1]) * (c / b)
    u, v = d * lax.log1p(a / b), a * (lax.log(b) - 1.0)
    return jnp.where(u <= v, (correction - v) - u, (correction - u) - v)


def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """Computes the logarithm of the absolute value of the beta function.

    Arguments are real and broadcast.

    Example:
      >>> jax.scipy.special.betaln(1.0, 1.0)
      Array(9.536743e-07, dtype=float32, weak_type=True)
    """
    a, b = promote_args_inexact("betaln", a, b)
    a, b = jnp.minimum(a, b), jnp.maximum(a, b)
    small = lax.lgamma(a) + (lax.lgamma(b) - lax.lgamma(a + b))
    large = lax.lgamma(a) + _log_gamma_ratio(a, b)
    return jnp.where(b < 8, small, large)


def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """Computes the beta function, `gamma(a) * gamma(b) / gamma(a + b)`.

    Arguments are real and broadcast.

    Example:
      >>> jax.scipy.special.beta(2.0, 3.0).round(4)
      Array(0.08329999, dtype=float32)
    """
    a, b = promote_args_inexact("beta", a, b)
    return gammasgn(a) * gammasgn(b) * gammasgn(jnp.add(a, b)) * lax.exp(betaln(a, b))


@custom_jvp
def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """Computes the rising factorial `gamma(z + m) / gamma(z)`, and 1 where m is 0.

    Derivatives are valid for positive arguments only.

    Example:
      >>> jax.scipy.special.poch(3.0, 2.0).round(3)
      Array(12.000001, dtype=float32)
    """
    z, m = real("poch", z, m)
    return jnp.where(lax.eq(m, const_like(m, 0)), scalar_like(m, 1), gamma(jnp.add(z, m)) / gamma(z))


poch.defjvps(
    lambda t, _, z, m: (digamma(jnp.add(z, m)) - digamma(z)) * poch(z, m) * t,
    lambda t, _, z, m: digamma(jnp.add(z, m)) * poch(z, m) * t,
)


def multigammaln(a: ArrayLike, d: int) -> Array:
    """Computes the logarithm of the gamma function of dimension `d`.

    `d` is a static int, and `a` must exceed `(d - 1) / 2`.

    Example:
      >>> jax.scipy.special.multigammaln(3.0, 1).round(4)
      Array(0.6931, dtype=float32)
    """
    (a,) = promote_args_inexact("multigammaln", a)
    d = concrete_or_error(int, d, "d argument of multigammaln")
    size, dtype = const_like(a, d), typeof(a).dtype
    constant = lax.mul(lax.mul(const_like(a, 0.25), size), lax.sub(size, const_like(a, 1)))
    constant = lax.mul(constant, lax.log(const_like(a, np.pi)))
    halves = jnp.arange(d, dtype=dtype) / 2
    terms = gammaln(jnp.expand_dims(a, -1) - jnp.expand_dims(halves, tuple(range(typeof(a).ndim))))
    return jnp.sum(terms, axis=-1) + constant


def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:  # noqa: N803
    """Computes the number of ways to choose `k` of `N` things, as a float.

    With `repetition`, which is static, a thing may be chosen again. Arguments broadcast. It does not take `exact`.

    Example:
      >>> jax.scipy.special.comb(5, 2).round(3)
      Array(10., dtype=float32, weak_type=True)
    """
    N, k = promote_args_inexact("comb", N, k)
    if repetition:
        none = jnp.logical_and(jnp.equal(k, 0), jnp.greater_equal(N, 0))
        return jnp.where(none, 1.0, choose(jnp.subtract(jnp.add(N, k), 1), k))
    return choose(N, k)


def choose(n: Any, k: Any) -> Any:
    """Binomial coefficients, 0 unless 0 <= k <= n."""
    holds = jnp.less_equal(k, n) & jnp.greater_equal(n, 0) & jnp.greater_equal(k, 0)
    n, k = jnp.where(holds, n, 0.0), jnp.where(holds, k, 0.0)
    logarithm = gammaln(n + 1) - gammaln(k + 1) - gammaln(n + 1 - k)
    return jnp.where(holds, lax.exp(logarithm), 0.0)


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

    Example:
      >>> jax.scipy.special.hyp1f1(1.0, 1.0, 1.0).round(4)
      Array(2.7182999, dtype=float32)
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


def _is_whole(x: Any, rounded: Any) -> Any:
    return lax.abs(x - rounded) < 50 * eps_of(x)


def _is_fraction(x: Any, rounded: Any) -> Any:
    return lax.abs(x - rounded) >= 50 * eps_of(x)


def _gauss_series(a: Any, b: Any, c: Any, x: Any) -> Any:
    def unsettled(state):
        total, k, term = state
        return (k < _MOST_TERMS) & (lax.abs(term) > eps_of(x) * lax.abs(total))

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
        return (k < _MOST_TERMS) & (lax.abs(term) >= eps_of(x) * lax.abs(total))

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

    Example:
      >>> jax.scipy.special.hyp2f1(1.0, 1.0, 2.0, 0.5).round(4)
      Array(1.3863, dtype=float32)
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


def i0e(x: ArrayLike) -> Array:
    """Computes `exp(-abs(x)) * i0(x)`, which does not overflow.

    Arguments are real; integers become floats.

    Example:
      >>> jax.scipy.special.i0e(0.0)
      Array(1.0000001, dtype=float32, weak_type=True)
    """
    return bessel.bessel_i0e(*promote_args_inexact("i0e", x))


def i0(x: ArrayLike) -> Array:
    """Computes the modified Bessel function of the first kind of order 0.

    Arguments are real; integers become floats.

    Example:
      >>> jax.scipy.special.i0(0.0)
      Array(1.0000001, dtype=float32, weak_type=True)
    """
    (x,) = promote_args_inexact("i0", x)
    return lax.mul(lax.exp(lax.abs(x)), bessel.bessel_i0e(x))


def i1e(x: ArrayLike) -> Array:
    """Computes `exp(-abs(x)) * i1(x)`, which does not overflow.

    Arguments are real; integers become floats.

    Example:
      >>> jax.scipy.special.i1e(0.0)
      Array(0., dtype=float32, weak_type=True)
    """
    return bessel.bessel_i1e(*promote_args_inexact("i1e", x))


def i1(x: ArrayLike) -> Array:
    """Computes the modified Bessel function of the first kind of order 1.

    Arguments are real; integers become floats.

    Example:
      >>> jax.scipy.special.i1(0.0)
      Array(0., dtype=float32, weak_type=True)
    """
    (x,) = promote_args_inexact("i1", x)
    return lax.mul(lax.exp(lax.abs(x)), bessel.bessel_i1e(x))


def _by_recurrence(z: Any, v: int, n_iter: int) -> Any:
    """The Bessel functions of the orders 0 to `v` at a scalar, by Miller's backward recurrence."""

    def step(carry, n):
        before, now, total = carry
        value = 2 * (n + 1.0) * now / z - before
        total = cond(n % 2 == 0, lambda total, x: total + 2 * x, lambda total, _: total, total, value)
        return (now, value, total), value

    start = tuple(scalar_like(z, x) for x in (0, 1e-16, 0))
    (_, _, total), values = scan(step, start, jnp.arange(n_iter + 1, dtype=typeof(z).dtype), reverse=True)
    first, wanted = values[0], values[: v + 1]
    return wanted / (total - first)


@jitted(static=("v", "n_iter"))
def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """Computes Bessel functions of the first kind of the orders 0 to `v`.

    Orders are on a leading axis. `v` is static, and `n_iter` is the number of steps of the backward recurrence.
    Arguments are real. SciPy's `jv` computes one order.

    Example:
      >>> jax.scipy.special.bessel_jn(jnp.array(0.0), v=1)
      Array([nan, nan], dtype=float32)
    """
    (z,) = promote_args_inexact("bessel_jn", jnp.asarray(z))
    if typeof(z).dtype == np.complex128:
        raise ValueError("bessel_jn: complex input not supported.")
    function = functools.partial(_by_recurrence, v=operator.index(v), n_iter=n_iter)
    for _ in range(typeof(z).ndim):
        function = vmap(function)
    return jnp.moveaxis(function(z), -1, 0)
