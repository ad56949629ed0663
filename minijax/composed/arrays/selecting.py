"""Elementwise selection between arrays, and NumPy's floor division and remainder."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.dispatch.jitted import jitted
from minijax.ir.types import typeof
from minijax.primitives import elementwise as lax
from minijax.primitives.convert import cast
from minijax.primitives.families import const_like, is_complex
from minijax.primitives.moving import broadcast_all_to
from minijax.primitives.promote import (
    arrays,
    check_arraylike,
    is_inexact,
    is_unsigned,
    promote_args_numeric,
    promote_dtypes,
)
from minijax.primitives.reduce import argmax
from minijax.primitives.structural import broadcast_shapes, full_like, stack
from minijax.run.arrays.array import Array, ArrayLike


def where(condition: Any, x: Any, y: Any) -> Any:
    """`x` where the condition holds, else `y`, broadcast together."""
    return where_arrays(*arrays("where", condition, x, y))


@jitted("_where")
def where_arrays(condition: Any, x: Any, y: Any) -> Any:
    """As `where`, for arguments that are arrays already."""
    if typeof(condition).dtype != np.bool_:
        condition = lax.ne(condition, const_like(condition, 0))
    x, y = promote_dtypes(x, y)
    shape = broadcast_shapes(*(typeof(v).shape for v in (condition, x, y)))
    if typeof(condition).shape:
        condition, x, y = broadcast_all_to(shape, condition, x, y)
    else:
        x, y = broadcast_all_to(shape, x, y)
    return lax.select(condition, x, y) if prod(shape) else x


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: ArrayLike = 0) -> Array:
    """Takes each element from the first of several arrays whose condition is true.

    `condlist` are boolean arrays and `choicelist` as many arrays; all broadcast. Where no condition is true the result
    is `default`. The dtype is the one that choices and `default` promote to. Raises ValueError for lists of different
    lengths or without elements.

    Example:
      >>> x = jnp.arange(4)
      >>> jnp.select([x < 1, x > 2], [x - 10, x + 10], default=0)
      Array([-10,   0,   0,  13], dtype=int32)
    """
    if len(condlist) != len(choicelist):
        raise ValueError(f"condlist must have length equal to choicelist ({len(condlist)} vs {len(choicelist)})")
    if not len(condlist):
        raise ValueError("condlist must be non-empty")
    check_arraylike("select", *condlist, *choicelist)
    return _select(tuple(arrays("select", *condlist)), tuple(arrays("select", *choicelist, default)))


@jitted(inline=True)
def _select(conditions: tuple, choices: tuple) -> Any:
    *choices, default = choices
    default, *choices = promote_dtypes(default, *choices)
    shape = broadcast_shapes(*(typeof(v).shape for v in (*conditions, *choices, default)))
    # A leading test that is never true selects the default: argmax returns 0 where no other test is true.
    tested = broadcast_shapes(*(typeof(v).shape for v in conditions))
    tests = promote_dtypes(*broadcast_all_to(tested, np.bool_(False), *conditions))
    tests = stack(tests)
    tests = lax.ne(tests, const_like(tests, 0)) if is_complex(tests) else cast(tests, np.dtype(bool))
    first = argmax(tests, 0, dtypes.default_int_dtype())
    return lax.select_n(*broadcast_all_to(shape, first, default, *choices))


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
