"""The cumulative distribution function of the normal distribution, its logarithm and its inverse."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.api.custom import custom_jvp
from minijax.base import config, dtypes
from minijax.ir.types import typeof
from minijax.primitives import elementwise as lax, structural
from minijax.primitives.convert import strong
from minijax.primitives.families import scalar_like
from minijax.primitives.promote import promote_args_inexact
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.special.series import polynomial

# Rational approximations, of the highest order first: S. L. Moshier, Cephes, ndtri.c, 1989.
_MIDDLE = (
    (-59.96335010141079, 98.00107541859997, -56.67628574690703, 13.931260938727968, -1.2391658386738125),
    (1.0, 1.9544885833814176, 4.676279128988815, 86.36024213908905, -225.46268785411937, 200.26021238006066,
     -82.03722561683334, 15.90562251262117, -1.1833162112133),
)  # fmt: skip
_NEAR = (
    (4.0554489230596245, 31.525109459989388, 57.16281922464213, 44.08050738932008, 14.684956192885803,
     2.1866330685079025, -0.1402560791713545, -0.03504246268278482, -0.0008574567851546854),
    (1.0, 15.779988325646675, 45.39076351288792, 41.3172038254672, 15.04253856929075, 2.504649462083094,
     -0.14218292285478779, -0.03808064076915783, -0.0009332594808954574),
)  # fmt: skip
_FAR = (
    (3.2377489177694603, 6.915228890689842, 3.9388102529247444, 1.3330346081580755, 0.20148538954917908,
     0.012371663481782003, 0.00030158155350823543, 2.6580697468673755e-06, 6.239745391849833e-09),
    (1.0, 6.02427039364742, 3.6798356385616087, 1.3770209948908132, 0.21623699359449663, 0.013420400608854318,
     0.00032801446468212774, 2.8924786474538068e-06, 6.790194080099813e-09),
)  # fmt: skip

# Bounds: below the first log_ndtr is an asymptotic series, above the second the complement is used.
_LIMITS = {np.dtype(np.float32): (-10.0, 5.0), np.dtype(np.float64): (-20.0, 8.0)}


def _checked(name: str, x: Any) -> Any:
    x = jnp.asarray(x)
    if typeof(x).dtype not in _LIMITS:
        raise TypeError(f"{name}: x.dtype={typeof(x).dtype} is not supported, only float32 and float64.")
    return x


def ndtr(x: ArrayLike) -> Array:
    """Computes the probability that a standard normal variable is at most x.

    Raises TypeError unless x is float32 or float64.
    """
    return _ndtr(_checked("ndtr", x))


def _ndtr(x: Any) -> Any:
    half_root = scalar_like(x, 0.5 * math.sqrt(2.0))
    w = x * half_root
    z = lax.abs(w)
    middle = lax.lt(z, half_root), 1 + lax.erf(w)
    outer = lax.select(lax.gt(w, scalar_like(x, 0)), 2 - lax.erfc(z), lax.erfc(z))
    return 0.5 * lax.select(*middle, outer)


def ndtri(p: ArrayLike) -> Array:
    """Computes the inverse of `ndtr`: the argument with a given probability.

    Raises TypeError unless p is float32 or float64.
    """
    p = _checked("ndtri", p)
    tail = scalar_like(p, math.exp(-2.0))
    upper = p > scalar_like(p, -math.expm1(-2.0))
    q = jnp.where(upper, 1 - p, p)
    q = jnp.where(q == 0, structural.full_like(p, 0.5), q)
    # The central region, between the tails.
    w = q - 0.5
    square = lax.square(w)
    middle = w + w * square * (polynomial(_MIDDLE[0], square) / polynomial(_MIDDLE[1], square))
    middle = middle * -math.sqrt(2 * np.pi)
    z = lax.sqrt(-2 * lax.log(q))
    first = z - lax.log(z) / z
    far = polynomial(_FAR[0], 1 / z) / polynomial(_FAR[1], 1 / z) / z
    near = polynomial(_NEAR[0], 1 / z) / polynomial(_NEAR[1], 1 / z) / z
    far, near = first - far, first - near
    x = jnp.where(q > tail, middle, jnp.where(z >= 8, far, near))
    x = jnp.where(p > scalar_like(p, -math.expm1(-2.0)), x, -x)
    with config.debug_infs(False):  # an intermediate, not a result
        infinity = structural.full_like(p, np.inf)
        is_zero, below = p == 0, lax.neg(infinity)
    return jnp.where(is_zero, below, jnp.where(p == 1, infinity, x))


@functools.partial(custom_jvp, nondiff_argnums=(1,))
def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """Computes `log(ndtr(x))`, the logarithm of a standard normal probability.

    Far below 0 it is an asymptotic series of `series_order` terms, at most 30. Raises TypeError unless x is float32 or
    float64 and the order is an int, ValueError for orders out of bounds.
    """
    if not isinstance(series_order, int):
        raise TypeError("log_ndtr: series_order must be a Python integer.")
    if series_order < 0:
        raise ValueError("log_ndtr: series_order must be non-negative.")
    if series_order > 30:
        raise ValueError("log_ndtr: series_order must be <= 30.")
    x = _checked("log_ndtr", x)
    lower, upper = (scalar_like(x, limit) for limit in _LIMITS[typeof(x).dtype])
    is_large = lax.gt(x, upper)
    probability = _ndtr(jnp.where(is_large, -x, lax.max(x, lower)))
    complement = -probability
    is_middle = lax.gt(x, lower)
    logarithm = lax.log(probability)
    far = _log_ndtr_series(lax.min(x, lower), series_order)
    return jnp.where(is_large, complement, jnp.where(is_middle, logarithm, far))


def _log_ndtr_series(x: Any, order: int) -> Any:
    leading = -0.5 * lax.square(x) - lax.log(-x) - 0.5 * math.log(2 * np.pi)
    if not order:
        return leading + lax.log(scalar_like(x, 1))
    square = power = lax.square(x)
    sums = [structural.full_like(x, 0), structural.full_like(x, 0)]
    for n in range(1, order + 1):
        double_factorial = math.prod(range(1, 2 * n, 2))
        sums[n % 2] = sums[n % 2] + scalar_like(x, double_factorial) / power
        power = power * square
    return leading + lax.log(1 + sums[0] - sums[1])


@log_ndtr.defjvp
def _log_ndtr_jvp(series_order, primals, tangents):
    (x,), (t,) = primals, tangents
    result = log_ndtr(x, series_order)
    density = -0.5 * lax.square(x) - 0.5 * math.log(2 * np.pi)
    return result, lax.mul(t, lax.exp(lax.sub(density, result)))


# Squared abscissas and weights of Gauss's quadrature with 26 points: M. Patefield & D. Tandy, "Fast and accurate
# calculation of Owen's T function", 2000, method T5.
_SQUARES = (0.0035082039676451716, 0.031279042338030756, 0.08526682628321945, 0.16245071730812277,
            0.25851196049125436, 0.3680755384069753, 0.485010929056047, 0.6027751415261857, 0.7147788421775323,
            0.814755109887601, 0.8971102975594897, 0.9572380808594426, 0.991788329746297)  # fmt: skip
_WEIGHTS = (0.018831438115323503, 0.01856708624397765, 0.018042093461223385, 0.017263829606398752,
            0.016243219975989858, 0.014994592034116705, 0.013535474469662087, 0.011886351605820165,
            0.010070377242777432, 0.008113054574229958, 0.006041900952847024, 0.0038862217010742057,
            0.001679303108454609)  # fmt: skip


def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """Computes Owen's T function of real numbers.

    Arguments broadcast. It is the probability that a standard normal variable exceeds `h` while another is between 0
    and `a` times it.
    """
    return _owens_t_impl(*promote_args_inexact("owens_t", h, a))


@custom_jvp
def _owens_t_impl(h: Any, a: Any) -> Any:
    root = math.sqrt(2.0)
    dtype = jnp.promote_types(typeof(h).dtype, dtypes.default_float_dtype())
    squares, weights = (jnp.array(table, dtype) for table in (_SQUARES, _WEIGHTS))
    size, slope = lax.abs(h), lax.abs(a)
    scaled = size / root
    # T is computed for slopes up to 1; greater slopes are reduced to these.
    small_slope = jnp.where(slope <= 1, slope, slope**-1)
    small_size = jnp.where(slope <= 1, size, slope * size)
    core = _owens_t_core(small_size, small_slope, squares, weights)
    left, right = lax.erfc(scaled), lax.erfc(slope * scaled)
    is_steep = slope > 1
    is_near = slope * size <= 0.67
    near = 0.25 - 0.25 * lax.erf(scaled) * lax.erf(slope * scaled) - core
    far = 0.25 * (left + right - left * right) - core
    steep = jnp.where(is_near, near, far)
    whole = jnp.where(is_steep, steep, core)
    result = lax.sign(a) * whole
    return jnp.where(jnp.isnan(a) | jnp.isnan(size), structural.full_like(result, np.nan), result)


def _owens_t_core(h: Any, a: Any, squares: Any, weights: Any) -> Any:
    squares = jnp.expand_dims(squares, tuple(range(typeof(a).ndim)))
    steps = jnp.expand_dims(lax.square(a), -1) * squares
    exponents = -0.5 * jnp.expand_dims(lax.square(h), -1) * (1 + steps)
    integral = a * jnp.dot(lax.exp(exponents) / (1 + steps), weights)
    integral = jnp.where(h == 0, lax.atan(a) / (2 * np.pi), integral)
    is_one = a == 1
    at_one = 0.125 * lax.erfc(-h / math.sqrt(2.0)) * lax.erfc(h / math.sqrt(2.0))
    return jnp.where(is_one, at_one, integral)


@_owens_t_impl.defjvp
def _owens_t_jvp(primals, tangents):
    (h, a), (h_dot, a_dot) = primals, tangents
    result = _owens_t_impl(h, a)
    by_h = -lax.exp(-0.5 * lax.square(h)) * lax.erf(lax.mul(a, h) / math.sqrt(2.0)) / (2 * math.sqrt(2 * np.pi))
    by_a = lax.exp(-0.5 * (lax.square(a) + 1) * lax.square(h)) / (2 * np.pi * (lax.square(a) + 1))
    return result, strong(by_h * h_dot + by_a * a_dot)
