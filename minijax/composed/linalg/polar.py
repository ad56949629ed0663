"""The polar decomposition, `jax.lax.linalg.qdwh`."""

import functools
import math
from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.composed.arrays.index_in_dim import dynamic_index_in_dim
from minijax.composed.arrays.selecting import where
from minijax.composed.linalg.lu import qr
from minijax.composed.linalg.matrices import adjoint, dot_highest, symmetrized, transposed, typed
from minijax.composed.linalg.triangular import cholesky, triangular_solve
from minijax.dispatch.jitted import jitted
from minijax.higher.fori_loop import fori_loop
from minijax.higher.while_loop import while_loop
from minijax.ir.types import typeof
from minijax.primitives import counting, elementwise as lax, moving, reduce, structural
from minijax.primitives.convert import convert
from minijax.primitives.dynamic_slice import dynamic_slice, dynamic_update_slice
from minijax.primitives.families import is_complex, scalar_like
from minijax.primitives.promote import promote_dtypes

_LARGEST_CHOLESKY_WEIGHT = 100.0


def _weights(eps: float, max_iterations: int) -> tuple[list, list]:
    """The weights of the steps computed by QR, and of the better conditioned steps computed by Cholesky.

    They are optimal for singular values from `low` to 1 (Nakatsukasa, Bai & Gygi 2010).
    """
    by_qr, by_cholesky, low = [], [], eps
    while low + 5 * eps < 1 and len(by_qr) + len(by_cholesky) < max_iterations:
        square = low * low
        d = (4 * (1 / square - 1) / square) ** (1 / 3)
        root = math.sqrt(1 + d)
        a = root + math.sqrt(8 - 4 * d + 8 * (2 - square) / (square * root)) / 2
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        if c > _LARGEST_CHOLESKY_WEIGHT:
            by_qr.append(((a - b / c) / math.sqrt(c), math.sqrt(c), b / c))
        else:
            by_cholesky.append((a - b / c, c, b / c))
        low = low * (a + b * square) / (1 + c * square)
    return by_qr, by_cholesky


def _identity(n: int, dtype: Any) -> Any:
    row, column = (counting.broadcasted_iota(dtypes.default_int_dtype(), (n, n), i) for i in (0, 1))
    return convert(lax.eq(lax.add(row, scalar_like(row, 0)), column), dtype)


def _scaled(c: Any, x: Any) -> Any:
    return lax.mul(*promote_dtypes(c, x))


@jitted("norm", static=("axis",))
def norm(x: Any, axis: int | None = None) -> Any:
    """A matrix's Frobenius norm, or the largest sum of absolute values along an axis (axis 0: the norm of order 1)."""
    if axis is None:
        squares = lax.real(lax.mul(x, lax.conj(x))) if is_complex(x) else lax.mul(x, x)
        return lax.sqrt(_total(squares, (0, 1)))
    largest = reduce.reduce_max(_total(lax.abs(x), (axis,)), (0,))
    return lax.max(scalar_like(largest, 0), largest)


def _total(x: Any, axes: tuple[int, ...]) -> Any:
    """Sums over axes, accumulated in float32 if the precision of `x` is lower."""
    wide = convert(x, np.dtype(np.float32)) if typeof(x).dtype.itemsize < 4 else x
    return typed(moving.sum_axes(wide, axes), x)


def within(shape: tuple, m: Any, n: Any, x: Any, other: Any) -> Any:
    """`x` in the first m rows and n columns, `other` elsewhere."""
    places = (counting.broadcasted_iota(np.int32, shape, i) for i in (0, 1))
    row, column = (lax.lt(*promote_dtypes(i, count)) for i, count in zip(places, (m, n), strict=True))
    return where(lax.bitwise_and(row, column), x, other)


def _step_by_qr(u: Any, weights: Any, m: Any, n: Any) -> Any:
    rows, columns = typeof(u).shape
    a, c, b = weights
    scaled, unit = lax.mul(c, u), _identity(columns, typeof(u).dtype)
    stacked = structural.pad(scaled, scalar_like(u, 0), ((0, columns, 0), (0, 0, 0)))
    q, _ = qr(dynamic_update_slice(stacked, unit, (m, 0)), full_matrices=False)
    upper = within((rows, columns), m, n, q[:rows], 0)
    lower = within((columns, columns), n, n, dynamic_slice(q, (m, 0), (columns, columns)), 0)
    lower = adjoint(lower)
    return lax.add(lax.mul(b, u), lax.mul(a, dot_highest(upper, lower)))


