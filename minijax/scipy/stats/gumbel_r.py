"""Gumbel's distribution of the largest values."""

from __future__ import annotations

import minijax.numpy as jnp
from minijax.base.faces import documented
from minijax.nn.functions import log1mexp
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.formulas import exp_of, inexact
from minijax.scipy.special.logarithms import xlogy


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the logarithm of the density of the Gumbel distribution of largest values.

    `loc` shifts and `scale` stretches it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.gumbel_r.logpdf(0.0)
      Array(-1., dtype=float32, weak_type=True)
    """
    x, loc, scale = inexact("gumbel_r.logpdf", x, loc, scale)
    holds, scaled, norm = lax.gt(scale, const_like(scale, 0)), (x - loc) / scale, xlogy(-1, scale)
    return jnp.where(holds, norm + -(scaled + lax.exp(-scaled)), jnp.nan)


pdf = exp_of(logpdf, "0.368...")


def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the logarithm of the probability of at most `x` under the Gumbel distribution of largest values.

    `loc` shifts and `scale` stretches it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.gumbel_r.logcdf(0.0)
      Array(-1., dtype=float32, weak_type=True)
    """
    x, loc, scale = inexact("gumbel_r.logcdf", x, loc, scale)
    holds, scaled = lax.gt(scale, const_like(scale, 0)), (x - loc) / scale
    return jnp.where(holds, -lax.exp(-scaled), jnp.nan)


cdf = exp_of(logcdf, "0.368...")


def ppf(p: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the quantile of the Gumbel distribution of largest values at a probability, the inverse of `cdf`.

    `loc` shifts and `scale` stretches it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.gumbel_r.ppf(0.5).round(4)
      Array(0.3665, dtype=float32, weak_type=True)
    """
    p, loc, scale = inexact("gumbel_r.ppf", p, loc, scale)
    holds = lax.gt(p, const_like(p, 0)) & (p < 1)
    return jnp.where(holds, loc - scale * lax.log(xlogy(-1, p)), jnp.nan)


def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the probability of more than `x` under the Gumbel distribution of largest values.

    `loc` shifts and `scale` stretches it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.gumbel_r.sf(0.0).round(3)
      Array(0.632, dtype=float32, weak_type=True)
    """
    x, loc, scale = inexact("gumbel_r.sf", x, loc, scale)
    holds, scaled = lax.gt(scale, const_like(scale, 0)), lax.div(lax.sub(loc, x), scale)
    return jnp.where(holds, lax.sub(const_like(x, 1), lax.exp(lax.neg(lax.exp(scaled)))), jnp.nan)


def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the logarithm of the probability of more than `x` under the Gumbel distribution of largest values.

    `loc` shifts and `scale` stretches it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.gumbel_r.logsf(0.0).round(3)
      Array(-0.459..., dtype=float32, weak_type=True)
    """
    x, loc, scale = inexact("gumbel_r.logsf", x, loc, scale)
    holds, scaled = lax.gt(scale, const_like(scale, 0)), (loc - x) / scale
    return jnp.where(holds, log1mexp(lax.exp(scaled)), jnp.nan)


__all__, __dir__ = documented(__name__, "cdf logcdf logpdf logsf pdf ppf sf")
