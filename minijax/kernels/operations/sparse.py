"""Operations of the vector subcores of SparseCores, which are traced, but neither interpreted nor compiled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.base.dtypes import DTypeLike
from minijax.ir.primitive import Primitive
from minijax.ir.types import ShapedArray, typeof
from minijax.kernels.operations.base import KernelOperation, type_of
from minijax.kernels.operations.tpu import KERNEL_EFFECT
from minijax.primitives.moving import as_array_or_constant, full

_SUMMED = ("uint32", "int32", "float32")


class SubcoreOperation(Primitive):
    """An operation on vectors of a subcore."""

    def evaluate_in_kernel(self, operands: Sequence, params: dict, step: Any) -> list:
        """Raises NotImplementedError: these operations run on SparseCores only."""
        raise NotImplementedError(f"{self.name} cannot be interpreted: it is an operation of SparseCores")


class MaskedScan(SubcoreOperation):
    """The sums or maxima of the elements up to each, of those that a mask keeps."""

    def __init__(self, name: str):
        self.name = name

    def infer(self, x, mask):
        return [x]


class SubcoreBitcast(SubcoreOperation):
    """The same bits as elements of another dtype."""

    name = "bitcast"

    def infer(self, x, *, dtype):
        count = x.shape[-1] * dtypes.itemsize_bits(x.dtype) // dtypes.itemsize_bits(dtype)
        return [ShapedArray((*x.shape[:-1], count), dtype)]


class MaskAllReduce(SubcoreOperation):
    """A number for each group of `reduce` flags, such as how many are set."""

    def __init__(self, name: str):
        self.name = name

    def infer(self, x, *, reduce):
        return [ShapedArray((x.shape[0] // reduce,), np.dtype(np.int32))]


class SubcoreBarrier(SubcoreOperation):
    """Waits for the other subcores."""

    name = "barrier"
    multiple_results = True

    def infer(self):
        return []

    def effects(self):
        return KERNEL_EFFECT


class SubcoreGather(KernelOperation):
    """The elements of a reference at indices: (reference, views, indices, mask or None)."""

    name = "gather"
    tree_param = "tree"

    def result_types(self, ref, views, indices, mask):
        return [ShapedArray(indices[0].shape, type_of(ref).dtype)]


class SubcoreScatter(KernelOperation):
    """Stores or adds to the elements of a reference: (reference, views, indices, value, mask or None)."""

    name = "scatter"
    tree_param = "tree"


masked_cumsum_p, masked_cummax_p = MaskedScan("masked_cumsum"), MaskedScan("masked_cummax")
all_reduce_ffs_p = MaskAllReduce("all_reduce_ffs")
all_reduce_population_count_p = MaskAllReduce("all_reduce_population_count")
bitcast_p, barrier_p = SubcoreBitcast(), SubcoreBarrier()
gather_p, scatter_p = SubcoreGather(), SubcoreScatter()


def _scanned(function: str, primitive: Primitive, x: Any, mask: Any) -> Any:
    x = as_array_or_constant(x)
    aval = typeof(x)
    if aval.dtype.name not in _SUMMED:
        raise NotImplementedError(f"{function}: x.dtype={aval.dtype} must be uint32, int32 or float32")
    if len(aval.shape) != 1:
        raise NotImplementedError(f"{function}: x={aval.str_short()} must be rank 1")
    mask = full(aval.shape, np.bool_(True)) if mask is None else mask
    kind = typeof(mask)
    if kind.dtype != np.bool_:
        raise TypeError(f"{function}: mask.dtype={kind.dtype} is not a boolean dtype")
    if kind.shape != aval.shape:
        raise ValueError(f"{function}: x.shape={aval.shape} != mask.shape={kind.shape}")
    return primitive.bind(x, mask)


def cumsum(x: Any, *, mask: Any = None) -> Any:
    """Returns the sum of the elements up to each.

    Args:
      x: vector of uint32, int32 or float32.
      mask: flags of the elements that are added. By default, all.

    Raises:
      NotImplementedError: for another dtype or rank.
      TypeError: for a mask of another dtype.
      ValueError: for a mask of another shape.
    """
    return _scanned("cumsum", masked_cumsum_p, x, mask)


def cummax(x: Any, *, mask: Any = None) -> Any:
    """Returns the largest of the elements up to each. Arguments and errors: as `plsc.cumsum`."""
    return _scanned("cummax", masked_cummax_p, x, mask)


def bitcast(x: Any, dtype: DTypeLike) -> Any:
    """Returns the bits of a vector as elements of another dtype.

    Args:
      x: array.
      dtype: dtype of the result, whose last axis is longer or shorter if it has fewer or more bits.

    Raises ValueError if the bits of the last axis are not those of a number of elements.
    """
    aval, dtype = typeof(x), dtypes.canonicalize_dtype(dtype)
    have, want = dtypes.itemsize_bits(aval.dtype), dtypes.itemsize_bits(dtype)
    if aval.shape[-1] * have % want:
        raise ValueError(
            f"Cannot bitcast from {aval.dtype} ({have} bits) to {dtype} ({want} bits), because "
            f"x.shape[-1]={aval.shape[-1]} * {have} is not divisible by {want}"
        )
    return bitcast_p.bind(x, dtype=dtype)


def _reduced(primitive: Primitive, x: Any, reduce: int) -> Any:
    if typeof(x).dtype != np.bool_:
        raise TypeError(f"{primitive.name}: Mask all-reduce only supports bool arrays, got {typeof(x).dtype}")
    return primitive.bind(x, reduce=reduce)


def all_reduce_population_count(x: Any, *, reduce: int = 1) -> Any:
    """Returns how many flags are set.

    Args:
      x: vector of flags.
      reduce: by how much shorter the result is than `x`.

    Returns:
      A vector of int32.

    Raises TypeError for another dtype.
    """
    return _reduced(all_reduce_population_count_p, x, reduce)


def all_reduce_ffs(x: Any, *, reduce: int = 1) -> Any:
    """Returns the number of the first flag that is set. Arguments: as `plsc.all_reduce_population_count`."""
    return _reduced(all_reduce_ffs_p, x, reduce)


def subcore_barrier() -> None:
    """Waits until all vector subcores of a SparseCore are here."""
    barrier_p.bind()


def _check_indices(ref: Any, indices: Sequence[Any]) -> list:
    indices, rank = list(indices), len(type_of(ref).shape)
    if len(indices) != rank:
        raise ValueError(f"The number of indices does not match ref.ndim={rank}: got {len(indices)}")
    return indices


def load_gather(ref: Any, indices: Sequence[Any], *, mask: Any = None) -> Any:
    """Returns the elements of a reference at indices.

    Args:
      ref: reference.
      indices: a vector of int32 for each dimension of the reference.
      mask: flags of the elements that are read. By default, all.

    Raises ValueError unless there is a vector for each dimension.
    """
    return gather_p.call(ref, (), _check_indices(ref, indices), mask)[0]


def store_scatter(ref: Any, indices: Sequence[Any], x: Any, *, mask: Any = None) -> None:
    """Stores the elements of a vector at indices of a reference.

    Args:
      ref: reference.
      indices: a vector of int32 for each dimension of the reference.
      x: vector.
      mask: flags of the elements that are stored. By default, all.

    Raises ValueError unless there is a vector for each dimension.
    """
    scatter_p.call(ref, (), _check_indices(ref, indices), x, mask, add=False)


def addupdate_scatter(ref: Any, indices: Sequence[Any], x: Any, *, mask: Any = None) -> None:
    """Adds the elements of a vector to those of a reference. Arguments: as `plsc.store_scatter`."""
    scatter_p.call(ref, (), _check_indices(ref, indices), x, mask, add=True)
