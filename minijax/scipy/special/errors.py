"""The error function and functions related to it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.api.custom import custom_jvp
from minijax.base import dtypes
from minijax.ir.types import typeof
from minijax.primitives import elementwise as lax
from minijax.primitives.convert import convert_element_type
from minijax.primitives.families import const_like, is_complex
from minijax.primitives.promote import arrays, promote_args_inexact
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.special.series import in_single, polynomial, rational, safe

_STEEP = 2 / math.sqrt(math.pi)


def erf(x: ArrayLike) -> Array:
    """Computes the error function.

    Arguments are real; integers become floats. For complex numbers use `wofz`.

    Example:
      >>> jax.scipy.special.erf(jnp.array([0.0, 1.0])).round(4)
      Array([0.    , 0.8427], dtype=float32)
    """
    return lax.erf(*promote_args_inexact("erf", x))


def erfc(x: ArrayLike) -> Array:
    """Computes the complementary error function, `1 - erf(x)`, precisely for large x.

    Arguments are real; integers become floats.
    """
    return lax.erfc(*promote_args_inexact("erfc", x))


def erfinv(x: ArrayLike) -> Array:
    """Computes the inverse of `erf` on the interval from -1 to 1.

    NaN outside of it. Arguments are real.
    """
    return lax.erf_inv(*promote_args_inexact("erfinv", x))


def erfcx(x: ArrayLike) -> Array:
    """Computes `exp(x ** 2) * erfc(x)`, which does not underflow for large x.

    Arguments are real; integers become floats.
    """
    (x,) = promote_args_inexact("erfcx", x)
    if is_complex(x):
        return _wofz(lax.complex(-lax.imag(x), lax.real(x)))
    return _erfcx(x)


@custom_jvp
def _erfcx(x: Any) -> Any:
    return in_single(_erfcx_of_wide, x)


def _erfcx_of_wide(x: Any) -> Any:
    dtype = typeof(x).dtype
    far = x > math.sqrt(math.log(np.finfo(dtype).max))
    near_x = lax.select(far, jnp.ones_like(x), x)
    near = lax.exp(lax.square(near_x)) * lax.erfc(near_x)
    # The asymptotic series in 1 / x ** 2 (NIST DLMF 7.12.1).
    orders = range(4 if dtype == np.float32 else 8, -1, -1)
    series = polynomial([math.prod(range(1, 2 * k, 2)) * (-0.5) ** k for k in orders], 1 / lax.square(x))
    return lax.select(far, series / (x * math.sqrt(math.pi)), near)


_erfcx.defjvps(lambda t, ans, x: t * (2 * x * ans - _STEEP))

# Rational approximations on three intervals, of the highest order first: S. L. Moshier, Cephes, dawsn.c, 1989.
_DAWSN = (
    ((1.1368149897175597e-11, 8.492622676674738e-10, 1.9443420417555306e-08, 9.531517412544844e-07,
      3.078283098749132e-06, 0.00035251336852028877, -0.0008501498467244109, 0.04226182230055466,
      -0.09174803717734524, 1.0),
     (2.403720730667626e-11, 1.488646813684934e-09, 5.212652810105416e-08, 1.2725847827318697e-06,
      2.324902498207895e-05, 0.00032552474182605793, 0.003488058146571626, 0.027944853119882897,
      0.15887424196012057, 0.5749186294893204, 1.0)),
    ((0.5089551564179009, -0.24475441814269785, 0.09415123353035344, -0.021871125514203903, 0.003662076123295692,
      -0.0004232091144603888, 3.5964130479389666e-05, -2.1464035171996896e-06, 9.100107800763914e-08,
      -2.4027452082825098e-09, 3.592333854409284e-11),
     (1.0, -0.6318398698733682, 0.2367067882282487, -0.053180636700322324, 0.008480417185862954,
      -0.0009479967684866654, 7.810255929445524e-05, -4.558751532524426e-06, 1.8910035811142186e-07,
      -4.913246913319206e-09, 7.184664032357345e-11)),
    ((-0.5905928605347732, 0.6292352427243688, -0.17285897538038814, 0.016483704782518965, -0.0004868276130204627),
     (1.0, -2.698200571975449, 1.7327079904594784, -0.3937085822819395, 0.03442789240412334,
      -0.0009736552260409412)),
)  # fmt: skip


def dawsn(x: ArrayLike) -> Array:
    """Computes Dawson's integral: `exp(-x ** 2)` times the integral of `exp(t ** 2)` from 0 to x.

    Arguments are real.
    """
    (x,) = promote_args_inexact("dawsn", x)
    if is_complex(x):
        raise ValueError("dawsn does not support complex-valued inputs.")
    return _dawsn(x)


@custom_jvp
def _dawsn(x: Any) -> Any:
    return in_single(_dawsn_of_wide, x)


def _dawsn_of_wide(x: Any) -> Any:
    sign, x = lax.sign(x), lax.abs(x)
    inverse = 1 / lax.square(x)
    near_x = safe(x < 3.25, x)
    square = lax.square(near_x)
    near = rational(_DAWSN[0], square, near_x)

    def outer(tables, inside):
        u = safe(inside(), inverse)
        half = 0.5 / safe(inside(), x)
        return half * (1 + rational(tables, u, u))

    middle = outer(_DAWSN[1], lambda: (x >= 3.25) & (x < 6.25))
    far = outer(_DAWSN[2], lambda: x >= 6.25)
    is_near, is_middle = x < 3.25, x < 6.25
    return sign * lax.select(is_near, near, lax.select(is_middle, middle, far))


_dawsn.defjvps(lambda t, ans, x: t * (1 - 2 * x * ans))

# Coefficients, of the highest order first, of the expansion in (L + iz) / (L - iz): J. A. C. Weideman, "Computation
# of the complex error function", 1994, with N = 32.
_WEIDEMAN = (
    -1.3034426067909105e-12, 3.741183837373847e-12, 8.030427700497756e-12, -2.154359355749088e-11,
    -5.544244996323793e-11, 1.165824698850374e-10, 4.1537441121999766e-10, -5.231020211492061e-10,
    -3.2080151339721323e-09, 8.124886421653591e-10, 2.3797556530014025e-08, 2.2930438438915445e-08,
    -1.4813078929137642e-07, -4.1840763750512053e-07, 4.2558331397138446e-07, 4.401531731283225e-06,
    6.821031944357515e-06, -2.1409619201999998e-05, -0.0001307544925457942, -0.00024532980270038237,
    0.00039259136070109705, 0.004519541105349309, 0.0190061557848455, 0.05730440352983728, 0.14060716226893755,
    0.2954445107150874, 0.5460139720639338, 0.9019254893648001, 1.345544169234545, 1.8256696296324815,
    2.2635372999002676, 2.5722534081245696,
)  # fmt: skip


def wofz(z: ArrayLike) -> Array:
    """Computes the Faddeeva function, `exp(-z ** 2) * erfc(-1j * z)`.

    The result is always complex.
    """
    (z,) = arrays("wofz", z)
    return _wofz(convert_element_type(z, dtypes.to_complex_dtype(dtypes.to_inexact_dtype(typeof(z).dtype))))


@custom_jvp
def _wofz(z: Any) -> Any:
    imaginary, real = lax.imag(z), lax.real(z)
    upper = imaginary >= 0
    w = lax.select(upper, z, -z)

    def constant(x):
        return lax.complex(const_like(real, x), const_like(real, 0))

    w_real = lax.real(w)
    size = constant(math.sqrt(len(_WEIDEMAN) / math.sqrt(2)))
    iw = lax.complex(-lax.imag(w), w_real)
    below, above = size - iw, size + iw
    series = polynomial(_WEIDEMAN, above / below)
    root = constant(1 / math.sqrt(math.pi))
    result = 2 * series / (below * below) + root / below
    return lax.select(upper, result, 2 * lax.exp(-(z * z)) - result)


@_wofz.defjvp
def _wofz_jvp(primals, tangents):
    (z,), (t,) = primals, tangents
    result = _wofz(z)
    slope = -(2 * z * result)
    slope = slope + lax.complex(const_like(lax.real(z), 0), const_like(lax.real(z), _STEEP))
    return result, t * slope


_wofz_jvp.__name__ = "jvp"
