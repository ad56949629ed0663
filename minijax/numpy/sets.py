"""Arrays as sets: distinct elements, unions, intersections and differences."""

from __future__ import annotations

import operator
from math import prod
from typing import Any, NamedTuple

import numpy as np

from minijax.base import dtypes
from minijax.composed.arrays.selecting import where
from minijax.dispatch.jitted import jitted
from minijax.indexing.language import PLAIN
from minijax.numpy import reductions, searching, shaping, subscripts, ufuncs
from minijax.numpy.creation import asarray, full, value, values
from minijax.numpy.taking import known, nonzero
from minijax.primitives import counting, dynamic_slice, elementwise as lax, moving, sort as lax_sort
from minijax.primitives.families import const_like, is_complex
from minijax.primitives.promote import is_inexact, promote_dtypes
from minijax.run.arrays.array import Array, ArrayLike

_HEAD, _TAIL = slice(None, -1), slice(1, None)
_take, _put = subscripts.getitem, subscripts.update


def _places(size: int) -> Any:
    return counting.iota(dtypes.default_int_dtype(), size)


def _adjacent(x: Any) -> tuple[Any, Any]:
    """Each element but the first, and the one before it."""
    return _take(x, _TAIL), _take(x, _HEAD)


# ---- distinct elements -------------------------------------------------------------------------------


@jitted(static=("axis", "equal_nan"))
def _unique_sorted_mask(ar: Any, axis: int, equal_nan: bool) -> tuple:
    """The sorted slices along an axis, whether each differs from the one before, and its original index."""
    aux = shaping.moveaxis(ar, axis, 0)
    if is_complex(aux):  # complex NaNs are adjacent when sorted only if both parts are equal
        aux = where(lax.ne(aux, aux), const_like(aux, np.nan), aux)
    size, *rest = aux.shape
    if not prod(rest):
        order = moving.filled((min(size, 1),), 0, dtypes.default_int_dtype())
    else:
        keys = shaping.transpose(shaping.reshape(aux, (size, prod(rest))))
        order = searching.lexsort(_take(keys, slice(None, None, -1)))
    aux = _take(aux, order)
    if not aux.size:
        return aux, moving.filled(aux.shape[:1], np.bool_(False)), order
    first = moving.filled((size,), np.bool_(True))
    after, before = _adjacent(aux)
    differs = lax.ne(after, before)
    if equal_nan and is_inexact(aux):
        differs = differs & ~(lax.ne(after, after) & lax.ne(before, before))
    differs = reductions.any(differs, tuple(range(1, aux.ndim)))
    return aux, _put(first, _TAIL, differs, "set"), order


class _Distinct(NamedTuple):
    values: Any
    indices: Any
    inverse: Any
    counts: Any
    number: Any


def _distinct(
    ar: Any,
    axis: int = 0,
    size: int | None = None,
    fill_value: Any = None,
    index: bool = False,
    inverse: bool = False,
    counts: bool = False,
    equal_nan: bool = True,
    number: bool = False,
) -> _Distinct:
    """The distinct slices along an axis; on request also their first indices, the inverse, their counts and
    their number.
    """
    if size and not ar.shape[axis] and fill_value is None:
        raise ValueError("jnp.unique: for zero-sized input with nonzero size argument, fill_value must be specified")
    aux, mask, order = _unique_sorted_mask(ar, axis, equal_nan)
    if size is None:
        known("unique", mask)
    at = nonzero(mask, size=size)[0]
    values = _distinct_values(aux, mask, at, size, fill_value)
    values = shaping.moveaxis(values, 0, axis) if axis else values
    is_empty, length = not aux.size, ar.shape[axis]
    indices = inverses = tallies = None
    if index:
        indices = order if is_empty else _take(order, at)
    if inverse:
        inverses = moving.filled((length,), 0, dtypes.default_int_dtype()) if is_empty else _inverse(mask, order)
    if counts:
        tallies = (
            moving.filled(aux.shape[:1], length, dtypes.default_int_dtype()) if is_empty else _counts(mask, at, size)
        )
    return _Distinct(values, indices, inverses, tallies, reductions.sum(mask) if number else None)


