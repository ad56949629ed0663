"""Samples from continuous distributions that are computed from uniform and normal samples."""

from __future__ import annotations

from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.base import dtypes
from minijax.base.dtypes import DTypeLike
from minijax.dispatch.jitted import jitted
from minijax.ir.types import typeof
from minijax.primitives import elementwise as ops
from minijax.primitives.convert import convert_element_type
from minijax.primitives.structural import broadcast_shapes
from minijax.random.samplers import (
    _ranked,
    check_shape,
    checked_key,
    drawn_shape,
    exponential,
    float_dtype,
    normal,
    rademacher,
    split_in_two,
    takes_out_sharding,
    uniform,
)
from minijax.run.array import Array, ArrayLike, Shape, ShardingLike

_STATIC = ("shape", "dtype")


def check_cast(name: str, dtype: Any, *parameters: Any) -> None:
    """Raises TypePromotionError if a parameter cannot be cast to the requested dtype without losing precision."""
    for aval in map(typeof, parameters):
        if dtypes.is_complex(aval.dtype) or (not aval.weak_type and dtypes.promote_types(aval.dtype, dtype) != dtype):
            raise dtypes.TypePromotionError(
                f"In arguments to {name}, cannot safely cast argument of type {aval.dtype} to {dtype}"
            )


def optional_shape(shape: Any) -> tuple[int, ...] | None:
    return None if shape is None else drawn_shape(shape)


def shape_of(name: str, shape: tuple[int, ...] | None, *parameters: Any) -> tuple[int, ...]:
    """The shape of the samples: `shape` if given, else the broadcast shape of the parameters."""
    if shape is None:
        return broadcast_shapes(*[typeof(p).shape for p in parameters])
    check_shape(name, shape, *parameters)
    return shape


_ONE = np.float32(1.0)


@takes_out_sharding
def lognormal(key: ArrayLike, sigma: ArrayLike = _ONE, shape: Shape | None = None, dtype: DTypeLike | None = None, *,
              out_sharding: ShardingLike | None = None) -> Array:  # fmt: skip
    """Samples exp(sigma * z) of standard normal z; `shape` defaults to that of sigma."""
    key = checked_key("lognormal", key)
    dtype = float_dtype("lognormal", dtype)
    check_cast("lognormal", dtype, sigma)
    return _lognormal(key, sigma, optional_shape(shape), dtype)


@jitted("_lognormal", static=_STATIC, inline=True)
def _lognormal(key, sigma, shape, dtype):
    shape = shape_of("lognormal", shape, sigma)
    return ops.exp(normal(key, shape, dtype) * sigma)


