"""The chi-square distribution."""

from __future__ import annotations

from typing import Any

import minijax.numpy as jnp
from minijax.base.faces import documented
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.formulas import exp_of, inexact, log_of
from minijax.scipy.special.gammas import gammainc, gammaincc


def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the logarithm of the density of the chi-square distribution.

    `df` is the number of degrees of freedom. `loc` shifts and `scale` stretches it. Arguments broadcast; integers
    become floats.

    Example:
      >>> jax.scipy.stats.chi2.logpdf(2.0, 2.0).round(4)
      Array(-1.6931, dtype=float32, weak_type=True)
    """
    x, df, loc, scale = inexact("chi2.logpdf", x, df, loc, scale)
    two, y = const_like(x, 2), lax.div(lax.sub(x, loc), scale)
    half = lax.div(df, two)
    kernel = lax.sub(lax.mul(lax.sub(half, const_like(x, 1)), lax.log(y)), lax.div(y, two))
    norm = lax.neg(lax.add(lax.lgamma(half), lax.div(lax.mul(lax.log(two), df), two)))
    logarithm = lax.add(lax.sub(norm, lax.log(scale)), kernel)
    return jnp.where(lax.lt(x, loc), -jnp.inf, logarithm)


pdf = exp_of(logpdf, "0.184...")


def _halved(x: Any, df: Any, loc: Any, scale: Any) -> tuple[Any, Any]:
    return df / 2, lax.clamp(const_like(x, 0), (x - loc) / (scale * 2), const_like(x, jnp.inf))


def cdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the probability of at most `x` under the chi-square distribution.

    `df` is the number of degrees of freedom. `loc` shifts and `scale` stretches it. Arguments broadcast; integers
    become floats.

    Example:
      >>> jax.scipy.stats.chi2.cdf(2.0, 2.0).round(4)
      Array(0.6321, dtype=float32, weak_type=True)
    """
    x, df, loc, scale = inexact("chi2.cdf", x, df, loc, scale)
    return gammainc(*_halved(x, df, loc, scale))


def sf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the probability of more than `x` under the chi-square distribution.

    `df` is the number of degrees of freedom. `loc` shifts and `scale` stretches it. Arguments broadcast; integers
    become floats.

    Example:
      >>> jax.scipy.stats.chi2.sf(2.0, 2.0).round(4)
      Array(0.36789998, dtype=float32, weak_type=True)
    """
    x, df, loc, scale = inexact("chi2.sf", x, df, loc, scale)
    return gammaincc(*_halved(x, df, loc, scale))


logcdf = log_of(cdf, "-0.459...")
logsf = log_of(sf, "-1.0")


__all__, __dir__ = documented(__name__, "cdf logcdf logpdf logsf pdf sf")
