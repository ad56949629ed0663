"""The simulated machine: devices with cores, which run in turns, and what they wait for."""

from __future__ import annotations

import itertools
from collections.abc import Generator, Mapping, Sequence
from typing import Any

import numpy as np

from minijax.kernels.simulator.clocks import Actor, Races
from minijax.kernels.simulator.memories import Allocation, Buffer, Semaphore, Semaphores, padded, uninitialized_value
from minijax.kernels.simulator.options import InterpretParams, LoggingMode

Run = Generator["Waiting", None, Any]  # what a core does, which yields where it must wait


_BARRIER = "barrier semaphore"


def _kind(semaphore: Semaphore) -> LoggingMode:
    return LoggingMode.BARRIER if semaphore.name.startswith(_BARRIER) else LoggingMode.SEMAPHORE


class Waiting:
    """A core that waits until a semaphore has a value."""

    __slots__ = ("core", "semaphore", "value", "line")

    def __init__(self, core: Core, semaphore: Semaphore, value: int, line: str):
        self.core, self.semaphore, self.value, self.line = core, semaphore, value, line

    def is_over(self) -> bool:
        """Returns whether the core can go on, or a copy can."""
        return self.semaphore.count >= self.value or bool(self.semaphore.copies)

    def __str__(self):
        return (
            f"device {self.core.device}, core {self.core.number} waits at {self.line} until {self.semaphore} is "
            f"{self.value}; it is {self.semaphore.count}"
        )


class Core:
    """A core of a device, at a step of the grid."""

    __slots__ = ("machine", "device", "number", "place", "ids", "sizes", "names", "coordinates", "actor", "visits")

    def __init__(self, machine: Machine, device: int, number: int):
        self.machine, self.device, self.number, self.place = machine, device, number, (device, number)
        self.ids: Sequence[Any] = ()
        self.sizes: Sequence[Any] = ()
        self.names: Sequence[Any] = ()
        self.coordinates = machine.coordinates(device)
        self.actor: Actor | None = None if machine.races is None else machine.races.core(device, number)
        self.visits: dict[Any, int] = {}  # how often the core came to each place that allocates

    def position(self, name: Any) -> np.int32:
        """The number of this core, or of its device, on an axis."""
        if name in self.names:
            return self.ids[list(self.names).index(name)]
        return np.int32(self.coordinates[name])

    def wait(self, semaphore: Semaphore, value: int, decrement: bool, line: str) -> Run | None:
        """Waits until a semaphore has a value: what to run before that, or None if it has."""
        if self._take(semaphore, value, decrement):
            return None
        return self._waiting(semaphore, value, decrement, line)

    def _take(self, semaphore: Semaphore, value: int, decrement: bool) -> bool:
        while semaphore.count < value and semaphore.copies:
            semaphore.copies[0].advance(semaphore)
        if semaphore.count < value:
            return False
        if decrement:
            semaphore.count -= value
        if self.actor is not None and self.machine.races is not None:
            self.machine.races.acquired(self.actor, semaphore)
        self.machine.log(_kind(semaphore), "waited for", semaphore, self)
        return True

    def _waiting(self, semaphore: Semaphore, value: int, decrement: bool, line: str) -> Run:
        waiting = Waiting(self, semaphore, value, line)
        yield waiting
        while not self._take(semaphore, value, decrement):
            yield waiting

    def signal(self, semaphore: Semaphore, increment: int) -> None:
        """Adds to a semaphore of any device."""
        semaphore.count += increment
        if self.actor is not None and self.machine.races is not None:
            self.machine.races.released(self.actor, semaphore)
        self.machine.log(_kind(semaphore), f"added {increment} to", semaphore, self)

    def note(self, buffer: Buffer, stages: Sequence[Any], writes: bool, line: str) -> None:
        """Notes an access of this core. Raises RuntimeError if it races with another."""
        races = self.machine.races
        if races is not None and self.actor is not None:
            races.access(self.actor, buffer, stages, writes, line)
        self.machine.log(LoggingMode.SHARED_MEMORY, "wrote" if writes else "read", buffer, self)

    def visit(self, site: Any) -> tuple[Any, int]:
        """A name for what this core allocates now at a place of its kernel, the same on all devices and cores."""
        count = self.visits[site] = self.visits.get(site, 0) + 1
        return site, count


