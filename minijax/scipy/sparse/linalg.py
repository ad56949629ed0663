"""Iterative solvers of linear systems: conjugate gradients, BiCGSTAB and GMRES, over pytrees of arrays.

An operator is a function of a pytree like `b`, or a square matrix. Derivatives solve linear systems too.
"""

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import minijax.numpy as jnp
from minijax.api.transfer import device_put
from minijax.base import dtypes
from minijax.base.faces import documented
from minijax.base.tree import tree_leaves, tree_map, tree_reduce, tree_structure
from minijax.higher.custom_solve import custom_linear_solve
from minijax.higher.while_loop import while_loop
from minijax.ir.types import typeof
from minijax.numpy.products import matmul_highest
from minijax.primitives.convert import convert
from minijax.primitives.elementwise import rsqrt
from minijax.scipy.linalg import solve, solve_triangular


def _dot(x: Any, y: Any) -> Any:
    return jnp.vdot(x, y, precision="highest")


def _real_product(x: Any, y: Any) -> Any:
    result = _dot(x.real, y.real)
    return result + _dot(x.imag, y.imag) if jnp.iscomplexobj(x) or jnp.iscomplexobj(y) else result


def _inner(x: Any, y: Any) -> Any:
    return sum(tree_leaves(tree_map(_dot, x, y)))


def _real_inner(x: Any, y: Any) -> Any:
    """The real part of the inner product, summed over leaves."""
    return sum(tree_leaves(tree_map(_real_product, x, y)))


def _norm(x: Any) -> Any:
    return jnp.sqrt(_real_inner(x, x))


_add, _sub = partial(tree_map, operator.add), partial(tree_map, operator.sub)


def _mul(scalar: Any, x: Any) -> Any:
    return tree_map(partial(operator.mul, scalar), x)


def _identity(x: Any) -> Any:
    return x


def _as_operator(name: str, f: Any) -> Callable:
    if callable(f):
        return f
    if not hasattr(f, "shape"):
        raise TypeError(f"{name}: linear operator must be either a function or ndarray: {f}")
    if len(f.shape) != 2 or f.shape[0] != f.shape[1]:
        raise ValueError(f"{name}: linear operator must be a square matrix, but has shape: {f.shape}")
    return partial(matmul_highest if hasattr(f, "dtype") else operator.matmul, f)


def _prepared(name: str, A: Any, b: Any, x0: Any, maxiter: int | None, M: Any) -> tuple:
    """(A, b, x0, maxiter, M): operators as functions, leaves as arrays; `maxiter` is ten times the size by default."""
    x0 = tree_map(jnp.zeros_like, b) if x0 is None else x0
    b, x0 = device_put((b, x0))
    maxiter = 10 * sum(x.size for x in tree_leaves(b)) if maxiter is None else maxiter
    M = _identity if M is None else M
    if tree_structure(x0) != tree_structure(b):
        raise ValueError(
            f"{name}: x0 and b must have matching tree structure: {tree_structure(x0)} vs {tree_structure(b)}"
        )
    shapes = [[x.shape for x in tree_leaves(tree)] for tree in (x0, b)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"{name}: arrays in x0 and b must have matching shapes: {shapes[0]} vs {shapes[1]}")
    return _as_operator(name, A), b, x0, maxiter, _as_operator(name, M)


def _is_real(b: Any) -> bool:
    return not any(jnp.iscomplexobj(x) for x in tree_leaves(b))


def _tolerated(b: Any, tol: Any, atol: Any) -> Any:
    """The square of the residual norm at which iteration ends."""
    size = _real_inner(b, b)
    return jnp.maximum(jnp.square(tol) * size, jnp.square(atol))


# ---- conjugate gradients -----------------------------------------------------------------------------


def _cg(A, b, *, x0, maxiter, tol, atol, M):
    bound = _tolerated(b, tol, atol)

    def goes_on(state):
        _, r, gamma, _, k = state
        size = gamma.real if M is _identity else _real_inner(r, r)
        return (size > bound) & (k < maxiter)

    def step(state):
        x, r, gamma, p, k = state
        a_p = A(p)
        alpha = gamma / _real_inner(p, a_p).astype(dtype)
        x, r = _add(x, _mul(alpha, p)), _sub(r, _mul(alpha, a_p))
        z = M(r)
        gamma_next = _real_inner(r, z).astype(dtype)
        p = _add(z, _mul(gamma_next / gamma, p))
        return x, r, gamma_next, p, k + 1

    r = _sub(b, A(x0))
    p = z = M(r)
    dtype = jnp.result_type(*tree_leaves(p))
    gamma = _real_inner(r, z).astype(dtype)
    return while_loop(goes_on, step, (x0, r, gamma, p, 0))[0]


