"""The geometric distribution."""

from __future__ import annotations

import numpy as np

import minijax.numpy as jnp
from minijax.base.faces import listing
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.primitives.promote import promote_args_inexact
from minijax.run.array import Array, ArrayLike
from minijax.scipy.special.logarithms import xlog1py

__all__, __dir__ = listing(__name__, "logpmf pmf")


def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k."""
    k, p, loc = promote_args_inexact("geom.logpmf", k, p, loc)
    x = lax.sub(k, loc)
    logarithm = lax.add(xlog1py(lax.sub(x, const_like(k, 1)), lax.neg(p)), lax.log(p))
    return jnp.where(lax.le(x, const_like(k, 0)), -np.inf, logarithm)


def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k."""
    return lax.exp(logpmf(k, p, loc))
