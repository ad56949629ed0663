"""Finds races by vector clocks: two accesses of one place, one of them a write, that no signal or wait orders."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from minijax.kernels.simulator import views
from minijax.kernels.simulator.memories import Buffer, Semaphore

_MANY = 64  # accesses of a buffer, beyond which those that no core can race with are dropped

Clock = dict[int, int]  # for each core and copy, how many of its steps have been seen


class Actor:
    """A core, or a copy: what runs in an order of its own."""

    __slots__ = ("number", "name", "clock", "is_settled")

    def __init__(self, number: int, name: str, clock: Clock):
        self.number, self.name, self.clock = number, name, clock
        self.is_settled = False  # a copy that all cores have waited for
        clock[number] = 1


class Access(NamedTuple):
    """An access of elements of a buffer."""

    actor: Actor
    step: int
    writes: bool
    region: Any  # a selection of ints and slices, or the numbers of the elements
    line: str

    def __str__(self):
        return f"{'write' if self.writes else 'read'} by {self.actor.name} at {self.line}"

    def is_before(self, clock: Clock) -> bool:
        """Returns whether one with this clock has seen the access."""
        return self.actor.is_settled or clock.get(self.actor.number, 0) >= self.step


class Races:
    """The actors of a simulation, and what they access."""

    def __init__(self):
        self._numbers = itertools.count()
        self._cores: list[Actor] = []
        self._copies: dict[int, Actor] = {}  # those that some core has not seen

    def core(self, device: int, core: int) -> Actor:
        """The actor of a core."""
        made = Actor(next(self._numbers), f"device {device}, core {core}", {})
        self._cores.append(made)
        return made

    def copy(self, starter: Actor) -> Actor:
        """The actor of a copy that another one starts."""
        made = Actor(next(self._numbers), f"the copy started by {starter.name}", dict(starter.clock))
        self._copies[made.number] = made
        _tick(starter)
        return made

    def access(self, actor: Actor, buffer: Buffer, stages: views.Stages, writes: bool, line: str) -> None:
        """Notes an access. Raises RuntimeError if it races with an earlier one."""
        clock = actor.clock
        now, kept = Access(actor, clock[actor.number], writes, _region(buffer, stages), line), []
        for other in buffer.log:
            if other.is_before(clock) or other.actor is actor:
                if not (writes and _covers(now.region, other.region)):
                    kept.append(other)
                continue
            if (writes or other.writes) and _overlap(buffer, now.region, other.region):
                raise RuntimeError(_race(buffer, other, now))
            kept.append(other)
        if len(kept) > _MANY:
            kept = [a for a in kept if not all(a.is_before(core.clock) for core in self._cores)]
        kept.append(now)
        buffer.log = kept

    def released(self, actor: Actor, semaphore: Semaphore) -> None:
        """Lets those who wait for a semaphore see what the actor has done."""
        if semaphore.clock is None:
            semaphore.clock = {}
        _join(semaphore.clock, actor.clock)
        _tick(actor)

    def acquired(self, actor: Actor, semaphore: Semaphore) -> None:
        """Lets a core see what those have done who signalled a semaphore."""
        if semaphore.clock is None:
            return
        _join(actor.clock, semaphore.clock)
        for number in [n for n in semaphore.clock if n in self._copies]:
            if all(number in core.clock for core in self._cores):
                self._copies.pop(number).is_settled = True
                for core in self._cores:
                    del core.clock[number]
        semaphore.clock = {n: step for n, step in semaphore.clock.items() if n in actor.clock}


def _tick(actor: Actor) -> None:
    """Ends a step of an actor: what others have seen of it does not include what follows."""
    actor.clock[actor.number] += 1


def _join(clock: Clock, other: Clock) -> None:
    """Adds to a clock what another one has seen."""
    for number, step in other.items():
        if clock.get(number, 0) < step:
            clock[number] = step


def _race(buffer: Buffer, first: Access, second: Access) -> str:
    return (
        f"RACE DETECTED in {buffer}:\n  {first}\n  {second}\nNo semaphore orders them. Wait for the copy, or signal a "
        "semaphore after the first access and wait for it before the second."
    )


# ---- regions -----------------------------------------------------------------------------------------


def _region(buffer: Buffer, stages: views.Stages) -> Any:
    """The elements that a view selects."""
    if not stages:
        return ()
    if len(stages) == 1 and type(stages[0]) is tuple and all(type(e) in (int, slice) for e in stages[0]):
        return tuple([_range(e, n) for e, n in zip(stages[0], buffer.shape, strict=True)])
    x = np.arange(buffer.array.size).reshape(buffer.shape)
    for stage in stages:
        if type(stage) is views.Bitcast or type(stage) is tuple and views.leaves(stage, x.shape):
            return ()  # all of the buffer
        x = views.viewed(x, stage)
    return np.unique(x)


def _range(e: int | slice, n: int) -> tuple[int, int, int]:
    if type(e) is slice:
        return max(e.start, 0), min(e.stop, n), e.step
    at = e + n if e < 0 else e
    return at, at + 1, 1


def _overlap(buffer: Buffer, one: Any, other: Any) -> bool:
    if type(one) is type(other) is tuple:
        return all(_meet(a, b) for a, b in zip(one, other, strict=False))
    return bool(np.intersect1d(_numbers(buffer, one), _numbers(buffer, other)).size)


def _meet(one: tuple, other: tuple) -> bool:
    low, high = max(one[0], other[0]), min(one[1], other[1])
    if low >= high:
        return False
    if one[2] == other[2] == 1:
        return True
    return bool(set(range(*one)) & set(range(*other)))


def _covers(one: Any, other: Any) -> bool:
    if type(one) is not tuple:
        return False
    if not one:
        return True
    if type(other) is not tuple or not other:
        return False
    return all(a[2] == 1 and a[0] <= b[0] and b[1] <= a[1] for a, b in zip(one, other, strict=True))


def _numbers(buffer: Buffer, region: Any) -> np.ndarray:
    if type(region) is not tuple:
        return region
    x = np.arange(buffer.array.size).reshape(buffer.shape)
    return x[tuple([slice(*r) for r in region])].ravel()
