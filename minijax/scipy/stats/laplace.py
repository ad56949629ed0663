"""Laplace's distribution."""

from __future__ import annotations

from minijax.base.faces import documented
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.formulas import exp_of, inexact


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the logarithm of the density of the Laplace distribution.

    `loc` shifts and `scale` stretches it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.laplace.logpdf(0.0).round(4)
      Array(-0.6931, dtype=float32, weak_type=True)
    """
    x, loc, scale = inexact("laplace.logpdf", x, loc, scale)
    scaled = lax.div(lax.abs(lax.sub(x, loc)), scale)
    return lax.neg(lax.add(scaled, lax.log(lax.mul(const_like(x, 2), scale))))


pdf = exp_of(logpdf, "0.5")


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the probability of at most `x` under the Laplace distribution.

    `loc` shifts and `scale` stretches it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.laplace.cdf(0.0)
      Array(0.5, dtype=float32, weak_type=True)
    """
    x, loc, scale = inexact("laplace.cdf", x, loc, scale)
    scaled, half = lax.div(lax.sub(x, loc), scale), const_like(x, 0.5)
    is_below, below = lax.le(scaled, const_like(x, 0)), lax.mul(half, lax.exp(scaled))
    return lax.select(is_below, below, lax.sub(const_like(x, 1), lax.mul(half, lax.exp(lax.neg(scaled)))))


__all__, __dir__ = documented(__name__, "cdf logpdf pdf")
