"""Student's t distribution."""

from __future__ import annotations

from math import pi

from minijax.base.faces import listing
from minijax.primitives import elementwise as lax
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.formulas import exp_of, strong

__all__, __dir__ = listing(__name__, "logpdf pdf")


def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density."""
    x, df, loc, scale = strong("t.logpdf", x, df, loc, scale)
    scaled, half = (x - loc) / scale, df / 2
    more = half + 0.5
    half_log = lax.log(scale * scale * pi * df) / 2
    norm = lax.lgamma(half) + half_log - lax.lgamma(more)
    return -(norm + more * lax.log1p(scaled * scaled / df))


pdf = exp_of(logpdf)
