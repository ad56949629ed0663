"""Functions with transformations around them, which may hand out a second result when they have run."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from minijax.base import config
from minijax.base.cache import BoundedDict, weak_cache
from minijax.base.util import curry


class StoreException(Exception):
    """Raised where an auxiliary result is read before it is there, or written twice."""


_EMPTY = object()


class Store:
    """Receives an auxiliary result when the function runs."""

    __slots__ = ("_val",)

    def __init__(self):
        self._val = _EMPTY

    def store(self, val: Any) -> None:
        if self:
            raise StoreException("Store occupied")
        self._val = val

    def reset(self) -> None:
        self._val = _EMPTY

    @property
    def val(self) -> Any:
        if not self:
            raise StoreException("Store empty")
        return self._val

    def __bool__(self):
        return self._val is not _EMPTY


class WrappedFun:
    """A function and the transformations around it, the outermost first."""

    __slots__ = ("f", "f_transformed", "transforms", "stores", "params", "in_type", "debug_info")

    def __init__(self, f: Callable, f_transformed: Callable, transforms: tuple, stores: tuple, params: tuple,
                 in_type: Any = None, debug_info: Any = None):  # fmt: skip
        self.f = f
        self.f_transformed = f_transformed
        self.transforms = transforms
        self.stores = stores
        self.params = params
        self.in_type = in_type
        self.debug_info = debug_info

    @property
    def __name__(self) -> str:
        return getattr(self.f, "__name__", "<unnamed wrapped function>")

    def wrap(self, gen: Callable, gen_static_args: tuple, out_store: Store | None,
             run: Callable | None = None) -> "WrappedFun":  # fmt: skip
        """With one more transformation: `gen(function, [store,] *static arguments, *arguments)`.

        `run(gen, ...)` drives a `gen` that is a generator.
        """
        stored = () if out_store is None else (out_store,)
        driven = gen if run is None else functools.partial(run, gen)
        outer = functools.partial(driven, self.f_transformed, *stored, *gen_static_args)
        return WrappedFun(self.f, outer, ((gen, gen_static_args), *self.transforms),
                          (out_store, *self.stores), self.params, None, self.debug_info)  # fmt: skip

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the transformed function."""
        return self.f_transformed(*args, **kwargs)

    def populate_stores(self, stores: Sequence) -> None:
        """Takes over the auxiliary results of another run."""
        for mine, other in zip(self.stores, stores, strict=True):
            if mine is not None:
                mine.store(other.val)

    def replace_debug_info(self, debug_info: Any) -> "WrappedFun":
        return WrappedFun(self.f, self.f_transformed, self.transforms, self.stores, self.params, self.in_type,
                          debug_info)  # fmt: skip

    def _key(self) -> tuple:
        return self.f, self.transforms, self.params, self.in_type

    def __eq__(self, other):
        return type(other) is WrappedFun and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __repr__(self):
        lines = [f"{i} : {gen} {args}" for i, (gen, args) in enumerate(self.transforms)]
        return "\n".join(["Wrapped function:", *lines, f"\nCore: {self.__name__}\n"])


def wrap_init(f: Callable, params: dict | None = None, *, debug_info: Any = None) -> WrappedFun:
    """A function without transformations; `params` are keyword arguments that it is always given."""
    items = () if params is None else tuple(sorted(params.items()))
    return WrappedFun(f, functools.partial(f, **params) if params else f, (), (), items, None, debug_info)


@curry
def transformation(gen: Callable, fun: WrappedFun, *gen_static_args: Any) -> WrappedFun:
    """Decorates a generator that yields (args, kwargs), receives the result, and yields its own."""
    return fun.wrap(gen, gen_static_args, None, _drive)


@curry
def transformation_with_aux(gen: Callable, fun: WrappedFun, *gen_static_args: Any) -> WrappedFun:
    """As `transformation`, yielding (result, auxiliary); gives the function and a thunk of the latter."""
    store = Store()
    return fun.wrap(gen, gen_static_args, store, _drive_with_aux), lambda: store.val


def _drive(gen, f, *args, **kwargs):
    running = gen(*args, **kwargs)
    inner_args, inner_kwargs = next(running)
    result = running.send(f(*inner_args, **inner_kwargs))
    running.close()
    return result


def _drive_with_aux(gen, f, store, *args, **kwargs):
    result, aux = _drive(gen, f, *args, **kwargs)
    store.store(aux)
    return result


@curry
def transformation2(gen: Callable, fun: WrappedFun, *gen_static_args: Any) -> WrappedFun:
    """Decorates `gen(f, *static arguments, *args)`, which calls `f` itself."""
    return fun.wrap(gen, gen_static_args, None)


@curry
def transformation_with_aux2(gen: Callable, fun: WrappedFun, *gen_static_args: Any,
                             use_eq_store: bool = False,
                             unk_names: bool = False) -> tuple[WrappedFun, Callable[[], Any]]:  # fmt: skip
    """As `transformation2`, for `gen(f, store, ...)`; `store.store` takes the auxiliary result."""
    store = _EqualStore() if use_eq_store else Store()
    return fun.wrap(gen, gen_static_args, store), lambda: store.val


class _EqualStore(Store):
    """May be written again with the same value."""

    __slots__ = ()

    def store(self, val: Any) -> None:
        if self and self._val != val:
            raise StoreException(f"Store occupied with not-equal value: {val} vs {self._val}")
        self._val = val


def merge_linear_aux(aux1: Callable, aux2: Callable) -> tuple[bool, Any]:
    """Whether the first of two auxiliary results is there, and the one that is."""
    found = []
    for is_first, aux in ((True, aux1), (False, aux2)):
        try:
            found.append((is_first, aux()))
        except StoreException:
            continue
    if len(found) != 1:
        raise StoreException("neither store occupied" if not found else "both stores occupied")
    return found[0]


def cache(call: Callable, *, explain: Callable | None = None) -> Callable:
    """Remembers `call(fun, *args)` by what `fun` wraps; auxiliary results are handed out again."""
    results_of = weak_cache(lambda f: BoundedDict(1024))

    @functools.wraps(call)
    def cached(fun: WrappedFun, *args: Any) -> Any:
        found = results_of(fun.f)
        key = fun.transforms, fun.params, fun.in_type, args, config.state().traced
        hit = found.get(key)
        if hit is not None:
            result, stores = hit
            fun.populate_stores(stores)
            return result
        result = call(fun, *args)
        found[key] = result, fun.stores
        return result

    return cached
