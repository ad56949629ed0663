"""Laplace's distribution."""

from __future__ import annotations

from minijax.base.faces import listing
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.primitives.promote import promote_args_inexact
from minijax.run.array import Array, ArrayLike

__all__, __dir__ = listing(__name__, "cdf logpdf pdf")


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density."""
    x, loc, scale = promote_args_inexact("laplace.logpdf", x, loc, scale)
    scaled = lax.div(lax.abs(lax.sub(x, loc)), scale)
    return lax.neg(lax.add(scaled, lax.log(lax.mul(const_like(x, 2), scale))))


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density."""
    return lax.exp(logpdf(x, loc, scale))


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x."""
    x, loc, scale = promote_args_inexact("laplace.cdf", x, loc, scale)
    scaled = lax.div(lax.sub(x, loc), scale)
    half, one = const_like(x, 0.5), const_like(x, 1)
    return lax.select(
        lax.le(scaled, const_like(x, 0)),
        lax.mul(half, lax.exp(scaled)),
        lax.sub(one, lax.mul(half, lax.exp(lax.neg(scaled)))),
    )
