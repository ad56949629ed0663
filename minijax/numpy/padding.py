"""`pad`, in all its modes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.api.vmap import vmap
from minijax.base import errors
from minijax.base.dims import as_index
from minijax.base.symbolic.dimension import is_dim
from minijax.dispatch.jitted import jitted
from minijax.ir.types import typeof
from minijax.numpy import creation, quantiles, ranges, reductions, shaping, taking, ufuncs
from minijax.primitives import elementwise as lax, moving, structural
from minijax.primitives.convert import convert
from minijax.run.arrays.array import Array, ArrayLike

_STATISTICS = {
    "maximum": reductions.max,
    "mean": reductions.mean,
    "median": quantiles.median,
    "minimum": reductions.min,
}
_OPTIONS = {
    "constant": ("constant_values",),
    "linear_ramp": ("end_values",),
    "reflect": ("reflect_type",),
    "symmetric": ("reflect_type",),
    "edge": (),
    "wrap": (),
    "empty": (),
    **dict.fromkeys(_STATISTICS, ("stat_length",)),
}
Widths = tuple[tuple[int, int], ...]


def pad(array: ArrayLike, pad_width: Any, mode: str | Callable = "constant", **kwargs: Any) -> Array:
    """Adds elements at both ends of the axes of an array.

    Args:
      array: array.
      pad_width: number of elements: one for all ends, a pair (before, after) for all axes, or a sequence with a pair
        for each axis; or a dict from axes to numbers or pairs. It must be static.
      mode: "constant", "edge", "empty", "linear_ramp", "maximum", "mean", "median", "minimum", "reflect", "symmetric"
        or "wrap"; or a function of a padded vector, its pair of widths, its axis and the keyword arguments.
      **kwargs: options of the mode: `constant_values` (0 by default), `end_values` (0 by default), `stat_length` (all
        by default), `reflect_type` ("even" or "odd").

    Returns:
      An array of the dtype of `array`.

    Raises:
      ValueError: if widths are negative or do not fit the rank, or if the mode has no such option.
      NotImplementedError: for an unknown mode.
      ConcretizationTypeError: if widths are traced.

    Differences from NumPy:
      A function as mode returns the padded vector instead of writing to it. Mode "empty" pads with zeros. `jax.lax.pad`
      also pads between elements, and takes negative widths.

    See also: `jax.lax.pad`, `jax.numpy.concatenate`.

    Example:
      >>> jnp.pad(jnp.array([1, 2, 3]), (1, 2))
      Array([0, 1, 2, 3, 0, 0], dtype=int32)
      >>> jnp.pad(jnp.array([1, 2, 3]), 2, mode="reflect")
      Array([3, 2, 1, 2, 3, 2, 1], dtype=int32)
      >>> jnp.pad(jnp.ones((2, 2)), ((0, 0), (1, 0)), constant_values=5)
      Array([[5., 1., 1.],
             [5., 1., 1.]], dtype=float32)
    """
    array = creation.value("pad", array)
    widths = _pairs("pad_width", pad_width, array.ndim)
    if any(n < 0 for pair in widths for n in pair):
        raise ValueError("pad: index can't contain negative values")
    if callable(mode):
        return _pad_by_function(array, widths, mode, kwargs)
    if mode not in _OPTIONS:
        known = ", ".join(_OPTIONS)
        raise NotImplementedError(f"Unimplemented padding mode '{mode}' for np.pad. Use a function or one of: {known}.")
    unknown = set(kwargs) - set(_OPTIONS[mode])
    if unknown:
        raise ValueError(f"pad: unsupported keyword arguments for mode '{mode}': {unknown}")
    reflect_type = kwargs.get("reflect_type", "even")
    if reflect_type not in ("even", "odd"):
        raise ValueError(f"pad: reflect_type must be 'even' or 'odd', got {reflect_type!r}")
    lengths = kwargs.get("stat_length")
    lengths = None if lengths is None else _pairs("stat_length", lengths, array.ndim)
    if lengths is not None and any(n < 1 for pair in lengths for n in pair):
        raise ValueError("pad: stat_length of 0 yields no value for padding")
    ends = np.broadcast_to(np.asarray(kwargs.get("end_values", 0)), (array.ndim, 2)).tolist()
    return _pad(array, widths, mode, kwargs.get("constant_values", 0), lengths, tuple(map(tuple, ends)), reflect_type)


def _pairs(name: str, entries: Any, ndim: int) -> Widths:
    """Expands an argument to a pair of ints for each axis."""
    if isinstance(entries, dict):
        pairs: list[Any] = [(0, 0)] * ndim
        for axis, pair in entries.items():
            pairs[operator.index(axis)] = (pair, pair) if np.ndim(pair) == 0 else tuple(pair)
        entries = pairs
    ints = np.asarray(creation.concrete(entries, "pad", name))
    if ints.dtype.kind not in "iu" and not all(map(is_dim, ints.flat)):
        raise TypeError(f"pad: `{name}` must be of integral type.")
    if ints.shape not in ((ndim, 2), (1, 2), (2,), (1,), ()):
        raise ValueError(
            f"jnp.pad: {name} with nd={ndim} has unsupported shape {ints.shape}. Valid shapes are ({ndim}, "
            "2), (1, 2), (2,), (1,), or ()."
        )
    return tuple((as_index(a), as_index(b)) for a, b in np.broadcast_to(ints, (ndim, 2)))


def _pad_by_function(array: Any, widths: Widths, function: Callable, kwargs: dict) -> Any:
    padded = structural.pad(array, _converted_like(0, array), [(a, b, 0) for a, b in widths])
    for axis, pair in enumerate(widths):
        last = moving.move_axis(padded, axis, padded.ndim - 1)
        by_vector: Callable = lambda v, pair=pair, axis=axis: function(v, pair, axis, kwargs)  # noqa: E731
        for _ in range(padded.ndim - 1):
            by_vector = vmap(by_vector)
        padded = moving.move_axis(by_vector(last), padded.ndim - 1, axis)
    return padded


@jitted("_pad", static=("widths", "mode", "lengths", "ends", "reflect_type"))
def _pad(array, widths, mode, constants, lengths, ends, reflect_type):
    if mode == "constant":
        return _constant(array, widths, constants)
    for axis, pair in enumerate(widths):
        if array.shape[axis] == 0 and any(pair) and mode != "empty":
            raise ValueError(f"pad: Cannot apply '{mode}' padding to empty axis")
        if mode in ("wrap", "reflect", "symmetric") and not any(pair):
            continue
        if mode == "wrap":
            array = _wrap(array, axis, pair)
        elif mode in ("reflect", "symmetric"):
            array = _mirror(array, axis, pair, mode == "reflect", reflect_type == "odd")
        else:
            array = _with_end_parts(array, axis, pair, mode, lengths, ends)
    return array


def _with_end_parts(array: Any, axis: int, pair: tuple, mode: str, lengths: Any, ends: Any) -> Any:
    """The array between parts computed for each end."""
    if mode == "edge":
        parts = [taking.repeat(_edge(array, axis, end), n, axis) for end, n in enumerate(pair)]
    elif mode == "empty":
        shapes = [(*array.shape[:axis], n, *array.shape[axis + 1 :]) for n in pair]
        parts = [structural.blank(shape, array.dtype, array.weak_type) for shape in shapes]
    elif mode == "linear_ramp":
        parts = _ramps(array, axis, pair, ends[axis])
    else:
        parts = _statistic(array, axis, pair, mode, None if lengths is None else lengths[axis])
    return structural.concatenate([parts[0], array, parts[1]], axis)


def _constant(array: Any, widths: Widths, constants: Any) -> Any:
    if not isinstance(constants, Sequence | np.ndarray) and typeof(constants).ndim == 0:
        if not array.ndim:
            return array
        return structural.pad(array, _converted_like(constants, array), [(a, b, 0) for a, b in widths])
    fills = _converted_like(creation.asarray(constants), array)
    fills = moving.broadcast_to_shape(fills, (array.ndim, 2))
    for axis, pair in enumerate(widths):
        for end, n in enumerate(pair):
            if n:
                fill = structural.squeeze(structural.slice(fills, (axis, end), (axis + 1, end + 1)), (0, 1))
                ends = (n, 0, 0) if end == 0 else (0, n, 0)
                array = structural.pad(array, fill, [ends if i == axis else (0, 0, 0) for i in range(array.ndim)])
    return array


def _converted_like(x: Any, array: Any) -> Any:
    """`x` converted to the array's dtype and weak type."""
    return convert(x, array.dtype, array.weak_type)


