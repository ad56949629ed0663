"""The indices of the steps of a pipeline: the steps before and after one, and the part of the grid of each core."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.ir.jaxpr import DebugInfo
from minijax.ir.trace import trace_to_jaxpr
from minijax.kernels.blocks import BlockSpec, Indirect
from minijax.kernels.grid import INDEX, num_programs, program_id
from minijax.kernels.parameters import GridDimensionSemantics
from minijax.numpy.taking import where
from minijax.primitives.collective import axis_index, axis_size
from minijax.primitives.elementwise import add, select
from minijax.primitives.gather_dims import Slice

Indices = tuple[Any, ...]


def is_static(x: Any) -> bool:
    """Returns whether `x` is known while the kernel is traced."""
    return isinstance(x, int | np.integer | np.bool_)


def either(a: Any, b: Any) -> Any:
    """Whether `a` or `b` holds."""
    return a or b if is_static(a) and is_static(b) else a | b


def both(a: Any, b: Any) -> Any:
    """Whether `a` and `b` hold."""
    return a and b if is_static(a) and is_static(b) else a & b


def negated(a: Any) -> Any:
    """Whether `a` does not hold."""
    return not a if is_static(a) else ~a


def after(indices: Indices, grid: Indices) -> Indices:
    """The indices of the next step; those of the first one after the last one."""
    found, carry = [], True
    for i, n in reversed(list(zip(indices, grid, strict=True))):
        i = select(carry, i + 1, i)
        carry = i == n
        found.append(select(carry, 0, i))
    return without_single(found[::-1], grid)


def without_single(indices: Sequence[Any], grid: Indices) -> Indices:
    """The indices, 0 on the axes that have one step."""
    return tuple([0 if is_static(n) and n == 1 else i for i, n in zip(indices, grid, strict=True)])


def following(indices: Indices, grid: Indices) -> Indices:
    """As `after`, but the first index goes beyond the grid after the last step."""
    found, carry = [], True
    for axis, (i, n) in reversed(list(enumerate(zip(indices, grid, strict=True)))):
        i = select(carry, add(i, np.int32(1)), i)
        carry = i == n if axis else False
        found.append(select(carry, np.int32(0), i))
    return tuple(reversed(found))


def before(indices: Indices, grid: Indices) -> Indices:
    """The indices of the step before; those of the last one before the first one."""
    found, borrow = [], True
    for i, n in reversed(list(zip(indices, grid, strict=True))):
        i = select(borrow, i - 1, i)
        borrow = i == -1
        found.append(select(borrow, n - 1, i))
    return without_single(found[::-1], grid)


def moved(indices: Indices, offsets: Indices) -> Indices:
    """The indices on the whole grid; the part that a core runs begins at `offsets`."""
    return tuple([i + offset for i, offset in zip(indices, offsets, strict=True)])


def numbers_of(spec: BlockSpec, indices: Indices) -> tuple:
    """The result of the index map of a spec."""
    if spec.index_map is None:
        return (0,) * len(spec.block_shape or ())
    found = spec.index_map(*indices)
    return tuple(found) if isinstance(found, tuple | list) else (found,)


def has_indirect(spec: BlockSpec) -> bool:
    """Returns whether a dimension of the block takes elements at indices."""
    return any(type(d) is Indirect for d in spec.block_shape or ())


def differ(spec: BlockSpec, one: Indices, other: Indices, join: Callable[[Any, Any], Any] = either) -> Any:
    """Whether two steps have different blocks; `join` combines what is known of two dimensions.

    Blocks at indices count as different, since the indices may be another part of memory in each step.
    """
    if has_indirect(spec):
        return True
    pairs = []
    for a, b in zip(numbers_of(spec, one), numbers_of(spec, other), strict=True):
        if not isinstance(a, Slice):
            pairs.append((a, b))
            continue
        pairs.append((a.start, b.start))
        if a.size is not b.size:
            pairs.append((a.size, b.size))
    return functools.reduce(join, [a != b for a, b in pairs], False)


def is_zero(spec: BlockSpec, rank: int) -> bool:
    """Returns whether the index map of a spec gives zeros in each step."""
    numbers: list = []

    def run(*indices):
        numbers.extend(numbers_of(spec, indices))
        return []

    trace_to_jaxpr(run, [INDEX] * rank, DebugInfo("emit_pipeline index_map", "index_map"))
    return all(is_static(n) and n == 0 for n in numbers)


# ---- cores -------------------------------------------------------------------------------------------


def part_of_core(
    grid: Indices,
    core_axis: int | str | tuple | None,
    semantics: Sequence[GridDimensionSemantics] | None,
    is_named: bool,
) -> tuple[Indices, Indices]:
    """The grid of this core and its offsets: cores divide the axis that is parallel.

    Raises ValueError if not exactly one is, or cores get different numbers of steps on a grid of unknown size.
    """
    zeros = (0,) * len(grid)
    if core_axis is None:
        return grid, zeros
    core, count = _core(core_axis, is_named)
    if is_static(count) and count == 1:
        return grid, zeros
    parallel = [i for i, s in enumerate(semantics or ()) if s in (GridDimensionSemantics.PARALLEL,)]
    if len(parallel) != 1:
        raise ValueError(
            "emit_pipeline: cores divide one axis of the grid. dimension_semantics must have exactly one "
            f"pltpu.PARALLEL, got {semantics}"
        )
    (axis,) = parallel
    if not is_static(grid[axis]):
        raise NotImplementedError("emit_pipeline: cores divide axes whose sizes are ints only")
    size, offset = _share(int(grid[axis]), core, count)
    local = (*grid[:axis], size, *grid[axis + 1 :])
    return local, (*zeros[:axis], offset, *zeros[axis + 1 :])


def _core(core_axis: Any, is_named: bool) -> tuple[Any, Any]:
    """The number of this core, and how many there are."""
    if is_named:
        return axis_index(core_axis), axis_size(core_axis)
    axes = core_axis if isinstance(core_axis, tuple | list) else (core_axis,)
    number, total = program_id(axes[0]), num_programs(axes[0])
    for axis in axes[1:]:
        number, total = number * num_programs(axis) + program_id(axis), total * num_programs(axis)
    return number, total


def _share(n: int, core: Any, count: int) -> tuple[Any, Any]:
    """The number of steps of a core, and the number of the first one: the first cores run one more than the others."""
    each, more = divmod(n, count)
    if not more:
        return each, core * each
    size = where(core < more, each + 1, each)
    return size, where(core < more, core * size, core * each + more)
