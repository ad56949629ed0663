"""Von Mises's distribution on the circle."""

from __future__ import annotations

import minijax.numpy as jnp
from minijax.base.faces import documented
from minijax.primitives import bessel, elementwise as lax
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.formulas import exp_of, inexact


def logpdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """Computes the logarithm of the density of the von Mises distribution on the circle.

    `kappa` is its concentration. `x` is an angle in radians. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.vonmises.logpdf(0.0, 1.0).round(4)
      Array(-1.0738, dtype=float32, weak_type=True)
    """
    x, kappa = inexact("vonmises.logpdf", x, kappa)
    holds = kappa > 0
    kernel = kappa * (lax.cos(x) - 1)
    norm = lax.log(2 * jnp.pi * bessel.bessel_i0e(kappa))
    return jnp.where(holds, kernel - norm, jnp.nan)


pdf = exp_of(logpdf, "0.342")


__all__, __dir__ = documented(__name__, "logpdf pdf")
