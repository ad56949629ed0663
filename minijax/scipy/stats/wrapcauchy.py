"""Cauchy's distribution wrapped around the circle."""

from __future__ import annotations

import minijax.numpy as jnp
from minijax.base.faces import documented
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.formulas import exp_of, inexact


def logpdf(x: ArrayLike, c: ArrayLike) -> Array:
    """Computes the logarithm of the density of the Cauchy distribution wrapped around the circle.

    `c`, between 0 and 1, is its concentration. `x` is an angle in radians. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.wrapcauchy.logpdf(0.0, 0.5).round(4)
      Array(-0.73929995, dtype=float32, weak_type=True)
    """
    x, c = inexact("wrapcauchy.logpdf", x, c)
    holds, is_inside = lax.gt(c, const_like(c, 0)) & (c < 1), (x >= 0) & (x <= 2 * jnp.pi)
    height = lax.log(1 - c * c) - lax.log(2 * jnp.pi)
    width = 1 + c * c - 2 * c * lax.cos(x)
    return jnp.where(holds, jnp.where(is_inside, height - lax.log(width), -jnp.inf), jnp.nan)


pdf = exp_of(logpdf, "0.477...")


__all__, __dir__ = documented(__name__, "logpdf pdf")
