"""The thread state that equations carry: the name stack and what surrounds an operation."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple


class EqnContext(NamedTuple):
    """Thread state that an equation was recorded under and is replayed under."""

    name_stack: tuple[str, ...] = ()
    compute_type: str | None = None
    xla_metadata: Any = None
    cur_abstract_mesh: Any = None


EMPTY = EqnContext()


class _Local(threading.local):
    eqn_context = EMPTY


_local = _Local()


def current_context() -> EqnContext:
    """The context that an equation recorded now gets."""
    return _local.eqn_context


class entered:  # noqa: N801
    """Context manager: makes `context` the thread's for a while."""

    __slots__ = ("_context", "_saved")

    def __init__(self, context: EqnContext):
        self._context = context

    def __enter__(self):
        self._saved = _local.eqn_context
        _local.eqn_context = self._context

    def __exit__(self, *exception):
        _local.eqn_context = self._saved


@contextmanager
def extended_name_stack(*names: str) -> Iterator[None]:
    """Appends scopes to the name stack for a while."""
    saved = _local.eqn_context
    _local.eqn_context = saved._replace(name_stack=(*saved.name_stack, *names))
    try:
        yield
    finally:
        _local.eqn_context = saved
