"""NumPy's floor division and remainder, which rules and samplers also use."""

from __future__ import annotations

from typing import Any

from minijax.composed.arrays.selecting import where
from minijax.dispatch.jitted import jitted
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like, is_complex
from minijax.primitives.promote import is_inexact, is_unsigned, promote_args_numeric, promote_dtypes
from minijax.primitives.structural import full_like
from minijax.run.arrays.array import Array, ArrayLike


@jitted()
def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Divides and rounds down to integers, elementwise.

    The dtype is the one that the arguments promote to. An integer divided by 0 gives a meaningless number, without an
    error. Raises TypeError for complex numbers.

    Example:
      >>> jnp.floor_divide(jnp.array([7, -7]), 3)
      Array([ 2, -3], dtype=int32)
    """
    x1, x2 = promote_args_numeric("floor_divide", x1, x2)
    if is_complex(x1):
        raise TypeError("floor_divide does not support complex-valued inputs")
    if is_inexact(x1):
        return float_divmod(x1, x2)[0]
    quotient = lax.div(x1, x2)
    if is_unsigned(x1):
        return quotient
    differ = lax.ne(lax.sign(x1), lax.sign(x2))
    inexact = lax.ne(*promote_dtypes(lax.rem(x1, x2), 0))
    down = lax.bitwise_and(*promote_dtypes(differ, inexact))
    return where(down, lax.sub(*promote_dtypes(quotient, 1)), quotient)


def float_divmod(x1: Any, x2: Any) -> tuple[Any, Any]:
    """Quotient, rounded down, and remainder of floats of the same dtype."""
    rest = lax.rem(x1, x2)
    quotient = lax.div(where(lax.eq(x2, const_like(x2, 0)), x1, lax.sub(x1, rest)), x2)
    inexact = lax.ne(rest, const_like(rest, 0))
    down = lax.bitwise_and(inexact, lax.ne(lax.sign(x2), lax.sign(rest)))
    rest = lax.select(down, lax.add(rest, x2), rest)
    quotient = lax.select(down, lax.sub(*promote_dtypes(quotient, 1)), quotient)
    return lax.round_p.bind(quotient, rounding_method=0), rest


@jitted()
def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Computes the remainder of a division that rounds down, elementwise.

    It has the sign of `x2`. An integer modulo 0 gives 0, without an error. The operator `%` is this function.

    Example:
      >>> jnp.remainder(jnp.array([7, -7]), 3)
      Array([1, 2], dtype=int32)
    """
    x1, x2 = promote_args_numeric("remainder", x1, x2)
    zero = const_like(x1, 0)
    if not is_inexact(x1):
        x2 = where(lax.eq(x2, zero), full_like(x2, 1), x2)
    rest = lax.rem(x1, x2)
    inexact = lax.ne(rest, zero)
    differ = lax.ne(lax.lt(rest, zero), lax.lt(x2, zero))
    return lax.select(lax.bitwise_and(differ, inexact), lax.add(rest, x2), rest)
