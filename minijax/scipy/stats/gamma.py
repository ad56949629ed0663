"""The gamma distribution."""

from __future__ import annotations

import minijax.numpy as jnp
from minijax.base.faces import documented
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.formulas import exp_of, inexact, log_of
from minijax.scipy.special.gammas import gammainc, gammaincc, gammaln
from minijax.scipy.special.logarithms import xlogy


def logpdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the logarithm of the density of the gamma distribution.

    `a` is its shape. `loc` shifts and `scale` stretches it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.gamma.logpdf(1.0, 1.0)
      Array(-1.0000005, dtype=float32, weak_type=True)
    """
    x, a, loc, scale = inexact("gamma.logpdf", x, a, loc, scale)
    is_inside = lax.ge(x, loc)
    one = const_like(x, 1)
    y = jnp.where(is_inside, lax.div(lax.sub(x, loc), scale), one)
    kernel = lax.sub(xlogy(lax.sub(a, one), y), y)
    return jnp.where(is_inside, lax.sub(kernel, lax.add(gammaln(a), lax.log(scale))), -jnp.inf)


pdf = exp_of(logpdf, "0.368...")


def cdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the probability of at most `x` under the gamma distribution.

    `a` is its shape. `loc` shifts and `scale` stretches it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.gamma.cdf(1.0, 1.0).round(4)
      Array(0.6321, dtype=float32, weak_type=True)
    """
    x, a, loc, scale = inexact("gamma.cdf", x, a, loc, scale)
    return gammainc(a, lax.clamp(const_like(x, 0), (x - loc) / scale, const_like(x, jnp.inf)))


logcdf = log_of(cdf, "-0.459...")


def sf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the probability of more than `x` under the gamma distribution.

    `a` is its shape. `loc` shifts and `scale` stretches it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.gamma.sf(1.0, 1.0).round(4)
      Array(0.36789998, dtype=float32, weak_type=True)
    """
    x, a, loc, scale = inexact("gamma.sf", x, a, loc, scale)
    y = (x - loc) / scale
    return jnp.where(lax.lt(y, const_like(y, 0)), 1, gammaincc(a, y))


logsf = log_of(sf, "-1.0")


__all__, __dir__ = documented(__name__, "cdf logcdf logpdf logsf pdf sf")
