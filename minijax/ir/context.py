"""The thread state that equations carry: the name stack and what surrounds an operation."""

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from minijax.base.config import NEVER, this_thread
from minijax.ir import state


class EqnContext(NamedTuple):
    """Thread state that an equation was recorded under and is replayed under."""

    name_stack: tuple[str, ...] = ()
    compute_type: str | None = None
    xla_metadata: Any = None
    cur_abstract_mesh: Any = None


EMPTY = EqnContext()


class NameStack(tuple):
    """The names of the scopes around an operation, outermost first."""

    __slots__ = ()
    stack = property(tuple)

    def __new__(cls, stack: tuple = ()):
        return super().__new__(cls, stack)

    def __add__(self, other: tuple) -> "NameStack":
        return NameStack((*self, *other))

    def extend(self, name: str) -> "NameStack":
        return NameStack((*self, name))

    def __str__(self):
        return "/".join(self)

    def __repr__(self):
        return f"NameStack(stack={tuple(self)})"


class SourceInfo(NamedTuple):
    """Where an operation was called, and under which names."""

    traceback: Any
    name_stack: NameStack

    def replace(self, **fields: Any) -> "SourceInfo":
        return self._replace(**fields)


class _Local(threading.local):
    eqn_context = EMPTY


_local = _Local()


def current_context() -> EqnContext:
    """The context that an equation recorded now gets."""
    return _local.eqn_context


class entered:
    """Makes `context` the thread's for a while."""

    __slots__ = ("_context", "_saved")

    def __init__(self, context: EqnContext):
        self._context = context

    def __enter__(self) -> None:
        self._saved = _local.eqn_context
        _local.eqn_context = self._context

    def __exit__(self, *exception: object) -> None:
        _local.eqn_context = self._saved


def extended_name_stack(*names: str) -> entered:
    """Appends scopes to the name stack for a while."""
    now = _local.eqn_context
    return entered(now._replace(name_stack=(*now.name_stack, *names)))


def run_under(trace: Any, fun: Callable[..., Any], *args: Any) -> Any:
    """Calls `fun` with `trace` as the current trace, which ends with it, and puts the thread's state back."""
    thread = state.thread
    saved = thread.trace, thread.axes, thread.manual, thread.origin, _local.eqn_context
    try:
        thread.trace, this_thread.ready = trace, NEVER
        return fun(*args)
    finally:
        # Without calls, for an interrupt may come at any call.
        thread.trace, thread.axes, thread.manual, thread.origin, _local.eqn_context = saved
        this_thread.ready = NEVER
        trace.alive = False
