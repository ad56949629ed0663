"""The uniform distribution."""

from __future__ import annotations

import minijax.numpy as jnp
from minijax.base.faces import documented
from minijax.primitives import elementwise as lax
from minijax.primitives.families import scalar_like
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.formulas import exp_of, inexact


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the logarithm of the density of the uniform distribution.

    It is uniform from `loc` to `loc + scale`. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.uniform.logpdf(0.5)
      Array(-0., dtype=float32, weak_type=True)
    """
    x, loc, scale = inexact("uniform.logpdf", x, loc, scale)
    logarithm = -lax.log(scale)
    return jnp.where((x > loc + scale) | (x < loc), -jnp.inf, logarithm)


pdf = exp_of(logpdf, "1.0")


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the probability of at most `x` under the uniform distribution.

    It is uniform from `loc` to `loc + scale`. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.uniform.cdf(0.25)
      Array(0.25, dtype=float32)
    """
    x, loc, scale = inexact("uniform.cdf", x, loc, scale)
    below, above = x < loc, x > loc + scale
    is_inside = (x >= loc) & (x <= loc + scale)
    return jnp.select([below, above, is_inside], [scalar_like(x, 0), scalar_like(x, 1), (x - loc) / scale])


def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the quantile of the uniform distribution at a probability, the inverse of `cdf`.

    It is uniform from `loc` to `loc + scale`. Arguments broadcast; integers become floats.

    Example:
      >>> jax.scipy.stats.uniform.ppf(0.25)
      Array(0.25, dtype=float32, weak_type=True)
    """
    q, loc, scale = inexact("uniform.ppf", q, loc, scale)
    is_invalid = jnp.isnan(q) | (q < 0) | (q > 1)
    return jnp.where(is_invalid, jnp.nan, loc + scale * q)


__all__, __dir__ = documented(__name__, "cdf logpdf pdf ppf")
