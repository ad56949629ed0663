"""Python's recursion limit is raised for a while, as far as the C stack allows."""

import sys
import threading

import pytest

from minijax.base import stack


def test_the_limit_is_raised_and_restored():
    limit = sys.getrecursionlimit()
    with stack.room():
        raised = sys.getrecursionlimit()
        with stack.room():
            assert sys.getrecursionlimit() == raised
        assert sys.getrecursionlimit() == raised > limit
    assert sys.getrecursionlimit() == limit


def test_a_small_stack_holds_less(monkeypatch):
    monkeypatch.setattr(threading, "stack_size", lambda: 4 << 20)
    with stack.room():
        assert sys.getrecursionlimit() == (4 << 20) // 800
    monkeypatch.setattr(threading, "stack_size", lambda: 64 << 10)
    limit = sys.getrecursionlimit()
    with stack.room():
        assert sys.getrecursionlimit() == limit


def test_an_error_restores_the_limit():
    limit = sys.getrecursionlimit()
    with pytest.raises(ZeroDivisionError), stack.room():
        1 / 0  # noqa: B018
    assert sys.getrecursionlimit() == limit


def test_a_swallowed_recursion_error_comes_out_as_itself():
    with pytest.raises(RecursionError, match="too deep"), stack.room():
        raise SystemError("returned a result with an exception set") from RecursionError("too deep")
    with pytest.raises(SystemError), stack.room():
        raise SystemError("another")
