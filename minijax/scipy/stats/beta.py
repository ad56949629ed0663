"""The beta distribution."""

from __future__ import annotations

import numpy as np

import minijax.numpy as jnp
from minijax.base.faces import listing
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.primitives.promote import promote_args_inexact
from minijax.run.array import Array, ArrayLike
from minijax.scipy.special.gammas import betainc, betaln
from minijax.scipy.special.logarithms import xlog1py, xlogy

__all__, __dir__ = listing(__name__, "cdf logcdf logpdf logsf pdf sf")


def logpdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density."""
    x, a, b, loc, scale = promote_args_inexact("beta.logpdf", x, a, b, loc, scale)
    one = const_like(x, 1)
    norm = lax.neg(betaln(a, b))
    y = lax.div(lax.sub(x, loc), scale)
    kernel = lax.add(xlogy(lax.sub(a, one), y), xlog1py(lax.sub(b, one), lax.neg(y)))
    logarithm = lax.sub(lax.add(norm, kernel), lax.log(scale))
    outside = jnp.logical_or(lax.gt(x, lax.add(loc, scale)), lax.lt(x, loc))
    logarithm = jnp.where(outside, -np.inf, logarithm)
    wrong = jnp.logical_or(lax.le(a, const_like(a, 0)), lax.le(b, const_like(b, 0)))
    return jnp.where(jnp.logical_or(wrong, lax.le(scale, const_like(scale, 0))), np.nan, logarithm)


def pdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density."""
    return lax.exp(logpdf(x, a, b, loc, scale))


def cdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x."""
    x, a, b, loc, scale = promote_args_inexact("beta.cdf", x, a, b, loc, scale)
    return betainc(a, b, lax.clamp(const_like(x, 0), lax.div(lax.sub(x, loc), scale), const_like(x, 1)))


def logcdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`."""
    return lax.log(cdf(x, a, b, loc, scale))


def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x."""
    x, a, b, loc, scale = promote_args_inexact("beta.sf", x, a, b, loc, scale)
    one = const_like(x, 1)
    return betainc(b, a, lax.sub(one, lax.clamp(const_like(x, 0), lax.div(lax.sub(x, loc), scale), one)))


def logsf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`."""
    return lax.log(sf(x, a, b, loc, scale))
