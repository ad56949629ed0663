"""Laplace's distribution."""

from __future__ import annotations

from minijax.base.faces import listing
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.formulas import exp_of, strong

__all__, __dir__ = listing(__name__, "cdf logpdf pdf")


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density."""
    x, loc, scale = strong("laplace.logpdf", x, loc, scale)
    return -(lax.div(abs(x - loc), scale) + lax.log(2 * scale))


pdf = exp_of(logpdf)


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x."""
    x, loc, scale = strong("laplace.cdf", x, loc, scale)
    scaled = (x - loc) / scale
    return lax.select(lax.le(scaled, const_like(scaled, 0)), 0.5 * lax.exp(scaled), 1 - 0.5 * lax.exp(-scaled))
