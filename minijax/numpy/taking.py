"""Elements by position: `take` and related functions, diagonals, and indices of nonzero elements."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.base import dims, dtypes, errors
from minijax.base.dims import as_index
from minijax.base.symbolic.dimension import Dim, is_symbolic_dim, max_dim
from minijax.composed.arrays.index_in_dim import along
from minijax.composed.arrays.selecting import where as choose, where_arrays
from minijax.dispatch.jitted import jitted
from minijax.higher.cond import platform_dependent
from minijax.indexing.language import Options
from minijax.indexing.reading import from_front
from minijax.ir.concrete import concrete_value
from minijax.ir.trace import Tracer
from minijax.ir.types import ShapedArray, typeof
from minijax.numpy import creation, ranges, reductions, searching, shaping, subscripts
from minijax.numpy.contractions import einsum
from minijax.numpy.creation import arraylike, concrete, value, values
from minijax.numpy.ufuncs import add, clip, equal, floor_divide, less, remainder
from minijax.partition import meshes
from minijax.partition.meshes import P
from minijax.partition.shardings import NamedSharding
from minijax.primitives import counting, elementwise as lax, gather_scatter, moving, sharding, structural
from minijax.primitives.convert import convert, copy_p, scalar_as
from minijax.primitives.dot import Precision, dot
from minijax.primitives.families import const_like
from minijax.primitives.gather_dims import PROMISE_IN_BOUNDS, GatherDimensionNumbers, GatherScatterMode
from minijax.primitives.promote import arrays, check_arraylike, check_out
from minijax.run.arrays.array import Array, ArrayLike, ShardingLike

# ---- take --------------------------------------------------------------------------------------------


def take(
    a: ArrayLike,
    indices: ArrayLike,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Takes elements, or slices along an axis, at given indices.

    Args:
      a: array.
      indices: integers of any shape. Negative ones count from the end.
      axis: axis along which to take. By default `a` is flattened.
      out: must be `None`.
      mode: what an index out of bounds gives: "fill" (the default) a fill value, "clip" the first or last element,
        "wrap" the element at the index modulo the length.
      unique_indices: promise that no index occurs twice, with which gradients may be faster.
      indices_are_sorted: promise that indices ascend.
      fill_value: value for mode "fill". By default NaN for floats, the least value of a signed integer type, the
        largest of an unsigned one, and `True` for booleans.

    Returns:
      An array of the dtype of `a`, in whose shape that of `indices` replaces the axis.

    Raises:
      TypeError: if `axis` or `fill_value` is traced.
      NotImplementedError: for `out`, and for the mode "raise": programs on devices raise no errors.

    Differences from NumPy:
      An index out of bounds is not an error. A broken promise gives undefined results.

    See also: `jax.numpy.take_along_axis`, `jax.Array.at`, `jax.lax.gather`.

    Example:
      >>> x = jnp.array([10.0, 20.0, 30.0])
      >>> jnp.take(x, jnp.array([0, -1, 5]))
      Array([10., 30., nan], dtype=float32)
      >>> jnp.take(x, jnp.array([0, 5]), mode="clip")
      Array([10., 30.], dtype=float32)
      >>> jnp.take(jnp.arange(6).reshape(2, 3), jnp.array([2, 0]), axis=1)
      Array([[2, 0],
             [5, 3]], dtype=int32)
    """
    check_out("take", out)
    a, indices = values("take", a, indices)
    axis = None if axis is None else operator.index(axis)
    fill = fill_value.item() if hasattr(fill_value, "item") else fill_value
    return _take(a, indices, axis, mode, unique_indices, indices_are_sorted, fill)


@jitted("_take", static=("axis", "mode", "unique", "is_sorted", "fill"))
def _take(a, indices, axis, mode, unique, is_sorted, fill):
    a, axis = shaping.flattened_if_no_axis(a, axis)
    size = a.shape[axis]
    if indices.size and not size:
        raise IndexError("Cannot do a non-empty jnp.take() from an empty axis.")
    is_bool = indices.dtype == np.bool_ and mode in ("fill", None)
    if indices.size and not (is_bool or dtypes.issubdtype(indices.dtype, np.integer)):
        raise ValueError(f"take: indices must have an integer type, got {indices.dtype}. Use `indices.astype(int)`.")
    indices, gather_mode = _for_gather(indices, size, mode)
    offsets = (*range(axis), *range(axis + indices.ndim, a.ndim + indices.ndim - 1))
    sizes = tuple(1 if i == axis else n for i, n in enumerate(a.shape))
    if not indices.size:
        # Without indices nothing is gathered, whatever their shape.
        none = (*a.shape[:axis], *indices.shape, *a.shape[axis + 1 :])
        return a if not size else structural.blank(none, a.dtype, a.weak_type)
    starts, numbers = moving.expand_dims(indices, (indices.ndim,)), GatherDimensionNumbers(offsets, (axis,), (axis,))
    promises = dict(unique_indices=unique, indices_are_sorted=is_sorted)
    return gather_scatter.gather(a, starts, numbers, sizes, mode=gather_mode, fill_value=fill, **promises)


