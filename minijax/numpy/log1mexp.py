"""log(1 - exp(-x)), for neural networks and distributions."""

from __future__ import annotations

from minijax.api.custom import custom_jvp
from minijax.dispatch.jitted import jitted
from minijax.numpy.taking import where
from minijax.numpy.ufuncs import exp, expm1, log, log1p
from minijax.run.arrays.array import Array, ArrayLike


@custom_jvp
@jitted()
def log1mexp(x: ArrayLike) -> Array:
    """log(1 - exp(-x)) for positive x, accurate near zero too.

    By M. Mächler, "Accurately computing log(1 - exp(-|a|))", 2012.
    """
    return where(x < log(2.0), log(-expm1(-x)), log1p(-exp(-x)))


log1mexp.defjvps(lambda t, _, x: t / expm1(x))
