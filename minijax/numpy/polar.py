"""The polar decomposition, `jax.lax.linalg.qdwh`."""

import functools
import math
from typing import Any

import numpy as np

from minijax.composed.index_in_dim import dynamic_index_in_dim
from minijax.composed.linalg.matrices import adjoint, transposed, typed
from minijax.composed.selecting import where
from minijax.dispatch.jitted import jitted
from minijax.higher.fori_loop import fori_loop
from minijax.higher.while_loop import while_loop
from minijax.ir.types import typeof
from minijax.lax import linalg as lax_linalg
from minijax.numpy import creation, ufuncs
from minijax.numpy.linalg import norm
from minijax.numpy.products import matmul_highest
from minijax.primitives import counting, elementwise as lax, structural
from minijax.primitives.dynamic_slice import dynamic_slice, dynamic_update_slice
from minijax.primitives.families import is_complex

_LARGEST_CHOLESKY_WEIGHT = 100.0


def _weights(eps: float, max_iterations: int) -> tuple[list, list]:
    """The weights of the steps that QR computes, and of those, better conditioned, that Cholesky does.

    They are the best for singular values from `low` to 1 (Nakatsukasa, Bai & Gygi 2010).
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


def _within(shape: tuple, m: Any, n: Any, x: Any, other: Any) -> Any:
    """`x` in the first m rows and n columns, `other` elsewhere."""
    row = ufuncs.less(counting.broadcasted_iota(np.int32, shape, 0), m)
    column = ufuncs.less(counting.broadcasted_iota(np.int32, shape, 1), n)
    return where(ufuncs.logical_and(row, column), x, other)


def _step_by_qr(u: Any, weights: Any, m: Any, n: Any) -> Any:
    rows, columns = typeof(u).shape
    a, c, b = weights
    scaled, unit = lax.mul(c, u), creation.eye(columns, dtype=typeof(u).dtype)
    stacked = structural.pad(scaled, np.zeros((), typeof(u).dtype)[()], ((0, columns, 0), (0, 0, 0)))
    q, _ = lax_linalg.qr(dynamic_update_slice(stacked, unit, (m, 0)), full_matrices=False)
    upper = _within((rows, columns), m, n, q[:rows], 0)
    lower = _within((columns, columns), n, n, dynamic_slice(q, (m, 0), (columns, columns)), 0)
    lower = adjoint(lower)
    return lax.add(lax.mul(b, u), lax.mul(a, matmul_highest(upper, lower)))


def _step_by_cholesky(u: Any, weights: Any, n: Any) -> Any:
    columns = typeof(u).shape[1]
    a, c, b = weights
    x = ufuncs.multiply(c, matmul_highest(adjoint(u), u))
    x = ufuncs.add(x, creation.eye(columns, dtype=typeof(u).dtype))
    unit = creation.eye(columns, dtype=typeof(u).dtype)
    factor = lax_linalg.cholesky(_within((columns, columns), n, n, x, unit), symmetrize_input=False)
    z = lax_linalg.triangular_solve(factor, transposed(u), left_side=True, lower=True, conjugate_a=True)
    z = lax.conj(z) if is_complex(z) else z
    z = lax_linalg.triangular_solve(factor, z, left_side=True, lower=True, transpose_a=True, conjugate_a=True)
    z = adjoint(z)
    return ufuncs.add(ufuncs.multiply(b, u), ufuncs.multiply(a, z))


@jitted("qdwh", static=("max_iterations", "eps"))
def _qdwh(x: Any, m: Any, n: Any, max_iterations: int, eps: float) -> tuple:
    if m is not None:
        x = _within(typeof(x).shape, m, n, x, 0)
    else:
        m, n = typeof(x).shape
    one_norm, infinity_norm = norm(x, 1), norm(x, np.inf)
    scale = lax.mul(lax.rsqrt(one_norm), lax.rsqrt(infinity_norm))
    u = ufuncs.multiply(x, typed(where(ufuncs.equal(one_norm, 0), 1, scale), x))
    tolerance = ufuncs.cbrt(5 * eps)
    by_qr, by_cholesky = _weights(eps, max_iterations)

    def moved(u, before):
        return ufuncs.greater(norm(ufuncs.subtract(u, before)), tolerance)

    def step_by_qr(k, state, weights):
        return _step_by_qr(state[0], dynamic_index_in_dim(weights, k, 0, False), m, n), True

    def step_by_cholesky(k, state, weights):
        u = _step_by_cholesky(state[0], dynamic_index_in_dim(weights, k, 0, False), n)
        return u, moved(u, state[0])

    def repeated(step, steps, u):
        if not steps:
            return u, True
        weights = typed(creation.array(np.array(steps)), x)
        return fori_loop(0, len(steps), functools.partial(step, weights=weights), (u, True))

    u, _ = repeated(step_by_qr, by_qr, u)
    u, settling = repeated(step_by_cholesky, by_cholesky, u)

    def again(state):
        return ufuncs.logical_and(state[2], ufuncs.less(state[0], max_iterations))

    def halley_step(state):
        k, before, _ = state
        u = _step_by_cholesky(before, (8 / 3, 3, 1 / 3), n)
        settling = moved(u, before)
        return k + 1, u, settling

    done = len(by_qr) + len(by_cholesky)
    count, u, settling = while_loop(again, halley_step, (done, u, settling))
    # One step of Newton and Schulz brings u nearer to orthonormal.
    u = ufuncs.subtract(1.5 * u, matmul_highest(0.5 * u, matmul_highest(adjoint(u), u)))
    h = matmul_highest(adjoint(u), x)
    return u, (h + adjoint(h)) / 2, count, ufuncs.logical_not(settling)


def qdwh(
    x: Any,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple:
    """The polar decomposition x = u h of a matrix with no fewer rows than columns: u with orthonormal
    columns, Hermitian h without negative eigenvalues, the number of iterations, whether they converged.

    By weighted Halley iterations (Nakatsukasa, Bai & Gygi 2010), at most 10 by default. Only the first rows
    and columns, as many as `dynamic_shape` says, count; the others come out as 0.
    """
    rows, columns = typeof(x).shape
    if rows < columns:
        raise ValueError(f"qdwh: the input matrix of shape M x N must have M >= N, got {rows} x {columns}.")
    dtype = typeof(x).dtype
    if not np.issubdtype(dtype, np.inexact):
        raise ValueError(f"qdwh: data type {dtype.name} of x is not inexact")
    eps = float(np.finfo(dtype).eps) if eps is None else eps
    m, n = dynamic_shape or (None, None)
    return _qdwh(x, m, n, 10 if max_iterations is None else max_iterations, eps)
