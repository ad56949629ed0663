"""The names of this package, and of the jax that it stands for."""

import sys
from collections.abc import Callable
from typing import Any, TypeVar

# The jax whose API this package has; `__version__` and the aliased distribution say so.
VERSION_INFO = (0, 10, 2)
VERSION = ".".join(map(str, VERSION_INFO))

ALIAS, PACKAGE = "jax", __name__.partition(".")[0]


_T = TypeVar("_T")
_known: list[tuple[Any, str]] | None = []  # None once this package stands for jax


def known_as(path: str) -> Callable[[_T], _T]:
    """Names a class or function by its path in jax where this package stands for it: so its pickles name it."""

    def name(x: _T) -> _T:
        if _known is None:
            _name(x, path)
        else:
            _known.append((x, path))
        return x

    return name


def public_in(module: str) -> Callable[[_T], _T]:
    """Names a class or function by the module of this package where users find it, or by jax's of that name."""

    def name(x: _T) -> _T:
        path = f"{module}.{x.__name__}"  # pyright: ignore[reportAttributeAccessIssue]
        _name(x, f"{PACKAGE}.{path}")
        return known_as(f"{ALIAS}.{path}")(x)

    return name


def _name(x: Any, path: str) -> None:
    module, _, name = path.rpartition(".")
    x.__module__, x.__qualname__ = module, name
    if not isinstance(x, type):
        x.__name__ = name


def stand_for_jax() -> None:
    """Gives what `known_as` has named, and will name, the names of jax."""
    global _known
    known, _known = _known or [], None
    for x, path in known:
        _name(x, path)


def stands_for_jax() -> bool:
    """Whether `jax` means this package."""
    return _known is None


def is_under(name: str, package: str) -> bool:
    """Whether a dotted name is the package or something in it."""
    return name == package or name.startswith(package + ".")


def mirror_loaded_modules() -> None:
    """Give each loaded module of this package its second name in `sys.modules`."""
    for name, module in list(sys.modules.items()):
        # A module that is still running is left to the import lock of its own name.
        if is_under(name, PACKAGE) and not getattr(module.__spec__, "_initializing", False):
            sys.modules.setdefault(ALIAS + name.removeprefix(PACKAGE), module)
