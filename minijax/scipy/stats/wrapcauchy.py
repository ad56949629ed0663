"""Cauchy's distribution wrapped around the circle."""

from __future__ import annotations

import numpy as np

import minijax.numpy as jnp
from minijax.base.faces import listing
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.primitives.promote import promote_args_inexact
from minijax.run.array import Array, ArrayLike

__all__, __dir__ = listing(__name__, "logpdf pdf")


def logpdf(x: ArrayLike, c: ArrayLike) -> Array:
    """The logarithm of the density."""
    x, c = promote_args_inexact("wrapcauchy.logpdf", x, c)
    one = const_like(x, 1)
    holds = jnp.logical_and(lax.gt(c, const_like(c, 0)), lax.lt(c, const_like(c, 1)))
    inside = jnp.logical_and(lax.ge(x, const_like(x, 0)), lax.le(x, const_like(x, 2 * np.pi)))
    height = lax.log(lax.sub(one, lax.mul(c, c))) - lax.log(2 * np.pi)
    width = lax.sub(lax.add(one, lax.mul(c, c)), lax.mul(lax.mul(const_like(x, 2), c), lax.cos(x)))
    return jnp.where(holds, jnp.where(inside, lax.sub(height, lax.log(width)), -np.inf), np.nan)


def pdf(x: ArrayLike, c: ArrayLike) -> Array:
    """The density."""
    return lax.exp(logpdf(x, c))
