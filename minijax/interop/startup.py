"""The modules that `import jax` adds to `sys.modules`: each is loaded at its first use."""

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from minijax.base.naming import ALIAS, PACKAGE, name_in_jax
from minijax.interop.private import PATHS, PRIVATE, PrivateModule

# A package comes before its modules.
_PUBLIC = """
api_util core custom_batching custom_derivatives debug distributed dlpack dtypes errors experimental
experimental.compilation_cache experimental.compilation_cache.compilation_cache export ffi image interpreters
interpreters.ad interpreters.batching interpreters.mlir interpreters.partial_eval interpreters.pxla interpreters.xla lax
lax.linalg lib monitoring nn nn.initializers numpy numpy.fft numpy.linalg ops profiler random ref scipy sharding stages
tree tree_util typing version
"""
# jax loads these private modules later.
_LATER = (
    *"checkify flatten_util lib._jax public_test_util".split(),
    *"scipy scipy.linalg scipy.signal scipy.special scipy.stats test_util".split(),
)

_pending: dict[str, "PendingModule"] = {}  # by the name in this package


class PendingModule(ModuleType):
    """A module that is executed at the first use of an attribute, and is an ordinary module from then on.

    Attributes that programs read when they scan `sys.modules` are served without executing it.
    """

    def __getattribute__(self, name: str) -> Any:
        if name in ("__name__", "__class__", "__warningregistry__"):
            return ModuleType.__getattribute__(self, name)
        own = vars_of(self)
        if own["__spec__"] is None:
            if name == "__file__":
                return _spec_of(own["__name__"]).origin
            importlib.import_module(own["__name__"])
        elif not name.startswith("__"):  # The module is being executed: another thread waits for it.
            importlib.import_module(own["__name__"])
        return ModuleType.__getattribute__(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("__"):
            importlib.import_module(self.__name__)
        ModuleType.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        importlib.import_module(self.__name__)
        ModuleType.__delattr__(self, name)


class _PendingLoader:
    """Executes a pending module in place."""

    def __init__(self, module: PendingModule, inner: Any):
        self._module = module
        self._inner = inner

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Returns the pending module."""
        vars_of(self._module)["__spec__"] = spec
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        """Executes the module with its own loader."""
        spec = vars_of(module)["__spec__"]
        module.__loader__ = spec.loader = self._inner
        try:
            self._inner.exec_module(module)
        except BaseException:
            vars_of(module)["__spec__"] = None
            raise
        del _pending[spec.name]
        module.__class__ = ModuleType
        name_in_jax(module)


def vars_of(module: ModuleType) -> dict[str, Any]:
    """Returns the namespace of a module without executing it."""
    return ModuleType.__getattribute__(module, "__dict__")


def present() -> None:
    """Adds the modules to `sys.modules` that `import jax` adds."""
    sys.meta_path.insert(0, PendingFinder())
    modules = sys.modules
    modules[ALIAS] = modules[PACKAGE]
    name_in_jax(modules[PACKAGE])
    for path in _PUBLIC.split():
        real = f"{PACKAGE}.{path}"
        module = modules.get(real)
        if module is None:
            module = _pending[real] = PendingModule(real)
        else:
            name_in_jax(module)
        modules[f"{ALIAS}.{path}"] = module
    modules[PRIVATE] = modules[PACKAGE].__dict__["_src"] = PrivateModule(PRIVATE)
    for path in PATHS:
        if path not in _LATER:
            name = f"{PRIVATE}.{path}"
            modules[name] = PrivateModule(name)


class PendingFinder:
    """Finds the modules that are pending."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> Any:
        """Returns a spec that executes the pending module of that name, or None."""
        module = _pending.get(name)
        if module is None:
            return None
        spec = _spec_of(name)
        spec.loader = _PendingLoader(module, spec.loader)
        return spec


def _spec_of(name: str) -> ModuleSpec:
    """Returns the spec of a module without executing its packages."""
    parent = name.rpartition(".")[0]
    path = _spec_of(parent).submodule_search_locations if parent in _pending else sys.modules[parent].__path__
    finders = (finder for finder in sys.meta_path if not isinstance(finder, PendingFinder))
    return next(spec for finder in finders if (spec := finder.find_spec(name, path)) is not None)
