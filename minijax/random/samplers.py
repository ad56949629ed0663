"""Samples from the basic distributions and from those computed from them, and samples that need linear algebra.

Gamma numbers are drawn as Marsaglia and Tsang do (2000).
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi, prod, sqrt
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.api.vmap import vmap
from minijax.base import config, dtypes
from minijax.base.dtypes import DTypeLike
from minijax.composed.arrays.selecting import where
from minijax.composed.arrays.special import random_gamma_grad
from minijax.composed.random import KeyOperation, random_bits_p, random_split_p, random_wrap_p, threefry_prng_impl
from minijax.dispatch.jitted import jitted
from minijax.higher.mapping import map as lax_map
from minijax.higher.while_loop import while_loop
from minijax.ir.primitive import Axis
from minijax.ir.types import ShapedArray, Zero, typeof
from minijax.numpy.ufuncs import clip
from minijax.primitives import elementwise as ops, moving, structural
from minijax.primitives.convert import bitcast_convert_type, convert, convert_element_type, stop_gradient
from minijax.primitives.families import scalar_like
from minijax.primitives.promote import promote_dtypes_inexact
from minijax.primitives.structural import broadcast_shapes, broadcast_to_rank
from minijax.random.arguments import (
    check_shape,
    drawn_shape,
    float_dtype,
    inexact_dtype,
    integer_dtype,
    optional_shape,
    sampler,
    shape_of,
    takes_key,
)
from minijax.random.keys import single_key, split
from minijax.run.arrays.array import Array, ArrayLike, Shape


def split_keys(key: Array, num: int) -> tuple[Array, ...]:
    """Splits a typed key into `num` keys, as a tuple."""
    return unpacked(random_split_p.bind(key, shape=(num,)))


def split_in_two(key: Array) -> tuple[Array, ...]:
    """Splits a typed key into two."""
    return split_keys(key, 2)


def unpacked(x: Array) -> tuple[Array, ...]:
    """The elements along the first axis, as a tuple."""
    shape = typeof(x).shape
    ones, rest = (1,) * len(shape), (0,) * (len(shape) - 1)
    return tuple(
        structural.squeeze(structural.slice(x, (i, *rest), (i + 1, *shape[1:]), ones), (0,)) for i in range(shape[0])
    )


def as_ranked(x: Any, ndim: int) -> Any:
    return broadcast_to_rank(x, ndim) if typeof(x).shape else x


# ---- uniform numbers --------------------------------------------------------------------------------


@takes_key
def bits(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Draws uniform random bits, as unsigned integers. Raises ValueError for another dtype.

    Example:
        >>> jax.random.bits(jax.random.key(0), (2,), jnp.uint8)
        Array([167, 146], dtype=uint8)
    """
    requested = dtypes.default_uint_dtype() if dtype is None else dtype
    dtype = dtypes.check_and_canonicalize_user_dtype(requested, "bits")
    if not dtypes.issubdtype(dtype, np.unsignedinteger):
        raise ValueError(f"dtype argument to `bits` must be an unsigned int dtype, got {dtype}")
    return random_bits_p.bind(key, bit_width=8 * dtype.itemsize, shape=drawn_shape(shape))


@takes_key
def uniform(
    key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, minval: ArrayLike = 0.0, maxval: ArrayLike = 1.0
) -> Array:
    """Draws numbers from the uniform distribution on the interval [minval, maxval).

    Args:
        key: A random key; see `jax.random.key`.
        shape: The shape of the result.
        dtype: A floating-point dtype, by default float32 (float64 with `jax_enable_x64`).
        minval: The lower end, by default 0; it broadcasts to `shape`.
        maxval: The upper end, by default 1, which is excluded. It broadcasts to `shape`.

    Returns:
        An array of the shape and dtype.

    Raises:
        ValueError: If `dtype` is not a floating-point dtype.

    Example:
        >>> x = jax.random.uniform(jax.random.key(0), (100,), minval=-1.0, maxval=2.0)
        >>> bool(jnp.all((x >= -1) & (x < 2)))
        True
    """
    return _uniform(key, drawn_shape(shape), float_dtype("uniform", dtype), minval, maxval)


