"""Samples from the basic distributions."""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

import numpy as np

from minijax.base import config, dtypes
from minijax.base.dtypes import DTypeLike
from minijax.composed.arrays.selecting import where
from minijax.composed.random import random_bits_p, random_split_p
from minijax.dispatch.jitted import jitted
from minijax.ir.types import typeof
from minijax.numpy.ufuncs import clip
from minijax.primitives import elementwise as ops, moving, structural
from minijax.primitives.convert import bitcast_convert_type, convert, convert_element_type, stop_gradient
from minijax.primitives.families import scalar_like
from minijax.primitives.structural import broadcast_to_rank
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
    """Draws uniform random bits, as unsigned integers. Raises ValueError for another dtype."""
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
    span = ops.select(ops.le(high, low), moving.filled_by_value(typeof(span).shape, one), span)
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
    """Draws 1 and -1, each with probability 1/2."""
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
    """Draws numbers from the exponential distribution of mean 1."""
    return -ops.log1p(-uniform(key, shape, dtype))


@takes_key
def gumbel(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, mode: str | None = None) -> Array:
    """Draws numbers from the Gumbel distribution.

    The modes `"high"` and `"highest"` reach further into its tail than `"low"`. Raises ValueError for other modes.
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
    """Draws numbers from the Laplace distribution of location 0 and scale 1."""
    drawn = uniform(key, shape, dtype, np.asarray(-1.0 + float(dtypes.finfo(dtype).epsneg), dtype)[()], 1.0)
    return ops.sign(drawn) * ops.log1p(-abs(drawn))


@sampler()
def logistic(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Draws numbers from the logistic distribution of location 0 and scale 1."""
    drawn = uniform(key, shape, dtype, np.asarray(dtypes.finfo(dtype).tiny, dtype)[()], 1.0)
    return ops.log(drawn) - ops.log1p(-drawn)


@sampler()
def cauchy(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Draws numbers from the Cauchy distribution of location 0 and scale 1."""
    drawn = uniform(key, shape, dtype, np.asarray(dtypes.finfo(dtype).eps, dtype)[()], 1.0)
    return ops.tan(pi * (drawn - 0.5))
