"""Follows the buffers of an optimized program through its schedule, with the equations that made them."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterable, Sequence

from minijax.explaining.texts import Computation, Instruction

# Their results are their operands' buffers, or parts of them.
_SAME = ("tuple", "get-tuple-element", "bitcast", "while", "optimization-barrier", "opt-barrier", "add-dependency")
_INDEX = re.compile(r"index=(\d+)")
_ALIAS = re.compile(r"\{(\d*)\}: \(\d+, \{[\d, ]*\}, \w+-alias\)")


@dataclasses.dataclass
class Buffer:
    """A buffer of an optimized program, and the steps of the schedule from which to which it is alive."""

    name: str
    nbytes: int
    first: int
    last: int
    kind: str  # "argument", "result", "constant" or "temporary"
    type: str
    equations: list[int]
    sources: list[str]


@dataclasses.dataclass
class Memory:
    """The bytes alive at each step of a schedule, from the sizes and the order of instructions."""

    steps: list[str]
    totals: list[int]
    buffers: list[Buffer]

    @property
    def peak_step(self) -> int:
        """The step at which most bytes are alive."""
        return max(range(len(self.totals)), key=self.totals.__getitem__) if self.totals else 0

    @property
    def peak(self) -> int:
        """The bytes alive at the peak."""
        return max(self.totals, default=0)

    @property
    def at_peak(self) -> list[Buffer]:
        """The buffers alive at the peak, the largest first."""
        step = self.peak_step
        alive = [b for b in self.buffers if b.first <= step <= b.last and b.nbytes]
        return sorted(alive, key=lambda b: -b.nbytes)


def memory_of(computations: Sequence[Computation], header: str = "") -> Memory:
    """The memory of a program over the schedule of its entry computation, with bodies of loops at their calls.

    `header` is the program's first line, which says what results are written into the buffers of donated arguments.
    """
    by_name = {c.name: c for c in computations}
    entry = next((c for c in computations if c.is_entry), None)
    if entry is None:
        return Memory([], [], [])
    return _schedule(entry, by_name, [int(n or 0) for n in _ALIAS.findall(header)])


def _schedule(computation: Computation, by_name: dict[str, Computation], aliased: Sequence[int] | None) -> Memory:
    """The memory of a computation; `aliased`: the results that are in arguments' buffers, None for inner ones."""
    steps, last = computation.instructions, len(computation.instructions) - 1
    parts: dict[str, list[list[Buffer]]] = {}  # the buffers of each part of a result
    buffers: list[Buffer] = []
    inside = [0] * len(steps)
    for i, op in enumerate(steps):
        held = [parts.get(name, []) for name in op.operands]
        for b in _all(map(_all, held)):
            b.last = max(b.last, i)
        made = [] if _has_others_buffers(op, aliased is None) else _made(op, i, last)
        parts[op.name] = [[b] for b in made] or _passed_on(op, held)
        buffers += made
        if op.opcode in ("while", "conditional", "call"):
            inside[i] = max((_inner(by_name, name) for name in op.calls), default=0)
        if op.is_root:
            _finish(parts[op.name], last, aliased or ())
    return Memory([op.name for op in steps], _totals(buffers, inside), buffers)


def _totals(buffers: Sequence[Buffer], inside: Sequence[int]) -> list[int]:
    """The bytes alive at each step, with those inside of its call."""
    changes = [0] * (len(inside) + 1)
    for b in buffers:
        changes[b.first] += b.nbytes
        changes[b.last + 1] -= b.nbytes
    return [alive + n for alive, n in zip(itertools.accumulate(changes), inside, strict=False)]


def _all(groups: Iterable[list]) -> list:
    return [x for group in groups for x in group]


def _has_others_buffers(op: Instruction, is_inner: bool) -> bool:
    """Whether the result is in buffers of the operands, or of the caller."""
    if op.opcode == "parameter":
        return is_inner
    return op.opcode in _SAME or op.opcode.endswith(("-done", "-update"))


def _passed_on(op: Instruction, held: list[list[list[Buffer]]]) -> list[list[Buffer]]:
    """The parts of the result of an operation that has its operands' buffers."""
    if op.opcode == "tuple":
        return [_all(parts) for parts in held]
    first = held[0] if held else []
    if op.opcode == "get-tuple-element":
        index = int(_INDEX.search(op.text)[1])  # pyright: ignore[reportOptionalSubscript]
        return [first[index]] if index < len(first) else []
    return first


def _finish(results: list[list[Buffer]], last: int, aliased: Sequence[int]) -> None:
    for number, part in enumerate(results):
        for b in part:
            b.last = last
            if b.kind == "temporary":
                b.kind, b.nbytes = "result", 0 if number in aliased else b.nbytes


def _inner(by_name: dict[str, Computation], name: str) -> int:
    return _schedule(by_name[name], by_name, None).peak if name in by_name else 0


def _made(op: Instruction, step: int, last: int) -> list[Buffer]:
    kind = {"parameter": "argument", "constant": "constant"}.get(op.opcode, "temporary")
    first, end = (step, step) if kind == "temporary" else (0, last)
    return [Buffer(op.name, size, first, end, kind, op.type, op.equations, []) for size in op.in_main_memory]
