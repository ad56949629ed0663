"""Copies between simulated memories, by engines that run beside the cores."""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING, Any

import numpy as np

from minijax.kernels.simulator import views
from minijax.kernels.simulator.memories import Buffer, Place, Semaphore

if TYPE_CHECKING:
    from minijax.kernels.simulator.machine import Core


class Copy:
    """A copy that was started. It reads its source, then writes its destination, and signals a semaphore after each."""

    def __init__(
        self,
        core: Core,
        src: tuple[Buffer, views.Stages],
        dst: tuple[Buffer, views.Stages],
        semaphores: tuple[Semaphore, Semaphore | None],
        place: Place,
        adds: bool,
        line: str,
    ):
        self.core, self.src, self.dst, self.place, self.adds, self.line = core, src, dst, place, adds, line
        self.arrived, self.sent = semaphores
        self.data: np.ndarray | None = None
        self.races = core.machine.races
        self.actor = None if self.races is None or core.actor is None else self.races.copy(core.actor)
        self._noted = False
        self._note(*src, False)
        self._note_write()
        self.arrived.copies.append(self)
        if self.sent is not None and self.sent is not self.arrived:
            self.sent.copies.append(self)

    def _note(self, buffer: Buffer, stages: views.Stages, writes: bool) -> None:
        if self.races is not None and self.actor is not None:
            self.races.access(self.actor, buffer, stages, writes, self.line)

    def _note_write(self) -> None:
        target = self._target()
        if not self._noted and target is not None:
            self._noted = True
            self._note(target, self.dst[1], True)

    def _target(self) -> Buffer | None:
        """The buffer on the device that gets the copy; None if it has none yet."""
        buffer = self.dst[0]
        device, core = self.place
        if buffer.place[0] == device and buffer.place[1] in (core, None):
            return buffer
        assert buffer.allocation is not None
        found = buffer.allocation.memories.get((device, None if buffer.place[1] is None else core))
        return None if found is None or found.freed else found

    def start(self, eager: bool) -> None:
        """Copies at once if copies are eager and the destination is there."""
        if eager and self._target() is not None:
            self.advance(self.arrived)

    def advance(self, semaphore: Semaphore) -> None:
        """Reads or writes, so that the semaphore is signalled."""
        if self.data is None:
            self._read()
        if semaphore is self.arrived:
            self._write()

    def _read(self) -> None:
        buffer, stages = self.src
        self._check(buffer, "from")
        self.data = views.read(buffer, stages, self.core.machine.options.out_of_bounds_reads == "raise")
        if self.sent is not None:
            self._signal(self.sent)

    def _write(self) -> None:
        target = self._target()
        if target is None:
            raise RuntimeError(
                f"dma_start at {self.line}: device {self.place[0]}, core {self.place[1]} does not have "
                f"{self.dst[0].name} at the time of the copy. Let the devices wait for each other before the copy."
            )
        self._check(target, "to")
        self._note_write()
        views.write(target, self.dst[1], self.data, self.adds)
        self._signal(self.arrived)

    def _check(self, buffer: Buffer, way: str) -> None:
        if buffer.freed:
            raise RuntimeError(
                f"dma_start at {self.line}: a copy {way} {buffer}, whose scope ended. Wait for copies before it ends."
            )

    def _signal(self, semaphore: Semaphore) -> None:
        assert self.data is not None
        semaphore.count += self.data.nbytes
        if self in semaphore.copies:
            semaphore.copies.remove(self)
        if self.actor is not None and self.races is not None:
            self.races.released(self.actor, semaphore)


def size_in_bytes(aval: Any, without: Container[int]) -> int:
    """By how much a copy of this type signals its semaphores, for each element on the axes that are left out."""
    sizes = [n for axis, n in enumerate(aval.shape) if axis not in without]
    return int(np.prod(sizes, dtype=np.int64)) * np.dtype(aval.dtype).itemsize
