"""Arrays joined and divided, and differences of their elements."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.api.vmap import vmap
from minijax.base import dims, dtypes
from minijax.base.dtypes import DTypeLike
from minijax.base.symbolic.dimension import is_int
from minijax.dispatch.fused import fused
from minijax.dispatch.jitted import jitted
from minijax.ir.types import typeof
from minijax.numpy import subscripts, ufuncs
from minijax.numpy.creation import arraylike, asarray, concrete, host_ints, value, values
from minijax.numpy.shaping import atleast_1d, atleast_2d, atleast_3d, ravel, transpose
from minijax.primitives import counting, elementwise as lax, moving, structural
from minijax.primitives.convert import convert
from minijax.primitives.promote import arrays, check_arraylike, check_out, promote_dtypes
from minijax.run.arrays.array import Array, ArrayLike


@fused()
def concatenate(
    arrays: np.ndarray | Array | Sequence[ArrayLike], axis: int | None = 0, dtype: DTypeLike | None = None
) -> Array:
    """Joins arrays along an axis that they have.

    Args:
      arrays: sequence of arrays, or an array whose first axis counts them. They may differ in length along `axis` only.
      axis: axis along which to join. For `None` the arrays are flattened.
      dtype: dtype of the result. By default the one that the arrays promote to.

    Returns:
      An array whose axis is as long as those of the arrays together.

    Raises:
      ValueError: if no array is given, or if one is a scalar.
      TypeError: if ranks differ, or other axes in length.

    Differences from NumPy:
      It does not take `out` and `casting`. A value is cast to `dtype` by any cast.

    See also: `jax.numpy.stack`, `jax.numpy.split`, `jax.lax.concatenate`.

    Example:
      >>> jnp.concatenate([jnp.array([1, 2]), jnp.array([3.5])])
      Array([1. , 2. , 3.5], dtype=float32)
      >>> jnp.concatenate([jnp.ones((2, 3)), jnp.zeros((2, 1))], axis=1).shape
      (2, 4)
    """
    if isinstance(arrays, np.ndarray | Array):
        if not np.ndim(arrays):
            raise ValueError(_SCALARS)
        return _merge_first(_not_empty("concatenate", arrays), axis, dtype)
    parts = _checked_sequence("concatenate", arrays)
    if axis is None:
        return concatenate([ravel(x) for x in parts], 0, dtype)
    if any(typeof(x).ndim == 0 for x in parts):
        raise ValueError(_SCALARS)
    axis = dims.canonical_axis(axis, typeof(parts[0]).ndim)
    parts = _in_one_dtype(parts, dtype)
    return value("concatenate", parts[0]) if len(parts) == 1 else structural.concatenate(parts, axis)


_SCALARS = "Zero-dimensional arrays cannot be concatenated. `jnp.stack` joins a sequence of scalars."
_NONE = "Pass a sequence that is not empty."


def _not_empty(name: str, arrays: Any) -> Any:
    """One array as a sequence of arrays. Raises TypeError for a scalar, ValueError if there are none."""
    x = value(name, arrays)
    if not x.ndim:
        raise TypeError(f"{name}: len() of unsized object, the arrays are one scalar")
    if not x.shape[0]:
        raise ValueError(f"Need at least one array to {name}. {_NONE}")
    return x


def _checked_sequence(name: str, arrays: Any) -> Sequence:
    """The arrays to join. Raises TypeError unless they are a sequence, ValueError for an empty one."""
    if not isinstance(arrays, Sequence):
        raise TypeError(f"{name}: the arrays must be given as a sequence or as one array, got {type(arrays)}")
    if not arrays:
        raise ValueError(f"Need at least one array to {name}. {_NONE}")
    return arraylike(name, *arrays)


def _asked(dtype: DTypeLike) -> Any:
    """The dtype that a user asks for; warns, for each array, if 64 bits are not available."""
    return dtypes.requested_dtype(dtype, "asarray")


def _in_one_dtype(arrays: Sequence, dtype: Any) -> list:
    return promote_dtypes(*arrays) if dtype is None else [convert(x, _asked(dtype)) for x in arrays]


def _merge_first(x: Any, axis: int | None, dtype: Any) -> Any:
    if x.ndim == 0:
        raise ValueError("concatenate: Zero-dimensional arrays cannot be concatenated.")
    if x.ndim == 1 and axis is not None:
        raise ValueError(_SCALARS)
    x = x if dtype is None else convert(x, _asked(dtype))
    if axis is None:
        return ravel(x)
    axis = dims.canonical_axis(axis, x.ndim - 1)
    order = [*range(1, axis + 1), 0, *range(axis + 1, x.ndim)]
    merged = (*x.shape[1 : axis + 1], x.shape[0] * x.shape[axis + 1], *x.shape[axis + 2 :])
    return moving.reshape(x, merged, order)


def concat(arrays: Sequence[ArrayLike], /, *, axis: int | None = 0) -> Array:
    """Joins arrays along an axis that they have.

    It is `concatenate` under the name of the array API standard, where `axis` is a keyword. For `None` the arrays are
    flattened.
    """
    check_arraylike("concat", *arrays)
    return concatenate(arrays, axis)


@fused()
def stack(
    arrays: np.ndarray | Array | Sequence[ArrayLike], axis: int = 0, out: None = None, dtype: DTypeLike | None = None
) -> Array:
    """Joins arrays of one shape along a new axis.

    Args:
      arrays: sequence of arrays, or an array whose first axis counts them.
      axis: place of the new axis in the result.
      out: must be `None`.
      dtype: dtype of the result. By default the one that the arrays promote to.

    Returns:
      An array of a rank larger by 1, whose new axis counts the arrays.

    Raises:
      ValueError: if no array is given, or if shapes differ.
      NotImplementedError: for `out`.

    Differences from NumPy:
      It does not take `casting`.

    See also: `jax.numpy.concatenate`, `jax.numpy.unstack`, `jax.tree.map`.

    Example:
      >>> jnp.stack([jnp.array([1, 2]), jnp.array([3, 4])])
      Array([[1, 2],
             [3, 4]], dtype=int32)
      >>> jnp.stack([jnp.array([1, 2]), jnp.array([3, 4])], axis=1)
      Array([[1, 3],
             [2, 4]], dtype=int32)
    """
    check_out("stack", out)
    if isinstance(arrays, np.ndarray | Array):
        x = _not_empty("stack", arrays)
        axis = dims.canonical_axis(axis, x.ndim)
        return concatenate(moving.expand_dims(x, (axis + 1,)), axis, dtype)
    parts = _checked_sequence("stack", arrays)
    axis = dims.canonical_axis(axis, typeof(parts[0]).ndim + 1)
    if any(typeof(x).shape != typeof(parts[0]).shape for x in parts):
        shapes = ", ".join(str(typeof(x).shape) for x in parts)
        raise ValueError(
            f"All input arrays must have the same shape. Got {shapes}. `jnp.stack` joins equal shapes, "
            "`jnp.concatenate` arrays of other sizes along an axis that they have."
        )
    return structural.stack(_in_one_dtype(parts, dtype), axis)


def _with_min_ranks(at_least: Any, tup: Any) -> tuple[Any, int]:
    """The arrays with the axes that `at_least` adds, and their rank."""
    if isinstance(tup, np.ndarray | Array):
        stacked = vmap(at_least)(asarray(tup))
        return stacked, stacked.ndim - 1
    stacked = [at_least(x) for x in tup]
    return stacked, stacked[0].ndim if stacked else 1


def hstack(tup: np.ndarray | Array | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Joins arrays along axis 1, or vectors along axis 0.

    `tup` is a sequence of arrays, or an array whose first axis counts them. `dtype` is that of the result. It does not
    take `casting`.

    Example:
      >>> jnp.hstack([jnp.array([1, 2]), jnp.array([3])])
      Array([1, 2, 3], dtype=int32)
    """
    arrays, ndim = _with_min_ranks(atleast_1d, tup)
    return concatenate(arrays, 0 if ndim == 1 else 1, dtype)


