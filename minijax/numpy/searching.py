"""Sorting, and searching in sorted arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.api.vmap import vmap
from minijax.base import dims, dtypes
from minijax.base.dtypes import DTypeLike
from minijax.base.symbolic.dimension import is_int
from minijax.dispatch.jitted import jitted
from minijax.higher.scan import scan
from minijax.ir.types import typeof
from minijax.numpy import creation, shaping, subscripts, ufuncs
from minijax.primitives import counting, dynamic_slice, elementwise as lax, moving, sort as lax_sort, structural
from minijax.primitives.convert import convert
from minijax.primitives.families import full_of, is_complex, scalar_like
from minijax.primitives.promote import arrays, is_inexact, is_unsigned, promote_dtypes
from minijax.primitives.reduce import reduce_sum
from minijax.primitives.sharding import replicated_over_mesh
from minijax.primitives.varying import match_varying
from minijax.run.arrays.array import Array, ArrayLike

_STATIC = ("axis", "kind", "order", "stable", "descending")


def _operand_and_axis(name: str, a: Any, axis: int | None, kind: None, order: None) -> tuple[Any, int]:
    (a,) = arrays(name, a)
    if kind is not None:
        raise TypeError(
            f"'kind' argument to {name} is not supported. Use stable=True or stable=False to specify sort stability."
        )
    if order is not None:
        raise TypeError(f"'order' argument to {name} is not supported.")
    if axis is None:
        return moving.reshape(a, (typeof(a).size,)), 0
    return a, dims.canonical_axis(axis, typeof(a).ndim)


@jitted(static=_STATIC)
def sort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Array:
    """Sorts an array along an axis.

    Args:
      a: array.
      axis: axis along which to sort, the last by default. For `None` the array is flattened.
      kind: deprecated, must be `None`.
      order: must be `None`: records do not exist.
      stable: whether equal elements keep their order.
      descending: whether to sort from the largest to the smallest.

    Returns:
      An array of the shape and dtype of `a`. NaN follows all numbers. Complex numbers are ordered by their real, then
      by their imaginary parts.

    Raises:
      TypeError: for `kind` and `order`.

    Differences from NumPy:
      `descending` is an addition, and sorting is stable by default.

    See also: `jax.numpy.argsort`, `jax.lax.sort`, `jax.lax.top_k`.

    Example:
      >>> jnp.sort(jnp.array([3, 1, 2]))
      Array([1, 2, 3], dtype=int32)
      >>> jnp.sort(jnp.array([[3, 1, 2], [5, 6, 4]]), axis=0, descending=True)
      Array([[5, 6, 4],
             [3, 1, 2]], dtype=int32)
    """
    a, axis = _operand_and_axis("sort", a, axis, kind, order)
    ascending = lax_sort.sort(a, axis, is_stable=stable)
    return structural.rev(ascending, (axis,)) if descending else ascending


@jitted(static=(*_STATIC, "dtype"))
def argsort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: DTypeLike | None = None,
) -> Array:
    """Returns the indices that sort an array along an axis.

    Args:
      a: array.
      axis: axis along which to sort, the last by default. For `None` the array is flattened.
      kind: deprecated, must be `None`.
      order: must be `None`: records do not exist.
      stable: whether the indices of equal elements ascend.
      descending: whether to sort from the largest to the smallest.
      dtype: integer dtype of the indices, by default the default one (int32, or int64 with `jax_enable_x64`).

    Returns:
      An array of indices of the shape of `a`. Use it with `take_along_axis`.

    Raises:
      TypeError: for `kind` and `order`.

    Differences from NumPy:
      `descending` and `dtype` are additions, and sorting is stable by default.

    See also: `jax.numpy.sort`, `jax.numpy.take_along_axis`, `jax.numpy.lexsort`.

    Example:
      >>> jnp.argsort(jnp.array([3, 1, 2]))
      Array([1, 2, 0], dtype=int32)
      >>> jnp.argsort(jnp.array([1, 3, 1]), descending=True)
      Array([1, 0, 2], dtype=int32)
    """
    a, axis = _operand_and_axis("argsort", a, axis, kind, order)
    aval = typeof(a)
    dtype = dtypes.default_int_dtype() if dtype is None else dtype
    places = counting.broadcasted_iota(dtype, aval.shape, axis, out_sharding=aval.own_sharding)
    if descending and stable:
        a, places = structural.rev(a, (axis,)), structural.rev(places, (axis,))
    _, permutation = lax_sort.sort_key_val(a, places, axis, is_stable=stable)
    return structural.rev(permutation, (axis,)) if descending else permutation


def _place_dtype(size: int) -> Any:
    return np.int32 if not is_int(size) or size <= np.iinfo(np.int32).max else np.int64


@jitted()
def sort_complex(a: ArrayLike) -> Array:
    """Sorts an array along its last axis, and returns complex numbers.

    They are ordered by their real, then by their imaginary parts.

    Example:
      >>> jnp.sort_complex(jnp.array([2, 1]))
      Array([1.+0.j, 2.+0.j], dtype=complex64)
    """
    (a,) = arrays("sort_complex", a)
    ascending = lax_sort.sort(a, -1)
    return convert(ascending, dtypes.to_complex_dtype(typeof(ascending).dtype))


@jitted(static=("axis",))
def lexsort(keys: Array | np.ndarray | Sequence[ArrayLike], axis: int = -1) -> Array:
    """Returns the indices that sort by several keys; the last one counts most.

    `keys` is a sequence of arrays of one shape, or an array whose first axis counts them. They are sorted along `axis`.

    Example:
      >>> jnp.lexsort((jnp.array([1, 2, 0]), jnp.array([1, 1, 0])))
      Array([2, 0, 1], dtype=int32)
    """
    rows = arrays("lexsort", *keys)
    if not rows:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    shapes = {typeof(k).shape for k in rows}
    if len(shapes) > 1:
        raise ValueError(f"lexsort: all keys need to be the same shape, got {sorted(shapes)}")
    (shape,) = shapes
    if not shape:
        return dtypes.default_int_dtype().type(0)
    axis = dims.canonical_axis(axis, len(shape))
    places = counting.broadcasted_iota(dtypes.default_int_dtype(), shape, axis)
    return lax_sort.sort((*rows[::-1], places), axis, num_keys=len(rows))[-1]


# ---- partitions --------------------------------------------------------------------------------------


def _partition_operand(name: str, a: Any, kth: int, axis: int) -> tuple[Any, int]:
    """The array with the axis moved last, and `kth` as a nonnegative index."""
    (a,) = arrays(name, a)
    if is_complex(a):
        raise NotImplementedError(f"jnp.{name} for complex dtype is not implemented.")
    axis = dims.canonical_axis(axis, typeof(a).ndim)
    kth = dims.canonical_axis(kth, typeof(a).shape[axis])
    return shaping.swapaxes(a, axis, -1), kth


def _order_reversed(a: Any) -> Any:
    """Reverses the order of numbers by negation; 0 becomes the highest unsigned number."""
    return lax.neg(lax.add(a, scalar_like(a, 1)) if is_unsigned(a) else a)


@jitted(static=("kth", "axis"))
def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """Reorders elements along an axis such that the `kth` is at its sorted place.

    `kth` is one static integer. Elements before it are not larger, here in ascending order; those after it are not
    smaller, here in descending order. It does not take `kind` and `order`.

    Example:
      >>> jnp.partition(jnp.array([5, 1, 4, 2, 3]), 2)
      Array([1, 2, 3, 5, 4], dtype=int32)
    """
    a, kth = _partition_operand("partition", a, kth, axis)
    low = lax.neg(lax_sort.top_k(_order_reversed(a), kth + 1)[0])
    low = lax.sub(low, scalar_like(low, 1)) if is_unsigned(a) else low
    high = lax_sort.top_k(a, typeof(a).shape[-1] - kth - 1)[0]
    return shaping.swapaxes(structural.concatenate([low, high], typeof(a).ndim - 1), axis, -1)


@jitted(static=("kth", "axis"))
def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """Returns the indices that partition an array around its `kth` element along an axis.

    `kth` is one static integer. Indices of the smaller elements come first; those after them keep their order. It does
    not take `kind` and `order`.

    Example:
      >>> jnp.argpartition(jnp.array([5, 1, 4, 2, 3]), 2)
      Array([1, 3, 4, 0, 2], dtype=int32)
    """
    a, kth = _partition_operand("argpartition", a, kth, axis)
    _, low = lax_sort.top_k(_order_reversed(a), kth + 1)
    shape = typeof(a).shape

    def clear(marks, places):
        return subscripts.update(marks, places, 0, "set")

    for _ in shape[1:]:
        clear = vmap(clear)
    _, high = lax_sort.top_k(clear(creation.ones(shape), low), shape[-1] - kth - 1)
    return shaping.swapaxes(structural.concatenate([low, high], len(shape) - 1), axis, -1)


# ---- searching ---------------------------------------------------------------------------------------


def _sort_keys(x: Any) -> list:
    """The sort keys of elements, with equal zeros and equal NaNs; the two parts of complex numbers."""
    if is_complex(x):
        return [*_sort_keys(lax.real(x)), *_sort_keys(lax.imag(x))]
    if not is_inexact(x):
        return [x]
    zero = replicated_over_mesh(scalar_like(x, 0), typeof(x).own_sharding)
    zeroed = lax.select(lax.eq(x, zero), full_of(x), x)
    return [lax.select(lax.ne(x, x), full_of(x, np.nan), zeroed)]


def _precedes(left: list, right: list, or_equal: bool) -> Any:
    precedes = (lax_sort.le_to_p if or_equal else lax_sort.lt_to_p).bind(left[-1], right[-1])
    for a, b in zip(left[-2::-1], right[-2::-1], strict=True):
        less, tie = lax_sort.lt_to_p.bind(a, b), lax_sort.eq_to_p.bind(a, b)
        precedes = lax.bitwise_or(less, lax.bitwise_and(tie, precedes))
    return precedes


@jitted("_searchsorted_scan_impl", static=("side", "unrolled"))
def _binary_search(a: Any, query: Any, side: str, unrolled: bool) -> Any:
    size, dtype = typeof(a).shape[0], _place_dtype(typeof(a).shape[0])
    if not size:
        return moving.filled(typeof(query).shape, 0, dtype)
    if typeof(query).shape:
        return vmap(lambda a, q: _binary_search(a, q, side, unrolled), (None, 0))(a, query)

    def narrow(interval, _):
        low, high = interval
        middle = lax.add(low, ufuncs.floor_divide(lax.sub(high, low), 2))
        element = dynamic_slice.dynamic_index_in_dim(a, middle, keepdims=False)
        is_before = _precedes(_sort_keys(query), _sort_keys(element), side == "left")
        return (lax.select(is_before, low, middle), lax.select(is_before, middle, high)), ()

    steps = math.ceil(math.log2(size + 1))
    unsigned = np.uint32 if dtype is np.int32 else np.uint64
    interval = match_varying((unsigned(0), unsigned(size)), (a, query))
    (_, high), _ = scan(narrow, interval, (), steps, unroll=steps if unrolled else 1)
    return convert(high, np.dtype(dtype))


@jitted("_searchsorted_sort_impl", static=("side",))
def _search_by_sorting(a: Any, query: Any, side: str) -> Any:
    size, dtype = typeof(a).shape[0], _place_dtype(typeof(a).shape[0])
    shape, flat = typeof(query).shape, lambda: moving.reshape_to(query, (typeof(query).size,))

    def rank(x: Any) -> Any:
        places = counting.iota(dtype, typeof(x).shape[0])
        zeros = creation.zeros_like(places)
        return subscripts.update(zeros, lax_sort.sort_key_val(x, places)[1], places, "set")

    joined = rank(structural.concatenate([flat(), a] if side == "left" else [a, flat()], 0))
    place = slice(0, math.prod(shape)) if side == "left" else slice(size, None)
    return moving.reshape_to(lax.sub(subscripts.getitem(joined, place), rank(flat())), shape)


@jitted("_searchsorted_compare_all_impl", static=("side",))
def _search_by_comparing(a: Any, query: Any, side: str) -> Any:
    left, right = _sort_keys(a), _sort_keys(query)
    is_before = vmap(lambda keys: _precedes(keys, right, side == "right"))(left)
    return reduce_sum(convert(is_before, np.dtype(_place_dtype(typeof(a).shape[0]))), (0,))


_METHODS: dict[str, Callable] = {
    "compare_all": _search_by_comparing,
    "scan": lambda *args: _binary_search(*args, False),
    "scan_unrolled": lambda *args: _binary_search(*args, True),
    "sort": _search_by_sorting,
}


@jitted(static=("side", "method"))
def searchsorted(
    a: ArrayLike, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None, *, method: str = "scan"
) -> Array:
    """Returns the places at which values are to be inserted in a sorted vector.

    `side` is "left" for the first such place, or "right" for the last one. `sorter` are the indices that sort `a`, if
    it is not sorted. `method` is "scan" (a binary search), "scan_unrolled", "sort" (faster for many values on
    accelerators) or "compare_all" (faster for short vectors). The values are not checked to ascend.

    Example:
      >>> jnp.searchsorted(jnp.array([10, 20, 30]), jnp.array([5, 20, 99]))
      Array([0, 1, 3], dtype=int32)
      >>> jnp.searchsorted(jnp.array([10, 20, 30]), 20, side="right")
      Array(2, dtype=int32)
    """
    a, v, *rest = arrays("searchsorted", a, v, *(() if sorter is None else (sorter,)))
    _check_choice("side", side, ("left", "right"))
    _check_choice("method", method, tuple(_METHODS))
    if typeof(a).ndim != 1:
        raise ValueError(f"searchsorted: a should be 1-dimensional, got shape {typeof(a).shape}")
    a, v = promote_dtypes(a, v)
    for order in rest:
        a = subscripts.getitem(a, order)
    return _METHODS[method](a, v, side)


def _check_choice(name: str, value: Any, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise ValueError(f"searchsorted: invalid argument {name}={value!r}, expected one of {list(allowed)}")
