"""Associated Legendre functions and spherical harmonics."""

from __future__ import annotations

from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.base import dtypes
from minijax.dispatch.jitted import jitted
from minijax.higher.fori_loop import fori_loop
from minijax.ir.concrete import concrete_or_error
from minijax.ir.types import typeof
from minijax.primitives import elementwise as lax
from minijax.run.arrays.array import Array


def _grid(n_max: int, dtype: np.dtype) -> list[Any]:
    """(order, degree) of each element of a matrix."""
    return jnp.meshgrid(*(jnp.arange(n_max + 1, dtype=dtype) for _ in range(2)), indexing="ij")


def _coefficients(n_max: int, dtype: np.dtype, is_normalized: bool) -> tuple[Any, Any]:
    orders, degrees = _grid(n_max, dtype)
    if not is_normalized:
        return (2 * degrees - 1) / (degrees - orders), (degrees + orders - 1) / (degrees - orders)
    degree_square, order_square, twice = degrees * degrees, orders * orders, 2 * degrees
    before = (degrees - 1) * (degrees - 1)
    first = lax.sqrt((4 * degree_square - 1) / (degree_square - order_square))
    second = lax.sqrt(((twice + 1) * (before - order_square)) / ((twice - 3) * (degree_square - order_square)))
    return first, second


def _masks(n_max: int, dtype: np.dtype, is_normalized: bool) -> tuple[Any, Any]:
    """Coefficients of the recurrence in the degree: one matrix per degree, with the coefficients on a diagonal."""
    coefficients = _coefficients(n_max, dtype, is_normalized)
    places = [jnp.triu_indices(n_max + 1, k) for k in (1, 2)]
    zeros = jnp.zeros((n_max + 1, n_max + 1), dtype)
    tables = [zeros.at[p].set(c[p]) for p, c in zip(places, coefficients, strict=True)]
    i, j, k = jnp.ogrid[: n_max + 1, : n_max + 1, : n_max + 1]
    shifted = (i + j - k == 0).astype(dtype)
    first, second = (jnp.einsum("jk,ijk->ijk", table, shifted) for table in tables)
    return first, second


@jitted("_gen_associated_legendre", static=("n_max", "is_normalized"))
def _legendre(n_max: int, x: Any, is_normalized: bool) -> Any:
    """The associated Legendre functions of all orders and degrees up to n_max at the points x."""
    dtype, size = typeof(x).dtype, n_max + 1
    table = jnp.zeros((size, size, *typeof(x).shape), dtype)
    orders, degrees = jnp.arange(1, size, dtype=dtype), jnp.arange(n_max, dtype=dtype)
    start = 0.5 / lax.sqrt(np.pi) if is_normalized else 1.0
    diagonal = jnp.cumprod(-1 * lax.sqrt(1 + 0.5 / orders) if is_normalized else 1 - 2 * orders)
    beside = lax.sqrt(2 * degrees + 3) if is_normalized else 2 * degrees + 1
    table = table.at[(0, 0)].set(start)
    sines = jnp.broadcast_to(lax.sqrt(1 - x * x), (n_max, *typeof(x).shape))
    on_diagonal = start * jnp.einsum("i,ij->ij", diagonal, jnp.cumprod(sines, axis=0))
    rows, columns = jnp.diag_indices(size)
    table = table.at[(rows[1:], columns[1:])].set(on_diagonal)
    off_diagonal = jnp.einsum("ij,ij->ij", jnp.einsum("i,j->ij", beside, x), table[jnp.diag_indices(n_max)])
    table = table.at[(rows[:n_max], columns[:n_max] + 1)].set(off_diagonal)
    first, second = _masks(n_max, dtype, is_normalized)

    def next_degree(i, table):
        by_last, by_one_before = first[i, :, :], second[i, :, :]
        last = jnp.einsum("ij,ijk->ijk", by_last, jnp.einsum("ijk,k->ijk", jnp.roll(table, 1, axis=1), x))
        return table + (last - jnp.einsum("ij,ijk->ijk", by_one_before, jnp.roll(table, 2, axis=1)))

    return fori_loop(2, size, next_degree, table) if n_max > 1 else table