def cg(
    A: Any, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0, maxiter: int | None = None, M: Any = None
) -> tuple[Any, None]:
    """Solves `A x = b` for a Hermitian positive definite `A` by conjugate gradients.

    Args:
      A: matrix, or function from x to `A x`. x and b may be trees of arrays.
      b: right-hand side.
      x0: first guess, zeros by default.
      tol: relative tolerance. The method ends once `norm(b - A x) <= max(tol * norm(b), atol)`.
      atol: absolute tolerance.
      maxiter: largest number of steps, ten for each element by default.
      M: approximate inverse of `A`, as a matrix or function.

    Returns:
      A pair `(x, None)`.

    Differences from SciPy:
      It returns no status, and takes no callback. The result is differentiable in `b` and in what `A` depends on, by
      another solution. The method is that of Hestenes and Stiefel, 1952.

    Example:
      >>> x, _ = jax.scipy.sparse.linalg.cg(lambda x: 2 * x, jnp.array([2.0, 4.0]))
      >>> x
      Array([1., 2.], dtype=float32)
    """
    A, b, x0, maxiter, M = _prepared("cg", A, b, x0, maxiter, M)
    solver = partial(_cg, x0=x0, tol=tol, atol=atol, maxiter=maxiter, M=M)
    return custom_linear_solve(A, b, solve=solver, transpose_solve=solver, symmetric=_is_real(b)), None


# ---- BiCGSTAB ----------------------------------------------------------------------------------------


def _bicgstab(A, b, *, x0, maxiter, tol, atol, M):
    bound = _tolerated(b, tol, atol)

    def goes_on(state):
        _, r, *_, k = state
        return (_real_inner(r, r) > bound) & (k < maxiter) & (k >= 0)

    def step(state):
        x, r, alpha, omega, rho, p, q, k = state
        rho_next = _inner(shadow, r)
        beta = rho_next / rho * alpha / omega
        p = _add(r, _mul(beta, _sub(p, _mul(omega, q))))
        p_hat = M(p)
        q = A(p_hat)
        alpha = rho_next / _inner(shadow, q)
        s = _sub(r, _mul(alpha, q))
        is_done = _real_inner(s, s) < bound
        s_hat = M(s)
        t = A(s_hat)
        omega = _inner(t, s) / _inner(t, t)
        x = tree_map(
            partial(jnp.where, is_done),
            _add(x, _mul(alpha, p_hat)),
            _add(x, _add(_mul(alpha, p_hat), _mul(omega, s_hat))),
        )
        r = tree_map(partial(jnp.where, is_done), s, _sub(s, _mul(omega, t)))
        # A negative count means that the method broke down.
        k = jnp.where((omega == 0) | (alpha == 0), -11, k + 1)
        k = jnp.where(rho_next == 0, -10, k)
        return x, r, alpha, omega, rho_next, p, q, k

    r = shadow = _sub(b, A(x0))
    one = _like(1.0, b)
    return while_loop(goes_on, step, (x0, r, one, one, one, r, r, 0))[0]


def bicgstab(
    A: Any, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0, maxiter: int | None = None, M: Any = None
) -> tuple[Any, None]:
    """Solves `A x = b` for any nonsingular `A` by stabilized biconjugate gradients.

    Returns a pair `(x, None)`. The arguments are those of `cg`. The method is van der Vorst's, 1992; the result is
    differentiable in `b` and in what `A` depends on.

    Example:
      >>> x, _ = jax.scipy.sparse.linalg.bicgstab(lambda x: 2.0 * x, jnp.array([2.0, 4.0]))
      >>> x.round(3)
      Array([1., 2.], dtype=float32)
    """
    A, b, x0, maxiter, M = _prepared("bicgstab", A, b, x0, maxiter, M)
    solver = partial(_bicgstab, x0=x0, tol=tol, atol=atol, maxiter=maxiter, M=M)
    return custom_linear_solve(A, b, solve=solver, transpose_solve=solver, symmetric=False), None


# ---- GMRES -------------------------------------------------------------------------------------------


def _like(x: Any, tree: Any) -> Any:
    """`x` cast to the dtype that the leaves promote to; weakly typed if they all are."""
    leaves = tree_leaves(tree)
    return convert(x, jnp.result_type(*leaves), all(typeof(leaf).weak_type for leaf in leaves))


