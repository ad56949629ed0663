"""Factorizations of matrices: LU, QR, singular values, eigenvalues of Hermitian matrices, Schur, polar."""

from __future__ import annotations

from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.base import dtypes
from minijax.base.symbolic.dimension import min_dim
from minijax.composed.linalg.matrices import adjoint, transposed, typed
from minijax.composed.linalg.qr import geqp3_p, geqrf_p
from minijax.dispatch.jitted import jitted
from minijax.higher.cond import cond
from minijax.higher.fori_loop import fori_loop
from minijax.ir.types import typeof
from minijax.lax import linalg as lax_linalg
from minijax.numpy.vectorizing import vectorize
from minijax.primitives.dynamic_slice import dynamic_slice, dynamic_slice_in_dim, dynamic_update_slice_in_dim
from minijax.primitives.promote import promote_dtypes_inexact
from minijax.run.arrays.array import Array, ArrayLike


def _inexact(*args: Any) -> list:
    return promote_dtypes_inexact(*map(jnp.asarray, args))


# ---- LU and QR --------------------------------------------------------------------------------------


@jitted("_lu", static=("permute_l",))
def _lu(a: Any, permute_l: bool) -> tuple:
    (a,) = _inexact(a)
    factors, _, order = lax_linalg.lu(a)
    dtype, (m, n) = typeof(a).dtype, typeof(a).shape
    k = min_dim(m, n)
    is_moved = order[None, :] == jnp.arange(m, dtype=typeof(order).dtype)[:, None]
    moved = jnp.real(jnp.array(is_moved).astype(dtype))
    lower = jnp.tril(factors, -1)[:, :k] + jnp.eye(m, k, dtype=dtype)
    upper = jnp.triu(factors)[:k]
    return (jnp.matmul(moved, lower, precision="highest"), upper) if permute_l else (moved, lower, upper)


