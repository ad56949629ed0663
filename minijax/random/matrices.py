"""Samples that need linear algebra: multivariate normal vectors and orthogonal matrices."""

from __future__ import annotations

import numpy as np

import minijax.numpy as jnp
from minijax.base.dtypes import DTypeLike
from minijax.dispatch.jitted import jitted
from minijax.ir.types import typeof
from minijax.primitives import elementwise as ops
from minijax.primitives.promote import promote_dtypes_inexact
from minijax.primitives.structural import broadcast_shapes, broadcast_to_rank
from minijax.random.samplers import check_shape, checked_key, drawn_shape, float_dtype, normal, takes_out_sharding
from minijax.run.array import Array, ArrayLike, Shape, ShardingLike

_METHODS = ("cholesky", "eigh", "svd")


@takes_out_sharding
def multivariate_normal(
    key: ArrayLike,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    method: str = "cholesky",
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Normal vectors of mean (..., n) and covariance (..., n, n); the leading axes broadcast to `shape`.

    `method` factors the covariance: "cholesky" (the fastest; needs a definite matrix), "eigh" or "svd".
    Raises ValueError for other methods, for other ranks, and for a dtype that is not floating.
    """
    key = checked_key("multivariate_normal", key)
    mean, cov = promote_dtypes_inexact(mean, cov)
    if method not in _METHODS:
        raise ValueError(f"multivariate_normal: method must be one of {_METHODS}, got {method!r}")
    dtype = float_dtype("multivariate_normal", typeof(mean).dtype if dtype is None else dtype)
    return _multivariate_normal(key, mean, cov, None if shape is None else drawn_shape(shape), dtype, method)


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
    if shape is None:
        shape = broadcast_shapes(means[:-1], covs[:-2])
    else:
        check_shape("multivariate_normal", shape, means[:-1], covs[:-2])
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


@takes_out_sharding
def orthogonal(
    key: ArrayLike,
    n: int,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    m: int | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Matrices (*shape, n, m) with orthonormal columns, or rows if n < m; `m` is n by default.

    They are uniform with respect to the Haar measure (Mezzadri 2007); complex dtypes give unitary matrices. Raises
    ValueError for negative sizes and for a dtype that is neither floating nor complex.
    """
    key = checked_key("orthogonal", key)
    dtype = float_dtype("normal", dtype, np.inexact, "float or complex")
    return _orthogonal(key, n, drawn_shape(shape), dtype, m)


@jitted("_orthogonal", static=("n", "shape", "dtype", "m"))
def _orthogonal(key, n, shape, dtype, m):
    columns = n if m is None else m
    if n < 0 or columns < 0:
        raise ValueError(f"orthogonal: negative dimensions are not allowed, got {n} and {m}")
    z = normal(key, (*shape, max(n, columns), min(n, columns)), dtype)
    q, r = jnp.linalg.qr(z)
    signs = ops.sign(jnp.diagonal(r, axis1=-2, axis2=-1))
    q = q * jnp.expand_dims(signs, -2)
    return jnp.matrix_transpose(q) if n < columns else q