def _for_gather(indices: Any, size: int, mode: str | None) -> tuple[Any, GatherScatterMode]:
    """The indices along an axis of this size as a gather takes them, and its mode, for a `mode` of `take`."""
    if mode == "raise":
        raise NotImplementedError("The 'raise' mode to jnp.take is not supported.")
    if mode == "wrap":
        return remainder(indices, const_like(indices, size)), PROMISE_IN_BOUNDS
    if mode == "clip":
        return indices, GatherScatterMode.CLIP
    if mode not in ("fill", None):
        raise ValueError(f"Invalid mode '{mode}' for np.take. Use 'fill', 'clip' or 'wrap'.")
    n = size if indices.weak_type or indices.dtype == np.bool_ else scalar_as(size, indices.dtype)
    return choose(less(indices, 0), add(indices, n), indices), GatherScatterMode.FILL_OR_DROP


@jitted("take_along_axis", static=("axis", "mode", "fill_value", "wrap_negative_indices"))
def take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    mode: str | GatherScatterMode | None = None,
    fill_value: ArrayLike | None = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Array:
    """Takes one element for each index along an axis, as `argsort` and `argmax` return indices.

    Args:
      arr: array.
      indices: integers, of the rank of `arr`. Other axes than `axis` broadcast with those of `arr`.
      axis: axis along which to take. For `None`, `arr` is flattened and `indices` is a vector.
      mode: what an index out of bounds gives: "fill" (the default) a fill value, "clip" the first or last element.
        "promise_in_bounds" is a promise that all are in bounds. "one_hot" takes by a product with a one-hot array.
      fill_value: value for mode "fill". By default NaN for floats, the least value of a signed integer type, the
        largest of an unsigned one.
      wrap_negative_indices: whether negative indices count from the end. By default they do, unless all are promised to
        be in bounds.

    Returns:
      An array of the dtype of `arr`, in whose shape the length of `indices` replaces that of the axis.

    Raises:
      TypeError: if `indices` are not integers.
      ValueError: if ranks differ.

    Differences from NumPy:
      An index out of bounds is not an error. The last three arguments are additions.

    See also: `jax.numpy.take`, `jax.numpy.put_along_axis`, `jax.numpy.argsort`.

    Example:
      >>> x = jnp.array([[3, 1, 2], [9, 7, 8]])
      >>> jnp.take_along_axis(x, jnp.argsort(x, axis=1), axis=1)
      Array([[1, 2, 3],
             [7, 8, 9]], dtype=int32)
    """
    a, indices = values("take_along_axis", arr, indices)
    if not dtypes.issubdtype(indices.dtype, np.integer):
        raise TypeError(f"take_along_axis indices must be of integer type, got {indices.dtype}")
    if axis is None:
        if indices.ndim != 1:
            raise ValueError(f"take_along_axis indices must be 1D if axis=None, got shape {indices.shape}")
        a, axis = shaping.ravel(a), 0
    if indices.ndim != a.ndim:
        raise ValueError(
            f"take_along_axis: indices and arr must have the same number of dimensions; {indices.ndim} vs. {a.ndim}"
        )
    axis = dims.canonical_axis(axis, a.ndim)
    if not a.shape[axis]:
        others = (a.shape[:axis], a.shape[axis + 1 :]), (indices.shape[:axis], indices.shape[axis + 1 :])
        before, after = (shaping.broadcast_shapes(x, y) for x, y in zip(*others, strict=True))
        return moving.filled((*before, indices.shape[axis], *after), 0, a.dtype)
    gather_mode = GatherScatterMode.FILL_OR_DROP if mode is None else GatherScatterMode.from_any(mode)
    wraps = gather_mode is not PROMISE_IN_BOUNDS if wrap_negative_indices is None else wrap_negative_indices
    if wraps or mode == "one_hot":
        indices = convert(indices, np.dtype(np.int32))
    indices = from_front(indices, a.shape[axis]) if wraps else indices
    if mode == "one_hot":
        return _take_one_hot(a, indices, axis)
    plan = along(a.shape, indices.shape, axis)
    vectors = moving.reshape_to(indices, (*plan.index_shape, 1))
    a = structural.squeeze(a, plan.squeezed) if plan.squeezed else a
    return gather_scatter.gather(a, vectors, plan.numbers, plan.slice_sizes, mode=gather_mode, fill_value=fill_value)


