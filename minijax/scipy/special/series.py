"""Helpers of the approximations: polynomials, safe arguments of untaken branches, and precision."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.base import dtypes
from minijax.ir.types import typeof
from minijax.primitives import elementwise as lax, structural
from minijax.primitives.convert import convert_element_type


def polynomial(table: Sequence[complex], x: Any) -> Any:
    """Evaluates the polynomial with these coefficients, of the highest order first, by Horner's method."""
    return jnp.polyval(jnp.array(table, typeof(x).dtype), x)


def rational(tables: Sequence[Sequence[float]], x: Any, factor: Any) -> Any:
    """`factor` times the quotient of the polynomials of two tables; of one table, times its polynomial."""
    result = factor * polynomial(tables[0], x)
    return result / polynomial(tables[1], x) if len(tables) > 1 else result


def eps_of(x: Any) -> Any:
    """The distance from 1 to the next number of the dtype of `x`."""
    return dtypes.finfo(typeof(x).dtype).eps


def safe(inside: Any, x: Any) -> Any:
    """`x` where `inside`, 1 elsewhere, where a branch not taken must not have NaN derivatives."""
    return lax.select(inside, x, structural.full_like(x, 1))


def in_single(function: Callable[[Any], Any], x: Any) -> Any:
    """`function(x)`, computed in single precision if x has less."""
    dtype = typeof(x).dtype
    if dtype.itemsize >= 4:
        return function(x)
    return convert_element_type(function(convert_element_type(x, np.float32)), dtype)
