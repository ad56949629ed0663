"""The parts of views of references beside indices: other shapes, orders of axes and bits; and lists of indices."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from minijax.base import dims, dtypes, tree
from minijax.primitives.convert import bitcast_convert_type
from minijax.primitives.moving import as_array_or_constant, reshape, transpose


class Reshaped(NamedTuple):
    """A reshape in the path of a view."""

    shape: tuple[int, ...]

    def __str__(self):
        return f"{{reshape({[*self.shape]})}}"

    def of(self, x: Any) -> Any:
        """The view of a value."""
        return reshape(as_array_or_constant(x), self.shape)

    def back(self, value: Any, shape: Sequence[int]) -> Any:
        """The value, of `shape`, of which `value` is the view."""
        return reshape(value, tuple(shape))


class Transposed(NamedTuple):
    """A permutation of axes in the path of a view."""

    permutation: tuple[int, ...]

    def __str__(self):
        return f"{{transpose({[*self.permutation]})}}"

    def of(self, x: Any) -> Any:
        """The view of a value."""
        return transpose(as_array_or_constant(x), self.permutation)

    def back(self, value: Any, shape: Sequence[int]) -> Any:
        """The value of which `value` is the view."""
        return transpose(value, tuple(sorted(range(len(shape)), key=self.permutation.__getitem__)))


class Bitcast(NamedTuple):
    """Another dtype for the same bits in the path of a view. Where its width differs, the last axis but one is scaled.

    A wide element is made of neighbours along this axis, the first of which has its low bits.
    """

    dtype: Any
    before: Any

    def __str__(self):
        return f"{{bitcast({self.dtype})}}"

    def of(self, x: Any) -> Any:
        """The view of a value."""
        return bitcast_rows(as_array_or_constant(x), self.dtype)

    def back(self, value: Any, shape: Sequence[int]) -> Any:
        """The value of which `value` is the view."""
        return bitcast_rows(value, self.before)


View = Reshaped | Transposed | Bitcast


def bitcast_rows(x: Any, dtype: Any) -> Any:
    """The bits of an array as another dtype; where its width differs, the last axis but one is scaled."""
    old, new = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(dtype)
    if old == new:
        return bitcast_convert_type(x, dtype)
    *rest, rows, columns = x.shape
    if old > new:
        narrow = bitcast_convert_type(x, dtype)  # (..., rows, columns, parts)
        axes = (*range(len(rest)), x.ndim - 2, x.ndim, x.ndim - 1)
        return reshape(transpose(narrow, axes), (*rest, rows * (old // new), columns))
    parts = new // old
    split = reshape(x, (*rest, rows // parts, parts, columns))
    axes = (*range(len(rest)), x.ndim - 2, x.ndim, x.ndim - 1)
    return bitcast_convert_type(transpose(split, axes), dtype)


def reshaping(ref: Any, shape: tuple) -> Reshaped:
    """The view of a reference in another shape. Raises ValueError for a shape of another size."""
    sizes = dims.shape_of(shape[0] if len(shape) == 1 else shape)
    if sizes.count(-1) > 1:
        raise ValueError(f"At most one dimension can be -1, but got {sizes}")
    rest = prod(n for n in sizes if n != -1)
    if -1 in sizes:
        if not rest or ref.size % rest:
            raise ValueError(f"Specified dims {sizes} do not evenly divide the size of the ref ({ref.size}).")
        sizes = tuple([ref.size // rest if n == -1 else n for n in sizes])
    elif rest != ref.size:
        raise ValueError(f"cannot reshape shape {ref.shape} into shape {sizes}")
    return Reshaped(sizes)


def transposing(ref: Any, permutation: Sequence[int]) -> Transposed:
    """The view of a reference with its axes in another order. Raises ValueError if it is no permutation."""
    found = tuple([int(axis) for axis in permutation])
    if sorted(found) != list(range(len(ref.shape))):
        raise ValueError(
            f"transpose: permutation {found} of a reference of shape {ref.shape} must name each of its axes once"
        )
    return Transposed(found)


def bitcasting(ref: Any, dtype: Any) -> Bitcast:
    """The view of a reference as another dtype.

    Raises ValueError if the last axis but one cannot be scaled, NotImplementedError if there is none.
    """
    dtype = dtypes.canonicalize_dtype(dtype)
    old, new = dtypes.itemsize_bits(ref.dtype), dtypes.itemsize_bits(dtype)
    if old != new and len(ref.shape) < 2:
        raise NotImplementedError("Bitcast 1D ref with bitwidth change is not supported.")
    if old < new and ref.shape[-2] % (new // old):
        raise ValueError(
            f"Expected input shape[-2] to be a multiple of {new // old}, got {ref.shape}: bitcast of {ref.dtype} to "
            f"{dtype} joins neighbours along this axis"
        )
    return Bitcast(dtype, ref.dtype)


@dataclasses.dataclass(frozen=True)
class Indices:
    """Indices of the elements that a copy reads or writes, as an index of a reference in a kernel for SparseCores.

    Args:
      values: vector of integers, or a reference to one.
      ignored_value: the index whose elements are left out; None: no index is.

    Example:
        >>> @pl.kernel(out_type=jax.ShapeDtypeStruct((3,), jnp.float32), interpret=True,
        ...            mesh=plsc.ScalarSubcoreMesh(axis_name="core", num_cores=1))
        ... def chosen(x_ref, i_ref, o_ref):
        ...     pltpu.sync_copy(x_ref.at[plsc.Indices(i_ref)], o_ref)
        >>> print(chosen(10 * jnp.arange(8.0), jnp.array([5, 0, 2])))
        [50.  0. 20.]
    """

    values: Any
    ignored_value: int | None = None


tree.register_dataclass(Indices, data_fields=["values"], meta_fields=["ignored_value"])
