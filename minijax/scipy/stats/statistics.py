"""Statistics of samples: modes, ranks and the standard error of the mean."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

import minijax.numpy as jnp
from minijax.api.vmap import vmap
from minijax.base import dims, dtypes
from minijax.dispatch.jitted import jitted
from minijax.ir.types import typeof
from minijax.primitives import elementwise as lax
from minijax.primitives.promote import check_arraylike, promote_args_inexact
from minijax.run.arrays.array import Array, ArrayLike

_POLICIES = ("propagate", "omit", "raise")


def _check_policy(name: str, policy: str) -> None:
    if policy not in _POLICIES:
        raise ValueError(f"{name}: Illegal nan_policy value {policy!r}; expected one of {_POLICIES}")
    if policy != "propagate":
        raise NotImplementedError(f"{name}: Logic for `nan_policy` of {policy} is not implemented")


class ModeResult(NamedTuple):
    """The most frequent values, and how often each occurs."""

    mode: Any
    count: Any


def _most_frequent(x: Any) -> tuple[Any, Any]:
    if not x.size:
        return jnp.array(np.nan), jnp.array(0)
    values, counts = jnp.unique(x, return_counts=True, size=x.size)
    return values[jnp.argmax(counts)], counts.max()


@jitted(static=("axis", "nan_policy", "keepdims"))
def mode(a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False) -> ModeResult:
    """Returns the most frequent elements along an axis, or of all, and their counts.

    Of several, it is the smallest. The result is a named tuple: `mode`, `count`. `axis` is `None` for all elements.
    Raises ValueError for an unknown `nan_policy`, NotImplementedError for those but "propagate".

    Example:
      >>> jax.scipy.stats.mode(jnp.array([1, 2, 2])).mode
      Array(2, dtype=int32)
    """
    check_arraylike("mode", a)
    _check_policy("mode", nan_policy)
    x = jnp.atleast_1d(a)
    if axis is None:
        shape = (1,) * x.ndim if keepdims else ()
        x, axis = x.ravel(), 0
    else:
        axis = dims.canonical_axis(axis, x.ndim)
        shape = tuple(1 if i == axis else size for i, size in enumerate(x.shape) if keepdims or i != axis)
    if not x.shape[axis]:
        return ModeResult(jnp.full(shape, np.nan, dtypes.default_float_dtype()), jnp.zeros(shape))
    columns = jnp.moveaxis(x, axis, 0).reshape(x.shape[axis], -1)
    values, counts = vmap(_most_frequent, in_axes=1)(columns)
    return ModeResult(values.reshape(shape), counts.reshape(shape))


@jitted(static=("axis", "nan_policy", "keepdims"))
def sem(
    a: ArrayLike, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *, keepdims: bool = False
) -> Array:
    """Computes the standard error of the mean along an axis, or of all elements.

    It is the standard deviation, with `ddof`, divided by the square root of the number of elements. `nan_policy` "omit"
    leaves NaN out. Raises ValueError for policies other than "omit" and "propagate".

    Example:
      >>> jax.scipy.stats.sem(jnp.array([1.0, 2.0, 3.0])).round(3)
      Array(0.577, dtype=float32)
    """
    (b,) = promote_args_inexact("sem", a)
    b = jnp.asarray(b)
    if nan_policy == "propagate":
        size = b.size if axis is None else b.shape[axis]
        return b.std(axis, ddof=ddof, keepdims=keepdims) / lax.sqrt(float(size)).astype(b.dtype)
    if nan_policy == "omit":
        count = jnp.sum(jnp.logical_not(jnp.isnan(b)), axis, keepdims=keepdims)
        return jnp.nanstd(b, axis, ddof=ddof, keepdims=keepdims) / jnp.sqrt(count.astype(b.dtype))
    raise ValueError(f"{nan_policy} is not supported")


@jitted("rankdata", static=("method",))
def _ranks(x: Any, method: str) -> Any:
    size = x.size
    order = jnp.argsort(x)
    place = jnp.zeros(size, order.dtype).at[order].set(jnp.arange(size, dtype=order.dtype))
    if method == "ordinal":
        return place + 1
    x = x[order]
    is_first = jnp.concatenate([jnp.ones(min(size, 1), bool), x[1:] != x[:-1]])
    dense = jnp.cumsum(is_first)[place]
    if method == "dense":
        return dense
    count = jnp.nonzero(is_first, size=size + 1, fill_value=size)[0]
    if method == "max":
        return count[dense]
    if method == "min":
        return count[dense - 1] + 1
    count = count.astype(dtypes.default_float_dtype())
    return 0.5 * (count[dense] + count[dense - 1] + 1)


def rankdata(a: ArrayLike, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate") -> Array:
    """Returns the ranks of elements, from 1 on, along an axis or of all elements.

    Equal elements get the "average", "min" or "max" of their ranks, "dense" ones, or "ordinal" ones in their order.
    Ranks are floats, and all NaN if one element is NaN. Raises ValueError for an unknown method or `nan_policy`,
    NotImplementedError for policies but "propagate".

    Example:
      >>> jax.scipy.stats.rankdata(jnp.array([10.0, 30.0, 20.0, 20.0]))
      Array([1. , 4. , 2.5, 2.5], dtype=float32)
    """
    check_arraylike("rankdata", a)
    _check_policy("rankdata", nan_policy)
    if method not in ("average", "min", "max", "dense", "ordinal"):
        raise ValueError(f"unknown method '{method}'")
    x = jnp.asarray(a)
    if axis is None:
        x, axis = x.ravel(), 0
    ranks = jnp.apply_along_axis(_ranks, operator.index(axis), x, method).astype(dtypes.default_float_dtype())
    if not jnp.issubdtype(typeof(x).dtype, np.inexact):
        return ranks
    return jnp.where(jnp.any(jnp.isnan(x), axis=axis, keepdims=True), jnp.array(np.nan, ranks.dtype), ranks)
