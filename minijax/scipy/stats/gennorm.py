"""The generalized normal distribution."""

from __future__ import annotations

from minijax.base.faces import documented
from minijax.primitives import elementwise as lax
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.formulas import exp_of, inexact
from minijax.scipy.special.gammas import gammainc


def logpdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """Computes the logarithm of the density of the generalized normal distribution.

    `beta` is its shape: 1 for the Laplace and 2 for the normal distribution. Arguments broadcast; integers become
    floats.

    Example:
      >>> jax.scipy.stats.gennorm.logpdf(0.0, 1.0).round(4)
      Array(-0.6931, dtype=float32, weak_type=True)
    """
    x, beta = inexact("gennorm.logpdf", x, beta)
    return lax.log(0.5 * beta) - lax.lgamma(1 / beta) - lax.pow(abs(x), beta)


pdf = exp_of(logpdf, "0.5")


def cdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """Computes the probability of at most `x` under the generalized normal distribution.

    `beta` is its shape: 1 for the Laplace and 2 for the normal distribution. Arguments broadcast; integers become
    floats.

    Example:
      >>> jax.scipy.stats.gennorm.cdf(0.0, 1.0)
      Array(0.5, dtype=float32, weak_type=True)
    """
    x, beta = inexact("gennorm.cdf", x, beta)
    return 0.5 * (1 + lax.sign(x) * gammainc(1 / beta, lax.pow(abs(x), beta)))


__all__, __dir__ = documented(__name__, "cdf logpdf pdf")
