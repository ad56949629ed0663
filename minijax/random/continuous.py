"""Samples from continuous distributions that are computed from uniform and normal samples."""

from __future__ import annotations

from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.base.dtypes import DTypeLike
from minijax.dispatch.jitted import jitted
from minijax.ir.types import typeof
from minijax.primitives import elementwise as ops
from minijax.primitives.convert import convert_element_type
from minijax.primitives.structural import broadcast_shapes
from minijax.random.arguments import drawn_shape, float_dtype, sampler
from minijax.random.keys import single_key
from minijax.random.samplers import as_ranked, exponential, normal, rademacher, split_in_two, uniform
from minijax.run.arrays.array import Array, ArrayLike, Shape

_ONE = np.float32(1.0)


@sampler(casts=True, inline=True)
def lognormal(
    key: ArrayLike, sigma: ArrayLike = _ONE, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Draws exp(sigma * z) for standard normal z; `shape` defaults to that of sigma."""
    return ops.exp(normal(key, shape, dtype) * sigma)


@sampler(casts=True)
def rayleigh(key: ArrayLike, scale: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Draws numbers from the Rayleigh distribution; `shape` defaults to that of `scale`."""
    drawn = uniform(key, shape, dtype)
    scale = jnp.broadcast_to(convert_element_type(scale, dtype), shape)
    return scale * ops.sqrt(ops.log(drawn) * -2)


@sampler()
def pareto(key: ArrayLike, b: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Draws numbers from the Pareto distribution of exponent `b`; `shape` defaults to that of `b`."""
    b = convert_element_type(b, dtype)
    return ops.exp(exponential(key, shape, dtype) / as_ranked(b, len(shape)))


def weibull_min(
    key: ArrayLike, scale: ArrayLike, concentration: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None
) -> Array:
    """Draws numbers from the Weibull distribution, with the shape `shape`."""
    key, _ = single_key("weibull_min", key)
    return _weibull_min(key, scale, concentration, drawn_shape(shape), float_dtype("weibull_min", dtype))


@jitted("_weibull_min", static=("shape", "dtype"))
def _weibull_min(key, scale, concentration, shape, dtype):
    drawn = -ops.log1p(-uniform(key, shape, dtype, minval=0, maxval=1))
    return drawn ** (1.0 / concentration) * scale


@sampler()
def maxwell(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Draws numbers from the one-sided Maxwell distribution: norms of normal vectors of 3 components."""
    return jnp.linalg.norm(normal(key, (*shape, 3), dtype), axis=-1)


def double_sided_maxwell(
    key: ArrayLike, loc: ArrayLike, scale: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None
) -> Array:
    """Draws numbers from the two-sided Maxwell distribution.

    The result has the shape `shape`, by default that of the parameters, followed by that of the parameters, as in jax.
    """
    key, _ = single_key("double_sided_maxwell", key)
    return _double_sided_maxwell(key, loc, scale, drawn_shape(shape), float_dtype("double_sided_maxwell", dtype))


@jitted("_double_sided_maxwell", static=("shape", "dtype"))
def _double_sided_maxwell(key, loc, scale, shape, dtype):
    own = broadcast_shapes(typeof(loc).shape, typeof(scale).shape)
    shape = (*(shape or own), *own)
    lengths, signs = split_in_two(key)
    drawn = maxwell(lengths, shape, dtype)
    drawn = rademacher(signs, shape, dtype) * drawn
    return drawn * scale + loc


def _cast(x: Any, dtype: np.dtype) -> Any:
    aval = typeof(x)
    return x if aval.dtype == dtype and not aval.weak_type else convert_element_type(x, dtype)


@sampler(inline=True)
def triangular(key: ArrayLike, left: ArrayLike, mode: ArrayLike, right: ArrayLike, shape: Shape | None = None,
               dtype: DTypeLike | None = None) -> Array:  # fmt: skip
    """Draws numbers from the triangular distribution; `shape` defaults to the broadcast shape of the parameters."""
    left, right, mode = (jnp.broadcast_to(_cast(x, dtype), shape) for x in (left, right, mode))
    turn = (mode - left) / (right - left)
    drawn = uniform(key, shape, dtype)
    low = left + ops.sqrt(drawn * (right - left) * (mode - left))
    high = right - ops.sqrt((1 - drawn) * (right - left) * (right - mode))
    return ops.select(drawn < turn, low, high)


@sampler()
def wald(key: ArrayLike, mean: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Draws numbers from the Wald distribution of scale 1 (Michael, Schucany & Haas).

    `shape` defaults to that of `mean`.
    """
    first, second = split_in_two(key)
    mean = jnp.broadcast_to(convert_element_type(mean, dtype), shape)
    v, z = normal(first, shape, dtype), uniform(second, shape, dtype)
    y = ops.integer_pow(v, 2)
    y_squared, mean_squared = ops.integer_pow(y, 2), ops.integer_pow(mean, 2)
    root = ops.sqrt(4 * mean * y + mean_squared * y_squared)
    x = mean + mean_squared * y / 2 - mean / 2 * root
    return ops.select(z <= mean / (mean + x), x, mean_squared / x)
