"""Spherical harmonics."""

from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.dispatch.jitted import jitted
from minijax.higher.fori_loop import fori_loop
from minijax.interop.introspection import concrete_or_error
from minijax.ir.types import typeof
from minijax.primitives import elementwise as lax


def _masks(n_max: int, dtype: np.dtype) -> tuple[Any, Any]:
    """The coefficients of the recurrence in the degree: for each degree a matrix that has them on a diagonal."""
    orders, degrees = jnp.meshgrid(*(jnp.arange(n_max + 1, dtype=dtype) for _ in range(2)), indexing="ij")
    degree_square, order_square, twice = degrees * degrees, orders * orders, 2 * degrees
    before = (degrees - 1) * (degrees - 1)
    first = lax.sqrt((4 * degree_square - 1) / (degree_square - order_square))
    second = lax.sqrt(((twice + 1) * (before - order_square)) / ((twice - 3) * (degree_square - order_square)))
    places = [jnp.triu_indices(n_max + 1, k) for k in (1, 2)]
    zeros = jnp.zeros((n_max + 1, n_max + 1), dtype)
    tables = [zeros.at[p].set(c[p]) for p, c in zip(places, (first, second), strict=True)]
    i, j, k = jnp.ogrid[: n_max + 1, : n_max + 1, : n_max + 1]
    shifted = (i + j - k == 0).astype(dtype)
    first, second = (jnp.einsum("jk,ijk->ijk", table, shifted) for table in tables)
    return first, second


@jitted("_gen_associated_legendre", static=("n_max",))
def _legendre(n_max: int, x: Any) -> Any:
    """The associated Legendre functions of all orders and degrees up to n_max, normalized, at the points x."""
    dtype, size = typeof(x).dtype, n_max + 1
    table = jnp.zeros((size, size, *typeof(x).shape), dtype)
    orders, degrees = jnp.arange(1, size, dtype=dtype), jnp.arange(n_max, dtype=dtype)
    start = 0.5 / lax.sqrt(np.pi)
    diagonal = jnp.cumprod(-1 * lax.sqrt(1 + 0.5 / orders))
    beside = lax.sqrt(2 * degrees + 3)
    table = table.at[(0, 0)].set(start)
    sines = jnp.broadcast_to(lax.sqrt(1 - x * x), (n_max, *typeof(x).shape))
    on_diagonal = start * jnp.einsum("i,ij->ij", diagonal, jnp.cumprod(sines, axis=0))
    rows, columns = jnp.diag_indices(size)
    table = table.at[(rows[1:], columns[1:])].set(on_diagonal)
    off_diagonal = jnp.einsum("ij,ij->ij", jnp.einsum("i,j->ij", beside, x), table[jnp.diag_indices(n_max)])
    table = table.at[(rows[:n_max], columns[:n_max] + 1)].set(off_diagonal)
    first, second = _masks(n_max, dtype)

    def next_degree(i, table):
        by_last, by_one_before = first[i, :, :], second[i, :, :]
        last = jnp.einsum("ij,ijk->ijk", by_last, jnp.einsum("ijk,k->ijk", jnp.roll(table, 1, axis=1), x))
        return table + (last - jnp.einsum("ij,ijk->ijk", by_one_before, jnp.roll(table, 2, axis=1)))

    return fori_loop(2, size, next_degree, table) if n_max > 1 else table


@jitted("_sph_harm", static=("n_max",))
def _harmonic(n: Any, m: Any, theta: Any, phi: Any, n_max: int) -> Any:
    table = _legendre(n_max, jnp.cos(theta))
    legendre = table.at[abs(m), n, jnp.arange(len(n))].get(mode="clip")
    angle = abs(m) * phi
    wave = lax.complex(jnp.cos(angle), jnp.sin(angle))
    positive = lax.complex(legendre * lax.real(wave), legendre * lax.imag(wave))
    return jnp.where(m < 0, (-1.0) ** abs(m) * lax.conj(positive), positive)


def sph_harm_y(n: Any, m: Any, theta: Any, phi: Any, diff_n: None = None, n_max: int | None = None) -> Any:
    """The spherical harmonics of vectors of degrees `n`, orders `m`, colatitudes and longitudes.

    Degrees above `n_max`, which is the largest of `n` unless told, are clipped to it. Raises
    ConcretizationTypeError for traced degrees without `n_max`, NotImplementedError for `diff_n`.
    """
    if diff_n is not None:
        raise NotImplementedError("sph_harm_y: derivatives by `diff_n` are not supported.")
    if jnp.isscalar(theta):
        theta = jnp.array([theta])
    if n_max is None:
        n_max = np.max(n)
    context = "The `n_max` argument of `sph_harm_y` must be statically specified within transformations."
    return _harmonic(n, m, theta, phi, concrete_or_error(int, n_max, context))
