"""Shows on a terminal, or in a notebook, that XLA still compiles a program: a line that changes each second."""

import sys
import threading
import time
from collections.abc import Callable
from typing import Any, TextIO

from minijax.base import config

_AFTER = 2.0  # seconds of compilation until the line appears
_EVERY = 1.0  # seconds between its changes
AHEAD = "compiling ahead"  # the name of threads that compile what nobody waits for
_option = config.option("minijax_progress")


def count_operations(text: str) -> int:
    """The number of operations with results in a module."""
    return sum([line.lstrip().startswith("%") for line in text.splitlines()])


def _shown_on() -> TextIO | None:
    """Standard error, if it is a terminal or that of a notebook, and somebody waits."""
    stream = sys.stderr
    if stream is None or not _option.value or threading.current_thread().name == AHEAD:
        return None
    try:
        is_seen = stream.isatty() or type(stream).__module__.startswith("ipykernel.")
    except ValueError:  # closed
        return None
    return stream if is_seen else None


class progress:
    """Context manager: while it lasts, a thread shows the name and size of a program, if that takes long.

    `before()` returns how many seconds an earlier version of the program took, or None. Without a terminal there is
    neither a thread nor a line.
    """

    __slots__ = ("_name", "_text", "_before", "_stream", "_done", "_thread")

    def __init__(self, name: str, text: Callable[[], str], before: Callable[[], float | None]):
        self._name, self._text, self._before = name, text, before
        self._stream = _shown_on()

    def __enter__(self) -> None:
        if self._stream is None:
            return
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._show, args=(time.monotonic(),), daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # threads cannot start while the interpreter shuts down
            self._stream = None

    def __exit__(self, *exception: object) -> None:
        if self._stream is not None:
            self._done.set()
            self._thread.join()

    def _show(self, started: float) -> None:
        if self._done.wait(_AFTER):
            return
        what = f"{self._name.removeprefix('jit_')}, {count_operations(self._text()):,} operations"
        seconds = self._before()
        before = "" if seconds is None else f" (last time {seconds:.1f} s)"
        while True:
            is_done = self._done.is_set()
            took = time.monotonic() - started
            line = f"compiled {what}: {took:.1f} s" if is_done else f"compiling {what}: {took:.0f} s{before}"
            self._write(line, "\n" if is_done else "")
            if is_done:
                return
            self._done.wait(_EVERY)

    def _write(self, line: str, end: str) -> None:
        stream: Any = self._stream
        try:
            erase = "\x1b[K" if stream.isatty() else ""
            stream.write(f"\r{line:<80}{erase}{end}" if not erase else f"\r{line}{erase}{end}")
            stream.flush()
        except (OSError, ValueError):  # the terminal is gone
            pass
