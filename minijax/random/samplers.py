"""Samples from the basic distributions, and the checks of arguments that all samplers share."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from math import pi, sqrt
from typing import Any

import numpy as np

from minijax.base import config, dims, dtypes
from minijax.base.dtypes import DTypeLike
from minijax.base.source import hide_frames
from minijax.base.util import named
from minijax.composed.random import random_bits_p, random_split_p
from minijax.composed.selecting import where
from minijax.dispatch.jitted import jitted
from minijax.ir.types import typeof
from minijax.numpy.ufuncs import bitwise_and, clip
from minijax.primitives import elementwise as ops, moving, sharding, structural
from minijax.primitives.convert import bitcast_convert_type, convert, convert_element_type, stop_gradient
from minijax.primitives.families import scalar_like
from minijax.random.keys import single_key
from minijax.run.array import Array, ArrayLike, Shape, ShardingLike

_Shape = tuple[int, ...]


def drawn_shape(shape: Any) -> _Shape:
    """The canonical shape of an argument `shape`, an int or a sequence of ints."""
    return dims.canonical_shape((shape,) if isinstance(shape, int) else shape)


def check_shape(name: str, shape: _Shape, *parameters: Any) -> None:
    """Raises ValueError unless the parameters broadcast to exactly `shape`."""
    shapes = [p if isinstance(p, tuple) else typeof(p).shape for p in parameters]
    broadcast = structural.broadcast_shapes(shape, *shapes)
    if broadcast != shape:
        raise ValueError(
            f"{name} parameter shapes must be broadcast-compatible with shape argument, and the result of "
            f"broadcasting the shapes must equal the shape argument, but got result {broadcast} for {shape}"
        )


def checked_key(name: str, key: Any) -> Array:
    """The argument `key` as a single typed key."""
    return single_key(name, key)[0]


_STATIC = {"shape", "dtype", "axis", "independent", "replace", "n", "m", "d", "out_sharding"}


def takes_out_sharding(draw: Callable) -> Callable:
    """Adds the argument `out_sharding` to a sampler: its samples are sharded over these Explicit axes."""
    name, signature = draw.__name__, inspect.signature(draw)

    @functools.wraps(draw)
    def call(*args, out_sharding=None, **options):
        try:
            if out_sharding is None:
                return draw(*args, **options)
            bound = signature.bind(*args, **options)
            bound.apply_defaults()
            known = bound.arguments
            is_static = lambda n, x: n in _STATIC or x is None or type(x) is str or n == "x" and type(x) is int  # noqa: E731
            values = {n: x for n, x in known.items() if not is_static(n, x)}
            values["key"] = checked_key(name, known["key"])
            compute = lambda *xs: draw(**known | dict(zip(values, xs, strict=True)))  # noqa: E731
            return sharding.with_auto_axes(name, compute, tuple(values.values()), out_sharding)
        except Exception as error:
            hide_frames(error)
            raise

    return call


def float_dtype(name: str, dtype: Any, kind: type = np.floating, called: str = "float") -> np.dtype:
    """The dtype of the samples, by default that of Python floats. Raises ValueError if it is not a `kind`."""
    dtype = dtypes.requested_dtype(dtype, name, float)
    if not dtypes.issubdtype(dtype, kind):
        raise ValueError(f"dtype argument to `{name}` must be a {called} dtype, got {dtype}")
    return dtype


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


def _ranked(x: Any, ndim: int) -> Any:
    return structural.broadcast_to_rank(x, ndim) if typeof(x).shape else x


# ---- uniform numbers --------------------------------------------------------------------------------


@takes_out_sharding
def bits(
    key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: ShardingLike | None = None
) -> Array:
    """Uniform random bits, as unsigned integers. Raises ValueError for another dtype."""
    key = checked_key("bits", key)
    asked = dtypes.default_uint_dtype() if dtype is None else dtype
    dtype = dtypes.check_and_canonicalize_user_dtype(asked, "bits")
    if not dtypes.issubdtype(dtype, np.unsignedinteger):
        raise ValueError(f"dtype argument to `bits` must be an unsigned int dtype, got {dtype}")
    return random_bits_p.bind(key, bit_width=8 * dtype.itemsize, shape=drawn_shape(shape))


@takes_out_sharding
def uniform(
    key: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Uniform samples from [minval, maxval)."""
    key = checked_key("uniform", key)
    return _uniform(key, drawn_shape(shape), float_dtype("uniform", dtype), minval, maxval)


