"""Counts by value, and histograms."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.base.dims import as_index
from minijax.base.errors import ShardingTypeError
from minijax.composed.arrays.selecting import where
from minijax.dispatch.jitted import jitted
from minijax.ir.types import typeof
from minijax.numpy import reductions, searching, shaping, subscripts, taking, ufuncs
from minijax.numpy.creation import asarray, concrete, ones_like, value, values, zeros
from minijax.numpy.ranges import linspace
from minijax.primitives import sharding
from minijax.primitives.convert import as_type, convert
from minijax.primitives.promote import arrays, promote_dtypes_inexact
from minijax.run.arrays.array import Array, ArrayLike, ShardingLike

_take, _put = subscripts.getitem, subscripts.update


def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Counts how often each integer occurs, or adds up weights for each.

    Negative numbers count as 0, where NumPy raises. The result has `max(x) + 1` elements, at least `minlength`. Under
    `jit` the static `length` must be given; larger numbers are not counted. `out_sharding` is the sharding of the
    result.

    Example:
      >>> jnp.bincount(jnp.array([0, 2, 2]))
      Array([1, 0, 2], dtype=int32)
      >>> jax.jit(lambda x: jnp.bincount(x, length=4))(jnp.array([0, 2, 2]))
      Array([1, 0, 2, 0], dtype=int32)
    """
    x = value("bincount", x)
    if x.dtype == np.bool_:
        x = convert(x, np.dtype(np.int32))
    if not dtypes.issubdtype(x.dtype, np.integer):
        raise TypeError(f"x argument to bincount must have an integer type; got {x.dtype}")
    if x.ndim != 1:
        raise ValueError("bincount: only 1-dimensional input supported.")
    minlength = operator.index(concrete(minlength, "bincount", "minlength"))
    if length is None:
        numbers = taking.known("bincount", x)
        length = max(minlength, int(numbers.max(initial=-1)) + 1)
    else:
        length = as_index(concrete(length, "bincount", "length"))
    if weights is None:
        weights = dtypes.default_int_dtype().type(1)
    elif typeof(weights).shape != x.shape:
        raise ValueError(f"bincount: shape of weights {typeof(weights).shape} must match that of x, {x.shape}")
    out_sharding = sharding.explicit_sharding("jnp.bincount", out_sharding)
    if out_sharding is not None:
        spec, axes = out_sharding.spec, set(out_sharding.mesh.axis_names)
        if spec.mesh_axes or spec.unreduced not in (axes, set()):
            raise ShardingTypeError(
                "jnp.bincount: out_sharding can only be fully replicated or fully unreduced along all mesh axes, "
                f"got {spec}"
            )
    counts = zeros(length, typeof(weights).dtype).at
    return counts[ufuncs.clip(x, 0)].add(weights, out_sharding=out_sharding)


@jitted(static=("right", "method"))
def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None) -> Array:
    """Returns the index of the bin to which each element belongs.

    `bins` are the edges, a vector that ascends or descends. Bins include their left edges, or with `right` their right
    ones. `method` is that of `searchsorted`.

    Example:
      >>> jnp.digitize(jnp.array([0.5, 1.0, 9.0]), jnp.array([1.0, 5.0]))
      Array([0, 1, 2], dtype=int32)
    """
    x, bins = values("digitize", x, bins)
    if bins.ndim != 1:
        raise ValueError(f"digitize: bins must be a 1-dimensional array; got shape {bins.shape}")
    if not bins.size:
        return zeros(x.shape, np.int32)
    how = {"side": "left" if right else "right", **({} if method is None else {"method": method})}
    ascends = _take(bins, -1) >= _take(bins, 0)
    rising = searching.searchsorted(bins, x, **how)
    falling = searching.searchsorted(_take(bins, slice(None, None, -1)), x, **how)
    return where(ascends, rising, ufuncs.subtract(bins.size, falling))


def histogram_bin_edges(
    a: ArrayLike,
    bins: ArrayLike = 10,
    range: None | Array | Sequence[ArrayLike] = None,
    weights: ArrayLike | None = None,
) -> Array:
    """Returns the edges of bins for a histogram.

    `bins` is their number, static, or a vector of the edges themselves; names of rules are not supported. `range` is a
    pair of ends, by default the least and the largest element. `weights` have no effect.
    """
    if isinstance(bins, str):
        raise NotImplementedError("histogram_bin_edges: string values for `bins` are not implemented.")
    a, bins = arrays("histogram_bin_edges", a, bins)
    dtype = dtypes.to_inexact_dtype(typeof(a).dtype)
    if typeof(bins).ndim == 1:
        return asarray(bins, dtype)
    bins = operator.index(concrete(bins, "histogram_bin_edges", "bins"))
    ends = asarray([reductions.min(a), reductions.max(a)] if range is None else range, dtype)
    if ends.shape != (2,):
        raise ValueError(f"`range` must be either None or a sequence of scalars, got {range}")

    def apart(i: int, move: Callable) -> Any:
        return where(ufuncs.equal(reductions.ptp(ends), 0), move(_take(ends, i), 0.5), _take(ends, i))

    return linspace(apart(0, ufuncs.subtract), apart(1, ufuncs.add), bins + 1, dtype=dtype)


