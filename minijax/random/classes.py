"""Eager draws of many shapes share programs: numbers are drawn for a class of sizes, then cut and reshaped.

XLA needs a quarter of a second for each program that draws, and these are the same numbers: with partitionable threefry
bits the number at a place depends on the key and the place alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from minijax.base import cache, config
from minijax.composed.random import NAMED_IMPLS
from minijax.dispatch.jitted import jitted
from minijax.ir import state
from minijax.ir.types import typeof
from minijax.primitives import moving, structural
from minijax.run.arrays.array import Array, ArrayImpl

# Samplers whose numbers are functions of the bits at their own place.
BY_PLACE = frozenset("bits cauchy exponential gumbel laplace logistic normal truncated_normal uniform".split())
SIZES = tuple(4**power for power in range(6, 11))
_partitionable = config.option("threefry_partitionable")
REPEATED = 8  # a shape that is drawn more often gets a program of its own, which runs faster

_draws = cache.BoundedDict(64)  # the name of a sampler -> how often each shape was drawn


@jitted("_cut", static=("shape",))
def _cut(flat, shape):
    return moving.reshape(structural.slice(flat, (0,), (math.prod(shape),), (1,)), shape)


def is_shared(name: str, values: Sequence, shape: object) -> bool:
    """Returns whether a draw of this shape uses the program of its class: a new shape after the first of a sampler."""
    if type(shape) is not tuple or not all([type(n) is int for n in shape]):
        return False
    counts = _draws.get(name)
    count = 0 if counts is None else counts.get(shape, 0)
    if count >= REPEATED or not 0 < math.prod(shape) <= SIZES[-1] or not _draws_by_place(values):
        return False
    if counts is None:
        _draws.once(name, lambda: {shape: REPEATED})
        return False
    counts[shape] = count + 1
    return True


def _draws_by_place(values: Sequence) -> bool:
    """Returns whether this is a draw at once, on one device, by partitionable threefry, with scalar parameters."""
    if not state.is_eager() or not _partitionable.value or not isinstance(key := values[0], ArrayImpl):
        return False
    if typeof(key).dtype._impl is not NAMED_IMPLS["threefry2x32"] or len(key.devices()) > 1:
        return False
    return all([getattr(x, "shape", ()) == () for x in values[1:]])


def drawn(draw: Callable[..., Array], values: Sequence, at: int) -> Array:
    """The result of `draw(*values)`, whose argument number `at` is the shape, by a program for its class of sizes."""
    size = math.prod(shape := values[at])
    flat = draw(*values[:at], (next(s for s in SIZES if s >= size),), *values[at + 1 :])
    return _cut(flat, shape)
