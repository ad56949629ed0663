"""Eigenvalues and eigenvectors of Hermitian tridiagonal matrices, by bisection and inverse iteration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax import random
from minijax.base import dtypes
from minijax.composed.linalg.triangular import tridiagonal_solve
from minijax.dispatch.jitted import jitted
from minijax.higher.fori_loop import fori_loop
from minijax.higher.while_loop import while_loop
from minijax.ir.types import typeof
from minijax.primitives.dynamic_slice import dynamic_slice_in_dim, dynamic_update_slice_in_dim
from minijax.primitives.families import is_complex
from minijax.run.arrays.array import Array, ArrayLike

_UNROLLED = 16


def _count_below(alpha: Any, squares: Any, least: Any, first: Any, x: Any) -> Any:
    """The number of eigenvalues below each x: the number of negative pivots of the matrix minus x (Sturm)."""
    n = typeof(alpha).shape[0]
    zeros, ones = jnp.zeros(typeof(x).shape, np.int32), jnp.ones(typeof(x).shape, np.int32)
    q = alpha[0] - x
    count = jnp.where(q < 0, ones, zeros)
    q = jnp.where(alpha[0] == x, first, q)

    def step(i, q, count):
        q = alpha[i] - squares[i - 1] / q - x
        count = jnp.where(q <= least, count + 1, count)
        return jnp.where(q <= least, jnp.minimum(q, -least), q), count

    peeled = (n - 1) % _UNROLLED + 1
    for i in range(1, peeled):
        q, count = step(i, q, count)

    def steps(state):
        start, q, count = state
        for j in range(_UNROLLED):
            q, count = step(start + j, q, count)
        return start + _UNROLLED, q, count

    return while_loop(lambda state: state[0] < n, steps, (peeled, q, count))[2]


def _bisect(alpha: Any, sizes: Any, squares: Any, targets: Any, tol: Any) -> Any:
    """The eigenvalues of the indices `targets`, by bisection from Gershgorin's bounds."""
    dtype, n, slack = typeof(alpha).dtype, typeof(alpha).shape[0], 2.1
    info = dtypes.finfo(dtype)
    radii = jnp.concatenate([sizes[:1], sizes[:-1] + sizes[1:], sizes[-1:]])
    largest, smallest = jnp.max(alpha + radii), jnp.min(alpha - radii)
    norm = jnp.maximum(jnp.abs(smallest), jnp.abs(largest))
    least = (info.tiny * (1 + info.eps)) * jnp.maximum(1, jnp.max(squares))
    first = jnp.square(info.eps * sizes[0])
    width = info.eps * norm
    width = width if tol is None else jnp.maximum(tol, width)
    targets = targets()
    margin = jnp.array(n, dtype) * slack * info.eps * norm
    lower = smallest - margin - 2 * slack * least
    upper = largest + margin + slack * least
    shape = typeof(targets).shape
    lower, upper = jnp.broadcast_to(lower, shape), jnp.broadcast_to(upper, shape)
    middle = 0.5 * (upper + lower)
    least, first = jnp.broadcast_to(least, shape), jnp.broadcast_to(first, shape)

    def again(state):
        i, lower, _, upper = state
        return jnp.logical_and(i < info.nmant + 1, width < jnp.max(upper - lower))

    def halve(state):
        i, lower, middle, upper = state
        counts = _count_below(alpha, squares, least, first, middle)
        lower = jnp.where(counts <= targets, middle, lower)
        upper = jnp.where(counts > targets, middle, upper)
        middle = 0.5 * (lower + upper)
        return i + 1, lower, middle, upper

    return while_loop(again, halve, (0, lower, middle, upper))[2]


def _clusters(values: Any, capacity: int) -> tuple:
    """(starts, ends, count) of the runs of close eigenvalues."""
    gaps, size = values[1:] - values[:-1], jnp.maximum(jnp.abs(values[0]), jnp.abs(values[-1]))
    close = gaps < jnp.sqrt(dtypes.finfo(typeof(values).dtype).eps) * size
    before = jnp.pad(close, (1, 0), constant_values=False)
    after = jnp.pad(close, (0, 1), constant_values=False)
    starts, ends = ~before & after, before & ~after
    first = jnp.nonzero(starts, size=capacity)[0]
    return first, jnp.nonzero(ends, size=capacity)[0] + 1, jnp.sum(starts)


def _orthonormal_rows(start: Any, end: Any, at: Any, x: Any) -> Any:
    """`x` with the rows from `start` to `end` made orthonormal."""
    count, size = typeof(x).shape[0], end - start
    rows = dynamic_slice_in_dim(jnp.pad(x, ((0, count), (0, 0))), start, count, axis=0)
    inside = (at < size).astype(typeof(x).dtype)
    q, _ = jnp.linalg.qr((rows * inside[:, None]).T)
    rows = q.T * inside[:, None]
    empty = jnp.zeros((2 * count, typeof(x).shape[1]), typeof(x).dtype)
    rows = dynamic_update_slice_in_dim(empty, rows, start, axis=0)[:count]
    return jnp.where(((at >= start) & (at < end))[:, None], rows, x)


