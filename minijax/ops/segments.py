"""Segment reductions: rows with equal ids are combined, at the index that the id gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.base import documentation
from minijax.base.dims import as_index
from minijax.base.source import boundary
from minijax.base.util import named
from minijax.indexing.language import Options
from minijax.ir.types import typeof
from minijax.numpy import creation, ranges, reductions, subscripts, ufuncs
from minijax.primitives.convert import as_type
from minijax.primitives.gather_dims import GatherScatterMode
from minijax.primitives.moving import filled
from minijax.primitives.promote import check_arraylike
from minijax.primitives.reduce import lowest
from minijax.primitives.sharding import named_sharding, with_auto_axes
from minijax.run.arrays.array import Array, ArrayLike, ShardingLike


def _segment(
    name: str, method: str, reduce: Callable, start: Callable[[np.dtype], Any], what: str, result: list[int]
) -> Callable:
    def function(
        data: ArrayLike,
        segment_ids: ArrayLike,
        num_segments: int | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        bucket_size: int | None = None,
        mode: GatherScatterMode | str | None = None,
        out_sharding: ShardingLike | None = None,
    ) -> Array:
        """Computes {what} of the rows of `data` that have equal ids, at the index that the id gives.

        `num_segments` is by default the largest id plus one; other ids are dropped, or handled as `mode` specifies.
        With a `bucket_size`, buckets of that many ids are combined first.

        Example:
            >>> jax.ops.{name}(jnp.array([1, 2, 3]), jnp.array([0, 0, 1]))
            Array({result}, dtype=int32)
        """
        check_arraylike(name, data, segment_ids)
        # A NumPy array stays itself, so that several calls capture one constant.
        is_kept = isinstance(segment_ids, np.ndarray) and segment_ids.dtype.kind in "iu"
        ids = segment_ids if is_kept else creation.asarray(segment_ids)
        data = creation.asarray(data)
        if typeof(ids).dtype.kind not in "iub":
            raise TypeError(f"{name}: segment_ids must be integers, got {typeof(ids)}. Use `segment_ids.astype(int)`.")
        count = _count(name, ids, num_segments)
        aval, id_count = typeof(data), typeof(ids).size
        options = Options("drop" if mode is None else mode, None, indices_are_sorted, unique_indices, False)
        shape, index = (count, *aval.shape[1:]), ids
        if bucket_size is not None:
            shape = (-(-id_count // bucket_size), *shape)
        initial = filled(shape, as_type(start(aval.dtype), aval.dtype))
        if bucket_size is not None:
            buckets = ufuncs.floor_divide(ranges.arange(typeof(ids).shape[0]), bucket_size)
            index = (buckets, subscripts.getitem(ids, (None,)))

        def combine(initial, data, index):
            out = subscripts.update(initial, index, data, method, options)
            return out if bucket_size is None else as_type(reduce(out, axis=0), aval.dtype)

        if method != "add" and out_sharding is not None and named_sharding(name, out_sharding).spec.unreduced:
            raise NotImplementedError(f"{name}: only partial sums can be unreduced, got {out_sharding}")
        return with_auto_axes(name, combine, (initial, data, index), out_sharding)

    return named(function, name, documentation.filled(function, dict(name=name, what=what, result=result)))


@boundary
def _count(name: str, ids: Any, num_segments: Any) -> int:
    if num_segments is None:
        num_segments = ufuncs.add(reductions.max(ids), 1)
    count = as_index(creation.concrete(num_segments, name, "num_segments"))
    if count < 0:
        raise ValueError(f"{name}: num_segments must be non-negative, got {count}")
    return count


segment_sum = _segment("segment_sum", "add", reductions.sum, lambda dtype: 0, "sums", [3, 3])
segment_prod = _segment("segment_prod", "multiply", reductions.prod, lambda dtype: 1, "products", [2, 3])
segment_max = _segment("segment_max", "max", reductions.max, lowest, "maxima", [2, 3])
segment_min = _segment("segment_min", "min", reductions.min, lambda dtype: lowest(dtype, True), "minima", [1, 3])
