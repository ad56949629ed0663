"""Source locations in the user's program, resolved only when shown."""

import functools
import itertools
import os
import re
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

from minijax.base import config
from minijax.base.native import Traceback

_LIBRARY = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
excluded_paths: list[str] = [_LIBRARY]

_STANDARD = os.path.dirname(os.__file__) + os.sep

here = Traceback.get_traceback


def register_exclusion(path: str) -> None:
    """Treats the frames of files under `path` as library frames."""
    excluded_paths.append(path)


def is_user_file(name: str) -> bool:
    return not name.startswith(tuple(excluded_paths)) and not name.startswith("<frozen")


def _is_of_program(name: str) -> bool:
    """As `is_user_file`, without Python's standard library: `contextlib`, `functools`, ... call what others wrote."""
    return is_user_file(name) and (not name.startswith(_STANDARD) or "-packages" in name)


def include_frame(frame: types.FrameType) -> bool:
    """Returns whether a frame belongs to the user's program."""
    return is_user_file(frame.f_code.co_filename)


def user_frames(traceback: Any) -> list:
    """The frames of a traceback that belong to the user's program, innermost first."""
    traceback = getattr(traceback, "traceback", traceback)
    if traceback is None:
        return []
    return [f for f in traceback.frames if _is_of_program(f.file_name)]


def summary(traceback: Any, num_frames: int | None = 1, columns: bool = False) -> str:
    """The innermost user lines as `file:line (function)`, or one as `file:line:column (function)`."""
    frames = user_frames(traceback)[:num_frames]
    column = f":{_column(traceback)}" if columns else ""
    lines = [f"{f.file_name}:{f.line_num}{column} ({f.function_name})" for f in frames]
    return "\n".join(lines) or "unknown"


def _column(traceback: Any) -> int:
    """The column at which the innermost user expression starts."""
    return next((p.column for p in Positions()(traceback)), 0)


class Position(NamedTuple):
    """The position of an expression in a file, and the function that contains it."""

    function: str
    file: str
    line: int
    column: int
    end_line: int
    end_column: int


_TRACER, _TRACING = f"{_LIBRARY}ir{os.sep}trace.py", "_traced"


class Positions:
    """The positions of the user's expressions in tracebacks, innermost first; options limit their number.

    Lookups are cached, since the tracebacks of one program have most of their frames in common.
    """

    def __init__(self):
        full = config.include_full_tracebacks_in_locations.value
        limit = config.traceback_in_locations_limit.value if full else 1
        self._limit = None if limit < 0 else limit
        self._of_user = _UserFiles()
        # Keyed by id, since comparing code objects is slow. The values hold the objects, which keeps their ids unique.
        self._known: dict[Any, tuple[Any, Any]] = {}

    def __call__(self, *tracebacks: Any) -> tuple[Position, ...]:
        positions = itertools.chain.from_iterable(map(self._all, tracebacks))
        return tuple(itertools.islice(positions, self._limit))

    def _all(self, traceback):
        known = self._known.get(id(traceback))
        if known is None:
            known = self._known[id(traceback)] = traceback, list(self._positions(traceback))
        return known[1]

    def _positions(self, traceback):
        of_user, traceback = self._of_user, getattr(traceback, "traceback", traceback)
        for code, lasti in () if traceback is None else zip(*traceback.raw_frames(), strict=True):
            if of_user[code.co_filename]:
                yield self._at(code, lasti)
            elif code.co_name == _TRACING and code.co_filename == _TRACER:
                return  # the frames that called for the trace are not those that run the jaxpr

    def _at(self, code, lasti):
        known = self._known.get((id(code), lasti))
        if known is None:
            known = self._known[id(code), lasti] = code, _position(code, lasti)
        return known[1]


class _UserFiles(dict):
    """Maps file names to whether they belong to the user's program."""

    def __missing__(self, file: str) -> bool:
        self[file] = answer = _is_of_program(file)
        return answer


