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

    See also: `jax.random.categorical`, `jax.random.permutation`.

    Example:
        >>> drawn = jax.random.choice(jax.random.key(0), jnp.array([10, 20, 30]), (2,), replace=False)
        >>> set(drawn.tolist()) <= {10, 20, 30} and len(set(drawn.tolist())) == 2
        True
    """
    (key, _), a, p = single_key("choice", key), unwrapped(a), unwrapped(p)
    if not isinstance(shape, tuple | list | np.ndarray):
        raise TypeError(f"shape argument of jax.random.choice must be a sequence, got {shape}")
    shape = drawn_shape(shape)
    _check_array("choice", a)
    aval = typeof(a)
    axis = dims.canonical_axis(axis, aval.ndim or 1)
    inputs, draws = aval.shape[axis] if aval.ndim else int(a), prod(shape)
    if draws == 0:
        return moving.filled_by_value(shape, np.zeros((), aval.dtype)[()])
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


@takes_key
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
