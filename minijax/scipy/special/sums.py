"""Functions of jax.nn with SciPy's defaults."""

from __future__ import annotations

from minijax.nn import functions as nn
from minijax.run.arrays.array import Array, ArrayLike


def softmax(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """exp(x) divided by its sum over the axes, by default all axes."""
    return nn.softmax(x, axis=axis)


def log_softmax(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """The logarithm of `softmax`."""
    return nn.log_softmax(x, axis=axis)
