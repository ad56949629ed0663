"""Matrices whose rows are windows of a vector, and other matrices made of one or two vectors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import minijax.numpy as jnp
from minijax.dispatch.jitted import jitted
from minijax.ir.types import typeof
from minijax.numpy.vectorizing import vectorize
from minijax.primitives.conv import conv_general_dilated_patches
from minijax.primitives.dot import Precision
from minijax.primitives.families import scalar_like
from minijax.primitives.promote import arrays, check_arraylike, promote_dtypes, promote_dtypes_inexact
from minijax.primitives.structural import concatenate, pad, slice_in_dim
from minijax.run.arrays.array import Array, ArrayLike


def _vectorized(signature: str) -> Callable:
    return lambda core: wraps(core)(vectorize(core, signature=signature))


def _windows(head: Any, tail: Any, rising: bool = True) -> Any:
    """Row i holds `len(tail)` elements of [*head, *tail[1:]] from the i-th on. Unless `rising`, head and the
    order of the rows are reversed.
    """
    (m,), (n,) = typeof(head).shape, typeof(tail).shape
    if not m or not n:
        return jnp.zeros((m, n), jnp.result_type(head, tail))
    head = head if rising else head[::-1]
    line = jnp.reshape(jnp.concatenate([head, tail[1:]]), (1, m + n - 1, 1))
    how: Any = dict(dimension_numbers=("NTC", "IOT", "NTC"), precision=Precision.HIGHEST)
    windows = conv_general_dilated_patches(line, (n,), (1,), "VALID", **how)[0]
    return windows if rising else jnp.flip(windows, axis=0)


_hankel = vectorize(_windows, signature="(m),(n)->(m,n)")
_toeplitz = vectorize(partial(_windows, rising=False), signature="(m),(n)->(m,n)")


def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Makes Toeplitz matrices, which are constant along their diagonals.

    `c` is the first column and `r` the first row, by default the conjugate of `c`. Vectors are in the last axes, and
    matrices in the last two; SciPy flattens its arguments.
    """
    check_arraylike("toeplitz", *([c] if r is None else [c, r]))
    r = jnp.conjugate(jnp.asarray(c)) if r is None else jnp.asarray(r)
    return _toeplitz(jnp.atleast_1d(jnp.asarray(c)), jnp.atleast_1d(r))


