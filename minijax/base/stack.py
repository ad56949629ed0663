"""Raises Python's recursion limit temporarily, as far as the C stack allows, for deeply nested programs."""

import functools
import sys
import threading
import weakref
from collections.abc import Callable

try:
    import resource
except ImportError:  # not on Windows
    resource = None

_BYTES_PER_CALL = 800  # C stack used by a Python function called from C, such as `__add__`
_DEFAULT_STACK = 8 << 20

_lock = threading.Lock()
_limits = {"before": 0, "raised": 0}


@functools.cache
def _main_stack() -> int:
    limit = resource.getrlimit(resource.RLIMIT_STACK)[0] if resource is not None else -1
    return min(limit, _DEFAULT_STACK) if limit > 0 else _DEFAULT_STACK


def _stack_size() -> int:
    """The smaller of the stack sizes of the main thread and of newly started threads, in bytes."""
    return min(_main_stack(), threading.stack_size() or _DEFAULT_STACK)


class _DeepCall:
    """Lets Python recurse as deep as the stack allows; beyond that, RecursionError is raised as usual."""

    __slots__ = ("entry", "__weakref__")

    def __init__(self):
        with _lock:
            now = sys.getrecursionlimit()
            if not (_deep_calls and now == _limits["raised"]) and now < (limit := _stack_size() // _BYTES_PER_CALL):
                _limits.update(before=now, raised=limit)
                sys.setrecursionlimit(limit)
            self.entry = weakref.ref(self, _forget)
            _deep_calls[self.entry] = None


_deep_calls: dict["weakref.ref[_DeepCall]", None] = {}  # weak, so that an interrupted call leaves no entry


def _forget(entry: "weakref.ref[_DeepCall]") -> None:
    _deep_calls.pop(entry, None)


def _leave() -> None:
    """Restores the limit if no call needs the raised one any more."""
    with _lock:
        if not _deep_calls and sys.getrecursionlimit() == _limits["raised"]:
            sys.setrecursionlimit(_limits["before"])


def deep(function: Callable) -> Callable:
    """Decorator for functions that may recurse over nested programs: runs them with a raised recursion limit."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        mine = _DeepCall()
        try:
            return function(*args, **kwargs)
        except SystemError as error:  # jaxlib's tree functions return a result despite a RecursionError
            if isinstance(error.__cause__, RecursionError):
                raise error.__cause__ from None
            raise
        finally:
            del _deep_calls[mine.entry]  # not a function call, which might exceed the limit
            if not _deep_calls:
                _leave()

    return call
