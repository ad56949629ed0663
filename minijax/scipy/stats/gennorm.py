"""The generalized normal distribution."""

from __future__ import annotations

from minijax.base.faces import listing
from minijax.primitives import elementwise as lax
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.formulas import exp_of, inexact
from minijax.scipy.special.gammas import gammainc

__all__, __dir__ = listing(__name__, "cdf logpdf pdf")


def logpdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The logarithm of the density."""
    x, beta = inexact("gennorm.logpdf", x, beta)
    return lax.log(0.5 * beta) - lax.lgamma(1 / beta) - lax.pow(abs(x), beta)


pdf = exp_of(logpdf)


def cdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The probability of at most x."""
    x, beta = inexact("gennorm.cdf", x, beta)
    return 0.5 * (1 + lax.sign(x) * gammainc(1 / beta, lax.pow(abs(x), beta)))
