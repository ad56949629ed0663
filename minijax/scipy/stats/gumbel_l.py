"""Gumbel's distribution of the smallest values."""

from __future__ import annotations

import numpy as np

import minijax.numpy as jnp
from minijax.base.faces import listing
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.primitives.promote import promote_args_inexact
from minijax.run.array import Array, ArrayLike
from minijax.scipy.special.logarithms import xlog1py, xlogy

__all__, __dir__ = listing(__name__, "cdf logcdf logpdf logsf pdf ppf sf")


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density."""
    x, loc, scale = promote_args_inexact("gumbel_l.logpdf", x, loc, scale)
    holds = lax.gt(scale, const_like(scale, 0))
    scaled = lax.div(lax.sub(x, loc), scale)
    norm = xlogy(-1, scale)
    return jnp.where(holds, lax.add(norm, lax.sub(scaled, lax.exp(scaled))), np.nan)


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density."""
    return lax.exp(logpdf(x, loc, scale))


def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`."""
    x, loc, scale = promote_args_inexact("gumbel_l.logcdf", x, loc, scale)
    holds = lax.gt(scale, const_like(scale, 0))
    scaled = lax.div(lax.sub(x, loc), scale)
    return jnp.where(holds, lax.log(lax.neg(lax.expm1(lax.neg(lax.exp(scaled))))), np.nan)


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x."""
    return lax.exp(logcdf(x, loc, scale))


def ppf(p: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `cdf`."""
    p, loc, scale = promote_args_inexact("gumbel_l.ppf", p, loc, scale)
    holds = jnp.logical_and(lax.gt(p, const_like(p, 0)), lax.lt(p, const_like(p, 1)))
    logarithm = lax.log(xlog1py(-1, lax.neg(p)))
    return jnp.where(holds, lax.add(loc, lax.mul(scale, logarithm)), np.nan)


def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`."""
    x, loc, scale = promote_args_inexact("gumbel_l.logsf", x, loc, scale)
    holds = lax.gt(scale, const_like(scale, 0))
    scaled = lax.div(lax.sub(x, loc), scale)
    return jnp.where(holds, lax.neg(lax.exp(scaled)), np.nan)


def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x."""
    return lax.exp(logsf(x, loc, scale))
