"""The normal distribution."""

from __future__ import annotations

from math import pi

import minijax.numpy as jnp
from minijax.base.faces import documented
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.formulas import exp_of, inexact
from minijax.scipy.special.errors import log_ndtr, ndtr, ndtri


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the logarithm of the density of the normal distribution.

    `loc` is its mean and `scale` its standard deviation. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.norm.logpdf(jnp.array([0.0, 1.0])).round(3)
      Array([-0.919, -1.419], dtype=float32)
    """
    x, loc, scale = inexact("norm.logpdf", x, loc, scale)
    square = lax.square(scale)
    norm, kernel = lax.log(lax.mul(const_like(x, 2 * pi), square)), lax.div(lax.square(lax.sub(x, loc)), square)
    return lax.div(lax.add(norm, kernel), const_like(x, -2))


pdf = exp_of(logpdf, "[0.399... 0.242...]")


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the probability of at most `x` under the normal distribution.

    `loc` is its mean and `scale` its standard deviation. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.norm.cdf(0.0)
      Array(0.5, dtype=float32)
    """
    x, loc, scale = inexact("norm.cdf", x, loc, scale)
    return ndtr((x - loc) / scale)


def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the logarithm of the probability of at most `x` under the normal distribution.

    `loc` is its mean and `scale` its standard deviation. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.norm.logcdf(0.0).round(4)
      Array(-0.6931, dtype=float32)
    """
    x, loc, scale = inexact("norm.logcdf", x, loc, scale)
    return log_ndtr((x - loc) / scale)


def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the quantile of the normal distribution at a probability, the inverse of `cdf`.

    `loc` is its mean and `scale` its standard deviation. The result has the default floating dtype. Arguments
    broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.norm.ppf(jnp.array([0.5, 0.975])).round(2)
      Array([0.       , 1.9599999], dtype=float32)
    """
    # jax's result has the default floating dtype, whatever that of q.
    return jnp.asarray(ndtri(q) * scale + loc, float)


def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the probability of more than `x` under the normal distribution.

    `loc` is its mean and `scale` its standard deviation. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.norm.sf(0.0)
      Array(0.5, dtype=float32)
    """
    x, loc, scale = inexact("norm.sf", x, loc, scale)
    return cdf(-x, -loc, scale)


def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the logarithm of the probability of more than `x` under the normal distribution.

    `loc` is its mean and `scale` its standard deviation. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.norm.logsf(0.0).round(4)
      Array(-0.6931, dtype=float32)
    """
    x, loc, scale = inexact("norm.logsf", x, loc, scale)
    return logcdf(-x, -loc, scale)


def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the value that the normal distribution exceeds with a given probability, the inverse of `sf`.

    `loc` is its mean and `scale` its standard deviation. The result has the default floating dtype. Arguments
    broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.norm.isf(0.5)
      Array(0., dtype=float32)
    """
    return ppf(1 - q, loc, scale)


__all__, __dir__ = documented(__name__, "cdf isf logcdf logpdf logsf pdf ppf sf")
