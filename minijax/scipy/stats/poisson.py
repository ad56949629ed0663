"""Poisson's distribution."""

from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.primitives.promote import promote_args_inexact
from minijax.scipy.special.gammas import gammaincc, gammaln
from minijax.scipy.special.logarithms import xlogy


def logpmf(k: Any, mu: Any, loc: Any = 0) -> Any:
    """The logarithm of the probability of k."""
    k, mu, loc = promote_args_inexact("poisson.logpmf", k, mu, loc)
    zero = const_like(k, 0)
    x = lax.sub(k, loc)
    logarithm = lax.sub(lax.sub(xlogy(x, mu), gammaln(lax.add(x, const_like(k, 1)))), mu)
    outside = jnp.logical_or(lax.lt(x, zero), lax.ne(jnp.round(k), k))
    return jnp.where(outside, -np.inf, logarithm)


def pmf(k: Any, mu: Any, loc: Any = 0) -> Any:
    """The probability of k."""
    return lax.exp(logpmf(k, mu, loc))


def cdf(k: Any, mu: Any, loc: Any = 0) -> Any:
    """The probability of at most k."""
    k, mu, loc = promote_args_inexact("poisson.cdf", k, mu, loc)
    x = lax.sub(k, loc)
    probability = gammaincc(jnp.floor(lax.add(const_like(k, 1), x)), mu)
    return jnp.where(lax.lt(x, const_like(k, 0)), const_like(k, 0), probability)
