"""The thread state that equations carry: the name stack, compute type and XLA metadata."""

from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any, NamedTuple

from minijax.base import cache, config
from minijax.base.thread import EMPTY as EMPTY, EqnContext, entered, run_under as run_under, thread, within as within


class Transform(NamedTuple):
    """A transformation in a name stack: it is printed around the scope that follows, `jvp(scope)`."""

    name: str


JVP, TRANSPOSE, VMAP = Transform("jvp"), Transform("transpose"), Transform("vmap")


def path(stack: tuple, *names: str) -> str:
    """A name stack with further names appended, in the form that profiles show."""
    parts: list[str] = []
    for element in reversed(stack):
        if type(element) is not Transform:
            parts.append(element)
        elif parts:
            parts[-1] = f"{element.name}({parts[-1]})"
        else:
            parts.append(f"{element.name}()")
    return "/".join([*reversed(parts), *filter(None, names)])


class NameStack(tuple):
    """The names of the scopes and transformations around an operation, outermost first."""

    __slots__ = ()
    stack = property(tuple)

    def __new__(cls, stack: tuple = ()):
        return super().__new__(cls, stack)

    def __add__(self, other: tuple) -> "NameStack":
        return NameStack((*self, *other))

    def extend(self, name: str) -> "NameStack":
        return NameStack((*self, name))

    def transform(self, name: str) -> "NameStack":
        return NameStack((*self, Transform(name)))

    def __str__(self):
        return path(self)

    def __repr__(self):
        return f"NameStack(stack={tuple(self)})"


class SourceInfo(NamedTuple):
    """Where an operation was called, and its name stack."""

    traceback: Any
    name_stack: NameStack

    def replace(self, **fields: Any) -> "SourceInfo":
        return self._replace(**fields)


def current_context() -> EqnContext:
    """The context of equations that are recorded now."""
    return thread.context


_UNNAMED = EMPTY[1:]


def nested(inner: EqnContext, outer: EqnContext) -> EqnContext:
    """The context `inner` with the names of `outer` in front of its own; one object for most operations of a scope."""
    if inner is EMPTY and outer[1:] == _UNNAMED:
        return outer
    return EqnContext(outer.name_stack + inner.name_stack, *inner[1:]) if outer.name_stack else inner


def without_names(outer: EqnContext) -> EqnContext:
    """The context without its names; `EMPTY` itself if nothing else is left."""
    if not outer.name_stack:
        return outer
    return EMPTY if outer[1:] == _UNNAMED else EqnContext((), *outer[1:])


def extended_name_stack(*names: str | Transform) -> entered:
    """Context manager: appends scopes and transformations to the name stack."""
    now = thread.context
    return entered(EqnContext((*now.name_stack, *names), *now[1:]))


def under(transform: Transform, function: Callable[..., Any], *args: Any) -> Any:
    """Calls `function` with a transformation appended to the name stack."""
    with extended_name_stack(transform):
        return function(*args)


def context_key(context: EqnContext) -> tuple | None:
    """A cache key for the compute type and the XLA metadata of a context; None if it has neither."""
    _, compute_type, metadata, *_ = context
    if compute_type is None and not metadata:
        return None
    return compute_type, cache.key(tuple(sorted((metadata or {}).items())))


# The context of recorded equations is part of the options' state, and thereby of every cache key.
_entered_contexts = config.UserContext(None)


class ContextChange(ContextDecorator):
    """Changes the compute type or the XLA metadata of the equations recorded within, in this thread."""

    def __init__(self, change: Callable[[EqnContext], EqnContext]):
        self._change = change
        self._entered: list[tuple[Any, Any]] = []

    def _recreate_cm(self) -> "ContextChange":
        return type(self)(self._change)

    def __enter__(self) -> None:
        context = self._change(thread.context)
        managers = _entered_contexts(context_key(context)), entered(context)
        self._entered.append(managers)
        for manager in managers:
            manager.__enter__()

    def __exit__(self, *exception: object) -> None:
        for manager in reversed(self._entered.pop()):
            manager.__exit__(*exception)
