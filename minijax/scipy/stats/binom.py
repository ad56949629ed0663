"""The binomial distribution."""

from __future__ import annotations

import minijax.numpy as jnp
from minijax.base.faces import documented
from minijax.primitives import elementwise as lax
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.formulas import exp_of, inexact
from minijax.scipy.special.logarithms import xlog1py, xlogy


def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Computes the logarithm of the probability of `k` under the binomial distribution.

    `n` is the number of trials and `p` the probability of success in each. `loc` shifts it. Arguments broadcast;
    integers become floats.

    Example:
      >>> jax.scipy.stats.binom.logpmf(1, 1, 0.5).round(4)
      Array(-0.6931, dtype=float32, weak_type=True)
    """
    k, n, p, loc = inexact("binom.logpmf", k, n, p, loc)
    y = k - loc
    count = lax.lgamma(n + 1) - (lax.lgamma(y + 1) + lax.lgamma(n - y + 1))
    chance = xlogy(y, p) + xlog1py(n - y, -p)
    logarithm = count + chance
    logarithm = jnp.where((y == 0) & (n == 0) | (chance == 0), 0.0, logarithm)
    return jnp.where((k >= loc) & (k < loc + n + 1), logarithm, -jnp.inf)


pmf = exp_of(logpmf, "0.5")


__all__, __dir__ = documented(__name__, "logpmf pmf")
