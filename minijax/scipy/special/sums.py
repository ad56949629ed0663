"""Functions of jax.nn with SciPy's defaults."""

from __future__ import annotations

from minijax.nn import functions as nn
from minijax.run.arrays.array import Array, ArrayLike


def softmax(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """Computes `exp(x)` divided by its sum over axes, without overflow.

    `axis` is an axis or tuple of axes, by default all; in `jax.nn.softmax` it is the last one.

    Example:
      >>> jax.scipy.special.softmax(jnp.array([0.0, 0.0]))
      Array([0.5, 0.5], dtype=float32)
    """
    return nn.softmax(x, axis=axis)


def log_softmax(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """Computes the logarithm of `softmax` without overflow.

    `axis` is an axis or tuple of axes, by default all; in `jax.nn.log_softmax` it is the last one.
    """
    return nn.log_softmax(x, axis=axis)
