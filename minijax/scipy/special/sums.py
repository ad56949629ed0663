"""Functions of jax.nn with SciPy's defaults."""

from typing import Any

from minijax.nn import functions as nn


def softmax(x: Any, /, *, axis: int | tuple[int, ...] | None = None) -> Any:
    """exp(x) divided by its sum over the axes, all by default."""
    return nn.softmax(x, axis=axis)


def log_softmax(x: Any, /, *, axis: int | tuple[int, ...] | None = None) -> Any:
    """The logarithm of `softmax`."""
    return nn.log_softmax(x, axis=axis)
