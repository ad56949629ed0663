"""Room for deep programs: Python's recursion limit, raised for a while as far as the C stack allows."""

import functools
import sys
import threading
import weakref
from collections.abc import Callable

try:
    import resource
except ImportError:  # not on Windows
    resource = None

_BYTES_PER_CALL = 800  # of C stack, for a Python function called from C, such as `__add__`
_DEFAULT_STACK = 8 << 20

_lock = threading.Lock()
_limits = {"before": 0, "raised": 0}


def _stack_size() -> int:
    """The smaller of the stacks of the main thread and of threads started now, in bytes."""
    limit = resource.getrlimit(resource.RLIMIT_STACK)[0] if resource is not None else -1
    return min(size for size in (limit, threading.stack_size(), _DEFAULT_STACK) if size > 0)


class _Room:
    """Lets Python recurse as deep as the stack holds; then RecursionError is raised as ever."""

    __slots__ = ("entry", "__weakref__")

    def __init__(self):
        with _lock:
            now = sys.getrecursionlimit()
            if not (_rooms and now == _limits["raised"]) and now < (limit := _stack_size() // _BYTES_PER_CALL):
                _limits.update(before=now, raised=limit)
                sys.setrecursionlimit(limit)
            self.entry = weakref.ref(self, _forget)
            _rooms[self.entry] = None


_rooms: dict["weakref.ref[_Room]", None] = {}  # weak, so that an interrupted one cannot stay


def _forget(entry: "weakref.ref[_Room]") -> None:
    _rooms.pop(entry, None)


def _leave() -> None:
    """Puts the limit back where nobody needs room any more."""
    with _lock:
        if not _rooms and sys.getrecursionlimit() == _limits["raised"]:
            sys.setrecursionlimit(_limits["before"])


def deep(function: Callable) -> Callable:
    """Decorator for what may recurse over nested programs: runs it with room."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        mine = _Room()
        try:
            return function(*args, **kwargs)
        except SystemError as error:  # jaxlib's trees return a result although Python has run out of frames
            if isinstance(error.__cause__, RecursionError):
                raise error.__cause__ from None
            raise
        finally:
            del _rooms[mine.entry]  # without a call, for which there may be no frame left
            if not _rooms:
                _leave()

    return call
