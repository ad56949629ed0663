"""Exponential integrals, Spence's function, and the sine and cosine integrals."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.api.custom import custom_jvp
from minijax.dispatch.jitted import jitted
from minijax.higher.while_loop import while_loop
from minijax.ir.types import typeof
from minijax.numpy.vectorizing import vectorize
from minijax.primitives import elementwise as lax
from minijax.primitives.families import is_complex, scalar_like
from minijax.primitives.promote import promote_args_inexact
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.formulas import real
from minijax.scipy.special.series import eps_of, polynomial, rational

# Rational approximations up to 2, 4, 8, 16, 32, 64 and beyond, of the highest order first: S. L. Moshier, Cephes,
# ei.c, 1999.
_EXPI = (
    ((-5.350447357812543, 218.50491688166133, -4176.572384826693, 55411.76756393557, -331338.13311781443,
      1592627.1633849454),
     (1.0, -52.505479591128626, 1259.6161867867906, -17565.495819735348, 149306.2117002726,
      -729494.9239640528, 1592627.1633849454)),
    ((0.019818085032596897, -1.2716456259849176, -2.0881603356812284, 2.7555445091879367, -0.44095070487016,
      0.046656238059358916, -0.0015450426796734852, 7.059980605299618e-05),
     (1.0, 1.4764986709149215, 0.5629177174822436, 0.16990178978793072, 0.02291647179034212,
      0.0044501504397287525, 0.00017274396122065214, 3.953167195549672e-05)),
    ((-1.3732153758712087, -0.7084559133740839, 1.580806855547941, -0.2601500427425623, 0.029946746941137137,
      -0.001038086040188744, 4.371064420753005e-05, 2.141783679522603e-06),
     (1.0, 0.8585231423622028, 0.4483285822873995, 0.07687932158124476, 0.024498682410218877,
      0.0008832165941927797, 0.00045909522995113536, -4.729848351866523e-06, 2.66519553739071e-06)),
    ((-2.1069346016919166, 1.7327338696646881, -0.2423619178935842, 0.02322724180937566,
      0.00023728804404931798, -8.343219561192553e-05, 1.3634087956052505e-05, -3.655412321999254e-07,
      1.4649417339759612e-08, 6.17640786371036e-10),
     (1.0, -0.2298062239901678, 0.11050770414740378, -0.015665429666307924, 0.002761106850817353,
      -0.00020891480122840484, 1.7085289388076754e-05, -4.4593117963566865e-07, 1.3946349303538475e-08,
      6.150865933977338e-10)),
    ((-0.24581193676740204, -0.14833822533220778, 0.07248291795735552, -0.013483156873809405,
      0.001342775069788637, -7.942465637159712e-05, 2.644179518984236e-06, -4.239473659313765e-08),
     (1.0, -0.10442259084438711, -0.26764531281014026, 0.09695000254621984, -0.01601745692712991,
      0.001496414899205908, -8.462452563778485e-05, 2.7289384034767266e-06, -4.239462431819542e-08)),
    ((0.12125611181054567, -0.5823133179043894, 0.2348887314557017, -0.030400343181132484,
      0.0015100821468651906, -2.5231370954995714e-05),
     (1.0, -1.002252150365854, 0.2928709694872224, -0.03337004338674008, 0.0015605448811273888,
      -2.5231370936032347e-05)),
    ((-0.7657847078286127, 0.6886192415566705, -0.2132598113545206, 0.033461075523841935,
      -0.003076541477344756, 0.00017471193164549074, -6.1037116822741705e-06, 1.218032765428652e-07,
      -1.0860761027932903e-09),
     (1.0, -1.8888028686623086, 1.066691687211409, -0.27519159823063805, 0.039308526882338234,
      -0.003414684558602365, 0.00018668443707035555, -6.345146083130515e-06, 1.239754287483207e-07,
      -1.0860761027931265e-09)),
)  # fmt: skip


def _ratio(tables: Sequence, x: Any) -> Any:
    return polynomial(tables[0], x) / polynomial(tables[1], x)


def _expi_near(x: Any) -> Any:
    return x * _ratio(_EXPI[0], x) + np.euler_gamma + lax.log(x)


def _expi_far(tables: Sequence, x: Any) -> Any:
    w = 1 / x
    factor = w * _ratio(tables, w) + 1
    return lax.exp(x) * w * factor


def _expi_of_positive(x: Any) -> Any:
    limits = (0, 2, 4, 8, 16, 32, 64)
    inside = [(x > low) & (x <= high) for low, high in zip(limits, limits[1:], strict=False)]
    return jnp.piecewise(x, inside, [_expi_near, *(functools.partial(_expi_far, tables) for tables in _EXPI[1:])])


@custom_jvp
@jitted()
def expi(x: ArrayLike) -> Array:
    """Computes the exponential integral: the principal value integral of `exp(t) / t` up to x.

    Raises ValueError for complex x.

    Example:
      >>> jax.scipy.special.expi(1.0).round(4)
      Array(1.8951, dtype=float32)
    """
    (x,) = real("expi", x)
    return jnp.piecewise(x, [x < 0], [lambda x: -exp1(-x), _expi_of_positive])


@expi.defjvp
@jitted("expi_jvp")
def expi_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return expi(x), lax.exp(x) / x * t


def exp1(x: ArrayLike) -> Array:
    """Computes the exponential integral of order 1: the integral of `exp(-t) / t` from x to infinity.

    Arguments are real.

    Example:
      >>> jax.scipy.special.exp1(1.0).round(4)
      Array(0.21939999, dtype=float32)
    """
    (x,) = real("exp1", x)
    return expn(1, x)


# The methods of S. L. Moshier, Cephes, expn.c, 1985: a power series, a continued fraction, an asymptotic series.
_LARGE = 1.44115188075855872e17


def _expn_by_powers(x: Any, n: Any) -> Any:
    zero, one = scalar_like(x, 0), scalar_like(x, 1)

    def more(state):
        k, n, _ = state
        return k < n

    def next_psi(state):
        k, n, psi = state
        return k + 1, n, psi + 1 / k

    first = -np.euler_gamma - lax.log(x)
    _, _, psi = while_loop(more, next_psi, (one, n, first))
    other_n = jnp.where(n == 1, scalar_like(x, 2), n)
    z = -x
    pk = 1 - n
    total = jnp.where(n == 1, zero, 1 / (1 - other_n))

    def unsettled(state):
        _, _, change, x, _, _ = state
        return (x > 0) & (change > eps_of(x))

    def add_term(state):
        total, pk, _, x, xk, yk = state
        xk = xk + 1
        yk = yk * (z / xk)
        pk = pk + 1
        total = total + jnp.where(pk != 0, yk / pk, zero)
        change = jnp.where(total != 0, lax.abs(yk / total), one)
        return total, pk, change, x, xk, yk

    total, *_ = while_loop(unsettled, add_term, (total, pk, np.inf, x, zero, one))
    return lax.pow(z, n - 1) * psi / lax.exp(lax.lgamma(n)) - total


def _expn_by_fraction(x: Any, n: Any) -> Any:
    one, zero = scalar_like(x, 1), scalar_like(x, 0)

    def unsettled(state):
        *_, change, x = state
        return (x > 0) & (change > eps_of(x))

    def next_convergent(state):
        result, k, pkm1, pkm2, qkm1, qkm2, r, _, x = state
        k = k + 1
        is_odd = k % scalar_like(x, 2) == 1
        yk = jnp.where(is_odd, one, x)
        xk = jnp.where(is_odd, n + (k - 1) / 2, k / 2)
        pk = pkm1 * yk + pkm2 * xk
        qk = qkm1 * yk + qkm2 * xk
        has_ratio = qk != 0
        r = jnp.where(has_ratio, pk / qk, r)
        change = jnp.where(has_ratio, lax.abs((result - r) / r), one)
        result = jnp.where(has_ratio, r, result)
        is_large = lax.abs(pk) > _LARGE
        scaled = (jnp.where(is_large, value / _LARGE, value) for value in (pk, pkm1, qk, qkm1))
        return result, k, *scaled, r, change, x

    denominator = x + n
    start = 1 / (x + n), one, one, one, denominator, x, zero, scalar_like(x, np.inf), x
    result, *_ = while_loop(unsettled, next_convergent, start)
    return result * lax.exp(-x)


def _expn_of_large_order(x: Any, n: Any) -> Any:
    xk = x + n
    yk = 1 / (xk * xk)
    total = yk * n * (6 * x * x - 8 * n * x + n * n)
    total = yk * (total + n * (n - 2 * x))
    total = yk * (total + n)
    return (total + 1) * lax.exp(-x) / xk


@functools.partial(custom_jvp, nondiff_argnums=(0,))
@jitted()
@vectorize
def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """Computes the exponential integral of order n: the integral of `exp(-x * t) / t ** n` from 1 to infinity.

    `n` is an array of integers that broadcasts with `x`.

    Example:
      >>> jax.scipy.special.expn(2, 0.0)
      Array(0.5, dtype=float32)
    """
    n, x = real("expn", n, x)
    conditions = [(n < 0) | (x < 0), (x == 0) & (n < 2), (x == 0) & (n >= 2), (n == 0) & (x >= 0), n >= 5000, x > 1]
    at_zero = 1 / jnp.where(n == 1, n + n, n)
    values = [np.nan, np.inf, at_zero, lax.exp(-x) / x, _expn_of_large_order, _expn_by_fraction, _expn_by_powers]
    return jnp.piecewise(x, conditions, values, n=n)


@expn.defjvp
@jitted("expn_jvp")
def expn_jvp(n, primals, tangents):
    (x,), (t,) = primals, tangents
    return expn(n, x), lax.mul(lax.neg(t), expn(lax.sub(n, scalar_like(n, 1)), x))


# A rational approximation, of the highest order first: S. L. Moshier, Cephes, spence.c, 1989.
_SPENCE = (
    (4.6512858607399003e-05, 0.007315890452380947, 0.13384763957830903, 0.8796913117545303,
     2.7114985119655346, 4.256971560081218, 3.297713409852251, 1.0),
    (0.0006909904889125533, 0.02540437639325444, 0.2829748606025681, 1.4117259775183106, 3.6380053334513707,
     5.03278880143317, 3.547713409852251, 1.0),
)  # fmt: skip


def _spence(x: Any) -> Any:
    is_large = x > 2
    x = jnp.piecewise(x, [is_large], [lambda x: 1 / x, lambda x: x])
    above, below = x > 1.5, x < 0.5
    is_inverse = is_large | above
    w = jnp.piecewise(x, [above, below], [lambda x: 1 / x - 1, lambda x: -x, lambda x: x - 1])
    y = rational(_SPENCE, w, -w)
    y = jnp.where(below, np.pi**2 / 6 - lax.log(x) * lax.log(1 - x) - y, y)
    return jnp.where(is_inverse, -0.5 * lax.log(x) ** 2 - y, y)


def spence(x: Array) -> Array:
    """Computes Spence's function, the dilogarithm of `1 - x`.

    Raises TypeError unless x is float32 or float64.

    Example:
      >>> jax.scipy.special.spence(1.0)
      Array(0., dtype=float32)
    """
    x = jnp.asarray(x)
    if typeof(x).dtype not in (np.float32, np.float64):
        raise TypeError(f"spence: x.dtype={typeof(x).dtype} is not supported, only float32 and float64.")
    return jnp.piecewise(x, [x < 0, x == 1, x == 0], [np.nan, 0, np.pi**2 / 6, _spence])


# Rational approximations of the sine and cosine integrals near 0 and of their auxiliary functions below 8 and beyond,
# of the highest order first: S. L. Moshier, Cephes, sici.c, 1989.
_SICI = (
    ((-8.391678279103039e-11, 4.625917144270128e-08, -9.757593038436328e-06, 0.0009769454381704354,
      -0.04134703162294066, 1.0),
     (2.0326926619595193e-12, 1.279978911799433e-09, 4.418278428012189e-07, 9.964121220438756e-05,
      0.01420852393261499, 1.0)),
    ((2.0252400238910228e-11, -1.3524950491579076e-08, 3.593250514199931e-06, -0.0004740072068734079,
      0.028915965260755523, -1.0),
     (4.077460400618806e-12, 3.067809975818878e-09, 1.2321035568588342e-06, 0.00031744202477503275,
      0.051002805623644606, 4.0)),
    ((4.236128628922166, 5.4593771716181285, 1.6208328770153833, 0.16700661183132304, 0.006810201324725182,
      0.00010893658065032867, 5.489002234213736e-07),
     (1.0, 8.16496634205391, 7.308288225055645, 1.867922579501842, 0.1787920529631499, 0.007017106683227897,
      0.00011003435715391573, 5.489002527562557e-07)),
    ((0.08710016989731142, 0.6113791099522193, 0.3971802963923375, 0.07485277376284691, 0.005388686814621773,
      0.00016199979459893403, 1.9796387414096365e-06, 7.825790407440903e-09),
     (1.0, 1.6440220241335535, 0.666296701268988, 0.09887717612776888, 0.006223963454417684,
      0.0001732210814741771, 2.0265918208634397e-06, 7.825792189335346e-09)),
    ((0.4558808734704653, 0.7137152741001467, 0.16030015822231947, 0.01160642294081244,
      0.00034955644244785906, 4.8621543082645475e-06, 3.200927900910049e-08, 9.41779576128513e-11,
      9.70507110881952e-14),
     (1.0, 0.9174636118736841, 0.17868554533207454, 0.012225359477197129, 0.00035869648188185157,
      4.924350643178815e-06, 3.21956939101046e-08, 9.437205903502767e-11, 9.70507110881952e-14)),
    ((0.6973599534432762, 0.33041097930563207, 0.03848787676499743, 0.001717182390523479,
      3.4894116550227946e-05, 3.471311670841167e-07, 1.7040445278204452e-09, 3.859459254302766e-12,
      3.1404009894636335e-15),
     (1.0, 1.6854889881101165, 0.48785225869530496, 0.04679131942596258, 0.0019028442667439953,
      3.684755044425611e-05, 3.5704322344374083e-07, 1.7269374896631615e-09, 3.878301660239547e-12,
      3.1404009894636335e-15)),
)  # fmt: skip


@custom_jvp
@jitted()
def sici(x: ArrayLike) -> tuple[Any, Any]:
    """Computes the sine and cosine integrals of real numbers.

    Returns a pair of arrays. Raises ValueError for complex numbers.

    Example:
      >>> jax.scipy.special.sici(0.0)[0]
      Array(0., dtype=float32)
    """
    (x,) = promote_args_inexact("sici", x)
    if is_complex(x):
        raise ValueError(f"Argument `x` to sici must be real-valued. Got dtype {typeof(x).dtype}.")
    signed, x = x, lax.abs(x)
    sine, cosine = _sici_series(x)
    wave_sine, wave_cosine = _sici_waves(x)
    far_sine, far_cosine = np.pi / 2 - lax.cos(x) / x, lax.sin(x) / x
    far_sine = jnp.where(x == np.inf, np.pi / 2, far_sine)
    far_cosine = jnp.where(x == np.inf, 0.0, far_cosine)
    intervals = [x <= 4, (x > 4) & (x <= 1e9)]
    sine = jnp.select(intervals, [sine, wave_sine], far_sine)
    cosine = jnp.select(intervals, [cosine, wave_cosine], far_cosine)
    return lax.sign(signed) * sine, jnp.where(signed == -np.inf, np.nan, cosine)


def _sici_series(x: Any) -> tuple[Any, Any]:
    at_zero = x == 0
    square = x * x
    sine = rational(_SICI[0], square, x)
    sine = jnp.where(at_zero, 0.0, sine)
    at_zero = x == 0
    square = x * x
    cosine = np.euler_gamma + lax.log(x)
    cosine = cosine + rational(_SICI[1], square, square)
    return sine, jnp.where(at_zero, -np.inf, cosine)


def _sici_waves(x: Any) -> tuple[Any, Any]:
    sin, cos, z = lax.sin(x), lax.cos(x), 1 / (x * x)
    auxiliary = []
    for first, second in (_SICI[2:4], _SICI[4:6]):
        f = polynomial(first[0], z) / (x * polynomial(first[1], z))
        auxiliary.append((f, rational(second, z, z)))
    is_near = x < 8
    f, g = (jnp.where(is_near, near, far) for near, far in zip(*auxiliary, strict=True))
    return np.pi / 2 - f * cos - g * sin, f * sin - g * cos


@sici.defjvp
@jitted("sici_jvp")
def sici_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    result = sici(x)
    by_sine, by_cosine = jnp.sinc(x / np.pi), lax.cos(x) / x
    return result, (by_sine * t, by_cosine * t)
