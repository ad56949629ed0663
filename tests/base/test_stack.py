"""Python's recursion limit is raised for a while, as far as the C stack allows."""

import sys
import threading

import pytest

from minijax.base import stack


@stack.deep
def limit_within() -> int:
    return sys.getrecursionlimit()


def test_the_limit_is_raised_and_restored():
    limit = sys.getrecursionlimit()

    @stack.deep
    def outer():
        raised = sys.getrecursionlimit()
        assert limit_within() == raised
        return sys.getrecursionlimit() == raised > limit

    assert outer()
    assert sys.getrecursionlimit() == limit


def test_a_small_stack_holds_less(monkeypatch):
    monkeypatch.setattr(threading, "stack_size", lambda: 4 << 20)
    assert limit_within() == (4 << 20) // 800
    monkeypatch.setattr(threading, "stack_size", lambda: 64 << 10)
    assert limit_within() == sys.getrecursionlimit()


def test_an_error_restores_the_limit():
    limit = sys.getrecursionlimit()
    with pytest.raises(ZeroDivisionError):
        stack.deep(lambda: 1 / 0)()
    assert sys.getrecursionlimit() == limit


def test_a_swallowed_recursion_error_comes_out_as_itself():
    @stack.deep
    def swallowed(cause):
        raise SystemError("returned a result with an exception set") from cause

    with pytest.raises(RecursionError, match="too deep"):
        swallowed(RecursionError("too deep"))
    with pytest.raises(SystemError):
        swallowed(None)
