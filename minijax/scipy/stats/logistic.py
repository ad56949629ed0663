"""The logistic distribution."""

from __future__ import annotations

import minijax.numpy as jnp
from minijax.base.faces import documented
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.formulas import exp_of, inexact
from minijax.scipy.special.logarithms import logit


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the logarithm of the density of the logistic distribution.

    `loc` shifts and `scale` stretches it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.logistic.logpdf(0.0).round(4)
      Array(-1.3863, dtype=float32, weak_type=True)
    """
    x, loc, scale = inexact("logistic.logpdf", x, loc, scale)
    scaled = lax.div(lax.sub(x, loc), scale)
    two = const_like(scaled, 2)
    half = lax.div(scaled, two)
    return lax.sub(lax.mul(lax.neg(two), jnp.logaddexp(half, lax.neg(half))), lax.log(scale))


pdf = exp_of(logpdf, "0.25")


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the probability of at most `x` under the logistic distribution.

    `loc` shifts and `scale` stretches it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.logistic.cdf(0.0)
      Array(0.5, dtype=float32, weak_type=True)
    """
    x, loc, scale = inexact("logistic.cdf", x, loc, scale)
    return lax.logistic((x - loc) / scale)


def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the probability of more than `x` under the logistic distribution.

    `loc` shifts and `scale` stretches it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.logistic.sf(0.0)
      Array(0.5, dtype=float32, weak_type=True)
    """
    x, loc, scale = inexact("logistic.sf", x, loc, scale)
    return lax.logistic(-((x - loc) / scale))


def ppf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the quantile of the logistic distribution at a probability, the inverse of `cdf`.

    `loc` shifts and `scale` stretches it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.logistic.ppf(0.5)
      Array(0., dtype=float32, weak_type=True)
    """
    x, loc, scale = inexact("logistic.ppf", x, loc, scale)
    return lax.add(lax.mul(logit(x), scale), loc)


def isf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the value that the logistic distribution exceeds with a given probability, the inverse of `sf`.

    `loc` shifts and `scale` stretches it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.logistic.isf(0.5)
      Array(0., dtype=float32, weak_type=True)
    """
    x, loc, scale = inexact("logistic.isf", x, loc, scale)
    return lax.add(lax.mul(lax.neg(logit(x)), scale), loc)


__all__, __dir__ = documented(__name__, "cdf isf logpdf pdf ppf sf")
