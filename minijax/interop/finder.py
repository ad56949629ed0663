"""What the import system asks about the names `jax` and `jax.*` once they stand for this package."""

import importlib
import importlib.machinery
import importlib.util
from collections.abc import Iterator, Sequence
from types import CodeType, ModuleType
from typing import Any

from minijax.base.lazy import defer
from minijax.base.naming import ALIAS, PACKAGE, is_under, name_in_jax
from minijax.interop.private import PRIVATE, private_spec

# The standard library's modules of metadata take longer to import than the rest of this one.
_distribution = defer("minijax.interop.distribution")


class AliasFinder:
    """Finds the modules named `jax…`, and the distribution `jax`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """A spec that loads as the module of this package with the corresponding name, if there is one."""
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
        """Nothing is remembered."""

    def find_distributions(self, context: Any = None) -> Iterator[Any]:
        """The distribution `jax`, where it or every one is asked for."""
        if context is None or context.name is None or context.name.lower() == ALIAS:
            yield _distribution.AliasDistribution()


class AliasLoader:
    """Loads an alias by importing the module that it stands for."""

    def __init__(self, real: str):
        self.real = real
        self._spec: importlib.machinery.ModuleSpec | None = None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """The module itself, so that both names give one object."""
        module = importlib.import_module(self.real)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Undo the import system's naming of the module after its alias; it has run already."""
        module.__spec__ = self._spec
        name_in_jax(module, public="__dir__" in vars(module))

    def get_source(self, fullname: str) -> str | None:
        """The source of the module that the alias stands for."""
        return self._inspected().get_source(self.real)

    def get_code(self, fullname: str) -> CodeType | None:
        """The code of the module that the alias stands for, for `python -m minijax -m jax.X`."""
        return self._inspected().get_code(self.real)

    def is_package(self, fullname: str) -> bool:
        """Whether the module that the alias stands for is a package."""
        return self._inspected().is_package(self.real)

    def _inspected(self) -> Any:
        return importlib.util.find_spec(self.real).loader
