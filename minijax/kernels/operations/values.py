"""Operations of kernels on values: hints, reciprocals, rotations, and the bits of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.base.dims import shape_of
from minijax.composed.ref_views import bitcast_rows
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo
from minijax.ir.primitive import Axis, FirstOrder
from minijax.ir.trace import trace_to_jaxpr
from minijax.ir.types import ShapedArray, is_value, typeof
from minijax.numpy.creation import asarray
from minijax.numpy.shaping import roll as roll_array
from minijax.primitives import elementwise
from minijax.primitives.convert import convert
from minijax.primitives.moving import as_array_or_constant, broadcast_in_dim
from minijax.transforms.batch import batch_flat, move_batch_dim


class _Composed(FirstOrder):
    """An operation that is lowered as others outside of kernels, and to one instruction within."""

    def composed(self, *operands: Any, **params: Any) -> Any:
        """The result by other operations."""
        raise NotImplementedError

    def evaluate_in_kernel(self, operands: Sequence, params: dict, step: Any) -> list:
        """The result where a kernel is interpreted."""
        return [self.composed(*operands, **params)]

    def lower(self, e, ins, outs, *operands, **params):
        jaxpr, consts = trace_to_jaxpr(lambda *xs: [self.composed(*xs, **params)], ins, DebugInfo(self.name, self.name))
        closed = ClosedJaxpr(jaxpr, consts)
        return e.inlined(jaxpr, e.constants(closed), operands)

    def batch(self, axis, operands, dims, **params):
        return batch_flat(lambda *xs: [self.composed(*xs, **params)], axis, operands, dims)


class MultipleOf(_Composed):
    """A number that is known to be a multiple of others."""

    name = "multiple_of"

    def infer(self, x, *, values):
        return [x]

    def composed(self, x, *, values):
        return x

    def batch(self, axis, operands, dims, **params):
        return self.bind_all(operands, params), list(dims)


class MaxContiguous(MultipleOf):
    """Numbers that are known to be consecutive in groups."""

    name = "max_contiguous"


class Reciprocal(_Composed):
    """1 / x, on request an approximation."""

    name = "reciprocal"

    def infer(self, x, **params):
        return [x]

    def composed(self, x, *, approx, full_range):
        if not approx:
            return elementwise.div(convert(np.float32(1), x.dtype), x)
        narrow = convert(x, dtypes.bfloat16)
        return convert(elementwise.div(convert(np.float32(1), narrow.dtype), narrow), x.dtype)

    def batch(self, axis, operands, dims, **params):
        return self.bind_all(operands, params), list(dims)


class BroadcastTo(_Composed):
    """An array broadcast to a shape."""

    name = "broadcast_to"

    def infer(self, x, *, shape):
        return [x.update(shape=shape, weak_type=False)]

    def composed(self, x, *, shape):
        ndim = len(typeof(x).shape)
        return broadcast_in_dim(x, shape, tuple(range(len(shape) - ndim, len(shape))))


class Roll(_Composed):
    """An array rotated along an axis, by `stride` more for each row: (array, shift)."""

    name = "roll"

    def infer(self, x, shift, **params):
        return [x]

    def composed(self, x, shift, *, axis, stride, stride_axis):
        if stride is None:
            return roll_array(x, shift, axis)
        size = x.shape[stride_axis]
        shifts = elementwise.add(
            convert(as_array_or_constant(shift), np.dtype(np.int32)), np.arange(size, dtype=np.int32) * np.int32(stride)
        )
        along = Axis(None, size)
        rolled, dims = batch_flat(
            lambda row, by: [roll_array(row, by, axis - (stride_axis < axis))], along, [x, shifts], [stride_axis, 0]
        )
        return move_batch_dim(rolled[0], dims[0], stride_axis, along)


class BitcastRows(_Composed):
    """The bits of an array as another dtype; where its width differs, the last axis but one is scaled."""

    name = "bitcast"

    def infer(self, x, *, ty):
        old, new = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(ty)
        shape = x.shape if old == new else (*x.shape[:-2], x.shape[-2] * old // new, x.shape[-1])
        return [ShapedArray(shape, ty)]

    def composed(self, x, *, ty):
        return bitcast_rows(x, ty)


multiple_of_p, max_contiguous_p = MultipleOf(), MaxContiguous()
reciprocal_p, broadcast_to_p, roll_p, bitcast_p = Reciprocal(), BroadcastTo(), Roll(), BitcastRows()


def _numbers(values: Any) -> tuple[int, ...]:
    return (values,) if isinstance(values, int | np.integer) else tuple(values)


def multiple_of(x: Any, values: Sequence[int] | int) -> Any:
    """Returns `x`, which the compiler then takes for a multiple of numbers.

    Args:
      x: array of integers.
      values: number for each axis, or one for a scalar.

    Example:
        >>> pl.multiple_of(jnp.int32(16), 8)
        Array(16, dtype=int32)
    """
    return multiple_of_p.bind(x, values=_numbers(values))


def max_contiguous(x: Any, values: Sequence[int] | int) -> Any:
    """Returns `x`, and tells a GPU's compiler how many neighbours are consecutive numbers.

    Args:
      x: array of integers.
      values: number for each axis.

    Example:
        >>> pl.triton.max_contiguous(jnp.arange(4), 4)
        Array([0, 1, 2, 3], dtype=int32)
    """
    return max_contiguous_p.bind(x, values=tuple(_numbers(values)))


def reciprocal(x: Any, *, approx: bool = False, full_range: bool = True) -> Any:
    """Returns 1 / x.

    Args:
      x: array of floats.
      approx: whether an approximation is enough, which takes less time on a TPU.
      full_range: whether very large and very small numbers occur.

    Example:
        >>> print(pl.reciprocal(jnp.array([2.0, 4.0])))
        [0.5  0.25]
    """
    return reciprocal_p.bind(x, approx=approx, full_range=full_range)


def broadcast_to(a: Any, shape: tuple[int, ...]) -> Any:
    """Returns an array broadcast to a shape, by one operation; `a` itself if it has this shape.

    Raises ValueError for a shape to which it does not broadcast.

    Example:
        >>> pl.broadcast_to(jnp.array([1, 2]), (2, 2))
        Array([[1, 2],
               [1, 2]], dtype=int32)
    """
    a = as_array_or_constant(a) if is_value(a) else asarray(a)
    have, shape = typeof(a).shape, shape_of(shape)
    if have == shape:
        return a
    if np.broadcast_shapes(have, shape) != shape:
        raise ValueError(f"broadcast_to: Incompatible types for broadcasting: shape {have} and requested shape {shape}")
    return broadcast_to_p.bind(a, shape=shape)


def roll(x: Any, shift: Any, axis: int, *, stride: int | None = None, stride_axis: int | None = None) -> Any:
    """Returns an array rotated along an axis: the last elements become the first.

    Args:
      x: array.
      shift: by how many elements, an integer.
      axis: number of the axis, from 0.
      stride: by how many elements more for each row along `stride_axis`.
      stride_axis: number of another axis.

    Raises ValueError for an axis that is not there, or a stride without its axis.

    Example:
        >>> kernel = lambda x, o: o.set(pltpu.roll(x[...], 1, axis=0))
        >>> pl.pallas_call(kernel, jax.ShapeDtypeStruct((4,), jnp.int32), interpret=True)(jnp.arange(4))
        Array([3, 0, 1, 2], dtype=int32)
    """
    ndim = len(typeof(x).shape)
    if isinstance(shift, int) and shift < 0:
        raise ValueError("shift must be non-negative.")
    if not 0 <= axis < ndim:
        raise ValueError(f"axis must be in [0, {ndim}), got {axis}.")
    if (stride is None) != (stride_axis is None):
        raise ValueError("stride and stride_axis must be both specified or not specified.")
    if stride_axis is not None:
        if not 0 <= stride_axis < ndim or stride_axis == axis:
            raise ValueError(f"stride_axis must be another axis in [0, {ndim}), got {stride_axis}.")
        if stride < 0:
            raise ValueError(f"stride must be non-negative, got {stride}.")
    shift = convert(as_array_or_constant(shift), np.dtype(np.int32))
    return roll_p.bind(x, shift, axis=axis, stride=stride, stride_axis=stride_axis)


def bitcast(x: Any, ty: Any) -> Any:
    """Returns the bits of an array as another dtype; where its width differs, the last axis but one is scaled.

    Args:
      x: array of rank 2 or more.
      ty: dtype.

    Raises ValueError if the axis cannot be scaled, or for a vector.

    Example:
        >>> kernel = lambda x, o: o.set(pltpu.bitcast(x[...], jnp.uint32))
        >>> f = pl.pallas_call(kernel, jax.ShapeDtypeStruct((2, 2), jnp.uint32), interpret=True)
        >>> f(jnp.array([[1, -1], [2, -2]]))
        Array([[         1, 4294967295],
               [         2, 4294967294]], dtype=uint32)
    """
    ty = dtypes.canonicalize_dtype(ty)
    aval = typeof(x)
    old, new = dtypes.itemsize_bits(aval.dtype), dtypes.itemsize_bits(ty)
    if len(aval.shape) < 2:
        raise ValueError("Not implemented: bitcast 1D")
    if old < new and aval.shape[-2] % (new // old):
        raise ValueError(
            f"Not implemented: the 2nd minor dim can not be perfectly packed or unpacked, shape {aval.shape} from "
            f"{aval.dtype} to {ty}"
        )
    return bitcast_p.bind(x, ty=ty)
