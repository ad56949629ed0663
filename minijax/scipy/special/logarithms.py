"""Logistic and power transforms, the terms of entropies, and functions of jax.nn with SciPy's defaults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.api.custom import custom_jvp
from minijax.nn import functions as nn
from minijax.primitives import elementwise as lax, structural
from minijax.primitives.families import const_like
from minijax.primitives.promote import promote_args_inexact
from minijax.run.arrays.array import Array, ArrayLike
from minijax.scipy.formulas import real


@custom_jvp
def logit(x: ArrayLike) -> Array:
    """Computes `log(x / (1 - x))`, the inverse of `expit`.

    NaN outside of the interval from 0 to 1.

    Example:
      >>> jax.scipy.special.logit(0.5)
      Array(0., dtype=float32, weak_type=True)
    """
    (x,) = promote_args_inexact("logit", x)
    return lax.log(lax.div(x, lax.sub(const_like(x, 1), x)))


logit.defjvps(lambda t, _, x: lax.div(t, lax.mul(x, lax.sub(const_like(x, 1), x))))


def expit(x: ArrayLike) -> Array:
    """Computes the logistic function, `1 / (1 + exp(-x))`.

    Integers become floats. `jax.nn.sigmoid` is the same.

    Example:
      >>> jax.scipy.special.expit(jnp.array([-jnp.inf, 0.0, jnp.inf]))
      Array([0. , 0.5, 1. ], dtype=float32)
    """
    return lax.logistic(*promote_args_inexact("expit", x))


def _zero_at_zero(x: Any, y: Any, log: Callable) -> Any:
    """x * log(y), and 0 where x = 0 unless y is NaN."""
    holds = jnp.logical_or(lax.ne(x, const_like(x, 0)), lax.ne(y, y))
    return jnp.where(holds, lax.mul(x, log(y)), structural.full_like(x, 0))


@custom_jvp
def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """Computes `x * log(y)`, and 0 where x is 0, unless y is NaN.

    Derivatives are defined where x is 0 too.

    Example:
      >>> jax.scipy.special.xlogy(0.0, 0.0)
      Array(0., dtype=float32, weak_type=True)
    """
    return _zero_at_zero(*promote_args_inexact("xlogy", x, y), lax.log)


@xlogy.defjvp
def _xlogy_jvp(primals, tangents):
    (x, y), (x_dot, y_dot) = primals, tangents
    result = xlogy(x, y)
    return result, (x_dot * lax.log(y) + y_dot * x / y).astype(result.dtype)


@custom_jvp
def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """Computes `x * log(1 + y)`, and 0 where x is 0, unless y is NaN.

    Derivatives are defined where x is 0 too.

    Example:
      >>> jax.scipy.special.xlog1py(0.0, -1.0)
      Array(0., dtype=float32, weak_type=True)
    """
    return _zero_at_zero(*promote_args_inexact("xlog1py", x, y), lax.log1p)


@xlog1py.defjvp
def _xlog1py_jvp(primals, tangents):
    (x, y), (x_dot, y_dot) = primals, tangents
    result = xlog1py(x, y)
    return result, (x_dot * lax.log1p(y) + y_dot * x / (1 + y)).astype(result.dtype)


@custom_jvp
def _xlogx(x: Any) -> Any:
    return xlogy(x, x)


@_xlogx.defjvp
def _xlogx_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return _xlogx(x), t * (lax.log(x) + 1)


def entr(x: ArrayLike) -> Array:
    """Computes `-x * log(x)`, the terms of an entropy in nats.

    It is 0 at 0, and minus infinity of negative numbers.

    Example:
      >>> jax.scipy.special.entr(jnp.array([0.0, 1.0]))
      Array([-0., -0.], dtype=float32)
    """
    (x,) = real("entr", x)
    return lax.select(lax.lt(x, const_like(x, 0)), structural.full_like(x, -np.inf), lax.neg(_xlogx(x)))


def _relative_entropy(p: Any, q: Any) -> Any:
    both = jnp.logical_and(lax.gt(p, const_like(p, 0)), lax.gt(q, const_like(q, 0)))
    zero = jnp.logical_and(lax.eq(p, const_like(p, 0)), lax.ge(q, const_like(q, 0)))
    # Replaces arguments of the branch not taken, so that its derivatives are finite.
    safe_p, safe_q = jnp.where(both, p, 1), jnp.where(both, q, 1)
    logarithms = lax.sub(_xlogx(safe_p), xlogy(safe_p, safe_q))
    return jnp.where(both, logarithms, jnp.where(zero, const_like(p, 0), np.inf))


def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """Computes `p * log(p / q)`, the terms of a relative entropy.

    They are 0 where p is 0 and q is not negative, and infinite where an argument is negative or only `q` is 0.

    Example:
      >>> jax.scipy.special.rel_entr(2.0, 2.0)
      Array(0., dtype=float32, weak_type=True)
    """
    return _relative_entropy(*real("rel_entr", p, q))


def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """Computes `p * log(p / q) - p + q`, the terms of a Kullback-Leibler divergence.

    They are `q` where p is 0, and infinite where an argument is negative or only `q` is 0.

    Example:
      >>> jax.scipy.special.kl_div(2.0, 2.0)
      Array(0., dtype=float32, weak_type=True)
    """
    p, q = real("kl_div", p, q)
    return _relative_entropy(p, q) - p + q


def _power_transform(x: Any, lmbda: Any, log: Callable) -> Any:
    is_log = lax.eq(lmbda, const_like(lmbda, 0))
    power = jnp.where(is_log, structural.full_like(lmbda, 1), lmbda)
    logarithm = log(x)
    return jnp.where(is_log, logarithm, lax.div(lax.expm1(lax.mul(power, logarithm)), power))


def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Computes `(x ** lmbda - 1) / lmbda`, and `log(x)` where lmbda is 0.

    Arguments broadcast. The transform is Box and Cox's, 1964.

    Example:
      >>> jax.scipy.special.boxcox(3.0, 2.0)
      Array(4., dtype=float32, weak_type=True)
    """
    return _power_transform(*promote_args_inexact("boxcox", x, lmbda), lax.log)


def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Computes `((1 + x) ** lmbda - 1) / lmbda`, and `log(1 + x)` where lmbda is 0.

    Arguments broadcast. It is precise near x = 0.

    Example:
      >>> jax.scipy.special.boxcox1p(2.0, 2.0)
      Array(4., dtype=float32, weak_type=True)
    """
    return _power_transform(*promote_args_inexact("boxcox1p", x, lmbda), lax.log1p)


def softmax(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """Computes `exp(x)` divided by its sum over axes, without overflow.

    `axis` is an axis or tuple of axes, by default all; in `jax.nn.softmax` it is the last one.

    Example:
      >>> jax.scipy.special.softmax(jnp.array([0.0, 0.0]))
      Array([0.5, 0.5], dtype=float32)
    """
    return nn.softmax(x, axis=axis)


def log_softmax(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """Computes the logarithm of `softmax` without overflow.

    `axis` is an axis or tuple of axes, by default all; in `jax.nn.log_softmax` it is the last one.

    Example:
      >>> jax.scipy.special.log_softmax(jnp.array([0.0, 200.0]))
      Array([-200.,    0.], dtype=float32)
    """
    return nn.log_softmax(x, axis=axis)
