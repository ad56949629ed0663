"""The Hurwitz zeta function and Bernoulli's numbers."""

from __future__ import annotations

import functools
import math
import operator
from fractions import Fraction
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.api.autodiff import jvp
from minijax.api.custom import custom_jvp
from minijax.base import dtypes
from minijax.ir.concrete import concrete_or_error
from minijax.ir.types import typeof
from minijax.primitives import bessel, elementwise as lax
from minijax.primitives.promote import promote_args_inexact
from minijax.run.arrays.array import Array, ArrayLike


def _bernoulli_fractions(count: int) -> list[Fraction]:
    """The numbers B(0), B(1), ... by their recurrence (NIST DLMF 24.5.3)."""
    numbers = [Fraction(1)]
    for n in range(1, count):
        numbers.append(-sum(math.comb(n + 1, k) * b for k, b in enumerate(numbers)) / (n + 1))
    return numbers


def _summed(x: Any, q: Any) -> Any:
    """The zeta function by the Euler-Maclaurin formula (F. Johansson, arXiv:1309.2877)."""
    x, q = promote_args_inexact("zeta", x, q)
    dtype = np.dtype(typeof(x).dtype)
    # Scalars of the dtype and no Python scalars, beside which weak types would stay.
    count, one = 8 if dtype == np.float32 else 16, dtype.type(1)
    end = dtype.type(count)
    wide_x, wide_q = jnp.expand_dims(x, -1), jnp.expand_dims(q, -1)
    head = jnp.sum((wide_q + np.arange(count, dtype=dtype)) ** -wide_x, -1)
    tail = lax.div((q + end) ** (one - x), x - one)
    edge = (q + end) ** -x
    rising = jnp.cumprod((wide_x + np.arange(2 * count, dtype=dtype)) / (wide_q + end), -1)
    rising = jnp.clip(rising[..., ::2], max=dtypes.finfo(dtype).max)
    numbers = _bernoulli_fractions(2 * count + 1)[2::2]
    scale = np.array([float(math.factorial(2 * k) / b) for k, b in enumerate(numbers, 1)], dtype)
    correction = edge * (0.5 + jnp.sum(rising / np.expand_dims(scale, tuple(range(typeof(x).ndim))), -1))
    return head + tail + correction


@custom_jvp
def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """Computes the Hurwitz zeta function, the sum of `(n + q) ** -x` over n >= 0.

    `q` must be given: with 1 it is the Riemann zeta function. Raises NotImplementedError without `q`.
    """
    if q is None:
        raise NotImplementedError(
            "Riemann zeta function not implemented; pass q != None to compute the Hurwitz Zeta function."
        )
    return bessel.zeta(*promote_args_inexact("zeta", x, q))


zeta.defjvp(functools.partial(jvp, _summed))


def bernoulli(n: int) -> Array:
    """Returns the Bernoulli numbers B(0), ..., B(n), as a vector of floats.

    `n` is static. B(1) is -1/2. Raises ValueError for negative `n`.
    """
    n = concrete_or_error(operator.index, n, "Argument n of bernoulli")
    if n < 0:
        raise ValueError("n must be a non-negative integer.")
    first = jnp.array([1, -1 / 2, 1 / 6])
    if n < 3:
        return first[: n + 1]
    numbers = jnp.zeros(n + 1).at[:3].set(first)
    orders = jnp.arange(4, n + 1, 2, dtype=numbers.dtype)
    products = (1 / np.pi**2) * jnp.cumprod(-(orders - 1) * orders / 4 / np.pi**2)
    sums = jnp.sum(jnp.arange(2, 50, dtype=numbers.dtype)[:, None] ** -orders[None], axis=0)
    return numbers.at[4::2].set(products * (1 + sums))
