"""Samples from discrete distributions, permutations and choices.

Large means of Poisson and binomial samples use W. Hörmann's transformed rejection (1993): PTRS and BTRS.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from math import ceil, log, prod
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.base import dims, dtypes
from minijax.base.dtypes import DTypeLike
from minijax.base.symbolic.dimension import is_int
from minijax.composed.arrays.cumulative import cumsum
from minijax.composed.random import random_bits_p
from minijax.dispatch.jitted import jitted
from minijax.higher.scan import scan
from minijax.higher.while_loop import while_loop
from minijax.ir.types import is_value, typeof, unwrapped
from minijax.primitives import counting, elementwise as ops, moving, sort, structural
from minijax.primitives.convert import convert, convert_element_type
from minijax.primitives.moving import filled
from minijax.primitives.promote import check_arraylike, promote_dtypes_inexact
from minijax.primitives.reduce import argmax
from minijax.primitives.varying import match_varying
from minijax.random import arguments
from minijax.random.keys import single_key, split
from minijax.random.samplers import gumbel, randint, split_in_two, split_keys, uniform
from minijax.run.arrays.array import Array, ArrayLike, Shape


def _goes_on(i: Any, most: Any) -> Any:
    """Returns whether fewer than `most` steps were made; bounds the loops, which could run for ever."""
    return convert_element_type(i, typeof(most).dtype) < most


def _until_accepted(attempt: Callable, key: Any, shape: Shape, dtype: Any, most: Any, *parameters: Any) -> Any:
    """The numbers that `attempt` accepts; its state is (attempts, numbers, whether they are accepted, key)."""

    def goes_on(state):
        i, _, is_accepted, _ = state
        return (~is_accepted).any() & _goes_on(i, most)

    start = filled(shape, -1, dtype), filled(shape, False, bool), key
    return while_loop(goes_on, attempt, (0, *match_varying(start, (key, *parameters))))[1]


# ---- Poisson numbers ---------------------------------------------------------------------------------


@arguments.takes_key
def poisson(key: ArrayLike, lam: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Draws integers from the Poisson distribution of mean `lam`; -1 where `lam` is NaN.

    Raises NotImplementedError for keys of another implementation than threefry2x32.

    Example:
        >>> x = jax.random.poisson(jax.random.key(0), 3.0, (10_000,))
        >>> bool(abs(x.mean() - 3) < 0.2)
        True
    """
    implementation = typeof(key).dtype._impl.name
    if implementation != "threefry2x32":
        raise NotImplementedError(f"`poisson` is only implemented for the threefry2x32 RNG, not {implementation}")
    check_arraylike("poisson", lam)
    dtype = arguments.integer_dtype("poisson", dtype)
    shape = typeof(lam).shape if shape is None else arguments.drawn_shape(shape)
    lam = convert_element_type(jnp.broadcast_to(lam, shape), np.dtype(np.float32))
    return _poisson(key, lam, shape, dtype)


@jitted("_poisson", static=("shape", "dtype"))
def _poisson(key, lam, shape, dtype):
    most = np.asarray(dtypes.iinfo(dtype).max, dtype)[()]
    is_small = (lam != lam) | (lam < 10)
    small = ops.select(is_small, lam, filled(shape, 0, np.float32))
    # An arbitrary large mean where the other method draws; this result is not used.
    large = ops.select(is_small, filled(shape, 1e5, np.float32), lam)
    counts = ops.select(
        is_small, _poisson_knuth(key, small, shape, dtype, most), _poisson_rejection(key, large, shape, dtype, most)
    )
    return ops.select(lam == 0, filled(shape, 0, dtype), counts)


@jitted("_poisson_knuth", static=("shape", "dtype", "most"))
def _poisson_knuth(key, lam, shape, dtype, most):
    """Counts the uniform samples whose product stays above exp(-lam) (Knuth, TAOCP 2, 3.4.1)."""

    def step(state):
        i, count, key, log_product = state
        key, subkey = split_in_two(key)
        count = ops.select(log_product > -lam, count + 1, count)
        u = uniform(subkey, shape, np.float32)
        return i + 1, count, key, log_product + ops.log(u)

    def goes_on(state):
        i, _, _, log_product = state
        return (log_product > -lam).any() & _goes_on(i, most)

    state = (0, *match_varying((filled(shape, 0, dtype), key, filled(shape, 0, np.float32)), (key, lam)))
    return while_loop(goes_on, step, state)[1] - 1


