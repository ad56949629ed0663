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
from minijax.composed.arrays.special import random_gamma_grad
from minijax.composed.random import KeyOperation, random_split_p, random_wrap_p, threefry_prng_impl
from minijax.dispatch.jitted import jitted
from minijax.higher.mapping import map as lax_map
from minijax.higher.while_loop import while_loop
from minijax.ir.primitive import Axis
from minijax.ir.types import ShapedArray, Zero, typeof
from minijax.primitives import elementwise as ops, moving
from minijax.primitives.convert import convert_element_type, stop_gradient
from minijax.random.arguments import float_dtype, optional_shape, sampler, shape_of, takes_key
from minijax.random.keys import split
from minijax.random.samplers import exponential, normal, rademacher, split_in_two, uniform
from minijax.run.arrays.array import Array, ArrayLike, Shape

# ---- one number --------------------------------------------------------------------------------------


def _drawn(key: Any, a: Any, log_space: bool) -> Any:
    """A gamma sample of shape parameter `a`, or with `log_space` its logarithm, which is accurate for small `a` too."""
    dtype = typeof(a).dtype
    number = lambda x: np.asarray(x, dtype)[()]  # noqa: E731
    one, third = number(1), number(1 / 3)
    is_large = a >= one
    # The method needs a >= 1; below, a sample for a + 1 is scaled by u ** (1 / a).
    d = ops.select(is_large, a, a + one) - third
    c = third / ops.sqrt(d)

    def is_refused(state):
        _, square, cube, u = state
        squeezed = u >= 1 - number(0.0331) * (square * square)
        return squeezed & (ops.log(u) >= square * 0.5 + d * (1 - cube + ops.log(cube)))

    def positive(state):
        key, _, _ = state
        key, subkey = split_in_two(key)
        x = normal(subkey, (), dtype)
        return key, x, 1 + x * c

    def attempt(state):
        key, x_key, u_key = split(state[0], 3)
        _, x, v = while_loop(lambda s: s[2] <= 0, positive, (x_key, number(0), number(-1)))
        return key, x * x, v * v * v, uniform(u_key, (), dtype)

    key, subkey = split_in_two(key)
    _, _, cube, _ = while_loop(is_refused, attempt, (key, number(0), one, number(2)))
    if log_space:
        log_u = -exponential(subkey, (), dtype)
        log_scale = ops.select(is_large | (log_u == 0), number(0), log_u * (1 / a))
        return ops.log(d) + ops.log(cube) + log_scale
    u = 1 - uniform(subkey, (), dtype)
    return d * cube * ops.select(is_large, one, ops.pow(u, 1 / a))


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
            flat = own.reshape(a.size), a.reshape(a.size)
            if keys.dtype._impl is threefry_prng_impl:
                return vmap(lambda key, a: _drawn(key, a, log_space))(*flat).reshape(a.shape)
            # Under vmap, the bits of other generators are those of the first key.
            return lax_map(lambda pair: _drawn(*pair, log_space), flat).reshape(a.shape)

        return draw

    def jvp(self, primals, tangents, *, log_space):
        keys, a = primals
        (samples,) = self.bind_all(primals, dict(log_space=log_space))
        if type(tangents[1]) is Zero:
            return [samples], [Zero.from_primal_value(samples)]
        return [samples], [tangents[1] * _derivative(samples, a, log_space)]

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
        samples = ops.select(samples == 0, least, samples)

    def by_one(args):
        slope = random_gamma_grad(*args)
        return slope / args[1] if log_space else slope

    flat = [moving.reshape(x, (aval.size,)) for x in (a, samples)]
    return moving.reshape(lax_map(by_one, tuple(flat)), aval.shape)


random_gamma_p = RandomGamma()


# ---- samplers ----------------------------------------------------------------------------------------


