"""jax.experimental.colocated_python.obj: objects colocated with devices."""

from collections.abc import Callable
from typing import Any

from minijax.base.faces import listing
from minijax.experimental.colocated_python.func import make_callable

__all__, __dir__ = listing(__name__, "wrap_class")


def wrap_class(cls: type, cls_sourceinfo: str | None) -> type:
    """A class of proxies with the methods of `cls`; the first method call creates the object of `cls`."""
    names = [name for name in dir(cls) if not name.startswith("__") and callable(getattr(cls, name))]

    def make(self: Any, *args: Any, **kwargs: Any) -> None:
        made: list = []

        def bound(name: str) -> Callable[..., Any]:
            def method(*xs: Any, **named: Any) -> Any:
                if not made:
                    made.append(cls(*args, **kwargs))
                return getattr(made[0], name)(*xs, **named)

            method.__name__, method.__doc__ = name, getattr(cls, name).__doc__
            return make_callable(method, cls_sourceinfo, None)

        for name in names:
            setattr(self, name, bound(name))

    return type(cls.__name__, (), {"__init__": make, "__doc__": cls.__doc__, "__module__": cls.__module__})
