"""Index arrays: grids, flat indices, diagonals, triangles and masks; and packed bits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.base import config, dtypes
from minijax.base.dtypes import DTypeLike
from minijax.composed.arrays.selecting import where
from minijax.dispatch.jitted import jitted
from minijax.ir.types import typeof
from minijax.numpy import creation, padding, ranges, reductions, shaping, subscripts, taking, ufuncs
from minijax.numpy.creation import arraylike, concrete, value
from minijax.primitives import counting, elementwise as lax, moving, structural
from minijax.primitives.convert import convert
from minijax.primitives.families import const_like
from minijax.primitives.promote import is_unsigned, promote_dtypes
from minijax.run.arrays.array import Array, ArrayLike, Shape

# ---- grids and joined ranges -------------------------------------------------------------------------


def _range(name: str, bounds: slice) -> Any:
    """The range that a slice specifies; an imaginary step is the number of points, both ends included."""
    parts = (("start", bounds.start, 0), ("stop", bounds.stop, None), ("step", bounds.step, 1))
    start, stop, step = (
        default if x is None else concrete(x, "", f"slice {part} of {name}") for part, x, default in parts
    )
    if np.iscomplexobj(step):
        return ranges.linspace(start, stop, int(abs(step)))
    return ranges.arange(start, stop, step)


class _Grid:
    """`numpy.mgrid` and `numpy.ogrid`: grids of the ranges that slices specify."""

    def __init__(self, name: str, sparse: bool):
        self._name, self._sparse = name, sparse

    def __getitem__(self, key: slice | tuple[slice, ...]) -> Any:
        if isinstance(key, slice):
            return _range(self._name, key)
        if not key:
            return [] if self._sparse else ranges.arange(0)
        with config.numpy_dtype_promotion("standard"):  # users cannot choose the dtypes of the ranges
            axes = promote_dtypes(*[_range(self._name, k) for k in key])
        grids = ranges.meshgrid(*axes, indexing="ij", sparse=self._sparse)
        return grids if self._sparse else shaping.stack(grids, 0)


mgrid = _Grid("jnp.mgrid", False)
ogrid = _Grid("jnp.ogrid", True)


class Joiner:
    """`numpy.r_` and `numpy.c_`: arrays, numbers and ranges joined along an axis; a first string may be
    "axis,ndmin,trans1d", or "r" or "c" for a matrix of one row or column.
    """

    _name: str
    _defaults: tuple[int, ...]  # the default axis, ndmin and trans1d

    def __getitem__(self, key: Any) -> Any:
        items = key if isinstance(key, tuple) else (key,)
        (axis, ndmin, place), matrix = self._defaults, None
        if isinstance(items[0], str):
            directive, items = items[0], items[1:]
            if directive in ("r", "c"):
                matrix = directive
            else:
                axis, ndmin, place = self._parse_directive(directive)
        if any(isinstance(item, str) for item in items):
            raise ValueError(f"{self._name}: string directive must be placed at the beginning")
        joined = shaping.concatenate([self._part(item, ndmin, place) for item in items], axis)
        if matrix is None or joined.ndim != 1:
            return joined
        return moving.expand_dims(joined, (0,) if matrix == "r" else (1,))

    def _parse_directive(self, directive: str) -> tuple[int, ...]:
        try:
            numbers = tuple(int(part) for part in directive.split(","))
        except ValueError:
            raise ValueError(f"{self._name}: could not understand directive {directive!r}") from None
        return (*numbers, *self._defaults[len(numbers) :])[:3]

    def _part(self, item: Any, ndmin: int, place: int) -> Any:
        piece = _range(f"jnp.{self._name}", item) if isinstance(item, slice) else creation.asarray(item)
        if piece.ndim >= ndmin:
            return piece
        wide = creation.array(piece, copy=False, ndmin=ndmin)
        return moving.transpose(wide, tuple((i - place - 1) % ndmin for i in range(ndmin)))


class RClass(Joiner):
    """`numpy.r_`."""

    _name, _defaults = "r_", (0, 1, -1)


class CClass(Joiner):
    """`numpy.c_`."""

    _name, _defaults = "c_", (-1, 2, 0)


r_, c_ = RClass(), CClass()

# ---- flat indices ------------------------------------------------------------------------------------


def unravel_index(indices: ArrayLike, shape: Shape) -> tuple[Array, ...]:
    """Converts indices in the flat array to indices along axes.

    Returns a tuple of arrays, one for each dimension of `shape`. An index out of bounds gives the first or last
    element, where NumPy raises. It does not take `order`.

    Example:
      >>> jnp.unravel_index(5, (2, 3))
      (Array(1, dtype=int32, weak_type=True), Array(2, dtype=int32, weak_type=True))
    """
    left = value("unravel_index", indices)
    is_listed = isinstance(shape, list | tuple)
    sizes = list(shape) if is_listed or np.ndim(shape) else [shape]
    if any(np.ndim(n) for n in sizes):
        raise ValueError("unravel_index: shape should be a scalar or 1D sequence.")
    places = []
    for n in reversed(sizes):
        left, place = ufuncs.divmod(left, n)
        places.append(place)
    above = ufuncs.greater(left, 0)
    below = False if is_unsigned(left) else ufuncs.less(left, -1)
    pairs = zip(reversed(places), sizes, strict=True)
    return tuple(where(above, n - 1, where(below, 0, i)) for i, n in pairs)


def _bounded(index: Any, size: int, mode: str) -> Any:
    """Checks, clips or wraps indices along an axis of this size, as `mode` specifies."""
    if mode == "raise":
        known = concrete(index, "ravel_multi_index", "multi_index, with mode='raise'")
        if np.any((known < 0) | (known >= size)):
            raise ValueError("ravel_multi_index: invalid entry in coordinates array")
        return index
    if mode == "clip":
        return ufuncs.clip(index, 0, size - 1)
    return ufuncs.remainder(index, size) if mode == "wrap" else index


def ravel_multi_index(
    multi_index: Sequence, dims: Sequence[int], mode: str = "raise", order: str = "C", *, dtype: DTypeLike | None = None
) -> Array:
    """Converts indices along axes to indices in the flat array.

    `multi_index` is a sequence of integer arrays, one for each of `dims`. An index out of bounds is an error in mode
    "raise"; "wrap" takes it modulo the length and "clip" limits it. Traced indices need one of these. `order` is "C" or
    "F". `dtype` is that of the result.

    Example:
      >>> jnp.ravel_multi_index((jnp.array([0, 1]), jnp.array([2, 1])), (2, 3))
      Array([2, 4], dtype=int32)
    """
    if len(multi_index) != len(dims):
        raise AssertionError(f"len(multi_index)={len(multi_index)} != len(dims)={len(dims)}")
    sizes = tuple(concrete(n, "ravel_multi_index", "dims") for n in dims)
    arraylike("ravel_multi_index", *multi_index)  # an array is unstacked twice, as in jax's jaxpr
    places = list(arraylike("ravel_multi_index", *multi_index))
    dtype = dtypes.result_type(*places) if dtype is None else dtypes.canonicalize_dtype(dtype)
    if not dtypes.issubdtype(dtype, np.integer):
        raise ValueError(f"ravel_multi_index: {dtype=} is not an integer type.")
    if math.prod(sizes) - 1 > dtypes.iinfo(dtype).max:
        raise ValueError(f"ravel_multi_index: {dtype=} not large enough to hold flattened index for {dims=}")
    if not all(dtypes.issubdtype(typeof(i).dtype, np.integer) for i in places):
        raise TypeError("ravel_multi_index: only int indices permitted")
    if mode not in ("raise", "clip", "wrap", "ignore"):
        raise ValueError(f"ravel_multi_index: invalid {mode=}. Expected 'raise', 'wrap', 'clip', or 'ignore'.")
    places = [_bounded(i, n, mode) for i, n in zip(places, sizes, strict=True)]
    if order not in ("C", "F"):
        raise ValueError(f"ravel_multi_index: invalid {order=}. Expected 'C' or 'F'")
    flat = dtype.type(0)
    for axis, place in enumerate(places):
        step = math.prod(sizes[axis + 1 :] if order == "C" else sizes[:axis])
        flat = ufuncs.add(flat, ufuncs.multiply(convert(place, dtype), dtype.type(step)))
    return flat


# ---- indices of diagonals, triangles and masks -------------------------------------------------------


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """Returns the indices of the main diagonal of an array.

    They are a tuple with one vector for each axis. Raises ValueError unless the rank is 2 or more and all axes have one
    length.

    Example:
      >>> jnp.diag_indices_from(jnp.ones((2, 2)))
      (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    shape = _shape_of("diag_indices_from", arr)
    if len(shape) < 2:
        raise ValueError("diag_indices_from: input array must be at least 2-d")
    if len(set(shape)) != 1:
        raise ValueError("diag_indices_from: All dimensions of input must be of equal length")
    return taking.diag_indices(shape[0], len(shape))


def _shape_of(name: str, arr: Any) -> tuple[int, ...]:
    return tuple(arr.shape) if hasattr(arr, "shape") else typeof(*arraylike(name, arr)).shape


def _triangle_of(name: str, arr: Any) -> tuple[int, int]:
    shape = _shape_of(name, arr)
    if len(shape) != 2:
        raise ValueError(f"{name}: Only 2-D inputs are accepted, got shape {shape}")
    return shape


def tril_indices_from(arr: Any, k: int = 0) -> tuple[Array, Array]:
    """Returns the indices of the lower triangle of a matrix.

    They are a pair of vectors, of rows and of columns. `k` is the last diagonal that belongs to the triangle. Only the
    shape of `arr` is read.

    Example:
      >>> jnp.tril_indices_from(jnp.ones((2, 2)))
      (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    n, m = _triangle_of("tril_indices_from", arr)
    return taking.tril_indices(n, k, m)


def triu_indices_from(arr: Any, k: int = 0) -> tuple[Array, Array]:
    """Returns the indices of the upper triangle of a matrix.

    They are a pair of vectors, of rows and of columns. `k` is the first diagonal that belongs to the triangle. Only the
    shape of `arr` is read.

    Example:
      >>> jnp.triu_indices_from(jnp.ones((2, 2)))
      (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    n, m = _triangle_of("triu_indices_from", arr)
    return taking.triu_indices(n, k, m)


def mask_indices(n: int, mask_func: Callable, k: int = 0, *, size: int | None = None) -> tuple[Array, Array]:
    """Returns the indices where a function of a matrix of ones is nonzero.

    `mask_func(matrix, k)` gets a matrix of `n` rows and columns, as `jnp.tril` does. Under `jit` a mask that is traced
    needs the static `size`, to which indices are truncated or padded with 0.

    Example:
      >>> jnp.mask_indices(2, jnp.triu)
      (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    return taking.nonzero(mask_func(creation.ones((n, n)), k), size=size)


# ---- bits --------------------------------------------------------------------------------------------


def _ordered_bits(name: str, bits: Any, bitorder: str) -> Any:
    """Bits, given from the lowest, in the requested order. Raises ValueError for another order."""
    if bitorder not in ("little", "big"):
        raise ValueError(f"{name}: 'order' must be either 'little' or 'big', got {bitorder!r}")
    return bits if bitorder == "little" else structural.rev(bits, (0,))


def _axis_last(a: Any, axis: int | None) -> tuple[Any, int]:
    """`a` with `axis` swapped to the end, and `axis`; the flattened array and -1 for None."""
    if axis is None:
        return shaping.ravel(a), -1
    return shaping.swapaxes(a, axis, -1), axis


@jitted(static=("axis", "bitorder"))
def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Packs eight elements, as bits, in each uint8 along an axis.

    Elements that are not zero give ones. The last byte is padded with zeros. For `axis=None` the array is flattened.
    `bitorder` is "big", for the first element in the highest bit, or "little".

    Example:
      >>> jnp.packbits(jnp.array([1, 0, 1]))
      Array([160], dtype=uint8)
    """
    a = value("packbits", a)
    if not dtypes.issubdtype(a.dtype, np.integer) and a.dtype != np.bool_:
        raise TypeError(f"packbits: Expected an input array of integer or boolean data type, got {a.dtype}")
    bits = convert(lax.ne(a, const_like(a, 0)), np.dtype(np.uint8))
    shifts = _ordered_bits("packbits", counting.iota(np.dtype(np.uint8), 8), bitorder)
    bits, axis = _axis_last(bits, axis)
    missing = -bits.shape[-1] % 8
    if missing:
        bits = structural.pad(bits, np.uint8(0), [(0, 0, 0)] * (bits.ndim - 1) + [(0, missing, 0)])
    bits = shaping.reshape(bits, (*bits.shape[:-1], bits.shape[-1] // 8, 8))
    shifts = moving.expand_dims(shifts, tuple(range(bits.ndim - 1)))
    packed = reductions.sum(ufuncs.left_shift(bits, shifts), axis=-1)
    return shaping.swapaxes(convert(packed, np.dtype(np.uint8)), axis, -1)


@jitted(static=("axis", "count", "bitorder"))
def unpackbits(a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Array:
    """Unpacks the bits of each uint8 to eight elements along an axis.

    For `axis=None` the array is flattened. `count` is how many elements to keep, or if negative to drop from the end;
    more than there are pad with zeros. `bitorder` is "big" or "little". Raises TypeError for other dtypes.

    Example:
      >>> jnp.unpackbits(jnp.array([160], jnp.uint8), count=3)
      Array([1, 0, 1], dtype=uint8)
    """
    a = value("unpackbits", a)
    if a.dtype != np.uint8:
        raise TypeError(f"unpackbits: Expected an input array of unsigned byte data type, got {a.dtype}")
    masks = lax.shift_left(np.uint8(1), counting.iota(np.dtype(np.uint8), 8))
    masks = _ordered_bits("unpackbits", masks, bitorder)
    a, axis = _axis_last(a, axis)
    wide = moving.expand_dims(a, (a.ndim,)), moving.expand_dims(masks, tuple(range(a.ndim)))
    bits = convert(ufuncs.greater(ufuncs.bitwise_and(*wide), np.uint8(0)), np.dtype(np.uint8))
    bits = shaping.reshape(bits, (*a.shape[:-1], 8 * a.shape[-1]))
    size = bits.shape[-1]
    if count is not None and count > size:
        bits = padding.pad(bits, [(0, 0)] * (bits.ndim - 1) + [(0, count - size)])
    elif count is not None:
        bits = subscripts.getitem(bits, (..., slice(0, count)))
    return shaping.swapaxes(bits, axis, -1)
