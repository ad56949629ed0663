"""Solves linear systems, with the factorizations for it, and computes determinants and inverses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import minijax.numpy as jnp
from minijax.api.vmap import vmap
from minijax.base import errors
from minijax.composed.linalg import lu as lu_room
from minijax.composed.linalg.matrices import adjoint
from minijax.dispatch.jitted import jitted
from minijax.higher.custom_solve import linear_solve
from minijax.ir.types import typeof
from minijax.lax import linalg as lax_linalg
from minijax.numpy.vectorizing import vectorize
from minijax.primitives.convert import stop_gradient
from minijax.primitives.promote import check_arraylike, promote_dtypes_inexact
from minijax.run.arrays.array import Array, ArrayLike

_ASSUMPTIONS = ("gen", "sym", "her", "pos")
_TRANSPOSES = {0: 0, 1: 1, 2: 2, "N": 0, "T": 1, "C": 2}


# ---- Cholesky ---------------------------------------------------------------------------------------


@jitted("_cholesky", static=("lower",))
def _cholesky(a: Any, lower: bool) -> Any:
    (a,) = promote_dtypes_inexact(jnp.asarray(a))
    factor = lax_linalg.cholesky(a if lower else adjoint(a), symmetrize_input=False)
    return factor if lower else adjoint(factor)


def cholesky(a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Computes the Cholesky factor of Hermitian positive definite matrices in the last two axes.

    It is upper triangular unless `lower`. A matrix that is not positive definite gives NaN, where SciPy raises.
    `overwrite_a` and `check_finite` have no effect.

    Example:
      >>> jax.scipy.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
      Array([[2., 1.],
             [0., 2.]], dtype=float32)
    """
    if a is not None and not isinstance(a, (list, tuple)):
        check_arraylike("cholesky", a)
    if not lower and jnp.ndim(a) < 2:
        raise ValueError(f"cholesky: a must have at least two axes, got shape {jnp.shape(a)}.")
    return _cholesky(a, lower)


def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Any, bool]:
    """Computes a Cholesky factor for `cho_solve`, of Hermitian matrices in the last two axes.

    Returns a pair: the factor, and `lower`. Unlike SciPy's, the factor has zeros in its other triangle. `overwrite_a`
    and `check_finite` have no effect.

    Example:
      >>> factor, lower = jax.scipy.linalg.cho_factor(jnp.array([[4.0, 0.0], [0.0, 9.0]]))
      >>> factor
      Array([[2., 0.],
             [0., 3.]], dtype=float32)
    """
    return cholesky(a, lower), lower


def _are_vectors(name: str, a: Any, b: Any) -> bool:
    """Returns whether `b` is one vector, or a batch of vectors, one for each matrix of `a` (deprecated)."""
    shape, right = typeof(a).shape, typeof(b).shape
    batched = len(shape) == len(right) + 1 and shape[-1] == right[-1]
    if batched and len(right) > 1:
        errors.warn(
            f"jax.scipy.linalg.{name}: batched 1D solves with b.ndim > 1 are deprecated, and in the future "
            "will be treated as batched 2D solves. Use b[..., None] and .squeeze(-1) instead.",
            FutureWarning,
        )
    return batched or len(right) == 1


def _by_columns(solve: Callable, vectors: bool, *args: Any) -> Any:
    """Applies `solve(matrix, *others, b)` over broadcast leading axes; `vectors`: whether `b` is a vector."""
    between, core = "(n)," * (len(args) - 2), "(n)" if vectors else "(n,m)"
    return vectorize(solve, signature=f"(n,n),{between}{core}->{core}")(*args)


def _solve_by_triangle(a: Any, b: Any, vectors: bool, **how: Any) -> Any:
    return _by_columns(lambda a, b: lax_linalg.triangular_solve(a, b, left_side=True, **how), vectors, a, b)


