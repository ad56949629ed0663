"""Integrals of samples."""

from typing import Any

import minijax.numpy as jnp
from minijax.base.faces import listing
from minijax.dispatch.jitted import jitted

__all__, __dir__ = listing(__name__, "trapezoid")


@jitted(static=("axis",))
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """As `scipy.integrate.trapezoid`."""
    return jnp.trapezoid(y, x, dx, axis)