def _normalized(x: Any, least: Any = None) -> tuple:
    """`x` as a unit vector, and its norm; zeros where the norm is at most `least`."""
    norm = _norm(x)
    dtype = jnp.result_type(*tree_leaves(x))
    least = dtypes.finfo(norm.dtype).eps if least is None else least
    least = jnp.asarray(least).astype(dtype).real
    is_long = norm > least
    divisor = _like(norm, x)
    unit = tree_map(lambda y: jnp.where(is_long, y / divisor, 0.0), x)
    return unit, jnp.where(is_long, norm, 0.0)


def _project(basis: Any, x: Any) -> Any:
    """The inner products of `x` with the columns of the basis."""

    def leaf(q, y):
        axes = tuple(range(q.ndim - 1))
        return jnp.tensordot(q.conj(), y, axes=(axes, axes), precision="highest")

    return tree_reduce(operator.add, tree_map(leaf, basis, x))


def _combine(basis: Any, weights: Any) -> Any:
    return tree_map(lambda q: jnp.matmul(q, weights, precision="highest"), basis)


def _orthogonalized(basis: Any, x: Any, norm: Any, passes: int = 2) -> tuple:
    """`x` orthogonalized against the basis, and its coefficients; repeated by the criterion of Giraud et al. 2005."""
    first = tree_leaves(basis)[0]
    r = jnp.zeros(first.shape[-1], first.dtype)
    scaled = norm / jnp.sqrt(2.0)

    def step(state):
        k, x, r, before = state
        h = _project(basis, x)
        x, r = _sub(x, _combine(basis, h)), _add(r, h)

        def measure(state):
            k, _, _ = state
            return k, False, _normalized(x)[1] / jnp.sqrt(2.0)

        _, _, before = while_loop(lambda s: s[1] & (s[0] < passes - 1), measure, (k, True, before))
        return k + 1, x, r, before

    def goes_on(state):
        k, _, r, before = state
        _, length = _normalized(r)
        return (k < passes - 1) & (length < before)

    state = step((0, x, r, scaled))
    _, x, r, _ = while_loop(goes_on, step, state)
    return x, r


def _arnoldi(k: Any, A: Callable, M: Callable, V: Any, H: Any) -> tuple:
    """Adds a vector to the Krylov basis V, and a column of the Hessenberg matrix, stored as row k of H."""
    dtype = jnp.result_type(*tree_leaves(V))
    v = M(A(tree_map(lambda x: x[..., k], V)))
    _, norm = _normalized(v)
    v, h = _orthogonalized(V, v, norm)
    unit, rest = _normalized(v, dtypes.finfo(dtype).eps * norm)
    V = tree_map(lambda X, y: X.at[..., k + 1].set(y), V, unit)
    h = h.at[k + 1].set(rest.astype(dtype))
    return V, H.at[k, :].set(h), rest == 0.0


def _krylov(unit: Any, restart: int) -> Any:
    return tree_map(lambda x: jnp.pad(x[..., None], ((0, 0),) * x.ndim + ((0, restart),)), unit)


def _residual(A: Callable, b: Any, x: Any, M: Callable) -> tuple:
    return _normalized(M(_sub(b, A(x))))


def _least_squares(a: Any, b: Any) -> Any:
    product = partial(jnp.matmul, precision="highest")
    return solve(product(a.T.conj(), a), product(a.T.conj(), b), assume_a="pos")


def _gmres_batched(A, b, x, unit, norm, ptol, restart, M):
    """Makes all `restart` steps, then solves one least-squares problem."""
    dtype = jnp.result_type(*tree_leaves(b))

    def goes_on(state):
        _, _, is_broken, k = state
        return (k < restart) & ~is_broken

    def step(state):
        V, H, _, k = state
        return *_arnoldi(k, A, M, V, H), k + 1

    V, H = _krylov(unit, restart), _like(jnp.eye(restart, restart + 1, dtype=dtype), b)
    V, H, _, _ = while_loop(goes_on, step, (V, H, False, 0))
    beta = _like(jnp.zeros((restart + 1,), dtype).at[0].set(norm.astype(dtype)), b)
    y = _least_squares(H.T, beta)
    x = _add(x, _combine(tree_map(lambda X: X[..., :-1], V), y))
    return x, *_residual(A, b, x, M)


def _rotated(H_row: Any, i: Any, cs: Any, sn: Any) -> Any:
    x, y = H_row[i], H_row[i + 1]
    top, bottom = cs * x - sn * y, sn * x + cs * y
    return H_row.at[i].set(top).at[i + 1].set(bottom)


