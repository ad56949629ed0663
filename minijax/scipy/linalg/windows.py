"""Matrices whose rows are windows of a vector, and other matrices made of one or two vectors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.base import dtypes
from minijax.base.dtypes import DTypeLike
from minijax.dispatch.jitted import jitted
from minijax.ir.types import typeof
from minijax.numpy.vectorizing import vectorize
from minijax.primitives.conv import conv_general_dilated_patches
from minijax.primitives.counting import broadcasted_iota
from minijax.primitives.dot import Precision
from minijax.primitives.elementwise import lgamma
from minijax.primitives.families import scalar_like
from minijax.primitives.promote import arrays, check_arraylike, promote_dtypes, promote_dtypes_inexact
from minijax.primitives.structural import concatenate, pad, slice_in_dim
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.special.gammas import choose


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

    Example:
      >>> jax.scipy.linalg.toeplitz(jnp.array([1, 2, 3]))
      Array([[1, 2, 3],
             [2, 1, 2],
             [3, 2, 1]], dtype=int32)
    """
    check_arraylike("toeplitz", *([c] if r is None else [c, r]))
    r = jnp.conjugate(jnp.asarray(c)) if r is None else jnp.asarray(r)
    return _toeplitz(jnp.atleast_1d(jnp.asarray(c)), jnp.atleast_1d(r))


def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Makes Hankel matrices, which are constant along their antidiagonals.

    `c` is the first column and `r` the last row, by default zeros. Vectors are in the last axes, and matrices in the
    last two.

    Example:
      >>> jax.scipy.linalg.hankel(jnp.array([1, 2, 3]))
      Array([[1, 2, 3],
             [2, 3, 0],
             [3, 0, 0]], dtype=int32)
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

    Example:
      >>> jax.scipy.linalg.convolution_matrix(jnp.array([1, 2]), 2)
      Array([[1, 0],
             [2, 1],
             [0, 2]], dtype=int32)
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

    Example:
      >>> jax.scipy.linalg.circulant(jnp.array([1, 2, 3]))
      Array([[1, 3, 2],
             [2, 1, 3],
             [3, 2, 1]], dtype=int32)
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

    Example:
      >>> jax.scipy.linalg.companion(jnp.array([1.0, -3.0, 2.0]))
      Array([[ 3., -2.],
             [ 1.,  0.]], dtype=float32)
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

    Example:
      >>> jax.scipy.linalg.fiedler(jnp.array([1, 4, 6]))
      Array([[0, 3, 5],
             [3, 0, 2],
             [5, 2, 0]], dtype=int32)
    """
    check_arraylike("fiedler", a)
    a = jnp.atleast_1d(jnp.asarray(a))
    return jnp.abs(a[..., :, None] - a[..., None, :])


def fiedler_companion(a: ArrayLike) -> Array:
    """Makes Fiedler companion matrices of polynomials, which have five diagonals.

    Coefficients are in the last axis, the highest power first. Matrices are in the last two axes.

    Example:
      >>> jax.scipy.linalg.fiedler_companion(jnp.array([1.0, -3.0, 2.0]))
      Array([[ 3., -2.],
             [ 1.,  0.]], dtype=float32)
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

    Example:
      >>> jax.scipy.linalg.leslie(jnp.array([0.5, 2.0]), jnp.array([0.8]))
      Array([[0.5, 2. ],
             [0.8, 0. ]], dtype=float32)
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


@jitted("dft", static=("n", "scale", "dtype"))
def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """Makes the matrix of a discrete Fourier transform.

    `scale` is `None`, "sqrtn" for a unitary matrix, or "n". `dtype` is a complex dtype. `n` is static.

    Example:
      >>> jax.scipy.linalg.dft(2).real
      Array([[ 1.,  1.],
             [ 1., -1.]], dtype=float32)
    """
    if scale not in (None, "sqrtn", "n"):
        raise ValueError(f"dft: scale must be None, 'sqrtn', or 'n'; got {scale!r}.")
    dtype = dtypes.canonicalize_dtype(complex if dtype is None else dtype)
    if dtype.kind != "c":
        raise ValueError(f"dft: dtype must be a complex floating-point type; got {dtype}.")
    at = jnp.arange(n, dtype=dtype)
    matrix = jnp.exp(-2j * np.pi * at[:, None] * at[None, :] / n)
    if scale is None:
        return matrix
    return matrix / (jnp.sqrt(n).astype(dtype) if scale == "sqrtn" else n)


@jitted("hadamard", static=("n", "dtype"))
def hadamard(n: int, dtype: DTypeLike = int) -> Array:
    """Makes a Hadamard matrix of ones and minus ones, with orthogonal rows.

    `n` is static and must be a power of 2.

    Example:
      >>> jax.scipy.linalg.hadamard(2)
      Array([[ 1,  1],
             [ 1, -1]], dtype=int32)
    """
    if n < 1 or int(n) != n or int(n) & (int(n) - 1):
        raise ValueError(f"hadamard: n must be a positive power of 2; got {n}.")
    matrix = jnp.ones((1, 1), dtype)
    for _ in range(int(n).bit_length() - 1):
        matrix = jnp.block([[matrix, matrix], [matrix, -matrix]])
    return matrix


