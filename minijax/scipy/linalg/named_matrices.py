"""Named matrices of a given size."""

from __future__ import annotations

from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.base import dtypes
from minijax.base.dtypes import DTypeLike
from minijax.dispatch.jitted import jitted
from minijax.primitives.counting import broadcasted_iota
from minijax.primitives.elementwise import lgamma
from minijax.run.arrays.array import Array
from minijax.scipy.special.gammas import choose


@jitted("dft", static=("n", "scale", "dtype"))
def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """Makes the matrix of a discrete Fourier transform.

    `scale` is `None`, "sqrtn" for a unitary matrix, or "n". `dtype` is a complex dtype. `n` is static.
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
    """
    at = broadcasted_iota(dtypes.canonicalize_dtype(float), (n, 1), 0)
    return 1 / (at + at.T + 1)


@jitted("invhilbert", static=("n",))
def invhilbert(n: int) -> Array:
    """Makes the inverse of the Hilbert matrix, in floating point.

    `n` is static. From 15 rows on the elements are not exact. It does not take `exact`.
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
    """
    kind = "symmetric" if kind is None else kind
    _check_kind("invpascal", kind)
    at = jnp.arange(n, dtype=dtypes.canonicalize_dtype(float))
    i, j = at[:, None], at[None, :]
    lower = jnp.power(-1.0, i - j) * _pascal_triangle(i, j)
    if kind == "lower":
        return lower
    return lower.T if kind == "upper" else jnp.dot(lower.T, lower)
