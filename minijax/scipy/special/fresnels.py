"""The Fresnel integrals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.api.custom import custom_jvp
from minijax.dispatch.jitted import jitted
from minijax.ir.types import typeof
from minijax.primitives import elementwise as lax
from minijax.primitives.convert import convert_element_type
from minijax.primitives.families import is_complex
from minijax.primitives.promote import promote_args_inexact
from minijax.run.arrays.array import ArrayLike
from minijax.scipy.special.series import rational

# Rational approximations of the integrals near 0 and of their auxiliary functions, of the highest order first: S. L.
# Moshier, Cephes, fresnl.c, 1989.
_FRESNEL = (
    ((-2991.8191940101983, 708840.0452577386, -62974148.62058625, 2548908805.7337637, -44297951805.96978,
      318016297876.5678),
     (1.0, 281.3762688899943, 45584.78108065326, 5173438.887700964, 419320245.8981112, 22441179564.534092,
      607366389490.0846)),
    ((-4.9884311457357354e-08, 9.504280628298596e-06, -0.0006451914356839651, 0.018884331939670384,
      -0.20552590095501388, 1.0),
     (3.99982968972496e-12, 9.154392157746574e-10, 1.2500186247959882e-07, 1.2226278902417902e-05,
      0.0008680295429417843, 0.04121420907221998, 1.0)),
    ((0.4215435550436775, 0.1434079197807589, 0.011522095507358577, 0.000345017939782574,
      4.6361374928786735e-06, 3.055689837902576e-08, 1.0230451416490724e-10, 1.7201074326816183e-13,
      1.3428327623306275e-16, 3.763297112699879e-20),
     (1.0, 0.7515863983533789, 0.11688892585919138, 0.0064405152650885865, 0.00015593440916415301,
      1.8462756734893055e-06, 1.1269922476399903e-08, 3.6014002958937136e-11, 5.887545336215784e-14,
      4.5200143407412973e-17, 1.2544323709001127e-20)),
    ((0.5044420736433832, 0.1971028335255234, 0.018764858409257526, 0.0006840793809153931,
      1.1513882611188428e-05, 9.828524436884223e-08, 4.4534441586175015e-10, 1.0826804113902088e-12,
      1.375554606332618e-15, 8.363544356306774e-19, 1.8695871016278324e-22),
     (1.0, 1.4749575992512833, 0.33774898912002, 0.02536037414203388, 0.0008146791071843061,
      1.2754507566772912e-05, 1.0431458965757199e-07, 4.6068072814652043e-10, 1.1027321506624028e-12,
      1.3879653125957886e-15, 8.391588162831187e-19, 1.8695871016278324e-22)),
)  # fmt: skip
# The same in single precision, by polynomials: fresnlf.c.
_FRESNEL_SINGLE = (
    ((1.6476295e-09, -1.5227548e-07, 8.424749e-06, -0.0003120693, 0.0072447276, -0.09228056, 0.5235988),),
    ((1.4168025e-08, -1.1572314e-06, 5.3872234e-05, -0.0016043818, 0.02818489, -0.24673982, 1.0),),
    ((-1903009900000.0, 135594240000.0, -4158143200.0, 73438490.0, -873235.7, 8560.516, -103.28776, 2.9994018),),
    ((-186084400000.0, 12783506000.0, -377938780.0, 6492611.5, -77877.9, 860.29315, -14.934394, 0.9999842),),
)  # fmt: skip


@custom_jvp
def fresnel(x: ArrayLike) -> tuple[Any, Any]:
    """Computes the Fresnel integrals from 0 to x of `sin(pi * t ** 2 / 2)` and of its cosine.

    Returns a pair: the integral of the sine, and of the cosine. Raises NotImplementedError for complex x.
    """
    (x,) = promote_args_inexact("fresnel", x)
    if is_complex(x):
        raise NotImplementedError("Support for complex-valued inputs is not implemented yet.")
    dtype = typeof(x).dtype
    signed = convert_element_type(x, np.float32) if dtype.itemsize < 4 else x
    x = lax.abs(signed)
    square = x * x
    near, middle, far = _integrals(x, square, _FRESNEL if dtype == np.float64 else _FRESNEL_SINGLE)
    is_infinite = jnp.isinf(signed)
    is_near, is_far = square < 2.5625, x > 36974.0
    parts = []
    for i in range(2):
        part = jnp.where(is_near, near[i], jnp.where(is_far, far[i], middle[i]))
        parts.append(jnp.where(is_infinite, 0.5, part))
    sine, cosine = parts
    is_negative = signed < 0
    sine = jnp.where(is_negative, -sine, sine)
    cosine = jnp.where(is_negative, -cosine, cosine)
    if dtype.itemsize < 4:
        return convert_element_type(sine, dtype), convert_element_type(cosine, dtype)
    return sine, cosine


def _integrals(x: Any, square: Any, tables: tuple) -> tuple:
    """The sine and the cosine integral of x > 0: (near 0, in the middle, far from 0)."""
    power = square * square
    cube = x * square
    sine, cosine = rational(tables[0], power, cube), rational(tables[1], power, x)
    sin, cos = _waves(x)
    far: tuple[Any, Any] = 0.5, 0.5
    if tables is _FRESNEL:
        far_cosine = 0.5 + 1 / (math.pi * x) * sin
        far = 0.5 - 1 / (math.pi * x) * cos, far_cosine
    t = math.pi * square
    u = 1.0 / (t * t)
    inverse = 1.0 / t
    f = 1.0 - rational(tables[2], u, u)
    g = rational(tables[3], u, inverse)
    scale = math.pi * x
    middle_cosine = 0.5 + (f * sin - g * cos) / scale
    return (sine, cosine), (0.5 - (f * cos + g * sin) / scale, middle_cosine), far


@jitted("sincospisquaredhalf")
def _waves(x: Any) -> tuple[Any, Any]:
    """sin(pi * x ** 2 / 2) and cos(pi * x ** 2 / 2); x ** 2 is reduced modulo 4 without rounding errors."""
    x = lax.abs(x)
    rest = jnp.fmod(x, 2.0)
    half = rest / 2
    angle = jnp.fmod(rest * (x - half), 2.0)
    first = angle < 0.5
    rising = lax.sin(math.pi * angle)
    last = angle > 1.5
    returning = lax.sin(math.pi * (angle - 2))
    falling = -lax.sin(math.pi * (angle - 1))
    sine = jnp.where(first, rising, jnp.where(last, returning, falling))
    at_zero, before = angle == 0.5, angle < 1
    falling = -lax.sin(math.pi * (angle - 0.5))
    rising = lax.sin(math.pi * (angle - 1.5))
    return sine, jnp.where(at_zero, 0.0, jnp.where(before, falling, rising))


@fresnel.defjvp
def _fresnel_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    result = fresnel(x)
    sin, cos = _waves(x)
    return result, (sin * t, cos * t)
