"""Cauchy's distribution."""

from __future__ import annotations

from math import pi

from minijax.base.faces import listing
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.formulas import exp_of, inexact, log_of, strong

__all__, __dir__ = listing(__name__, "cdf isf logcdf logpdf logsf pdf ppf sf")


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density."""
    x, loc, scale = strong("cauchy.logpdf", x, loc, scale)
    scaled = (x - loc) / scale
    return -(lax.log(pi * scale) + lax.log1p(scaled * scaled))


pdf = exp_of(logpdf)


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x."""
    x, loc, scale = inexact("cauchy.cdf", x, loc, scale)
    scaled = (x - loc) / scale
    return 0.5 + lax.div(const_like(x, 1), const_like(x, pi)) * lax.atan(scaled)


logcdf = log_of(cdf)


def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x."""
    x, loc, scale = inexact("cauchy.sf", x, loc, scale)
    return cdf(-x, -loc, scale)


def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`."""
    x, loc, scale = inexact("cauchy.logsf", x, loc, scale)
    return logcdf(-x, -loc, scale)


def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `sf`."""
    q, loc, scale = strong("cauchy.isf", q, loc, scale)
    return lax.tan(pi / 2 - pi * q) * scale + loc


def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `cdf`."""
    q, loc, scale = strong("cauchy.ppf", q, loc, scale)
    return lax.tan(pi * q - pi / 2) * scale + loc
