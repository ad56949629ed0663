"""The thread state that equations carry: the name stack and what surrounds an operation."""

from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any, NamedTuple

from minijax.base import cache, config
from minijax.base.thread import EMPTY as EMPTY, EqnContext, entered, run_under as run_under, thread


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


def current_context() -> EqnContext:
    """The context that an equation recorded now gets."""
    return thread.context


def extended_name_stack(*names: str) -> entered:
    """Appends scopes to the name stack for a while."""
    now = thread.context
    return entered(now._replace(name_stack=(*now.name_stack, *names)))


def surroundings_key(context: EqnContext) -> tuple | None:
    """The compute type and the XLA metadata of a context, for keys; None if there are none."""
    _, compute_type, metadata, _ = context
    if compute_type is None and not metadata:
        return None
    return compute_type, cache.key(tuple(sorted((metadata or {}).items())))


# What the equations of a trace carry is part of the options' state, and with it of every key.
_surroundings = config.UserContext(None)


class Surroundings(ContextDecorator):
    """Changes the compute type or the XLA metadata of the equations recorded within, in this thread."""

    def __init__(self, change: Callable[[EqnContext], EqnContext]):
        self._change = change
        self._entered: list[tuple[Any, Any]] = []

    def _recreate_cm(self) -> "Surroundings":
        return type(self)(self._change)

    def __enter__(self) -> None:
        context = self._change(thread.context)
        managers = _surroundings(surroundings_key(context)), entered(context)
        self._entered.append(managers)
        for manager in managers:
            manager.__enter__()

    def __exit__(self, *exception: object) -> None:
        for manager in reversed(self._entered.pop()):
            manager.__exit__(*exception)
