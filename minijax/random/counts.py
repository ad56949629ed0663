"""Samples from the Poisson, binomial and multinomial distributions, by rejection.

Large means use W. Hörmann's transformed rejection (1993): PTRS for Poisson samples, BTRS for binomial ones.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.base import dtypes
from minijax.base.dtypes import DTypeLike
from minijax.composed.arrays.cumulative import cumsum
from minijax.dispatch.jitted import jitted
from minijax.higher.scan import scan
from minijax.higher.while_loop import while_loop
from minijax.ir.types import typeof
from minijax.primitives import elementwise as ops, moving
from minijax.primitives.convert import convert_element_type
from minijax.primitives.promote import check_arraylike, promote_dtypes_inexact
from minijax.primitives.varying import match_varying
from minijax.random.arguments import drawn_shape, float_dtype, integer_dtype, optional_shape, shape_of, takes_key
from minijax.random.keys import single_key, split
from minijax.random.samplers import split_in_two, split_keys, uniform
from minijax.run.arrays.array import Array, ArrayLike, Shape


def _full(shape: tuple[int, ...], value: Any, dtype: Any) -> Any:
    return moving.filled_by_value(shape, np.asarray(value, dtype)[()])


def _goes_on(i: Any, most: Any) -> Any:
    """Returns whether fewer than `most` steps were made; bounds the loops, which could run for ever."""
    return convert_element_type(i, typeof(most).dtype) < most


# ---- Poisson numbers ---------------------------------------------------------------------------------


@takes_key
def poisson(key: ArrayLike, lam: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Draws integers from the Poisson distribution of mean `lam`; -1 where `lam` is NaN.

    Raises NotImplementedError for keys of another implementation than threefry2x32.
    """
    implementation = typeof(key).dtype._impl.name
    if implementation != "threefry2x32":
        raise NotImplementedError(f"`poisson` is only implemented for the threefry2x32 RNG, not {implementation}")
    check_arraylike("poisson", lam)
    dtype = integer_dtype("poisson", dtype)
    shape = typeof(lam).shape if shape is None else drawn_shape(shape)
    lam = convert_element_type(jnp.broadcast_to(lam, shape), np.dtype(np.float32))
    return _poisson(key, lam, shape, dtype)


@jitted("_poisson", static=("shape", "dtype"))
def _poisson(key, lam, shape, dtype):
    most = np.asarray(dtypes.iinfo(dtype).max, dtype)[()]
    is_small = (lam != lam) | (lam < 10)
    small = ops.select(is_small, lam, _full(shape, 0, np.float32))
    # An arbitrary large mean where the other method draws; this result is not used.
    large = ops.select(is_small, _full(shape, 1e5, np.float32), lam)
    counts = ops.select(
        is_small, _poisson_knuth(key, small, shape, dtype, most), _poisson_rejection(key, large, shape, dtype, most)
    )
    return ops.select(lam == 0, _full(shape, 0, dtype), counts)


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

    state = (0, *match_varying((_full(shape, 0, dtype), key, _full(shape, 0, np.float32)), (key, lam)))
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

    def goes_on(state):
        i, _, is_accepted, _ = state
        return (~is_accepted).any() & _goes_on(i, most)

    state = (0, *match_varying((_full(shape, -1, np.float32), _full(shape, False, bool), key), (key, lam)))
    return convert_element_type(while_loop(goes_on, attempt, state)[1], dtype)


# ---- binomial numbers --------------------------------------------------------------------------------


def binomial(
    key: Array, n: ArrayLike, p: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Draws numbers of successes in `n` trials of probability `p`, as floats; NaN where `n` or `p` is invalid."""
    key, _ = single_key("binomial", key)
    check_arraylike("binomial", n, p)
    (p,) = promote_dtypes_inexact(p)
    dtype = float_dtype("binomial", dtype)
    shape = shape_of("binomial", optional_shape(shape), n, p)
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

    state = (0, *match_varying((_full(shape, 0, dtype), _full(shape, 0, dtype), key), (key, count, probability)))
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

    def goes_on(state):
        i, _, is_accepted, _ = state
        return (~is_accepted).any() & _goes_on(i, most)

    state = (0, *match_varying((_full(shape, -1, dtype), _full(shape, False, bool), key), (key, count, probability)))
    return while_loop(goes_on, attempt, state)[1]


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
