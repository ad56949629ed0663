"""The chi-square distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.base.faces import listing
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.primitives.promote import promote_args_inexact
from minijax.run.array import Array, ArrayLike
from minijax.scipy.special.gammas import gammainc, gammaincc

__all__, __dir__ = listing(__name__, "cdf logcdf logpdf logsf pdf sf")


def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density."""
    x, df, loc, scale = promote_args_inexact("chi2.logpdf", x, df, loc, scale)
    two = const_like(x, 2)
    y = lax.div(lax.sub(x, loc), scale)
    half = lax.div(df, two)
    kernel = lax.sub(lax.mul(lax.sub(half, const_like(x, 1)), lax.log(y)), lax.div(y, two))
    norm = lax.neg(lax.add(lax.lgamma(half), lax.div(lax.mul(lax.log(two), df), two)))
    logarithm = lax.add(lax.sub(norm, lax.log(scale)), kernel)
    return jnp.where(lax.lt(x, loc), -np.inf, logarithm)


def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density."""
    return lax.exp(logpdf(x, df, loc, scale))


def _halved(x: Any, df: Any, loc: Any, scale: Any) -> tuple[Any, Any]:
    two = const_like(x, 2)
    half = lax.div(df, two)
    return half, lax.clamp(const_like(x, 0), lax.div(lax.sub(x, loc), lax.mul(scale, two)), const_like(x, np.inf))


def cdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x."""
    x, df, loc, scale = promote_args_inexact("chi2.cdf", x, df, loc, scale)
    return gammainc(*_halved(x, df, loc, scale))


def sf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x."""
    x, df, loc, scale = promote_args_inexact("chi2.sf", x, df, loc, scale)
    return gammaincc(*_halved(x, df, loc, scale))


def logcdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`."""
    return lax.log(cdf(x, df, loc, scale))


def logsf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`."""
    return lax.log(sf(x, df, loc, scale))
