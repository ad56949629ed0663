"""Common divisors and multiples; mantissas, exponents and the spacing of floating-point numbers."""

from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.composed.selecting import where
from minijax.control.custom import bind_custom_jvp
from minijax.control.jitted import jitted
from minijax.control.loops import while_loop
from minijax.ir.types import typeof
from minijax.numpy.shaping import broadcast_arrays
from minijax.numpy.ufuncs import (
    add,
    bitwise_and,
    bitwise_or,
    copysign,
    equal,
    floor_divide,
    greater,
    isinf,
    less,
    multiply,
    not_equal,
    power,
    subtract,
)
from minijax.ops import elementwise as lax
from minijax.ops.convert import as_type, bitcast_convert_type, convert
from minijax.ops.moving import full
from minijax.ops.promote import arrays, is_complex, is_unsigned, like, promote_args_inexact, promote_dtypes
from minijax.ops.reduce import reduce_or
from minijax.ops.shape import full_like

# ---- integers ----------------------------------------------------------------------------------------


def _integers(name: str, x1: Any, x2: Any) -> list:
    x1, x2 = promote_dtypes(*arrays(name, x1, x2))
    if not dtypes.issubdtype(typeof(x1).dtype, np.integer):
        raise ValueError(f"Arguments to jax.numpy.{name} must be integers, got {typeof(x1).dtype}")
    return [x1, x2]


@jitted()
def gcd(x1: Any, x2: Any) -> Any:
    """As `numpy.gcd`."""
    x1, x2 = broadcast_arrays(*_integers("gcd", x1, x2))
    if not is_unsigned(x1):
        x1, x2 = lax.abs(x1), lax.abs(x2)
    return while_loop(_any_left, _euclids_step, (x1, x2))[0]


def _any_left(pair: tuple) -> Any:
    left = as_type(not_equal(pair[1], 0), dtypes.bool_)
    return reduce_or(left, tuple(range(typeof(left).ndim)))


def _euclids_step(pair: tuple) -> tuple:
    x, y = pair
    zero = like(y, 0)
    divisor = where(lax.ne(y, zero), y, x)
    rest = where(lax.ne(y, zero), lax.rem(x, y), zero)
    return where(less(divisor, rest), rest, divisor), where(less(divisor, rest), divisor, rest)


@jitted()
def lcm(x1: Any, x2: Any) -> Any:
    """As `numpy.lcm`."""
    x1, x2 = _integers("lcm", x1, x2)
    if not is_unsigned(x1):
        x1, x2 = lax.abs(x1), lax.abs(x2)
    divisor = gcd(x1, x2)
    return where(lax.eq(divisor, like(divisor, 0)), like(divisor, 0), multiply(x1, floor_divide(x2, divisor)))


# ---- floating-point numbers --------------------------------------------------------------------------


@jitted()
def frexp(x: Any, /) -> tuple[Any, Any]:
    """As `numpy.frexp`."""
    (x,) = promote_args_inexact("frexp", x)
    if is_complex(x):
        raise TypeError("frexp does not support complex-valued inputs")
    return tuple(bind_custom_jvp(_frexp, _frexp_jvp, (x,), False))


def _frexp(x: Any) -> list:
    dtype = typeof(x).dtype
    info = dtypes.finfo(dtype)
    ints = dtypes.BY_NAME[f"int{info.bits}"]
    mask, bias = ints.type((1 << info.nexp) - 1), ints.type(1 - info.minexp)
    width, zero = ints.type(info.nmant), ints.type(0)
    subnormal = less(lax.abs(x), info.tiny)
    normal = where(subnormal, multiply(x, like(x, 1 << info.nmant)), x)
    offset = where(subnormal, -width, zero)
    bits = bitcast_convert_type(normal, ints)
    biased = bitwise_and(lax.shift_right_arithmetic(bits, width), mask)
    exponent = add(offset, add(subtract(biased, bias), 1))
    bits = bitwise_or(bitwise_and(bits, ~(mask << width)), (bias - ints.type(1)) << width)
    mantissa = bitcast_convert_type(bits, dtype)
    unchanged = bitwise_or(bitwise_or(isinf(x), not_equal(x, x)), equal(x, 0))
    exponent = where(unchanged, full_like(exponent, 0), exponent)
    return [where(unchanged, x, mantissa), convert(exponent, np.dtype(np.int32))]


def _frexp_jvp(x: Any, t: Any) -> list:
    mantissa, exponent = frexp(x)
    slope = lax.exp2(lax.neg(convert(exponent, typeof(mantissa).dtype)))
    return [mantissa, exponent, multiply(t, slope), full(typeof(exponent).shape, np.zeros((), dtypes.float0)[()])]


@jitted()
def ldexp(x1: Any, x2: Any, /) -> Any:
    """As `numpy.ldexp`."""
    x1, x2 = arrays("ldexp", x1, x2)
    kinds = typeof(x1).dtype, typeof(x2).dtype
    exact = dtypes.issubdtype(kinds[1], np.integer) or kinds[1] == np.bool_
    if is_complex(x1) or not exact:
        raise ValueError(f"ldexp not supported for input types {kinds}")
    (x1,) = promote_args_inexact("ldexp", x1)
    dtype = typeof(x1).dtype
    x2 = convert(x2, dtype)
    mantissa, exponent = frexp(x1)
    total = add(convert(exponent, dtype), x2)
    # A power of two less keeps the largest numbers finite.
    mantissa = where(greater(total, 0), multiply(mantissa, 2), mantissa)
    total = where(greater(total, 0), subtract(total, 1), total)
    found = multiply(mantissa, power(2, total))
    return where(bitwise_or(isinf(x1), equal(x1, 0)), x1, found)


@jitted()
def modf(x: Any, /, out: None = None) -> tuple[Any, Any]:
    """As `numpy.modf`."""
    (x,) = promote_args_inexact("modf", x)
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.modf is not supported.")
    whole = where(lax.ge(x, like(x, 0)), lax.floor(x), lax.ceil(x))
    return lax.sub(x, whole), whole


@jitted(inline=True)
def spacing(x: Any, /) -> Any:
    """As `numpy.spacing`."""
    (x,) = promote_args_inexact("spacing", x)
    if is_complex(x):
        raise ValueError("jnp.spacing is not defined for complex inputs.")
    infinity, info = like(x, np.inf), dtypes.finfo(typeof(x).dtype)
    if info.dtype == np.float16:
        return subtract(lax.nextafter(x, infinity), x)
    found = subtract(lax.nextafter(x, copysign(infinity, x)), x)
    # Subnormal steps may be flushed to zero.
    return where(equal(found, 0), copysign(info.smallest_subnormal, x), found)
