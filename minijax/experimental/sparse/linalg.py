"""Eigenvectors of large matrices, and solutions of sparse linear systems."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse.linalg

import minijax.numpy as jnp
from minijax import lax
from minijax.base import dtypes
from minijax.base.faces import listing
from minijax.composed.callbacks.callback import HostFunction
from minijax.dispatch.jitted import jitted
from minijax.experimental.sparse.csr import csr_matvec_p, pointers, rows_of
from minijax.ir.primitive import is_undefined_primal
from minijax.ir.types import Zero, typeof
from minijax.primitives.zeros import add_zeros, instantiate
from minijax.run.arrays.array import Array

__all__, __dir__ = listing(__name__, "lobpcg_standard spsolve spsolve_p")

# ---- LOBPCG ------------------------------------------------------------------------------------------


def lobpcg_standard(
    A: Array | Callable[[Array], Array], X: Array, m: int = 100, tol: Array | float | None = None
) -> tuple[Array, Array, Array]:
    """The largest eigenvalues and their eigenvectors of a Hermitian matrix, and the number of iterations.

    Args:
      A: an (n, n) array, or a function that multiplies one with an (n, k) array.
      X: (n, k), the initial search directions, linearly independent columns with `0 < 5 * k < n`.
      m: the largest number of iterations.
      tol: an eigenpair has converged when `|A v - w v| < 10 * n * tol * (w + |A v|)`; the machine epsilon if None.

    Returns eigenvalues (k,), eigenvectors (n, k), and the number of iterations. Raises ValueError for dtypes or sizes
    that do not match.

    Knyazev, "Toward the optimal preconditioned eigensolver: locally optimal block preconditioned conjugate gradient
    method", SIAM J. Sci. Comput. 23 (2001); the basis is kept orthonormal as in Duersch, Shao, Yang and Gu, "A robust
    and efficient implementation of LOBPCG", SIAM J. Sci. Comput. 40 (2018).
    """
    if isinstance(A, (Array, np.ndarray)):
        return _largest_of_matrix(A, X, m, tol)
    return _largest(A, X, m, tol)


@jitted("_lobpcg_standard_matrix", static=("m",))
def _largest_of_matrix(A, X, m, tol):
    return _largest(partial(_mm, A), X, m, tol)


@jitted("_lobpcg_standard_callable", static=("A", "m"))
def _largest(A, X, m, tol):
    n, k = X.shape
    _check(A, X)
    if tol is None:
        tol = dtypes.finfo(X.dtype).eps
    X = _orthonormalized(X)
    P = _extension(X)
    AX = A(X)
    theta = jnp.sum(X * AX, axis=0, keepdims=True)

    def unfinished(state):
        i, _, _, _, converged, _ = state
        return jnp.logical_and(i < m, converged < k)

    def improved(state):
        i, X, P, R, _, _ = state
        S = jnp.concatenate((X, P, _projected_out(jnp.concatenate((X, P), axis=1), R)), axis=1)
        theta, Q = _descending_eigh(_mm(S.T, A(S)))
        best = Q[:, :k]
        X = _mm(S, best / _norms(best))
        X /= _norms(X)
        # The next directions: an orthonormal basis, among the other Ritz vectors, of the last update of X.
        q, _ = jnp.linalg.qr(Q[:k, k:].T)
        P = _safely_normalized(_mm(S, _mm(Q[:, k:], q)))
        AX = A(X)
        R = AX - theta[np.newaxis, :k] * X
        residuals = jnp.linalg.norm(R, axis=0)
        scales = (jnp.linalg.norm(AX, axis=0) + theta[:k]) * n * 10
        converged = jnp.sum(residuals < tol * scales)
        return i + 1, X, P, R, converged, theta[np.newaxis, :k]

    state = (0, X, P, AX - theta * X, 0, theta)
    i, X, _, _, _, theta = lax.while_loop(unfinished, improved, state)
    return theta[0, :], X, i


def _check(A: Callable, X: Any) -> None:
    n, k = X.shape
    if k == 0:
        raise ValueError(f"lobpcg_standard: must have search dim > 0, got {k}")
    if k * 5 >= n:
        raise ValueError(f"lobpcg_standard: expected search dim * 5 < matrix dim (got {k * 5}, {n})")
    column = typeof(A(jnp.zeros((n, 1), X.dtype)))
    if column.dtype != X.dtype:
        raise ValueError(f"lobpcg_standard: A, X must have same dtypes (were {column.dtype}, {X.dtype})")
    if column.shape != (n, 1):
        raise ValueError(f"lobpcg_standard: A must be ({n}, {n}) matrix A, got output {column.shape}")


def _mm(a: Any, b: Any) -> Any:
    return lax.dot(a, b, precision=(lax.Precision.HIGHEST, lax.Precision.HIGHEST))


def _norms(X: Any) -> Any:
    return jnp.linalg.norm(X, ord=2, axis=0, keepdims=True)


def _safely_normalized(X: Any) -> Any:
    norms = _norms(X)
    return X / jnp.where(norms == 0, 1.0, norms)


def _descending_eigh(A: Any) -> tuple[Any, Any]:
    w, V = jnp.linalg.eigh(A)
    return w[::-1], V[:, ::-1]


def _orthonormalized(X: Any) -> Any:
    for _ in range(2):
        X = _svqb(X)
    return X


def _svqb(X: Any) -> Any:
    """An orthonormal basis of the columns, with zeros for linearly dependent columns.

    Stathopoulos and Wu, "A block orthogonalization procedure with constant synchronization requirements", SIAM J. Sci.
    Comput. 23 (2002).
    """
    X = _safely_normalized(X)
    gram = _mm(X.T, X)
    w, V = _descending_eigh(gram)
    tau = dtypes.finfo(X.dtype).eps * w[0]
    floored = jnp.maximum(w, tau)
    basis = _mm(X, V * (jnp.where(tau > 0, floored, 1.0) ** -0.5)[np.newaxis, :])
    keep = ((w > tau) * (jnp.diag(gram) > 0.0))[np.newaxis, :]
    basis *= keep.astype(basis.dtype)
    norms = _norms(basis)
    keep *= norms > 0.0
    return basis / jnp.where(keep, norms, 1.0)


def _projected_out(basis: Any, U: Any) -> Any:
    """An orthonormal basis of the columns of U projected out of `basis`; zeros for columns with a small rest."""
    for _ in range(2):
        U -= _mm(basis, _mm(basis.T, U))
        U = _orthonormalized(U)
    for _ in range(2):
        U -= _mm(basis, _mm(basis.T, U))
    return U * (_norms(U) >= 0.99).astype(U.dtype)


def _extension(X: Any) -> Any:
    """As many columns as X has, orthonormal and orthogonal to X, from the block reflector that contains X.

    Schreiber and Parlett, "Block reflectors: theory and computation", SIAM J. Numer. Anal. 25 (1988).
    """
    n, k = X.shape
    upper, lower = jnp.split(X, (k,), axis=0)
    u, s, vt = jnp.linalg.svd(upper)
    y = jnp.concatenate([upper + _mm(u, vt), lower], axis=0)
    other = jnp.concatenate([jnp.eye(k, dtype=X.dtype), jnp.zeros((n - 2 * k, k), X.dtype)], axis=0)
    w = _mm(y, vt.T * ((2 * (1 + s)) ** (-1 / 2))[np.newaxis, :])
    h = -2 * jnp.linalg.multi_dot([w, w[k:, :].T, other], precision=lax.Precision.HIGHEST)
    return h.at[k:].add(other)


# ---- a direct solver ---------------------------------------------------------------------------------


class SpSolve(HostFunction):
    """Solves a linear system in CSR format: by SciPy on a CPU, by cuSOLVER's QR factorization on a CUDA GPU."""

    name = "spsolve"
    multiple_results = False

    def infer(self, data, indices, indptr, b, *, tol, reorder):
        arrays = dict(data=data, indices=indices, indptr=indptr, b=b)
        shapes = " ".join(f"{name}.shape={x.shape}" for name, x in arrays.items())
        if any(x.ndim != 1 for x in arrays.values()):
            raise ValueError(f"spsolve: Arrays must be one-dimensional. Got {shapes}")
        if indptr.shape[0] != b.shape[0] + 1 or data.shape != indices.shape:
            raise ValueError(f"spsolve: Invalid CSR buffer sizes: {shapes}")
        if reorder not in (0, 1, 2, 3):
            raise ValueError(f"spsolve: {reorder=} not valid, must be one of [0, 1, 2, 3]")
        if data.dtype != b.dtype:
            raise ValueError(f"spsolve: data types do not match: {data.dtype=} {b.dtype=}")
        if not all(dtypes.issubdtype(x.dtype, np.integer) for x in (indices, indptr)):
            raise ValueError(f"spsolve: index arrays must be integer typed; got {indices.dtype=} {indptr.dtype=}")
        return [b]

    def function(self, params):
        def solve(data, indices, indptr, b):
            matrix = scipy.sparse.csr_matrix((data, indices, indptr), shape=(b.size, b.size))
            return [scipy.sparse.linalg.spsolve(matrix, b).astype(b.dtype)]

        return solve

    def lower(self, e, ins, outs, *operands, tol, reorder):
        if e.platform != "cuda":
            return super().lower(e, ins, outs, *operands, tol=tol, reorder=reorder)
        config = {"reorder": np.int32(reorder), "tol": np.float64(tol)}
        vector = [[0]]
        layouts = dict(operand_layouts=vector * 4, result_layouts=vector)
        return e.custom_call("cusolver_csrlsvqr_ffi", operands, ins, outs, backend_config=config, **layouts)

    def jvp(self, primals, tangents, **params):
        data, indices, indptr, b = primals
        data_dot, _, _, b_dot = tangents
        out = self.bind(*primals, **params)
        total: Any = Zero.from_primal_value(out)
        if type(data_dot) is not Zero:
            x = self.bind(*primals, **params)
            shape = (typeof(b).shape[0],) * 2
            product = csr_matvec_p.bind(data_dot, indices, indptr, x, shape=shape, transpose=False)
            total = lax.neg(self.bind(data, indices, indptr, product, **params))
        if type(b_dot) is not Zero:
            total = add_zeros(total, self.bind(data, indices, indptr, b_dot, **params))
        return [out], [total]

    def transpose(self, cts, data, indices, indptr, b, **params):
        if is_undefined_primal(data) or is_undefined_primal(indices) or is_undefined_primal(indptr):
            raise NotImplementedError("spsolve: transposed with respect to the matrix")
        ct = instantiate(cts[0])
        # (columns, rows, data) of the matrix -> (rows, columns, data) of its transpose, sorted by row
        columns, rows, data = lax.sort([indices, rows_of(indices, indptr), data], num_keys=2)
        return [None, None, None, self.bind(data, rows, pointers(columns, typeof(ct).shape[0]), ct, **params)]


spsolve_p = SpSolve()


def spsolve(data: Any, indices: Any, indptr: Any, b: Any, tol: float = 1e-6, reorder: int = 1) -> Array:
    """Solves a square sparse linear system, by SciPy's solver, or by a QR factorization on CUDA devices.

    Args:
      data, indices, indptr: the buffers of the matrix in CSR format.
      b: the right-hand side, a vector of the dtype of `data`.
      tol: the threshold below which a pivot counts as zero; used on CUDA devices only.
      reorder: the reordering that keeps factors sparse, on CUDA devices only: 0 none, 1 symrcm, 2 symamd,
        3 csrmetisnd.

    Raises ValueError for operands of incompatible shapes or dtypes. `vmap` is not supported.

    Example:
        >>> data, indices, indptr = jnp.array([2.0, 4.0]), jnp.array([0, 1]), jnp.array([0, 1, 2])
        >>> jax.experimental.sparse.linalg.spsolve(data, indices, indptr, jnp.array([2.0, 8.0]))
        Array([1., 2.], dtype=float32)
    """
    return spsolve_p.bind(data, indices, indptr, b, tol=tol, reorder=reorder)
