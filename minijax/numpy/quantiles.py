"""Quantiles and medians, counts by value, and histograms."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from minijax.base import dims, dtypes
from minijax.base.dims import as_index
from minijax.base.documentation import filled
from minijax.base.errors import ShardingTypeError
from minijax.base.util import named
from minijax.composed.arrays.selecting import where
from minijax.dispatch.jitted import jitted
from minijax.ir.types import typeof
from minijax.numpy import reductions, searching, shaping, subscripts, taking, ufuncs
from minijax.numpy.creation import asarray, concrete, ones_like, value, values, zeros
from minijax.numpy.ranges import linspace
from minijax.numpy.reductions import any as any_of, canonical_axes, sum as sum_of
from minijax.primitives import (
    counting,
    elementwise as lax,
    gather_scatter,
    moving,
    sharding,
    sort as lax_sort,
    structural,
)
from minijax.primitives.convert import as_type, convert
from minijax.primitives.families import const_like, is_complex, scalar_like
from minijax.primitives.gather_dims import GatherDimensionNumbers
from minijax.primitives.promote import arrays, promote_dtypes_inexact
from minijax.run.arrays.array import Array, ArrayLike, ShardingLike

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")
_STATIC = ("axis", "overwrite_input", "keepdims", "method")


def _check_kinds(name: str, a: Any, q: Any, method: str, weights: Any) -> None:
    if method not in _METHODS:
        raise ValueError(f"{name}: method can only be one of {', '.join(map(repr, _METHODS))}, got {method!r}")
    if is_complex(a):
        raise ValueError(f"{name} does not support complex input, as the operation is poorly defined.")
    if typeof(q).ndim > 1:
        raise ValueError(f"{name}: q must have rank <= 1, got shape {typeof(q).shape}")
    if weights is not None and method != "inverted_cdf":
        raise NotImplementedError(f"{name}: method {method!r} doesn't support weights, only 'inverted_cdf' does.")
    if weights is not None and is_complex(weights):
        raise ValueError(f"{name}: weights cannot be complex.")


def _broadcast_weights(name: str, weights: Any, shape: tuple, axis: Any) -> Any:
    """The weights in the shape of the array; those of the reduced axes only are broadcast over the others."""
    have = typeof(weights).shape
    if have == shape:
        return weights
    if axis is None:
        raise ValueError(f"{name}: weights must have the shape of a, {shape}, when axis is None, got {have}.")
    axes = canonical_axes(axis, len(shape))
    if have != tuple(shape[i] for i in axes):
        raise ValueError(f"{name}: weights of shape {have} must match the reduced axes {axes} of {shape}.")
    return moving.broadcast_in_dim(weights, shape, axes)


def _merged(xs: list, axis: Any, ndim: int) -> tuple[list, int]:
    """Merges the axes to reduce into one; returns the arrays and that axis."""
    if axis is None:
        return [moving.reshape(x, (typeof(x).size,)) for x in xs], 0
    if not isinstance(axis, tuple):
        return xs, dims.canonical_axis(axis, ndim)
    axes = canonical_axes(axis, ndim)
    order = list(range(ndim))
    others = [i for i in order if i not in axes]
    for i, j in enumerate(others):
        order[i], order[j] = order[j], order[i]
    sizes = typeof(xs[0]).shape
    new = (*(sizes[i] for i in others), prod(sizes[i] for i in axes))
    return [moving.reshape(x, new, order) for x in xs], len(others)


def _quantile(name: str, a: Any, q: Any, axis: Any, method: str, keepdims: bool, weights: Any, skips_nan: bool) -> Any:
    _check_kinds(name, a, q, method, weights)
    (a,) = promote_dtypes_inexact(a)
    shape = typeof(a).shape
    xs = [a]
    if weights is not None:
        xs.append(_broadcast_weights(name, as_type(weights, typeof(a).dtype), shape, axis))
    xs, along = _merged(xs, axis, len(shape))
    quantiles = _sorted_quantile(xs, q, along, method, keepdims, skips_nan)
    if keepdims and not isinstance(axis, int):
        axes = canonical_axes(axis, len(shape))
        reduced_shape = tuple(1 if i in axes else n for i, n in enumerate(shape))
        quantiles = moving.reshape(quantiles, (*typeof(q).shape, *reduced_shape))
    return as_type(quantiles, typeof(a).dtype)


def _sorted_quantile(xs: list, q: Any, axis: int, method: str, keepdims: bool, skips_nan: bool) -> Any:
    a = xs[0]
    nans = lax.ne(a, a)
    a = where(nans if skips_nan else any_of(nans, axis, keepdims=True), np.nan, a)
    a, *weights = lax_sort.sort((a, *xs[1:]), axis, num_keys=1) if xs[1:] else (lax_sort.sort(a, axis),)
    find_neighbours = _neighbours_skipping_nan if skips_nan else _neighbours
    low, high, low_weight, high_weight = find_neighbours(a, q, axis, keepdims)
    if method == "linear":
        parts = (lax.mul(as_type(x, typeof(w).dtype), w) for x, w in ((low, low_weight), (high, high_weight)))
        return lax.add(*parts)
    if method == "lower":
        return low
    if method == "higher":
        return high
    if method == "midpoint":
        return lax.mul(lax.add(low, high), const_like(low, 0.5))
    if method == "nearest":
        return lax.select(lax.le(high_weight, scalar_like(high_weight, 0.5)), low, high)
    return _inverted_cdf(a, weights[0] if weights else None, q, axis, keepdims, skips_nan)


def _ranks(q: Any, last: Callable, clamp: Callable) -> tuple:
    place = lax.mul(q, last())
    low, high = lax.floor(place), lax.ceil(place)
    high_weight = lax.sub(place, low)
    low_weight = lax.sub(scalar_like(high_weight, 1), high_weight)
    int_type = dtypes.default_int_dtype()
    low, high = clamp(low), clamp(high)
    return convert(low, int_type), convert(high, int_type), low_weight, high_weight


def _neighbours(a: Any, q: Any, axis: int, keepdims: bool) -> tuple:
    """The elements on both sides of each quantile, and their weights."""
    shape, batch = typeof(a).shape, typeof(q).ndim
    last = lambda: lax.sub(scalar_like(q, shape[axis]), scalar_like(q, 1))  # noqa: E731
    low, high, *weights = _ranks(q, last, lambda x: lax.clamp(scalar_like(x, 0), x, last()))
    offsets = len(shape) if keepdims else len(shape) - 1
    numbers = GatherDimensionNumbers(tuple(range(batch, batch + offsets)), () if keepdims else (axis,), (axis,))
    sizes = tuple(1 if i == axis else n for i, n in enumerate(shape))
    values = [gather_scatter.gather(a, moving.expand_dims(x, (batch,)), numbers, sizes) for x in (low, high)]
    if batch and offsets:
        weights = [moving.broadcast_in_dim(w, typeof(values[0]).shape, (0,)) for w in weights]
    return (*values, *weights)


def _neighbours_skipping_nan(a: Any, q: Any, axis: int, keepdims: bool) -> tuple:
    """As `_neighbours`, but each row counts only its elements that are not NaN."""
    batch = typeof(q).ndim
    counts = sum_of(lax.bitwise_not(lax.ne(a, a)), axis, typeof(q).dtype, keepdims=keepdims)
    rank = typeof(counts).ndim
    q = moving.expand_dims(q, tuple(range(batch, batch + rank)))
    counts = moving.expand_dims(counts, tuple(range(batch)))
    last = lambda: lax.sub(counts, scalar_like(counts, 1))  # noqa: E731
    low, high, *weights = _ranks(q, last, lambda x: ufuncs.maximum(scalar_like(x, 0), ufuncs.minimum(x, last())))
    shape = typeof(low).shape
    at = [counting.broadcasted_iota(dtypes.default_int_dtype(), shape, i) for i in range(batch, len(shape))]
    at = [at[:axis], at[axis + keepdims :]]
    return (*(subscripts.getitem(a, (*at[0], x, *at[1])) for x in (low, high)), *weights)


def _inverted_cdf(a: Any, weights: Any, q: Any, axis: int, keepdims: bool, skips_nan: bool) -> Any:
    """The first elements at which the sum of the weights reaches the fraction q of the total."""
    batch = typeof(q).ndim
    front = tuple(range(batch))
    weights = structural.full_like(a, 1) if weights is None else weights
    zeros = structural.full_like(weights, 0)
    is_invalid, is_nan = lax.bitwise_or(lax.lt(weights, zeros), lax.ne(weights, weights)), lax.ne(a, a)
    skipped = lax.bitwise_or(is_invalid, is_nan)
    reached = reductions.cumsum(lax.select(skipped, zeros, weights), axis)
    total = structural.index_in_dim(reached, -1, axis, keepdims)
    rank = typeof(total).ndim
    total = moving.expand_dims(total, front)
    target = lax.mul(moving.reshape(q, (*typeof(q).shape, *(1,) * rank)), total)
    target = target if keepdims else moving.expand_dims(target, (axis + batch,))
    int_type = dtypes.default_int_dtype()
    below = convert(lax.lt(moving.expand_dims(reached, front), target), int_type)
    place = sum_of(below, axis + batch, keepdims=keepdims)
    if skips_nan:
        counts = sum_of(lax.bitwise_not(is_nan), axis, typeof(q).dtype, keepdims=keepdims)
    else:
        counts = moving.filled(typeof(total).shape[batch:], scalar_like(q, typeof(a).shape[axis]))
    last = convert(lax.sub(counts, scalar_like(counts, 1)), int_type)
    place = ufuncs.maximum(scalar_like(place, 0), ufuncs.minimum(place, moving.expand_dims(last, front)))
    place = structural.squeeze(place, (axis + batch,)) if keepdims else place
    place = moving.move_axis(place, 0, axis) if batch else moving.expand_dims(place, (axis,))
    elements = taking.take_along_axis(a, place, axis)
    elements = moving.move_axis(elements, axis, 0) if batch else structural.squeeze(elements, (axis,))
    elements = moving.expand_dims(elements, (axis + batch,)) if keepdims else elements
    empty = lax.eq(counts, moving.filled(typeof(counts).shape, scalar_like(counts, 0)))
    bad = any_of(is_invalid, axis, keepdims=keepdims)
    bad = lax.bitwise_or(bad, empty if skips_nan else any_of(is_nan, axis, keepdims=keepdims))
    return where(moving.expand_dims(bad, front), structural.full_like(elements, np.nan), elements)


def _function(name: str, skips_nan: bool) -> Callable:
    def function(
        a: ArrayLike,
        q: ArrayLike,
        axis: int | tuple[int, ...] | None = None,
        out: None = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: bool = False,
        *,
        weights: ArrayLike | None = None,
    ) -> Array:
        """Computes quantiles of {which}, of all or along axes.

        `q` are probabilities from 0 to 1, which may be traced; their axes come first in the result. `method` is
        "linear", "lower", "higher", "midpoint" or "nearest", fewer than in NumPy, or "inverted_cdf", which `weights`
        need. {nan} `overwrite_input` and `out` are not supported.

        Example:
          >>> jnp.{prefix}quantile(jnp.array({numbers}), 0.25)
          Array(1.5, dtype=float32)
        """
        operands = arrays(name, a, q, *(() if weights is None else (weights,)))
        if overwrite_input or out is not None:
            raise ValueError(f"jax.numpy.{name} does not support overwrite_input=True or out != None")
        return _quantile(name, *operands[:2], axis, method, keepdims, *operands[2:] or (None,), skips_nan)

    return jitted(static=_STATIC)(named(function, name, filled(function, _TEXTS[skips_nan])))


_TEXTS = (
    dict(which="elements", nan="NaN gives NaN.", prefix="", numbers="[3.0, 1.0, 2.0]"),
    dict(
        **dict(which="the elements that are not NaN", nan="The result is NaN where all elements are."),
        **dict(prefix="nan", numbers="[3.0, 1.0, jnp.nan, 2.0]"),
    ),
)


quantile, nanquantile = _function("quantile", False), _function("nanquantile", True)


def _hundredths(q: Any) -> Any:
    (q,) = promote_dtypes_inexact(q)
    return ufuncs.divide(q, 100)


@jitted("percentile", static=(*_STATIC, "out_sharding"))
def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Computes percentiles of elements, of all or along axes.

    `q` are numbers from 0 to 100, which may be traced. `method`, `weights` and the unsupported arguments are those of
    `quantile`. `out_sharding` is the sharding of the result.

    Example:
      >>> jnp.percentile(jnp.arange(5.0), 25)
      Array(1., dtype=float32)
    """
    a, q = arrays("percentile", a, q)
    compute = lambda a, q: quantile(a, q, axis, out, overwrite_input, method, keepdims, weights=weights)  # noqa: E731
    q = _hundredths(q)
    return (
        compute(a, q) if out_sharding is None else sharding.with_auto_axes("percentile", compute, (a, q), out_sharding)
    )


