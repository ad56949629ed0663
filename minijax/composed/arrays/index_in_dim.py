"""Indexing along one axis, by one index or by one for each row, and along several axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.base.symbolic.dimension import min_dim
from minijax.composed.arrays.selecting import remainder
from minijax.dispatch.jitted import jitted
from minijax.ir.types import typeof
from minijax.primitives import dynamic_slice, moving
from minijax.primitives.gather_dims import GatherDimensionNumbers, GatherScatterMode
from minijax.primitives.gather_scatter import gather
from minijax.primitives.structural import concatenate, index_in_dim
from minijax.run.arrays.array import Array

_STATIC = ("axis", "keepdims", "allow_negative_indices")

dynamic_index_in_dim = jitted(static=_STATIC)(dynamic_slice.dynamic_index_in_dim)
dynamic_update_index_in_dim = jitted(static=_STATIC)(dynamic_slice.dynamic_update_index_in_dim)


def _rows(idxs: Any) -> Iterator[Any]:
    if typeof(idxs).ndim != 2:
        raise ValueError(f"index_take: idxs must be of rank 2, got {typeof(idxs)}")
    for i in range(typeof(idxs).shape[0]):
        yield index_in_dim(idxs, i, keepdims=False)


def index_take(src: Array, idxs: Array, axes: Sequence[int]) -> Array:
    """Returns the slices of `src` at positions along `axes`: row i of `idxs` has those along `axes[i]`, modulo sizes.

    `idxs` may be an array or a sequence of rows.

    Example:
        >>> jax.lax.index_take(jnp.array([[1, 2], [3, 4]]), [jnp.array([0, 1]), jnp.array([1, 1])], axes=(0, 1))
        Array([2, 4], dtype=int32)
    """
    shape, axes = typeof(src).shape, tuple(axes)
    at = [moving.expand_dims(row, (1,)) for row in (idxs if isinstance(idxs, tuple | list) else _rows(idxs))]
    sizes = moving.as_array_or_constant(np.array([shape[a] for a in axes], typeof(at[0]).dtype))
    at = remainder(concatenate(at, 1), moving.expand_dims(sizes, (0,)))
    rest = tuple(range(1, len(shape) - len(axes) + 1))
    sizes = [1 if a in axes else n for a, n in enumerate(shape)]
    return gather(src, at, GatherDimensionNumbers(rest, axes, axes), sizes, mode=GatherScatterMode.PROMISE_IN_BOUNDS)


class Along(NamedTuple):
    """A gather's or scatter's numbers, its slice sizes, and the shape of the indices without broadcast axes.

    `squeezed` are the axes of size 1 that the array has to lose first: the indices broadcast it along them.
    """

    numbers: GatherDimensionNumbers
    slice_sizes: tuple[int, ...]
    index_shape: tuple[int, ...]
    squeezed: tuple[int, ...]


def along(shape: tuple, index_shape: tuple, axis: int) -> Along:
    """The gather of one index per row: axes shared by array and indices are batched."""
    offsets, batched, index_batched, index_sizes, sizes, squeezed = [], [], [], [], [], []
    for i, (n, m) in enumerate(zip(shape, index_shape, strict=True)):
        at = i - len(squeezed)
        if i == axis:
            collapsed = at
            index_sizes.append(m)
            sizes.append(1)
        elif n == 1 != m:
            squeezed.append(i)
            index_sizes.append(m)
        elif m != 1:
            if n != m:
                raise ValueError(f"take_along_axis: Incompatible shapes for broadcasting: {shape} and {index_shape}")
            batched.append(at)
            index_batched.append(len(index_sizes))
            index_sizes.append(m)
            sizes.append(min_dim(n, 1))
        else:
            offsets.append(i)
            sizes.append(n)
    numbers = GatherDimensionNumbers(tuple(offsets), (collapsed,), (collapsed,), tuple(batched), tuple(index_batched))
    return Along(numbers, tuple(sizes), tuple(index_sizes), tuple(squeezed))