def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Makes Hankel matrices, which are constant along their antidiagonals.

    `c` is the first column and `r` the last row, by default zeros. Vectors are in the last axes, and matrices in the
    last two.
    """
    check_arraylike("hankel", *([c] if r is None else [c, r]))
    c = jnp.asarray(c)
    r = jnp.zeros_like(c) if r is None else jnp.asarray(r)
    for name, x in (("c", c), ("r", r)):
        if not typeof(x).ndim:
            raise ValueError(f"hankel: {name} must be at least 1-dimensional, got a scalar.")
    rank = max(typeof(c).ndim, typeof(r).ndim)
    return _hankel(*(jnp.expand_dims(x, range(rank - typeof(x).ndim)) for x in (c, r)))


@jitted("convolution_matrix", static=("n", "mode"))
def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """Makes matrices that convolve vectors of length `n` with a vector.

    Vectors are in the last axis of `a`, and matrices in the last two. `mode` is "full", "same" or "valid". Both are
    static.
    """
    if n <= 0:
        raise ValueError(f"convolution_matrix: n must be a positive integer; got {n}.")
    check_arraylike("convolution_matrix", a)
    a = jnp.asarray(a)
    shape = typeof(a).shape
    if not shape:
        raise ValueError("convolution_matrix: a must be at least 1-dimensional, got a scalar.")
    if not shape[-1]:
        raise ValueError(f"convolution_matrix: len(a) must be at least 1; got shape {shape}.")
    if mode not in ("full", "valid", "same"):
        raise ValueError(f"convolution_matrix: mode must be one of 'full', 'valid', 'same'; got {mode!r}.")
    cut = 0 if mode == "full" else min(n, shape[-1]) - 1
    before = cut // 2 if mode == "same" else cut
    widths, size = [(0, 0)] * (len(shape) - 1) + [(0, n - 1)], shape[-1] + n - 1
    column, row = jnp.pad(a, widths), jnp.pad(jnp.flip(a, -1), widths)
    return toeplitz(
        slice_in_dim(column, before, size - (cut - before if mode == "same" else cut), axis=-1),
        slice_in_dim(row, size - n - before, size - before, axis=-1),
    )


def circulant(c: ArrayLike) -> Array:
    """Makes circulant matrices, whose columns are rotations of a vector.

    Vectors are in the last axis, and matrices in the last two.
    """
    check_arraylike("circulant", c)
    return _circulant(jnp.atleast_1d(jnp.asarray(c)))


@_vectorized("(n)->(n,n)")
def _circulant(c: Any) -> Any:
    n = typeof(c).shape[0]
    return c[(jnp.arange(n)[:, None] - jnp.arange(n)[None, :]) % n]


def companion(a: ArrayLike) -> Array:
    """Makes companion matrices of polynomials.

    Coefficients are in the last axis, two or more, the highest power first; the others are divided by the first.
    Matrices are in the last two axes.
    """
    check_arraylike("companion", a)
    (a,) = promote_dtypes_inexact(jnp.asarray(a))
    a = jnp.atleast_1d(a)
    if typeof(a).shape[-1] < 2:
        raise ValueError(
            f"companion: The length of `a` along the last axis must be at least 2; got shape {typeof(a).shape}."
        )
    return _companion(a)


@_vectorized("(n)->(m,m)")
def _companion(a: Any) -> Any:
    row = -a[1:] / a[0]
    return jnp.eye(typeof(a).size - 1, k=-1, dtype=typeof(a).dtype).at[0].set(row)


def fiedler(a: ArrayLike) -> Array:
    """Makes Fiedler matrices, of the distances between all pairs of elements of a vector.

    Vectors are in the last axis, and matrices in the last two.
    """
    check_arraylike("fiedler", a)
    a = jnp.atleast_1d(jnp.asarray(a))
    return jnp.abs(a[..., :, None] - a[..., None, :])


def fiedler_companion(a: ArrayLike) -> Array:
    """Makes Fiedler companion matrices of polynomials, which have five diagonals.

    Coefficients are in the last axis, the highest power first. Matrices are in the last two axes.
    """
    check_arraylike("fiedler_companion", a)
    (a,) = promote_dtypes_inexact(jnp.asarray(a))
    a = jnp.atleast_1d(a)
    if not typeof(a).shape[-1]:
        raise ValueError(f"fiedler_companion: the last axis of 'a' must have a nonzero size, got {typeof(a).shape}.")
    return _fiedler_companion(a)


@_vectorized("(n)->(m,m)")
def _fiedler_companion(a: Any) -> Any:
    last = typeof(a).size - 1
    if last < 1:
        return jnp.zeros_like(a, shape=(0, 0))
    a = a / a[0]
    if last == 1:
        return -a[1:].reshape(1, 1)
    i, j = jnp.arange(last)[:, None], jnp.arange(last)[None, :]
    second, first = (-a[jnp.minimum(i + k, last)] for k in (2, 1))
    even, odd = i % 2 == 0, i % 2 == 1
    places = [
        (i == 0) & (j == 0),
        (i == 1) & (j == 0),
        (j == i + 1) & even,
        (j == i + 2) & even,
        (j == i - 1) & even & (i >= 2),
        (j == i - 2) & odd & (i >= 3),
    ]
    one = jnp.ones((), typeof(a).dtype)
    return jnp.select(places, [-a[1], one, second, one, first, one])


def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """Makes Leslie matrices of populations in age classes.

    `f` are fecundities and `s`, shorter by 1, the rates of survival. Vectors are in the last axes, and matrices in the
    last two.
    """
    f, s = map(jnp.atleast_1d, promote_dtypes(*arrays("leslie", f, s)))
    sizes = typeof(f).shape[-1], typeof(s).shape[-1]
    if sizes[0] < 2:
        raise ValueError(
            f"leslie: The length of f along the last axis must be at least 2; got shape {typeof(f).shape}."
        )
    if sizes[0] != sizes[1] + 1:
        raise ValueError(
            "leslie: Incorrect lengths for f and s. The length of s along the last axis must be one less than "
            f"the length of f; got f shape {typeof(f).shape} and s shape {typeof(s).shape}."
        )
    return _leslie(f, s)


@_vectorized("(n),(m)->(n,n)")
def _leslie(f: Any, s: Any) -> Any:
    return jnp.diag(s, -1).at[0].set(f)


@jitted("block_diag")
def block_diag(*arrs: ArrayLike) -> Array:
    """Makes a matrix with given matrices along its diagonal and zeros elsewhere.

    Vectors are rows, and scalars matrices of one element. The dtype is the one that all promote to.

    Example:
      >>> jax.scipy.linalg.block_diag(jnp.array([[1, 2]]), jnp.array([[3], [4]]))
      Array([[1, 2, 0],
             [0, 0, 3],
             [0, 0, 4]], dtype=int32)
    """
    blocks = [jnp.atleast_2d(x) for x in promote_dtypes(*(arrs or [jnp.zeros((1, 0))]))]
    for i, x in enumerate(blocks):
        if typeof(x).ndim > 2:
            raise ValueError(
                f"Arguments to jax.scipy.linalg.block_diag must have at most 2 dimensions, got {x} at argument {i}."
            )
    zero, total, start, rows = scalar_like(blocks[0], 0), sum(typeof(x).shape[1] for x in blocks), 0, []
    for x in blocks:
        after = start + typeof(x).shape[1]
        rows.append(pad(x, zero, ((0, 0, 0), (start, total - after, 0))))
        start = after
    return concatenate(rows, 0)
