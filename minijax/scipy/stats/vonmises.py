"""Von Mises's distribution on the circle."""

from __future__ import annotations

import numpy as np

import minijax.numpy as jnp
from minijax.base.faces import listing
from minijax.primitives import bessel, elementwise as lax
from minijax.primitives.families import const_like
from minijax.primitives.promote import promote_args_inexact
from minijax.run.array import Array, ArrayLike

__all__, __dir__ = listing(__name__, "logpdf pdf")


def logpdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """The logarithm of the density."""
    x, kappa = promote_args_inexact("vonmises.logpdf", x, kappa)
    holds = lax.gt(kappa, const_like(kappa, 0))
    kernel = lax.mul(kappa, lax.sub(lax.cos(x), const_like(x, 1)))
    norm = lax.log(lax.mul(const_like(x, 2 * np.pi), bessel.bessel_i0e(kappa)))
    return jnp.where(holds, lax.sub(kernel, norm), np.nan)


def pdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """The density."""
    return lax.exp(logpdf(x, kappa))
