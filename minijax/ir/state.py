"""Thread state of tracing: the current trace and the named axes."""

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

from minijax.base import cache, config
from minijax.base.config import NEVER, this_thread


class _Thread(threading.local):
    trace: Any = None
    axes: tuple = ()
    manual: tuple = ()  # inside `shard_map` with check_vma: the names of the mesh axes, in their order
    origin: Any = None  # where the operations are from that a jaxpr's equations make again


thread = _Thread()
eval_trace: list[Any] = [None]
# primitive, operands -> operands that vary alike; a socket that `ops.collective` fills
unite: list[Any] = [None]


def current_trace() -> Any:
    """The trace that operations are handed to."""
    return thread.trace or eval_trace[0]


# These are classes since an interrupt may leave a generator half-way, to go on when it is collected.
class set_current_trace:
    """Hands operations to `trace` for a while."""

    __slots__ = ("_trace", "_saved")

    def __init__(self, trace: Any):
        self._trace = None if trace is eval_trace[0] else trace

    def __enter__(self) -> None:
        self._saved = thread.trace
        thread.trace, this_thread.ready = self._trace, NEVER

    def __exit__(self, *exception: object) -> None:
        thread.trace, this_thread.ready = self._saved, NEVER


class named_axis:
    """Makes a named axis known for a while."""

    __slots__ = ("_axis", "_saved")

    def __init__(self, name: Any, size: int):
        self._axis = (name, size)

    def __enter__(self) -> None:
        self._saved = thread.axes
        # Programs nested in a batched one share what is remembered of them, as jax's do.
        if self._saved[-2:] != (self._axis, self._axis):
            thread.axes = (*self._saved, self._axis)

    def __exit__(self, *exception: object) -> None:
        thread.axes = self._saved


class manual_axes:
    """Makes the axes of a mesh known for a while; if `checked`, types say over which ones a value varies."""

    __slots__ = ("_sizes", "_names", "_saved")

    def __init__(self, sizes: Sequence[tuple[Any, int]], checked: bool):
        self._sizes = sizes
        self._names = tuple([name for name, _ in sizes]) if checked else ()

    def __enter__(self) -> None:
        self._saved = thread.axes, thread.manual
        thread.axes, thread.manual = (*thread.axes, *self._sizes), self._names

    def __exit__(self, *exception: object) -> None:
        thread.axes, thread.manual = self._saved


def is_eager() -> bool:
    """Whether operations are run at once."""
    return thread.trace is None


def axis_size(name: Any) -> int:
    """The size of a named axis. Raises NameError if it is not bound."""
    for known, size in reversed(thread.axes):
        if known == name:
            return size
    raise NameError(f"unbound axis name: {name}. The following axis names are available: {axis_names()}")


def axis_names() -> list:
    """The names bound now, innermost last."""
    return [name for name, _ in thread.axes if name is not None]


def trace_key() -> tuple:
    """What a trace's outcome depends on besides its function and arguments."""
    return config.state().traced, thread.axes, thread.manual


def traced_cache(function: Callable) -> Callable:
    """Decorator: remembers results by arguments and thread state, as long as the first argument lives."""

    @cache.weak_cache
    def cached(first, key, *args):
        return config.run_as_of(key[0], function, first, *args)

    @functools.wraps(function)
    def call(first, *args):
        return cached(first, trace_key(), *args)

    return call
