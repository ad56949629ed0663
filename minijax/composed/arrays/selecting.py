"""Elementwise selection between arrays."""

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
from minijax.primitives.promote import arrays, check_arraylike, promote_dtypes
from minijax.primitives.reduce import argmax
from minijax.primitives.structural import broadcast_shapes, stack
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
