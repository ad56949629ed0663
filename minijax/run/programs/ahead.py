"""Compiles programs on threads while Python goes on: XLA lets go of the interpreter's lock meanwhile.

The first call of such a program returns arrays at once. Their raw arrays are `Pending`, and whatever needs their values
waits. Calls that only need their types, such as tracing and compiling the next program, do not. Programs are compiled
ahead if nobody could tell: on one CPU device, without effects, donated arguments and operations that XLA may refuse,
as long as nobody listens to compilations. Launches that wait are run before memory that they may read is freed: before
an array is deleted or donated.
"""

import contextlib
import math
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from minijax.base import config, dtypes
from minijax.hlo.locations import Located
from minijax.ir.types import ShapedArray
from minijax.run.arrays import pending
from minijax.run.programs import compile
from minijax.run.programs.compile import Loaded, Source
from minijax.run.programs.launching import launching
from minijax.run.watching.progress import AHEAD

_option = config.option("minijax_compile_ahead")
_SMALL = 1 << 28  # bytes of results, above which a failure for lack of memory is likely
_MOST_THREADS = 8  # since XLA takes much memory, and has threads of its own
_is_over = [False]


def is_possible(devices: Sequence[Any]) -> bool:
    """Returns whether a program that only computes may be compiled ahead for these devices."""
    return (
        len(devices) == 1
        and devices[0].platform == "cpu"
        and not _is_over[0]
        and _processors() > 1
        and _option.value
        and not config.has_own_settings()  # which the threads that compile would not see
        and not compile.is_replaced()
    )


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def stop() -> None:
    """Waits for what is compiled and runs it; from now on programs are compiled when they are called."""
    _is_over[0] = True
    _finish()


# ---- threads ----------------------------------------------------------------------------------------

_queue: deque["Compiling"] = deque()
_lock = threading.Lock()
_threads = [0]


def _begin(program: "Compiling") -> None:
    _queue.append(program)
    with _lock:
        if _threads[0] >= min(_processors(), _MOST_THREADS):
            return
        _threads[0] += 1
    try:
        threading.Thread(target=_work, name=AHEAD).start()
    except RuntimeError:  # threads cannot start while the interpreter shuts down; who needs the program compiles it
        _threads[0] -= 1


def _work() -> None:
    while True:
        with _lock:
            if not _queue or not threading.main_thread().is_alive():
                _threads[0] -= 1
                return
            program = _queue.popleft()
        with contextlib.suppress(Exception):  # which is raised where a result is needed
            program.loaded()
        del program


def _finish() -> None:
    compile.finish()
    pending.run_all()


def _forget_threads() -> None:
    global _lock
    _lock = threading.Lock()
    _queue.clear()
    _threads[0] = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_finish, after_in_child=_forget_threads)


# ---- programs ---------------------------------------------------------------------------------------


class Compiling(Loaded):
    """A program that a thread compiles, or the one that needs it first."""

    __slots__ = ("_load", "_text", "_loaded", "_error", "_lock", "_creator", "_followers")

    def __init__(self, source: Source, load: Callable[[], Loaded], text: Callable[[], str]):
        self.devices, self.name, self.users = source.devices, source.name, 0
        self._load, self._text, self._lock = load, text, threading.Lock()
        self._loaded: Loaded | None = None
        self._error: Exception | None = None
        self._creator: int | None = threading.get_ident()  # the thread whose first call need not wait
        self._followers: list[Callable[[Any], None]] = []
        compile.unfinished.add(self)

    def loaded(self) -> Loaded:
        """The loaded program. Raises the error of compiling it."""
        if self._loaded is None:
            with self._shown(), self._lock:
                if self._loaded is None and self._error is None:
                    self._compile()
        if self._error is not None:
            raise self._error
        return self._loaded  # pyright: ignore[reportReturnType]

    def _shown(self) -> contextlib.AbstractContextManager:
        text = getattr(self, "_text", None)
        is_waiting = text is not None and self._lock.locked()
        return compile.shown(self.name, text) if is_waiting else contextlib.nullcontext()  # pyright: ignore

    def _compile(self) -> None:
        try:
            loaded = self._load()
        except Exception as error:
            self._error = error
        else:
            self._loaded = loaded
            self._tell()
        compile.unfinished.discard(self)
        del self._load, self._text  # they hold what the program captured

    def is_loaded(self) -> bool:
        """Returns whether the program, or the error of compiling it, is there."""
        return self._loaded is not None or self._error is not None

    def follow(self, change: Callable[[Any], None]) -> None:
        """Calls `change(loaded)` as soon as the program is loaded."""
        self._followers.append(change)
        if self._loaded is not None:
            self._tell()

    def _tell(self) -> None:
        with contextlib.suppress(IndexError):  # two threads may empty the list
            while True:
                self._followers.pop()(self._loaded)

    executable: Any = property(lambda self: self.loaded().executable)
    names: Any = property(lambda self: self.loaded().names)
    stored: Any = property(lambda self: self.loaded().stored)

    def begin(self, raws: Sequence) -> Any:
        """Launches the program; the first call, in the thread that created it, does not wait until it is loaded."""
        if self._loaded is None and self._creator == threading.get_ident() and not _is_over[0]:
            self._creator = None
            if not any([raw.is_deleted() for raw in raws]):
                return pending.Begun(self, raws)
        return self.execute(pending.settled(raws))

    def run(self, raws: Sequence, handlers: Sequence) -> list:
        """The raw results of a launch, for which it waits."""
        execute = self.execute
        try:
            return launching.send((execute, raws, handlers))
        except BaseException as error:
            if launching.has_begun(error):
                raise
            return execute(raws).consume_with_handlers(handlers)


def may_wait(loaded: Loaded, signatures: Sequence[Any]) -> bool:
    """Returns whether results with these signatures may be pending."""
    if type(loaded) is not Compiling or not signatures:
        return False
    if any([type(sig.aval) is not ShapedArray or sig.aval.dtype == dtypes.float0 for sig in signatures]):
        return False
    return sum([math.prod(sig.shape) * sig.dtype.itemsize for sig in signatures]) <= _SMALL


def load(source: Source, located: Callable[[], Located]) -> Loaded:
    """Begins to load or compile a program for one device."""
    program = Compiling(source, lambda: compile.load_or_build(source, located), lambda: located().text)
    _begin(program)
    return program
