"""Laplace's distribution."""

from __future__ import annotations

from minijax.base.documentation import document_module
from minijax.base.faces import listing
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.formulas import exp_of, inexact

__all__, __dir__ = listing(__name__, "cdf logpdf pdf")


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the logarithm of the density of the Laplace distribution.

    `loc` shifts and `scale` stretches it. Arguments broadcast; integers become floats.
    """
    x, loc, scale = inexact("laplace.logpdf", x, loc, scale)
    scaled = lax.abs(x - loc) / scale
    return -(scaled + lax.log(2 * scale))


pdf = exp_of(logpdf)


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the probability of at most `x` under the Laplace distribution.

    `loc` shifts and `scale` stretches it. Arguments broadcast; integers become floats.
    """
    x, loc, scale = inexact("laplace.cdf", x, loc, scale)
    scaled, half = (x - loc) / scale, const_like(x, 0.5)
    is_below, below = scaled <= 0, half * lax.exp(scaled)
    return lax.select(is_below, below, 1 - half * lax.exp(-scaled))


document_module(__name__)
