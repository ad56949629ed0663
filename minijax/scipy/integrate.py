"""Integrals of samples."""

from typing import Any

import minijax.numpy as jnp
from minijax.dispatch.jitted import jitted


@jitted(static=("axis",))
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """As `scipy.integrate.trapezoid`."""
    return jnp.trapezoid(y, x, dx, axis)
