"""Samples from the gamma distribution (Marsaglia and Tsang 2000) and from distributions that are computed from it."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.api.vmap import vmap
from minijax.base import dtypes
from minijax.base.dtypes import DTypeLike
from minijax.composed.random import KeyOperation, random_split_p, random_wrap_p
from minijax.composed.special import random_gamma_grad
from minijax.dispatch.jitted import jitted
from minijax.higher.mapping import map as lax_map
from minijax.higher.while_loop import while_loop
from minijax.ir.primitive import Axis
from minijax.ir.types import ShapedArray, Zero, typeof
from minijax.primitives import elementwise as ops, moving
from minijax.primitives.convert import convert_element_type, stop_gradient
from minijax.primitives.families import scalar_like
from minijax.random.continuous import check_cast, optional_shape, shape_of
from minijax.random.keys import split
from minijax.random.samplers import (
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


# ---- one number --------------------------------------------------------------------------------------


def _drawn(key: Any, a: Any, log_space: bool) -> Any:
    """A gamma sample of shape parameter `a`, or with `log_space` its logarithm, which is accurate for small `a` too."""
    dtype = typeof(a).dtype
    number = lambda x: np.asarray(x, dtype)[()]  # noqa: E731
    one, third = number(1), number(1 / 3)
    is_large = ops.ge(a, one)
    # The method needs a >= 1; below, a sample for a + 1 is scaled by u ** (1 / a).
    d = ops.sub(ops.select(is_large, a, ops.add(a, one)), third)
    c = ops.div(third, ops.sqrt(d))

    def is_refused(state):
        _, square, cube, u = state
        squeezed = ops.ge(u, ops.sub(one, ops.mul(number(0.0331), ops.mul(square, square))))
        bound = ops.add(ops.mul(square, number(0.5)), ops.mul(d, ops.add(ops.sub(one, cube), ops.log(cube))))
        return ops.bitwise_and(squeezed, ops.ge(ops.log(u), bound))

    def positive(state):
        key, _, _ = state
        key, subkey = split_in_two(key)
        x = normal(subkey, (), dtype)
        return key, x, ops.add(one, ops.mul(x, c))

    def attempt(state):
        key, x_key, u_key = split(state[0], 3)
        _, x, v = while_loop(lambda s: ops.le(s[2], number(0)), positive, (x_key, number(0), number(-1)))
        return key, ops.mul(x, x), ops.mul(ops.mul(v, v), v), uniform(u_key, (), dtype)

    key, subkey = split_in_two(key)
    _, _, cube, _ = while_loop(is_refused, attempt, (key, number(0), one, number(2)))
    if log_space:
        log_u = ops.neg(exponential(subkey, (), dtype))
        is_unscaled = ops.bitwise_or(is_large, ops.eq(log_u, number(0)))
        log_scale = ops.select(is_unscaled, number(0), ops.mul(log_u, ops.div(one, a)))
        return ops.add(ops.add(ops.log(d), ops.log(cube)), log_scale)
    u = ops.sub(one, uniform(subkey, (), dtype))
    return ops.mul(ops.mul(d, cube), ops.select(is_large, one, ops.pow(u, ops.div(one, a))))


class RandomGamma(KeyOperation):
    """Gamma samples, one for each element of `a`; the leading axes of `a` are those of the keys."""

    name = "random_gamma"
    counts = False

    def infer(self, keys, a, *, log_space):
        if a.shape[: keys.ndim] != keys.shape:
            raise ValueError(
                f"random_gamma: the shape {a.shape} of parameters must begin with that of keys, {keys.shape}"
            )
        return [ShapedArray(a.shape, a.dtype)]

    def definition(self, keys, a, *, log_space) -> Callable:
        each = prod(a.shape[keys.ndim :])

        def draw(words, a):
            own = random_wrap_p.bind(words, impl=keys.dtype._impl)
            own = vmap(lambda key: random_split_p.bind(key, shape=(each,)))(own.reshape(keys.size))
            samples = vmap(lambda key, a: _drawn(key, a, log_space))(own.reshape(a.size), a.reshape(a.size))
            return samples.reshape(a.shape)

        return draw

    def jvp(self, primals, tangents, *, log_space):
        keys, a = primals
        (samples,) = self.bind_all(primals, dict(log_space=log_space))
        if type(tangents[1]) is Zero:
            return [samples], [Zero.from_primal_value(samples)]
        return [samples], [ops.mul(tangents[1], _derivative(samples, a, log_space))]

    def batch(self, axis: Axis, operands, dims, *, log_space):
        front = [
            moving.broadcast_axis(x, axis, 0) if d is None else moving.move_axis(x, d, 0)
            for x, d in zip(operands, dims, strict=True)
        ]
        return self.bind_all(front, dict(log_space=log_space)), [0]


def _derivative(samples: Any, a: Any, log_space: bool) -> Any:
    """The derivative of samples by the shape parameter, at a fixed value of the cumulative distribution function."""
    aval = typeof(samples)
    if log_space:
        samples = ops.exp(samples)
        least = jnp.broadcast_to(np.asarray(dtypes.finfo(aval.dtype).tiny, aval.dtype)[()], aval.shape)
        samples = ops.select(ops.eq(samples, scalar_like(samples, 0)), least, samples)
        by_one = lambda args: ops.div(random_gamma_grad(*args), args[1])  # noqa: E731
    else:
        by_one = lambda args: random_gamma_grad(*args)  # noqa: E731
    size = (aval.size,)
    return moving.reshape(lax_map(by_one, (moving.reshape(a, size), moving.reshape(samples, size))), aval.shape)


random_gamma_p = RandomGamma()


# ---- draws -------------------------------------------------------------------------------------------


@takes_out_sharding
def gamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Samples from the gamma distribution of scale 1; differentiable by its shape `a` (Figurnov et al. 2018)."""
    key = checked_key("gamma", key)
    return _gamma(key, a, optional_shape(shape), float_dtype("gamma", dtype), False)


