"""Raw arrays of programs that XLA still compiles: an array may have one in place of jaxlib's until its value is needed.

jaxlib refuses such a raw array with a TypeError, so that launches, which read the slots of arrays, need no test.
"""

import contextlib
import threading
import weakref
from collections.abc import Sequence
from typing import Any

from minijax.run.arrays import buffers


class Pending:
    """A result of a launch that waits for its program: whatever is asked of it is asked of the raw array."""

    __slots__ = ("launch", "place")

    def __init__(self, launch: "Launch", place: int):
        self.launch, self.place = launch, place

    def raw(self) -> Any:
        """The raw array, for which it waits. Raises JaxRuntimeError if the program failed."""
        return self.launch.run()[self.place]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw(), name)

    def fill_later(self, array: Any) -> None:
        """Gives an array that has this in place of its raw array that one, as soon as it is there."""
        self.launch.arrays.append((self.place, weakref.ref(array)))
        self.launch.fill()

    def is_deleted(self) -> bool:
        """Returns whether the memory was freed, without waiting: before there is memory, it was not."""
        return self.launch.results is not None and self.raw().is_deleted()

    def is_ready(self) -> bool:
        """Returns whether the value has been computed, without waiting."""
        return self.launch.can_run() and self.raw().is_ready()


buffers.export_buffer_of(Pending, Pending.raw)
_open: weakref.WeakSet["Launch"] = weakref.WeakSet()


class Begun:
    """Takes the place of what jaxlib's launch returns, for a program that is being compiled."""

    __slots__ = ("_launched",)

    def __init__(self, program: Any, raws: Sequence):
        self._launched = program, raws

    def consume_with_handlers(self, handlers: Sequence) -> list[Pending]:
        """The raw arrays, as the method of that name of jaxlib's results."""
        launch = Launch(*self._launched, handlers)
        self._launched = ()  # the thread keeps this object until its next launch
        return [Pending(launch, i) for i in range(len(handlers))]


class Launch:
    """One launch of a program that is being compiled.

    It runs as soon as one of its results is needed, and never if they are all dropped: the program has no effects.
    """

    __slots__ = ("results", "_program", "_raws", "_handlers", "arrays", "_lock", "__weakref__")

    def __init__(self, program: Any, raws: Sequence, handlers: Sequence):
        self._program, self._raws, self._handlers, self._lock = program, raws, handlers, threading.Lock()
        self.results: list | None = None
        self.arrays: list[tuple[int, weakref.ref]] = []  # each gets the result at that place
        _open.add(self)

    def run(self) -> list:
        """The results; runs first, one by one, the launches from which the inputs come."""
        waiting = [self]
        while waiting:
            if inputs := waiting[-1]._inputs():
                waiting += inputs
            else:
                waiting.pop()._run_alone()
        return self.results  # pyright: ignore[reportReturnType]

    def fill(self) -> None:
        """Gives the arrays that are alive the results, if there are any."""
        with contextlib.suppress(IndexError):  # two threads may empty the list
            while self.results is not None:
                place, kept = self.arrays.pop()
                array = kept()
                if array is not None:
                    array._raw = self.results[place]

    def _inputs(self) -> list["Launch"]:
        return [raw.launch for raw in self._raws if type(raw) is Pending and raw.launch.results is None]

    def can_run(self) -> bool:
        """Returns whether the programs of this launch, and of those from which its inputs come, are loaded."""
        seen, waiting = set(), [self]
        while waiting:
            launch = waiting.pop()
            if launch.results is None and launch not in seen:
                if not launch._program.is_loaded():
                    return False
                seen.add(launch)
                waiting += launch._inputs()
        return True

    def _run_alone(self) -> None:
        with self._lock:
            if self.results is None:
                self.results = self._program.run(settled(self._raws), self._handlers)
                self._raws = ()
                self.fill()
                _open.discard(self)


def settled(raws: Sequence) -> list:
    """Raw arrays that are jaxlib's: waits for those that are pending."""
    return [raw.raw() if type(raw) is Pending else raw for raw in raws]


def run_all() -> None:
    """Runs every launch that waits: memory is about to be freed, shared or counted."""
    for launch in list(_open):
        with contextlib.suppress(Exception):  # which is raised again where a result is needed
            launch.run()
