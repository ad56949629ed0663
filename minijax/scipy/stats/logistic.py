"""The logistic distribution."""

from typing import Any

import minijax.numpy as jnp
from minijax.base.faces import listing
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.primitives.promote import promote_args_inexact
from minijax.scipy.special.logarithms import logit

__all__, __dir__ = listing(__name__, "cdf isf logpdf pdf ppf sf")


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density."""
    x, loc, scale = promote_args_inexact("logistic.logpdf", x, loc, scale)
    half = lax.div(lax.div(lax.sub(x, loc), scale), const_like(x, 2))
    twice = lax.mul(lax.neg(const_like(x, 2)), jnp.logaddexp(half, lax.neg(half)))
    return lax.sub(twice, lax.log(scale))


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density."""
    return lax.exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of at most x."""
    x, loc, scale = promote_args_inexact("logistic.cdf", x, loc, scale)
    return lax.logistic(lax.div(lax.sub(x, loc), scale))


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of more than x."""
    x, loc, scale = promote_args_inexact("logistic.sf", x, loc, scale)
    return lax.logistic(lax.neg(lax.div(lax.sub(x, loc), scale)))


def ppf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The inverse of `cdf`."""
    x, loc, scale = promote_args_inexact("logistic.ppf", x, loc, scale)
    return lax.add(lax.mul(logit(x), scale), loc)


def isf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The inverse of `sf`."""
    x, loc, scale = promote_args_inexact("logistic.isf", x, loc, scale)
    return lax.add(lax.mul(lax.neg(logit(x)), scale), loc)
