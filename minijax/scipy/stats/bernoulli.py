"""Bernoulli's distribution."""

from __future__ import annotations

import numpy as np

import minijax.numpy as jnp
from minijax.base.faces import listing
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.primitives.promote import promote_args_inexact
from minijax.run.array import Array, ArrayLike
from minijax.scipy.special.logarithms import xlog1py, xlogy

__all__, __dir__ = listing(__name__, "cdf logpmf pmf ppf")


def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k."""
    k, p, loc = promote_args_inexact("bernoulli.logpmf", k, p, loc)
    zero, one = const_like(k, 0), const_like(k, 1)
    x = lax.sub(k, loc)
    logarithm = lax.add(xlogy(x, p), xlog1py(lax.sub(one, x), lax.neg(p)))
    return jnp.where(jnp.logical_or(lax.lt(x, zero), lax.gt(x, one)), -np.inf, logarithm)


def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k."""
    return lax.exp(logpmf(k, p, loc))


def cdf(k: ArrayLike, p: ArrayLike) -> Array:
    """The probability of at most k."""
    k, p = promote_args_inexact("bernoulli.cdf", k, p)
    zero, one = const_like(k, 0), const_like(k, 1)
    wrong = jnp.logical_or(jnp.logical_or(jnp.isnan(k), jnp.isnan(p)), lax.lt(p, zero))
    wrong = jnp.logical_or(wrong, lax.gt(p, one))
    below, middle, above = lax.lt(k, zero), jnp.logical_and(lax.ge(k, zero), lax.lt(k, one)), lax.ge(k, one)
    return jnp.select([wrong, below, middle, above], [np.nan, zero, lax.sub(one, p), one])


def ppf(q: ArrayLike, p: ArrayLike) -> Array:
    """The inverse of `cdf`."""
    q, p = promote_args_inexact("bernoulli.ppf", q, p)
    zero, one = const_like(q, 0), const_like(q, 1)
    wrong = jnp.logical_or(jnp.logical_or(jnp.isnan(q), jnp.isnan(p)), lax.lt(p, zero))
    wrong = jnp.logical_or(wrong, lax.gt(p, one))
    wrong = jnp.logical_or(jnp.logical_or(wrong, lax.lt(q, zero)), lax.gt(q, one))
    return jnp.where(wrong, np.nan, jnp.where(lax.le(q, lax.sub(one, p)), zero, one))
