"""Pareto's distribution."""

from __future__ import annotations

import minijax.numpy as jnp
from minijax.base.faces import documented
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.formulas import exp_of, inexact


def logpdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the logarithm of the density of the Pareto distribution.

    `b` is its shape. `loc` shifts and `scale` stretches it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.pareto.logpdf(1.0, 1.0)
      Array(-0., dtype=float32, weak_type=True)
    """
    x, b, loc, scale = inexact("pareto.logpdf", x, b, loc, scale)
    scaled = lax.div(lax.sub(x, loc), scale)
    norm = lax.log(lax.div(scale, b))
    logarithm = lax.neg(lax.add(norm, lax.mul(lax.add(b, const_like(x, 1)), lax.log(scaled))))
    return jnp.where(lax.lt(x, lax.add(loc, scale)), -jnp.inf, logarithm)


pdf = exp_of(logpdf, "1.0")


def cdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the probability of at most `x` under the Pareto distribution.

    `b` is its shape. `loc` shifts and `scale` stretches it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.pareto.cdf(2.0, 1.0)
      Array(0.5, dtype=float32, weak_type=True)
    """
    x, b, loc, scale = inexact("pareto.cdf", x, b, loc, scale)
    scaled = lax.div(lax.sub(x, loc), scale)
    probability = lax.sub(const_like(x, 1), lax.pow(scaled, lax.neg(b)))
    return jnp.where(lax.lt(x, lax.add(loc, scale)), const_like(x, 0), probability)


def logcdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the logarithm of the probability of at most `x` under the Pareto distribution.

    `b` is its shape. `loc` shifts and `scale` stretches it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.pareto.logcdf(2.0, 1.0).round(4)
      Array(-0.6931, dtype=float32, weak_type=True)
    """
    x, b, loc, scale = inexact("pareto.logcdf", x, b, loc, scale)
    scaled = (x - loc) / scale
    logarithm = lax.log1p(-lax.pow(scaled, -b))
    return jnp.where(lax.lt(x, loc + scale), -jnp.inf, logarithm)


def logsf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the logarithm of the probability of more than `x` under the Pareto distribution.

    `b` is its shape. `loc` shifts and `scale` stretches it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.pareto.logsf(2.0, 1.0).round(4)
      Array(-0.6931, dtype=float32, weak_type=True)
    """
    x, b, loc, scale = inexact("pareto.logsf", x, b, loc, scale)
    logarithm = -(b * lax.log((x - loc) / scale))
    return jnp.where(lax.lt(x, loc + scale), const_like(x, 0), logarithm)


sf = exp_of(logsf, "0.5")


def ppf(q: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the quantile of the Pareto distribution at a probability, the inverse of `cdf`.

    `b` is its shape. `loc` shifts and `scale` stretches it. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.pareto.ppf(0.5, 1.0)
      Array(2., dtype=float32, weak_type=True)
    """
    q, b, loc, scale = inexact("pareto.ppf", q, b, loc, scale)
    one = const_like(q, 1)
    result = lax.add(loc, lax.mul(scale, lax.pow(lax.sub(one, q), lax.neg(lax.div(one, b)))))
    return jnp.where(jnp.isnan(q) | (q < 0) | (q > 1), jnp.nan, result)


__all__, __dir__ = documented(__name__, "cdf logcdf logpdf logsf pdf ppf sf")