def _part(array: Any, start: int, limit: int, axis: int) -> Any:
    return structural.slice_in_dim(array, start, limit, axis=axis)


def _edge(array: Any, axis: int, end: int) -> Any:
    n = array.shape[axis]
    return _part(array, 0, min(1, n), axis) if end == 0 else _part(array, max(n - 1, 0), n, axis)


def _wrap(array: Any, axis: int, pair: tuple) -> Any:
    n = array.shape[axis]
    (times_before, before), (times_after, after) = divmod(pair[0], n), divmod(pair[1], n)
    parts = [_part(array, n - before, n, axis)] if before > 0 else []
    parts += [array] * int(times_before + 1 + times_after)
    parts += [_part(array, 0, after, axis)] if after > 0 else []
    return structural.concatenate(parts, axis)


def _mirror(array: Any, axis: int, pair: tuple, reflect: bool, odd: bool) -> Any:
    try:
        return _mirrored(array, axis, pair, reflect, odd)
    except errors.InconclusiveDimensionOperation as error:
        raise ValueError(
            f"Shape polymorphism is supported for jnp.pad with 'reflect' or 'symmetric' padding mode only where it is "
            f"known that the size (= {array.shape[axis]}) of axis {axis} is larger than 1 and the padding {pair} no "
            f"larger. {error}"
        ) from None