@takes_out_sharding
def rayleigh(
    key: ArrayLike,
    scale: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Samples from the Rayleigh distribution; `shape` defaults to that of `scale`."""
    key = checked_key("rayleigh", key)
    dtype = float_dtype("rayleigh", dtype)
    check_cast("rayleigh", dtype, scale)
    return _rayleigh(key, scale, optional_shape(shape), dtype)


@jitted("_rayleigh", static=_STATIC)
def _rayleigh(key, scale, shape, dtype):
    shape = shape_of("rayleigh", shape, scale)
    drawn = uniform(key, shape, dtype)
    scale = jnp.broadcast_to(convert_element_type(scale, dtype), shape)
    return scale * ops.sqrt(ops.log(drawn) * -2)


@takes_out_sharding
def pareto(
    key: ArrayLike,
    b: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Samples from the Pareto distribution of exponent `b`; `shape` defaults to that of `b`."""
    key = checked_key("pareto", key)
    return _pareto(key, b, optional_shape(shape), float_dtype("pareto", dtype))


@jitted("_pareto", static=_STATIC)
def _pareto(key, b, shape, dtype):
    shape = shape_of("pareto", shape, b)
    b = convert_element_type(b, dtype)
    return ops.exp(exponential(key, shape, dtype) / _ranked(b, len(shape)))


def weibull_min(
    key: ArrayLike, scale: ArrayLike, concentration: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None
) -> Array:
    """Samples from the Weibull distribution."""
    key = checked_key("weibull_min", key)
    return _weibull_min(key, scale, concentration, drawn_shape(shape), float_dtype("weibull_min", dtype))


@jitted("_weibull_min", static=_STATIC)
def _weibull_min(key, scale, concentration, shape, dtype):
    drawn = -ops.log1p(-uniform(key, shape, dtype, minval=0, maxval=1))
    return drawn ** (1.0 / concentration) * scale


@takes_out_sharding
def maxwell(
    key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: ShardingLike | None = None
) -> Array:
    """Samples from the one-sided Maxwell distribution: norms of normal vectors of 3 components."""
    key = checked_key("maxwell", key)
    return _maxwell(key, drawn_shape(shape), float_dtype("maxwell", dtype))


@jitted("_maxwell", static=_STATIC)
def _maxwell(key, shape, dtype):
    return jnp.linalg.norm(normal(key, (*shape, 3), dtype), axis=-1)


def double_sided_maxwell(
    key: ArrayLike, loc: ArrayLike, scale: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None
) -> Array:
    """Samples from the two-sided Maxwell distribution.

    The result has the shape `shape`, by default that of the parameters, followed by that of the parameters, as in jax.
    """
    key = checked_key("double_sided_maxwell", key)
    return _double_sided_maxwell(key, loc, scale, drawn_shape(shape), float_dtype("double_sided_maxwell", dtype))


@jitted("_double_sided_maxwell", static=_STATIC)
def _double_sided_maxwell(key, loc, scale, shape, dtype):
    own = broadcast_shapes(typeof(loc).shape, typeof(scale).shape)
    shape = (*(shape or own), *own)
    lengths, signs = split_in_two(key)
    drawn = maxwell(lengths, shape, dtype)
    drawn = rademacher(signs, shape, dtype) * drawn
    return drawn * convert_element_type(scale, dtype) + convert_element_type(loc, dtype)


def _cast(x: Any, dtype: np.dtype) -> Any:
    aval = typeof(x)
    return x if aval.dtype == dtype and not aval.weak_type else convert_element_type(x, dtype)


@takes_out_sharding
def triangular(
    key: ArrayLike,
    left: ArrayLike,
    mode: ArrayLike,
    right: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Samples from the triangular distribution; `shape` defaults to the broadcast shape of the parameters."""
    key = checked_key("triangular", key)
    return _triangular(key, left, mode, right, optional_shape(shape), float_dtype("triangular", dtype))


@jitted("_triangular", static=_STATIC, inline=True)
def _triangular(key, left, mode, right, shape, dtype):
    shape = shape_of("triangular", shape, left, mode, right)
    left, right, mode = (jnp.broadcast_to(_cast(x, dtype), shape) for x in (left, right, mode))
    turn = (mode - left) / (right - left)
    drawn = uniform(key, shape, dtype)
    low = left + ops.sqrt(drawn * (right - left) * (mode - left))
    high = right - ops.sqrt((1 - drawn) * (right - left) * (right - mode))
    return ops.select(drawn < turn, low, high)


@takes_out_sharding
def wald(
    key: ArrayLike,
    mean: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Samples from the Wald distribution of scale 1 (Michael, Schucany & Haas); `shape` defaults to that of `mean`."""
    key = checked_key("wald", key)
    return _wald(key, mean, optional_shape(shape), float_dtype("wald", dtype))


@jitted("_wald", static=_STATIC)
def _wald(key, mean, shape, dtype):
    shape = shape_of("wald", shape, mean)
    first, second = split_in_two(key)
    mean = jnp.broadcast_to(convert_element_type(mean, dtype), shape)
    v, z = normal(first, shape, dtype), uniform(second, shape, dtype)
    y = ops.integer_pow(v, 2)
    y_squared, mean_squared = ops.integer_pow(y, 2), ops.integer_pow(mean, 2)
    root = ops.sqrt(4 * mean * y + mean_squared * y_squared)
    x = mean + mean_squared * y / 2 - mean / 2 * root
    return ops.select(z <= mean / (mean + x), x, mean_squared / x)
