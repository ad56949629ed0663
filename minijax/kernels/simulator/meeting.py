"""Where the programs of several devices meet, so that one of them simulates them all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

PATIENCE = 60.0  # seconds without an arrival, after which a device that does not come is given up


class _Round:
    """One run of a kernel on all devices."""

    def __init__(self):
        self.arrived: dict[int, Sequence[Any]] = {}
        self.results: Mapping[int, Any] | None = None
        self.error: BaseException | None = None

    def is_done(self) -> bool:
        """Returns whether there are results, or an error."""
        return self.results is not None or self.error is not None


class Meeting:
    """Waits for the arrays of all devices, of each run in turn."""

    def __init__(self, count: int, simulate: Callable[[Mapping[int, Sequence[Any]]], Mapping[int, Any]]):
        self._count, self._simulate = count, simulate
        self._changed = threading.Condition()
        self._runs = [0] * count
        self._rounds: dict[int, _Round] = {}

    def join(self, device: int, arrays: Sequence[Any]) -> Any:
        """The results of a device, when all devices are there. Raises RuntimeError if some do not come."""
        with self._changed:
            number = self._runs[device]
            self._runs[device] += 1
            now = self._rounds.setdefault(number, _Round())
            now.arrived[device] = arrays
            is_last = len(now.arrived) == self._count
            self._changed.notify_all()
            if not is_last:
                self._wait(now)
        if is_last and not now.is_done():
            try:
                now.results = self._simulate(now.arrived)
            except BaseException as error:
                now.error = error
            with self._changed:
                self._rounds.pop(number, None)
                self._changed.notify_all()
        if now.error is not None:
            raise now.error
        assert now.results is not None
        return now.results[device]

    def _wait(self, now: _Round) -> None:
        while not now.is_done():
            before = len(now.arrived)
            if self._changed.wait(PATIENCE) or len(now.arrived) in (before + 1, self._count):
                continue
            missing = sorted(set(range(self._count)) - set(now.arrived))
            now.error = RuntimeError(
                f"pallas_call: devices {missing} did not come to a kernel that copies or signals between devices, for "
                f"{PATIENCE:.0f} seconds. All devices of the mesh must run it."
            )
            self._changed.notify_all()
