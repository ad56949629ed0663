"""Prefetches programs from disk: those that the same command loaded in its last run, while Python traces."""

import atexit
import contextlib
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from jaxlib import xla_client as xc

from minijax.base.lazy import defer
from minijax.run.programs import disk_files

hashlib = defer("hashlib")

_LONGEST = 256  # programs in a trail


class Step(NamedTuple):
    """A program that was loaded: its file, the ids of its devices, and its serialized XLA options."""

    label: str
    devices: tuple[int, ...]
    options: bytes

    @property
    def key(self) -> bytes:
        """The key of the program's file."""
        return bytes.fromhex(self.label.rpartition("-")[2])


def _line(step: Step) -> str:
    return f"{step.label} {','.join(map(str, step.devices))} {step.options.hex()}"


def _step(line: str) -> Step:
    label, devices, options = line.split(" ")
    return Step(label, tuple(map(int, devices.split(","))), bytes.fromhex(options))


class Trail:
    """The programs that a command loaded from a folder, identified by the interpreter's command line.

    `load(step, options)` loads a program in a separate thread. Its errors are dropped, since the program is then
    loaded again when it is needed.
    """

    def __init__(self, folder: str, environment: bytes, load: Callable[[Step, Any], Any]):
        self.key = hashlib.sha256(environment + repr(sys.orig_argv).encode()).digest()
        self.path = os.path.join(folder, f"trail-{self.key.hex()}{disk_files.SUFFIX}")
        self._load, self._process = load, os.getpid()
        self._changed = threading.Condition()
        self._loading: str | None = None
        self._loaded: dict[str, Any] = {}
        self._before: list[Step] = []
        self._now: dict[str, Step] = {}
        with contextlib.suppress(Exception):  # without a trail, nothing is prefetched
            self._before = [_step(line) for line in disk_files.read(self.path, self.key)[1].decode().splitlines()]
        self._ahead = {step.label: step for step in self._before}
        atexit.register(self._save)
        if self._ahead:
            with contextlib.suppress(RuntimeError):  # threads cannot start while the interpreter shuts down
                threading.Thread(target=self._run, name="minijax-disk").start()

    def take(self, label: str) -> Any:
        """Waits for and returns the prefetched program; None if loading did not begin, or failed."""
        if self._is_elsewhere():
            return None
        with self._changed:
            self._ahead.pop(label, None)
            self._changed.wait_for(lambda: self._loading != label)
            return self._loaded.pop(label, None)

    def note(self, step: Step) -> None:
        """Adds a program to the trail of the next run."""
        if len(self._now) < _LONGEST:
            self._now[step.label] = step

    def leave(self) -> None:
        """Stops prefetching, since this run differs from the last one."""
        if self._is_elsewhere():
            return
        with self._changed:
            self._ahead.clear()
            self._loaded.clear()

    def _is_elsewhere(self) -> bool:
        """Returns whether this process is a fork: it has no loading thread, and the state of the lock is unknown."""
        return self._process != os.getpid()

    def close(self) -> None:
        """Stops prefetching, and does not save the trail of this run."""
        self.leave()
        atexit.unregister(self._save)

    def _run(self) -> None:
        options: dict[bytes, Any] = {}
        main = threading.main_thread()
        while main.is_alive():
            with self._changed:
                if not self._ahead:
                    return
                step = self._ahead.pop(next(iter(self._ahead)))
                self._loading = step.label
            try:
                if step.options not in options:
                    options[step.options] = xc.CompileOptions.ParseFromString(step.options)
                self._loaded[step.label] = self._load(step, options[step.options])
            except Exception:  # noqa: S110
                pass
            finally:
                with self._changed:
                    self._loading = None
                    self._changed.notify_all()

    def _save(self) -> None:
        steps = list(self._now.values())
        if steps and steps != self._before and not self._is_elsewhere():
            text = "\n".join(map(_line, steps))
            with contextlib.suppress(OSError):
                disk_files.write(self.path, self.key, 0.0, text.encode())
