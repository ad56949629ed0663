"""Factorizations of matrices, and their functions: the exponential by Padé's approximants (Higham 2005), any other."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from math import factorial
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.api.autodiff import jvp
from minijax.base import dtypes
from minijax.base.symbolic.dimension import min_dim
from minijax.composed.linalg.lu import geqp3_p, geqrf_p
from minijax.composed.linalg.matrices import adjoint, transposed, typed
from minijax.dispatch.jitted import jitted
from minijax.higher.cond import cond, switch
from minijax.higher.fori_loop import fori_loop
from minijax.higher.scan import scan
from minijax.ir.types import typeof
from minijax.lax import linalg as lax_linalg
from minijax.numpy.products import matmul_highest
from minijax.numpy.vectorizing import vectorize
from minijax.primitives.dynamic_slice import dynamic_slice, dynamic_slice_in_dim, dynamic_update_slice_in_dim
from minijax.primitives.families import is_complex
from minijax.primitives.promote import promote_dtypes_inexact
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.linalg.systems import inv, solve, solve_triangular

# precision -> (the norms up to which an approximant of each degree is exact, that of the last degree, the degrees)
_LIMITS = {
    np.dtype(np.float32): ((4.258730016922831e-001, 1.880152677804762e000), 3.925724783138660, (3, 5, 7)),
    np.dtype(np.float64): (
        (1.495585217958292e-002, 2.539398330063230e-001, 9.504178996162932e-001, 2.097847961257068e000),
        5.371920351148152,
        (3, 5, 7, 9, 13),
    ),
}


def _approximant(degree: int, a: Any) -> tuple:
    """The odd and the even part of the numerator; the denominator is even - odd."""
    weights = [factorial(2 * degree - j) / (factorial(degree - j) * factorial(j)) for j in range(degree + 1)]
    powers = [jnp.eye(typeof(a).shape[0], dtype=typeof(a).dtype), matmul_highest(a, a)]
    highest = 3 if degree == 13 else degree // 2
    while len(powers) <= highest:
        powers.append(matmul_highest(powers[-1], powers[1]))

    def part(odd: int) -> Any:
        low = (weights[odd + 2 * k] * powers[k] for k in range(highest, -1, -1))
        if degree != 13:
            return reduce(jnp.add, low)
        high = reduce(jnp.add, (weights[odd + 6 + 2 * k] * powers[k] for k in range(highest, 0, -1)))
        return reduce(jnp.add, low, matmul_highest(powers[highest], high))

    return matmul_highest(a, part(1)), part(0)


@jitted("_calc_P_Q")
def _fraction(a: Any) -> tuple:
    """(numerator, denominator, s): the approximant's fraction for the matrix divided by 2 ** s."""
    limits, largest, degrees = _LIMITS[dtypes.to_floating_dtype(typeof(a).dtype)]
    size = jnp.linalg.norm(a, 1)
    halvings = jnp.maximum(0, jnp.floor(jnp.log2(size / largest)))
    halved = a / 2 ** halvings.astype(typeof(a).dtype)
    which = jnp.digitize(size, np.array(limits, typeof(size).dtype))
    odd, even = switch(which, [partial(_approximant, degree) for degree in degrees], halved)
    return odd + even, -odd + even, halvings


@jitted("_squaring", static=("max_squarings",))
def _squared(x: Any, count: Any, max_squarings: int) -> Any:
    def step(x, i):
        return cond(i < count, lambda x: matmul_highest(x, x), lambda x: x, x), None

    return scan(step, x, jnp.arange(max_squarings, dtype=typeof(count).dtype))[0]


def _expm_2d(a: Any, upper_triangular: bool, max_squarings: int) -> Any:
    p, q, halvings = _fraction(a)

    def compute(a, p, q):
        x = solve_triangular(q, p) if upper_triangular else jnp.linalg.solve(q, p)
        return _squared(x, halvings, max_squarings)

    return cond(halvings > max_squarings, lambda a, p, q: jnp.full_like(a, jnp.nan), compute, a, p, q)


def _check_square(name: str, what: str, x: Any) -> None:
    shape = typeof(x).shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ValueError(f"{name}: expected {what} to be a (batched) square matrix, got {what}.shape={shape}.")


@jitted("expm", static=("upper_triangular", "max_squarings"))
def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """Computes exponentials of square matrices in the last two axes.

    The method is scaling and squaring with Padé approximants (Higham, 2005). `max_squarings` is static; where more are
    needed the result is NaN. With `upper_triangular` the matrices are taken to be so, and a triangular system is
    solved. Arrays are in single or double precision.

    Example:
      >>> jax.scipy.linalg.expm(jnp.zeros((2, 2)))
      Array([[1., 0.],
             [0., 1.]], dtype=float32)
    """
    (A,) = promote_dtypes_inexact(A)
    _check_square("expm", "A", A)
    if dtypes.to_floating_dtype(typeof(A).dtype) not in _LIMITS:
        raise TypeError(f"expm: A.dtype={typeof(A).dtype} is not supported.")
    if typeof(A).ndim > 2:
        single = partial(expm, upper_triangular=upper_triangular, max_squarings=max_squarings)
        return vectorize(single, signature="(n,n)->(n,n)")(A)
    return _expm_2d(A, upper_triangular, max_squarings)


