"""A kernel over its grid on one core: the order of steps, and the copies of blocks around each."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import random
from minijax.base.config import transfer_guard
from minijax.base.errors import ConcretizationTypeError
from minijax.kernels.blocks import Blocked, BoundedSlice, Element, Indirect, Squeezed
from minijax.kernels.grid import dynamic_grid_dim
from minijax.kernels.mapping import BlockMapping, GridMapping
from minijax.kernels.simulator.machine import Core, Run
from minijax.kernels.simulator.memories import Buffer, check_dtype, is_main
from minijax.kernels.simulator.options import InterpretParams
from minijax.kernels.simulator.plans import Plan, plan_of
from minijax.kernels.simulator.rules import RULES


class _SizeOfAxis:
    """The size of an axis of the grid that is known only when the program runs, for messages."""

    def _error_repr(self) -> str:
        return "the size of a 'parallel' axis of the grid of a pallas_call"

    def _origin_msg(self) -> str:
        return "To be simulated, such an axis must have a size that is known."


def parallel_orders(mapping: GridMapping, semantics: Sequence[Any] | None, seed: int | None) -> list[np.ndarray]:
    """The order of the numbers on each leading axis whose steps may run in any order.

    Raises ValueError for such an axis after another, ConcretizationTypeError for one of unknown size.
    """
    names = [getattr(s, "value", s) for s in semantics or ()]
    is_parallel = [name == "parallel" for name in names]
    added = len(mapping.grid) - len(names)
    is_parallel = [any(is_parallel)] * added + is_parallel
    count = sum(is_parallel)
    if not all(is_parallel[:count]):
        raise ValueError(
            f"pallas_call: axes that are 'parallel' must come before all others to be simulated, got {tuple(names)}"
        )
    if not count:
        return []
    if any(n is dynamic_grid_dim for n in mapping.grid[:count]):
        raise ConcretizationTypeError(_SizeOfAxis())
    orders = []
    with transfer_guard("allow"):  # users may guard the transfers of their own arrays
        key = random.key(seed or 0)
        for n in mapping.grid[:count]:
            key, own = random.split(key)
            orders.append(np.asarray(random.permutation(own, n)))
    return orders


def points_of(grid: Sequence[int], orders: Sequence[np.ndarray], cores: int) -> list[list[tuple[int, ...]]]:
    """The steps of each core, in their order."""
    outer = list(itertools.product(*[order.tolist() for order in orders]))
    rest = list(itertools.product(*map(range, grid[len(orders) :])))
    share = -(-len(outer) // cores)
    return [[o + r for o in outer[k * share : (k + 1) * share] for r in rest] for k in range(cores)]


class Place(NamedTuple):
    """Where a block is in its array, and the part of both that there is."""

    starts: tuple[int, ...]
    selection: tuple[slice, ...]  # of the array
    part: tuple[slice, ...] | None  # of the block; None: all
    is_outside: bool


class Block:
    """An operand or result: a core has one block of it at a time, or the whole array in main memory."""

    def __init__(self, mapping: BlockMapping, options: InterpretParams, number: int, is_output: bool):
        space = mapping.memory_space
        self.mapping, self.number, self.is_output = mapping, number, is_output
        check_dtype(mapping.array_aval.dtype, mapping.origin)
        self.is_whole = space is None or is_main(space)
        self.is_fixed = not mapping.array_aval.size or (self.is_whole and mapping.has_trivial_window())
        if not self.is_whole and any(type(d) in (BoundedSlice, Indirect) for d in mapping.block_shape):
            raise NotImplementedError(f"pallas_call: blocks {mapping.block_shape} cannot be simulated")
        closed = mapping.index_map_jaxpr
        self.plan: Plan = plan_of(closed.jaxpr, closed.consts, options, RULES)
        self.line = f"the copy of a block by the index map of {mapping.origin}, {closed.debug_info.func_src_info}"
        dims, self.sizes = mapping.block_shape, mapping.sizes
        self.scales = [d.block_size if type(d) is Blocked else 1 for d in dims]
        self.lows = [d.padding[0] if type(d) is Element else 0 for d in dims]
        pads = [sum(d.padding) if type(d) is Element else 0 for d in dims]
        shape = mapping.array_aval.shape
        self.whole = tuple([-(-(n + p) // s) * s for n, p, s in zip(shape, pads, self.sizes, strict=True)])
        self._places: dict[tuple, Place] = {}

    def numbers(self, core: Core, ids: Sequence[Any], scalars: Sequence[Buffer]) -> tuple[int, ...]:
        """The numbers of the block at a step."""
        run = self.plan.run(core, [*ids, *scalars])
        try:
            next(run)
        except StopIteration as end:
            return tuple(map(int, end.value))
        raise RuntimeError(f"pallas_call: the index map of {self.mapping.origin} waits")

    def place(self, numbers: tuple[int, ...]) -> Place:
        """Where the block with these numbers is."""
        found = self._places.get(numbers)
        if found is None:
            found = self._places[numbers] = self._place(numbers)
        return found

    def _place(self, numbers: tuple[int, ...]) -> Place:
        shape = self.mapping.array_aval.shape
        starts = tuple([n * scale for n, scale in zip(numbers, self.scales, strict=True)])
        is_outside = any(s < 0 or s + size > n for s, size, n in zip(starts, self.sizes, self.whole, strict=True))
        firsts = [s - low for s, low in zip(starts, self.lows, strict=True)]
        selection, part, is_all = [], [], True
        for first, size, n in zip(firsts, self.sizes, shape, strict=True):
            low, high = min(max(first, 0), n), max(min(first + size, n), 0)
            high = max(low, high)
            selection.append(slice(low, high, 1))
            part.append(slice(low - first, high - first) if high > low else slice(0, 0))
            is_all = is_all and (low, high) == (first, first + size)
        return Place(starts, tuple(selection), None if is_all else tuple(part), is_outside)

    def window(self, core: Core, array: Buffer, place: Place) -> Buffer:
        """The part of an array in main memory that the kernel gets at a step."""
        dims = self.mapping.block_shape
        selection = tuple([s.start if type(d) is Squeezed else s for s, d in zip(place.selection, dims, strict=True)])
        where = core.device, None
        make = lambda: Buffer(array.array[selection], array.space, array.name, where, array.empty)  # noqa: E731
        return core.machine.allocation(("window", self.is_output, self.number, place.starts)).at(where, make)

    def outside(self, place: Place, numbers: tuple, core: Core) -> IndexError:
        """The error for a block that is not in the array."""
        what = f"output {self.number}" if self.is_output else f'input "{self.mapping.origin}"'
        shown = ", ".join(f"{s}:{s + n}" for s, n in zip(place.starts, self.sizes, strict=True))
        kind = "output" if self.is_output else "input"
        return IndexError(
            f"Out-of-bounds block index {numbers} for {what} in iteration {_plain(core.ids)} on device {core.device} "
            f"(core {core.number}): [{shown}] but {kind} has shape {self.whole}"
        )


def _plain(ids: Sequence[Any]) -> tuple[int, ...]:
    return tuple(map(int, ids))


class Moves:
    """The copies of the blocks of a core, between steps."""

    def __init__(self, core: Core, blocks: Sequence[Block], arrays: Sequence[Buffer], locals_: list):
        self.core, self.blocks, self.arrays, self.locals = core, blocks, arrays, locals_
        self.now: list[tuple | None] = [None] * len(blocks)
        self.visited: list[dict] = [{} for _ in blocks]
        self.raises = core.machine.options.out_of_bounds_reads == "raise"

    def to(self, ids: Sequence[Any], scalars: Sequence[Buffer]) -> None:
        """Stores results whose block changes with this step, and loads operands whose block does."""
        changed = []
        for i, block in enumerate(self.blocks):
            if block.is_fixed:
                continue
            numbers = block.numbers(self.core, ids, scalars)
            if block.is_whole:
                if block.place(numbers).is_outside:
                    raise block.outside(block.place(numbers), numbers, self.core)
                self.locals[i] = block.window(self.core, self.arrays[i], block.place(numbers))
                continue
            if numbers != self.now[i]:
                changed.append((i, block, numbers))
            if block.is_output:
                self._visit(i, block, numbers, ids)
        for i, block, _ in changed:
            if block.is_output and self.now[i] is not None:
                self._store(i, block)
        for i, block, numbers in changed:
            self.now[i] = numbers
            place = block.place(numbers)
            if place.is_outside and (block.is_output or self.raises):
                raise block.outside(place, numbers, self.core)
            if not block.is_output:
                self._load(i, block, place)

    def _visit(self, i: int, block: Block, numbers: tuple, ids: Sequence[Any]) -> None:
        """Notes a step with a block. Raises RuntimeError if other blocks came between."""
        seen, now = self.visited[i].get(numbers), _plain(ids)
        if seen is not None and self.now[i] != numbers:
            starts = block.place(numbers).starts
            shown = ", ".join(f"{s}:{s + n}" for s, n in zip(starts, block.sizes, strict=True))
            raise RuntimeError(
                f"Revisited block [{shown}] of output {block.number} in iteration {now}. The block was previously "
                f"visited in iterations {seen[0]} through {seen[1]}, and stored since. Its index map is "
                f"{block.mapping.index_map_jaxpr.debug_info.func_src_info}: let all steps with one block follow each "
                "other."
            )
        self.visited[i][numbers] = (now if seen is None else seen[0], now)

    def store_all(self) -> None:
        """Stores the last blocks of results."""
        for i, block in enumerate(self.blocks):
            if block.is_output and self.now[i] is not None:
                self._store(i, block)

    def _load(self, i: int, block: Block, place: Place) -> None:
        local, array = self.locals[i], self.arrays[i]
        target = local.array.reshape(block.sizes)
        if place.part is None:
            target[...] = array.array[place.selection]
        else:
            target[...] = local.empty
            target[place.part] = array.array[place.selection]
        self._note(i, place, loads=True)

    def _store(self, i: int, block: Block) -> None:
        local, array, place = self.locals[i], self.arrays[i], block.place(self.now[i] or ())
        value = local.array.reshape(block.sizes)
        array.array[place.selection] = value if place.part is None else value[place.part]
        self._note(i, place, loads=False)

    def _note(self, i: int, place: Place, loads: bool) -> None:
        line = self.blocks[i].line
        self.core.note(self.arrays[i], (place.selection,), not loads, line)
        self.core.note(self.locals[i], (), loads, line)


def run_steps(
    core: Core, plan: Plan, points: Sequence[tuple[int, ...]], moves: Moves, scalars: Sequence[Buffer],
    scratch: Sequence[Any], hidden: Sequence[int],
) -> Run:  # fmt: skip
    """Runs a kernel on a core, at each of its steps. `hidden` are the axes that the kernel does not see."""
    recorder = core.machine.options.grid_point_recorder
    for point in points:
        ids = [np.int32(n) for n in point]
        core.ids = [n for axis, n in enumerate(ids) if axis not in hidden] if hidden else ids
        if recorder is not None:
            recorder(np.int32(0), tuple(ids), np.int32(core.number))
        moves.to(ids, scalars)
        yield from plan.run(core, [*scalars, *moves.locals, *scratch])
    moves.store_all()
