"""Interpolation on a regular grid."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.base import tree
from minijax.base.faces import documented
from minijax.primitives.promote import check_arraylike

_METHODS = ("linear", "nearest")


def _points(xi: Any, ndim: int) -> Any:
    """The points as an array (..., ndim); a tuple holds one array per dimension."""
    if isinstance(xi, tuple) and len(xi) == 1:
        xi = xi[0]
    if isinstance(xi, tuple):
        check_arraylike("RegularGridInterpolator", *xi)
        parts = jnp.broadcast_arrays(*xi)
        points = jnp.zeros((*parts[0].shape, len(parts)), float)
        for k, part in enumerate(parts):
            points = points.at[..., k].set(part)
        return points
    check_arraylike("RegularGridInterpolator", xi)
    xi = jnp.asarray(xi)
    if xi.ndim != 1:
        return xi
    return xi.reshape(-1, 1) if ndim == 1 else xi.reshape(-1, ndim) if xi.shape[0] == ndim else xi[:, None]


@tree.register_pytree_node_class
class RegularGridInterpolator:
    """Interpolates values on a regular grid, by "linear" or "nearest" interpolation.

    `points` has the coordinates along each leading dimension of `values`, ascending. Points outside of the grid get
    `fill_value`, or are extrapolated if it is None. Raises NotImplementedError for `bounds_error`.
    """

    def __init__(
        self,
        points: Sequence[Any],
        values: Any,
        method: str = "linear",
        bounds_error: bool = False,
        fill_value: Any = np.nan,
    ):
        if method not in _METHODS:
            raise ValueError(f"RegularGridInterpolator: method {method!r} is not defined")
        if bounds_error:
            raise NotImplementedError("RegularGridInterpolator: `bounds_error` takes no effect under JIT")
        check_arraylike("RegularGridInterpolator", values)
        if len(points) > values.ndim:
            raise ValueError(
                f"RegularGridInterpolator: there are {len(points)} point arrays, but values has {values.ndim} "
                "dimensions"
            )
        values = jnp.asarray(values)
        if not jnp.issubdtype(values.dtype, np.inexact):
            values = values.astype(float)
        if fill_value is not None:
            check_arraylike("RegularGridInterpolator", fill_value)
            fill_value = jnp.asarray(fill_value)
            if not np.can_cast(fill_value.dtype, values.dtype, casting="same_kind"):
                raise ValueError(
                    "RegularGridInterpolator: fill_value must be either 'None' or of a type compatible with values"
                )
        self.method = method
        self.bounds_error = bounds_error
        self.fill_value = fill_value
        self.grid = tuple(jnp.asarray(p) for p in points)
        self.values = values

    def tree_flatten(self) -> tuple[tuple, tuple]:
        return (self.grid, self.values, self.fill_value), (self.method, self.bounds_error)

    @classmethod
    def tree_unflatten(cls, aux_data: tuple, children: tuple) -> Any:
        new = cls.__new__(cls)
        new.grid, new.values, new.fill_value = children
        new.method, new.bounds_error = aux_data
        return new

    def __call__(self, xi: Any, method: str | None = None) -> Any:
        """Interpolates at points, (..., dimensions) or a tuple of arrays of coordinates."""
        method = self.method if method is None else method
        if method not in _METHODS:
            raise ValueError(f"RegularGridInterpolator: method {method!r} is not defined")
        ndim = len(self.grid)
        xi = _points(xi, ndim)
        if xi.shape[-1] != ndim:
            raise ValueError(
                f"RegularGridInterpolator: the requested sample points xi have dimension {xi.shape[-1]}, "
                f"but this RegularGridInterpolator has dimension {ndim}"
            )
        shape = xi.shape
        cells, distances, is_outside = _cells(self.grid, xi.reshape(-1, ndim).T)
        if method == "linear":
            result = self._linear(cells, distances)
        else:
            places = [jnp.where(d <= 0.5, i, i + 1) for i, d in zip(cells, distances, strict=True)]
            result = self.values[tuple(places)]
        if self.fill_value is not None:
            is_outside = is_outside.reshape(is_outside.shape + (1,) * (result.ndim - 1))
            result = jnp.where(is_outside, self.fill_value, result)
        return result.reshape(shape[:-1] + self.values.shape[ndim:])

    def _linear(self, cells: list, distances: list) -> Any:
        wide = (slice(None),) + (None,) * (self.values.ndim - len(cells))
        total = 0.0
        for corner in itertools.product(*[(i, i + 1) for i in cells]):
            weight = 1.0
            for place, i, d in zip(corner, cells, distances, strict=True):
                weight = weight * jnp.where(place == i, 1 - d, d)
            total = total + self.values[corner] * weight[wide]
        return total


def _cells(grid: Sequence[Any], xi: Any) -> tuple[list, list, Any]:
    """(cell indices for each dimension, distances into the cell, which points are outside the grid)."""
    cells, distances, is_outside = [], [], jnp.zeros(xi.shape[1], bool)
    for x, points in zip(xi, grid, strict=True):
        i = jnp.searchsorted(points, x) - 1
        i = jnp.where(i < 0, 0, i)
        i = jnp.where(i > points.size - 2, points.size - 2, i)
        cells.append(i)
        distances.append((x - points[i]) / (points[i + 1] - points[i]))
        is_outside = is_outside | (x < points[0]) | (x > points[-1])
    return cells, distances, is_outside


__all__, __dir__ = documented(__name__, "RegularGridInterpolator")
