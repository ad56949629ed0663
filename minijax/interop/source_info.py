"""Where operations come from: the user's line, and the names of the scopes around it."""

from typing import Any

from minijax.base import source
from minijax.ir import context
from minijax.ir.context import NameStack, SourceInfo


def current() -> SourceInfo:
    """Where the program is now."""
    return SourceInfo(source.here(), current_name_stack())


def new_source_info() -> SourceInfo:
    """Nowhere."""
    return SourceInfo(None, NameStack())


def current_name_stack() -> NameStack:
    """The names of the scopes around the program now."""
    return NameStack(context.current_context().name_stack)


def new_name_stack(name: str = "") -> NameStack:
    """A stack of one name, or none."""
    return NameStack((name,) if name else ())


def summarize(source_info: SourceInfo, num_frames: int = 1) -> str:
    """The user's innermost lines as `file:line (function)`."""
    return source.summary(source_info, num_frames) if source_info.traceback is not None else ""


class set_name_stack(context.entered):
    """Replaces the names of the scopes for a while."""

    __slots__ = ()

    def __init__(self, name_stack: NameStack):
        super().__init__(context.current_context()._replace(name_stack=tuple(name_stack)))


class reset_name_stack(set_name_stack):
    """Drops the names of the scopes for a while."""

    __slots__ = ()

    def __init__(self):
        super().__init__(NameStack())


class extend_name_stack(set_name_stack):
    """Puts what follows under one more name, and gives the names."""

    __slots__ = ()

    def __init__(self, name: str):
        super().__init__(current_name_stack().extend(name))

    def __enter__(self) -> NameStack:
        super().__enter__()
        return current_name_stack()


class user_context(set_name_stack):
    """Puts what follows under the names of an equation's `source_info`."""

    __slots__ = ()

    def __init__(self, traceback: Any, *, name_stack: NameStack | None = None):
        super().__init__(current_name_stack() if name_stack is None else name_stack)
