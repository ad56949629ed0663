"""The binomial distribution."""

from __future__ import annotations

import numpy as np

import minijax.numpy as jnp
from minijax.base.faces import listing
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.primitives.promote import promote_args_inexact
from minijax.run.array import Array, ArrayLike
from minijax.scipy.special.logarithms import xlog1py, xlogy

__all__, __dir__ = listing(__name__, "logpmf pmf")


def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k."""
    k, n, p, loc = promote_args_inexact("binom.logpmf", k, n, p, loc)
    zero, one = const_like(k, 0), const_like(k, 1)
    y = lax.sub(k, loc)
    whole = lax.lgamma(lax.add(n, one))
    parts = lax.add(lax.lgamma(lax.add(y, one)), lax.lgamma(lax.add(lax.sub(n, y), one)))
    count = lax.sub(whole, parts)
    chance = lax.add(xlogy(y, p), xlog1py(lax.sub(n, y), lax.neg(p)))
    logarithm = lax.add(count, chance)
    none = jnp.logical_and(lax.eq(y, zero), lax.eq(n, zero))
    logarithm = jnp.where(jnp.logical_or(none, lax.eq(chance, zero)), 0.0, logarithm)
    inside = jnp.logical_and(lax.ge(k, loc), lax.lt(k, lax.add(lax.add(loc, n), one)))
    return jnp.where(inside, logarithm, -np.inf)


def pmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k."""
    return lax.exp(logpmf(k, n, p, loc))
