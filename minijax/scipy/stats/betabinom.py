"""The beta-binomial distribution."""

from __future__ import annotations

import minijax.numpy as jnp
from minijax.base.faces import documented
from minijax.dispatch.jitted import jitted
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.formulas import inexact
from minijax.scipy.special.gammas import betaln


@jitted()
def logpmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Computes the logarithm of the probability of `k` under the beta-binomial distribution.

    `n` is the number of trials, whose probability of success has a beta distribution of shapes `a` and `b`. `loc`
    shifts it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.betabinom.logpmf(0, 1, 1.0, 1.0).round(4)
      Array(-0.6931, dtype=float32, weak_type=True)
    """
    k, n, a, b, loc = inexact("betabinom.logpmf", k, n, a, b, loc)
    y = lax.sub(lax.floor(k), loc)
    one = const_like(y, 1)
    count = lax.neg(lax.add(lax.log1p(n), betaln(lax.add(lax.sub(n, y), one), lax.add(y, one))))
    logarithm = lax.add(count, lax.sub(betaln(lax.add(y, a), lax.add(lax.sub(n, y), b)), betaln(a, b)))
    logarithm = jnp.where((y == 0) & (n == 0), 0.0, logarithm)
    logarithm = jnp.where((y < -loc) | (y > n) | (y + a <= 0), -jnp.inf, logarithm)
    return jnp.where((n < 0) | (a <= 0) | (b <= 0), jnp.nan, logarithm)


def pmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Computes the probability of `k` under the beta-binomial distribution.

    `n` is the number of trials, whose probability of success has a beta distribution of shapes `a` and `b`. `loc`
    shifts it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.betabinom.pmf(jnp.arange(3), 2, 1.0, 1.0)
      Array([0.333..., 0.333..., 0.333...], dtype=float32)
    """
    return lax.exp(logpmf(k, n, a, b, loc))


__all__, __dir__ = documented(__name__, "logpmf pmf")