@jitted("expm_frechet", static=("method", "compute_expm"))
def expm_frechet(A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True) -> Any:
    """Computes the Fréchet derivative of `expm` at `A` in the direction `E`.

    Returns a pair: the exponential and the derivative; or without `compute_expm` the derivative. It is computed by
    forward-mode differentiation; `method` has no effect.

    Example:
      >>> jax.scipy.linalg.expm_frechet(jnp.zeros((2, 2)), jnp.eye(2), compute_expm=False)
      Array([[1., 0.],
             [0., 1.]], dtype=float32)
    """
    A, E = jnp.asarray(A), jnp.asarray(E)
    _check_square("expm_frechet", "A", A)
    _check_square("expm_frechet", "E", E)
    if typeof(A).shape != typeof(E).shape:
        raise ValueError(
            "expm_frechet: expected A and E to be the same shape, "
            f"got A.shape={typeof(A).shape} E.shape={typeof(E).shape}"
        )
    value, derivative = jvp(expm, (A,), (E,))
    return (value, derivative) if compute_expm else derivative


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

    Example:
      >>> jax.scipy.linalg.sqrtm(jnp.array([[4.0, 0.0], [0.0, 9.0]])).real
      Array([[2., 0.],
             [0., 3.]], dtype=float32)
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

    Example:
      >>> jax.scipy.linalg.funm(jnp.array([[4.0, 0.0], [0.0, 9.0]]), jnp.sqrt).real
      Array([[2., 0.],
             [0., 3.]], dtype=float32)
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

    Example:
      >>> a, b, c = jnp.array([[1.0]]), jnp.array([[2.0]]), jnp.array([[6.0]])
      >>> jax.scipy.linalg.solve_sylvester(a, b, c)
      Array([[2.]], dtype=float32)
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

    Example:
      >>> p, l, u = jax.scipy.linalg.lu(jnp.array([[0.0, 1.0], [2.0, 3.0]]))
      >>> u
      Array([[2., 3.],
             [0., 1.]], dtype=float32)
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

    Example:
      >>> q, r = jax.scipy.linalg.qr(jnp.ones((4, 2)), mode="economic")
      >>> q.shape, r.shape
      ((4, 2), (2, 2))
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
        raise (ValueError if right else IndexError)(
            f"qr_multiply: a must be at least two-dimensional and c one-dimensional; got {shape}, {right}"
        )
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

    Example:
      >>> product, r = jax.scipy.linalg.qr_multiply(jnp.eye(2), jnp.ones((3, 2)))
      >>> product.shape
      (3, 2)
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

    Example:
      >>> jax.scipy.linalg.svd(jnp.diag(jnp.array([3.0, 2.0])), compute_uv=False)
      Array([3., 2.], dtype=float32)
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

    Example:
      >>> jax.scipy.linalg.eigh(jnp.array([[2.0, 0.0], [0.0, 1.0]]), eigvals_only=True)
      Array([1., 2.], dtype=float32)
    """
    return _eigh(a, b, lower, eigvals_only, eigvals, type)


# ---- Hessenberg's and Schur's forms -----------------------------------------------------------------


@jitted("hessenberg", static=("calc_q", "check_finite", "overwrite_a"))
def hessenberg(a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Computes Hessenberg forms of square matrices in the last two axes.

    Returns the upper Hessenberg form `H`, or with `calc_q` a pair `H`, `Q` with `a = Q @ H @ Q.T.conj()`. Other
    arguments have no effect.

    Example:
      >>> jax.scipy.linalg.hessenberg(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
      Array([[1., 2.],
             [3., 4.]], dtype=float32)
    """
    shape = np.shape(a) if not hasattr(a, "shape") else typeof(a).shape
    if len(shape) < 2:
        raise (TypeError if shape else IndexError)(f"hessenberg: a must have at least two axes, got shape {shape}.")
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

    Example:
      >>> t, z = jax.scipy.linalg.schur(jnp.array([[1.0, 2.0], [0.0, 3.0]]))
      >>> t
      Array([[1., 2.],
             [0., 3.]], dtype=float32)
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

    Example:
      >>> t, z = jax.scipy.linalg.rsf2csf(*jax.scipy.linalg.schur(jnp.array([[0.0, -1.0], [1.0, 0.0]])))
      >>> t.dtype
      dtype('complex64')
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

    Example:
      >>> u, p = jax.scipy.linalg.polar(jnp.array([[2.0, 0.0], [0.0, 3.0]]))
      >>> p.round(3)
      Array([[2.       , 0.       ],
             [0.       , 3.0000002]], dtype=float32)
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