def _position(code: types.CodeType, lasti: int) -> Position:
    hidden = config.hlo_source_file_canonicalization_regex.value
    # Lines and columns are None if Python was started with positions disabled (-X no_debug_ranges).
    lines = next(itertools.islice(code.co_positions(), lasti // 2, None))
    line, end_line, column, end_column = [n or 0 for n in lines]
    file = re.sub(hidden, "", code.co_filename) if hidden else code.co_filename
    return Position(code.co_qualname, file, line or code.co_firstlineno, column, end_line, end_column)


NOTE = (
    "--------------------\nFor simplicity, JAX has removed its internal frames from the traceback of the "
    "following exception. Set JAX_TRACEBACK_FILTERING=off to include these."
)
_BELOW = (
    "The stack trace below excludes JAX-internal frames.\n"
    "The preceding is the original exception that occurred, unmodified."
)
_filtering = config.option("traceback_filtering")


def filtered(traceback: types.TracebackType | None) -> types.TracebackType | None:
    """A traceback without the library's frames; None if no frames remain."""
    result = None
    for entry in reversed(list(_entries(traceback, of_user=True))):
        result = _on_top(entry, result)
    return result


def _entries(traceback: types.TracebackType | None, of_user: bool) -> Iterator[types.TracebackType]:
    """Yields the entries of a traceback whose frames belong to the user's program, or those whose frames do not."""
    while traceback is not None:
        if is_user_file(traceback.tb_frame.f_code.co_filename) is of_user:
            yield traceback
        traceback = traceback.tb_next


class UnfilteredStackTrace(Exception):
    """The cause of an exception from whose traceback the library's frames were removed; its own traceback has them."""

    shown: types.TracebackType | None = None  # the shortened traceback


def hide_frames(error: BaseException) -> None:
    """Removes the library's frames from an exception that is about to reach the user, as configured.

    Also removes the context exceptions that the library had caught when it raised this one. Nested functions may each
    do this. Functions on hot paths use a `try` statement, which costs nothing, rather than the decorator.
    """
    mode = _mode()
    if mode == "off":
        return
    _drop_inner_context(error)
    if mode == "tracebackhide":
        _mark_frames(error)
        return
    short = filtered(error.__traceback__)
    if mode == "remove_frames":
        _keep_all_frames(error, short)
    elif NOTE not in getattr(error, "__notes__", ()):
        error.add_note(NOTE)
    error.__traceback__ = short


def hides_frames() -> bool:
    """True if the configuration hides the library's frames."""
    return _mode() != "off"


def has_passed(error: BaseException, function: Callable) -> bool:
    """Returns whether an exception was raised within a call of `function`; its frames must not be hidden yet."""
    trace, code = error.__traceback__, function.__code__
    while trace is not None and trace.tb_frame.f_code is not code:
        trace = trace.tb_next
    return trace is not None


def _drop_inner_context(error: BaseException) -> None:
    """Drops the context exceptions that were raised and caught inside the library."""
    context = error.__context__
    while context is not None and next(_entries(context.__traceback__, of_user=True), None) is None:
        context = context.__context__
    error.__context__ = context


def _mark_frames(error: BaseException) -> None:
    """Marks the library's frames with `__tracebackhide__`: those unwound already and those above them on the stack."""
    frames = [entry.tb_frame for entry in _entries(error.__traceback__, of_user=False)]
    frame = sys._getframe(2)
    while frame is not None and not include_frame(frame):
        frames.append(frame)
        frame = frame.f_back
    for frame in frames:
        frame.f_locals["__tracebackhide__"] = True


def _keep_all_frames(error: BaseException, short: types.TracebackType | None) -> None:
    """Sets, or extends, the cause of an exception that has all frames."""
    cause, entries = error.__cause__, [error.__traceback__]
    if type(cause) is not UnfilteredStackTrace:
        cause = UnfilteredStackTrace(f"{type(error).__name__}: {error}\n\n{_BELOW}")
        cause.__cause__, cause.__context__ = error.__cause__, error.__context__
        cause.__suppress_context__ = error.__suppress_context__
        error.__cause__, error.__context__ = cause.with_traceback(error.__traceback__), None
    else:
        # The entries down to `cause.shown` are new; those below it were kept when it was shortened before.
        while entries[-1] is not cause.shown and entries[-1] is not None:
            entries.append(entries[-1].tb_next)
        for entry in reversed(entries[:-1]):
            cause.__traceback__ = _on_top(entry, cause.__traceback__)
    cause.shown = short


def _on_top(entry: types.TracebackType, below: types.TracebackType | None) -> types.TracebackType:
    return types.TracebackType(below, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)


def _mode() -> str:
    chosen = _filtering.value
    if chosen != "auto":
        return chosen
    shell = sys.modules.get("IPython")
    version = getattr(shell, "version_info", (0,))
    is_hiding = tuple(version[:2]) > (7, 16) and shell.get_ipython() is not None
    return "tracebackhide" if is_hiding else "quiet_remove_frames"


F = TypeVar("F", bound=Callable)


def boundary(function: F) -> F:
    """Decorator for public functions: removes the library's frames from exceptions that leave it."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except Exception as error:
            hide_frames(error)
            raise

    return call  # pyright: ignore[reportReturnType]


# Other libraries recognise transformed functions by this name among a function's globals.
api_boundary = boundary
