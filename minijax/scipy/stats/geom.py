"""The geometric distribution."""

from __future__ import annotations

import minijax.numpy as jnp
from minijax.base.documentation import document_module
from minijax.base.faces import listing
from minijax.primitives import elementwise as lax
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.formulas import exp_of, inexact
from minijax.scipy.special.logarithms import xlog1py

__all__, __dir__ = listing(__name__, "logpmf pmf")


def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Computes the logarithm of the probability of `k` under the geometric distribution.

    `k` is the number of trials up to the first success, from 1 on, and `p` the probability of success in each. `loc`
    shifts it. Arguments broadcast; integers become floats.
    """
    k, p, loc = inexact("geom.logpmf", k, p, loc)
    x = k - loc
    logarithm = xlog1py(x - 1, -p) + lax.log(p)
    return jnp.where(x <= 0, -jnp.inf, logarithm)


pmf = exp_of(logpmf)


document_module(__name__)
