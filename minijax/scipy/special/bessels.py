"""Bessel functions."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.api.vmap import vmap
from minijax.dispatch.jitted import jitted
from minijax.higher.cond import cond
from minijax.higher.scan import scan
from minijax.ir.types import typeof
from minijax.primitives import bessel, elementwise as lax
from minijax.primitives.families import scalar_like
from minijax.primitives.promote import promote_args_inexact
from minijax.run.arrays.array import Array, ArrayLike


def i0e(x: ArrayLike) -> Array:
    """Computes `exp(-abs(x)) * i0(x)`, which does not overflow.

    Arguments are real; integers become floats.
    """
    return bessel.bessel_i0e(*promote_args_inexact("i0e", x))


def i0(x: ArrayLike) -> Array:
    """Computes the modified Bessel function of the first kind of order 0.

    Arguments are real; integers become floats.
    """
    (x,) = promote_args_inexact("i0", x)
    return lax.mul(lax.exp(lax.abs(x)), bessel.bessel_i0e(x))


def i1e(x: ArrayLike) -> Array:
    """Computes `exp(-abs(x)) * i1(x)`, which does not overflow.

    Arguments are real; integers become floats.
    """
    return bessel.bessel_i1e(*promote_args_inexact("i1e", x))


def i1(x: ArrayLike) -> Array:
    """Computes the modified Bessel function of the first kind of order 1.

    Arguments are real; integers become floats.
    """
    (x,) = promote_args_inexact("i1", x)
    return lax.mul(lax.exp(lax.abs(x)), bessel.bessel_i1e(x))


def _by_recurrence(z: Any, v: int, n_iter: int) -> Any:
    """The Bessel functions of the orders 0 to `v` at a scalar, by Miller's backward recurrence."""

    def step(carry, n):
        before, now, total = carry
        value = 2 * (n + 1.0) * now / z - before
        total = cond(n % 2 == 0, lambda total, x: total + 2 * x, lambda total, _: total, total, value)
        return (now, value, total), value

    start = tuple(scalar_like(z, x) for x in (0, 1e-16, 0))
    (_, _, total), values = scan(step, start, jnp.arange(n_iter + 1, dtype=typeof(z).dtype), reverse=True)
    first, wanted = values[0], values[: v + 1]
    return wanted / (total - first)


@jitted(static=("v", "n_iter"))
def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """Computes Bessel functions of the first kind of the orders 0 to `v`.

    Orders are on a leading axis. `v` is static, and `n_iter` is the number of steps of the backward recurrence.
    Arguments are real. SciPy's `jv` computes one order.
    """
    (z,) = promote_args_inexact("bessel_jn", jnp.asarray(z))
    if typeof(z).dtype == np.complex128:
        raise ValueError("bessel_jn: complex input not supported.")
    function = functools.partial(_by_recurrence, v=operator.index(v), n_iter=n_iter)
    for _ in range(typeof(z).ndim):
        function = vmap(function)
    return jnp.moveaxis(function(z), -1, 0)
