"""The normal distribution of vectors."""

from __future__ import annotations

import functools

import numpy as np

import minijax.numpy as jnp
from minijax.base.faces import documented
from minijax.lax import linalg
from minijax.numpy.vectorizing import vectorize
from minijax.primitives import elementwise as lax
from minijax.primitives.promote import arrays, promote_dtypes_inexact
from minijax.run.arrays.array import Array, ArrayLike


def logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: None = None) -> ArrayLike:
    """Computes the logarithm of the density of the normal distribution of vectors.

    Vectors are along the last axis. A scalar `cov` multiplies the identity. Raises ValueError for shapes that do not
    fit, NotImplementedError for `allow_singular`.

    Example:
      >>> jax.scipy.stats.multivariate_normal.logpdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2)).round(4)
      Array(-1.8378999, dtype=float32)
    """
    if allow_singular is not None:
        raise NotImplementedError("allow_singular argument of multivariate_normal.logpdf")
    x, mean, cov = (jnp.asarray(v) for v in promote_dtypes_inexact(*arrays("multivariate_normal.logpdf", x, mean, cov)))
    if not mean.shape:
        quadratic = -1 / 2 * jnp.square(x - mean) / cov
        return quadratic - 1 / 2 * (lax.log(2 * np.pi) + lax.log(cov))
    n = mean.shape[-1]
    if not np.shape(cov):
        y = x - mean
        return -1 / 2 * jnp.einsum("...i,...i->...", y, y) / cov - n / 2 * (lax.log(2 * np.pi) + lax.log(cov))
    if cov.ndim < 2 or cov.shape[-2:] != (n, n):
        raise ValueError("multivariate_normal.logpdf got incompatible shapes")
    factor = linalg.cholesky(cov)
    solve = functools.partial(linalg.triangular_solve, lower=True, transpose_a=True)
    y = vectorize(solve, signature="(n,n),(n)->(n)")(factor, x - mean)
    logarithm = -1 / 2 * jnp.einsum("...i,...i->...", y, y) - n / 2 * lax.log(2 * np.pi)
    return logarithm - jnp.sum(lax.log(jnp.diagonal(factor, axis1=-1, axis2=-2)), axis=-1)


def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
    """Computes the density of the normal distribution of vectors.

    The arguments are those of `logpdf`.

    Example:
      >>> jax.scipy.stats.multivariate_normal.pdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2)).round(4)
      Array(0.1592, dtype=float32)
    """
    return lax.exp(logpdf(x, mean, cov))


__all__, __dir__ = documented(__name__, "logpdf pdf")
