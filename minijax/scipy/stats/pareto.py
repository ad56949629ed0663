"""Pareto's distribution."""

from __future__ import annotations

import minijax.numpy as jnp
from minijax.base.faces import listing
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.formulas import exp_of, inexact, strong

__all__, __dir__ = listing(__name__, "cdf logcdf logpdf logsf pdf ppf sf")


def logpdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density."""
    x, b, loc, scale = strong("pareto.logpdf", x, b, loc, scale)
    scaled = (x - loc) / scale
    logarithm = -(lax.log(scale / b) + (b + 1) * lax.log(scaled))
    return jnp.where(lax.lt(x, loc + scale), -jnp.inf, logarithm)


pdf = exp_of(logpdf)


def cdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x."""
    x, b, loc, scale = inexact("pareto.cdf", x, b, loc, scale)
    scaled = (x - loc) / scale
    probability = 1 - lax.pow(scaled, -b)
    return jnp.where(lax.lt(x, loc + scale), const_like(x, 0), probability)


def logcdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`."""
    x, b, loc, scale = inexact("pareto.logcdf", x, b, loc, scale)
    scaled = (x - loc) / scale
    logarithm = lax.log1p(-lax.pow(scaled, -b))
    return jnp.where(lax.lt(x, loc + scale), -jnp.inf, logarithm)


def logsf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`."""
    x, b, loc, scale = inexact("pareto.logsf", x, b, loc, scale)
    logarithm = -(b * lax.log((x - loc) / scale))
    return jnp.where(lax.lt(x, loc + scale), const_like(x, 0), logarithm)


sf = exp_of(logsf)


def ppf(q: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `cdf`."""
    q, b, loc, scale = strong("pareto.ppf", q, b, loc, scale)
    result = loc + scale * lax.pow(1 - q, -(1 / b))
    return jnp.where(jnp.isnan(q) | (q < 0) | (q > 1), jnp.nan, result)
