"""The negative binomial distribution."""

from __future__ import annotations

import numpy as np

import minijax.numpy as jnp
from minijax.base.faces import listing
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.primitives.promote import promote_args_inexact
from minijax.run.array import Array, ArrayLike
from minijax.scipy.special.logarithms import xlogy

__all__, __dir__ = listing(__name__, "logpmf pmf")


def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k."""
    k, n, p, loc = promote_args_inexact("nbinom.logpmf", k, n, p, loc)
    one = const_like(k, 1)
    y = lax.sub(k, loc)
    count = lax.sub(lax.sub(lax.lgamma(lax.add(y, n)), lax.lgamma(n)), lax.lgamma(lax.add(y, one)))
    chance = lax.add(xlogy(n, p), xlogy(y, lax.sub(one, p)))
    logarithm = lax.add(count, chance)
    return jnp.where(lax.lt(k, loc), -np.inf, logarithm)


def pmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k."""
    return lax.exp(logpmf(k, n, p, loc))
