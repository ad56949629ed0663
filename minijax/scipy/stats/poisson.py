"""Poisson's distribution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.base.faces import documented
from minijax.dispatch.jitted import jitted
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.formulas import exp_of, inexact
from minijax.scipy.special.gammas import gammaincc, gammaln
from minijax.scipy.special.logarithms import entr, xlogy


def logpmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Computes the logarithm of the probability of `k` under the Poisson distribution.

    `mu` is its mean. `loc` shifts it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.poisson.logpmf(0, 1.0)
      Array(-1.0000005, dtype=float32, weak_type=True)
    """
    k, mu, loc = inexact("poisson.logpmf", k, mu, loc)
    x = k - loc
    logarithm = xlogy(x, mu) - gammaln(x + 1) - mu
    return jnp.where((x < 0) | (jnp.round(k) != k), -jnp.inf, logarithm)


pmf = exp_of(logpmf, "0.368...")


def cdf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Computes the probability of at most `k` under the Poisson distribution.

    `mu` is its mean. `loc` shifts it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.poisson.cdf(0, 1.0).round(4)
      Array(0.36789998, dtype=float32, weak_type=True)
    """
    k, mu, loc = inexact("poisson.cdf", k, mu, loc)
    x = k - loc
    probability = gammaincc(jnp.floor(1 + x), mu)
    return jnp.where(x < 0, const_like(k, 0), probability)


@jitted()
def entropy(mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Computes the entropy of the Poisson distribution in nats.

    `mu` is its mean. It is a sum up to mu = 100, and an asymptotic series beyond. `loc` shifts it. Arguments broadcast;
    integers become floats.

    Example:
      >>> jax.scipy.stats.poisson.entropy(1.0).round(3)
      Array(1.3050001, dtype=float32)
    """
    mu, loc = inexact("poisson.entropy", mu, loc)
    shape = jnp.broadcast_shapes(jnp.shape(mu), jnp.shape(loc))
    mu = jnp.ravel(jnp.broadcast_to(mu, shape))
    none = jnp.zeros_like(mu)
    is_none, is_small = mu == 0, mu < 10
    small = _summed(mu, 35, lambda mu: mu + 20)
    is_middle = mu < 100
    middle = _summed(mu, 250, lambda mu: mu + 10 * lax.sqrt(mu) + 20)
    result = jnp.where(is_small, small, jnp.where(is_middle, middle, _asymptotic(mu)))
    return jnp.where(is_none, none, result).reshape(shape)


def _summed(mu: Any, count: int, limit: Callable) -> Any:
    k = jnp.arange(count, dtype=mu.dtype)[:, None]
    chances = pmf(k, mu[None], jnp.zeros((1, 1), mu.dtype))
    return jnp.sum(entr(jnp.where(k < jnp.ceil(limit(mu))[None], chances, 0.0)), axis=0)


def _asymptotic(mu: Any) -> Any:
    return 0.5 * lax.log(2 * np.pi * np.e * mu) - 1 / (12 * mu)


__all__, __dir__ = documented(__name__, "cdf entropy logpmf pmf")