def _take_one_hot(a: Any, indices: Any, axis: int) -> Any:
    """The elements at indices along an axis, by a product with one-hot vectors."""
    ones = marked(indices, a.shape[axis], dtype=np.dtype(bool), axis=-1)
    if a.ndim == 1:
        return dot(ones, a, preferred_element_type=a.dtype)
    axes, new = list(range(a.ndim)), a.ndim
    rows = [new if i == axis else i for i in axes]
    return einsum(ones, [*rows, axis], a, axes, rows, precision=Precision.HIGHEST, preferred_element_type=a.dtype)


@jitted("_one_hot", static=("num_classes", "dtype", "axis"))
def marked(x: Any, num_classes: int, *, dtype: Any, axis: int) -> Any:
    """One-hot vectors along a new axis; all zeros for an index out of bounds."""
    x = value("one_hot", x)
    at = dims.canonical_axis(axis, x.ndim + 1)
    shape = tuple(num_classes if i == at else 1 for i in range(x.ndim + 1))
    split = sharding.cotangent_sharding(typeof(x))
    whole = split.update(spec=P(*[None] * len(shape))) if split is not None and split.mesh.explicit_axes else None
    column = moving.expand_dims(x, (at,))
    return convert(equal(column, counting.broadcasted_iota(x.dtype, shape, at, out_sharding=whole)), dtype)


@jitted("put_along_axis", static=("axis", "inplace", "mode"))
def put_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: str | None = None,
) -> Array:
    """Returns a copy of an array with the elements at indices along an axis replaced.

    `inplace` must be false, unlike NumPy's default, since arrays are immutable. `mode` is what happens to indices out
    of bounds: "drop" (the default) ignores them, "clip" takes the first or last one.

    Example:
      >>> jnp.put_along_axis(jnp.zeros((2, 2)), jnp.array([[0], [1]]), 1, axis=1, inplace=False)
      Array([[1., 0.],
             [0., 1.]], dtype=float32)
    """
    if inplace:
        raise ValueError("jax.numpy.put_along_axis cannot modify arrays in-place: pass inplace=False instead")
    a, shape = value("put_along_axis", arr), value("put_along_axis", arr).shape
    if axis is None:
        a, axis = shaping.ravel(a), 0
    if typeof(indices).ndim != a.ndim:
        raise ValueError("put_along_axis arguments 'arr' and 'indices' must have same ndim.")
    axis = dims.canonical_axis(axis, a.ndim)
    index_shape = typeof(indices).shape
    wide = (*a.shape[:axis], index_shape[axis], *a.shape[axis + 1 :])
    put = shaping.broadcast_to(values, wide)
    int_type = dtypes.default_int_dtype()
    places = [ranges.broadcast_along(counting.iota(int_type, n), i, a.shape) for i, n in enumerate(a.shape)]
    places[axis] = indices
    updated = subscripts.update(a, tuple(places), put, "set", Options(mode))
    return shaping.reshape(updated, shape)


def ix_(*args: ArrayLike) -> tuple[Array, ...]:
    """Makes index arrays for the grid of several vectors of indices.

    Vector `i` gets its elements along axis `i`, and the arrays broadcast when they index. Vectors of booleans stand in
    for the indices at which they are true and must be concrete.

    Example:
      >>> jnp.ix_(jnp.array([0, 1]), jnp.array([2]))
      (Array([[0],
             [1]], dtype=int32), Array([[2]], dtype=int32))
    """
    places = []
    for i, x in enumerate(values("ix", *args)):
        if x.ndim != 1:
            raise ValueError(f"Arguments to jax.numpy.ix_ must be 1-dimensional, got shape {x.shape}")
        if x.dtype == np.bool_:
            (x,) = nonzero(x)
        x = x if x.size else convert(x, np.dtype(np.int32))
        places.append(moving.expand_dims(x, tuple(j for j in range(len(args)) if j != i)))
    return tuple(places)


