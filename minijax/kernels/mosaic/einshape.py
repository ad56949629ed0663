"""The rule of `einshape`: by whole tiles where these stay as they are, else by reshapes and a transposition."""

from itertools import product
from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.kernels.mosaic.verbs import Value, ints, vector_of
from minijax.kernels.mosaic.walk import Kernel, Site, rule
from minijax.kernels.mosaic.windows import LANES, SUBLANES
from minijax.kernels.operations.einshape import Plan


@rule("einshape_lo")
def _einshape(k: Kernel, site: Site, x: Value, plan: Plan, assert_is_tile_preserving: bool) -> Value:
    steps = [plan.split != x.shape, plan.order != tuple(range(len(plan.order))), plan.shape != _ordered(plan)]
    if sum(steps) > 1:
        if _keeps_tiles(plan, site.out.dtype):
            return _of_tiles(k, x, plan)
        if assert_is_tile_preserving:
            raise ValueError(f"einshape: {plan.before} -> {plan.after} moves elements within tiles")
    if steps[0]:
        x = k.reshape(x, plan.split)
    if steps[1]:
        x = k.one("tpu.transpose", [x], vector_of(_ordered(plan), x.element), permutation=ints(plan.order))
    return k.reshape(x, plan.shape) if steps[2] else x


def _ordered(plan: Plan) -> tuple[int, ...]:
    """The shape of the result with an axis for each name."""
    return tuple([plan.split[i] for i in plan.order])


def _keeps_tiles(plan: Plan, dtype: Any) -> bool:
    """Returns whether the innermost names of the last two axes stay so, and are made of whole tiles."""
    if min(len(plan.before), len(plan.after)) < 2:
        return False
    inner = [group[-1] for group in plan.before[-2:]]
    sizes = dict(plan.sizes)
    rows = SUBLANES * (32 // dtypes.itemsize_bits(dtype))
    is_whole = sizes[inner[0]] % rows == 0 and sizes[inner[1]] % LANES == 0
    return is_whole and inner == [group[-1] for group in plan.after[-2:]]


def _of_tiles(k: Kernel, x: Value, plan: Plan) -> Value:
    """The result from slices that hold all of the two innermost names."""
    sizes = dict(plan.sizes)
    inner = [group[-1] for group in plan.before[-2:]]
    outer = [name for name, _ in plan.sizes if name not in inner]
    slices = {
        at: _slice(k, x, plan, dict(zip(outer, at, strict=True)), inner)
        for at in product(*[range(sizes[n]) for n in outer])
    }
    last = len(plan.after)

    def build(number, place):
        """The part of the result for a place on the groups before this one."""
        if number == last:
            return slices[tuple([place[n] for n in outer])]
        names = [n for n in plan.after[number] if n not in inner]
        places = product(*[range(sizes[n]) for n in names])
        parts = [build(number + 1, place | dict(zip(names, at, strict=True))) for at in places]
        if number < last - 2:
            return k.concatenate([k.shape_cast(p, (1, *p.shape)) for p in parts], 0)
        return k.concatenate(parts, number - (last - 2))

    return build(0, {})


def _slice(k: Kernel, x: Value, plan: Plan, place: dict[str, int], inner: list[str]) -> Value:
    """All of the innermost names at a place on the others."""
    sizes = dict(plan.sizes)
    starts, shape = [], []
    for group in plan.before:
        own = [sizes[n] for n in group]
        start = int(np.ravel_multi_index([place.get(n, 0) for n in group], own))
        starts.append(start)
        shape.append(sizes[group[-1]] if group[-1] in inner else 1)
    part = k.slice(x, starts, shape)
    return k.reshape(part, shape[-2:]) if len(shape) > 2 else part
