"""Source information of operations: the user's line, and the name stack."""

from typing import Any

from minijax.base import source
from minijax.ir import context
from minijax.ir.context import NameStack, SourceInfo


def current() -> SourceInfo:
    """Returns the current source position and name stack."""
    return SourceInfo(source.here(), current_name_stack())


def new_source_info() -> SourceInfo:
    """Returns an empty source information."""
    return SourceInfo(None, NameStack())


def current_name_stack() -> NameStack:
    """Returns the current name stack."""
    return NameStack(context.current_context().name_stack)


def new_name_stack(name: str = "") -> NameStack:
    """Returns a name stack of one name, or an empty one."""
    return NameStack((name,) if name else ())


def summarize(source_info: SourceInfo, num_frames: int = 1) -> str:
    """Returns the user's innermost lines as `file:line (function)`."""
    return source.summary(source_info, num_frames) if source_info.traceback is not None else ""


class set_name_stack(context.entered):
    """Context manager: replaces the name stack."""

    __slots__ = ()

    def __init__(self, name_stack: NameStack):
        super().__init__(context.current_context()._replace(name_stack=tuple(name_stack)))


class reset_name_stack(set_name_stack):
    """Context manager: empties the name stack."""

    __slots__ = ()

    def __init__(self):
        super().__init__(NameStack())


class extend_name_stack(set_name_stack):
    """Context manager: extends the name stack by a name, and returns it."""

    __slots__ = ()

    def __init__(self, name: str):
        super().__init__(current_name_stack().extend(name))

    def __enter__(self) -> NameStack:
        super().__enter__()
        return current_name_stack()


class user_context(set_name_stack):
    """Context manager: sets the name stack of an equation's `source_info`."""

    __slots__ = ()

    def __init__(self, traceback: Any, *, name_stack: NameStack | None = None):
        super().__init__(current_name_stack() if name_stack is None else name_stack)
