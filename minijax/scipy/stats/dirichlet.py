"""Dirichlet's distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.base.faces import documented
from minijax.primitives import elementwise as lax
from minijax.primitives.promote import arrays, promote_dtypes_inexact
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.special.gammas import gammaln
from minijax.scipy.special.logarithms import xlogy


def logpdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """Computes the logarithm of the density of the Dirichlet distribution.

    `x` are shares along the first axis; the last one may be left out. Raises ValueError unless `alpha` is a vector of
    one element per share.

    Example:
      >>> jax.scipy.stats.dirichlet.logpdf(jnp.array([0.5, 0.5]), jnp.ones(2))
      Array(-9.536743e-07, dtype=float32)
    """
    return _logpdf(*promote_dtypes_inexact(*arrays("dirichlet.logpdf", x, alpha)))


def _logpdf(x: Any, alpha: Any) -> Any:
    x, alpha = jnp.asarray(x), jnp.asarray(alpha)
    if alpha.ndim != 1:
        raise ValueError(f"`alpha` must be one-dimensional; got alpha.shape={alpha.shape}")
    if x.shape[0] not in (alpha.shape[0], alpha.shape[0] - 1):
        raise ValueError(
            "`x` must have either the same number of entries as `alpha` or one entry fewer; "
            f"got x.shape={x.shape}, alpha.shape={alpha.shape}"
        )
    if x.shape[0] != alpha.shape[0]:
        x = jnp.concatenate([x, 1 - jnp.sum(x, axis=0, keepdims=True)], axis=0)
    norm = jnp.sum(gammaln(alpha)) - gammaln(jnp.sum(alpha))
    if x.ndim > 1:
        alpha = jnp.expand_dims(alpha, tuple(range(1, x.ndim)))
    logarithm = jnp.sum(xlogy(alpha - 1, x), axis=0) - norm
    total = jnp.sum(x, axis=0)
    inside = jnp.all(x > 0, axis=0) & (abs(total - 1) < 1e-6)
    return jnp.where(inside, logarithm, -np.inf)


def pdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """Computes the density of the Dirichlet distribution.

    The arguments are those of `logpdf`.

    Example:
      >>> jax.scipy.stats.dirichlet.pdf(jnp.array([0.5, 0.5]), jnp.ones(2)).round(3)
      Array(1., dtype=float32)
    """
    return lax.exp(logpdf(x, alpha))


__all__, __dir__ = documented(__name__, "logpdf pdf")