@takes_key
def gamma(key: ArrayLike, a: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Draws numbers from the gamma distribution of scale 1; differentiable by its shape `a` (Figurnov et al. 2018).

    `shape` defaults to the shape of `a`. `loggamma` is accurate for small `a`.

    Example:
        >>> x = jax.random.gamma(jax.random.key(0), 4.0, (1000,))
        >>> bool(abs(x.mean() - 4) < 0.3)
        True
    """
    return _gamma(key, a, optional_shape(shape), float_dtype("gamma", dtype), False)


@takes_key
def loggamma(key: ArrayLike, a: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Draws logarithms of gamma samples; accurate for small `a`, where the samples themselves underflow to zero."""
    return _gamma(key, a, optional_shape(shape), float_dtype("gamma", dtype), True)


@jitted("_gamma", static=("shape", "dtype", "log_space"))
def _gamma(key, a, shape, dtype, log_space):
    shape = shape_of("gamma", shape, a)
    a = convert_element_type(a, dtype)
    if typeof(a).shape != shape:
        a = jnp.broadcast_to(a, shape)
    return random_gamma_p.bind(key, a, log_space=log_space)


@sampler(casts=True)
def beta(
    key: ArrayLike, a: ArrayLike, b: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Draws numbers from the beta distribution; `shape` defaults to the common shape of `a` and `b`."""
    a, b = convert_element_type(a, dtype), convert_element_type(b, dtype)
    first, second = split_in_two(key)
    a, b = jnp.broadcast_to(a, shape), jnp.broadcast_to(b, shape)
    log_a, log_b = loggamma(first, a, shape, dtype), loggamma(second, b, shape, dtype)
    log_most = ops.max(log_a, log_b)
    a, b = ops.exp(log_a - log_most), ops.exp(log_b - log_most)
    return a / (a + b)


def _shape_before_vectors(name: str, shape: Any, alpha: Any) -> tuple[int, ...]:
    own = typeof(alpha).shape
    if not own:
        raise ValueError("dirichlet requires alpha.ndim >= 1, got alpha.ndim == 0")
    return shape_of(name, shape, own[:-1])


@sampler(shape_of=_shape_before_vectors)
def dirichlet(key: ArrayLike, alpha: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Draws vectors, along the last axis, from the Dirichlet distribution; `shape` is that of the other axes."""
    log_samples = loggamma(key, convert_element_type(alpha, dtype), (*shape, typeof(alpha).shape[-1]), dtype)
    # Not nn.softmax: the derivative must not include that of the maximum.
    most = stop_gradient(jnp.max(log_samples, -1, keepdims=True, initial=-jnp.inf))
    terms = jnp.exp(log_samples - most)
    return terms / terms.sum(-1, keepdims=True)


@sampler(casts=True)
def chisquare(key: ArrayLike, df: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Draws numbers from the chi-square distribution of `df` degrees of freedom; `shape` defaults to that of `df`."""
    df = convert_element_type(df, dtype)
    return ops.exp(loggamma(key, df / 2, shape, dtype)) * 2


@sampler(casts=True)
def t(key: ArrayLike, df: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Draws numbers from Student's t distribution of `df` degrees of freedom; `shape` defaults to that of `df`."""
    df = convert_element_type(df, dtype)
    first, second = split_in_two(key)
    n = normal(first, shape, dtype)
    half = df / 2
    return n * ops.sqrt(half / gamma(second, half, shape, dtype))


@sampler(casts=True)
def f(
    key: ArrayLike, dfnum: ArrayLike, dfden: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Draws numbers from the F distribution of `dfnum` and `dfden` degrees of freedom."""
    dfden, dfnum = convert_element_type(dfden, dtype), convert_element_type(dfnum, dtype)
    key_den, key_num = split_in_two(key)
    num, den = chisquare(key_num, dfnum, shape, dtype), chisquare(key_den, dfden, shape, dtype)
    return (num / dfnum) / (den / dfden)


@sampler()
def generalized_normal(key: ArrayLike, p: float, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Draws numbers from the density proportional to exp(-|x|**p)."""
    keys = split(key)
    g = gamma(keys[0], 1 / p, shape, dtype)
    r = rademacher(keys[1], shape, dtype)
    return r * g ** (1 / p).astype(dtype)


@sampler(static=("d",))
def ball(key: ArrayLike, d: int, p: float = 2, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Draws points uniformly from the unit ball of the p-norm in `d` dimensions, the last axis (Barthe et al. 2005)."""
    first, second = split_in_two(key)
    g = generalized_normal(first, p, (*shape, d), dtype)
    e = exponential(second, shape, dtype)
    return g / (((jnp.abs(g) ** p).sum(-1) + e) ** (1 / p))[..., None]