def _rotation(a: Any, b: Any) -> tuple:
    """Cosine and sine of the Givens rotation that maps (a, b) to (r, 0) (Golub & Van Loan, 5.1.8)."""
    is_zero, a_is_less = abs(b) == 0, abs(a) < abs(b)
    t = -jnp.where(a_is_less, a, b) / jnp.where(a_is_less, b, a)
    r = rsqrt(1 + abs(t) ** 2).astype(t.dtype)
    cs = jnp.where(is_zero, 1, jnp.where(a_is_less, r * t, r))
    sn = jnp.where(is_zero, 0, jnp.where(a_is_less, r, r * t))
    return cs, sn


def _gmres_incremental(A, b, x, unit, norm, ptol, restart, M):
    """Steps until the residual is small; Givens rotations give its norm (Saad & Schultz 1986)."""
    dtype = jnp.result_type(*tree_leaves(b))

    def goes_on(state):
        k, error, *_ = state
        return (k < restart) & (error > ptol)

    def step(state):
        k, _, V, R, beta, givens = state
        V, R, _ = _arnoldi(k, A, M, V, R)
        row = R[k, :]

        def rotate(state):
            i, k, row = state
            return i + 1, k, _rotated(row, i, *givens[i, :])

        row = while_loop(lambda s: s[0] < s[1], rotate, (0, k, row))[2]
        rotation = _rotation(row[k], row[k + 1])
        next_givens = givens.at[k, :].set(jnp.array(rotation))
        row = _rotated(row, k, *rotation)
        beta = _rotated(beta, k, *rotation)
        return k + 1, abs(beta[k + 1]), V, R.at[k, :].set(row), beta, next_givens

    V, R = _krylov(unit, restart), jnp.eye(restart, restart + 1, dtype=dtype)
    givens = jnp.zeros((restart, 2), dtype)
    beta = jnp.zeros((restart + 1,), dtype).at[0].set(norm.astype(dtype))
    _, _, V, R, beta, _ = while_loop(goes_on, step, (0, norm, V, R, beta, givens))
    y = solve_triangular(R[:, :-1].T, beta[:-1])
    x = _add(x, _combine(tree_map(lambda X: X[..., :-1], V), y))
    return x, *_residual(A, b, x, M)


def _gmres(A, b, x0, atol, ptol, restart, maxiter, M, method):
    def goes_on(state):
        _, k, _, norm = state
        return (k < maxiter) & (norm > atol)

    def step(state):
        x, k, unit, norm = state
        x, unit, norm = method(A, b, x, unit, norm, ptol, restart, M)
        return x, k + 1, unit, norm

    unit, norm = _residual(A, b, x0, M)
    return while_loop(goes_on, step, (x0, 0, unit, norm))[0]


def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Any = None,
    solve_method: str = "batched",
) -> tuple[Any, Any]:
    """Solves `A x = b` for any nonsingular `A` by generalized minimal residuals.

    Returns `(x, 0)`, or `(x, -1)` if x has NaNs. Restarts after `restart` vectors, at most `maxiter` times.
    `solve_method` "incremental" checks the residual after each vector, "batched" after all of them. The other arguments
    are those of `cg`. The method is that of Saad and Schultz, 1986.

    Example:
      >>> x, _ = jax.scipy.sparse.linalg.gmres(lambda x: 2.0 * x, jnp.array([2.0, 4.0]))
      >>> x.round(3)
      Array([1., 2.], dtype=float32)
    """
    A, b, x0, maxiter, M = _prepared("gmres", A, b, x0, maxiter, M)
    methods = {"incremental": _gmres_incremental, "batched": _gmres_batched}
    if solve_method not in methods:
        raise ValueError(f"gmres: invalid solve_method {solve_method}, must be either 'incremental' or 'batched'")
    restart = min(restart, sum(x.size for x in tree_leaves(b)))
    b_norm = _norm(b)
    atol = jnp.maximum(tol * b_norm, atol)
    ptol = _norm(M(b)) * jnp.minimum(1.0, atol / b_norm)

    def solver(A, b):
        return _gmres(A, b, x0, atol, ptol, restart, maxiter, M, methods[solve_method])

    x = custom_linear_solve(A, b, solve=solver, transpose_solve=solver)
    return x, jnp.where(jnp.isnan(_norm(x)), -1, 0)


__all__, __dir__ = documented(__name__, "bicgstab cg gmres")
