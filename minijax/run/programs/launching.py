"""Launches programs in a frame that each thread keeps, since jaxlib records the stack of a launch up to that frame.

jaxlib records a traceback at each launch, for which CPython makes a frame object for each frame of the stack: a tenth
of a call's time, and more in a deep stack. Within `TracebackScope` in a generator it makes that of the generator alone.
"""

import contextlib
import threading
from collections.abc import Callable, Generator, Sequence
from typing import Any

from jaxlib import _jax

from minijax.run.arrays.array import collect_garbage

Request = tuple[Callable[[Sequence], Any], Sequence, Sequence]  # the launch of a program, its raw inputs, the handlers
_COLLECTED = 32  # launches until jaxlib may drop the tracebacks that it keeps
_scope: Any = getattr(_jax, "TracebackScope", contextlib.nullcontext)


def _launch_requests() -> Generator[Any, Request, None]:
    """Gives the raw results of each program that is sent to it, and ends if one fails."""
    with _scope():
        execute, raws, handlers = yield
        while True:
            for _ in range(_COLLECTED):
                results = execute(raws)
                del execute, raws  # the frame must keep no program and no input alive
                execute, raws, handlers = yield results.consume_with_handlers(handlers)
            collect_garbage()


class _Launching(threading.local):
    """The generator of the thread; `send` gives it a request and returns the raw results."""

    send: Callable[[Request], list]

    def __init__(self):
        self.begin_anew()

    def begin_anew(self) -> None:
        self.generator = _launch_requests()
        next(self.generator)
        self.send = self.generator.send

    def has_begun(self, error: BaseException) -> bool:
        """Returns whether the launch that failed with `error` had begun; if not, it is to be made without `send`."""
        if self.generator.gi_running:  # a finalizer, a signal handler or a callback launches within a launch
            return not isinstance(error, ValueError)
        self.begin_anew()
        return not isinstance(error, StopIteration)  # an interrupt had ended the generator


launching = _Launching()


def record_stacks() -> None:
    """Makes launches of this thread, and of threads that begin later, record the stack of their callers again."""
    global _scope
    _scope = contextlib.nullcontext
    launching.begin_anew()
