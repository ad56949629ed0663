"""Finder and loader of the names `jax` and `jax.*` while they are aliases of this package."""

import importlib
import importlib.machinery
import importlib.util
from collections.abc import Iterator, Sequence
from types import CodeType, ModuleType
from typing import Any

from minijax.base.lazy import defer
from minijax.base.naming import ALIAS, PACKAGE, is_under, name_in_jax
from minijax.interop.private import PRIVATE, private_spec

# importlib.metadata takes longer to import than the rest of this module.
_distribution = defer("minijax.interop.distribution")


class AliasFinder:
    """Finds the modules named `jax…`, and the distribution `jax`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Returns a spec that loads the module of this package with the corresponding name, or None."""
        if not is_under(fullname, ALIAS):
            return None
        if is_under(fullname, PRIVATE):
            return private_spec(fullname)
        real = PACKAGE + fullname.removeprefix(ALIAS)
        spec = importlib.util.find_spec(real)
        if spec is None:
            return None
        alias = importlib.machinery.ModuleSpec(fullname, AliasLoader(real), origin=spec.origin)
        alias.submodule_search_locations = spec.submodule_search_locations
        alias.has_location = spec.has_location
        return alias

    def invalidate_caches(self) -> None:
        """Does nothing: nothing is cached."""

    def find_distributions(self, context: Any = None) -> Iterator[Any]:
        """Yields the distribution `jax` if it, or every distribution, is requested."""
        if context is None or context.name is None or context.name.lower() == ALIAS:
            yield _distribution.AliasDistribution()


class AliasLoader:
    """Loads an alias by importing its target."""

    def __init__(self, real: str):
        self.real = real
        self._spec: importlib.machinery.ModuleSpec | None = None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Returns the target itself, so that both names give the same object."""
        module = importlib.import_module(self.real)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restores the names that the import system replaced by the alias's; the module has run already."""
        module.__spec__ = self._spec
        name_in_jax(module, public="__dir__" in vars(module))

    def get_source(self, fullname: str) -> str | None:
        """Returns the source of the target."""
        return self._inspected().get_source(self.real)

    def get_code(self, fullname: str) -> CodeType | None:
        """Returns the code of the target, for `python -m minijax -m jax.X`."""
        return self._inspected().get_code(self.real)

    def is_package(self, fullname: str) -> bool:
        """Returns whether the target is a package."""
        return self._inspected().is_package(self.real)

    def _inspected(self) -> Any:
        return importlib.util.find_spec(self.real).loader
