"""Small helpers for sequences and functions."""

import copy
import functools
import types
from collections.abc import Callable, Iterable
from typing import Any, TypeVar


def unzip2(pairs: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The first and the second items of pairs; two empty tuples for no pairs."""
    firsts, seconds = zip(*pairs, strict=True) if (pairs := list(pairs)) else ((), ())
    return firsts, seconds


_set = object.__setattr__


def put(value: Any, **attributes: Any) -> None:
    """Sets attributes of a value whose class refuses that."""
    for name in attributes:
        _set(value, name, attributes[name])


class ByKey:
    """Values that are equal if their types and keys are equal; the constructor sets the key by `identify`.

    Subclasses that can be pickled define how they are constructed again: a hash is valid in one process only.
    """

    __slots__ = ("_key", "_hash")

    def identify(self, *key: Any) -> None:
        _set(self, "_key", key)
        _set(self, "_hash", hash(key))

    def __eq__(self, other):
        if type(other) is not type(self):
            return NotImplemented
        return self is other or (self._hash == other._hash and self._key == other._key)

    def __hash__(self):
        return self._hash


class Immutable:
    """A base class of values that cannot be changed, hence need not be copied: constructors use `put`."""

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: cannot delete {name!r}")

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


def dir_without(names: str) -> Any:
    """A `__dir__` that leaves out attributes that jax's objects do not have: completion then shows jax's names."""
    hidden = frozenset(names.split())
    return lambda self: [name for name in object.__dir__(self) if name not in hidden]


def named(function: Any, name: str, doc: str | None) -> Any:
    """Sets the name and docstring of a function, and returns it."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def curry(function: Callable) -> Callable:
    """A function that takes the first arguments and returns a function of the remaining ones."""
    return functools.wraps(function)(functools.partial(functools.partial, function))


F = TypeVar("F", bound=Callable)


def alias(function: F, name: str, module: str, of: str | None = None) -> F:
    """A copy of a function that has another name and module and runs the same code.

    Its docstring says that it is an alias of the function with the path `of`, or is that of the function.
    """
    twin: Any
    if isinstance(function, types.FunctionType):
        f = function
        twin = types.FunctionType(f.__code__, f.__globals__, name, f.__defaults__, f.__closure__)
        twin.__kwdefaults__ = f.__kwdefaults__
        functools.update_wrapper(twin, f)
    else:
        twin = copy.copy(function)
    twin.__module__ = module
    return named(twin, name, f"Alias of :func:`{of}`." if of else function.__doc__)
