"""The negative binomial distribution."""

from __future__ import annotations

import minijax.numpy as jnp
from minijax.base.faces import documented
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.formulas import exp_of, inexact
from minijax.scipy.special.logarithms import xlogy


def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Computes the logarithm of the probability of `k` under the negative binomial distribution.

    `k` is the number of failures before `n` successes, and `p` the probability of success in each trial. `loc` shifts
    it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.nbinom.logpmf(0, 1, 0.5).round(4)
      Array(-0.6931, dtype=float32, weak_type=True)
    """
    k, n, p, loc = inexact("nbinom.logpmf", k, n, p, loc)
    y, one = lax.sub(k, loc), const_like(k, 1)
    count = lax.sub(lax.sub(lax.lgamma(lax.add(y, n)), lax.lgamma(n)), lax.lgamma(lax.add(y, one)))
    logarithm = lax.add(count, lax.add(xlogy(n, p), xlogy(y, lax.sub(one, p))))
    return jnp.where(lax.lt(k, loc), -jnp.inf, logarithm)


pmf = exp_of(logpmf, "0.5")


__all__, __dir__ = documented(__name__, "logpmf pmf")