def _distinct_values(aux: Any, mask: Any, at: Any, size: int | None, fill_value: Any) -> Any:
    """The slices of `aux` at `at`, where `mask` is True, padded with `fill_value` to `size` if both are given."""
    values = _take(aux, at) if aux.size else aux
    if size is None or fill_value is None:
        return values
    fill = asarray(fill_value, values.dtype)
    if not values.shape[0]:
        return full((size, *values.shape[1:]), fill)
    valid = lax.lt(_places(size), reductions.sum(mask))
    return where(moving.expand_dims(valid, tuple(range(1, values.ndim))), values, fill)


def _inverse(mask: Any, order: Any) -> Any:
    """The index among the distinct slices of each slice; `order` sorts the slices, and `mask` marks new ones."""
    rank = lax.sub(reductions.cumsum(mask), const_like(order, 1))
    return _put(moving.filled(mask.shape, 0, dtypes.default_int_dtype()), order, rank, "set")


def _counts(mask: Any, at: Any, size: int | None) -> Any:
    if size is None:
        ends = shaping.append(at, asarray(mask.size, at.dtype))
    else:
        ends = nonzero(mask, size=size + 1)[0]
        ends = _put(ends, _TAIL, where(_take(ends, _TAIL), _take(ends, _TAIL), mask.size), "set")
    return shaping.diff(ends)


def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Any:
    """Returns the sorted distinct elements of an array, or slices along an axis.

    Args:
      ar: array, flattened unless `axis` is given.
      return_index: whether to return the index of the first occurrence of each element too.
      return_inverse: whether to return, for each element of `ar`, its place in the result too.
      return_counts: whether to return how often each element occurs too.
      axis: axis along which slices are compared.
      equal_nan: whether NaN equals NaN.
      size: number of elements in the result. Needed under `jit`. The result is truncated or padded.
      fill_value: value that pads, the least element by default.
      sorted: has no effect: the result is always sorted.

    Returns:
      An array, or a tuple of it and what is asked for.

    Raises:
      ConcretizationTypeError: if `ar` is traced and `size` is not given.

    Example:
      >>> jnp.unique(jnp.array([3, 1, 3]), return_counts=True)
      (Array([1, 3], dtype=int32), Array([1, 2], dtype=int32))
      >>> jax.jit(lambda x: jnp.unique(x, size=4))(jnp.array([3, 1, 3]))
      Array([1, 3, 1, 1], dtype=int32)
    """
    a = value("unique", ar)
    size = _size("unique", a, size=size)
    along = shaping.flattened_if_no_axis(a, axis)
    distinct = _distinct(*along, size, fill_value, return_index, return_inverse, return_counts, equal_nan)
    if axis is None and return_inverse:
        distinct = distinct._replace(inverse=shaping.reshape(distinct.inverse, a.shape))
    results = tuple(x for x in distinct if x is not None)
    return results if len(results) > 1 else results[0]


def _size(name: str, *args: Any, size: int | None) -> int | None:
    """The requested size. Raises ConcretizationTypeError if it is None and an array is traced."""
    if size is not None:
        return operator.index(size)
    for x in args:
        known(name, x)
    return None


class _UniqueAllResult(NamedTuple):
    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class _UniqueCountsResult(NamedTuple):
    values: Any
    counts: Any


class _UniqueInverseResult(NamedTuple):
    values: Any
    inverse_indices: Any


def _unique(name: str, x: Any, *options: bool, size: int | None, fill_value: Any) -> Any:
    return unique(value(name, x), *options, equal_nan=False, size=size, fill_value=fill_value)


