"""Pareto's distribution."""

from __future__ import annotations

import numpy as np

import minijax.numpy as jnp
from minijax.base.faces import listing
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.primitives.promote import promote_args_inexact
from minijax.run.array import Array, ArrayLike

__all__, __dir__ = listing(__name__, "cdf logcdf logpdf logsf pdf ppf sf")


def logpdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density."""
    x, b, loc, scale = promote_args_inexact("pareto.logpdf", x, b, loc, scale)
    scaled = lax.div(lax.sub(x, loc), scale)
    norm = lax.log(lax.div(scale, b))
    logarithm = lax.neg(lax.add(norm, lax.mul(lax.add(b, const_like(b, 1)), lax.log(scaled))))
    return jnp.where(lax.lt(x, lax.add(loc, scale)), -np.inf, logarithm)


def pdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density."""
    return lax.exp(logpdf(x, b, loc, scale))


def cdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x."""
    x, b, loc, scale = promote_args_inexact("pareto.cdf", x, b, loc, scale)
    scaled = lax.div(lax.sub(x, loc), scale)
    probability = lax.sub(const_like(x, 1), lax.pow(scaled, lax.neg(b)))
    return jnp.where(lax.lt(x, lax.add(loc, scale)), const_like(x, 0), probability)


def logcdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`."""
    x, b, loc, scale = promote_args_inexact("pareto.logcdf", x, b, loc, scale)
    scaled = lax.div(lax.sub(x, loc), scale)
    logarithm = lax.log1p(lax.neg(lax.pow(scaled, lax.neg(b))))
    return jnp.where(lax.lt(x, lax.add(loc, scale)), -np.inf, logarithm)


def logsf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`."""
    x, b, loc, scale = promote_args_inexact("pareto.logsf", x, b, loc, scale)
    scaled = lax.div(lax.sub(x, loc), scale)
    logarithm = lax.neg(lax.mul(b, lax.log(scaled)))
    return jnp.where(lax.lt(x, lax.add(loc, scale)), const_like(x, 0), logarithm)


def sf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x."""
    return lax.exp(logsf(x, b, loc, scale))


def ppf(q: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `cdf`."""
    q, b, loc, scale = promote_args_inexact("pareto.ppf", q, b, loc, scale)
    one = const_like(q, 1)
    power = lax.pow(lax.sub(one, q), lax.neg(lax.div(one, b)))
    result = lax.add(loc, lax.mul(scale, power))
    outside = jnp.logical_or(jnp.logical_or(jnp.isnan(q), lax.lt(q, const_like(q, 0))), lax.gt(q, one))
    return jnp.where(outside, np.nan, result)