def _mirrored(array, axis, pair, reflect, odd):
    n = array.shape[axis]
    skipped = 1 if reflect and n > 1 else 0
    for end, remaining in enumerate(pair):
        edge = _edge(array, axis, end)
        while remaining > 0:
            now, size = min(remaining, n - skipped), array.shape[axis]
            start = skipped if end == 0 else size - skipped - now
            part = shaping.flip(_part(array, start, start + now, axis), axis)
            if odd:
                part = lax.sub(lax.mul(array.dtype.type(2), edge), part)
                edge = _part(part, 0, 1, axis) if end == 0 else _part(part, now - 1, now, axis)
            array = structural.concatenate([part, array] if end == 0 else [array, part], axis)
            remaining -= now
    return array


def _ramps(array: Any, axis: int, pair: tuple, ends: tuple) -> list:
    left, right = (_edge(array, axis, end) for end in range(2))
    ramps = (
        ranges.linspace(end, structural.squeeze(edge, (axis,)), n, endpoint=False, dtype=array.dtype, axis=axis)
        for end, edge, n in zip(ends, (left, right), pair, strict=True)
    )
    before, after = (_converted_like(ramp, array) for ramp in ramps)
    return [before, shaping.flip(after, axis)]


def _statistic(array: Any, axis: int, pair: tuple, mode: str, lengths: tuple | None) -> list:
    statistic = _STATISTICS[mode]
    if lengths is None:
        fills = [statistic(array, axis=axis, keepdims=True)] * 2
    else:
        n = array.shape[axis]
        first, last = min(lengths[0], n), min(lengths[1], n)
        windows = [_part(array, 0, first, axis), _part(array, n - last, n, axis)]
        fills = [statistic(w, axis=axis, keepdims=True) for w in windows]
    if np.issubdtype(array.dtype, np.integer):
        fills = [ufuncs.round(x) for x in fills]
    fills = [_converted_like(x, array) for x in fills]
    return [taking.repeat(x, n, axis) for x, n in zip(fills, pair, strict=True)]