def unique_all(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> _UniqueAllResult:
    """Returns the sorted distinct elements with their first indices, inverse indices and counts.

    The result is a named tuple: `values`, `indices`, `inverse_indices`, `counts`. `size` and `fill_value` are those of
    `unique`.

    Example:
      >>> jnp.unique_all(jnp.array([3, 1, 3])).indices
      Array([1, 0], dtype=int32)
    """
    return _UniqueAllResult(*_unique("unique_all", x, True, True, True, size=size, fill_value=fill_value))


def unique_counts(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> _UniqueCountsResult:
    """Returns the sorted distinct elements and how often each occurs.

    The result is a named tuple: `values`, `counts`. `size` and `fill_value` are those of `unique`.

    Example:
      >>> jnp.unique_counts(jnp.array([3, 1, 3])).counts
      Array([1, 2], dtype=int32)
    """
    return _UniqueCountsResult(*_unique("unique_counts", x, False, False, True, size=size, fill_value=fill_value))


def unique_inverse(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> _UniqueInverseResult:
    """Returns the sorted distinct elements and the place of each element of `x` among them.

    The result is a named tuple: `values`, `inverse_indices`. `size` and `fill_value` are those of `unique`.

    Example:
      >>> jnp.unique_inverse(jnp.array([3, 1, 3])).inverse_indices
      Array([1, 0, 1], dtype=int32)
    """
    return _UniqueInverseResult(*_unique("unique_inverse", x, False, True, size=size, fill_value=fill_value))


def unique_values(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """Returns the sorted distinct elements of an array.

    `size` and `fill_value` are those of `unique`.

    Example:
      >>> jnp.unique_values(jnp.array([3, 1, 3]))
      Array([1, 3], dtype=int32)
    """
    return _unique("unique_values", x, size=size, fill_value=fill_value)


# ---- two sets ----------------------------------------------------------------------------------------


@jitted(static=("method", "assume_unique", "invert"))
def _in1d(ar1: Any, ar2: Any, method: str, assume_unique: bool, invert: bool) -> Any:
    ar1, ar2 = (shaping.ravel(x) for x in promote_dtypes(ar1, ar2))
    if not ar1.size or not ar2.size:
        return moving.filled(ar1.shape, np.bool_(invert))
    compare = lax.ne if invert else lax.eq
    if method in ("auto", "compare_all"):
        same = compare(moving.expand_dims(ar1, (1,)), moving.expand_dims(ar2, (0,)))
        return reductions.all(same, -1) if invert else reductions.any(same, -1)
    if method == "binary_search":
        ar2 = lax_sort.sort(ar2)
        return compare(ar1, _take(ar2, searching.searchsorted(ar2, ar1)))
    inverse = None
    if not assume_unique:
        ar1, _, inverse, *_ = _distinct(ar1, size=ar1.size, fill_value=reductions.max(ar2), inverse=True)
    joined = shaping.concatenate([ar1, ar2])
    aux, order = lax_sort.sort((joined, _places(joined.size)), num_keys=1)
    result, order = moving.filled(ar1.shape, np.bool_(invert)), _take(order, _HEAD)
    result = _put(result, order, compare(*_adjacent(aux)), "set")
    return result if inverse is None else _take(result, inverse)


def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: Any = "auto",
) -> Array:
    """Returns whether each element occurs in another array.

    `invert` negates the result. `method` is "compare_all", which "auto" selects, "binary_search" or "sort".
    `assume_unique` is for "sort".

    Example:
      >>> jnp.isin(jnp.array([1, 2, 3]), jnp.array([2, 9]))
      Array([False,  True, False], dtype=bool)
    """
    element, test_elements = values("isin", element, test_elements)
    if method not in ("auto", "compare_all", "binary_search", "sort"):
        raise ValueError(
            f"isin: method={method!r} is not implemented; options are 'compare_all', 'binary_search', "
            "'sort', and 'auto'"
        )
    return shaping.reshape(_in1d(element, test_elements, method, assume_unique, invert), element.shape)


def union1d(ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """Returns the sorted elements that occur in one of two arrays.

    Under `jit` the static `size` must be given, to which the result is truncated or padded with `fill_value`, the least
    element by default.

    Example:
      >>> jnp.union1d(jnp.array([3, 1]), jnp.array([2, 3]))
      Array([1, 2, 3], dtype=int32)
    """
    ar1, ar2 = values("union1d", ar1, ar2)
    size = _size("union1d", ar1, ar2, size=size)
    return unique(shaping.concatenate([ar1, ar2], None), size=size, fill_value=fill_value)


def _padded(x: Any, number: Any, fill: Any) -> Any:
    valid = lax.lt(_places(x.size), number)
    return where(valid, x, fill(x) if callable(fill) else fill)


def setdiff1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Returns the sorted elements of an array that another lacks.

    Under `jit` the static `size` must be given, to which the result is truncated or padded with `fill_value`, 0 by
    default.

    Example:
      >>> jnp.setdiff1d(jnp.array([3, 1, 2]), jnp.array([2]))
      Array([1, 3], dtype=int32)
    """
    ar1, ar2 = values("setdiff1d", ar1, ar2)
    size = _size("setdiff1d", ar1, ar2, size=size)
    ar1 = shaping.ravel(ar1)
    fill = asarray(0 if fill_value is None else fill_value, ar1.dtype)
    if size is None:
        ar1 = ar1 if assume_unique else unique(ar1)
        return _take(ar1, _in1d(ar1, ar2, "auto", True, True))
    if not ar1.size:
        return full((size,), fill)
    if not (size or assume_unique):
        raise IndexError("setdiff1d: size must be positive, got 0: index is out of bounds for axis 0 with size 0")
    ar1 = ar1 if assume_unique else unique(ar1, size=ar1.size)
    mask = _in1d(ar1, ar2, "auto", True, True)
    if not assume_unique:
        # `unique` pads with the first element; these repetitions are not counted.
        same = reductions.sum(lax.eq(ar1, _take(ar1, 0)))
        number = lax.sub(const_like(same, ar1.size + 1), same)
        mask = where(lax.lt(_places(ar1.size), number), mask, False)
    valid = lax.lt(_places(size), reductions.sum(mask))
    return where(valid, _take(ar1, nonzero(mask, size=size)[0]), fill)


def _joined_sets(ar1: Any, number1: Any, ar2: Any) -> Any:
    """The distinct elements of both arrays concatenated, padded with zeros."""
    joined = moving.filled((ar1.size + ar2.size,), 0, ar1.dtype)
    return dynamic_slice.dynamic_update_slice(dynamic_slice.dynamic_update_slice(joined, ar1, (0,)), ar2, (number1,))


def _selected(x: Any, at: Any, fill: Any) -> Any:
    return _take(x, at, PLAIN._replace(mode="fill", fill_value=fill))


def _padded_by_default(x: Any, number: Any, fill: Any) -> Any:
    """`x` padded from index `number` on with the fill value, by default its least element."""
    if fill is not None:
        return _padded(x, number, fill)
    return _padded(_padded(x, number, reductions.max), number, reductions.min)


@jitted("_setxor1d_size", static=("assume_unique", "size"))
def _setxor1d_size(ar1: Any, ar2: Any, fill_value: Any, *, assume_unique: bool, size: int) -> Any:
    end = True
    if assume_unique:
        shaping.concatenate([ar1, ar2])  # unused, as in jax's jaxpr
        aux = searching.sort(shaping.concatenate([ar1, ar2]))
    else:
        set1, set2 = (_distinct(x, size=x.size, number=True) for x in (ar1, ar2))
        joined, end = _joined_sets(set1.values, set1.number, set2.values), False
        number = lax.add(set1.number, set2.number)
        is_valid = lax.lt(_places(joined.size + 1), lax.add(number, const_like(number, 1)))
        _, aux = lax_sort.sort((lax.bitwise_not(_take(is_valid, _TAIL)), joined), num_keys=2)
    differs = lax.ne(*_adjacent(aux))
    edges = [moving.reshape(np.bool_(x), (1,)) for x in (True, end)]
    flag = shaping.concatenate([edges[0], differs, edges[1]])
    if not assume_unique:
        flag = lax.bitwise_and(is_valid, _put(flag, number, True, "set"))
    is_single = lax.bitwise_and(*_adjacent(flag))
    number = reductions.sum(is_single)
    at = nonzero(is_single, size=size, fill_value=aux.size)[0]
    return _padded_by_default(_selected(aux, at, 0), number, fill_value)


def setxor1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Returns the sorted elements that occur in exactly one of two arrays.

    Under `jit` the static `size` must be given, to which the result is truncated or padded with `fill_value`, the least
    element by default.

    Example:
      >>> jnp.setxor1d(jnp.array([3, 1]), jnp.array([2, 3]))
      Array([1, 2], dtype=int32)
    """
    ar1, ar2 = promote_dtypes(*(shaping.ravel(x) for x in values("setxor1d", ar1, ar2)))
    size = _size("setxor1d", ar1, ar2, size=size)
    if size is not None:
        if not ar1.size + ar2.size:
            return full((size,), 0 if fill_value is None else fill_value, ar1.dtype)
        return _setxor1d_size(ar1, ar2, fill_value, assume_unique=assume_unique, size=size)
    if not assume_unique:
        ar1, ar2 = unique(ar1), unique(ar2)
    aux = searching.sort(shaping.concatenate([ar1, ar2]))
    if not aux.size:
        return aux
    edge = np.ones(1, np.bool_)
    flag = shaping.concatenate([edge, lax.ne(*_adjacent(aux)), edge])
    return _take(aux, lax.bitwise_and(*_adjacent(flag)))


@jitted("_intersect1d_size", static=("assume_unique", "return_indices", "size", "fill_value"))
def _intersect1d_size(ar1: Any, ar2: Any, assume_unique: bool, return_indices: bool, size: int, fill_value: Any) -> Any:
    sizes = ar1.size, ar2.size
    length = ar1.size + ar2.size
    if size and not length:
        common = full((size,), 0 if fill_value is None else fill_value, ar1.dtype)
        return (common, _places(0), _places(0)) if return_indices else common
    if assume_unique:
        firsts, number1 = [_places(n) for n in sizes], sizes[0]
        joined = shaping.concatenate([ar1, ar2])
        aux, order = lax_sort.sort((joined, _places(length)), num_keys=1)
        is_valid = moving.filled((length,), np.bool_(True))
    else:
        set1, set2 = (_distinct(x, size=x.size, fill_value=0, index=True, number=True) for x in (ar1, ar2))
        firsts, number1 = [set1.indices, set2.indices], set1.number
        joined = _joined_sets(set1.values, number1, set2.values)
        is_valid = lax.lt(_places(length), lax.add(number1, set2.number))
        keys = (lax.bitwise_not(is_valid), joined, _places(length))
        _, aux, order = lax_sort.sort(keys, num_keys=2)
    both = lax.bitwise_and(lax.eq(*_adjacent(aux)), _take(is_valid, _TAIL))
    number = reductions.sum(both)
    at = nonzero(both, size=size, fill_value=length)[0]
    common = _padded_by_default(_selected(aux, at, 0), number, fill_value)
    if not return_indices:
        return common
    at1 = _padded(_selected(order, at, sizes[0]), number, sizes[0])
    at2 = ufuncs.subtract(_selected(order, ufuncs.add(at, 1), sizes[1]), number1)
    places = at1, _padded(at2, number, sizes[1])
    if not assume_unique:
        places = (_selected(x, i, n) for x, i, n in zip(firsts, places, sizes, strict=True))
    return common, *places


def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Any:
    """Returns the sorted elements that two arrays have in common.

    With `assume_unique` the arrays are taken to have no repetitions. With `return_indices` the result is a tuple:
    elements, and their first indices in both arrays. Under `jit` the static `size` must be given, to which results are
    truncated or padded with `fill_value`, the least element by default.

    Example:
      >>> jnp.intersect1d(jnp.array([3, 1, 2]), jnp.array([2, 3, 9]))
      Array([2, 3], dtype=int32)
    """
    ar1, ar2 = (shaping.ravel(x) for x in promote_dtypes(*values("intersect1d", ar1, ar2)))
    size = _size("intersect1d", ar1, ar2, size=size)
    if size is not None:
        return _intersect1d_size(ar1, ar2, assume_unique, return_indices, size, fill_value)
    firsts = None
    if not assume_unique:
        ar1, *first1 = unique(ar1, True)
        ar2, *first2 = unique(ar2, True)
        firsts = [*first1, *first2]
    joined = shaping.concatenate([ar1, ar2])
    aux, order = lax_sort.sort((joined, _places(joined.size)), num_keys=1)
    both = lax.eq(*_adjacent(aux))
    common = _take(_take(aux, _HEAD), both)
    if not return_indices:
        return common
    at1, at2 = (_take(_take(order, half), both) for half in (_HEAD, _TAIL))
    places = [at1, ufuncs.subtract(at2, ar1.size)]
    if firsts is not None:
        places = [_take(first, at) for first, at in zip(firsts, places, strict=True)]
    return common, *places
