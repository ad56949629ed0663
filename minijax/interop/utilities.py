"""Utilities for sequences and caches that documents and libraries import from `jax._src.util`."""

import functools
import itertools
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from minijax.base import config
from minijax.base.cache import cache as bounded_cache, weak_cache
from minijax.numpy.vectorizing import check_core, checked_results, parse_signature

_T = TypeVar("_T")


def unzip3(xyzs: Iterable[tuple[Any, Any, Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]:
    """Returns the first, second and third elements of triples."""
    x, y, z = zip(*triples, strict=True) if (triples := list(xyzs)) else ((), (), ())
    return x, y, z


def concatenate(xs: Iterable[Sequence[_T]]) -> list[_T]:
    """Concatenates sequences into one list."""
    return [x for sequence in xs for x in sequence]


def unflatten(xs: Iterable[_T], ns: Sequence[int]) -> list[list[_T]]:
    """Splits into lists of these lengths. Raises AssertionError if elements are left."""
    left = iter(xs)
    parts = [list(itertools.islice(left, n)) for n in ns]
    assert next(left, left) is left, "unflatten: the lengths do not add up to that of the sequence"
    return parts


def split_list(args: Sequence[_T], ns: Sequence[int]) -> list[list[_T]]:
    """Splits into lists of these lengths, and one of the rest."""
    args, parts = list(args), []
    for n in ns:
        parts.append(args[:n])
        args = args[n:]
    return [*parts, args]


def split_list_checked(args: Sequence[_T], ns: Sequence[int]) -> list[list[_T]]:
    """Splits into lists of these lengths. Raises AssertionError if they do not add up to that of the sequence."""
    assert sum(ns) == len(args), f"split_list_checked: {list(ns)} do not add up to {len(args)}"
    return split_list(args, ns[:-1])


def partition_list(bs: Sequence[bool], l: Sequence[_T]) -> tuple[list[_T], list[_T]]:  # noqa: E741  # jax's name
    """Returns the elements whose flag is False, and those whose flag is True."""
    assert len(bs) == len(l), f"partition_list: {len(bs)} flags for {len(l)} elements"
    return [x for b, x in zip(bs, l, strict=True) if not b], [x for b, x in zip(bs, l, strict=True) if b]


def merge_lists(bs: Sequence[bool], l0: Sequence[Any], l1: Sequence[Any]) -> list[Any]:
    """Inverse of `partition_list`."""
    assert len(bs) == len(l0) + len(l1) and sum(bs) == len(l1), "merge_lists: the flags do not fit the lists"
    off, on = iter(l0), iter(l1)
    return [next(on if b else off) for b in bs]


def subs_list(subs: Sequence[int | None], src: Sequence[_T], base: Sequence[_T]) -> list[_T]:
    """Returns the elements of `src` at these positions; for None, the next element of `base`."""
    left = iter(base)
    merged = [next(left) if s is None else src[s] for s in subs]
    assert next(left, left) is left, "subs_list: elements are left"
    return merged


def subvals(lst: Sequence[_T], replace: Iterable[tuple[int, _T]]) -> tuple[_T, ...]:
    """Returns the elements, with those at some positions replaced."""
    elements = list(lst)
    for i, x in replace:
        elements[i] = x
    return tuple(elements)


def tuple_insert(t: tuple[_T, ...], idx: int, val: _T) -> tuple[_T, ...]:
    """Returns the tuple with an element inserted at that position."""
    assert 0 <= idx <= len(t), (idx, len(t))
    return (*t[:idx], val, *t[idx:])


def tuple_delete(t: tuple[_T, ...], idx: int) -> tuple[_T, ...]:
    """Returns the tuple without the element at that position."""
    assert 0 <= idx < len(t), (idx, len(t))
    return t[:idx] + t[idx + 1 :]


def tuple_update(t: tuple[_T, ...], idx: int, val: _T) -> tuple[_T, ...]:
    """Returns the tuple with the element at that position replaced."""
    assert 0 <= idx < len(t), (idx, len(t))
    return (*t[:idx], val, *t[idx + 1 :])


def stable_unique(it: Iterable[_T]) -> Iterable[_T]:
    """Yields each element once, at its first position."""
    return dict.fromkeys(it).keys()


def ceil_of_ratio(x: int, y: int) -> int:
    """Returns the quotient, rounded up."""
    return -(-x // y)


def wrap_name(transform_name: str, name: str) -> str:
    """Returns the name of a transformed function."""
    return f"{transform_name}({name})"


def fun_name(fun: Callable, default_name: str = "<unnamed function>") -> str:
    """Returns the name of a function, of the function inside a partial, or the default."""
    if (name := getattr(fun, "__name__", None)) is not None:
        return name
    return fun_name(fun.func, default_name) if isinstance(fun, functools.partial) else default_name


def wraps(wrapped: Callable, namestr: str | None = None, docstr: str | None = None, **kwargs: Any) -> Callable:
    """Decorator that gives a function the name, docstring and signature of another, formatted by these templates."""

    def decorate(fun: Callable) -> Callable:
        name, doc = fun_name(wrapped), getattr(wrapped, "__doc__", "") or ""
        functools.update_wrapper(fun, wrapped)
        fun.__name__ = name if namestr is None else namestr.format(fun=name)
        fun.__qualname__ = getattr(wrapped, "__qualname__", fun.__name__)
        fun.__doc__ = doc if docstr is None else docstr.format(fun=name, doc=doc, **kwargs)
        return fun

    return decorate


def cache(max_size: int = 4096, trace_context_in_key: bool | Callable = True) -> Callable[[Callable], Callable]:
    """Decorator that caches results by the arguments, and by the options that traces depend on."""

    def decorate(f):
        by_context = bounded_cache(lambda context, *args, **kwargs: f(*args, **kwargs), maxsize=max_size)

        @functools.wraps(f)
        def cached(*args: Any, **kwargs: Any) -> Any:
            return by_context(_context(trace_context_in_key), *args, **kwargs)

        cached.cache_clear = by_context.cache_clear
        return cached

    return decorate


def weakref_lru_cache(
    f: Callable | None = None, *, maxsize: int | None = 2048, trace_context_in_key: bool = True, explain: Any = None
) -> Callable:
    """Caches the results of a function as long as its first argument is alive."""
    if f is None:
        return lambda g: weakref_lru_cache(g, maxsize=maxsize, trace_context_in_key=trace_context_in_key)
    by_context = weak_cache(lambda first, context, *args, **kwargs: f(first, *args, **kwargs))

    @functools.wraps(f)
    def cached(first: Any, *args: Any, **kwargs: Any) -> Any:
        return by_context(first, _context(trace_context_in_key), *args, **kwargs)

    cached.cache_clear = by_context.cache_clear
    return cached


def _context(wanted: bool | Callable) -> Hashable:
    if callable(wanted):
        return wanted()
    return config.state().traced if wanted else None


class HashableFunction:
    """A function that equals another with the same code and values closed over."""

    def __init__(self, f: Callable, closure: Hashable):
        self.f, self.closure = f, closure

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.f(*args, **kwargs)

    def __eq__(self, other):
        return type(other) is HashableFunction and (self.f.__code__, self.closure) == (other.f.__code__, other.closure)

    def __hash__(self):
        return hash((self.f.__code__, self.closure))


class HashablePartial:
    """A function with fixed arguments that equals another with the same code and arguments."""

    def __init__(self, f: Callable, *args: Any, **kwargs: Any):
        self.f, self.args, self.kwargs = f, args, kwargs

    def _key(self) -> tuple:
        return self.f.__code__, self.args, tuple(sorted(self.kwargs.items()))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.f(*self.args, *args, **self.kwargs, **kwargs)

    def __eq__(self, other):
        return type(other) is HashablePartial and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())


Names = Sequence[tuple[str, ...]]


def signature_of(signature: str) -> tuple[Names, Names]:
    """Parses a gufunc signature into the core dimensions of each argument and each result.

    Raises ValueError if it is not one.
    """
    arguments, results = parse_signature(signature)
    return arguments, results


def sizes_of(args: Sequence[Any], core: Names, where: str = "") -> tuple[tuple[int, ...], dict[str, int]]:
    """Returns the broadcast shape of the other dimensions, and the sizes of the core dimensions.

    Raises ValueError if the shapes disagree or have too few dimensions, and TypeError for a wrong number of arguments.
    """
    if len(args) != len(core):
        raise TypeError(f"wrong number of positional arguments: expected {len(core)}, got {len(args)} {where}")
    sizes: dict[str, int] = {}
    shapes = []
    for arg, names in zip(args, core, strict=True):
        outer = arg.ndim - len(names)
        if outer < 0:
            raise ValueError(f"input with shape {arg.shape} does not have enough dimensions for {names} {where}")
        check_core(arg.shape[outer:], names, sizes, where)
        shapes.append(arg.shape[:outer])
    return np.broadcast_shapes(*shapes), sizes


def checked(func: Callable, sizes: dict[str, int], core: Names, where: str = "") -> Callable:
    """Returns the function with its results checked against the core dimensions and their sizes."""
    return checked_results(func, list(core), dict(sizes), where)


def without_excluded(
    func: Callable, excluded: Collection[int | str], args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[Callable, Sequence[Any], dict[str, Any]]:
    """Returns the function of the arguments that are not excluded, and these arguments."""
    if not excluded:
        return func, args, kwargs
    fixed = {i: x for i, x in enumerate(args) if i in excluded}
    named = {name: x for name, x in kwargs.items() if name in excluded}

    def rest(*others: Any, **options: Any) -> Any:
        left = iter(others)
        return func(*(fixed[i] if i in fixed else next(left) for i in range(len(args))), **options, **named)

    return (
        rest,
        [x for i, x in enumerate(args) if i not in fixed],
        {name: x for name, x in kwargs.items() if name not in named},
    )