# ---- diagonals ---------------------------------------------------------------------------------------


@jitted("diagonal", static=("offset", "axis1", "axis2"))
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Returns a diagonal of a matrix, or of each matrix in an array.

    Matrices are in `axis1` and `axis2`; the diagonal becomes the last axis. `offset` is static. The result is never a
    view.

    Example:
      >>> jnp.diagonal(jnp.arange(9).reshape(3, 3))
      Array([0, 4, 8], dtype=int32)
    """
    a = value("diagonal", a)
    if a.ndim < 2:
        raise ValueError("diagonal requires an array of at least two dimensions.")
    i, j = dims.canonical_axis(axis1, a.ndim), dims.canonical_axis(axis2, a.ndim)
    offset = operator.index(offset)
    if a.ndim != 2 or offset or a.shape[0] != a.shape[1] or a.dtype == np.bool_:
        return _gathered_diagonal(a, offset, i, j)
    # jax has a branch for Mosaic kernels, which cannot gather.
    summed = lambda eye, a: moving.sum_axes(lax.mul(eye, a), (0,))  # noqa: E731
    gathered = lambda _, a: _gathered_diagonal(a, 0, i, j)  # noqa: E731
    return platform_dependent(ranges.eye(a.shape[0], dtype=a.dtype), a, mosaic=summed, default=gathered)


def _gathered_diagonal(a: Any, offset: int, i: int, j: int) -> Any:
    a = shaping.moveaxis(a, (i, j), (-2, -1))
    size = max(0, min(a.shape[-2] + min(offset, 0), a.shape[-1] - max(offset, 0)))
    first, second = (counting.iota(dtypes.default_int_dtype(), size) for _ in range(2))
    rows = first if offset >= 0 else lax.add(first.dtype.type(-offset), second)
    columns = second if offset >= 0 else first
    columns = lax.add(columns.dtype.type(offset), columns) if offset > 0 else columns
    return subscripts.getitem(a, (..., rows, columns))


def diag(v: ArrayLike, k: int = 0) -> Array:
    """Makes a matrix with a given diagonal, or returns a diagonal of a matrix.

    Args:
      v: vector, the diagonal; or matrix.
      k: which diagonal: above the main one if positive, below it if negative. It must be static.

    Returns:
      For a vector, a matrix of zeros with this diagonal, which has `v.size + abs(k)` rows. For a matrix, its diagonal
      `k` as a vector.

    Raises:
      ValueError: for other ranks than 1 and 2.

    See also: `jax.numpy.diagonal`, `jax.numpy.diagflat`, `jax.numpy.eye`.

    Example:
      >>> jnp.diag(jnp.array([1, 2]))
      Array([[1, 0],
             [0, 2]], dtype=int32)
      >>> jnp.diag(jnp.arange(9).reshape(3, 3), k=1)
      Array([1, 5], dtype=int32)
    """
    return _diag(value("diag", v), operator.index(k))


@jitted("_diag", static=("k",))
def _diag(v, k):
    if v.ndim == 2:
        return diagonal(v, offset=k)
    if v.ndim != 1:
        raise ValueError(f"diag input must be 1d or 2d, got shape {v.shape}")
    zero = structural.blank((), v.dtype, typeof(v).weak_type)
    v = structural.pad(v, zero, ((max(0, -k), max(0, k), 0),))
    n = v.shape[0]
    return choose(ranges.eye(n, k=k, dtype=bool), moving.expand_dims(v, (1,)), zero)


def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """Makes a matrix with the elements of a flattened array on a diagonal.

    `k` is the diagonal, which is static: above the main one if positive.

    Example:
      >>> jnp.diagflat(jnp.array([1, 2]))
      Array([[1, 0],
             [0, 2]], dtype=int32)
    """
    v = shaping.ravel(value("diagflat", v))
    size, n = v.size, v.size + abs(k)
    int_type = dtypes.default_int_dtype()
    square = structural.blank((n * n,), v.dtype)
    steps = counting.iota(int_type, size)
    columns = lax.add(steps, int_type.type(k)) if k >= 0 else steps
    rows = lax.mul(steps if k >= 0 else lax.sub(steps, int_type.type(k)), int_type.type(n))
    square = subscripts.update(square, lax.add(columns, rows), v, "set")
    return moving.reshape(square, (n, n))


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """Returns the indices of the main diagonal of an array of `ndim` axes of length `n`.

    They are a tuple with one vector for each axis. Both arguments are static.

    Example:
      >>> jnp.diag_indices(2)
      (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    n = as_index(concrete(n, "diag_indices", "n"))
    if n < 0 or ndim < 0:
        raise ValueError(f"Arguments to jax.numpy.diag_indices must be nonnegative, got n={n}, ndim={ndim}")
    return (counting.iota(int, n),) * ndim


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Returns the indices of the lower triangle of a matrix of `n` rows and `m` columns.

    They are a pair of vectors, of rows and of columns. `k` is the last diagonal that belongs to the triangle. All
    arguments are static.

    Example:
      >>> jnp.tril_indices(2)
      (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    m = n if m is None else m
    return nonzero(ranges.tril(creation.ones((n, m)), k), size=_lower_size(n, m, k))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Returns the indices of the upper triangle of a matrix of `n` rows and `m` columns.

    They are a pair of vectors, of rows and of columns. `k` is the first diagonal that belongs to the triangle. All
    arguments are static.

    Example:
      >>> jnp.triu_indices(2)
      (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    m = n if m is None else m
    return nonzero(ranges.triu(creation.ones((n, m)), k), size=_lower_size(m, n, -k))


def _lower_size(n: Dim, m: Dim, k: Dim) -> Dim:
    """The number of elements of the lower triangle of an n by m matrix."""
    # It is never negative, which is not always provable for symbolic sizes.
    return max_dim(_triangular(n + k) - _triangular(k) - _triangular(n + k - m) + _triangular(k - m), 0)


def _triangular(n: Dim) -> Dim:
    """1 + 2 + ... + n, zero where n is negative."""
    n = max_dim(n, 0)
    return n * (n + 1) // 2


# ---- indices of nonzero elements -------------------------------------------------------------------------


def known(name: str, x: Any) -> np.ndarray:
    """The concrete value of an array on which the shape of a result depends."""
    if (found := concrete_value(x)) is None:
        raise errors.ConcretizationTypeError(
            x,
            f"The size argument of jnp.{name} must be statically specified to use jnp.{name} within JAX "
            "transformations. Pass size=n.",
        )
    return np.asarray(found)


def nonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: None | ArrayLike | tuple[ArrayLike, ...] = None
) -> tuple[Array, ...]:
    """Returns the indices of the elements that are not zero, one vector for each axis.

    Under `jit` the static `size` must be given, to which indices are truncated or padded with `fill_value`: a number,
    or a tuple with one for each axis, 0 by default. Raises ValueError for scalars.

    Example:
      >>> jnp.nonzero(jnp.array([0, 5, 7]))
      (Array([1, 2], dtype=int32),)
      >>> jax.jit(lambda x: jnp.nonzero(x, size=3, fill_value=-1))(jnp.array([0, 5, 7]))
      (Array([ 1,  2, -1], dtype=int32),)
    """
    a = value("nonzero", a)
    if a.ndim == 0:
        raise ValueError("Calling nonzero on 0d arrays is not allowed. Use jnp.atleast_1d(scalar).nonzero() instead.")
    int_type = dtypes.default_int_dtype()
    if size is None:
        return tuple(creation.asarray(i.astype(int_type)) for i in np.nonzero(known("nonzero", a)))
    size = as_index(concrete(size, "nonzero", "size"))
    mask = a if a.dtype == np.bool_ else lax.ne(a, np.zeros((), a.dtype)[()])
    fills = fill_value if isinstance(fill_value, tuple) else (fill_value,) * a.ndim
    if len(fills) != a.ndim:
        raise ValueError(f"nonzero: fill_value must be a scalar or a tuple of length {a.ndim}; got {fill_value}")
    if a.size == 0 or size == 0:
        return tuple(creation.full((size,), 0 if f is None else f, int_type) for f in fills)
    ends = reductions.cumsum(mask)
    tally = moving.filled((size,), 0, int_type)
    flat = reductions.cumsum(subscripts.update(tally, clip(ends, 0), int_type.type(1), "add"))
    places_by_axis = [
        remainder(floor_divide(flat, scalar_as(math.prod(a.shape[i + 1 :]), int_type)), n)
        for i, n in enumerate(a.shape)
    ]
    if fill_value is None:
        return tuple(places_by_axis)
    places = counting.iota(int_type, size)
    count = moving.sum_axes(convert(convert(mask, np.dtype(np.int32)), int_type), tuple(range(a.ndim)))
    beyond = lax.ge(places, count)
    return tuple(choose(beyond, fill, x) for fill, x in zip(fills, places_by_axis, strict=True))


def argwhere(a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """Returns the indices of the elements that are not zero, as the rows of a matrix.

    Under `jit` the static `size` must be given, the number of rows; more are left out, fewer are padded with
    `fill_value`, 0 by default.

    Example:
      >>> jnp.argwhere(jnp.array([[1, 0], [0, 2]]))
      Array([[0, 0],
             [1, 1]], dtype=int32)
    """
    a = value("argwhere", a)
    places_by_axis = nonzero(shaping.atleast_1d(a), size=size, fill_value=fill_value)
    places = shaping.transpose(shaping.vstack(places_by_axis))
    if a.ndim:
        return places
    return shaping.reshape(subscripts.getitem(places, slice(0, 0)), (places.shape[0], 0))


def flatnonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: None | ArrayLike | tuple[ArrayLike, ...] = None
) -> Array:
    """Returns the flat indices of the elements that are not zero.

    Under `jit` the static `size` must be given, to which the result is truncated or padded with `fill_value`, 0 by
    default.

    Example:
      >>> jnp.flatnonzero(jnp.array([0, 5, 7]))
      Array([1, 2], dtype=int32)
    """
    return nonzero(shaping.ravel(a), size=size, fill_value=fill_value)[0]


# ---- changing by position ----------------------------------------------------------------------------


def delete(
    arr: ArrayLike, obj: ArrayLike | slice, axis: int | None = None, *, assume_unique_indices: bool = False
) -> Array:
    """Returns an array without the elements or slices at given indices.

    `obj` are the indices: an integer, a slice or a vector; for `axis=None` the array is flattened. Under `jit`, traced
    indices need `assume_unique_indices`, which promises that they are different: the length of the result depends on
    it.

    Example:
      >>> jnp.delete(jnp.array([10, 20, 30]), 1)
      Array([10, 30], dtype=int32)
    """
    a = value("delete", arr)
    (obj,) = (obj,) if isinstance(obj, slice) else arraylike("delete", obj)
    a, axis = shaping.flattened_if_no_axis(a, axis)
    size = a.shape[axis]
    if isinstance(obj, slice):
        return _without(a, ranges.arange(size)[obj], axis)
    if np.ndim(obj) == 0 and not isinstance(obj, Tracer):
        if np.asarray(obj).dtype.kind not in "biu":
            raise ValueError(f"delete: a single position must be an integer, got {obj}")
        at = dims.canonical_axis(int(obj), size)
        front = (slice(None),) * axis
        ends = [subscripts.getitem(a, (*front, s)) for s in (slice(0, at), slice(at + 1, size))]
        return structural.concatenate(ends, axis)
    if assume_unique_indices:
        (obj,) = values("delete", obj)
        return _without(a, shaping.ravel(obj), axis)
    is_kept, places = np.ones(size, bool), concrete(obj, "delete", "obj")
    if np.asarray(places).dtype.kind not in "biu":
        raise ValueError(f"np.delete(arr, obj): got obj.dtype={np.asarray(places).dtype}; must be integer or bool.")
    is_kept[places] = False
    return subscripts.getitem(a, (*[slice(None)] * axis, is_kept))


def _without(a: Any, places: Any, axis: int) -> Any:
    """`a` without the elements at distinct positions, which may be traced."""
    size, count = a.shape[axis], places.shape[0]
    places = choose(places < 0, places + size, places)
    places = searching.sort(clip(places, 0, size)) - counting.iota(places.dtype, count)
    kept = counting.iota(places.dtype, size - count)
    kept = kept + (kept[None, :] >= places[:, None]).sum(0, dtype=places.dtype)
    return subscripts.getitem(a, (*[slice(None)] * axis, kept))


def repeat(
    a: ArrayLike,
    repeats: ArrayLike,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Repeats the elements of an array along an axis.

    Args:
      a: array.
      repeats: number of repetitions: one for all elements, or a vector with one for each.
      axis: axis along which to repeat. By default `a` is flattened.
      total_repeat_length: length of the axis of the result. Needed under `jit` if `repeats` is traced. More elements
        are left out, fewer are padded with the last one.
      out_sharding: sharding of the result, where the mesh has explicit axes.

    Returns:
      An array of the dtype of `a`, whose axis has length `sum(repeats)` or `total_repeat_length`.

    Raises:
      ConcretizationTypeError: if `repeats` is traced and `total_repeat_length` is not given.
      ValueError: if `repeats` has another length than the axis.

    Differences from NumPy:
      The last two arguments are additions.

    See also: `jax.numpy.tile`, `jax.numpy.broadcast_to`.

    Example:
      >>> jnp.repeat(jnp.array([1, 2]), 2)
      Array([1, 1, 2, 2], dtype=int32)
      >>> x = jnp.array([[1, 2], [3, 4]])
      >>> jnp.repeat(x, jnp.array([1, 2]), axis=0)
      Array([[1, 2],
             [3, 4],
             [3, 4]], dtype=int32)
      >>> jax.jit(lambda n: jnp.repeat(x, n, axis=0, total_repeat_length=3))(jnp.array([2, 0]))
      Array([[1, 2],
             [1, 2],
             [3, 4]], dtype=int32)
    """
    a, _ = value("repeat", a), arraylike("repeat", a, repeats)
    if axis is None:
        a, axis = shaping.ravel(a), 0
    if not a.ndim:
        a, axis = moving.expand_dims(a, (0,)), 0
    place, total, aval = dims.canonical_axis(concrete(axis, "repeat", "axis"), a.ndim), total_repeat_length, typeof(a)
    mesh = meshes.abstract_context()
    if out_sharding is None and (mesh is None or not mesh.explicit_axes or type(aval) is not ShapedArray):
        return _repeated(a, repeats, place, total)
    if out_sharding is None and aval.entries[place] is not None:
        raise ValueError(
            f"Please pass sharding to `jnp.repeat` via `out_sharding` parameter: axis {place} of a, which is repeated, "
            f"is sharded in {aval.str_short()}"
        )
    over = NamedSharding(mesh, P(*aval.entries)) if out_sharding is None else out_sharding
    if isinstance(repeats, Array):
        return sharding.with_auto_axes("repeat", lambda n, x: _repeated(x, n, place, total), (repeats, a), over)
    return sharding.with_auto_axes("repeat", lambda x: _repeated(x, repeats, place, total), (a,), over)


def _repeated(a: Any, repeats: Any, axis: int, total: int | None) -> Any:
    if total is None and is_symbolic_dim(repeats):
        return shaping.repeat_uniformly(a, repeats, axis)
    if total is None:
        known_counts = np.asarray(concrete(repeats, "repeat", "repeats"))
        if (known_counts < 0).any():
            raise TypeError(f"repeat: counts must be nonnegative, got {known_counts}")
        known_counts = known_counts.ravel() if known_counts.ndim else known_counts
        if not known_counts.ndim:
            if known_counts.dtype.kind not in "iub":
                raise TypeError(f"repeat: repeats must be integers, got {known_counts}")
            return shaping.repeat_uniformly(a, int(known_counts), axis)
        total = int(np.broadcast_to(known_counts, a.shape[axis : axis + 1]).sum())
    (counts,) = values("repeat", repeats)
    counts = shaping.ravel(counts) if counts.ndim > 1 else counts
    counts = moving.broadcast_to_shape(counts, a.shape[axis : axis + 1])
    if not total:
        return take(a, creation.zeros(0, np.int32), axis)
    if not counts.shape[0]:
        return a
    starts = reductions.cumsum(shaping.roll(counts, 1).at[0].set(0))
    index_of_copy = reductions.cumsum(creation.zeros(total, np.int32).at[starts].add(1))
    return take(a, index_of_copy - 1, axis)


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: int | Sequence[int] | None = None) -> Array:
    """Removes zeros at the ends of an array.

    `trim` is "f" for the front, "b" for the back or "fb" for both. `axis` is one axis or a sequence, by default all.
    The values must be concrete, since the shape of the result depends on them.

    Example:
      >>> jnp.trim_zeros(jnp.array([0, 1, 2, 0]))
      Array([1, 2], dtype=int32)
    """
    a = value("trim_zeros", filt)
    nonzeros = np.argwhere(known("trim_zeros", a))
    axes = shaping.nonnegative_axes(axis, a.ndim)
    parts = []
    for i, n in enumerate(a.shape):
        low, high = (int(nonzeros[:, i].min()), int(nonzeros[:, i].max()) + 1) if nonzeros.size else (n, 0)
        parts.append(slice(low if "f" in trim and i in axes else 0, high if "b" in trim and i in axes else n))
    return subscripts.getitem(a, tuple(parts))


def extract(condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = 0) -> Array:
    """Takes the elements of an array where a condition is true, as a vector.

    Under `jit` the static `size` must be given, to which the result is truncated or padded with `fill_value`.

    Example:
      >>> jnp.extract(jnp.array([True, False, True]), jnp.arange(3))
      Array([0, 2], dtype=int32)
    """
    return compress(shaping.ravel(condition), shaping.ravel(arr), size=size, fill_value=fill_value)


def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
    out: None = None,
) -> Array:
    """Takes the slices along an axis for which a condition is true.

    `condition` is a vector; for `axis=None` the array is flattened. Under `jit` the static `size` must be given, to
    which the result is truncated or padded with `fill_value`. `out` must be `None`.

    Example:
      >>> jnp.compress(jnp.array([True, False, True]), jnp.arange(3))
      Array([0, 2], dtype=int32)
    """
    check_out("compress", out)
    condition, a = value("compress", condition), value("compress", a)
    if condition.ndim != 1:
        raise ValueError("compress: condition must be a 1D array")
    condition = condition if condition.dtype == np.bool_ else creation.astype(condition, bool)
    a, axis = shaping.flattened_if_no_axis(a, axis)
    a = moving.move_axis(a, axis, 0)
    n = a.shape[0]
    beyond, condition = condition[n:], condition[:n]
    if not isinstance(beyond, Tracer) and beyond.any():
        raise ValueError("compress: condition contains entries that are out of bounds")
    a = a[: condition.shape[0]]
    if size is None:
        return moving.move_axis(a[condition], 0, axis)
    if not 0 <= size <= a.shape[0]:
        raise ValueError(
            "size must not be negative or greater than the size of the array axis; got "
            f"{size=} for a.shape[axis]={a.shape[0]}"
        )
    mask = shaping.expand_dims(condition, tuple(range(1, a.ndim)))
    filled = choose(mask, a, convert(copy_p.bind(creation.asarray(fill_value)), a.dtype))
    front = filled[searching.argsort(condition, stable=True, descending=True)][:size]
    return moving.move_axis(front, 0, axis)


def where(condition: Any, x: Any = None, y: Any = None, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """Selects elements from two arrays by a condition, or returns the indices where a condition is true.

    Args:
      condition: array of booleans; numbers are true where they are not zero.
      x: array or number, taken where the condition is true.
      y: array or number, taken where it is false. `x` and `y` are given both or not at all.
      size: without `x` and `y`, the number of indices in the result. Needed if `condition` is traced. More indices are
        left out, fewer are padded.
      fill_value: without `x` and `y`, the index that pads, 0 by default.

    Returns:
      With `x` and `y`, an array of the shape to which all three broadcast and the dtype that `x` and `y` promote to.
      Without them, a tuple of index arrays, one for each axis of `condition`, as `nonzero` gives.

    Raises:
      TypeError: if only one of `x` and `y` is given.
      ValueError: if `size` or `fill_value` is given with them.
      ConcretizationTypeError: for indices of a traced condition without `size`.

    Differences from NumPy:
      Both branches are computed. A NaN or infinity in the one that is not taken still makes derivatives NaN, through a
      product with zero: replace the operands that cause it first, by another `where`.

    See also: `jax.numpy.select`, `jax.numpy.nonzero`, `jax.lax.select`.

    Example:
      >>> x = jnp.array([-1.0, 0.0, 2.0])
      >>> jnp.where(x > 0, x, 0)
      Array([0., 0., 2.], dtype=float32)
      >>> jnp.where(x > 0)
      (Array([2], dtype=int32),)
      >>> jnp.where(x > 0, size=2, fill_value=-1)
      (Array([ 2, -1], dtype=int32),)
    """
    if x is None and y is None:
        (condition,) = arrays("where", condition)
        return nonzero(condition, size=size, fill_value=fill_value)
    check_arraylike("where", condition, x, y)
    if size is not None or fill_value is not None:
        raise ValueError("size and fill_value arguments cannot be used in three-term where function.")
    return where_arrays(condition, x, y)
