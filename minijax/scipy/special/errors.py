"""The error function and its kin, the normal distribution, and Fresnel's integrals."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.api.custom import custom_jvp
from minijax.base import config, dtypes
from minijax.dispatch.jitted import jitted
from minijax.ir.types import typeof
from minijax.primitives import elementwise as lax, structural
from minijax.primitives.convert import convert_element_type, strong
from minijax.primitives.families import const_like, is_complex, scalar_like
from minijax.primitives.promote import arrays, promote_args_inexact
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.special.series import in_single, polynomial, rational, safe

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

    Example:
      >>> jax.scipy.special.ndtr(jnp.array([0.0, 1.96])).round(3)
      Array([0.5  , 0.975], dtype=float32)
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

    Example:
      >>> jax.scipy.special.ndtri(jnp.array([0.5, 0.975])).round(2)
      Array([0.       , 1.9599999], dtype=float32)
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

    Example:
      >>> jax.scipy.special.log_ndtr(jnp.array([-20.0])).round(1)
      Array([-203.90001], dtype=float32)
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

    Example:
      >>> jax.scipy.special.owens_t(0.0, 1.0)
      Array(0.125, dtype=float32)
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

    Example:
      >>> jax.scipy.special.erfc(jnp.array([0.0, 1.0])).round(4)
      Array([1.    , 0.1573], dtype=float32)
    """
    return lax.erfc(*promote_args_inexact("erfc", x))


def erfinv(x: ArrayLike) -> Array:
    """Computes the inverse of `erf` on the interval from -1 to 1.

    NaN outside of it. Arguments are real.

    Example:
      >>> jax.scipy.special.erfinv(0.0)
      Array(0., dtype=float32, weak_type=True)
    """
    return lax.erf_inv(*promote_args_inexact("erfinv", x))


def erfcx(x: ArrayLike) -> Array:
    """Computes `exp(x ** 2) * erfc(x)`, which does not underflow for large x.

    Arguments are real; integers become floats.

    Example:
      >>> jax.scipy.special.erfcx(jnp.array([0.0, 100.0])).round(4)
      Array([1.    , 0.0056], dtype=float32)
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

    Example:
      >>> jax.scipy.special.dawsn(jnp.array([0.0, 1.0])).round(4)
      Array([0.    , 0.5381], dtype=float32)
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

    Example:
      >>> jax.scipy.special.wofz(jnp.array(0j)).real
      Array(1.0000001, dtype=float32)
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

    Example:
      >>> jax.scipy.special.fresnel(0.0)
      (Array(0., dtype=float32), Array(0., dtype=float32))
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
