"""The negative binomial distribution."""

from __future__ import annotations

import minijax.numpy as jnp
from minijax.base.faces import listing
from minijax.primitives import elementwise as lax
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.formulas import exp_of, strong
from minijax.scipy.special.logarithms import xlogy

__all__, __dir__ = listing(__name__, "logpmf pmf")


def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k."""
    k, n, p, loc = strong("nbinom.logpmf", k, n, p, loc)
    y = k - loc
    count = lax.lgamma(y + n) - lax.lgamma(n) - lax.lgamma(y + 1)
    logarithm = count + (xlogy(n, p) + xlogy(y, 1 - p))
    return jnp.where(k < loc, -jnp.inf, logarithm)


pmf = exp_of(logpmf)
