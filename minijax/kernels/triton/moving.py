"""Rules of operations that move elements within a tile, which jax does not lower for Triton, and sorting."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.kernels.text import Value
from minijax.kernels.triton.shapes import broadcast_in_dim, halves_of
from minijax.kernels.triton.verbs import BOOL, I32, kind


def _numbers(k: Any, size: int, shape: Sequence[int], axis: int) -> Value:
    """0, 1, ... along an axis of a shape."""
    return broadcast_in_dim(k, k.arange(0, size), shape, [axis])


def _taken(k: Any, x: Value, axis: int, size: int, index: Callable[[Value], Value]) -> Value:
    """The elements at `index(0, 1, ...)` along an axis, `size` of them."""
    shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
    return _gathered(k, x, index(_numbers(k, size, shape, axis)), axis)


def _gathered(k: Any, x: Value, indices: Value, axis: int) -> Value:
    # Triton moves no single bits.
    moved = k.gather(k.cast(x, np.int8) if x.dtype == BOOL else x, indices, axis)
    return k.cast(moved, BOOL) if x.dtype == BOOL else moved


def _added(k: Any, x: Value, number: int) -> Value:
    return k.arith("add", x, k.full_like(number, x)) if number else x


def _rev(k, eqn, x):
    x = k.tile(x)
    for axis in eqn.params["dimensions"]:
        last = x.shape[axis] - 1
        x = _taken(k, x, axis, last + 1, lambda i, last=last: k.arith("sub", k.full_like(last, i), i))
    return x


def _slice(k, eqn, x):
    p, x = eqn.params, k.tile(x)
    strides = p["strides"] or (1,) * len(x.shape)
    for axis, (start, stop, step) in enumerate(zip(p["start_indices"], p["limit_indices"], strides, strict=True)):
        x = _sliced(k, x, axis, start, -(-(stop - start) // step), step)
    return x


def _sliced(k: Any, x: Value, axis: int, start: int, size: int, step: int) -> Value:
    while step == 1 and size < x.shape[axis] and (start // (half := x.shape[axis] // 2)) == (start + size - 1) // half:
        x, start = halves_of(k, x, axis)[start // half], start % half
    if (start, size) == (0, x.shape[axis]):
        return x
    steps = lambda i: k.arith("mul", i, k.full_like(step, i)) if step != 1 else i  # noqa: E731
    return _taken(k, x, axis, size, lambda i: _added(k, steps(i), start))


def _dynamic_slice(k, eqn, x, *starts):
    x = k.tile(x)
    for axis, (start, size) in enumerate(zip(starts, eqn.params["slice_sizes"], strict=True)):
        if size != x.shape[axis]:
            last = k.constant(x.shape[axis] - size, I32)
            first = k.arith("min", k.arith("max", k.cast(k.tile(start), I32), k.constant(0, I32)), last)
            x = _taken(k, x, axis, size, lambda i, first=first: k.arith("add", i, k.splat(first, i.shape)))
    return x


def _pad(k, eqn, x, fill):
    x, fill = k.tile(x), k.tile(fill)
    for axis, (low, high, interior) in enumerate(eqn.params["padding_config"]):
        if (low, high, interior) != (0, 0, 0):
            x = _padded(k, x, fill, axis, low, interior, eqn.outvars[0].aval.shape[axis])
    return x


def _padded(k, x, fill, axis, low, interior, size):
    shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
    place, last = _added(k, _numbers(k, size, shape, axis), -low), x.shape[axis] - 1
    number = place if not interior else k.arith("div", place, k.full_like(interior + 1, place))
    is_inside = k.like("arith.andi", k.compare("ge", place, k.full_like(0, place)), _at_most(k, number, last))
    if interior:
        rest = k.arith("rem", place, k.full_like(interior + 1, place))
        is_inside = k.like("arith.andi", is_inside, k.compare("eq", rest, k.full_like(0, rest)))
    number = k.arith("min", k.arith("max", number, k.full_like(0, number)), k.full_like(last, number))
    return k.select(is_inside, _gathered(k, x, number, axis), k.splat(fill, shape))


def _at_most(k: Any, x: Value, number: int) -> Value:
    return k.compare("le", x, k.full_like(number, x))


# ---- sorting --------------------------------------------------------------------------------------------


def _sort(k, eqn, *xs):
    """By a bitonic network; of equal elements, the one that was first stays first."""
    p, xs = eqn.params, list(map(k.tile, xs))
    axis, count = p["dimension"] % len(xs[0].shape), p["num_keys"]
    size, shape = xs[0].shape[axis], xs[0].shape
    values = [*xs, _numbers(k, size, shape, axis)]
    width = 2
    while width <= size:
        distance = width // 2
        while distance:
            values = _exchanged(k, values, count, axis, width, distance)
            distance //= 2
        width *= 2
    return values[:-1]


def _exchanged(k: Any, values: list[Value], count: int, axis: int, width: int, distance: int) -> list[Value]:
    """Each element and the one at a distance in order: ascending in even groups of `width`, else descending."""
    own = _numbers(k, values[0].shape[axis], values[0].shape, axis)
    partner = k.like("arith.xori", own, k.full_like(distance, own))
    others = [_gathered(k, x, partner, axis) for x in values]
    is_bit = lambda n: k.compare("ne", k.like("arith.andi", own, k.full_like(n, own)), k.full_like(0, own))  # noqa: E731
    # An element is to be the greater one of its pair if just one holds: it is the second, or its group descends.
    wants_greater = k.like("arith.xori", is_bit(distance), is_bit(width))
    is_less = _less(k, [*others[:count], others[-1]], [*values[:count], values[-1]])
    takes_other = k.like("arith.xori", is_less, wants_greater)
    return [k.select(takes_other, other, x) for other, x in zip(others, values, strict=True)]


def _less(k: Any, xs: Sequence[Value], ys: Sequence[Value]) -> Value:
    """Whether the first elements come before the second ones, by the first key that differs; NaN comes last."""
    x, y = xs[0], ys[0]
    less, equal = k.compare("lt", x, y), k.compare("eq", x, y)
    if kind(x.dtype) == 0:
        x_nan, y_nan = k.unordered(x), k.unordered(y)
        less = k.like("arith.ori", less, k.like("arith.andi", k.invert(x_nan), y_nan))
        equal = k.like("arith.ori", equal, k.like("arith.andi", x_nan, y_nan))
    if len(xs) == 1:
        return less
    return k.like("arith.ori", less, k.like("arith.andi", equal, _less(k, xs[1:], ys[1:])))


RULES: dict[str, Callable] = {"rev": _rev, "slice": _slice, "dynamic_slice": _dynamic_slice, "pad": _pad, "sort": _sort}