@jitted("_uniform", static=("shape", "dtype"))
def _uniform(key, shape, dtype, minval, maxval):
    low, high = convert_element_type(minval, dtype), convert_element_type(maxval, dtype)
    low, high = broadcast_to_rank(low, len(shape)), broadcast_to_rank(high, len(shape))
    info = dtypes.finfo(dtype)
    if info.bits < 8:
        raise TypeError(f"uniform only accepts 8-, 16-, 32-, or 64-bit dtypes, got {dtype.name}: convert wider ones")
    # Random mantissa bits with the exponent of 1 give a number in [1, 2); a narrow mantissa needs 8 bits only.
    width = 8 if info.nmant < 8 else info.bits
    word = dtypes.BY_NAME[f"uint{info.bits}"]
    drawn = convert(random_bits_p.bind(key, bit_width=width, shape=shape), word)
    mantissa = ops.shift_right_logical(drawn, scalar_like(drawn, width - info.nmant))
    one = np.ones((), dtype)
    number = bitcast_convert_type(mantissa | one.view(word)[()], dtype)
    scaled = (number - one[()]) * (high - low) + low
    return ops.max(low, moving.reshape(scaled, shape))


@takes_key
def randint(
    key: ArrayLike, shape: Shape, minval: ArrayLike, maxval: ArrayLike, dtype: DTypeLike | None = None
) -> Array:
    """Draws integers from the uniform distribution on minval, ..., maxval - 1.

    Args:
        key: A random key; see `jax.random.key`.
        shape: The shape of the result.
        minval: The smallest integer; it broadcasts to `shape`.
        maxval: One more than the largest integer; it broadcasts to `shape`. Where it is not above `minval`, the result
            is `minval`.
        dtype: An integer dtype, by default int32 (int64 with `jax_enable_x64`).

    Returns:
        An array of the shape and dtype.

    Raises:
        TypeError: If `dtype` is not an integer dtype.

    See also: `jax.random.choice`, `jax.random.bits`.

    Example:
        >>> dice = jax.random.randint(jax.random.key(1), (1000,), 1, 7)
        >>> int(dice.min()), int(dice.max())
        (1, 6)
    """
    shape, dtype = drawn_shape(shape), integer_dtype("randint", dtype)
    if not dtypes.issubdtype(dtype, np.integer):
        raise TypeError(f"randint only accepts integer dtypes, got {dtype}. jax.random.uniform draws floats.")
    if dtypes.itemsize_bits(dtype) >= 32:
        return _randint(key, shape, minval, maxval, dtype)
    info, wide = dtypes.iinfo(dtype), np.dtype("int32")
    low = clip(convert(minval, wide), min=int(info.min), max=int(info.max))
    high = clip(convert(maxval, wide), min=int(info.min), max=int(info.max) + 1)
    return convert(_randint(key, shape, low, high, wide), dtype)


def _clip_to_dtype(x: Any, dtype: np.dtype) -> Any:
    """Converts an integer array to an integer dtype; values are clipped to its bounds."""
    aval = typeof(x)
    own, other = dtypes.iinfo(aval.dtype), dtypes.iinfo(dtype)
    bounds = [max(int(own.min), int(other.min)), min(int(own.max), int(other.max))]
    if not aval.weak_type:
        bounds = [scalar_like(x, bound) for bound in bounds]
    return convert(clip(x, *bounds), dtype)