def _eigenvectors(alpha: Any, beta: Any, values: Any, key: Any) -> Any:
    """Inverse iteration from random vectors; those of close eigenvalues are orthogonalized."""
    n, count, dtype = typeof(alpha).shape[0], typeof(values).shape[0], typeof(beta).dtype
    lower = jnp.pad(jnp.conj(beta), (1, 0))
    upper = jnp.pad(beta, (0, 1))
    firsts, lasts, clusters = _clusters(values, count // 2 + 1)
    at = jnp.arange(count)
    v = random.normal(key, (count, n), dtypes.to_floating_dtype(dtype)).astype(dtype)
    v = v / jnp.linalg.norm(v, axis=1, keepdims=True).astype(dtype)
    diagonal = alpha[None, :] - values[:, None]
    lower = jnp.broadcast_to(lower[None, :], (count, n))
    upper = jnp.broadcast_to(upper[None, :], (count, n))
    float_dtype = typeof(values).dtype

    def again(state):
        i, _, length, before = state
        return jnp.logical_and(i < 5, jnp.any(length >= 1.1 * before))

    def iterate(state):
        i, v, length, _ = state
        v = tridiagonal_solve(lower, diagonal.astype(dtype), upper, v[..., None], perturb_singular=True)[..., 0]
        grown = jnp.linalg.norm(v, axis=1, keepdims=True)
        v = v / grown.astype(dtype)
        after = jnp.squeeze(grown, 1)
        step = lambda c, v: _orthonormal_rows(firsts[c], lasts[c], at, v)  # noqa: E731
        v = fori_loop(0, clusters, step, v)
        return i + 1, v, after, length

    ones, zeros = jnp.ones(count, float_dtype), jnp.zeros(count, float_dtype)
    return while_loop(again, iterate, (0, v, ones, zeros))[1].T


@jitted("eigh_tridiagonal", static=("eigvals_only", "select", "select_range"))
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: Array | None = None,
) -> Any:
    """Computes eigenvalues of a real symmetric tridiagonal matrix by bisection, and its eigenvectors.

    `d` is the diagonal and `e` the diagonal beside it. `select` is "a" for all eigenvalues, or "i" for those whose
    indices are in `select_range`, both ends included; "v" is not supported. `tol` is the absolute tolerance. `key` is
    that of the random vectors from which eigenvectors are found. Arrays are in single or double precision.

    Example:
      >>> jax.scipy.linalg.eigh_tridiagonal(jnp.array([1.0, 3.0]), jnp.zeros(1), eigvals_only=True).round(3)
      Array([1.       , 3.0000002], dtype=float32)
    """
    d, e = jnp.asarray(d), jnp.asarray(e)
    dtype = typeof(d).dtype
    if dtype != typeof(e).dtype:
        raise TypeError(
            "eigh_tridiagonal: diagonal and off-diagonal values must have same dtype, "
            f"got {dtype} and {typeof(e).dtype}"
        )
    n = typeof(d).shape[0]
    if dtypes.to_floating_dtype(dtype) not in (np.float32, np.float64) or dtype.kind not in "fc":
        raise TypeError(f"eigh_tridiagonal: Only float32 and float64 inputs are supported, got {dtype}.")
    targets = _selected(select, select_range, n)
    if not eigvals_only and key is None:
        key = random.key(42)
    alpha = jnp.real(d)
    if n <= 1:
        return alpha if eigvals_only else (alpha, jnp.eye(n, dtype=dtype))
    if is_complex(e):
        squares = jnp.real(e * jnp.conj(e))
        sizes = jnp.sqrt(squares)
    else:
        sizes, squares = jnp.abs(e), jnp.square(e)
    values = _bisect(alpha, sizes, squares, targets, tol)
    return values if eigvals_only else (values, _eigenvectors(alpha, e, values, key))


def _selected(select: str, bounds: tuple | None, n: int) -> Callable:
    """A function that returns the indices of the requested eigenvalues."""
    if select not in ("a", "i", "v"):
        raise ValueError(f"eigh_tridiagonal: select must have a value in {{'a', 'i', 'v'}}, got {select!r}.")
    if select == "v":
        raise NotImplementedError("eigh_tridiagonal(..., select='v') is not implemented")
    if select == "a":
        return lambda: jnp.arange(n, dtype=np.int32)
    if bounds is None:
        raise ValueError("eigh_tridiagonal: for select='i', select_range must be specified.")
    if bounds[0] > bounds[1]:
        raise ValueError("eigh_tridiagonal: Got empty index range in select_range.")
    return lambda: jnp.arange(bounds[0], bounds[1] + 1, dtype=np.int32)