@jitted("_poisson_rejection", static=("shape", "dtype", "most"))
def _poisson_rejection(key, lam, shape, dtype, most):
    log_lam = ops.log(lam)
    b = 0.931 + 2.53 * ops.sqrt(lam)
    a = -0.059 + 0.02483 * b
    inv_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)

    def attempt(state):
        i, accepted_count, is_accepted, key = state
        key, u_key, v_key = split_keys(key, 3)
        u, v = uniform(u_key, shape, np.float32) - 0.5, uniform(v_key, shape, np.float32)
        u_shifted = 0.5 - abs(u)
        count = ops.floor((2 * a / u_shifted + b) * u + lam + 0.43)
        s = ops.log(v * inv_alpha / (a / (u_shifted * u_shifted) + b))
        t = -lam + count * log_lam - ops.lgamma(count + 1)
        squeezed = (u_shifted >= 0.07) & (v <= v_r)
        is_refused = (count < 0) | ((u_shifted < 0.013) & (v > u_shifted))
        is_below = s <= t
        accept = squeezed | (~is_refused & is_below)
        count, is_accepted = ops.select(accept, count, accepted_count), is_accepted | accept
        return i + 1, count, is_accepted, key

    return convert_element_type(_until_accepted(attempt, key, shape, np.float32, most, lam), dtype)


# ---- binomial numbers --------------------------------------------------------------------------------