@takes_out_sharding
def loggamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Logarithms of gamma samples; accurate for small `a`, where the samples themselves underflow to zero."""
    key = checked_key("loggamma", key)
    return _gamma(key, a, optional_shape(shape), float_dtype("gamma", dtype), True)


@jitted("_gamma", static=("shape", "dtype", "log_space"))
def _gamma(key, a, shape, dtype, log_space):
    shape = shape_of("gamma", shape, a)
    a = convert_element_type(a, dtype)
    if typeof(a).shape != shape:
        a = jnp.broadcast_to(a, shape)
    return random_gamma_p.bind(key, a, log_space=log_space)


@takes_out_sharding
def beta(
    key: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Samples from the beta distribution."""
    key = checked_key("beta", key)
    dtype = float_dtype("beta", dtype)
    check_cast("beta", dtype, a, b)
    return _beta(key, a, b, optional_shape(shape), dtype)


@jitted("_beta", static=_STATIC)
def _beta(key, a, b, shape, dtype):
    shape = shape_of("beta", shape, a, b)
    a, b = convert_element_type(a, dtype), convert_element_type(b, dtype)
    first, second = split_in_two(key)
    a, b = jnp.broadcast_to(a, shape), jnp.broadcast_to(b, shape)
    log_a, log_b = loggamma(first, a, shape, dtype), loggamma(second, b, shape, dtype)
    log_most = ops.max(log_a, log_b)
    a, b = ops.exp(ops.sub(log_a, log_most)), ops.exp(ops.sub(log_b, log_most))
    return ops.div(a, ops.add(a, b))


