"""Integrals of samples."""

from __future__ import annotations

import minijax.numpy as jnp
from minijax.base.faces import documented
from minijax.dispatch.jitted import jitted
from minijax.run.arrays.array import Array, ArrayLike


@jitted(static=("axis",))
def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
    """Integrates samples along an axis by the trapezoidal rule.

    `x` are the coordinates of the samples; without it they are `dx` apart. The result is of a floating dtype.

    Example:
      >>> jax.scipy.integrate.trapezoid(jnp.array([0.0, 1.0, 4.0]))
      Array(3., dtype=float32)
    """
    return jnp.trapezoid(y, x, dx, axis)


__all__, __dir__ = documented(__name__, "trapezoid")
