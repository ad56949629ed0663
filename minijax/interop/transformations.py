"""Decorators that define transformations of wrapped functions, and caches by wrapped functions."""

import functools
from collections.abc import Callable
from typing import Any

from minijax.base import config
from minijax.base.cache import BoundedDict, weak_cache
from minijax.base.linear_util import Store, StoreException, WrappedFun
from minijax.base.util import curry


def _drive(gen: Callable, f: Callable, *args: Any, **kwargs: Any) -> Any:
    running = gen(*args, **kwargs)
    inner_args, inner_kwargs = next(running)
    result = running.send(f(*inner_args, **inner_kwargs))
    running.close()
    return result


def _drive_with_aux(gen: Callable, f: Callable, store: Store, *args: Any, **kwargs: Any) -> Any:
    result, aux = _drive(gen, f, *args, **kwargs)
    store.store(aux)
    return result


def _with_aux(
    fun: WrappedFun, gen: Callable, static_args: tuple, store: Store, drive: Callable | None = None
) -> tuple[WrappedFun, Callable[[], Any]]:
    return fun.wrap(gen, static_args, store, drive), lambda: store.val


@curry
def transformation(gen: Callable, fun: WrappedFun, *gen_static_args: Any) -> WrappedFun:
    """Decorates a generator that yields (args, kwargs), receives the result, and yields the new result."""
    return fun.wrap(gen, gen_static_args, None, _drive)


@curry
def transformation2(gen: Callable, fun: WrappedFun, *gen_static_args: Any) -> WrappedFun:
    """Decorates `gen(f, *static arguments, *args)`, which calls `f` itself."""
    return fun.wrap(gen, gen_static_args, None)


@curry
def transformation_with_aux(gen: Callable, fun: WrappedFun, *gen_static_args: Any) -> Any:
    """Like `transformation`, for generators that yield (result, aux): returns the function and a thunk for aux."""
    return _with_aux(fun, gen, gen_static_args, Store(), _drive_with_aux)


@curry
def transformation_with_aux2(
    gen: Callable, fun: WrappedFun, *gen_static_args: Any, use_eq_store: bool = False, unk_names: bool = False
) -> Any:
    """Like `transformation2`, for `gen(f, store, ...)`, which passes the auxiliary result to `store.store`."""
    return _with_aux(fun, gen, gen_static_args, Store(again=use_eq_store))


def merge_linear_aux(aux1: Callable, aux2: Callable) -> tuple[bool, Any]:
    """Returns (whether the first of two auxiliary results is stored, the stored one)."""
    results = []
    for is_first, aux in ((True, aux1), (False, aux2)):
        try:
            results.append((is_first, aux()))
        except StoreException:
            continue
    if len(results) != 1:
        raise StoreException(f"{len(results)} of two functions have an auxiliary result; one should")
    return results[0]


def cache(call: Callable, *, explain: Callable | None = None) -> Callable:
    """Caches `call(fun, *args)` by the function and transformations of `fun`, with its auxiliary results.

    Its `cache_clear()` clears it, its `evict_function(f)` removes the results of wrapped functions of `f`.
    """
    results_of = weak_cache(lambda f: BoundedDict(1024))

    @functools.wraps(call)
    def cached(fun: WrappedFun, *args: Any) -> Any:
        results = results_of(fun.f)
        key = fun.layers, fun.params, fun.in_type, args, config.state().traced
        hit = results.get(key)
        if hit is not None:
            result, stores = hit
            fun.populate_stores(stores)
            return result
        result = call(fun, *args)
        results[key] = result, fun.stores
        return result

    cached.cache_clear = results_of.cache_clear
    cached.evict_function = lambda f: results_of(f).clear()
    return cached
