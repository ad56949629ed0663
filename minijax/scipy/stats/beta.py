"""The beta distribution."""

from __future__ import annotations

from typing import Any

import minijax.numpy as jnp
from minijax.base.faces import documented
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.formulas import exp_of, inexact, log_of
from minijax.scipy.special.gammas import betainc, betaln
from minijax.scipy.special.logarithms import xlog1py, xlogy


def logpdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the logarithm of the density of the beta distribution.

    `a` and `b` are its positive shapes. `loc` shifts and `scale` stretches it. Arguments broadcast; integers become
    floats.

    Example:
      >>> jax.scipy.stats.beta.logpdf(0.5, 1.0, 1.0)
      Array(-9.536743e-07, dtype=float32, weak_type=True)
    """
    x, a, b, loc, scale = inexact("beta.logpdf", x, a, b, loc, scale)
    norm, one = lax.neg(betaln(a, b)), const_like(x, 1)
    y = lax.div(lax.sub(x, loc), scale)
    kernel = lax.add(xlogy(lax.sub(a, one), y), xlog1py(lax.sub(b, one), lax.neg(y)))
    logarithm = lax.sub(lax.add(norm, kernel), lax.log(scale))
    is_outside = jnp.logical_or(lax.gt(x, lax.add(loc, scale)), lax.lt(x, loc))
    logarithm = jnp.where(is_outside, -jnp.inf, logarithm)
    return jnp.where((a <= 0) | (b <= 0) | (scale <= 0), jnp.nan, logarithm)


pdf = exp_of(logpdf, "1.0")


def _clamped(x: Any, loc: Any, scale: Any) -> Any:
    return lax.clamp(const_like(x, 0), (x - loc) / scale, const_like(x, 1))


def cdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the probability of at most `x` under the beta distribution.

    `a` and `b` are its positive shapes. `loc` shifts and `scale` stretches it. Arguments broadcast; integers become
    floats.

    Example:
      >>> jax.scipy.stats.beta.cdf(0.25, 1.0, 1.0)
      Array(0.24999976, dtype=float32, weak_type=True)
    """
    x, a, b, loc, scale = inexact("beta.cdf", x, a, b, loc, scale)
    return betainc(a, b, _clamped(x, loc, scale))


logcdf = log_of(cdf, "-1.386")


def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the probability of more than `x` under the beta distribution.

    `a` and `b` are its positive shapes. `loc` shifts and `scale` stretches it. Arguments broadcast; integers become
    floats.

    Example:
      >>> jax.scipy.stats.beta.sf(0.25, 1.0, 1.0)
      Array(0.75000024, dtype=float32, weak_type=True)
    """
    x, a, b, loc, scale = inexact("beta.sf", x, a, b, loc, scale)
    return betainc(b, a, 1 - _clamped(x, loc, scale))


logsf = log_of(sf, "-0.288...")


__all__, __dir__ = documented(__name__, "cdf logcdf logpdf logsf pdf sf")
