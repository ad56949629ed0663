"""Thread state of tracing: the current trace and the named axes."""

from collections.abc import Callable
from typing import Any

from minijax.base import cache, config
from minijax.base.thread import manual_axes as manual_axes, named_axis as named_axis, thread, under_trace
from minijax.ir.context import EMPTY, context_key

eval_trace: list[Any] = [None]


def current_trace() -> Any:
    """The trace that processes operations in this thread."""
    return thread.trace or eval_trace[0]


class set_current_trace(under_trace):
    """Context manager: makes `trace` the current trace."""

    __slots__ = ()

    def __init__(self, trace: Any):
        self._trace = None if trace is eval_trace[0] else trace


def is_eager() -> bool:
    """Returns whether operations run eagerly."""
    return thread.trace is None


def axis_size(name: Any, function: str = "it") -> int:
    """The size of a named axis. Raises NameError, with the name of the calling `function`, if it is not bound.

    Raises TypeError for a name that cannot be hashed.
    """
    for known, size, *_ in reversed(thread.axes):
        if known == name:
            return size
    hash(name)
    raise NameError(
        f"Found an unbound axis name: {name}. To fix this, please call {function} under `jax.shard_map`, or vmap with "
        f"that name. The following axis names are available: {axis_names()}"
    )


def axis_names() -> list:
    """The names of the bound axes that users know, innermost last."""
    return [name for name, *_ in thread.axes if name is not None and not getattr(name, "is_hidden", False)]


def trace_key() -> tuple:
    """The part of the thread's state that a trace's outcome depends on, besides its function and arguments."""
    context = thread.context
    key = None if context is EMPTY or context[1] is context[2] is None else context_key(context)
    return config.state().traced, thread.axes, thread.manual, key


def traced_cache(function: Callable) -> Callable:
    """Decorator: caches results by arguments and thread state, as long as the first argument is alive."""
    return cache.weak_cache(function, under=trace_key)