@jitted("lu", static=("permute_l", "overwrite_a", "check_finite"))
def lu(a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> tuple:
    """Computes the LU factorization of one matrix with partial pivoting.

    Returns a tuple `P`, `L`, `U`, or with `permute_l` a pair `P @ L`, `U`. `overwrite_a` and `check_finite` have no
    effect. It does not take `p_indices`.
    """
    return _lu(a, permute_l)


@jitted("_qr", static=("mode", "pivoting"))
def _qr(a: Any, mode: str, pivoting: bool) -> tuple:
    if mode not in ("full", "r", "economic"):
        raise ValueError(f"qr: Unsupported QR decomposition mode '{mode}'")
    q, *rest = lax_linalg.qr(*_inexact(a), pivoting=pivoting, full_matrices=mode != "economic")
    return tuple(rest) if mode == "r" else (q, *rest)


def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple:
    """Computes QR factorizations of matrices in the last two axes.

    `mode` is "full", "economic" or "r" for `R` only; "raw" is not supported. With `pivoting` the result ends with the
    column permutation. Other arguments have no effect.
    """
    return _qr(a, mode, pivoting)


def _times_q(packed: Any, taus: Any, c: Any, left: bool, conjugate: bool) -> Any:
    if not conjugate:
        return lax_linalg.ormqr(packed, taus, c, left=left)
    return transposed(lax_linalg.ormqr(packed, taus, transposed(c), left=not left, transpose=True))


def _check_multiply(shape: tuple, right: tuple, mode: str) -> None:
    if mode not in ("left", "right"):
        raise ValueError(f"qr_multiply: mode must be 'right' or 'left', got {mode!r}")
    if len(shape) < 2 or not right:
        raise ValueError(f"qr_multiply: a must be at least two-dimensional and c one-dimensional; got {shape}, {right}")
    m, k = shape[-2], min(shape[-2:])
    have, want = (right[max(len(right) - 2, 0)], k) if mode == "left" else (right[-1], m)
    if have != want:
        what = "Q @ c" if mode == "left" else "c @ Q"
        raise ValueError(
            f"qr_multiply: Array shapes are not compatible for {what} operation: a has shape {shape}, "
            f"c has shape {right} (expected {want}, not {have})."
        )


def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple:
    """Multiplies matrices with the `Q` of a QR factorization, without forming it.

    Returns the product and `R`, and with `pivoting` the column permutation. `mode` is "right" for `c @ Q` or "left" for
    `Q @ c`; with `conjugate`, `Q` is conjugated. Leading axes broadcast. Other arguments have no effect.
    """
    a, c = _inexact(a, c)
    _check_multiply(typeof(a).shape, typeof(c).shape, mode)
    left, of_vector = mode == "left", typeof(c).ndim == 1
    if of_vector:
        c = c[:, None] if left else c[None, :]
    batch = jnp.broadcast_shapes(typeof(a).shape[:-2], typeof(c).shape[:-2])
    a, c = (jnp.broadcast_to(x, (*batch, *typeof(x).shape[-2:])) for x in (a, c))
    *_, m, n = typeof(a).shape
    k, order = min_dim(m, n), []
    if pivoting:
        packed, pivots, taus = geqp3_p.bind(a, jnp.zeros((*batch, n), np.int32), use_magma=None)
        order = [pivots - 1]
    else:
        packed, taus = geqrf_p.bind(a)
    if left and k < m:
        rest = jnp.zeros((*batch, m - k, typeof(c).shape[-1]), typeof(c).dtype)
        c = jnp.concatenate([c, rest], axis=-2)
    product = _times_q(packed, taus, c, left, conjugate)
    if not left:
        product = product[..., :k]
    if of_vector:
        product = product.reshape(-1)
    return (product, jnp.triu(packed[..., :k, :]), *order)


# ---- singular values and eigenvalues ----------------------------------------------------------------


@jitted("_svd", static=("full_matrices", "compute_uv"))
def _svd(a: Any, *, full_matrices: bool, compute_uv: bool) -> Any:
    factors = lax_linalg.svd(*_inexact(a), full_matrices=full_matrices, compute_uv=compute_uv)
    return tuple(factors) if compute_uv else factors


def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """Computes singular value decompositions of matrices in the last two axes.

    Returns a tuple `U`, `s` (descending), `Vh`; or without `compute_uv` the singular values. Flags are static. Other
    arguments have no effect.
    """
    return _svd(a, full_matrices=full_matrices, compute_uv=compute_uv)


@jitted("_eigh", static=("lower", "eigvals_only", "eigvals", "type"))
def _eigh(a: Any, b: Any, lower: bool, eigvals_only: bool, eigvals: Any, type: int) -> Any:
    for name, holds, only in (("b", b is None, None), ("type", type == 1, 1), ("eigvals", eigvals is None, None)):
        if not holds:
            raise NotImplementedError(f"Only the {name}={only} case of eigh is implemented")
    vectors, values = lax_linalg.eigh(*_inexact(a), lower=lower)
    return values if eigvals_only else (values, vectors)


def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Any:
    """Computes eigenvalues and eigenvectors of Hermitian matrices in the last two axes.

    Returns eigenvalues, ascending, and eigenvectors as columns; or with `eigvals_only` the eigenvalues. Raises
    NotImplementedError for `b`, for `eigvals` and for a `type` other than 1. Other arguments than `lower` have no
    effect.
    """
    return _eigh(a, b, lower, eigvals_only, eigvals, type)


# ---- Hessenberg's and Schur's forms -----------------------------------------------------------------


@jitted("hessenberg", static=("calc_q", "check_finite", "overwrite_a"))
def hessenberg(a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Computes Hessenberg forms of square matrices in the last two axes.

    Returns the upper Hessenberg form `H`, or with `calc_q` a pair `H`, `Q` with `a = Q @ H @ Q.T.conj()`. Other
    arguments have no effect.
    """
    shape = np.shape(a) if not hasattr(a, "shape") else typeof(a).shape
    if len(shape) < 2:
        raise TypeError(f"hessenberg: a must have at least two axes, got shape {shape}.")
    *batch, n, _ = shape
    if not n:
        return (jnp.zeros_like(a), jnp.zeros_like(a)) if calc_q else jnp.zeros_like(a)
    packed, taus = lax_linalg.hessenberg(a)
    form = jnp.triu(packed, -1)
    if not calc_q:
        return form
    q = lax_linalg.householder_product(packed[..., 1:, :-1], taus)
    dtype = typeof(packed).dtype
    corner, row = jnp.ones((*batch, 1, 1), dtype), jnp.zeros((*batch, 1, n - 1), dtype)
    column = jnp.zeros((*batch, n - 1, 1), dtype)
    return form, jnp.block([[corner, row], [column, q]])


@jitted("_schur", static=("output",))
def _schur(a: Any, output: str) -> list:
    if output == "complex":
        a = jnp.asarray(a).astype(dtypes.to_complex_dtype(jnp.result_type(a)))
    return lax_linalg.schur(a)


def schur(a: ArrayLike, output: str = "real") -> tuple[Array, Array]:
    """Computes Schur decompositions of square matrices in the last two axes.

    Returns a pair `T`, `Z` with `a = Z @ T @ Z.T.conj()`. `output` is "real", for blocks of two rows on the diagonal of
    `T`, or "complex". It does not take `sort`.
    """
    if output not in ("real", "complex"):
        raise ValueError(f"schur: Expected 'output' to be either 'real' or 'complex', got output={output!r}.")
    return _schur(a, output)


def _rotate_block(i: Any, t: Any, z: Any) -> tuple:
    """Makes the 2x2 block of the rows i - 1 and i triangular by a Givens rotation."""
    shifted = jnp.linalg.eigvals(dynamic_slice(t, (i - 1, i - 1), (2, 2))) - t[i, i]
    length = jnp.linalg.norm(jnp.array([shifted[0], t[i, i - 1]])).astype(typeof(t).dtype)
    c, s = shifted[0] / length, t[i, i - 1] / length
    turn = jnp.array([[c.conj(), s], [-s, c]], dtype=typeof(t).dtype)
    n = typeof(t).shape[0]
    rows, follow = dynamic_slice_in_dim(t, i - 1, 2, axis=0), jnp.arange(n) >= i - 1
    pushed = turn @ jnp.where(follow, rows, 0)
    t = dynamic_update_slice_in_dim(t, jnp.where(~follow, rows, pushed), i - 1, axis=0)
    columns, precede = dynamic_slice_in_dim(t, i - 1, 2, axis=1), jnp.arange(n)[:, None] < i + 1
    pushed = jnp.where(precede, columns, 0) @ turn.conj().T
    t = dynamic_update_slice_in_dim(t, jnp.where(~precede, columns, pushed), i - 1, axis=1)
    columns = dynamic_slice_in_dim(z, i - 1, 2, axis=1)
    return t, dynamic_update_slice_in_dim(z, columns @ turn.conj().T, i - 1, axis=1)


@jitted("_rsf2csf_2d")
def _rsf2csf_2d(t: Any, z: Any) -> tuple:
    dtype = dtypes.to_complex_dtype(jnp.result_type(t, z))
    t, z = t.astype(dtype), z.astype(dtype)
    n, eps = typeof(t).shape[0], dtypes.finfo(dtype).eps

    def step(k, state):
        t, z = state
        i = n - k
        is_block = jnp.abs(t[i, i - 1]) > eps * (jnp.abs(t[i - 1, i - 1]) + jnp.abs(t[i, i]))
        t, z = cond(is_block, _rotate_block, lambda i, t, z: (t, z), i, t, z)
        return t.at[i, i - 1].set(0.0), z

    return fori_loop(1, n, step, (t, z)) if n > 1 else (t, z)


@jitted("rsf2csf", static=("check_finite",))
def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """Converts real Schur forms of matrices in the last two axes to complex ones.

    Returns a pair: triangular `T` and unitary `Z`. Leading axes broadcast. `check_finite` has no effect.
    """
    T, Z = jnp.asarray(T), jnp.asarray(Z)
    for name, x in (("T", T), ("Z", Z)):
        if typeof(x).ndim < 2 or typeof(x).shape[-1] != typeof(x).shape[-2]:
            raise ValueError(f"rsf2csf: Input {name!r} must be square.")
    if typeof(T).shape[-1] != typeof(Z).shape[-1]:
        raise ValueError(f"rsf2csf: Input array shapes must match: Z: {typeof(Z).shape} vs. T: {typeof(T).shape}")
    return vectorize(_rsf2csf_2d, signature="(n,n),(n,n)->(n,n),(n,n)")(T, Z)


# ---- the polar decomposition ------------------------------------------------------------------------


@jitted("_polar_2d", static=("side", "method", "eps", "max_iterations"))
def _polar_2d(a: Any, side: str, method: str, eps: float | None, max_iterations: int | None) -> tuple:
    if method == "qdwh":
        m, n = typeof(a).shape
        if (side == "right") != (m >= n):
            raise NotImplementedError(
                "polar: method='qdwh' has matrices with no fewer rows than columns for side='right' and those with "
                f"fewer for side='left', got {(m, n)} with {side=}"
            )
        how = dict(is_hermitian=False, max_iterations=max_iterations, eps=eps)
        u, p, _, _ = lax_linalg.qdwh(a if side == "right" else adjoint(a), **how)
        if side == "left":
            p, u = adjoint(p), adjoint(u)
        return u, p
    u, s, vh = lax_linalg.svd(a, full_matrices=False)
    s = typed(s, u)
    product = lambda x, y: jnp.matmul(x, y, precision="highest")  # noqa: E731
    unitary = product(u, vh)
    if side == "right":
        return unitary, product(adjoint(vh) * s[None, :], vh)
    return unitary, product(u * s[None, :], adjoint(u))


@jitted("polar", static=("side", "method", "eps", "max_iterations"))
def polar(
    a: ArrayLike,
    side: str = "right",
    *,
    method: str = "qdwh",
    eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Array, Array]:
    """Computes polar decompositions of matrices in the last two axes.

    Returns a pair: the unitary factor `u`, and the positive semidefinite `p` with `a = u @ p`, or `a = p @ u` for
    `side="left"`. `method` is "qdwh" (`jax.lax.linalg.qdwh`, to which `eps` and `max_iterations` are passed) or "svd".
    """
    a = jnp.asarray(a)
    if typeof(a).ndim < 2:
        raise ValueError("polar: The input `a` must be at least a 2-D array.")
    if side not in ("right", "left"):
        raise ValueError("polar: The argument `side` must be either 'right' or 'left'.")
    if method not in ("qdwh", "svd"):
        raise ValueError(f"polar: Unknown polar decomposition method {method}.")
    core = lambda a: _polar_2d(a, side, method, eps, max_iterations)  # noqa: E731
    return vectorize(core, signature="(m,n)->(m,n),(k,k)")(a)