@jitted("nanpercentile", static=_STATIC)
def nanpercentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """Computes percentiles of the elements that are not NaN, of all or along axes.

    `q` are numbers from 0 to 100, which may be traced. `method`, `weights` and the unsupported arguments are those of
    `nanquantile`.

    Example:
      >>> jnp.nanpercentile(jnp.array([1.0, jnp.nan, 3.0]), 50)
      Array(2., dtype=float32)
    """
    a, q = arrays("nanpercentile", a, q)
    return nanquantile(a, _hundredths(q), axis, out, overwrite_input, method, keepdims, weights=weights)


def _median(name: str, find: Callable) -> Callable:
    def function(
        a: ArrayLike,
        axis: int | tuple[int, ...] | None = None,
        out: None = None,
        overwrite_input: bool = False,
        keepdims: bool = False,
    ) -> Array:
        """Computes the median of {which}, of all or along axes.

        Of an even number of elements it is the mean of the middle two. {nan} Integers become floats. `axis` is static.
        `overwrite_input` and `out` are not supported.

        Example:
          >>> jnp.{prefix}median(jnp.array({numbers}))
          Array(2., dtype=float32)
        """
        (a,) = arrays(name, a)
        return find(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)

    doc = filled(function, _TEXTS[name == "nanmedian"])
    return jitted(static=("axis", "overwrite_input", "keepdims"))(named(function, name, doc))


median, nanmedian = _median("median", quantile), _median("nanmedian", nanquantile)


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

    Example:
      >>> jnp.histogram_bin_edges(jnp.array([0.0, 4.0]), bins=4)
      Array([0., 1., 2., 3., 4.], dtype=float32)
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

    Returns the counts, and the edges of the bins in both dimensions. `bins` is a number, a vector of edges,
    or a pair of these. `weights` are added up instead of ones. With `density` the integral of the result is 1.

    Example:
      >>> jnp.histogram2d(jnp.array([0.0, 1.0]), jnp.array([0.0, 1.0]), bins=2)[0]
      Array([[1, 0],
             [0, 1]], dtype=int32)
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

    Each row of `sample` is a point. Returns the counts, and a list of the edges of the bins in each dimension. `bins`
    is a number, or a list of numbers and vectors of edges. Unlike in NumPy a list of arrays is not a sample.

    Example:
      >>> jnp.histogramdd(jnp.array([[0.0, 0.0], [1.0, 1.0]]), bins=2)[0]
      Array([[1, 0],
             [0, 1]], dtype=int32)
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
