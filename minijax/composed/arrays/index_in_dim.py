"""Indexing along one axis, by the jitted functions that users call, and along several axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from minijax.composed.arrays.division import remainder
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
    """
    shape, axes = typeof(src).shape, tuple(axes)
    at = [moving.expand_dims(row, (1,)) for row in (idxs if isinstance(idxs, tuple | list) else _rows(idxs))]
    sizes = moving.as_array_or_constant(np.array([shape[a] for a in axes], typeof(at[0]).dtype))
    at = remainder(concatenate(at, 1), moving.expand_dims(sizes, (0,)))
    rest = tuple(range(1, len(shape) - len(axes) + 1))
    sizes = [1 if a in axes else n for a, n in enumerate(shape)]
    return gather(src, at, GatherDimensionNumbers(rest, axes, axes), sizes, mode=GatherScatterMode.PROMISE_IN_BOUNDS)
