"""Student's t distribution."""

from __future__ import annotations

from math import pi

from minijax.base.faces import documented
from minijax.primitives import elementwise as lax
from minijax.primitives.families import const_like
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.formulas import exp_of, inexact


def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Computes the logarithm of the density of Student's t distribution.

    `df` is the number of degrees of freedom. `loc` shifts and `scale` stretches it. Arguments broadcast; integers
    become floats.

    Example:
      >>> jax.scipy.stats.t.logpdf(0.0, 1.0).round(4)
      Array(-1.1446999, dtype=float32, weak_type=True)
    """
    x, df, loc, scale = inexact("t.logpdf", x, df, loc, scale)
    two, scaled = const_like(x, 2), lax.div(lax.sub(x, loc), scale)
    half = lax.div(df, two)
    more = lax.add(half, const_like(x, 0.5))
    half_log = lax.div(lax.log(lax.mul(lax.mul(lax.mul(scale, scale), const_like(x, pi)), df)), two)
    norm = lax.sub(lax.add(lax.lgamma(half), half_log), lax.lgamma(more))
    return lax.neg(lax.add(norm, lax.mul(more, lax.log1p(lax.div(lax.mul(scaled, scaled), df)))))


pdf = exp_of(logpdf, "0.318...")


__all__, __dir__ = documented(__name__, "logpdf pdf")
