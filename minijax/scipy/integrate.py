"""Integrals of samples."""

from __future__ import annotations

import minijax.numpy as jnp
from minijax.base.faces import listing
from minijax.dispatch.jitted import jitted
from minijax.run.arrays.array import Array, ArrayLike

__all__, __dir__ = listing(__name__, "trapezoid")


@jitted(static=("axis",))
def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
    """As `scipy.integrate.trapezoid`."""
    return jnp.trapezoid(y, x, dx, axis)
