"""The geometric distribution."""

from __future__ import annotations

import minijax.numpy as jnp
from minijax.base.faces import documented
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.formulas import exp_of, inexact
from minijax.scipy.special.logarithms import xlog1py


def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Computes the logarithm of the probability of `k` under the geometric distribution.

    `k` is the number of trials up to the first success, from 1 on, and `p` the probability of success in each. `loc`
    shifts it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.geom.logpmf(1, 0.5).round(4)
      Array(-0.6931, dtype=float32, weak_type=True)
    """
    k, p, loc = inexact("geom.logpmf", k, p, loc)
    x = lax.sub(k, loc)
    logarithm = xlog1py(lax.sub(x, const_like(k, 1)), lax.neg(p)) + lax.log(p)
    return jnp.where(lax.le(x, const_like(x, 0)), -jnp.inf, logarithm)


pmf = exp_of(logpmf, "0.5")


__all__, __dir__ = documented(__name__, "logpmf pmf")
