"""Functions wrapped in transformations, which may return an auxiliary result after they have run."""

import functools
from collections.abc import Callable, Iterable
from typing import Any


class StoreException(Exception):
    """Raised if an auxiliary result is read before it is stored, or is stored twice."""


class Store:
    """Holds the auxiliary result of one run; with `again`, an equal result may be stored again."""

    __slots__ = ("_result", "_again")

    def __init__(self, again: bool = False):
        self._result: list = []  # at most one item
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
        """Returns the function with one more transformation around the others."""
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
    """Wraps a function without transformations; `params` are keyword arguments that are always passed to it."""
    return WrappedFun(f, params=tuple(sorted((params or {}).items())), debug_info=debug_info)
