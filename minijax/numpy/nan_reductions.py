"""Reductions that skip NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.base.documentation import filled
from minijax.base.dtypes import DTypeLike
from minijax.base.util import named
from minijax.composed.arrays.selecting import where as choose
from minijax.dispatch.jitted import jitted
from minijax.ir.types import typeof
from minijax.numpy import ufuncs
from minijax.numpy.reductions import (
    IN_ROWS,
    all,
    argmax,
    argmin,
    checked_mask,
    max,
    mean,
    min,
    position_function,
    prod,
    squared,
    sum,
    variance_types,
)
from minijax.primitives import elementwise as lax, reduce as lax_reduce
from minijax.primitives.families import const_like, scalar_like
from minijax.primitives.promote import arrays, as_type, check_out, is_inexact
from minijax.run.arrays.array import Array, ArrayLike, Axis


def _without_nan(a: Any, value: Any) -> Any:
    return choose(lax.ne(a, a), scalar_like(a, value), a)


def _nan_total(name: str, reduce: Callable, unit: int, what: str) -> Callable:
    def function(
        a: ArrayLike,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """Computes the {what} of the elements that are not NaN, of all or along axes.

        It is {unit} where all are NaN. `initial` is a scalar to start with, and `where` selects elements. `axis` and
        `dtype` are static. `out` must be `None`.
        """
        check_out(name, out)
        (a,), where = arrays(name, a), checked_mask(name, where)
        return reduce(_without_nan(a, unit) if is_inexact(a) else a, axis, dtype, None, keepdims, initial, where)

    return jitted(static=("axis", "dtype", "keepdims"))(
        named(function, name, filled(function, dict(what=what, unit=unit)))
    )


nansum, nanprod = _nan_total("nansum", sum, 0, "sum"), _nan_total("nanprod", prod, 1, "product")


def _nan_extremum(name: str, reduce: Callable, highest: bool) -> Callable:
    def function(
        a: ArrayLike,
        axis: Axis = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """Returns the {most} of the elements that are not NaN, of all or along axes.

        It is NaN where all elements are, without a warning. `initial` is a scalar to compare with too, and `where`
        selects elements. `axis` is static. `out` must be `None`.
        """
        check_out(name, out)
        (a,), where = arrays(name, a), checked_mask(name, where)
        if not is_inexact(a):
            return reduce(a, axis, None, keepdims, initial, where)
        worst = lax_reduce.lowest(typeof(a).dtype, highest)
        extremum = reduce(_without_nan(a, worst), axis, None, keepdims, initial, where)
        if initial is not None:
            return extremum
        return choose(all(lax.ne(a, a), axis, keepdims=keepdims), const_like(a, np.nan), extremum)

    doc = filled(function, dict(most="smallest" if highest else "largest"))
    return jitted(static=("axis", "keepdims"))(named(function, name, doc))


nanmax = _nan_extremum("nanmax", max, False)


nanmin = _nan_extremum("nanmin", min, True)


def _nan_place(name: str, find: Callable, worst: float, what: str, example: str) -> Callable:
    @jitted(f"_{name}", static=("axis", "keepdims"))
    def search(a, axis, keepdims):
        if not is_inexact(a):
            return find(a, axis, keepdims=keepdims)
        nans = lax.ne(a, a)
        index = find(choose(nans, worst, a), axis, keepdims=keepdims)
        return choose(all(nans, axis, keepdims=keepdims), -1, index)

    return position_function(name, search, what, "NaN is left out; it is -1 where all are NaN.", example)


nanargmax = _nan_place("nanargmax", argmax, -np.inf, "largest", IN_ROWS("1, 0"))


nanargmin = _nan_place("nanargmin", argmin, np.inf, "smallest", IN_ROWS("2, 1"))


@jitted(static=("axis", "dtype", "keepdims"))
def nanmean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """Computes the mean of the elements that are not NaN, of all or along axes.

    It is NaN where all elements are, without a warning. `where` selects elements. `out` must be `None`.

    Example:
      >>> jnp.nanmean(jnp.array([1.0, jnp.nan, 3.0]))
      Array(2., dtype=float32)
    """
    check_out("nanmean", out)
    (a,), where = arrays("nanmean", a), checked_mask("nanmean", where)
    dtype = dtypes.requested_dtype(dtype, "mean")
    if not is_inexact(a):
        return mean(a, axis, dtype, None, keepdims, where=where)
    result = typeof(a).dtype if dtype is None else dtype
    count = sum(lax.bitwise_not(lax.ne(a, a)), axis, result, keepdims=keepdims, where=where)
    return lax.div(nansum(a, axis, dtype=result, keepdims=keepdims, where=where), count)


@jitted(static=("axis", "dtype", "keepdims"))
def nanvar(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None, ddof: int = 0,
           keepdims: bool = False, where: ArrayLike | None = None, mean: ArrayLike | None = None) -> Array:  # fmt: skip
    """Computes the variance of the elements that are not NaN, of all or along axes.

    Sums are divided by the number of elements less `ddof`; the result is NaN where this is not positive, without a
    warning. `where` selects elements, and `mean` is a known mean. `out` must be `None`.
    """
    check_out("nanvar", out)
    (a,), where = arrays("nanvar", a), checked_mask("nanvar", where)
    computed, result = variance_types("nanvar", typeof(a).dtype, dtypes.requested_dtype(dtype, "nanvar"))
    a = as_type(a, computed)
    if mean is None:
        mean = nanmean(a, axis, dtype=computed, keepdims=True, where=where)
    squares = squared(choose(lax.ne(a, a), 0, ufuncs.subtract(a, mean)))
    count = sum(lax.bitwise_not(lax.ne(a, a)), axis, keepdims=keepdims, where=where)
    count = ufuncs.subtract(count, ddof)
    few = lax.le(count, scalar_like(count, 0))
    total = choose(few, np.nan, sum(squares, axis, keepdims=keepdims, where=where))
    return as_type(lax.div(total, as_type(choose(few, 1, count), typeof(total).dtype)), result)


@jitted(static=("axis", "dtype", "keepdims"))
def nanstd(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None, ddof: int = 0,
           keepdims: bool = False, where: ArrayLike | None = None, mean: ArrayLike | None = None) -> Array:  # fmt: skip
    """Computes the standard deviation of the elements that are not NaN, of all or along axes.

    It is the square root of `nanvar`, with the same arguments.
    """
    check_out("nanstd", out)
    where = checked_mask("nanstd", where)
    dtype = dtypes.requested_dtype(dtype, "nanstd")
    return lax.sqrt(nanvar(a, axis, dtype=dtype, ddof=ddof, keepdims=keepdims, where=where, mean=mean))