@jitted("_cho_solve", static=("lower",))
def _cho_solve(c: Any, b: Any, lower: bool) -> Any:
    c, b = promote_dtypes_inexact(jnp.asarray(c), jnp.asarray(b))
    vectors = _are_vectors("cho_solve", c, b)
    for transpose in (not lower, lower):
        b = _solve_by_triangle(c, b, vectors, lower=lower, transpose_a=transpose, conjugate_a=transpose)
    return b


def cho_solve(
    c_and_lower: tuple[Any, bool], b: ArrayLike, overwrite_b: bool = False, check_finite: bool = True
) -> Array:
    """Solves systems of linear equations by a Cholesky factorization.

    `c_and_lower` is the result of `cho_factor`. `overwrite_b` and `check_finite` have no effect.

    Example:
      >>> factor = jax.scipy.linalg.cho_factor(jnp.array([[4.0, 0.0], [0.0, 2.0]]))
      >>> jax.scipy.linalg.cho_solve(factor, jnp.array([8.0, 6.0]))
      Array([2.       , 2.9999998], dtype=float32)
    """
    c, lower = c_and_lower
    return _cho_solve(c, b, lower)


# ---- LU ---------------------------------------------------------------------------------------------


@jitted("lu_factor", static=("overwrite_a", "check_finite"))
def lu_factor(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Array]:
    """Computes LU factorizations for `lu_solve`, of matrices in the last two axes.

    Returns a pair: both factors in one matrix, and the pivots as int32. `overwrite_a` and `check_finite` have no
    effect.

    Example:
      >>> factor, pivots = jax.scipy.linalg.lu_factor(jnp.array([[0.0, 1.0], [2.0, 3.0]]))
      >>> pivots
      Array([1, 1], dtype=int32)
    """
    (a,) = promote_dtypes_inexact(jnp.asarray(a))
    factors, pivots, _ = lax_linalg.lu(a)
    return factors, pivots


@jitted("lu_solve", static=("trans", "overwrite_b", "check_finite"))
def lu_solve(
    lu_and_piv: tuple, b: ArrayLike, trans: int = 0, overwrite_b: bool = False, check_finite: bool = True
) -> Array:
    """Solves systems of linear equations by an LU factorization.

    `lu_and_piv` is the result of `lu_factor`. `trans` is 0 for `a x = b`, 1 for the transpose of `a`, 2 for its
    conjugate transpose. `overwrite_b` and `check_finite` have no effect.

    Example:
      >>> factors = jax.scipy.linalg.lu_factor(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
      >>> jax.scipy.linalg.lu_solve(factors, jnp.array([2.0, 8.0]))
      Array([1., 2.], dtype=float32)
    """
    factors, pivots = lu_and_piv
    if trans not in (0, 1, 2):
        raise ValueError(f"lu_solve: 'trans' value must be 0, 1, or 2, got {trans}")
    factors, b = promote_dtypes_inexact(jnp.asarray(factors), jnp.asarray(b))
    permutation = lax_linalg.lu_pivots_to_permutation(pivots, typeof(factors).shape[-1])
    solve = lambda factors, order, b: lu_room.lu_solve(factors, order, b, trans)  # noqa: E731
    return _by_columns(solve, _are_vectors("lu_solve", factors, b), factors, permutation, b)


# ---- systems ----------------------------------------------------------------------------------------


def _check_system(a: Any, b: Any) -> None:
    shape, right = typeof(a).shape, typeof(b).shape
    n = len(shape)
    if n < 2 or not 0 <= n - len(right) <= 1 or shape[-1] != shape[-2] or right[: n - 1] != shape[:-1]:
        raise ValueError(
            "The arguments to solve must have shapes a=[..., m, m] and b=[..., m, k] or b=[..., m]; "
            f"got a={shape} and b={right}"
        )