@takes_out_sharding
def dirichlet(
    key: ArrayLike,
    alpha: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Samples from the Dirichlet distribution, vectors along the last axis; `shape` is that of the other axes."""
    key = checked_key("dirichlet", key)
    return _dirichlet(key, alpha, optional_shape(shape), float_dtype("dirichlet", dtype))


@jitted("_dirichlet", static=_STATIC)
def _dirichlet(key, alpha, shape, dtype):
    own = typeof(alpha).shape
    if not own:
        raise ValueError("dirichlet requires alpha.ndim >= 1, got alpha.ndim == 0")
    if shape is None:
        shape = own[:-1]
    else:
        check_shape("dirichlet", shape, own[:-1])
    log_samples = loggamma(key, convert_element_type(alpha, dtype), (*shape, *own[-1:]), dtype)
    # Not nn.softmax: the derivative must not include that of the maximum.
    most = stop_gradient(jnp.max(log_samples, -1, keepdims=True, initial=-jnp.inf))
    terms = jnp.exp(log_samples - most)
    return terms / terms.sum(-1, keepdims=True)


@takes_out_sharding
def chisquare(
    key: ArrayLike,
    df: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Samples from the chi-square distribution of `df` degrees of freedom."""
    key = checked_key("chisquare", key)
    dtype = float_dtype("chisquare", dtype)
    check_cast("chisquare", dtype, df)
    return _chisquare(key, df, optional_shape(shape), dtype)


@jitted("_chisquare", static=_STATIC)
def _chisquare(key, df, shape, dtype):
    shape = shape_of("chisquare", shape, df)
    df = convert_element_type(df, dtype)
    two = scalar_like(df, 2)
    log_g = loggamma(key, ops.div(df, two), shape, dtype)
    return ops.mul(ops.exp(log_g), two)


@takes_out_sharding
def t(
    key: ArrayLike,
    df: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Samples from Student's t distribution of `df` degrees of freedom."""
    key = checked_key("t", key)
    dtype = float_dtype("t", dtype)
    check_cast("t", dtype, df)
    return _t(key, df, optional_shape(shape), dtype)


@jitted("_t", static=_STATIC)
def _t(key, df, shape, dtype):
    shape = shape_of("t", shape, df)
    df = convert_element_type(df, dtype)
    first, second = split_in_two(key)
    n = normal(first, shape, dtype)
    half = ops.div(df, scalar_like(df, 2))
    g = gamma(second, half, shape, dtype)
    return n * ops.sqrt(half / g)


@takes_out_sharding
def f(
    key: ArrayLike,
    dfnum: ArrayLike,
    dfden: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Samples from the F distribution of `dfnum` and `dfden` degrees of freedom."""
    key = checked_key("f", key)
    dtype = float_dtype("f", dtype)
    check_cast("f", dtype, dfnum, dfden)
    return _f(key, dfnum, dfden, optional_shape(shape), dtype)


@jitted("_f", static=_STATIC)
def _f(key, dfnum, dfden, shape, dtype):
    shape = shape_of("f", shape, dfnum, dfden)
    dfden, dfnum = convert_element_type(dfden, dtype), convert_element_type(dfnum, dtype)
    key_den, key_num = split_in_two(key)
    num, den = chisquare(key_num, dfnum, shape, dtype), chisquare(key_den, dfden, shape, dtype)
    return (num / dfnum) / (den / dfden)


@takes_out_sharding
def generalized_normal(
    key: ArrayLike,
    p: float,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Samples from the density proportional to exp(-|x|**p)."""
    key = checked_key("generalized_normal", key)
    return _generalized_normal(key, p, drawn_shape(shape), float_dtype("generalized_normal", dtype))


@jitted("_generalized_normal", static=_STATIC)
def _generalized_normal(key, p, shape, dtype):
    keys = split(key)
    g = gamma(keys[0], 1 / p, shape, dtype)
    r = rademacher(keys[1], shape, dtype)
    return r * g ** (1 / p).astype(dtype)


@takes_out_sharding
def ball(
    key: ArrayLike,
    d: int,
    p: float = 2,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Uniform samples from the unit ball of the p-norm, `d` coordinates along the last axis (Barthe et al. 2005)."""
    key = checked_key("ball", key)
    return _ball(key, d, p, drawn_shape(shape), float_dtype("ball", dtype))


@jitted("_ball", static=("d", *_STATIC))
def _ball(key, d, p, shape, dtype):
    first, second = split_in_two(key)
    g = generalized_normal(first, p, (*shape, d), dtype)
    e = exponential(second, shape, dtype)
    return g / (((jnp.abs(g) ** p).sum(-1) + e) ** (1 / p))[..., None]
