"""The beta-binomial distribution."""

from __future__ import annotations

import numpy as np

import minijax.numpy as jnp
from minijax.base.faces import listing
from minijax.dispatch.jitted import jitted
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.primitives.promote import promote_args_inexact
from minijax.run.array import Array, ArrayLike
from minijax.scipy.special.gammas import betaln

__all__, __dir__ = listing(__name__, "logpmf pmf")


@jitted()
def logpmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k."""
    k, n, a, b, loc = promote_args_inexact("betabinom.logpmf", k, n, a, b, loc)
    zero, one = const_like(k, 0), const_like(k, 1)
    y = lax.sub(lax.floor(k), loc)
    count = lax.neg(lax.add(lax.log1p(n), betaln(lax.add(lax.sub(n, y), one), lax.add(y, one))))
    chance = lax.sub(betaln(lax.add(y, a), lax.add(lax.sub(n, y), b)), betaln(a, b))
    logarithm = lax.add(count, chance)
    none = jnp.logical_and(lax.eq(y, zero), lax.eq(n, zero))
    logarithm = jnp.where(none, 0.0, logarithm)
    outside = jnp.logical_or(lax.lt(y, lax.neg(loc)), lax.gt(y, n))
    outside = jnp.logical_or(outside, lax.le(lax.add(y, a), zero))
    logarithm = jnp.where(outside, -np.inf, logarithm)
    wrong = jnp.logical_or(jnp.logical_or(lax.lt(n, zero), lax.le(a, zero)), lax.le(b, zero))
    return jnp.where(wrong, np.nan, logarithm)


def pmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k."""
    return lax.exp(logpmf(k, n, a, b, loc))