@jitted("_solve", static=("assume_a", "lower"))
def _solve(a: Any, b: Any, assume_a: str, lower: bool) -> Any:
    if assume_a != "pos":
        return jnp.linalg.solve(a, b)
    a, b = promote_dtypes_inexact(jnp.asarray(a), jnp.asarray(b))
    _check_system(a, b)
    factor = cholesky(stop_gradient(a), lower)

    def single(b):
        matvec = lambda x: lu_room.apply(a, x)  # noqa: E731
        return linear_solve(matvec, b, lambda _, x: _cho_solve(factor, x, lower), symmetric=True)

    if typeof(b).ndim == typeof(a).ndim - 1:
        return single(b)
    return vmap(single, typeof(b).ndim - 1, typeof(b).ndim - 1)(b)


def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Array:
    """Solves systems of linear equations `a x = b` for square matrices.

    `assume_a` is "gen", "sym", "her" or "pos"; for "pos" the matrix is factored by Cholesky, else by LU. With `lower`,
    "pos" reads the lower triangle. A singular matrix gives infinities or NaN, where SciPy raises. Other arguments have
    no effect.

    Example:
      >>> jax.scipy.linalg.solve(jnp.array([[2.0, 0.0], [1.0, 4.0]]), jnp.array([2.0, 9.0]))
      Array([1., 2.], dtype=float32)
    """
    if assume_a not in _ASSUMPTIONS:
        raise ValueError(f"solve: Expected assume_a to be one of {list(_ASSUMPTIONS)}; got {assume_a!r}")
    return _solve(a, b, assume_a, lower)


@jitted("_solve_triangular", static=("trans", "lower", "unit_diagonal"))
def _solve_triangular(a: Any, b: Any, trans: int | str, lower: bool, unit_diagonal: bool) -> Any:
    if trans not in _TRANSPOSES:
        raise ValueError(f"solve_triangular: Invalid 'trans' value {trans}")
    a, b = promote_dtypes_inexact(jnp.asarray(a), jnp.asarray(b))
    kind = _TRANSPOSES[trans]
    how = dict(lower=lower, transpose_a=kind > 0, conjugate_a=kind == 2, unit_diagonal=unit_diagonal)
    return _solve_by_triangle(a, b, _are_vectors("solve_triangular", a, b), **how)


def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: Any = None,
    check_finite: bool = True,
) -> Array:
    """Solves a system of linear equations whose matrix is triangular.

    Args:
      a: matrices in the last two axes; only one triangle is read.
      b: right-hand sides: a vector, or columns of matrices. Leading axes are those of `a`.
      trans: 0 or "N" to solve `a x = b`, 1 or "T" for the transpose of `a`, 2 or "C" for its conjugate transpose.
      lower: whether `a` is lower triangular.
      unit_diagonal: whether the diagonal is taken to be ones. It is not read then.
      overwrite_b: has no effect, like `debug` and `check_finite`.
      debug: has no effect.
      check_finite: has no effect: values are not checked.

    Returns:
      The solution, of the shape of `b` and of the floating dtype that both promote to.

    Differences from SciPy:
      A singular matrix is not an error: the result has infinities or NaN. Batches are solved at once. The result is
      differentiable in both arguments.

    See also: `jax.lax.linalg.triangular_solve`, `jax.scipy.linalg.solve`.

    Example:
      >>> a = jnp.array([[2.0, 0.0], [1.0, 4.0]])
      >>> jax.scipy.linalg.solve_triangular(a, jnp.array([2.0, 9.0]), lower=True)
      Array([1., 2.], dtype=float32)
    """
    return _solve_triangular(a, b, trans, lower, unit_diagonal)


def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Computes inverses of square matrices in the last two axes.

    A singular matrix gives infinities or NaN, where SciPy raises. `overwrite_a` and `check_finite` have no effect.

    Example:
      >>> jax.scipy.linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
      Array([[0.5 , 0.  ],
             [0.  , 0.25]], dtype=float32)
    """
    return jnp.linalg.inv(a)


def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Computes determinants of matrices in the last two axes.

    `overwrite_a` and `check_finite` have no effect.

    Example:
      >>> jax.scipy.linalg.det(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
      Array(-2., dtype=float32)
    """
    return jnp.linalg.det(a)
