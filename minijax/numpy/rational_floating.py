"""Common divisors and multiples; mantissas, exponents and the spacing of floating-point numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.calls.custom_derivatives import bind_custom_jvp
from minijax.composed.arrays.selecting import where
from minijax.dispatch.jitted import jitted
from minijax.higher.while_loop import while_loop
from minijax.ir.types import typeof
from minijax.numpy import shaping, ufuncs
from minijax.primitives import elementwise as lax, moving, structural
from minijax.primitives.convert import as_type, bitcast_convert_type, convert
from minijax.primitives.families import const_like, is_complex
from minijax.primitives.promote import arrays, check_out, is_unsigned, promote_args_inexact, promote_dtypes
from minijax.primitives.reduce import reduce_or
from minijax.run.arrays.array import Array, ArrayLike

# ---- integers ----------------------------------------------------------------------------------------


def _integers(name: str, x1: Any, x2: Any) -> list:
    x1, x2 = promote_dtypes(*arrays(name, x1, x2))
    if not dtypes.issubdtype(typeof(x1).dtype, np.integer):
        raise ValueError(f"Arguments to jax.numpy.{name} must be integers, got {typeof(x1).dtype}")
    return [x1, x2]


@jitted()
def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Computes greatest common divisors of integers.

    Arguments broadcast. The result is not negative, and 0 where both are 0. Raises ValueError for other than integers.

    Example:
      >>> jnp.gcd(jnp.array([12, 18]), 8)
      Array([4, 2], dtype=int32)
    """
    x1, x2 = shaping.broadcast_arrays(*_integers("gcd", x1, x2))
    if not is_unsigned(x1):
        x1, x2 = lax.abs(x1), lax.abs(x2)
    return while_loop(_any_left, _euclids_step, (x1, x2))[0]


def _any_left(pair: tuple) -> Any:
    left = as_type(ufuncs.not_equal(pair[1], 0), dtypes.bool_)
    return reduce_or(left, tuple(range(typeof(left).ndim)))


def _euclids_step(pair: tuple) -> tuple:
    x, y = pair
    zero = const_like(y, 0)
    divisor = where(lax.ne(y, zero), y, x)
    rest = where(lax.ne(y, zero), lax.rem(x, y), zero)
    return where(ufuncs.less(divisor, rest), rest, divisor), where(ufuncs.less(divisor, rest), divisor, rest)


