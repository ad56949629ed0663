"""The negative binomial distribution."""

from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.base.faces import listing
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.primitives.promote import promote_args_inexact
from minijax.scipy.special.logarithms import xlogy

__all__, __dir__ = listing(__name__, "logpmf pmf")


def logpmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Any:
    """The logarithm of the probability of k."""
    k, n, p, loc = promote_args_inexact("nbinom.logpmf", k, n, p, loc)
    one = const_like(k, 1)
    y = lax.sub(k, loc)
    count = lax.sub(lax.sub(lax.lgamma(lax.add(y, n)), lax.lgamma(n)), lax.lgamma(lax.add(y, one)))
    chance = lax.add(xlogy(n, p), xlogy(y, lax.sub(one, p)))
    logarithm = lax.add(count, chance)
    return jnp.where(lax.lt(k, loc), -np.inf, logarithm)


def pmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Any:
    """The probability of k."""
    return lax.exp(logpmf(k, n, p, loc))
