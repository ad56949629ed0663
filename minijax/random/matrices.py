"""Samples that need linear algebra: multivariate normal vectors and orthogonal matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.base.dtypes import DTypeLike
from minijax.dispatch.jitted import jitted
from minijax.ir.types import typeof
from minijax.primitives import elementwise as ops
from minijax.primitives.promote import promote_dtypes_inexact
from minijax.primitives.structural import broadcast_to_rank
from minijax.random.arguments import float_dtype, inexact_dtype, optional_shape, sampler, shape_of, takes_key
from minijax.random.samplers import normal
from minijax.run.arrays.array import Array, ArrayLike, Shape

_METHODS = ("cholesky", "eigh", "svd")


@takes_key
def multivariate_normal(key: ArrayLike, mean: ArrayLike, cov: ArrayLike, shape: Shape | None = None,
                        dtype: DTypeLike | None = None, method: str = "cholesky") -> Array:  # fmt: skip
    """Draws normal vectors of mean (..., n) and covariance (..., n, n); the leading axes broadcast to `shape`.

    `method` factors the covariance: "cholesky" (the fastest), "eigh" or "svd", which accept singular ones. Raises
    ValueError for shapes that do not fit, and for another method.

    Example:
        >>> jax.random.multivariate_normal(jax.random.key(0), jnp.zeros(3), jnp.eye(3), (5,)).shape
        (5, 3)
    """
    mean, cov = promote_dtypes_inexact(mean, cov)
    if method not in _METHODS:
        raise ValueError(f"multivariate_normal: method must be one of {_METHODS}, got {method!r}")
    dtype = float_dtype("multivariate_normal", typeof(mean).dtype if dtype is None else dtype)
    return _multivariate_normal(key, mean, cov, optional_shape(shape), dtype, method)


@jitted("_multivariate_normal", static=("shape", "dtype", "method"))
def _multivariate_normal(key, mean, cov, shape, dtype, method):
    means, covs = typeof(mean).shape, typeof(cov).shape
    if not means:
        raise ValueError("multivariate_normal requires mean.ndim >= 1, got mean.ndim == 0")
    if len(covs) < 2:
        raise ValueError(f"multivariate_normal requires cov.ndim >= 2, got cov.ndim == {len(covs)}")
    n = means[-1]
    if covs[-2:] != (n, n):
        raise ValueError(
            f"multivariate_normal requires cov.shape == (..., n, n) for n={n}, but got cov.shape == {covs}."
        )
    shape = shape_of("multivariate_normal", shape, means[:-1], covs[:-2])
    if method == "svd":
        u, s, _ = jnp.linalg.svd(cov)
        factor = u * jnp.sqrt(s[..., None, :])
    elif method == "eigh":
        w, v = jnp.linalg.eigh(cov)
        factor = v * jnp.sqrt(w[..., None, :])
    else:
        factor = jnp.linalg.cholesky(cov)
    spread = jnp.einsum("...ij,...j->...i", factor, normal(key, (*shape, n), dtype))
    return broadcast_to_rank(mean, len(shape) + 1) + spread


def _normal_dtype(name: str, dtype: Any) -> np.dtype:
    return inexact_dtype("normal", dtype)


@sampler(_normal_dtype, static=("n", "m"))
def orthogonal(
    key: ArrayLike, n: int, shape: Shape = (), dtype: DTypeLike | None = None, m: int | None = None
) -> Array:
    """Draws matrices (*shape, n, m) with orthonormal columns, or rows if n < m; `m` is n by default.

    They are uniform with respect to the Haar measure (Mezzadri 2007); complex dtypes give unitary matrices. Raises
    ValueError for negative sizes and for a dtype that is neither floating nor complex.
    """
    columns = n if m is None else m
    if n < 0 or columns < 0:
        raise ValueError(f"orthogonal: negative dimensions are not allowed, got {n} and {m}")
    z = normal(key, (*shape, max(n, columns), min(n, columns)), dtype)
    q, r = jnp.linalg.qr(z)
    signs = ops.sign(jnp.diagonal(r, axis1=-2, axis2=-1))
    q = q * jnp.expand_dims(signs, -2)
    return jnp.matrix_transpose(q) if n < columns else q
