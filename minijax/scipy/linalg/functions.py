"""Functions of matrices: the square root, any other, and Sylvester's equation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import minijax.numpy as jnp
from minijax.dispatch.jitted import jitted
from minijax.higher.cond import cond
from minijax.higher.fori_loop import fori_loop
from minijax.higher.scan import scan
from minijax.ir.types import typeof
from minijax.numpy.vectorizing import vectorize
from minijax.primitives.families import is_complex
from minijax.primitives.promote import promote_dtypes_inexact
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.linalg.factors import rsf2csf, schur
from minijax.scipy.linalg.systems import inv, solve

# ---- the square root --------------------------------------------------------------------------------


@jitted("_sqrtm_triu")
def _sqrtm_triu(t: Any) -> Any:
    """The square root of an upper triangular matrix, column by column (Björck & Hammarling 1983)."""
    n = typeof(t).shape[0]
    roots = jnp.sqrt(jnp.diag(t))

    def column(j, root):
        def element(k, root):
            i = j - 1 - k
            total = fori_loop(
                i + 1, j, lambda m, total: total + root[i, m] * root[m, j], jnp.zeros((), typeof(t).dtype)
            )
            value = jnp.where(t[i, j] == total, 0.0, (t[i, j] - total) / (roots[i] + roots[j]))
            return root.at[i, j].set(value)

        return fori_loop(0, j, element, root)

    return fori_loop(0, n, column, jnp.diag(roots))


@jitted("_sqrtm")
def _sqrtm(a: Any) -> Any:
    t, z = schur(a, output="complex")
    product = lambda x, y: jnp.matmul(x, y, precision="highest")  # noqa: E731
    return product(product(z, _sqrtm_triu(t)), jnp.conj(z.T))


def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """Computes the principal square root of a matrix by its Schur form.

    The result is always complex. `blocksize` must be 1. It does not take `disp`.
    """
    if blocksize > 1:
        raise NotImplementedError("sqrtm: Blocked version is not implemented yet; pass blocksize=1.")
    return _sqrtm(A)


# ---- any function -----------------------------------------------------------------------------------


@jitted("_algorithm_11_1_1")
def _parlett(f: Any, t: Any) -> tuple:
    """Completes f(t), given its diagonal, for triangular `t`; (f(t), the least gap of eigenvalues).

    Parlett's recurrence, algorithm 11.1.1 of Golub & Van Loan.
    """
    n = typeof(t).shape[0]

    def element(p, i, state):
        f, least = state
        j = i + p
        value = t[i - 1, j - 1] * (f[j - 1, j - 1] - f[i - 1, i - 1])
        lines = t[i - 1], t[:, j - 1], f[i - 1], f[:, j - 1]
        between = (jnp.arange(n) >= i) & (jnp.arange(n) < j - 1)
        part = lambda k: jnp.where(between, lines[k], 0)  # noqa: E731
        value = value + (part(0) @ part(3) - part(2) @ part(1))
        gap = t[j - 1, j - 1] - t[i - 1, i - 1]
        value = jnp.where(gap != 0, value / gap, value)
        return f.at[i - 1, j - 1].set(value), jnp.minimum(least, jnp.abs(gap))

    def diagonal(p, state):
        return fori_loop(1, n - p + 1, partial(element, p), state)

    return fori_loop(1, n, diagonal, (f, jnp.abs(t[0, 0])))


def funm(A: ArrayLike, func: Callable, disp: bool = True) -> Any:
    """Evaluates a function of a matrix by its Schur form.

    `func` is applied to a vector of eigenvalues. The result is always complex. With `disp` false it is a pair of it and
    an estimate of the relative error.
    """
    A = jnp.asarray(A)
    if typeof(A).ndim != 2 or typeof(A).shape[0] != typeof(A).shape[1]:
        raise ValueError(f"funm: A: expected square array_like input, got shape {typeof(A).shape}")
    t, z = rsf2csf(*schur(A))
    f, least = _parlett(jnp.diag(func(jnp.diag(t))), t)
    result = z @ f @ z.conj().T
    if disp:
        return result
    eps = jnp.finfo(typeof(t).dtype).eps
    least = jnp.where(least == 0.0, eps, least)
    infinite = jnp.any(jnp.isinf(result))
    bound = jnp.minimum(1, jnp.maximum(eps, (eps / least) * jnp.linalg.norm(jnp.triu(t, 1), 1)))
    return result, jnp.where(infinite, jnp.inf, bound)


# ---- Sylvester's equation ---------------------------------------------------------------------------


def _by_schur(a: Any, b: Any, c: Any) -> Any:
    """Solves the equation of triangular matrices element by element, from the last row up (Bartels & Stewart 1972)."""
    (r, u), (s, v) = schur(a, output="complex"), schur(b.conj().T, output="complex")
    c = u.conj().T @ c.astype(typeof(u).dtype) @ v
    s = s.conj().T
    m, n = typeof(c).shape

    def element(flat, k):
        i, j = k // n, k % n
        y = flat.reshape((m, n))
        right = c[i, j]
        done = jnp.sum(jnp.where(jnp.arange(m) > i, r[i] * y[:, j], 0.0))
        done = done + jnp.sum(jnp.where(jnp.arange(n) > j, y[i] * s[:, j], 0.0))
        value = (right - done) / (r[i, i] + s[j, j])
        return flat.at[i * n + j].set(value), None

    order = jnp.arange(m * n - 1, -1, -1)
    flat, _ = scan(element, jnp.zeros(m * n, typeof(c).dtype), order)
    return u @ flat.reshape((m, n)) @ v.conj().T


def _by_eigenvectors(a: Any, b: Any, c: Any) -> Any:
    (wa, va), (wb, vb) = jnp.linalg.eig(a), jnp.linalg.eig(b)
    y = solve(va, c.astype(typeof(vb).dtype) @ vb) / (wa[:, None] + wb[None, :])
    return va @ y @ inv(vb)


@jitted("_solve_sylvester_2d", static=("method",))
def _solve_sylvester_2d(a: Any, b: Any, c: Any, tol: Any, method: str) -> Any:
    x = (_by_schur if method == "schur" else _by_eigenvectors)(a, b, c)
    x = x if is_complex(c) else x.real
    sums = jnp.linalg.eigvals(a)[:, None] + jnp.linalg.eigvals(b)[None, :]
    singular = jnp.any(jnp.abs(sums) < tol)
    return cond(singular, lambda x: jnp.zeros_like(x) * jnp.nan, lambda x: x, x)


@jitted("solve_sylvester", static=("method",))
def solve_sylvester(A: ArrayLike, B: ArrayLike, C: ArrayLike, *, method: str = "schur", tol: float = 1e-8) -> Array:
    """Solves Sylvester equations `A X + X B = C`.

    Matrices are in the last two axes. `method` is "schur" (Bartels and Stewart, 1972) or "eigen". The result is NaN
    where a sum of eigenvalues of `A` and of `B` is smaller than `tol`.
    """
    A, B, C = promote_dtypes_inexact(*map(jnp.asarray, (A, B, C)))
    shapes = [typeof(x).shape for x in (A, B, C)]
    a, b, c = (shape[-2:] for shape in shapes)
    if not a[:1] == a[1:] == c[:1] or not b[:1] == b[1:] == c[1:]:
        raise ValueError(
            f"solve_sylvester: Incompatible shapes for Sylvester equation: A, B, C: {', '.join(map(str, shapes))}"
        )
    if method not in ("schur", "eigen"):
        raise ValueError(
            f"solve_sylvester: Unrecognized method {method}. The two valid methods are either 'schur' or 'eigen'."
        )
    core = lambda a, b, c: _solve_sylvester_2d(a, b, c, tol, method)  # noqa: E731
    return vectorize(core, signature="(m,m),(n,n),(m,n)->(m,n)")(A, B, C)
