"""Random permutations, choices from an array, and categories."""

from __future__ import annotations

from math import ceil, log, prod
from typing import Any

import numpy as np

from minijax import numpy as jnp
from minijax.base import dims, dtypes
from minijax.base.symbolic.dimension import is_int
from minijax.composed.random import random_bits_p
from minijax.dispatch.jitted import jitted
from minijax.ir.types import is_value, typeof, unwrapped
from minijax.primitives import counting, elementwise as ops, moving, sort, structural
from minijax.primitives.convert import convert
from minijax.primitives.reduce import argmax
from minijax.random.arguments import drawn_shape, optional_shape, shape_of, takes_key
from minijax.random.keys import single_key
from minijax.random.samplers import gumbel, randint, split_in_two, uniform
from minijax.run.arrays.array import Array, ArrayLike, Shape


def _check_array(name: str, x: Any) -> None:
    if not is_value(x):
        raise TypeError(f"{name} requires ndarray or scalar arguments, got {type(x)} at position 0.")


def _numbers_below(size: int) -> Array:
    return counting.iota(dtypes.default_int_dtype(), max(size, 0))


@takes_key
def permutation(key: ArrayLike, x: int | ArrayLike, axis: int = 0, independent: bool = False) -> Array:
    """The slices of `x` along an axis, or `arange(x)` if `x` is an integer, in random order.

    If `independent`, each vector along the axis is permuted separately.
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
    """Samples from `a` along an axis, or from `arange(a)` if `a` is an integer; with probabilities `p` if given."""
    (key, _), a, p = single_key("choice", key), unwrapped(a), unwrapped(p)
    if not isinstance(shape, tuple | list | np.ndarray):
        raise TypeError(f"shape argument of jax.random.choice must be a sequence, got {shape}")
    shape = drawn_shape(shape)
    _check_array("choice", a)
    aval = typeof(a)
    axis = dims.canonical_axis(axis, aval.ndim or 1)
    inputs, draws = aval.shape[axis] if aval.ndim else int(a), prod(shape)
    if draws == 0:
        return moving.full(shape, np.zeros((), aval.dtype)[()])
    if inputs <= 0:
        raise ValueError("a must be greater than 0 unless no samples are taken")
    if not replace and draws > inputs:
        raise ValueError(
            f"Cannot take a larger sample (size {draws}) than population (size {inputs}) when 'replace=False'"
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


@takes_key
def categorical(key: ArrayLike, logits: ArrayLike, axis: int = -1, shape: Shape | None = None, replace: bool = True,
                mode: str | None = None) -> Array:  # fmt: skip
    """Samples categories by unnormalized log probabilities, given along an axis of `logits`."""
    logits = unwrapped(logits)
    _check_array("categorical", logits)
    aval = typeof(logits)
    others = tuple(aval.shape[i] for i in np.delete(np.arange(aval.ndim), axis))
    shape = shape_of("categorical", optional_shape(shape), others)
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
