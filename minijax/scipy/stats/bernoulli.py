"""Bernoulli's distribution."""

from __future__ import annotations

import minijax.numpy as jnp
from minijax.base.faces import documented
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.formulas import exp_of, inexact
from minijax.scipy.special.logarithms import xlog1py, xlogy


def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Computes the logarithm of the probability of `k` under the Bernoulli distribution.

    `p` is the probability of 1. `loc` shifts it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.bernoulli.logpmf(1, 1.0)
      Array(0., dtype=float32, weak_type=True)
    """
    k, p, loc = inexact("bernoulli.logpmf", k, p, loc)
    x = lax.sub(k, loc)
    logarithm = xlogy(x, p) + xlog1py(lax.sub(const_like(k, 1), x), lax.neg(p))
    return jnp.where(lax.lt(x, const_like(x, 0)) | (x > 1), -jnp.inf, logarithm)


pmf = exp_of(logpmf, "1.0")


def cdf(k: ArrayLike, p: ArrayLike) -> Array:
    """Computes the probability of at most `k` under the Bernoulli distribution.

    `p` is the probability of 1. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.bernoulli.cdf(0, 0.25)
      Array(0.75, dtype=float32, weak_type=True)
    """
    k, p = inexact("bernoulli.cdf", k, p)
    is_invalid = jnp.isnan(k) | jnp.isnan(p) | lax.lt(p, const_like(p, 0)) | (p > 1)
    zero, one = const_like(k, 0), const_like(k, 1)
    below, middle, above = k < 0, (k >= 0) & (k < 1), k >= 1
    return jnp.select([is_invalid, below, middle, above], [jnp.nan, zero, 1 - p, one])


def ppf(q: ArrayLike, p: ArrayLike) -> Array:
    """Computes the quantile of the Bernoulli distribution at a probability, the inverse of `cdf`.

    `p` is the probability of 1. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.bernoulli.ppf(0.5, 0.75)
      Array(1., dtype=float32, weak_type=True)
    """
    q, p = inexact("bernoulli.ppf", q, p)
    is_invalid = jnp.isnan(q) | jnp.isnan(p) | lax.lt(p, const_like(p, 0)) | (p > 1) | (q < 0) | (q > 1)
    zero, one = const_like(q, 0), const_like(q, 1)
    return jnp.where(is_invalid, jnp.nan, jnp.where(q <= 1 - p, zero, one))


__all__, __dir__ = documented(__name__, "cdf logpmf pmf ppf")
