"""The tokens of running programs: they order effects across programs, or are waited for at a barrier."""

import atexit
import collections
import contextlib
import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from jaxlib import _jax

from minijax.run.programs.host_calls import raise_host_error

JaxRuntimeError = _jax.JaxRuntimeError

_MOST_WAITING = 64
_calling: collections.deque[Any] = collections.deque(maxlen=_MOST_WAITING)  # the latest programs with host callbacks


class _Tokens:
    def __init__(self):
        self.current: dict[Hashable, tuple[Any, Any]] = {}  # ordered effect -> its latest token and the devices
        self.waiting: list[Any] = []  # the tokens of programs with other effects


# Keyed by thread but not thread-local: see `bindings.parsed`.
_by_thread: dict[int, _Tokens] = {}


def _mine() -> _Tokens:
    me = threading.get_ident()
    return _by_thread.get(me) or _by_thread.setdefault(me, _Tokens())


def take(effects: Sequence[Hashable], devices: Any, fresh: Callable[[], Any]) -> list:
    """The input tokens, as raw arrays, of a program on these devices; `fresh()` makes one that is ready."""
    current, raws = _mine().current, []
    for effect in effects:
        raw, there = current.get(effect, (None, None))
        if raw is not None and there != devices:
            raw.block_until_ready()
            raw = None
        raws.append(fresh() if raw is None else raw)
    return raws


def wait_for(effect: Hashable) -> None:
    """Waits until an ordered effect of all earlier programs has taken place."""
    raw, _ = _mine().current.pop(effect, (None, None))
    if raw is not None:
        raw.block_until_ready()


def put(effects: Sequence[Hashable], devices: Any, raws: Sequence) -> None:
    """Stores a program's output tokens for the next program with these effects."""
    _mine().current.update((effect, (raw, devices)) for effect, raw in zip(effects, raws, strict=True))


def forget(effects: Sequence[Hashable]) -> None:
    """Drops the tokens of these effects, so that later programs do not depend on a program that failed."""
    for effect in effects:
        _mine().current.pop(effect, None)


def note(token: Any) -> None:
    """Makes the next barrier wait for a program."""
    waiting = _mine().waiting
    if len(waiting) >= _MOST_WAITING:
        # Programs end in about the order in which they start, hence the older half has mostly ended.
        older, waiting[:] = waiting[: _MOST_WAITING // 2], waiting[_MOST_WAITING // 2 :]
        waiting[:0] = list(filter(_has_failed, older))[:1]
    waiting.append(token)


def _has_failed(token: Any) -> bool:
    try:
        token.block_until_ready()
    except JaxRuntimeError:
        return True
    return False


def effects_barrier() -> None:
    """Waits until the effects of all programs that this thread has started have taken place.

    Raises the error of a host callback, if one has failed.

    Example:
        >>> jax.jit(lambda x: jax.debug.print("x = {}", x))(1.0)
        x = 1.0
        >>> jax.effects_barrier()
    """
    mine = _by_thread.pop(threading.get_ident(), None) or _Tokens()
    failure = None
    for token in [*(raw for raw, _ in mine.current.values()), *mine.waiting]:
        try:
            token.block_until_ready()
        except JaxRuntimeError as error:
            failure = failure or error
    if failure is not None:
        raise_host_error(failure)
        raise failure


def note_program_with_callbacks(token: Any) -> None:
    """Makes the exit of the process wait for a program with host callbacks."""
    _calling.append(token)


def _wait_for_calls() -> None:
    """Waits for programs with host callbacks: the process would abort if the interpreter ended before them."""
    for token in _calling:
        with contextlib.suppress(JaxRuntimeError):
            token.block_until_ready()


atexit.register(_wait_for_calls)
atexit.register(effects_barrier)
