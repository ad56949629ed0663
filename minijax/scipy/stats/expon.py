"""The exponential distribution."""

from __future__ import annotations

import numpy as np

import minijax.numpy as jnp
from minijax.base.faces import listing
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.primitives.promote import promote_args_inexact
from minijax.run.array import Array, ArrayLike

__all__, __dir__ = listing(__name__, "cdf logcdf logpdf logsf pdf ppf sf")


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density."""
    x, loc, scale = promote_args_inexact("expon.logpdf", x, loc, scale)
    log_scale = lax.log(scale)
    logarithm = lax.neg(lax.add(lax.div(lax.sub(x, loc), scale), log_scale))
    return jnp.where(lax.lt(x, loc), -np.inf, logarithm)


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density."""
    return lax.exp(logpdf(x, loc, scale))


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x."""
    x, loc, scale = promote_args_inexact("expon.cdf", x, loc, scale)
    scaled = lax.div(lax.sub(loc, x), scale)
    below = lax.lt(x, loc)
    return jnp.where(below, jnp.zeros_like(scaled), lax.neg(lax.expm1(scaled)))


def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`."""
    return lax.log1p(lax.neg(sf(x, loc, scale)))


def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`."""
    x, loc, scale = promote_args_inexact("expon.logsf", x, loc, scale)
    scaled = lax.div(lax.sub(loc, x), scale)
    below = lax.lt(x, loc)
    return jnp.where(below, jnp.zeros_like(scaled), scaled)


def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x."""
    return lax.exp(logsf(x, loc, scale))


def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `cdf`."""
    q, loc, scale = promote_args_inexact("expon.ppf", q, loc, scale)
    outside = jnp.logical_or(jnp.logical_or(jnp.isnan(q), lax.lt(q, const_like(q, 0))), lax.gt(q, const_like(q, 1)))
    return jnp.where(outside, np.nan, lax.sub(loc, lax.mul(scale, lax.log1p(lax.neg(q)))))
