"""Cauchy's distribution."""

from __future__ import annotations

from math import pi

from minijax.base.faces import documented
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.formulas import exp_of, inexact, log_of


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the logarithm of the density of the Cauchy distribution.

    `loc` shifts and `scale` stretches it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.cauchy.logpdf(0.0).round(4)
      Array(-1.1446999, dtype=float32, weak_type=True)
    """
    x, loc, scale = inexact("cauchy.logpdf", x, loc, scale)
    scaled = lax.div(lax.sub(x, loc), scale)
    return lax.neg(lax.add(lax.log(lax.mul(const_like(x, pi), scale)), lax.log1p(lax.mul(scaled, scaled))))


pdf = exp_of(logpdf, "0.318...")


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the probability of at most `x` under the Cauchy distribution.

    `loc` shifts and `scale` stretches it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.cauchy.cdf(0.0)
      Array(0.5, dtype=float32, weak_type=True)
    """
    x, loc, scale = inexact("cauchy.cdf", x, loc, scale)
    scaled = lax.div(lax.sub(x, loc), scale)
    turns = lax.mul(lax.div(const_like(x, 1), const_like(x, pi)), lax.atan(scaled))
    return lax.add(const_like(x, 0.5), turns)


logcdf = log_of(cdf, "-0.693")


def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the probability of more than `x` under the Cauchy distribution.

    `loc` shifts and `scale` stretches it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.cauchy.sf(0.0)
      Array(0.5, dtype=float32, weak_type=True)
    """
    x, loc, scale = inexact("cauchy.sf", x, loc, scale)
    return cdf(-x, -loc, scale)


def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the logarithm of the probability of more than `x` under the Cauchy distribution.

    `loc` shifts and `scale` stretches it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.cauchy.logsf(0.0).round(4)
      Array(-0.6931, dtype=float32, weak_type=True)
    """
    x, loc, scale = inexact("cauchy.logsf", x, loc, scale)
    return logcdf(-x, -loc, scale)


def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the value that the Cauchy distribution exceeds with a given probability, the inverse of `sf`.

    `loc` shifts and `scale` stretches it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.cauchy.isf(0.5)
      Array(0., dtype=float32, weak_type=True)
    """
    q, loc, scale = inexact("cauchy.isf", q, loc, scale)
    angle = lax.sub(const_like(q, pi / 2), lax.mul(const_like(q, pi), q))
    return lax.add(lax.mul(lax.tan(angle), scale), loc)


def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the quantile of the Cauchy distribution at a probability, the inverse of `cdf`.

    `loc` shifts and `scale` stretches it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.cauchy.ppf(0.5)
      Array(0., dtype=float32, weak_type=True)
    """
    q, loc, scale = inexact("cauchy.ppf", q, loc, scale)
    angle = lax.sub(lax.mul(const_like(q, pi), q), const_like(q, pi / 2))
    return lax.add(lax.mul(lax.tan(angle), scale), loc)


__all__, __dir__ = documented(__name__, "cdf isf logcdf logpdf logsf pdf ppf sf")
