"""The multinomial distribution."""

from __future__ import annotations

import numpy as np

import minijax.numpy as jnp
from minijax.base.faces import documented
from minijax.ir.types import typeof, unwrapped
from minijax.primitives import elementwise as lax
from minijax.primitives.promote import promote_args_inexact, promote_dtypes_numeric
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.special.gammas import gammaln
from minijax.scipy.special.logarithms import xlogy


def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """Computes the logarithm of the probability of counts under the multinomial distribution.

    Counts `x` are along the last axis, out of `n`, and `p` are their probabilities. Raises ValueError unless `x` and
    `n` are integers.

    Example:
      >>> jax.scipy.stats.multinomial.logpmf(jnp.array([1, 0]), 1, jnp.array([0.5, 0.5])).round(4)
      Array(-0.6931, dtype=float32)
    """
    (p,) = promote_args_inexact("multinomial.logpmf", p)
    x, n = promote_dtypes_numeric(unwrapped(x), n)
    kinds = typeof(x).dtype, typeof(n).dtype
    if not all(jnp.issubdtype(kind, np.integer) for kind in kinds):
        raise ValueError(f"x and n must be of integer type; got x.dtype={kinds[0]}, n.dtype={kinds[1]}")
    x, n = (jnp.asarray(value).astype(typeof(p).dtype) for value in (x, n))
    logarithm = gammaln(n + 1) + jnp.sum(xlogy(x, p) - gammaln(x + 1), axis=-1)
    return jnp.where(jnp.equal(jnp.sum(x), n), logarithm, -np.inf)


def pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """Computes the probability of counts under the multinomial distribution.

    The arguments are those of `logpmf`.

    Example:
      >>> jax.scipy.stats.multinomial.pmf(jnp.array([1, 1]), 2, jnp.array([0.5, 0.5])).round(3)
      Array(0.5, dtype=float32)
    """
    return lax.exp(logpmf(x, n, p))


__all__, __dir__ = documented(__name__, "logpmf pmf")