def binomial(
    key: Array, n: ArrayLike, p: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Draws numbers of successes in `n` trials of probability `p`, as floats; NaN where `n` or `p` is invalid.

    Example:
        >>> x = jax.random.binomial(jax.random.key(0), 10, 0.5, (1000,))
        >>> bool(jnp.all((0 <= x) & (x <= 10)))
        True
    """
    key, _ = single_key("binomial", key)
    check_arraylike("binomial", n, p)
    (p,) = promote_dtypes_inexact(p)
    dtype = arguments.float_dtype("binomial", dtype)
    shape = arguments.shape_of("binomial", arguments.optional_shape(shape), n, p)
    n = convert_element_type(n, typeof(p).dtype)
    return _binomial(key, jnp.broadcast_to(n, shape), jnp.broadcast_to(p, shape), shape, dtype)


def _binomial(key, n, p, shape, dtype):
    own = typeof(p).dtype
    is_few = p < 0.5
    q = ops.select(is_few, p, 1 - p)
    is_no_count = (n != n) | (n < 0)
    is_infinite = jnp.isinf(n)
    is_nan, is_negative = q != q, q < 0
    q = ops.select(is_nan | is_negative, jnp.full_like(q, 0.01), q)
    is_inverted = is_no_count | (n * q <= 10)
    count = ops.floor(n)
    # Arbitrary parameters where the other method draws; these results are not used.
    inverted = ops.select(is_inverted, count, jnp.full_like(count, 0))
    rejected = ops.select(is_inverted, jnp.full_like(count, 1e4), count)
    probability = ops.select(is_inverted, jnp.full_like(q, 0.5), q)
    most = np.asarray(dtypes.finfo(dtype).max, dtype)[()]
    few = convert_element_type(_by_inversion(key, inverted, q, shape, own, most), dtype)
    many = convert_element_type(_by_rejection(key, rejected, probability, shape, own, most), dtype)
    drawn = ops.select(is_inverted, few, many)
    is_undefined = is_negative | is_nan | is_no_count
    drawn = ops.select(is_undefined, jnp.full_like(drawn, np.nan), drawn)
    drawn = ops.select(is_infinite & ~is_undefined, jnp.full_like(drawn, np.inf), drawn)
    is_final = is_few | is_no_count | is_nan | is_infinite
    return ops.select(is_final, drawn, convert_element_type(count, dtype) - drawn)


def _by_inversion(key, count, probability, shape, dtype, most):
    """Counts the geometric samples whose sum stays below `count` (Devroye 1986, X.4.3)."""
    log_failure = ops.log1p(-probability)

    def step(state):
        i, terms, total, key = state
        subkey, key = split_in_two(key)
        terms = ops.select(total <= count, terms + 1, terms)
        total = total + ops.ceil(ops.log(uniform(subkey, shape, dtype)) / log_failure)
        return i + 1, terms, total, key

    def goes_on(state):
        i, _, total, _ = state
        return (total <= count).any() & _goes_on(i, most)

    state = (0, *match_varying((filled(shape, 0, dtype), filled(shape, 0, dtype), key), (key, count, probability)))
    return while_loop(goes_on, step, state)[1] - 1


# The error of Stirling's approximation of log(k!), for the first counts.
_STIRLING = [math.lgamma(k + 1) - (k + 0.5) * math.log(k + 1) + k + 1 - 0.5 * math.log(2 * math.pi) for k in range(10)]


def _stirling_error(k: Any, dtype: Any) -> Any:
    table = jnp.array(_STIRLING, dtype)
    is_listed = k <= 9
    k = ops.clamp(np.zeros((), dtype)[()], k, np.asarray(9, dtype)[()])
    square = (k + 1) * (k + 1)
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)
    return ops.select(is_listed, table[convert_element_type(ops.floor(k), np.int32)], series)


def _by_rejection(key, count, probability, shape, dtype, most):
    stddev = ops.sqrt(count * probability * (1 - probability))
    b = 1.15 + 2.53 * stddev
    a = -0.0873 + 0.0248 * b + 0.01 * probability
    c = count * probability + 0.5
    v_r = 0.92 - 4.2 / b
    r = probability / (1 - probability)
    alpha = (2.83 + 5.1 / b) * stddev
    m = ops.floor((count + 1) * probability)

    def attempt(state):
        i, accepted_count, is_accepted, key = state
        key, u_key, v_key = split_keys(key, 3)
        u, v = uniform(u_key, shape, dtype), uniform(v_key, shape, dtype)
        u = u - 0.5
        us = 0.5 - abs(u)
        squeezed = (us >= 0.07) & (v <= v_r)
        k = ops.floor((2 * a / us + b) * u + c)
        is_refused = (k < 0) | (k > count)
        v = ops.log(v * alpha / (a / (us * us) + b))
        bound = (
            (m + 0.5) * ops.log((m + 1) / (r * (count - m + 1)))
            + (count + 1) * ops.log((count - m + 1) / (count - k + 1))
            + (k + 0.5) * ops.log(r * (count - k + 1) / (k + 1))
            + _stirling_error(m, dtype)
            + _stirling_error(count - m, dtype)
            - _stirling_error(k, dtype)
            - _stirling_error(count - k, dtype)
        )
        is_below = v <= bound
        accept = squeezed | (~is_refused & is_below)
        k, is_accepted = ops.select(accept, k, accepted_count), is_accepted | accept
        return i + 1, k, is_accepted, key

    return _until_accepted(attempt, key, shape, dtype, most, count, probability)


def multinomial(
    key: Array,
    n: ArrayLike,
    p: ArrayLike,
    *,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    unroll: int | bool = 1,
) -> Array:
    """Samples from the multinomial distribution of `n` trials; `unroll` is that of the scan over the outcomes.

    The last axis of `p`, and of `shape` if given, is that of the outcomes. `p` is normalized.

    Example:
        >>> x = jax.random.multinomial(jax.random.key(0), 10, jnp.array([0.5, 0.5]))
        >>> float(x.sum())
        10.0
    """
    key, _ = single_key("multinomial", key)
    check_arraylike("multinomial", n, p)
    n, p = promote_dtypes_inexact(n, p)
    if shape is None:
        shape = typeof(p).shape
    n, p = jnp.broadcast_to(n, shape[:-1]), jnp.broadcast_to(p, shape)

    def draw(remainder, ratio_and_key):
        ratio, key = ratio_and_key
        count = binomial(key, remainder, ratio.clip(0, 1), dtype=remainder.dtype)
        return remainder - count, count

    p = jnp.moveaxis(p, -1, 0)
    rest = cumsum(p, axis=0, reverse=True)
    ratios = p / jnp.where(rest == 0, 1, rest)
    _, counts = scan(draw, n, (ratios, split(key, p.shape[0])), unroll=unroll)
    counts = jnp.moveaxis(counts, 0, -1)
    return counts.astype(float if dtype is None else dtype)


def _check_array(name: str, x: Any) -> None:
    if not is_value(x):
        raise TypeError(f"{name} requires ndarray or scalar arguments, got {type(x)} at position 0.")


def _numbers_below(size: int) -> Array:
    return counting.iota(dtypes.default_int_dtype(), max(size, 0))


@arguments.takes_key
def permutation(key: ArrayLike, x: int | ArrayLike, axis: int = 0, independent: bool = False) -> Array:
    """Returns the slices of an array along an axis in random order.

    Args:
        key: A random key; see `jax.random.key`.
        x: An array, or an integer n for the numbers 0 to n - 1.
        axis: The axis, by default 0.
        independent: If true, each vector along the axis is put in an order of its own.

    Returns:
        An array of the shape and dtype of `x`; the argument is not changed.

    Raises:
        TypeError: If `x` is a scalar that is not an integer.

    See also: `jax.random.choice`.

    Example:
        >>> order = jax.random.permutation(jax.random.key(0), 5)
        >>> sorted(order.tolist())
        [0, 1, 2, 3, 4]
    """
    _check_array("permutation", x)
    aval = typeof(x)
    axis = dims.canonical_axis(axis, aval.ndim or 1)
    if not aval.ndim:
        if not np.issubdtype(aval.dtype, np.integer):
            raise TypeError("x must be an integer or at least 1-dimensional")
        return _shuffle(key, _numbers_below(int(x)), axis)
    if independent or aval.ndim == 1:
        return _shuffle(key, x, axis)
    order = _shuffle(key, _numbers_below(aval.shape[axis]), 0)
    return jnp.take(x, order, axis, unique_indices=True)


@jitted("_shuffle", static=("axis",))
def _shuffle(key, x, axis):
    shape = typeof(x).shape
    # Sorts by random words; enough rounds that ties between equal words rarely affect the order.
    count = prod(shape)
    if not is_int(count):
        raise NotImplementedError(
            f"shape polymorphism for `permutation` or `shuffle` for arrays of non-constant size: {count}"
        )
    rounds = ceil(3 * log(max(1, count)) / log(np.iinfo(np.uint32).max))
    for _ in range(rounds):
        key, now = split_in_two(key)
        _, x = sort.sort_key_val(random_bits_p.bind(now, bit_width=32, shape=shape), x, axis)
    return x


def choice(
    key: ArrayLike,
    a: int | ArrayLike,
    shape: Shape = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
    mode: str | None = None,
) -> Array:
    """Draws slices of an array, with or without replacement.

    Args:
        key: A random key; see `jax.random.key`.
        a: An array, or an integer n for the numbers 0 to n - 1.
        shape: The shape of the draws; by default a single one.
        replace: Whether a slice can be drawn more than once.
        p: The probabilities of the slices, a vector. By default all are equal.
        axis: The axis along which `a` is divided into slices, by default 0.
        mode: The mode of the Gumbel noise that draws with `p` and without replacement use.

    Returns:
        An array of the shape of `a`, with `axis` replaced by the axes of `shape`.

    Raises:
        ValueError: If there are too few slices to draw from, or `p` has the wrong shape.
        TypeError: If `shape` is not a sequence.

    See also: `jax.random.categorical`, `jax.random.permutation`.

    Example:
        >>> drawn = jax.random.choice(jax.random.key(0), jnp.array([10, 20, 30]), (2,), replace=False)
        >>> set(drawn.tolist()) <= {10, 20, 30} and len(set(drawn.tolist())) == 2
        True
    """
    (key, _), a, p = single_key("choice", key), unwrapped(a), unwrapped(p)
    if not isinstance(shape, tuple | list | np.ndarray):
        raise TypeError(f"shape argument of jax.random.choice must be a sequence, got {shape}")
    shape = arguments.drawn_shape(shape)
    _check_array("choice", a)
    aval = typeof(a)
    axis = dims.canonical_axis(axis, aval.ndim or 1)
    inputs, draws = aval.shape[axis] if aval.ndim else int(a), prod(shape)
    if draws == 0:
        return filled(shape, 0, aval.dtype)
    if inputs <= 0:
        raise ValueError("a must be greater than 0 unless no samples are taken")
    if not replace and draws > inputs:
        raise ValueError(
            f"Cannot take a larger sample (size {draws}) than population (size {inputs}) when 'replace=False'. "
            "Draw fewer, or use replace=True."
        )
    if p is None and not replace:
        mixed = permutation(key, a if aval.ndim else inputs, axis)
        limits = (*aval.shape[:axis], draws, *aval.shape[axis + 1 :])
        drawn = structural.slice(mixed, (0,) * len(limits), limits)
    else:
        drawn = _indices(key, inputs, shape, replace, p, mode)
        drawn = jnp.take(a, drawn, axis) if aval.ndim else drawn
    return moving.reshape(drawn, (*aval.shape[:axis], *shape, *aval.shape[axis + 1 :]))


def _indices(key: Array, inputs: int, shape: tuple, replace: bool, p: Any, mode: str | None) -> Array:
    """Random indices below `inputs`, with probabilities `p` if given; one-dimensional without replacement."""
    if p is None:
        return randint(key, shape, 0, inputs)
    _check_array("choice", p)
    aval = typeof(p)
    if aval.shape != (inputs,):
        raise ValueError(
            "p must be None or a 1D vector with the same size as a.shape[axis]. "
            f"p has shape {aval.shape} and a.shape[axis] is {inputs}."
        )
    p = convert(p, dtypes.to_inexact_dtype(aval.dtype))
    dtype = typeof(p).dtype
    index = dtypes.default_int_dtype()
    if not replace:
        scores = gumbel(key, (inputs,), dtype, mode) + ops.log(p)
        return convert(sort.top_k(scores, prod(shape))[1], index)
    sums = jnp.cumsum(p)
    last = structural.squeeze(structural.slice(sums, (inputs - 1,), (inputs,)), (0,))
    drawn = uniform(key, shape, dtype)
    return convert(jnp.searchsorted(sums, last * (1 - drawn)), index)


@arguments.takes_key
def categorical(key: ArrayLike, logits: ArrayLike, axis: int = -1, shape: Shape | None = None, replace: bool = True,
                mode: str | None = None) -> Array:  # fmt: skip
    """Draws categories, as integers, given unnormalized log probabilities.

    It adds Gumbel noise to the logits and takes the largest, hence no softmax is needed.

    Args:
        key: A random key; see `jax.random.key`.
        logits: An array of floats; the categories are along `axis`.
        axis: The axis of the categories, by default the last.
        shape: The shape of the result. It ends with the shape of `logits` without `axis`, which is the default.
        replace: If false, draws along the additional leading axes are of different categories.
        mode: The mode of `jax.random.gumbel`.

    Returns:
        An array of int32 (int64 with `jax_enable_x64`).

    Raises:
        ValueError: If the shape does not fit, or there are too few categories to draw without replacement.

    Example:
        >>> logits = jnp.log(jnp.array([0.0, 1.0, 0.0]))
        >>> jax.random.categorical(jax.random.key(0), logits, shape=(4,))
        Array([1, 1, 1, 1], dtype=int32)
    """
    logits = unwrapped(logits)
    _check_array("categorical", logits)
    aval = typeof(logits)
    others = tuple(aval.shape[i] for i in np.delete(np.arange(aval.ndim), axis))
    shape = arguments.shape_of("categorical", arguments.optional_shape(shape), others)
    prefix, rest = shape[: len(shape) - len(others)], shape[len(shape) - len(others) :]
    axis = dims.canonical_axis(axis, aval.ndim)
    if not replace:
        return _without_replacement(key, logits, axis, shape, prod(prefix), mode)
    wide = (*prefix, *rest[:axis], aval.shape[axis], *rest[axis:])
    noise = gumbel(key, wide, aval.dtype, mode)
    scores = noise + moving.expand_dims(logits, tuple(range(len(prefix))))
    return argmax(scores, len(prefix) + axis, dtypes.default_int_dtype())


def _without_replacement(key, logits, axis, shape, count, mode):
    aval = typeof(logits)
    if count > aval.shape[axis]:
        raise ValueError(
            f"Number of samples without replacement ({count}) cannot exceed number of categories ({aval.shape[axis]})."
        )
    scores = logits + gumbel(key, aval.shape, aval.dtype, mode)
    last = aval.ndim - 1
    _, drawn = sort.top_k(moving.move_axis(scores, axis, last), count)
    return moving.reshape(drawn, shape, (last, *range(last)))


def _checked_dtype(name: str, dtype: Any) -> np.dtype:
    dtype = arguments.integer_dtype(name, dtype)
    if not dtypes.issubdtype(dtype, np.integer):
        raise ValueError(f"dtype argument to `{name}` must be an int dtype, got {dtype}")
    return dtype


@arguments.sampler(_checked_dtype)
def geometric(key: ArrayLike, p: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Draws the number of trials up to the first success of probability `p`; `shape` defaults to that of `p`.

    Raises ValueError for a dtype that is not an integer dtype.

    Example:
        >>> x = jax.random.geometric(jax.random.key(0), 0.5, (1000,))
        >>> bool(jnp.all(x >= 1))
        True
    """
    (p,) = promote_dtypes_inexact(p)
    drawn = uniform(key, shape, typeof(p).dtype)
    drawn = jnp.where(drawn == 0, 1, drawn)
    trials = ops.floor(ops.div(ops.log(drawn), jnp.broadcast_to(ops.log1p(-p), shape))) + 1
    return trials.astype(dtype)
