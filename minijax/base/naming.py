"""The names of this package, and their names in jax if it is imported as `jax`."""

import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import FunctionType, ModuleType
from typing import Any, TypeVar

# The version of jax whose API this package has; `__version__` and the aliased distribution report it.
VERSION_INFO = (0, 10, 2)
VERSION = ".".join(map(str, VERSION_INFO))

ALIAS, PACKAGE = "jax", __name__.partition(".")[0]


_T = TypeVar("_T")
_jax_names: list[tuple[Any, str]] | None = []  # None once this package is imported as jax


def known_as(path: str) -> Callable[[_T], _T]:
    """Gives a class or function its path in jax if this package is imported as jax: its pickles then use that path."""

    def name(x: _T) -> _T:
        if _jax_names is None:
            _name(x, path)
        else:
            _jax_names.append((x, path))
        return x

    return name


def public_in(module: str) -> Callable[[_T], _T]:
    """Gives a class or function the path of the public module that exports it, in this package or in jax."""

    def name(x: _T) -> _T:
        path = f"{module}.{x.__name__}"  # pyright: ignore[reportAttributeAccessIssue]
        _name(x, f"{PACKAGE}.{path}")
        return known_as(f"{ALIAS}.{path}")(x)

    return name


def _name(x: Any, path: str) -> None:
    module, _, name = path.rpartition(".")
    x.__module__, x.__qualname__ = module, name
    x.__name__ = name


def install_names_of_jax() -> None:
    """Gives the objects that `known_as` was or will be called for their names in jax."""
    global _jax_names
    known, _jax_names = _jax_names or [], None
    for x, path in known:
        _name(x, path)


# The parts of the package that define a public module's functions, if they are not below that module.
_OWN = {
    "": ("api.", "run.arrays.array"),
    "errors": ("base.errors",),
    "lax": ("primitives.", "calls.", "higher.", "composed."),
    "lax.linalg": ("composed.linalg.",),
    "numpy": ("numpy.", "base.dtypes", "composed.arrays.selecting", "composed.arrays.division"),
    "sharding": ("partition.",),
    "tree_util": ("base.tree",),
}


def claim(x: Any, name: str, room: str, face: str) -> None:
    """Sets the `__module__` of a public function or class to jax's, if this package is imported as jax.

    If several public modules export it, it gets the name of the one to which its room belongs (see `_OWN`).
    """
    if _jax_names is not None or getattr(x, "__qualname__", None) != name:
        return
    path, inner = face.removeprefix(PACKAGE).removeprefix("."), room.removeprefix(f"{PACKAGE}.")
    if not inner.startswith(_OWN.get(path, path or ".")) or not is_under(str(x.__module__), PACKAGE):
        return
    if isinstance(x, (type, FunctionType)) or "__module__" in getattr(x, "__dict__", ()):
        x.__module__ = ALIAS + face.removeprefix(PACKAGE)


def name_in_jax(module: ModuleType, public: bool = True) -> None:
    """Gives a public module, and the objects it defines, their names in jax, if this package is imported as jax."""
    real, own = module.__name__, vars(module)
    if _jax_names is not None or not public or not is_under(real, PACKAGE):
        return
    for name in own.get("__all__", ()):
        claim(own[name], name, real, real)
    module.__name__ = shown = ALIAS + real.removeprefix(PACKAGE)
    # The package's own spec tells which of the two `jax` is.
    if real != PACKAGE and module.__spec__ is not None and module.__spec__.origin is not None:
        module.__spec__ = _spec_named(shown, module.__spec__)


def _spec_named(name: str, real: ModuleSpec) -> ModuleSpec:
    spec = ModuleSpec(name, SourceFileLoader(name, str(real.origin)), origin=real.origin)
    spec.submodule_search_locations, spec.has_location = real.submodule_search_locations, True
    return spec


def is_installed_as_jax() -> bool:
    """True if `import jax` imports this package."""
    return _jax_names is None


def is_under(name: str, package: str) -> bool:
    """Returns whether a dotted name is the package or something in it."""
    return name == package or name.startswith(package + ".")


def mirror(path: str, module: ModuleType) -> None:
    """Registers a module that was loaded as an attribute under its name in jax, if this package is imported as jax."""
    if _jax_names is None and is_under(path, PACKAGE):
        sys.modules.setdefault(ALIAS + path.removeprefix(PACKAGE), module)
        name_in_jax(module)
