"""Cumulative sums and products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.base import dims, dtypes
from minijax.base.documentation import filled
from minijax.base.dtypes import DTypeLike
from minijax.base.errors import ShardingTypeError
from minijax.base.util import named
from minijax.composed.arrays import cumulative
from minijax.composed.arrays.selecting import where
from minijax.dispatch.fused import fused
from minijax.dispatch.jitted import jitted
from minijax.ir.types import typeof
from minijax.numpy.reductions import static_axis
from minijax.numpy.ufuncs import truth
from minijax.primitives import elementwise as lax, moving, structural
from minijax.primitives.convert import as_type
from minijax.primitives.families import scalar_like
from minijax.primitives.promote import arrays, check_arraylike, check_out
from minijax.run.arrays.array import Array, ArrayLike


def _accumulate(name: str, op: Callable, start: int, skips_nan: bool, promotes: bool = False) -> Callable:
    """The jitted core of a cumulative function."""

    @jitted(name, static=("axis", "dtype"))
    def core(a, axis=None, dtype=None):
        if axis is None:
            if typeof(a).is_sharded:
                raise ShardingTypeError(
                    f"{name}: The input should be fully replicated where axis is None, but it is {typeof(a).text}"
                )
            a, axis = moving.reshape(a, (typeof(a).size,)), 0
        axis = dims.canonical_axis(axis, typeof(a).ndim)
        if skips_nan:
            a = where(lax.ne(a, a), scalar_like(a, start), a)
        return _promoted(op, a, axis, dtype, promotes)

    return core


def _promoted(op: Callable, a: Any, axis: int, dtype: Any, promotes: bool) -> Any:
    have = typeof(a).dtype
    if dtype == np.bool_:
        return as_type(op(as_type(truth(a), dtypes.default_int_dtype()), axis), dtype)
    return op(as_type(a, _dtype_of(have, dtype, promotes)), axis)


def _dtype_of(have: Any, dtype: Any, promotes: bool) -> Any:
    if dtype is not None:
        return dtype
    if have == np.bool_ or promotes and dtypes.issubdtype(have, np.signedinteger):
        return dtypes.default_int_dtype()
    if promotes and dtypes.issubdtype(have, np.unsignedinteger):
        return dtypes.default_uint_dtype()
    return dtypes.available(have, "convert_element_type")


def _cumulative(name: str, op: Callable, start: int, what: str, result: str, skips_nan: bool = False) -> Callable:
    core = _accumulate(name, op, start, skips_nan)

    def function(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
        """Computes the {what} of the first elements along an axis: of one, of two, and so on.

        Args:
          a: array.
          axis: axis along which to accumulate, static under `jit`. By default `a` is flattened.
          dtype: dtype of the computation and of the result. By default that of `a`, or the default integer dtype for
            booleans.
          out: must be `None`.

        Returns:
          An array of the shape of `a`, or a vector if `axis` is `None`.{nan}

        Raises:
          NotImplementedError: for `out`.

        Differences from NumPy:
          Narrow integers keep their dtype and may wrap around.

        See also: `jax.lax.{name}`, `jax.lax.associative_scan`.

        Example:
          >>> jnp.{public}(jnp.array([1, 2, 3, 4]))
          {result}
        """
        check_out(name, out)
        result_dtype = dtypes.requested_dtype(dtype, name)
        check_arraylike(name, a)
        return core(a, static_axis(axis), result_dtype)

    nan = f" NaN counts as {start}." if skips_nan else ""
    texts = dict(what=what, nan=nan, name=name.removeprefix("nan"), public=name, result=result)
    return fused(whole=True)(named(function, name, filled(function, texts)))


_SUMS, _PRODUCTS = (
    ("sums", "Array([ 1,  3,  6, 10], dtype=int32)"),
    ("products", "Array([ 1,  2,  6, 24], dtype=int32)"),
)
cumsum = _cumulative("cumsum", cumulative.cumsum, 0, *_SUMS)
cumprod = _cumulative("cumprod", cumulative.cumprod, 1, *_PRODUCTS)
nancumsum = _cumulative("nancumsum", cumulative.cumsum, 0, *_SUMS, skips_nan=True)
nancumprod = _cumulative("nancumprod", cumulative.cumprod, 1, *_PRODUCTS, skips_nan=True)
_cumsum_promoted = _accumulate("_cumsum_with_promotion", cumulative.cumsum, 0, False, promotes=True)


def _with_initial(name: str, x: Any, axis: int | None, dtype: Any, include: bool, core: Callable, start: int) -> Any:
    (x,) = arrays(name, x)
    rank = typeof(x).ndim
    if not rank:
        raise ValueError(
            f"The input must be non-scalar to take a {name.replace('_', ' ')}, however a scalar was given."
        )
    if axis is None and rank > 1:
        raise ValueError(
            f"The input array has rank {rank}, however axis was not set to an explicit value. "
            f"The axis argument is only optional for one-dimensional arrays."
        )
    axis = dims.canonical_axis(static_axis(axis) or 0, rank)
    out = core(x, axis, dtypes.requested_dtype(dtype, ""))
    if not include:
        return out
    shape = (*typeof(out).shape[:axis], 1, *typeof(out).shape[axis + 1 :])
    return structural.concatenate([moving.filled(shape, scalar_like(out, start)), out], axis)


def cumulative_sum(
    x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """Computes the sums of the first elements along an axis.

    `axis` may be left out for a vector only; the argument of a scalar raises ValueError. With `include_initial` the
    result starts with 0 and is longer by 1. Narrow integers are summed in the default integer dtype.
    """
    return _with_initial("cumulative_sum", x, axis, dtype, include_initial, _cumsum_promoted, 0)


def cumulative_prod(
    x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """Computes the products of the first elements along an axis.

    `axis` may be left out for a vector only; the argument of a scalar raises ValueError. With `include_initial` the
    result starts with 1 and is longer by 1. Unlike in `cumulative_sum`, integers keep their dtype.
    """

    def core(x, axis, dtype):
        return _promoted(cumulative.cumprod, x, axis, dtype, promotes=False)

    return _with_initial("cumulative_prod", x, axis, dtype, include_initial, core, 1)