def _step_by_cholesky(u: Any, weights: Any, n: Any) -> Any:
    columns = typeof(u).shape[1]
    a, c, b = weights
    x = lax.add(_scaled(c, dot_highest(adjoint(u), u)), _identity(columns, typeof(u).dtype))
    unit = _identity(columns, typeof(u).dtype)
    factor = cholesky(within((columns, columns), n, n, x, unit), symmetrize_input=False)
    z = triangular_solve(factor, transposed(u), left_side=True, lower=True, conjugate_a=True)
    z = lax.conj(z) if is_complex(z) else z
    z = triangular_solve(factor, z, left_side=True, lower=True, transpose_a=True, conjugate_a=True)
    z = adjoint(z)
    return lax.add(_scaled(b, u), _scaled(a, z))


@jitted("qdwh", static=("max_iterations", "eps"))
def _qdwh(x: Any, m: Any, n: Any, max_iterations: int, eps: float) -> tuple:
    if m is not None:
        x = within(typeof(x).shape, m, n, x, 0)
    else:
        m, n = typeof(x).shape
    one_norm, infinity_norm = norm(x, 0), norm(x, 1)
    scale = lax.mul(lax.rsqrt(one_norm), lax.rsqrt(infinity_norm))
    u = lax.mul(x, typed(where(lax.eq(one_norm, scalar_like(one_norm, 0)), 1, scale), x))
    tolerance = lax.cbrt(5 * eps)
    by_qr, by_cholesky = _weights(eps, max_iterations)

    def has_changed(u, before):
        return lax.gt(*promote_dtypes(norm(lax.sub(u, before)), tolerance))

    def step_by_qr(k, state, weights):
        return _step_by_qr(state[0], dynamic_index_in_dim(weights, k, 0, False), m, n), True

    def step_by_cholesky(k, state, weights):
        u = _step_by_cholesky(state[0], dynamic_index_in_dim(weights, k, 0, False), n)
        return u, has_changed(u, state[0])

    def repeated(step, steps, u):
        if not steps:
            return u, True
        weights = typed(moving.as_array_or_constant(np.array(steps, dtypes.default_float_dtype())), x)
        return fori_loop(0, len(steps), functools.partial(step, weights=weights), (u, True))

    u, _ = repeated(step_by_qr, by_qr, u)
    u, settling = repeated(step_by_cholesky, by_cholesky, u)

    def should_continue(state):
        return lax.bitwise_and(state[2], convert(lax.lt(state[0], max_iterations), np.dtype(bool)))

    def halley_step(state):
        k, before, _ = state
        u = _step_by_cholesky(before, (8 / 3, 3, 1 / 3), n)
        settling = has_changed(u, before)
        return k + 1, u, settling

    done = len(by_qr) + len(by_cholesky)
    count, u, settling = while_loop(should_continue, halley_step, (done, u, settling))
    # One Newton-Schulz step makes the columns of u closer to orthonormal.
    u = lax.sub(_scaled(1.5, u), dot_highest(_scaled(0.5, u), dot_highest(adjoint(u), u)))
    h = dot_highest(adjoint(u), x)
    return u, symmetrized(h), count, lax.bitwise_not(settling)


def qdwh(
    x: Any,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple:
    """Computes the polar decomposition x = u h of a matrix with no fewer rows than columns.

    Returns u with orthonormal columns, Hermitian h without negative eigenvalues, the number of iterations, and whether
    they converged. It uses weighted Halley iterations (Nakatsukasa, Bai & Gygi 2010), at most 10 by default.
    `dynamic_shape` is the number of leading rows and columns to use; the others are 0 in the results.

    Example:
        >>> u, h, iterations, converged = jax.lax.linalg.qdwh(jnp.array([[0.0, -2.0], [1.0, 0.0]]))
        >>> u.round(3) + 0, h.round(3) + 0, bool(converged)
        (Array([[ 0., -1.],
               [ 1.,  0.]], dtype=float32), Array([[1., 0.],
               [0., 2.]], dtype=float32), True)
    """
    rows, columns = typeof(x).shape
    if rows < columns:
        raise ValueError(f"qdwh: the input matrix of shape M x N must have M >= N, got {rows} x {columns}.")
    dtype = typeof(x).dtype
    if not dtypes.issubdtype(dtype, np.inexact):
        raise ValueError(f"qdwh: data type {dtype.name} of x is not inexact")
    eps = float(dtypes.finfo(dtype).eps) if eps is None else eps
    m, n = dynamic_shape or (None, None)
    return _qdwh(x, m, n, 10 if max_iterations is None else max_iterations, eps)