@jitted("_randint", static=("shape", "dtype"))
def _randint(key, shape, minval, maxval, dtype):
    check_shape("randint", shape, minval, maxval)
    low, high = (
        x if dtypes.issubdtype(typeof(x).dtype, np.integer) else convert_element_type(x, dtype)
        for x in (minval, maxval)
    )
    # Order of operations as in jax (Apache-2.0); maxval may be one more than the dtype holds.
    info = dtypes.iinfo(dtype)
    beyond = ops.gt(high, _clip_to_dtype(np.asarray(info.max, dtype)[()], typeof(high).dtype))
    low, high = _clip_to_dtype(low, dtype), _clip_to_dtype(high, dtype)
    low, high = broadcast_to_rank(low, len(shape)), broadcast_to_rank(high, len(shape))
    unsigned = dtypes.BY_NAME[f"uint{info.bits}"]
    more, less = (random_bits_p.bind(k, bit_width=info.bits, shape=shape) for k in split_in_two(key))
    span = convert(ops.sub(high, low), unsigned)
    one = scalar_like(span, 1)
    span = ops.select(ops.le(high, low), moving.filled(typeof(span).shape, one), span)
    span = ops.select(beyond & (high > low), span + one, span)
    # The high word is multiplied by 2**bits modulo the span, computed without overflow.
    root = ops.rem(scalar_like(span, 2 ** (info.bits // 2)), span)
    weight = ops.rem(root * root, span)
    offset = ops.rem(more, span) * weight + ops.rem(less, span)
    return low + convert(ops.rem(offset, span), dtype)


@takes_key
def bernoulli(key: ArrayLike, p: ArrayLike = 0.5, shape: Shape | None = None, mode: str = "low") -> Array:
    """Draws booleans that are true with probability `p`.

    Args:
        key: A random key; see `jax.random.key`.
        p: The probability, with a floating-point dtype. By default 0.5.
        shape: The shape of the result, to which `p` broadcasts. By default, that of `p`.
        mode: `"high"` resolves smaller probabilities than `"low"`, the default, and is slower.

    Returns:
        A boolean array.

    Raises:
        TypeError: If `p` is not floating.
        ValueError: If the mode is unknown, or `p` does not broadcast to `shape`.

    Example:
        >>> flips = jax.random.bernoulli(jax.random.key(0), 0.25, (1000,))
        >>> bool(abs(flips.mean() - 0.25) < 0.05)
        True
    """
    if mode not in ("high", "low"):
        raise ValueError(f"got mode={mode!r}, expected 'high' or 'low'")
    dtype = typeof(p).dtype
    if not dtypes.issubdtype(dtype, np.floating):
        raise TypeError(f"bernoulli probability `p` must have a floating dtype, got {dtype}.")
    return _bernoulli(key, convert_element_type(p, dtype), optional_shape(shape), mode)


@jitted("_bernoulli", static=("shape", "mode"))
def _bernoulli(key, p, shape, mode):
    shape, dtype = shape_of("bernoulli", shape, p), typeof(p).dtype
    if mode == "low":
        return uniform(key, shape, dtype) < as_ranked(p, len(shape))
    coarse, fine = unpacked(uniform(key, (2, *shape), dtype))
    return fine * scalar_like(fine, dtypes.finfo(dtype).eps) < as_ranked(p, len(shape)) - coarse


@sampler(integer_dtype)
def rademacher(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Draws 1 and -1, each with probability 1/2.

    Example:
        >>> x = jax.random.rademacher(jax.random.key(0), (100,))
        >>> bool(jnp.all(jnp.abs(x) == 1))
        True
    """
    flips = convert(bernoulli(key, 0.5, shape), dtype)
    return convert(2 * flips - 1, dtype)


# ---- continuous distributions -----------------------------------------------------------------------


@sampler(inexact_dtype)
def normal(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Draws numbers from the standard normal distribution, of mean 0 and variance 1.

    Args:
        key: A random key; see `jax.random.key`.
        shape: The shape of the result.
        dtype: A floating-point or complex dtype, by default float32 (float64 with `jax_enable_x64`). The variance of a
            complex number is shared by its parts.

    Returns:
        An array of the shape and dtype. Multiply it by a standard deviation and add a mean for other distributions.

    Raises:
        ValueError: If the dtype is neither floating nor complex.

    See also: `jax.random.truncated_normal`, `jax.random.multivariate_normal`.

    Example:
        >>> x = jax.random.normal(jax.random.key(0), (10_000,))
        >>> bool(abs(x.mean()) < 0.05), bool(abs(x.std() - 1) < 0.05)
        (True, True)
    """
    if not dtypes.is_complex(dtype):
        return _normal_real(key, shape, dtype)
    part = dtypes.to_floating_dtype(dtype)
    re, im = (convert(_normal_real(k, shape, part), dtype) for k in split_in_two(key))
    return (re + 1j * im) / convert(np.asarray(sqrt(2), part)[()], dtype)


@jitted("_normal_real", static=("shape", "dtype"))
def _normal_real(key, shape, dtype):
    one = np.ones((), dtype)
    drawn = uniform(key, shape, dtype, np.nextafter(-one, 0 * one)[()], one[()])
    return ops.mul(scalar_like(drawn, sqrt(2)), ops.erf_inv(drawn))


@sampler()
def truncated_normal(
    key: ArrayLike, lower: ArrayLike, upper: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Draws numbers from the standard normal distribution, truncated to the interval from `lower` to `upper`.

    The ends broadcast to `shape`, whose default is their common shape.

    Example:
        >>> x = jax.random.truncated_normal(jax.random.key(0), -2.0, 2.0, (1000,))
        >>> bool(jnp.all(jnp.abs(x) < 2))
        True
    """
    lower, upper = convert_element_type(lower, dtype), convert_element_type(upper, dtype)
    root = np.asarray(sqrt(2), dtype)[()]
    ends = [ops.erf(ops.div(end, root)) for end in (lower, upper)]
    drawn = root * ops.erf_inv(uniform(key, shape, dtype, *ends))
    infinity = np.asarray(np.inf, dtype)[()]
    inside = [ops.nextafter(stop_gradient(end), to) for end, to in ((lower, infinity), (upper, -infinity))]
    return clip(drawn, *inside)


@sampler()
def exponential(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Draws numbers from the exponential distribution of mean 1.

    Example:
        >>> x = jax.random.exponential(jax.random.key(0), (10_000,))
        >>> bool(jnp.all(x >= 0)), bool(abs(x.mean() - 1) < 0.1)
        (True, True)
    """
    return -ops.log1p(-uniform(key, shape, dtype))


@takes_key
def gumbel(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, mode: str | None = None) -> Array:
    """Draws numbers from the Gumbel distribution.

    The modes `"high"` and `"highest"` reach further into its tail than `"low"`. Raises ValueError for other modes.

    Example:
        >>> jax.random.gumbel(jax.random.key(0), (2, 3)).shape
        (2, 3)
    """
    shape, dtype = drawn_shape(shape), float_dtype("gumbel", dtype)
    if mode is None:
        mode = "high" if config.option("high_dynamic_range_gumbel").value else "low"
    if mode not in ("highest", "high", "low"):
        raise ValueError(f"Must provide valid mode for gumbel got: {mode}")
    return _gumbel(key, shape, dtype, mode)


@jitted("_gumbel", static=("shape", "dtype", "mode"))
def _gumbel(key, shape, dtype, mode):
    info = dtypes.finfo(dtype)
    tiny = np.asarray(info.tiny, dtype)[()]
    if mode == "low":
        return -ops.log(-ops.log(_uniform(key, shape, dtype, minval=tiny, maxval=1.0)))
    if mode == "highest" and dtype == np.float32:
        is_low, share = _distance_from_end(random_bits_p.bind(key, bit_width=32, shape=(2, *shape)))
        below = -ops.log(-ops.log1p(-share))
        return where(is_low, below, -ops.log(-ops.log(share)))
    high, low = unpacked(_uniform(key, (2, *shape), dtype, minval=0.0, maxval=1.0))
    is_coarse = high >= 0.5
    finer = high + scalar_like(low, info.eps) * low + tiny
    drawn = where(is_coarse, high, finer)
    return -ops.log(-ops.log1p(-drawn))


def _distance_from_end(words: Array) -> tuple[Array, Array]:
    """Makes a uniform number of 64 random bits: (whether it is below 1/2, its distance from the nearer of 0 and 1).

    The distance has the full precision of float32: its exponent is minus the number of leading zeros of the bits.
    """
    flipped = ops.bitwise_not(words)
    carry = flipped[1] == np.uint32(0xFFFFFFFF)
    ones = structural.full_like(carry, 1, np.uint32)
    both = [moving.expand_dims(x, (0,)) for x in (convert(carry, np.dtype(np.uint32)), ones)]
    from_above = flipped + structural.concatenate(both, 0)
    is_low = words[0] < np.uint32(1 << 31)
    nearer = where(is_low, words, from_above)
    zeros_high, zeros_low = unpacked(ops.clz(nearer))
    high, low = unpacked(nearer)
    first = high << zeros_high
    is_small = zeros_high == 32
    rest = where(is_small, low << zeros_low, ops.shift_right_logical(low, 32 - zeros_high))
    mantissa = ops.shift_right_logical(first | rest, np.uint32(8)) & np.uint32(0x7FFFFF)
    zeros = where(zeros_high == 32, 32 + zeros_low, zeros_high)
    exponent = (126 - zeros) << 23
    number = exponent & np.uint32(0x3FC00000) | mantissa
    if typeof(number).shape:
        return is_low, bitcast_convert_type(number, np.float32)
    one = bitcast_convert_type(moving.expand_dims(number, (0,)), np.float32)
    return is_low, structural.squeeze(one, (0,))


@sampler()
def laplace(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Draws numbers from the Laplace distribution of location 0 and scale 1.

    Example:
        >>> x = jax.random.laplace(jax.random.key(0), (10_000,))
        >>> bool(abs(jnp.median(x)) < 0.1)
        True
    """
    drawn = uniform(key, shape, dtype, np.asarray(-1.0 + float(dtypes.finfo(dtype).epsneg), dtype)[()], 1.0)
    return ops.sign(drawn) * ops.log1p(-abs(drawn))


@sampler()
def logistic(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Draws numbers from the logistic distribution of location 0 and scale 1.

    Example:
        >>> x = jax.random.logistic(jax.random.key(0), (10_000,))
        >>> bool(abs(x.mean()) < 0.1)
        True
    """
    drawn = uniform(key, shape, dtype, np.asarray(dtypes.finfo(dtype).tiny, dtype)[()], 1.0)
    return ops.log(drawn) - ops.log1p(-drawn)


@sampler()
def cauchy(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Draws numbers from the Cauchy distribution of location 0 and scale 1.

    Example:
        >>> x = jax.random.cauchy(jax.random.key(0), (10_000,))
        >>> bool(abs(jnp.median(x)) < 0.1)
        True
    """
    drawn = uniform(key, shape, dtype, np.asarray(dtypes.finfo(dtype).eps, dtype)[()], 1.0)
    return ops.tan(pi * (drawn - 0.5))


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
    """Draws logarithms of gamma samples; accurate for small `a`, where the samples themselves underflow to zero.

    Example:
        >>> jax.random.loggamma(jax.random.key(0), 1e-3, (2,)).shape
        (2,)
    """
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
    """Draws numbers from the beta distribution; `shape` defaults to the common shape of `a` and `b`.

    Example:
        >>> x = jax.random.beta(jax.random.key(0), 2.0, 3.0, (1000,))
        >>> bool(jnp.all((0 < x) & (x < 1)))
        True
    """
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
    """Draws vectors, along the last axis, from the Dirichlet distribution; `shape` is that of the other axes.

    Example:
        >>> x = jax.random.dirichlet(jax.random.key(0), jnp.ones(3))
        >>> x.shape, bool(abs(x.sum() - 1) < 1e-5)
        ((3,), True)
    """
    log_samples = loggamma(key, convert_element_type(alpha, dtype), (*shape, typeof(alpha).shape[-1]), dtype)
    # Not nn.softmax: the derivative must not include that of the maximum.
    most = stop_gradient(jnp.max(log_samples, -1, keepdims=True, initial=-jnp.inf))
    terms = jnp.exp(log_samples - most)
    return terms / terms.sum(-1, keepdims=True)


@sampler(casts=True)
def chisquare(key: ArrayLike, df: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Draws numbers from the chi-square distribution of `df` degrees of freedom; `shape` defaults to that of `df`.

    Example:
        >>> x = jax.random.chisquare(jax.random.key(0), 3.0, (10_000,))
        >>> bool(abs(x.mean() - 3) < 0.2)
        True
    """
    df = convert_element_type(df, dtype)
    return ops.exp(loggamma(key, df / 2, shape, dtype)) * 2


@sampler(casts=True)
def t(key: ArrayLike, df: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Draws numbers from Student's t distribution of `df` degrees of freedom; `shape` defaults to that of `df`.

    Example:
        >>> jax.random.t(jax.random.key(0), 4.0, (2,)).shape
        (2,)
    """
    df = convert_element_type(df, dtype)
    first, second = split_in_two(key)
    n = normal(first, shape, dtype)
    half = df / 2
    return n * ops.sqrt(half / gamma(second, half, shape, dtype))


@sampler(casts=True)
def f(
    key: ArrayLike, dfnum: ArrayLike, dfden: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Draws numbers from the F distribution of `dfnum` and `dfden` degrees of freedom.

    Example:
        >>> jax.random.f(jax.random.key(0), 3.0, 4.0, (2,)).shape
        (2,)
    """
    dfden, dfnum = convert_element_type(dfden, dtype), convert_element_type(dfnum, dtype)
    key_den, key_num = split_in_two(key)
    num, den = chisquare(key_num, dfnum, shape, dtype), chisquare(key_den, dfden, shape, dtype)
    return (num / dfnum) / (den / dfden)


@sampler()
def generalized_normal(key: ArrayLike, p: float, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Draws numbers from the density proportional to exp(-|x|**p).

    Example:
        >>> jax.random.generalized_normal(jax.random.key(0), 2.0, (2,)).shape
        (2,)
    """
    keys = split(key)
    g = gamma(keys[0], 1 / p, shape, dtype)
    r = rademacher(keys[1], shape, dtype)
    return r * g ** (1 / p).astype(dtype)


@sampler(static=("d",))
def ball(key: ArrayLike, d: int, p: float = 2, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Draws points uniformly from the unit ball of the p-norm in `d` dimensions, the last axis (Barthe et al. 2005).

    Example:
        >>> x = jax.random.ball(jax.random.key(0), 3, shape=(100,))
        >>> x.shape, bool(jnp.all(jnp.linalg.norm(x, axis=1) <= 1))
        ((100, 3), True)
    """
    first, second = split_in_two(key)
    g = generalized_normal(first, p, (*shape, d), dtype)
    e = exponential(second, shape, dtype)
    return g / (((jnp.abs(g) ** p).sum(-1) + e) ** (1 / p))[..., None]


_ONE = np.float32(1.0)


@sampler(inexact_dtype, casts=True, inline=True)
def lognormal(
    key: ArrayLike, sigma: ArrayLike = _ONE, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Draws exp(sigma * z) for standard normal z; `shape` defaults to that of sigma.

    Example:
        >>> x = jax.random.lognormal(jax.random.key(0), shape=(1000,))
        >>> bool(jnp.all(x > 0))
        True
    """
    return ops.exp(normal(key, shape, dtype) * sigma)


@sampler(casts=True)
def rayleigh(key: ArrayLike, scale: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Draws numbers from the Rayleigh distribution; `shape` defaults to that of `scale`.

    Example:
        >>> x = jax.random.rayleigh(jax.random.key(0), 1.0, (1000,))
        >>> bool(jnp.all(x >= 0))
        True
    """
    drawn = uniform(key, shape, dtype)
    scale = jnp.broadcast_to(convert_element_type(scale, dtype), shape)
    return scale * ops.sqrt(ops.log(drawn) * -2)


@sampler()
def pareto(key: ArrayLike, b: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Draws numbers from the Pareto distribution of exponent `b`; `shape` defaults to that of `b`.

    Example:
        >>> x = jax.random.pareto(jax.random.key(0), 2.0, (1000,))
        >>> bool(jnp.all(x >= 1))
        True
    """
    b = convert_element_type(b, dtype)
    return ops.exp(exponential(key, shape, dtype) / as_ranked(b, len(shape)))


def weibull_min(
    key: ArrayLike, scale: ArrayLike, concentration: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None
) -> Array:
    """Draws numbers from the Weibull distribution, with the shape `shape`.

    Example:
        >>> x = jax.random.weibull_min(jax.random.key(0), 1.0, 2.0, (1000,))
        >>> bool(jnp.all(x >= 0))
        True
    """
    key, _ = single_key("weibull_min", key)
    return _weibull_min(key, scale, concentration, drawn_shape(shape), float_dtype("weibull_min", dtype))


@jitted("_weibull_min", static=("shape", "dtype"))
def _weibull_min(key, scale, concentration, shape, dtype):
    drawn = -ops.log1p(-uniform(key, shape, dtype, minval=0, maxval=1))
    return drawn ** (1.0 / concentration) * scale


@sampler()
def maxwell(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Draws numbers from the one-sided Maxwell distribution: norms of normal vectors of 3 components.

    Example:
        >>> x = jax.random.maxwell(jax.random.key(0), (1000,))
        >>> bool(jnp.all(x >= 0))
        True
    """
    return jnp.linalg.norm(normal(key, (*shape, 3), dtype), axis=-1)


def double_sided_maxwell(
    key: ArrayLike, loc: ArrayLike, scale: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None
) -> Array:
    """Draws numbers from the two-sided Maxwell distribution.

    The result has the shape `shape`, by default that of the parameters, followed by that of the parameters, as in jax.

    Example:
        >>> jax.random.double_sided_maxwell(jax.random.key(0), 0.0, 1.0, (2,)).shape
        (2,)
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
    """Draws numbers from the triangular distribution; `shape` defaults to the broadcast shape of the parameters.

    Example:
        >>> x = jax.random.triangular(jax.random.key(0), 0.0, 0.5, 1.0, (1000,))
        >>> bool(jnp.all((0 <= x) & (x <= 1)))
        True
    """
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

    Example:
        >>> x = jax.random.wald(jax.random.key(0), 1.0, (1000,))
        >>> bool(jnp.all(x > 0))
        True
    """
    first, second = split_in_two(key)
    mean = jnp.broadcast_to(convert_element_type(mean, dtype), shape)
    v, z = normal(first, shape, dtype), uniform(second, shape, dtype)
    y = ops.integer_pow(v, 2)
    y_squared, mean_squared = ops.integer_pow(y, 2), ops.integer_pow(mean, 2)
    root = ops.sqrt(4 * mean * y + mean_squared * y_squared)
    x = mean + mean_squared * y / 2 - mean / 2 * root
    return ops.select(z <= mean / (mean + x), x, mean_squared / x)


_METHODS = ("cholesky", "eigh", "svd")


@takes_key
def multivariate_normal(key: ArrayLike, mean: ArrayLike, cov: ArrayLike, shape: Shape | None = None,
                        dtype: DTypeLike | None = None, method: str = "cholesky") -> Array:  # fmt: skip
    """Draws normal vectors of mean (..., n) and covariance (..., n, n); the leading axes broadcast to `shape`.

    `method` factors the covariance: "cholesky" (the fastest), "eigh" or "svd", which accept singular ones. Raises
    ValueError for shapes that do not fit, and for another method.

    Example:
        >>> jax.random.multivariate_normal(jax.random.key(0), jnp.zeros(3), jnp.eye(3), (5,)).shape
        (5, 3)
    """
    mean, cov = promote_dtypes_inexact(mean, cov)
    if method not in _METHODS:
        raise ValueError(f"multivariate_normal: method must be one of {_METHODS}, got {method!r}")
    dtype = float_dtype("multivariate_normal", typeof(mean).dtype if dtype is None else dtype)
    return _multivariate_normal(key, mean, cov, optional_shape(shape), dtype, method)


@jitted("_multivariate_normal", static=("shape", "dtype", "method"))
def _multivariate_normal(key, mean, cov, shape, dtype, method):
    means, covs = typeof(mean).shape, typeof(cov).shape
    if not means:
        raise ValueError("multivariate_normal requires mean.ndim >= 1, got mean.ndim == 0")
    if len(covs) < 2:
        raise ValueError(f"multivariate_normal requires cov.ndim >= 2, got cov.ndim == {len(covs)}")
    n = means[-1]
    if covs[-2:] != (n, n):
        raise ValueError(
            f"multivariate_normal requires cov.shape == (..., n, n) for n={n}, but got cov.shape == {covs}."
        )
    shape = shape_of("multivariate_normal", shape, means[:-1], covs[:-2])
    if method == "svd":
        u, s, _ = jnp.linalg.svd(cov)
        factor = u * jnp.sqrt(s[..., None, :])
    elif method == "eigh":
        w, v = jnp.linalg.eigh(cov)
        factor = v * jnp.sqrt(w[..., None, :])
    else:
        factor = jnp.linalg.cholesky(cov)
    spread = jnp.einsum("...ij,...j->...i", factor, normal(key, (*shape, n), dtype))
    return broadcast_to_rank(mean, len(shape) + 1) + spread


def _normal_dtype(name: str, dtype: Any) -> np.dtype:
    return inexact_dtype("normal", dtype)


@sampler(_normal_dtype, static=("n", "m"))
def orthogonal(
    key: ArrayLike, n: int, shape: Shape = (), dtype: DTypeLike | None = None, m: int | None = None
) -> Array:
    """Draws matrices (*shape, n, m) with orthonormal columns, or rows if n < m; `m` is n by default.

    They are uniform with respect to the Haar measure (Mezzadri 2007); complex dtypes give unitary matrices. Raises
    ValueError for negative sizes and for a dtype that is neither floating nor complex.

    Example:
        >>> x = jax.random.orthogonal(jax.random.key(0), 3)
        >>> bool(jnp.allclose(x @ x.T, jnp.eye(3), atol=1e-5))
        True
    """
    columns = n if m is None else m
    if n < 0 or columns < 0:
        raise ValueError(f"orthogonal: negative dimensions are not allowed, got {n} and {m}")
    z = normal(key, (*shape, max(n, columns), min(n, columns)), dtype)
    q, r = jnp.linalg.qr(z)
    signs = ops.sign(jnp.diagonal(r, axis1=-2, axis2=-1))
    q = q * jnp.expand_dims(signs, -2)
    return jnp.matrix_transpose(q) if n < columns else q
