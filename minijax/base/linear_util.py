"""Functions with transformations around them, which may hand out a second result when they have run."""

import functools
from collections.abc import Callable, Iterable
from typing import Any

from minijax.base import config
from minijax.base.cache import BoundedDict, weak_cache
from minijax.base.util import curry


class StoreException(Exception):
    """Raised where an auxiliary result is read before it is there, or comes a second time."""


class Store:
    """Receives the auxiliary result of one run; an equal one may come `again`."""

    __slots__ = ("_result", "_again")

    def __init__(self, again: bool = False):
        self._result: list = []  # none or one
        self._again = again

    def store(self, val: Any) -> None:
        if self._result and not (self._again and self._result[0] == val):
            raise StoreException(f"there is an auxiliary result already, {self._result[0]!r}: now came {val!r}")
        self._result[:] = [val]

    @property
    def val(self) -> Any:
        if not self._result:
            raise StoreException("the function has not run, so it has no auxiliary result")
        return self._result[0]


class Layer:
    """A transformation, `gen(function, [store,] *static_args, *arguments)`; `drive` runs a generator."""

    __slots__ = ("gen", "static_args", "store", "drive")

    def __init__(self, gen: Callable, static_args: tuple, store: Store | None, drive: Callable | None):
        self.gen, self.static_args, self.store, self.drive = gen, static_args, store, drive

    def __eq__(self, other):
        return type(other) is Layer and (self.gen, self.static_args) == (other.gen, other.static_args)

    def __hash__(self):
        return hash((self.gen, self.static_args))

    def around(self, function: Callable) -> Callable:
        first = [function] if self.store is None else [function, self.store]
        return functools.partial(*filter(None, (self.drive, self.gen)), *first, *self.static_args)


class WrappedFun:
    """A function and the transformations around it, the outermost first."""

    __slots__ = ("f", "layers", "params", "in_type", "debug_info")

    def __init__(
        self,
        f: Callable,
        layers: tuple[Layer, ...] = (),
        params: tuple = (),
        in_type: Any = None,
        debug_info: Any = None,
    ):
        self.f, self.layers, self.params = f, layers, params
        self.in_type, self.debug_info = in_type, debug_info

    def _key(self) -> tuple:
        return self.f, self.layers, self.params, self.in_type

    def __eq__(self, other):
        return type(other) is WrappedFun and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    @property
    def __name__(self) -> str:
        return getattr(self.f, "__name__", "<unnamed wrapped function>")

    @property
    def transforms(self) -> tuple:
        return tuple((layer.gen, layer.static_args) for layer in self.layers)

    @property
    def stores(self) -> tuple:
        return tuple(layer.store for layer in self.layers)

    @property
    def f_transformed(self) -> Callable:
        function = functools.partial(self.f, **dict(self.params)) if self.params else self.f
        for layer in reversed(self.layers):
            function = layer.around(function)
        return function

    def wrap(
        self, gen: Callable, gen_static_args: tuple, out_store: Store | None, drive: Callable | None = None
    ) -> "WrappedFun":
        """With one more transformation, outside of the others."""
        layers = (Layer(gen, gen_static_args, out_store, drive), *self.layers)
        return WrappedFun(self.f, layers, self.params, None, self.debug_info)

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the transformed function."""
        return self.f_transformed(*args, **kwargs)

    def populate_stores(self, stores: Iterable[Store | None]) -> None:
        """Takes over the auxiliary results of another run."""
        for layer, other in zip(self.layers, stores, strict=True):
            if layer.store is not None and other is not None:
                layer.store.store(other.val)

    def replace_debug_info(self, debug_info: Any) -> "WrappedFun":
        return WrappedFun(*self._key(), debug_info)

    def __repr__(self):
        around = "".join(f"{layer.gen.__name__}{layer.static_args} of " for layer in self.layers)
        return f"<WrappedFun {around}{self.__name__}>"


def wrap_init(f: Callable, params: dict | None = None, *, debug_info: Any = None) -> WrappedFun:
    """A function without transformations; `params` are keyword arguments that it always gets."""
    return WrappedFun(f, params=tuple(sorted((params or {}).items())), debug_info=debug_info)


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
    """Decorates a generator that yields (args, kwargs), receives the result, and yields its own."""
    return fun.wrap(gen, gen_static_args, None, _drive)


@curry
def transformation2(gen: Callable, fun: WrappedFun, *gen_static_args: Any) -> WrappedFun:
    """Decorates `gen(f, *static arguments, *args)`, which calls `f` itself."""
    return fun.wrap(gen, gen_static_args, None)


@curry
def transformation_with_aux(gen: Callable, fun: WrappedFun, *gen_static_args: Any) -> Any:
    """As `transformation`, yielding (result, auxiliary); gives the function and a thunk of the latter."""
    return _with_aux(fun, gen, gen_static_args, Store(), _drive_with_aux)


@curry
def transformation_with_aux2(
    gen: Callable, fun: WrappedFun, *gen_static_args: Any, use_eq_store: bool = False, unk_names: bool = False
) -> Any:
    """As `transformation2`, for `gen(f, store, ...)`; `store.store` takes the auxiliary result."""
    return _with_aux(fun, gen, gen_static_args, Store(again=use_eq_store))


def merge_linear_aux(aux1: Callable, aux2: Callable) -> tuple[bool, Any]:
    """Whether the first of two auxiliary results is there, and the one that is."""
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

    Its `cache_clear()` forgets all, its `evict_function(f)` the results of functions around `f`.
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