@jitted()
def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Computes least common multiples of integers.

    Arguments broadcast. The result is not negative, and 0 where one is 0. Raises ValueError for other than integers.

    Example:
      >>> jnp.lcm(jnp.array([4, 6]), 10)
      Array([20, 30], dtype=int32)
    """
    x1, x2 = _integers("lcm", x1, x2)
    if not is_unsigned(x1):
        x1, x2 = lax.abs(x1), lax.abs(x2)
    divisor = gcd(x1, x2)
    zero = const_like(divisor, 0)
    return where(lax.eq(divisor, zero), zero, ufuncs.multiply(x1, ufuncs.floor_divide(x2, divisor)))


# ---- floating-point numbers --------------------------------------------------------------------------


@ufuncs.promoting(promote_args_inexact)
def frexp(x: ArrayLike, /) -> tuple[Any, Any]:
    """Splits floats into fractions and powers of two.

    Returns a pair: fractions whose absolute values are from 0.5 to 1, or 0, and integer exponents. Integers become
    floats. Raises TypeError for complex numbers.

    Example:
      >>> jnp.frexp(jnp.array([1.0, 10.0]))
      (Array([0.5  , 0.625], dtype=float32), Array([1, 4], dtype=int32))
    """
    if is_complex(x):
        raise TypeError("frexp does not support complex-valued inputs")
    return tuple(bind_custom_jvp(_frexp, _frexp_jvp, (x,), False))


def _frexp(x: Any) -> list:
    dtype = typeof(x).dtype
    info = dtypes.finfo(dtype)
    ints = dtypes.BY_NAME[f"int{info.bits}"]
    mask, bias = ints.type((1 << info.nexp) - 1), ints.type(1 - info.minexp)
    width, zero = ints.type(info.nmant), ints.type(0)
    subnormal = lax.abs(x) < info.tiny
    normal = where(subnormal, x * const_like(x, 1 << info.nmant), x)
    offset = where(subnormal, -width, zero)
    bits = bitcast_convert_type(normal, ints)
    biased = lax.shift_right_arithmetic(bits, width) & mask
    exponent = offset + (biased - bias + 1)
    bits = (bits & ~(mask << width)) | ((bias - ints.type(1)) << width)
    mantissa = bitcast_convert_type(bits, dtype)
    unchanged = ufuncs.isinf(x) | (x != x) | (x == 0)
    exponent = where(unchanged, structural.full_like(exponent, 0), exponent)
    return [where(unchanged, x, mantissa), convert(exponent, np.dtype(np.int32))]


def _frexp_jvp(x: Any, t: Any) -> list:
    mantissa, exponent = frexp(x)
    tangent = t * lax.exp2(-convert(exponent, typeof(mantissa).dtype))
    return [mantissa, exponent, tangent, moving.filled(typeof(exponent).shape, np.zeros((), dtypes.float0)[()])]


@ufuncs.promoting(arrays)
def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Computes `x1 * 2 ** x2` of floats and integers.

    Arguments broadcast. Large exponents are added to those of the floats, without overflow on the way. Raises
    ValueError if `x2` is not an integer, or if `x1` is complex.

    Example:
      >>> jnp.ldexp(0.5, jnp.array([1, 4]))
      Array([1., 8.], dtype=float32)
    """
    kinds = typeof(x1).dtype, typeof(x2).dtype
    exact = dtypes.issubdtype(kinds[1], np.integer) or kinds[1] == np.bool_
    if is_complex(x1) or not exact:
        raise ValueError(f"ldexp not supported for input types {kinds}")
    (x1,) = promote_args_inexact("ldexp", x1)
    dtype = typeof(x1).dtype
    x2 = convert(x2, dtype)
    mantissa, exponent = frexp(x1)
    total = convert(exponent, dtype) + x2
    # One power of two less keeps the largest numbers finite.
    mantissa = where(total > 0, mantissa * 2, mantissa)
    total = where(total > 0, total - 1, total)
    scaled = mantissa * ufuncs.power(2, total)
    return where(ufuncs.isinf(x1) | (x1 == 0), x1, scaled)


@jitted()
def modf(x: ArrayLike, /, out: None = None) -> tuple[Any, Any]:
    """Splits floats into fractional and integral parts, both with the sign of the argument.

    Returns a pair of arrays. `out` must be `None`. Raises TypeError for complex numbers.

    Example:
      >>> jnp.modf(jnp.array([-1.5, 2.25]))
      (Array([-0.5 ,  0.25], dtype=float32), Array([-1.,  2.], dtype=float32))
    """
    (x,) = promote_args_inexact("modf", x)
    check_out("modf", out)
    whole = where(lax.ge(x, const_like(x, 0)), lax.floor(x), lax.ceil(x))
    return x - whole, whole


@ufuncs.promoting(promote_args_inexact, inline=True)
def spacing(x: ArrayLike, /) -> Array:
    """Returns the distance from each float to the next one away from zero.

    It has the sign of the argument. Raises ValueError for complex numbers.

    Example:
      >>> float(jnp.spacing(1.0)) == float(jnp.finfo(jnp.float32).eps)
      True
    """
    if is_complex(x):
        raise ValueError("jnp.spacing is not defined for complex inputs.")
    infinity, info = const_like(x, np.inf), dtypes.finfo(typeof(x).dtype)
    if info.dtype == np.float16:
        return lax.nextafter(x, infinity) - x
    step = lax.nextafter(x, ufuncs.copysign(infinity, x)) - x
    # Subnormal steps may be flushed to zero.
    return where(step == 0, ufuncs.copysign(info.smallest_subnormal, x), step)
