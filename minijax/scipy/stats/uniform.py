"""The uniform distribution."""

from __future__ import annotations

import numpy as np

import minijax.numpy as jnp
from minijax.base.faces import listing
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like, scalar_like
from minijax.primitives.promote import promote_args_inexact
from minijax.run.array import Array, ArrayLike

__all__, __dir__ = listing(__name__, "cdf logpdf pdf ppf")


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density."""
    x, loc, scale = promote_args_inexact("uniform.logpdf", x, loc, scale)
    logarithm = lax.neg(lax.log(scale))
    outside = jnp.logical_or(lax.gt(x, lax.add(loc, scale)), lax.lt(x, loc))
    return jnp.where(outside, -np.inf, logarithm)


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density."""
    return lax.exp(logpdf(x, loc, scale))


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x."""
    x, loc, scale = promote_args_inexact("uniform.cdf", x, loc, scale)
    zero, one = scalar_like(x, 0), scalar_like(x, 1)
    below, above = lax.lt(x, loc), lax.gt(x, lax.add(loc, scale))
    inside = jnp.logical_and(lax.ge(x, loc), lax.le(x, lax.add(loc, scale)))
    return jnp.select([below, above, inside], [zero, one, lax.div(lax.sub(x, loc), scale)])


def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `cdf`."""
    q, loc, scale = promote_args_inexact("uniform.ppf", q, loc, scale)
    outside = jnp.logical_or(jnp.logical_or(jnp.isnan(q), lax.lt(q, const_like(q, 0))), lax.gt(q, const_like(q, 1)))
    return jnp.where(outside, np.nan, lax.add(loc, lax.mul(scale, q)))
