"""The generalized normal distribution."""

from __future__ import annotations

from minijax.base.faces import listing
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.primitives.promote import promote_args_inexact
from minijax.run.array import Array, ArrayLike
from minijax.scipy.special.gammas import gammainc

__all__, __dir__ = listing(__name__, "cdf logpdf pdf")


def logpdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The logarithm of the density."""
    x, beta = promote_args_inexact("gennorm.logpdf", x, beta)
    norm = lax.sub(lax.log(lax.mul(const_like(x, 0.5), beta)), lax.lgamma(lax.div(const_like(x, 1), beta)))
    return lax.sub(norm, lax.pow(lax.abs(x), beta))


def pdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The density."""
    return lax.exp(logpdf(x, beta))


def cdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The probability of at most x."""
    x, beta = promote_args_inexact("gennorm.cdf", x, beta)
    signed = lax.mul(lax.sign(x), gammainc(lax.div(const_like(x, 1), beta), lax.pow(lax.abs(x), beta)))
    return lax.mul(const_like(x, 0.5), lax.add(const_like(x, 1), signed))
