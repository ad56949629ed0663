"""The gamma function and functions related to it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.api.custom import custom_jvp
from minijax.composed.arrays import special
from minijax.dispatch.jitted import jitted
from minijax.higher.while_loop import while_loop
from minijax.ir.concrete import concrete_or_error
from minijax.ir.types import typeof
from minijax.primitives import elementwise as lax, structural
from minijax.primitives.families import const_like, is_complex, scalar_like
from minijax.primitives.promote import promote_args_inexact
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.formulas import real


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
    """
    (x,) = promote_args_inexact("gamma", x)
    if is_complex(x):
        outside, x = _without_poles(x)
        return _nan_where(outside, lax.exp(_lanczos(x)))
    return gammasgn(x) * lax.exp(lax.lgamma(x))


def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """Computes the factorial as `gamma(n + 1)`, and 0 of negative numbers.

    The result is a float. Raises NotImplementedError for `exact`.
    """
    if exact:
        raise NotImplementedError("factorial with exact=True")
    (n,) = promote_args_inexact("factorial", n)
    return jnp.where(lax.lt(n, const_like(n, 0)), 0, lax.exp(lax.lgamma(jnp.add(n, 1))))


def digamma(x: ArrayLike) -> Array:
    """Computes the digamma function, the derivative of `gammaln`.

    Arguments are real; integers become floats. NaN at zero and the negative integers.
    """
    return lax.digamma(*promote_args_inexact("digamma", x))


def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """Computes the derivative of order `n` of `digamma`.

    `n` is an array of integers that broadcasts with `x`. Raises ValueError for other dtypes.
    """
    if not jnp.issubdtype(typeof(n).dtype, np.integer):
        raise ValueError(f"Argument `n` to polygamma must be of integer type. Got dtype {typeof(n).dtype}.")
    return lax.polygamma(*real("polygamma", n, x))


def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """Computes the regularized lower incomplete gamma function.

    `a` is the parameter and `x` the upper limit of the integral; both are real and broadcast.
    """
    return special.igamma(*promote_args_inexact("gammainc", a, x))


def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """Computes the regularized upper incomplete gamma function, `1 - gammainc(a, x)`.

    `a` is the parameter and `x` the lower limit of the integral; both are real and broadcast.
    """
    return special.igammac(*promote_args_inexact("gammaincc", a, x))


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Computes the regularized incomplete beta function, from 0 to `x` in [0, 1].

    Arguments are real and broadcast. It is differentiable in `x` only.
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
    """
    a, b = promote_args_inexact("betaln", a, b)
    a, b = jnp.minimum(a, b), jnp.maximum(a, b)
    small = lax.lgamma(a) + (lax.lgamma(b) - lax.lgamma(a + b))
    large = lax.lgamma(a) + _log_gamma_ratio(a, b)
    return jnp.where(b < 8, small, large)


def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """Computes the beta function, `gamma(a) * gamma(b) / gamma(a + b)`.

    Arguments are real and broadcast.
    """
    a, b = promote_args_inexact("beta", a, b)
    return gammasgn(a) * gammasgn(b) * gammasgn(jnp.add(a, b)) * lax.exp(betaln(a, b))


@custom_jvp
def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """Computes the rising factorial `gamma(z + m) / gamma(z)`, and 1 where m is 0.

    Derivatives are valid for positive arguments only.
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