def histogram(
    a: ArrayLike,
    bins: ArrayLike = 10,
    range: Sequence[ArrayLike] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Any, Any]:
    """Counts the elements in each of a number of bins.

    Returns a pair: counts, and edges of the bins. Counts are floats, unlike in NumPy. `bins` and `range` are those of
    `histogram_bin_edges`. `weights` are added up instead of ones. With `density` the integral of the result is 1.

    Example:
      >>> counts, edges = jnp.histogram(jnp.array([1.0, 2.0, 2.0, 4.0]), bins=3)
      >>> counts
      Array([1., 2., 1.], dtype=float32)
      >>> edges
      Array([1., 2., 3., 4.], dtype=float32)
    """
    if isinstance(bins, str):
        raise TypeError("histogram: string values for `bins` are not implemented.")
    a, _, *counted = arrays("histogram", a, bins, *(() if weights is None else (weights,)))
    a, *counted = promote_dtypes_inexact(a, *counted)
    if not counted:
        counted = [ones_like(a)]
    elif typeof(counted[0]).shape != typeof(a).shape:
        raise ValueError("histogram: weights should have the same shape as a.")
    edges = histogram_bin_edges(a, bins, range)
    size = edges.shape[0]
    places = searching.searchsorted(edges, a, side="right")
    places = where(ufuncs.equal(a, _take(edges, -1)), size - 1, places)
    counts = _put(zeros(size, typeof(counted[0]).dtype), places, counted[0], "add")
    counts = _take(counts, slice(1, None))
    if density:
        counts = ufuncs.divide(ufuncs.divide(counts, shaping.diff(edges)), reductions.sum(counts))
    return counts, edges


def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: ArrayLike | list[ArrayLike] = 10,
    range: Sequence[None | Array | Sequence[ArrayLike]] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Any, Any, Any]:
    """Counts the points of a plane in each of a grid of bins.

    Returns the counts as floats, and the edges of the bins in both dimensions. `bins` is a number, a vector of edges,
    or a pair of these. `weights` are added up instead of ones. With `density` the integral of the result is 1.
    """
    x, y = arrays("histogram2d", x, y)
    if _length(bins, 1) not in (1, 2):
        bins = [asarray(bins)] * 2
    sample = shaping.transpose(asarray([x, y]))
    counts, edges = histogramdd(sample, bins, range, weights, density)
    return counts, edges[0], edges[1]


def _length(x: Any, default: int) -> int:
    try:
        return len(x)
    except TypeError:
        return default


def histogramdd(
    sample: ArrayLike,
    bins: ArrayLike | list[ArrayLike] = 10,
    range: Sequence[None | Array | Sequence[ArrayLike]] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Any, list]:
    """Counts the points in each of a grid of bins in any number of dimensions.

    Each row of `sample` is a point. Returns the counts as floats, and a list of the edges of the bins in each
    dimension. `bins` is a number, or a list of numbers and vectors of edges. Unlike in NumPy a list of arrays is not a
    sample.
    """
    sample, *counted = arrays("histogramdd", sample, *(() if weights is None else (weights,)))
    (sample,) = promote_dtypes_inexact(sample)
    count, rank = typeof(sample).shape
    if counted and typeof(counted[0]).shape != (count,):
        raise ValueError("histogramdd: there should be one weight for each sample.")
    columns = [_binned(sample, i, *pair) for i, pair in enumerate(_bins_and_ranges((count, rank), bins, range))]
    edges, places = [e for e, _ in columns], [i for _, i in columns]
    widths = [shaping.diff(e) for e in edges]
    sizes = [e.size + 1 for e in edges]
    counts = shaping.reshape(bincount(_flat_index(places, sizes), *counted, length=prod(sizes)), sizes)
    counts = _take(counts, (slice(1, -1),) * rank)
    return (_density(as_type(counts, typeof(sample).dtype), widths) if density else counts), edges


def _bins_and_ranges(shape: tuple[int, int], bins: Any, range: Any) -> list[tuple[Any, Any]]:
    """The `bins` and the `range` of each column. Raises ValueError unless there is one of each for a column."""
    rank = shape[1]
    if _length(bins, rank) != rank:
        raise ValueError("histogramdd: there should be a bin for each dimension.")
    bins = [bins] * rank if _length(bins, -1) < 0 else bins
    if range is None:
        range = (None,) * rank
    if len(range) != rank or any(r is not None and np.shape(r) != (2,) for r in range):
        raise ValueError(f"For sample.shape={shape}, range must be a sequence of {rank} pairs or Nones; got {range}")
    return list(zip(bins, range, strict=True))


def _binned(sample: Any, i: int, bins: Any, range: Any) -> tuple[Any, Any]:
    """The bin edges of column i, and the index of each element among them; the last bin includes its right edge."""
    column = lambda: _take(sample, (slice(None), i))  # noqa: E731
    edges = histogram_bin_edges(column(), bins, range)
    place = searching.searchsorted(edges, column(), side="right")
    is_last = ufuncs.equal(column(), _take(edges, -1))
    return edges, where(is_last, ufuncs.subtract(place, 1), place)


def _flat_index(places: list, sizes: list[int]) -> Any:
    """Indices along axes of these sizes, clipped, as indices into the flattened array."""
    flat: Any = np.int32(0)
    clipped = [ufuncs.clip(place, 0, size - 1) for place, size in zip(places, sizes, strict=True)]
    for i, place in enumerate(clipped):
        flat = ufuncs.add(flat, ufuncs.multiply(place, prod(sizes[i + 1 :])))
    return flat


def _density(counts: Any, widths: list) -> Any:
    density = ufuncs.divide(counts, reductions.sum(counts))
    for width in taking.ix_(*widths):
        density = ufuncs.divide(density, width)
    return density
