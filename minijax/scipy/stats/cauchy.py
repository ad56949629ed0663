"""Cauchy's distribution."""

from __future__ import annotations

import numpy as np

from minijax.base.faces import listing
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.primitives.promote import promote_args_inexact
from minijax.run.array import Array, ArrayLike

__all__, __dir__ = listing(__name__, "cdf isf logcdf logpdf logsf pdf ppf sf")


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density."""
    x, loc, scale = promote_args_inexact("cauchy.logpdf", x, loc, scale)
    scaled = lax.div(lax.sub(x, loc), scale)
    norm = lax.log(lax.mul(const_like(x, np.pi), scale))
    return lax.neg(lax.add(norm, lax.log1p(lax.mul(scaled, scaled))))


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density."""
    return lax.exp(logpdf(x, loc, scale))


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x."""
    x, loc, scale = promote_args_inexact("cauchy.cdf", x, loc, scale)
    scaled = lax.div(lax.sub(x, loc), scale)
    inverse = lax.div(const_like(x, 1), const_like(x, np.pi))
    return lax.add(const_like(x, 0.5), lax.mul(inverse, lax.atan(scaled)))


def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`."""
    return lax.log(cdf(x, loc, scale))


def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x."""
    x, loc, scale = promote_args_inexact("cauchy.sf", x, loc, scale)
    return cdf(lax.neg(x), lax.neg(loc), scale)


def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`."""
    x, loc, scale = promote_args_inexact("cauchy.logsf", x, loc, scale)
    return logcdf(lax.neg(x), lax.neg(loc), scale)


def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `sf`."""
    q, loc, scale = promote_args_inexact("cauchy.isf", q, loc, scale)
    angle = lax.sub(const_like(q, np.pi / 2), lax.mul(const_like(q, np.pi), q))
    return lax.add(lax.mul(lax.tan(angle), scale), loc)


def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `cdf`."""
    q, loc, scale = promote_args_inexact("cauchy.ppf", q, loc, scale)
    angle = lax.sub(lax.mul(const_like(q, np.pi), q), const_like(q, np.pi / 2))
    return lax.add(lax.mul(lax.tan(angle), scale), loc)
