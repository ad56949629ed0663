"""Small helpers for sequences and functions."""

import copy
import functools
import types
from collections.abc import Callable, Iterable
from typing import Any


def unzip2(pairs: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The firsts and the seconds of pairs, also when there are none."""
    firsts, seconds = zip(*pairs, strict=True) if (pairs := list(pairs)) else ((), ())
    return firsts, seconds


class ByKey:
    """Values that are equal if their types and keys are; the constructor sets the key, by `identify`.

    Those that can be pickled say how they are made again: a hash is good in one process only.
    """

    __slots__ = ("_key", "_hash")

    def identify(self, *key: Any) -> None:
        self._key, self._hash = key, hash(key)

    def __eq__(self, other):
        if type(other) is not type(self):
            return NotImplemented
        return self is other or (self._hash == other._hash and self._key == other._key)

    def __hash__(self):
        return self._hash


class Immutable:
    """Values that are their own copies."""

    __slots__ = ()

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


def named(function: Callable, name: str, doc: str) -> Callable:
    """The function, which from now on has this name and docstring."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def curry(function: Callable) -> Callable:
    """A function that, given the first arguments, waits for the others."""
    return functools.wraps(function)(functools.partial(functools.partial, function))


def alias(function: Callable, name: str, module: str, of: str) -> Callable:
    """The function under another name, in another module: an object of its own that runs the same code."""
    if isinstance(function, types.FunctionType):
        f = function
        twin = types.FunctionType(f.__code__, f.__globals__, name, f.__defaults__, f.__closure__)
        twin.__kwdefaults__ = f.__kwdefaults__
        functools.update_wrapper(twin, f)
    else:
        twin = copy.copy(function)
    twin.__module__ = module
    return named(twin, name, f"Alias of :func:`{of}`.")
