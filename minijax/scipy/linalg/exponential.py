"""The exponential of matrices, by Padé's approximants and squaring (Higham 2005)."""

from __future__ import annotations

from functools import partial, reduce
from math import factorial
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.api.autodiff import jvp
from minijax.base import dtypes
from minijax.dispatch.jitted import jitted
from minijax.higher.cond import cond, switch
from minijax.higher.scan import scan
from minijax.ir.types import typeof
from minijax.numpy.products import matmul_highest
from minijax.numpy.vectorizing import vectorize
from minijax.primitives.promote import promote_dtypes_inexact
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.linalg.systems import solve_triangular

# precision -> (the norms up to which an approximant of each degree is exact, that of the last degree, the degrees)
_LIMITS = {
    np.dtype(np.float32): ((4.258730016922831e-001, 1.880152677804762e000), 3.925724783138660, (3, 5, 7)),
    np.dtype(np.float64): (
        (1.495585217958292e-002, 2.539398330063230e-001, 9.504178996162932e-001, 2.097847961257068e000),
        5.371920351148152,
        (3, 5, 7, 9, 13),
    ),
}


def _approximant(degree: int, a: Any) -> tuple:
    """The odd and the even part of the numerator; the denominator is even - odd."""
    weights = [factorial(2 * degree - j) / (factorial(degree - j) * factorial(j)) for j in range(degree + 1)]
    powers = [jnp.eye(typeof(a).shape[0], dtype=typeof(a).dtype), matmul_highest(a, a)]
    highest = 3 if degree == 13 else degree // 2
    while len(powers) <= highest:
        powers.append(matmul_highest(powers[-1], powers[1]))

    def part(odd: int) -> Any:
        low = (weights[odd + 2 * k] * powers[k] for k in range(highest, -1, -1))
        if degree != 13:
            return reduce(jnp.add, low)
        high = reduce(jnp.add, (weights[odd + 6 + 2 * k] * powers[k] for k in range(highest, 0, -1)))
        return reduce(jnp.add, low, matmul_highest(powers[highest], high))

    return matmul_highest(a, part(1)), part(0)


@jitted("_calc_P_Q")
def _fraction(a: Any) -> tuple:
    """(numerator, denominator, s): the approximant's fraction for the matrix divided by 2 ** s."""
    limits, largest, degrees = _LIMITS[dtypes.to_floating_dtype(typeof(a).dtype)]
    size = jnp.linalg.norm(a, 1)
    halvings = jnp.maximum(0, jnp.floor(jnp.log2(size / largest)))
    halved = a / 2 ** halvings.astype(typeof(a).dtype)
    which = jnp.digitize(size, np.array(limits, typeof(size).dtype))
    odd, even = switch(which, [partial(_approximant, degree) for degree in degrees], halved)
    return odd + even, -odd + even, halvings


@jitted("_squaring", static=("max_squarings",))
def _squared(x: Any, count: Any, max_squarings: int) -> Any:
    def step(x, i):
        return cond(i < count, lambda x: matmul_highest(x, x), lambda x: x, x), None

    return scan(step, x, jnp.arange(max_squarings, dtype=typeof(count).dtype))[0]


def _expm_2d(a: Any, upper_triangular: bool, max_squarings: int) -> Any:
    p, q, halvings = _fraction(a)

    def compute(a, p, q):
        x = solve_triangular(q, p) if upper_triangular else jnp.linalg.solve(q, p)
        return _squared(x, halvings, max_squarings)

    return cond(halvings > max_squarings, lambda a, p, q: jnp.full_like(a, jnp.nan), compute, a, p, q)


def _check_square(name: str, what: str, x: Any) -> None:
    shape = typeof(x).shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ValueError(f"{name}: expected {what} to be a (batched) square matrix, got {what}.shape={shape}.")


@jitted("expm", static=("upper_triangular", "max_squarings"))
def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """Computes exponentials of square matrices in the last two axes.

    The method is scaling and squaring with Padé approximants (Higham, 2005). `max_squarings` is static; where more are
    needed the result is NaN. With `upper_triangular` the matrices are taken to be so, and a triangular system is
    solved. Arrays are in single or double precision.

    Example:
      >>> jax.scipy.linalg.expm(jnp.zeros((2, 2)))
      Array([[1., 0.],
             [0., 1.]], dtype=float32)
    """
    (A,) = promote_dtypes_inexact(A)
    _check_square("expm", "A", A)
    if dtypes.to_floating_dtype(typeof(A).dtype) not in _LIMITS:
        raise TypeError(f"expm: A.dtype={typeof(A).dtype} is not supported.")
    if typeof(A).ndim > 2:
        single = partial(expm, upper_triangular=upper_triangular, max_squarings=max_squarings)
        return vectorize(single, signature="(n,n)->(n,n)")(A)
    return _expm_2d(A, upper_triangular, max_squarings)


@jitted("expm_frechet", static=("method", "compute_expm"))
def expm_frechet(A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True) -> Any:
    """Computes the Fréchet derivative of `expm` at `A` in the direction `E`.

    Returns a pair: the exponential and the derivative; or without `compute_expm` the derivative. It is computed by
    forward-mode differentiation; `method` has no effect.
    """
    A, E = jnp.asarray(A), jnp.asarray(E)
    _check_square("expm_frechet", "A", A)
    _check_square("expm_frechet", "E", E)
    if typeof(A).shape != typeof(E).shape:
        raise ValueError(
            "expm_frechet: expected A and E to be the same shape, "
            f"got A.shape={typeof(A).shape} E.shape={typeof(E).shape}"
        )
    value, derivative = jvp(expm, (A,), (E,))
    return (value, derivative) if compute_expm else derivative
