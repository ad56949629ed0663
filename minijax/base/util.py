"""Small helpers for sequences and functions."""

import functools
from collections.abc import Callable, Iterable
from typing import Any


def unzip2(pairs: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The firsts and the seconds of pairs, also when there are none."""
    firsts, seconds = zip(*pairs, strict=True) if (pairs := list(pairs)) else ((), ())
    return firsts, seconds


def named(function: Callable, name: str, doc: str) -> Callable:
    """The function, which from now on has this name and docstring."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def curry(function: Callable) -> Callable:
    """A function that, given the first arguments, waits for the others."""
    return functools.wraps(function)(functools.partial(functools.partial, function))