class Machine:
    """Devices with cores, their memories and the links between them."""

    def __init__(self, options: InterpretParams, mesh: Mapping[Any, int], cores: int, collective_id: int | None = None):
        self.options, self.mesh, self.num_cores, self.collective_id = options, dict(mesh), cores, collective_id
        self.races = Races() if options.detect_races else None
        self.allocations: dict[Any, Allocation] = {}
        self._counts = list(itertools.product(*[range(n) for n in self.mesh.values()]))

    num_devices = property(lambda self: len(self._counts))

    def log(self, kind: LoggingMode, event: str, memory: Any, core: Core) -> None:
        """Prints an event, if its kind is to be printed."""
        mode = self.options.logging_mode
        if mode is not None and kind in mode:
            print(f"device {core.device}, core {core.number}: {event} {memory}")

    def coordinates(self, device: int) -> dict[Any, int]:
        """The position of a device on each axis of the mesh."""
        return dict(zip(self.mesh, self._counts[device], strict=True))

    def device_at(self, coordinates: Mapping[Any, int]) -> int:
        """The number of the device with these coordinates. Raises ValueError for coordinates beyond the mesh."""
        key = tuple([coordinates[name] for name in self.mesh])
        if any(not 0 <= i < n for i, n in zip(key, self.mesh.values(), strict=True)):
            raise ValueError(f"device_id {dict(coordinates)} is beyond the mesh with the axes {self.mesh}")
        number = 0
        for i, n in zip(key, self.mesh.values(), strict=True):
            number = number * n + i
        return number

    # ---- memory ---------------------------------------------------------------------------------------

    def allocation(self, name: Any) -> Allocation:
        """The allocation with a name."""
        return self.allocations.setdefault(name, Allocation())

    def buffer(self, shape: Sequence[int], dtype: Any, space: Any, name: str, place: Any) -> Buffer:
        """A buffer of memory that was not written."""
        empty = uninitialized_value(dtype, self.options.uninitialized_memory)
        bounds = padded(shape, dtype, space) if self.options.buffer_bounds == "padded" else None
        return Buffer(np.full(tuple(shape), empty, dtype), space, name, place, empty, bounds)

    def barrier(self, place: Any) -> Semaphores:
        """The semaphore of a device and core, one of those that all kernels with this `collective_id` share."""
        name = f"{_BARRIER} {self.collective_id}"
        allocation = self.allocation(name)
        for other in itertools.product(range(self.num_devices), range(self.num_cores)):
            allocation.at(other, lambda other=other: Semaphores((), name, other))
        return allocation.memories[place]

    def left_over(self) -> list[Semaphore]:
        """The semaphores that are not zero."""
        memories = [m for a in self.allocations.values() for m in a.memories.values()]
        return [s for m in memories if type(m) is Semaphores for s in m.array.flat if s.count]

    # ---- running --------------------------------------------------------------------------------------

    def run(self, runs: Sequence[Run]) -> None:
        """Runs all cores to their ends, each until it must wait. Raises RuntimeError if all wait forever."""
        waiting: dict[Run, Waiting | None] = dict.fromkeys(runs)
        while waiting:
            moved = False
            for run, stop in list(waiting.items()):
                if stop is not None and not stop.is_over():
                    continue
                moved = True
                try:
                    waiting[run] = next(run)
                except StopIteration:
                    del waiting[run]
            if not moved:
                raise RuntimeError(_deadlock([w for w in waiting.values() if w is not None]))


def _deadlock(stuck: Sequence[Waiting]) -> str:
    lines = "\n".join([f"  {w}" for w in stuck[:8]])
    more = f"\n  and {len(stuck) - 8} more" if len(stuck) > 8 else ""
    return (
        f"Deadlock: nothing will signal the semaphores that all remaining cores wait for:\n{lines}{more}\nCheck that "
        "each wait has a signal, or a copy, of as much."
    )
