"""Timelines of pipelines: the use of each buffer in each step, the copies under way, and where a pipeline waits."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from minijax.base import thread

IDLE, IN, USED, OUT = "", "in", "use", "out"
MOST_SHOWN = 12


class Copied(NamedTuple):
    """An operand of a pipeline whose blocks are copied."""

    name: str
    changed: np.ndarray  # for each step, whether the block is another one than in the step before
    buffers: int
    is_in: bool
    is_out: bool
    is_whole: bool = False  # one block for all steps, which is copied before the first or after the last

    def spans(self) -> list[tuple[int, int]]:
        """The first and the last step of each block."""
        firsts = np.flatnonzero(self.changed).tolist()
        return list(zip(firsts, [*[n - 1 for n in firsts[1:]], len(self.changed) - 1], strict=True))


class Lane(NamedTuple):
    """A buffer, and what happens with it before the steps, in each of them, and after them."""

    name: str
    slot: int
    marks: list[str]


class Wait(NamedTuple):
    """A wait for a copy with nothing to compute meanwhile: before the step, or for copies out after it."""

    name: str
    step: int
    is_in: bool

    def __str__(self):
        return f"{self.name} {'before' if self.is_in else 'after'} step {self.step}"


@dataclasses.dataclass
class Timeline:
    """The use of each buffer of a pipeline in each step: `print` shows it as a table.

    Attributes:
      name: name of the kernel or of the pipeline's body.
      grid: sizes of the axes.
      lanes: for each buffer its operand, its number, and its marks, one before the steps, one for each step, and
        one after them: "in" and "out" while it is copied, "use" while the body has it.
      waits: the waits for copies beside which nothing is computed.
      copies: number of copies.
    """

    name: str
    grid: tuple[int, ...]
    lanes: list[Lane]
    waits: list[Wait]
    copies: int

    @property
    def steps(self) -> int:
        """The number of steps."""
        return math.prod(self.grid)

    def __repr__(self):
        shown = min(self.steps, MOST_SHOWN)
        left = self.steps - shown
        heads = ["before", *map(str, range(shown)), *([f"{left} more"] if left else []), "after"]
        rows = [[f"{lane.name}, buffer {lane.slot}", *self._cells(lane.marks, shown)] for lane in self.lanes]
        rows.append(["waits", *self._cells(self.wait_marks(), shown)])
        widths = [max(len(row[i]) for row in ([""] + heads, *rows)) for i in range(len(heads) + 1)]
        lines = [f"{self.name} over the grid {self.grid}: {self.copies} copies, {len(self.waits)} waits without work"]
        for row in ([""] + heads, *rows):
            cells = [c.ljust(w) for c, w in zip(row, widths, strict=True)]
            lines.append("  " + "  ".join(cells).rstrip())
        return "\n".join(lines)

    def _cells(self, marks: list[str], shown: int) -> list[str]:
        dots = [m or "." for m in marks]
        return [*dots[: shown + 1], *(["..."] if self.steps > shown else []), dots[-1]]

    def wait_marks(self) -> list[str]:
        """For each column "wait" if a copy is waited for there, and nothing is computed meanwhile."""
        marks = [IDLE] * (self.steps + 2)
        for wait in self.waits:
            at = 0 if wait.is_in and not wait.step else wait.step + 1
            marks[self.steps + 1 if not wait.is_in and wait.step == self.steps - 1 else at] = "wait"
        return marks


def timeline(name: str, grid: tuple[int, ...], operands: Sequence[Copied], is_serial: bool = False) -> Timeline:
    """The timeline of a pipeline; one that is serial copies in, computes and copies out in turn."""
    lanes, waits, copies = [], [], 0
    for operand in operands:
        found = _serial(operand) if is_serial else _whole(operand) if operand.is_whole else _buffered(operand)
        lanes += found[0]
        waits += found[1]
        copies += found[2]
    order = sorted(waits, key=lambda w: (w.step, not w.is_in))
    return Timeline(name, grid, lanes, order, copies)


def _buffered(operand: Copied) -> tuple[list[Lane], list[Wait], int]:
    """The lanes, the waits and the number of copies of blocks that are copied while others are used."""
    steps, k = len(operand.changed), operand.buffers
    lanes = [[IDLE] * (steps + 2) for _ in range(k)]
    waits, spans = [], operand.spans()
    for number, (first, last) in enumerate(spans):
        lane = lanes[number % k]
        lane[first + 1 : last + 2] = [USED] * (last - first + 1)
        if operand.is_in:
            # The copy of a block starts `k - 1` steps before it is used, the first ones before all steps.
            begin = max(first - k + 2, 0)
            lane[begin : first + 1] = [IN] * (first + 1 - begin)
            if not first or k == 1:
                waits.append(Wait(operand.name, first, True))
        if operand.is_out:
            if k > 1 or last == steps - 1:
                lane[last + 2] = OUT
            if last == steps - 1 or k == 1:
                waits.append(Wait(operand.name, last, False))
    copies = len(spans) * (operand.is_in + operand.is_out)
    return [Lane(operand.name, i, marks) for i, marks in enumerate(lanes)], waits, copies


def _whole(operand: Copied) -> tuple[list[Lane], list[Wait], int]:
    steps = len(operand.changed)
    marks = [IN if operand.is_in else IDLE, *[USED] * steps, OUT if operand.is_out else IDLE]
    waits = [Wait(operand.name, 0, True)] if operand.is_in else []
    waits += [Wait(operand.name, steps - 1, False)] if operand.is_out else []
    return [Lane(operand.name, 0, marks)], waits, len(waits)


def _serial(operand: Copied) -> tuple[list[Lane], list[Wait], int]:
    steps = range(len(operand.changed))
    waits = [Wait(operand.name, i, True) for i in steps if operand.is_in]
    waits += [Wait(operand.name, i, False) for i in steps if operand.is_out]
    return [Lane(operand.name, 0, [IDLE, *[USED] * len(steps), IDLE])], waits, len(waits)


class Watch:
    """Is told of the pipelines that are traced while it is the name of a named axis, which makes all traces new."""

    def __init__(self) -> None:
        self.found: list[Timeline] = []


def watches() -> list[Watch]:
    """Those that want to know of pipelines now."""
    return [axis for axis, *_ in thread.thread.axes if type(axis) is Watch]
