"""Student's t distribution."""

from __future__ import annotations

import numpy as np

from minijax.base.faces import listing
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.primitives.promote import promote_args_inexact
from minijax.run.array import Array, ArrayLike

__all__, __dir__ = listing(__name__, "logpdf pdf")


def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density."""
    x, df, loc, scale = promote_args_inexact("t.logpdf", x, df, loc, scale)
    two = const_like(x, 2)
    scaled = lax.div(lax.sub(x, loc), scale)
    half = lax.div(df, two)
    more = lax.add(half, const_like(x, 0.5))
    size = lax.mul(lax.mul(lax.mul(scale, scale), const_like(x, np.pi)), df)
    half_log = lax.div(lax.log(size), two)
    norm = lax.sub(lax.add(lax.lgamma(half), half_log), lax.lgamma(more))
    quadratic = lax.div(lax.mul(scaled, scaled), df)
    return lax.neg(lax.add(norm, lax.mul(more, lax.log1p(quadratic))))


def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density."""
    return lax.exp(logpdf(x, df, loc, scale))