@jitted("helmert", static=("n", "full"))
def helmert(n: int, full: bool = False) -> Array:
    """Makes a Helmert matrix, whose rows compare each element with those before.

    `n` is static. With `full` there is a first row for the mean too.

    Example:
      >>> jax.scipy.linalg.helmert(2).round(3)
      Array([[ 0.707, -0.707]], dtype=float32)
    """
    if n < 1:
        raise ValueError(f"helmert: n must be a positive integer; got {n}.")
    dtype = dtypes.canonicalize_dtype(float)
    i, j = jnp.arange(n - 1)[:, None], jnp.arange(n)[None, :]
    after = i + 1
    count = after.astype(dtype)
    scale = jnp.sqrt(count * (count + 1))
    is_before, head = j <= i, 1.0 / scale
    matrix = jnp.where(is_before, head, jnp.where(j == after, -count / scale, jnp.zeros_like(scale)))
    if not full:
        return matrix
    return jnp.concatenate([jnp.full((1, n), 1.0 / jnp.sqrt(n), dtype), matrix])


@jitted("hilbert", static=("n",))
def hilbert(n: int) -> Array:
    """Makes the Hilbert matrix, of elements `1 / (i + j + 1)`.

    `n` is static.

    Example:
      >>> jax.scipy.linalg.hilbert(2)
      Array([[1.        , 0.5       ],
             [0.5       , 0.33333334]], dtype=float32)
    """
    at = broadcasted_iota(dtypes.canonicalize_dtype(float), (n, 1), 0)
    return 1 / (at + at.T + 1)


@jitted("invhilbert", static=("n",))
def invhilbert(n: int) -> Array:
    """Makes the inverse of the Hilbert matrix, in floating point.

    `n` is static. From 15 rows on the elements are not exact. It does not take `exact`.

    Example:
      >>> jax.scipy.linalg.invhilbert(2).round(3)
      Array([[ 4.       , -6.0000005],
             [-6.0000005, 12.000001 ]], dtype=float32)
    """
    at = jnp.arange(n, dtype=dtypes.canonicalize_dtype(float))
    i, j = at[:, None], at[None, :]
    total = i + j
    signed = jnp.power(-1.0, total) * (total + 1)
    return signed * choose(n + i, n - j - 1) * choose(n + j, n - i - 1) * choose(total, i) ** 2


@jitted("_binom")
def _pascal_triangle(i: Any, j: Any) -> Any:
    total, first, second = lgamma(i + 1.0), lgamma(i - j + 1.0), lgamma(j + 1.0)
    return jnp.exp(total - first - second)


_KINDS = ("symmetric", "lower", "upper")


def _check_kind(name: str, kind: str) -> None:
    if kind not in _KINDS:
        raise ValueError(f"{name}: Expected kind to be one of: {list(_KINDS)}; got {kind}")


@jitted("pascal", static=("n", "kind"))
def pascal(n: int, kind: str | None = None) -> Array:
    """Makes a Pascal matrix of binomial coefficients, in float32.

    `n` is static. `kind` is "symmetric" (also `None`), "lower" or "upper". It does not take `exact`.

    Example:
      >>> jax.scipy.linalg.pascal(3, "lower").round(3)
      Array([[1., 0., 0.],
             [1., 1., 0.],
             [1., 2., 1.]], dtype=float32)
    """
    kind = "symmetric" if kind is None else kind
    _check_kind("pascal", kind)
    at = jnp.arange(n, dtype=np.float32)
    lower = _pascal_triangle(at[:, None], at[None, :])
    if kind == "lower":
        return lower
    return lower.T if kind == "upper" else jnp.dot(lower, lower.T)


@jitted("invpascal", static=("n", "kind"))
def invpascal(n: int, kind: str | None = None) -> Array:
    """Makes the inverse of a Pascal matrix, in floating point.

    `n` is static. `kind` is "symmetric" (also `None`), "lower" or "upper". It does not take `exact`.

    Example:
      >>> jax.scipy.linalg.invpascal(3, "lower").round(3)
      Array([[ 1., -0.,  0.],
             [-1.,  1., -0.],
             [ 1., -2.,  1.]], dtype=float32)
    """
    kind = "symmetric" if kind is None else kind
    _check_kind("invpascal", kind)
    at = jnp.arange(n, dtype=dtypes.canonicalize_dtype(float))
    i, j = at[:, None], at[None, :]
    lower = jnp.power(-1.0, i - j) * _pascal_triangle(i, j)
    if kind == "lower":
        return lower
    return lower.T if kind == "upper" else jnp.dot(lower.T, lower)
