"""Arrays made from a shape alone: iota, identity matrices, and arrays whose elements are never read."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from minijax.base import dims, dtypes
from minijax.base.dtypes import DTypeLike
from minijax.base.symbolic.dimension import is_int
from minijax.ir.primitive import FirstOrder, Folding, Primitive, fold_as
from minijax.ir.trace import Tracer
from minijax.ir.types import ShapedArray
from minijax.primitives import moving
from minijax.primitives.convert import convert
from minijax.primitives.elementwise import add, eq
from minijax.primitives.families import NUMBER, check_kinds
from minijax.primitives.sharding import requested_sharding, reshard_like
from minijax.primitives.varying import cast_replicated_to
from minijax.run.arrays.array import Array

_INT32 = np.dtype(np.int32)


class Iota(FirstOrder):
    """0, 1, 2, ... along an axis."""

    moves_data = True
    defaults_to_context_mesh = True
    name = "iota"
    sharding_param = "sharding"

    def infer(self, *, dtype, shape, dimension, sharding):
        moving.check_nonnegative("iota shape", shape)
        if not 0 <= dimension < len(shape):
            raise ValueError(f"iota: dimension {dimension} out of bounds for shape {shape}")
        out = ShapedArray(shape, dtype)
        check_kinds(self.name, NUMBER, out)
        return [out]

    def lower(self, e, ins, outs, *, dtype, shape, dimension, sharding):
        return [e.iota(dimension, outs[0])]


class Empty(Primitive):
    """An uninitialized array: its elements are unspecified."""

    defaults_to_context_mesh = True
    name = "empty"
    sharding_param = "out_sharding"

    def infer(self, *, shape, dtype, out_sharding):
        return [ShapedArray(shape, dtypes.canonicalize_dtype(dtype, allow_extended_dtype=True))]

    def lower(self, e, ins, outs, **params):
        return [e.zeros(outs[0])]


class EmptyScalar(Empty):
    """A scalar whose value is never read."""

    defaults_to_context_mesh = False
    name = "empty2"
    sharding_param = None
    constrain_results = False

    def infer(self, *, dtype, memory_space):
        return [ShapedArray((), dtype, memory_space=memory_space)]

    def lower(self, e, ins, outs, **params):
        return [e.constant(0, outs[0])]


iota_p, empty_p, empty2_p = Iota(), Empty(), EmptyScalar()
fold_as(Folding.PLAIN, iota_p)


def iota(dtype: DTypeLike, size: int) -> Array:
    """Returns the numbers from 0 up to `size`, which is not reached.

    Raises TypeError for a size that is not an integer, or a dtype that is not numeric.

    Example:
        >>> jax.lax.iota(jnp.float32, 4)
        Array([0., 1., 2., 3.], dtype=float32)
    """
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(dtype: DTypeLike, shape: Sequence[int], dimension: int, *, out_sharding: Any = None) -> Array:
    """Returns an array with the numbers 0, 1, 2, ... along the axis `dimension`.

    Raises ValueError for a dimension out of bounds.

    Example:
        >>> jax.lax.broadcasted_iota(jnp.int32, (2, 3), 1)
        Array([[0, 1, 2],
               [0, 1, 2]], dtype=int32)
    """
    if dtype is None:
        raise ValueError("broadcasted_iota: dtype must be specified.")
    dtype = dtypes.check_and_canonicalize_user_dtype(dtype, "broadcasted_iota")
    shape = dims.canonical_shape(shape)
    requested = requested_sharding("broadcasted_iota", out_sharding, len(shape))
    return iota_p.bind(dtype=dtype, shape=shape, dimension=int(dimension), sharding=requested)


def empty(shape: Sequence[int], dtype: Any, *, out_sharding: Any = None) -> Any:
    """Creates an array whose elements are unspecified.

    Example:
        >>> x = jax.lax.empty((2, 3), jnp.float32)
        >>> x.shape, x.dtype
        ((2, 3), dtype('float32'))
    """
    shape = dims.shape_of(shape)
    return empty_p.bind(
        shape=shape, dtype=dtype, out_sharding=requested_sharding("lax.empty", out_sharding, len(shape))
    )


def empty_of(aval: ShapedArray) -> Any:
    """An array of type `aval` whose elements are never read."""
    value = cast_replicated_to(empty2_p.bind(dtype=aval.dtype, memory_space=aval.memory_space), aval.manual_axis_type)
    return reshard_like(moving.broadcast_to_shape(value, aval.shape, aval.own_sharding), aval)


def _offset(offset: Any, dtype: Any) -> Any:
    return np.asarray(index(offset), dtype)[()] if is_int(offset) else convert(offset, dtype)


def diagonal_mask(rows: int, columns: int, offset: Any, compare: Any, dtype: Any = _INT32) -> Any:
    """A boolean matrix: `compare(row + offset, column)` for indices of an integer dtype.

    Raises TypeError for an offset that is not an integer.
    """
    traced = isinstance(offset, Tracer)
    if traced and not np.issubdtype(offset.dtype, np.integer):
        raise TypeError(f"the offset of a diagonal must be an integer, got {offset}")
    row = broadcasted_iota(dtype, (rows, columns), 0)
    shifted = add(row, convert(offset, dtype) if traced else _offset(offset, dtype))
    return compare(shifted, broadcasted_iota(dtype, (rows, columns), 1))


def eye(rows: int, columns: int, dtype: Any, ndim: int = 2) -> Any:
    """An identity matrix with leading batch axes of size 1, of rank `ndim`."""
    unit = convert(diagonal_mask(rows, columns, 0, eq), dtype)
    return moving.expand_dims(unit, tuple(range(ndim - 2)))