def vstack(tup: np.ndarray | Array | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Joins arrays along axis 0, after giving each a rank of at least 2.

    `tup` is a sequence of arrays, or an array whose first axis counts them. `dtype` is that of the result. It does not
    take `casting`.

    Example:
      >>> jnp.vstack([jnp.array([1, 2]), jnp.array([3, 4])])
      Array([[1, 2],
             [3, 4]], dtype=int32)
    """
    return concatenate(_with_min_ranks(atleast_2d, tup)[0], 0, dtype)


def dstack(tup: np.ndarray | Array | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Joins arrays along axis 2, after giving each a rank of at least 3.

    `tup` is a sequence of arrays, or an array whose first axis counts them. `dtype` is that of the result.
    """
    return concatenate(_with_min_ranks(atleast_3d, tup)[0], 2, dtype)


def column_stack(tup: np.ndarray | Array | Sequence[ArrayLike]) -> Array:
    """Joins vectors as the columns of a matrix; matrices are joined along their columns.

    The dtype is the one that all promote to.
    """
    if isinstance(tup, np.ndarray | Array):
        x = asarray(tup)
        return concatenate(vmap(lambda y: transpose(atleast_2d(y)))(x) if x.ndim < 3 else x, 1)
    return concatenate([transpose(atleast_2d(x)) if typeof(x).ndim < 2 else x for x in values("column_stack", *tup)], 1)


@jitted("block")
def block(arrays: ArrayLike | list[ArrayLike]) -> Array:
    """Joins nested lists of arrays to one array.

    Innermost lists are joined along the last axis, outer ones along the axes before it. Arrays of smaller rank get axes
    of length 1 in front.

    Example:
      >>> jnp.block([[jnp.ones((1, 1)), jnp.zeros((1, 2))], [jnp.zeros((1, 3))]])
      Array([[1., 0., 0.],
             [0., 0., 0.]], dtype=float32)
    """
    joined, _ = _block(arrays)
    return joined


def _block(arrays: Any) -> tuple[Any, int]:
    if isinstance(arrays, tuple):
        raise ValueError("jax.numpy.block does not allow tuples, got " + repr(type(arrays)))
    if not isinstance(arrays, list):
        return value("block", arrays), 1
    if not arrays:
        raise ValueError("jax.numpy.block does not allow empty list arguments")
    parts, depths = zip(*map(_block, arrays), strict=True)
    if len(set(depths)) != 1:
        raise ValueError("Mismatched list depths in jax.numpy.block")
    rank = max(depths[0], *(x.ndim for x in parts))
    parts = [structural.broadcast_to_rank(x, rank) for x in parts]
    return concatenate(parts, -depths[0]), depths[0] + 1


@jitted("append", static=("axis",))
def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """Joins values to the end of an array.

    For `axis=None` both are flattened; else their shapes may differ along the axis only. The dtype is the one that both
    promote to.

    Example:
      >>> jnp.append(jnp.array([1, 2]), 3)
      Array([1, 2, 3], dtype=int32)
    """
    if axis is None:
        return concatenate([ravel(arr), ravel(values)], 0)
    return concatenate([arr, values], axis)


def _split(name: str, ary: Any, sections: Any, axis: int, equal: bool) -> list:
    ary = value(name, ary)
    axis, size = structural.size_along(name, ary, concrete(axis, name, "axis"))
    if np.ndim(sections) > 1:
        raise TypeError(f"{name}: Only integer scalar arrays can be converted to a scalar index.")
    if isinstance(sections, Sequence) or np.ndim(sections) > 0:
        cuts = [0, *host_ints(name, sections), size]
        sizes = [b - a for a, b in zip(cuts, cuts[1:], strict=False)]
    else:
        count = concrete(sections, name, "indices_or_sections")
        if not is_int(count):
            raise ValueError(f"jax.numpy.{name} with a symbolic number of sections is not supported, got {count}")
        part, rest = divmod(size, count := int(count))
        if rest and equal:
            raise ValueError(
                f"{name}: array split does not result in an equal division: rest is {rest}. "
                f"Axis {axis} has size {size}: choose a divisor of it, or use `jnp.array_split`."
            )
        sizes = [part + (i < rest) for i in range(count)]
    return list(structural.split(ary, sizes, axis))


def split(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0) -> list[Array]:
    """Divides an array along an axis into a list of arrays.

    Args:
      ary: array.
      indices_or_sections: number of parts of equal lengths, or an ascending sequence of the indices at which parts
        start, but for the first one. It must be static.
      axis: axis to divide.

    Returns:
      A list of arrays.

    Raises:
      ValueError: if the length of the axis is not a multiple of the number of parts: use `array_split`.
      ConcretizationTypeError: if `indices_or_sections` is traced.

    Differences from NumPy:
      Parts are copies, not views.

    See also: `jax.numpy.array_split`, `jax.numpy.unstack`, `jax.lax.split`.

    Example:
      >>> jnp.split(jnp.arange(4), 2)
      [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32)]
      >>> [x.shape for x in jnp.split(jnp.ones((5, 2)), [1, 3])]
      [(1, 2), (2, 2), (2, 2)]
    """
    return _split("split", ary, indices_or_sections, axis, True)


def array_split(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0) -> list[Array]:
    """Divides an array along an axis into parts, of lengths that differ by at most 1.

    Takes the arguments of `split`, but any number of parts. Returns a list of arrays.

    Example:
      >>> jnp.array_split(jnp.arange(5), 2)
      [Array([0, 1, 2], dtype=int32), Array([3, 4], dtype=int32)]
    """
    return _split("array_split", ary, indices_or_sections, axis, False)


def hsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Divides an array along axis 1, or a vector along axis 0.

    Takes the other arguments of `split`, and returns a list of arrays.
    """
    (ary,) = arrays("hsplit", ary)
    return _split("hsplit", ary, indices_or_sections, 0 if typeof(ary).ndim == 1 else 1, True)


def vsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Divides an array along axis 0.

    Takes the other arguments of `split`, and returns a list of arrays.
    """
    return _split("vsplit", ary, indices_or_sections, 0, True)


def dsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Divides an array along axis 2.

    Takes the other arguments of `split`, and returns a list of arrays.
    """
    return _split("dsplit", ary, indices_or_sections, 2, True)


@jitted("unstack", static=("axis",), inline=True)
def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Divides an array along an axis into a tuple of arrays without this axis.

    Raises ValueError for scalars.
    """
    x = value("unstack", x)
    if x.ndim == 0:
        raise ValueError("Unstack requires arrays with rank > 0, however a scalar array was passed.")
    return structural.unstack(x, axis)


def _differences(a: Any, axis: int) -> Any:
    before = [slice(None)] * axis
    later, earlier = subscripts.getitem(a, (*before, slice(1, None))), subscripts.getitem(a, (*before, slice(-1)))
    return ufuncs.not_equal(later, earlier) if a.dtype == np.bool_ else lax.sub(later, earlier)


@jitted("diff", static=("n", "axis"))
def diff(
    a: ArrayLike, n: int = 1, axis: int = -1, prepend: ArrayLike | None = None, append: ArrayLike | None = None
) -> Array:
    """Computes differences of neighboring elements along an axis, `n` times.

    `prepend` and `append` are values that are joined to the ends of the axis first. Differences of booleans are whether
    they differ. `n` and `axis` are static.

    Example:
      >>> jnp.diff(jnp.array([1, 4, 9, 16]))
      Array([3, 5, 7], dtype=int32)
      >>> jnp.diff(jnp.array([1, 4, 9, 16]), n=2)
      Array([2, 2], dtype=int32)
    """
    a = value("diff", a)
    if n == 0:
        return a
    if n < 0:
        raise ValueError(f"diff: order must be non-negative but got {n}")
    if a.ndim == 0:
        raise ValueError("diff: diff requires input that is at least one dimensional")
    axis = dims.canonical_axis(axis, a.ndim)
    if prepend is not None or append is not None:
        edges = [[] if edge is None else [_edge_of(edge, a, axis)] for edge in (prepend, append)]
        a = concatenate([*edges[0], a, *edges[1]], axis)
    for _ in range(n):
        a = _differences(a, axis)
    return a


def _edge_of(edge: Any, a: Any, axis: int) -> Any:
    edge = value("diff", edge)
    if edge.ndim:
        return edge
    return moving.broadcast_to_shape(edge, tuple(1 if i == axis else m for i, m in enumerate(a.shape)))


@jitted("ediff1d")
def ediff1d(ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None) -> Array:
    """Computes differences of neighboring elements of a flattened array.

    `to_begin` and `to_end` are values to put before and after them, converted to the dtype of `ary`.
    """
    flat = ravel(ary)
    differences = lax.sub(flat[1:], flat[:-1])
    if to_begin is not None:
        differences = concatenate([ravel(convert(to_begin, flat.dtype)), differences], 0)
    if to_end is not None:
        differences = concatenate([differences, ravel(convert(to_end, flat.dtype))], 0)
    return differences


@jitted("vander", static=("N", "increasing"))
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """Makes a Vandermonde matrix, whose columns are powers of a vector.

    It has `N` columns, by default as many as rows. Powers descend unless `increasing`. The dtype is that of `x`.
    """
    x = value("vander", x)
    if x.ndim != 1:
        raise ValueError(f"vander: x must be a one-dimensional array, got shape {x.shape}")
    n = x.shape[0] if N is None else operator.index(concrete(N, "vander", "N"))
    if n < 0:
        raise ValueError(f"vander: N must be nonnegative, got {n}")
    powers = counting.iota(x.dtype, n)
    powers = powers if increasing else lax.sub(x.dtype.type(n - 1), powers)
    return ufuncs.power(moving.expand_dims(x, (1,)), moving.expand_dims(powers, (0,)))