@jitted("_gen_derivatives")
def _derivatives(table: Any, x: Any) -> Any:
    """The derivatives of the functions in a table that is not normalized, as sums of functions of one degree less."""
    size, dtype = len(table), typeof(x).dtype
    less = jnp.pad(table, ((0, 0), (1, 0), (0, 0)))[:, :size, :]
    above = jnp.pad(less, ((0, 2), (0, 0), (0, 0)))[2:, :, :]
    below = jnp.pad(less, ((2, 0), (0, 0), (0, 0)))[:size, :, :]
    # Functions of the orders -1 and -2 are multiples of those of the orders 1 and 2.
    if size > 1:
        k, positive = jnp.arange(1, size - 1, dtype=dtype), table[1, 1 : size - 1, :]
        below = below.at[1, 2:, :].set(jnp.einsum("i,ij->ij", -1 / ((k + 1) * k), positive))
    if size > 2:
        k, positive = jnp.arange(2, size - 1, dtype=dtype), table[2, 2 : size - 1, :]
        below = below.at[0, 3:, :].set(jnp.einsum("i,ij->ij", 1 / ((k + 2) * (k + 1) * k * (k - 1)), positive))
    orders, degrees = _grid(size - 1, dtype)
    zeros, places, row = jnp.zeros((size, size), dtype), jnp.triu_indices(size), jnp.zeros(size, dtype)

    def triangle(factors):
        return zeros.at[places].set(factors[places])

    def scaled(factors, functions):
        return jnp.einsum("ij,ijk->ijk", factors, functions)

    half = -0.5 / (orders - 1)
    by_less = triangle(half).at[1, :].set(row)
    both = degrees + orders
    by_below = triangle(half * (both - 2) * (both - 1)).at[1, :].set(row)
    order_before = scaled(by_less, less) + scaled(by_below, below)
    half = -0.5 / (orders + 1)
    by_above, by_less = triangle(half), triangle(half * both * (both + 1))
    order_after = scaled(by_above, above) + scaled(by_less, less)
    by_before = triangle(both * (degrees - orders + 1) / 2)
    out = scaled(by_before, order_before) - 0.5 * order_after
    if size == 1:
        return out
    k = jnp.arange(size, dtype=dtype)
    first = jnp.einsum("i,ij->ij", (k + 1) * k, table[0, :, :])
    if size > 2:
        first = first - table[2, :, :]
    first = jnp.einsum("j,ij->ij", 0.5 / lax.sqrt(1 - x * x), first)
    return out.at[1, :, :].set(first).at[1, 0, :].set(0)


def _checked_legendre(m: Any, n: Any, z: Any, is_normalized: bool) -> Any:
    dtype = dtypes.dtype(z)
    if dtype not in (np.float32, np.float64):
        raise TypeError(f"lpmn: z.dtype={dtype} is not supported, which should be float32 or float64.")
    if z.ndim != 1:
        raise ValueError(f"lpmn: z must be a 1D array, and has shape {z.shape}.")
    m, n = (concrete_or_error(int, x, f"Argument {name} of lpmn.") for name, x in (("m", m), ("n", n)))
    if m != n:
        raise NotImplementedError(f"lpmn: Computations for m!=n are not yet supported; m is {m} and n is {n}.")
    return _legendre(m, z, is_normalized)


def lpmn(m: int, n: int, z: Array) -> tuple[Any, Any]:
    """The associated Legendre functions of the first kind and their derivatives, indexed by order, degree and point.

    Orders and degrees go up to `m` and `n`, which must be equal; `z` is a vector of floats between -1 and 1.
    """
    table = _checked_legendre(m, n, z, False)
    return table, _derivatives(table, z)


def lpmn_values(m: int, n: int, z: Array, is_normalized: bool) -> Any:
    """The associated Legendre functions, as in `lpmn`; if `is_normalized`, as in spherical harmonics."""
    return _checked_legendre(m, n, z, is_normalized)


@jitted("_sph_harm", static=("n_max",))
def _harmonic(n: Any, m: Any, theta: Any, phi: Any, n_max: int) -> Any:
    table = _legendre(n_max, jnp.cos(theta), True)
    legendre = table.at[abs(m), n, jnp.arange(len(n))].get(mode="clip")
    angle = abs(m) * phi
    wave = lax.complex(jnp.cos(angle), jnp.sin(angle))
    positive = lax.complex(legendre * lax.real(wave), legendre * lax.imag(wave))
    return jnp.where(m < 0, (-1.0) ** abs(m) * lax.conj(positive), positive)


def sph_harm_y(n: Array, m: Array, theta: Array, phi: Array, diff_n: None = None, n_max: int | None = None) -> Array:
    """Computes spherical harmonics of vectors of degrees, orders and angles.

    `n` are degrees, `m` orders, `theta` colatitudes from 0 to pi, and `phi` longitudes. Degrees above `n_max`, by
    default the largest of `n`, are clipped; it is static and must be given under `jit`. `diff_n` must be `None`.

    Example:
      >>> one = jnp.zeros(1, int)
      >>> jax.scipy.special.sph_harm_y(one, one, jnp.zeros(1), jnp.zeros(1), n_max=0).real.round(4)
      Array([0.2821], dtype=float32)
    """
    if diff_n is not None:
        raise NotImplementedError("sph_harm_y: derivatives by `diff_n` are not supported.")
    if jnp.isscalar(theta):
        theta = jnp.array([theta])
    if n_max is None:
        n_max = np.max(n)
    context = "The `n_max` argument of `sph_harm_y` must be statically specified within transformations."
    return _harmonic(n, m, theta, phi, concrete_or_error(int, n_max, context))
