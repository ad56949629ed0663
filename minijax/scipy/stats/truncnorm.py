"""The normal distribution truncated at `a` and `b` standard deviations."""

from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.base.faces import documented
from minijax.dispatch.jitted import jitted
from minijax.numpy.custom_rules import logsumexp
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.primitives.promote import promote_args_inexact
from minijax.scipy.formulas import inexact
from minijax.scipy.special.errors import log_ndtr, ndtr
from minijax.scipy.stats import norm


def _log_mass(a: Any, b: Any) -> Any:
    """The logarithm of the normal probability between a and b."""
    a, b = jnp.array(a), jnp.array(b)
    left, right = b <= 0, a > 0
    central = ~(left | right)
    # Intervals in the right tail are mirrored to the left one, where the logarithms are more exact.
    low, high = jnp.where(right, -b, a), jnp.where(right, -a, b)
    high, low = log_ndtr(high), log_ndtr(low)
    in_tail = logsumexp(_paired(high, low), axis=0, b=_paired(jnp.ones_like(high), -jnp.ones_like(high)))
    in_middle = lax.log1p(-ndtr(a) - ndtr(-b))
    return jnp.where(central, in_middle, in_tail)


def _paired(x: Any, y: Any) -> Any:
    return jnp.concatenate([jnp.expand_dims(x, 0), jnp.expand_dims(y, 0)], 0)


@jitted()
def logpdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Computes the logarithm of the density of the truncated normal distribution.

    It is cut off at `a` and `b` standard deviations from `loc`. NaN unless a < b. `loc` shifts and `scale` stretches
    it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.truncnorm.logpdf(2.0, -1.0, 1.0)
      Array(-inf, dtype=float32)
    """
    x, a, b, loc, scale = inexact("truncnorm.logpdf", x, a, b, loc, scale)
    logarithm = lax.sub(norm.logpdf(x, loc, scale), _log_mass(a, b))
    scaled = (x - loc) / scale
    logarithm = jnp.where(lax.lt(scaled, a) | (scaled > b), -np.inf, logarithm)
    return jnp.where(a >= b, np.nan, logarithm)


def pdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Computes the density of the truncated normal distribution.

    It is cut off at `a` and `b` standard deviations from `loc`. NaN unless a < b. `loc` shifts and `scale` stretches
    it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.truncnorm.pdf(2.0, -1.0, 1.0)
      Array(0., dtype=float32)
    """
    return lax.exp(logpdf(x, a, b, loc, scale))


@jitted()
def logcdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Computes the logarithm of the probability of at most `x` under the truncated normal distribution.

    It is cut off at `a` and `b` standard deviations from `loc`. NaN unless a < b. `loc` shifts and `scale` stretches
    it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.truncnorm.logcdf(1.0, -1.0, 1.0)
      Array(0., dtype=float32)
    """
    x, a, b, loc, scale = inexact("truncnorm.logcdf", x, a, b, loc, scale)
    x, a, b = jnp.broadcast_arrays(x, a, b)
    x = (x - loc) / scale
    whole = _log_mass(a, b)
    below = _log_mass(a, x) - whole
    above = _log_mass(x, b) - whole
    # Near 1 the logarithm of the complement is more exact.
    conditions = [x >= b, x <= a, below > -0.1, x > a]
    values = [const_like(x, 0), const_like(x, -np.inf), lax.log1p(-lax.exp(above)), below]
    logarithm = jnp.select(conditions, values)
    return jnp.where(a >= b, np.nan, logarithm)


@jitted()
def logsf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Computes the logarithm of the probability of more than `x` under the truncated normal distribution.

    It is cut off at `a` and `b` standard deviations from `loc`. NaN unless a < b. `loc` shifts and `scale` stretches
    it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.truncnorm.logsf(-1.0, -1.0, 1.0)
      Array(0., dtype=float32)
    """
    x, a, b, loc, scale = promote_args_inexact("truncnorm.logsf", x, a, b, loc, scale)
    return logcdf(-x, -b, -a, -loc, scale)


@jitted()
def cdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Computes the probability of at most `x` under the truncated normal distribution.

    It is cut off at `a` and `b` standard deviations from `loc`. NaN unless a < b. `loc` shifts and `scale` stretches
    it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.truncnorm.cdf(0.0, -1.0, 1.0).round(4)
      Array(0.5, dtype=float32)
    """
    return lax.exp(logcdf(x, a, b, loc, scale))


@jitted()
def sf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Computes the probability of more than `x` under the truncated normal distribution.

    It is cut off at `a` and `b` standard deviations from `loc`. NaN unless a < b. `loc` shifts and `scale` stretches
    it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.truncnorm.sf(0.0, -1.0, 1.0).round(4)
      Array(0.5, dtype=float32)
    """
    return lax.exp(logsf(x, a, b, loc, scale))


__all__, __dir__ = documented(__name__, "cdf logcdf logpdf logsf pdf sf")