@jitted("_uniform", static=("shape", "dtype"))
def _uniform(key, shape, dtype, minval, maxval):
    low, high = convert_element_type(minval, dtype), convert_element_type(maxval, dtype)
    low, high = structural.broadcast_to_rank(low, len(shape)), structural.broadcast_to_rank(high, len(shape))
    info = dtypes.finfo(dtype)
    # Random mantissa bits with the exponent of 1 give a number in [1, 2); a narrow mantissa needs 8 bits only.
    width = 8 if info.nmant < 8 else info.bits
    word = dtypes.BY_NAME[f"uint{info.bits}"]
    drawn = convert(random_bits_p.bind(key, bit_width=width, shape=shape), word)
    mantissa = ops.shift_right_logical(drawn, scalar_like(drawn, width - info.nmant))
    one = np.ones((), dtype)
    number = bitcast_convert_type(ops.bitwise_or(mantissa, one.view(word)[()]), dtype)
    scaled = ops.add(ops.mul(ops.sub(number, one[()]), ops.sub(high, low)), low)
    return ops.max(low, moving.reshape(scaled, shape))


@takes_out_sharding
def randint(
    key: ArrayLike,
    shape: Shape,
    minval: ArrayLike,
    maxval: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Uniform integers from [minval, maxval). Raises TypeError for a dtype that is not an integer dtype."""
    key = checked_key("randint", key)
    shape = drawn_shape(shape)
    dtype = dtypes.requested_dtype(dtype, "randint", int)
    if not dtypes.issubdtype(dtype, np.integer):
        raise TypeError(f"randint only accepts integer dtypes, got {dtype}")
    if dtypes.itemsize_bits(dtype) >= 32:
        return _randint(key, shape, minval, maxval, dtype)
    info = dtypes.iinfo(dtype)
    low, high = (
        clip(convert(x, np.dtype("int32")), min=int(info.min), max=int(info.max) + more)
        for x, more in ((minval, 0), (maxval, 1))
    )
    return convert(_randint(key, shape, low, high, np.dtype("int32")), dtype)


def _fitted(x: Any, dtype: np.dtype) -> Any:
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
    beyond = ops.gt(high, _fitted(np.asarray(info.max, dtype)[()], typeof(high).dtype))
    low, high = _fitted(low, dtype), _fitted(high, dtype)
    low, high = structural.broadcast_to_rank(low, len(shape)), structural.broadcast_to_rank(high, len(shape))
    unsigned = dtypes.BY_NAME[f"uint{info.bits}"]
    more, less = (random_bits_p.bind(k, bit_width=info.bits, shape=shape) for k in split_in_two(key))
    span = convert(ops.sub(high, low), unsigned)
    one = scalar_like(span, 1)
    span = ops.select(ops.le(high, low), moving.full(typeof(span).shape, one), span)
    span = ops.select(bitwise_and(beyond, ops.gt(high, low)), ops.add(span, one), span)
    # The high word is multiplied by 2**bits modulo the span, computed without overflow.
    root = ops.rem(scalar_like(span, 2 ** (info.bits // 2)), span)
    weight = ops.rem(ops.mul(root, root), span)
    offset = ops.add(ops.mul(ops.rem(more, span), weight), ops.rem(less, span))
    return ops.add(low, convert(ops.rem(offset, span), dtype))


@takes_out_sharding
def bernoulli(
    key: ArrayLike,
    p: ArrayLike = 0.5,
    shape: Shape | None = None,
    mode: str = "low",
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """True with probability `p`; mode "high" resolves smaller probabilities.

    Raises TypeError unless `p` is floating, and ValueError for other modes than "high" and "low".
    """
    key = checked_key("bernoulli", key)
    if mode not in ("high", "low"):
        raise ValueError(f"got mode={mode!r}, expected 'high' or 'low'")
    dtype = typeof(p).dtype
    if not dtypes.issubdtype(dtype, np.floating):
        raise TypeError(f"bernoulli probability `p` must have a floating dtype, got {dtype}.")
    shape = None if shape is None else drawn_shape(shape)
    return _bernoulli(key, convert_element_type(p, dtype), shape, mode)


@jitted("_bernoulli", static=("shape", "mode"))
def _bernoulli(key, p, shape, mode):
    aval = typeof(p)
    if shape is None:
        shape = aval.shape
    else:
        check_shape("bernoulli", shape, p)
    if mode == "low":
        return ops.lt(uniform(key, shape, aval.dtype), _ranked(p, len(shape)))
    coarse, fine = unpacked(uniform(key, (2, *shape), aval.dtype))
    fine = ops.mul(fine, scalar_like(fine, dtypes.finfo(aval.dtype).eps))
    return ops.lt(fine, ops.sub(_ranked(p, len(shape)), coarse))


@takes_out_sharding
def rademacher(
    key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: ShardingLike | None = None
) -> Array:
    """Samples 1 and -1, each with probability 1/2."""
    key = checked_key("rademacher", key)
    dtype = dtypes.requested_dtype(dtype, "rademacher", int)
    return _rademacher(key, drawn_shape(shape), dtype)


@jitted("_rademacher", static=("shape", "dtype"))
def _rademacher(key, shape, dtype):
    flips = convert(bernoulli(key, 0.5, shape), dtype)
    return ops.sub(ops.mul(scalar_like(flips, 2), flips), scalar_like(flips, 1))


# ---- continuous distributions -----------------------------------------------------------------------


@takes_out_sharding
def normal(
    key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: ShardingLike | None = None
) -> Array:
    """Samples from the standard normal distribution; complex samples have unit variance in total."""
    key = checked_key("normal", key)
    return _normal(key, drawn_shape(shape), float_dtype("normal", dtype, np.inexact, "float or complex"))


@jitted("_normal", static=("shape", "dtype"))
def _normal(key, shape, dtype):
    if not dtypes.is_complex(dtype):
        return _normal_real(key, shape, dtype)
    part = dtypes.to_floating_dtype(dtype)
    first, second = split_in_two(key)
    re = convert(_normal_real(first, shape, part), dtype)
    im = convert(_normal_real(second, shape, part), dtype)
    root = convert(np.asarray(sqrt(2), part)[()], dtype)
    return ops.div(ops.add(re, ops.mul(scalar_like(im, 1j), im)), root)


@jitted("_normal_real", static=("shape", "dtype"))
def _normal_real(key, shape, dtype):
    one = np.ones((), dtype)
    drawn = uniform(key, shape, dtype, np.nextafter(-one, 0 * one)[()], one[()])
    return ops.mul(scalar_like(drawn, sqrt(2)), ops.erf_inv(drawn))


@takes_out_sharding
def truncated_normal(
    key: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Samples from the standard normal distribution, truncated to the interval from `lower` to `upper`."""
    key = checked_key("truncated_normal", key)
    shape = None if shape is None else drawn_shape(shape)
    return _truncated_normal(key, lower, upper, shape, float_dtype("truncated_normal", dtype))


@jitted("_truncated_normal", static=("shape", "dtype"))
def _truncated_normal(key, lower, upper, shape, dtype):
    if shape is None:
        shape = structural.broadcast_shapes(typeof(lower).shape, typeof(upper).shape)
    else:
        check_shape("truncated_normal", shape, lower, upper)
    lower, upper = convert_element_type(lower, dtype), convert_element_type(upper, dtype)
    root = np.asarray(sqrt(2), dtype)[()]
    ends = [ops.erf(ops.div(end, root)) for end in (lower, upper)]
    drawn = ops.mul(root, ops.erf_inv(uniform(key, shape, dtype, *ends)))
    infinity = np.asarray(np.inf, dtype)[()]
    inside = [ops.nextafter(stop_gradient(end), to) for end, to in ((lower, infinity), (upper, -infinity))]
    return clip(drawn, *inside)


def _parameterless(sample: Callable) -> Callable:
    """The public sampler of a distribution without parameters: checks the arguments and calls `sample` under jit."""
    name = sample.__name__
    jitted_sample = jitted(f"_{name}", static=("shape", "dtype"))(sample)

    def draw(
        key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: ShardingLike | None = None
    ) -> Array:
        key = checked_key(name, key)
        return jitted_sample(key, drawn_shape(shape), float_dtype(name, dtype))

    return takes_out_sharding(named(draw, name, sample.__doc__))


@_parameterless
def exponential(key, shape, dtype):
    """Samples from the exponential distribution of mean 1."""
    return ops.neg(ops.log1p(ops.neg(uniform(key, shape, dtype))))


@takes_out_sharding
def gumbel(
    key: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    mode: str | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Samples from the Gumbel distribution; the modes "high" and "highest" reach further into its tail.

    Raises ValueError for other modes than these and "low".
    """
    key = checked_key("gumbel", key)
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
        return ops.neg(ops.log(ops.neg(ops.log(_uniform(key, shape, dtype, minval=tiny, maxval=1.0)))))
    if mode == "highest" and dtype == np.float32:
        is_low, share = _near_an_end(random_bits_p.bind(key, bit_width=32, shape=(2, *shape)))
        below = ops.neg(ops.log(ops.neg(ops.log1p(ops.neg(share)))))
        return where(is_low, below, ops.neg(ops.log(ops.neg(ops.log(share)))))
    high, low = unpacked(_uniform(key, (2, *shape), dtype, minval=0.0, maxval=1.0))
    is_coarse = ops.ge(high, scalar_like(high, 0.5))
    finer = ops.add(ops.add(high, ops.mul(scalar_like(low, info.eps), low)), tiny)
    drawn = where(is_coarse, high, finer)
    return ops.neg(ops.log(ops.neg(ops.log1p(ops.neg(drawn)))))


def _near_an_end(words: Array) -> tuple[Array, Array]:
    """Makes a uniform number of 64 random bits: (whether it is below 1/2, its distance from the nearer of 0 and 1).

    The distance has the full precision of float32: its exponent is minus the number of leading zeros of the bits.
    """
    bits = np.uint32(32)
    flipped = ops.bitwise_not(words)
    carry = ops.eq(flipped[1], np.uint32(0xFFFFFFFF))
    ones = structural.full_like(carry, 1, np.uint32)
    both = [moving.expand_dims(x, (0,)) for x in (convert(carry, np.dtype(np.uint32)), ones)]
    from_above = ops.add(flipped, structural.concatenate(both, 0))
    is_low = ops.lt(words[0], np.uint32(1 << 31))
    nearer = where(is_low, words, from_above)
    zeros_high, zeros_low = unpacked(ops.clz(nearer))
    high, low = unpacked(nearer)
    first = ops.shift_left(high, zeros_high)
    is_small = ops.eq(zeros_high, bits)
    rest = where(is_small, ops.shift_left(low, zeros_low), ops.shift_right_logical(low, ops.sub(bits, zeros_high)))
    mantissa = ops.bitwise_and(ops.shift_right_logical(ops.bitwise_or(first, rest), np.uint32(8)), np.uint32(0x7FFFFF))
    zeros = where(ops.eq(zeros_high, bits), ops.add(bits, zeros_low), zeros_high)
    exponent = ops.shift_left(ops.sub(np.uint32(126), zeros), np.uint32(23))
    number = ops.bitwise_or(ops.bitwise_and(exponent, np.uint32(0x3FC00000)), mantissa)
    if typeof(number).shape:
        return is_low, bitcast_convert_type(number, np.float32)
    one = bitcast_convert_type(moving.expand_dims(number, (0,)), np.float32)
    return is_low, structural.squeeze(one, (0,))


@_parameterless
def laplace(key, shape, dtype):
    """Samples from the Laplace distribution of scale 1."""
    drawn = uniform(key, shape, dtype, np.asarray(-1.0 + float(dtypes.finfo(dtype).epsneg), dtype)[()], 1.0)
    return ops.mul(ops.sign(drawn), ops.log1p(ops.neg(ops.abs(drawn))))


@_parameterless
def logistic(key, shape, dtype):
    """Samples from the logistic distribution of scale 1."""
    drawn = uniform(key, shape, dtype, np.asarray(dtypes.finfo(dtype).tiny, dtype)[()], 1.0)
    return ops.sub(ops.log(drawn), ops.log1p(ops.neg(drawn)))


@_parameterless
def cauchy(key, shape, dtype):
    """Samples from the Cauchy distribution of scale 1."""
    drawn = uniform(key, shape, dtype, np.asarray(dtypes.finfo(dtype).eps, dtype)[()], 1.0)
    return ops.tan(ops.mul(scalar_like(drawn, pi), ops.sub(drawn, scalar_like(drawn, 0.5))))
