"""The exponential distribution."""

from __future__ import annotations

import minijax.numpy as jnp
from minijax.base.faces import documented
from minijax.primitives import elementwise as lax
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.formulas import exp_of, inexact


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the logarithm of the density of the exponential distribution.

    Its rate is 1 / `scale`. `loc` shifts and `scale` stretches it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.expon.logpdf(1.0)
      Array(-1., dtype=float32, weak_type=True)
    """
    x, loc, scale = inexact("expon.logpdf", x, loc, scale)
    log_scale = lax.log(scale)
    logarithm = -((x - loc) / scale + log_scale)
    return jnp.where(x < loc, -jnp.inf, logarithm)


pdf = exp_of(logpdf, "0.368...")


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the probability of at most `x` under the exponential distribution.

    Its rate is 1 / `scale`. `loc` shifts and `scale` stretches it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.expon.cdf(1.0).round(4)
      Array(0.6321, dtype=float32, weak_type=True)
    """
    x, loc, scale = inexact("expon.cdf", x, loc, scale)
    scaled = (loc - x) / scale
    return jnp.where(x < loc, jnp.zeros_like(scaled), -lax.expm1(scaled))


def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the logarithm of the probability of at most `x` under the exponential distribution.

    Its rate is 1 / `scale`. `loc` shifts and `scale` stretches it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.expon.logcdf(1.0).round(4)
      Array(-0.4587, dtype=float32, weak_type=True)
    """
    return lax.log1p(-sf(x, loc, scale))


def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the logarithm of the probability of more than `x` under the exponential distribution.

    Its rate is 1 / `scale`. `loc` shifts and `scale` stretches it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.expon.logsf(1.0)
      Array(-1., dtype=float32, weak_type=True)
    """
    x, loc, scale = inexact("expon.logsf", x, loc, scale)
    scaled = (loc - x) / scale
    return jnp.where(x < loc, jnp.zeros_like(scaled), scaled)


sf = exp_of(logsf, "0.368...")


def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the quantile of the exponential distribution at a probability, the inverse of `cdf`.

    Its rate is 1 / `scale`. `loc` shifts and `scale` stretches it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.expon.ppf(0.0)
      Array(0., dtype=float32, weak_type=True)
    """
    q, loc, scale = inexact("expon.ppf", q, loc, scale)
    is_invalid = jnp.isnan(q) | (q < 0) | (q > 1)
    return jnp.where(is_invalid, jnp.nan, loc - scale * lax.log1p(-q))


__all__, __dir__ = documented(__name__, "cdf logcdf logpdf logsf pdf ppf sf")
