"""Interpolation of arrays between their elements."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.base.faces import documented
from minijax.dispatch.jitted import jitted
from minijax.ir.types import typeof
from minijax.primitives import elementwise as lax
from minijax.run.arrays.array import ArrayLike


def _mirror(index: Any, size: int) -> Any:
    """Maps an index into an array that is continued by reflection about the centers of its end elements."""
    last = size - 1
    return jnp.abs((index + last) % (2 * last) - last)


_FOLDS: dict[str, Callable] = {
    "constant": lambda index, size: index,
    "nearest": lambda index, size: jnp.clip(index, 0, size - 1),
    "wrap": lambda index, size: index % size,
    "mirror": _mirror,
    # `_mirror` in units of half an element: 2 * i + 1 is the center of the element i.
    "reflect": lambda index, size: jnp.floor_divide(_mirror(2 * index + 1, 2 * size + 1) - 1, 2),
}


def _rounded(x: Any) -> Any:
    return x if jnp.issubdtype(typeof(x).dtype, np.integer) else lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO)


def _nearest(coordinate: Any) -> list[tuple[Any, Any]]:
    return [(_rounded(coordinate).astype(np.int32), typeof(coordinate).dtype.type(1))]


def _neighbours(coordinate: Any) -> list[tuple[Any, Any]]:
    lower = jnp.floor(coordinate)
    upper_weight = coordinate - lower
    lower_weight = 1 - upper_weight
    index = lower.astype(np.int32)
    return [(index, lower_weight), (index + 1, upper_weight)]


@jitted("_map_coordinates", static=("order", "mode", "cval"))
def _map_coordinates(input: Any, coordinates: Sequence[Any], order: int, mode: str, cval: Any) -> Any:
    input, coordinates = jnp.asarray(input), [jnp.asarray(c) for c in coordinates]
    cval = jnp.asarray(cval, input.dtype)
    if len(coordinates) != input.ndim:
        raise ValueError(
            "jax.scipy.ndimage.map_coordinates: coordinates must be a sequence of length input.ndim, "
            f"but {len(coordinates)} != {input.ndim}"
        )
    if mode not in _FOLDS:
        raise NotImplementedError(
            f"jax.scipy.ndimage.map_coordinates does not yet support mode {mode}. "
            f"Currently supported modes are {set(_FOLDS)}."
        )
    if order not in (0, 1):
        raise NotImplementedError("jax.scipy.ndimage.map_coordinates currently requires order<=1")
    nodes = []
    for coordinate, size in zip(coordinates, input.shape, strict=True):
        places = (_neighbours if order else _nearest)(coordinate)
        is_inside = [(0 <= i) & (i < size) if mode == "constant" else True for i, _ in places]
        nodes.append(
            [(_FOLDS[mode](i, size), inside, weight) for (i, weight), inside in zip(places, is_inside, strict=True)]
        )
    parts = []
    for corner in itertools.product(*nodes):
        indices, insides, weights = (tuple(node[k] for node in corner) for k in range(3))
        if mode == "constant":
            value = jnp.where(functools.reduce(operator.and_, insides), input[indices], cval)
        else:
            value = input[indices]
        parts.append(functools.reduce(operator.mul, weights) * value)
    result = functools.reduce(operator.add, parts)
    return (_rounded(result) if jnp.issubdtype(input.dtype, np.integer) else result).astype(input.dtype)


def map_coordinates(
    input: ArrayLike, coordinates: Sequence[Any], order: int, mode: str = "constant", cval: ArrayLike = 0.0
) -> Any:
    """Evaluates an array at coordinates between its elements.

    `coordinates` has one array for each axis. `order` is 0 for the nearest element, or 1 for linear interpolation.
    `mode` is how the array is continued: "constant" (with `cval`), "nearest", "wrap", "mirror" or "reflect". Raises
    NotImplementedError for other orders and modes, ValueError unless there is an array of coordinates for each axis.

    Example:
      >>> x = jnp.array([0.0, 10.0, 20.0])
      >>> jax.scipy.ndimage.map_coordinates(x, [jnp.array([0.5, 1.0])], order=1)
      Array([ 5., 10.], dtype=float32)
    """
    return _map_coordinates(input, coordinates, order, mode, cval)


__all__, __dir__ = documented(__name__, "map_coordinates")
