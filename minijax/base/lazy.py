"""Deferred imports: by name, when an attribute is first read."""

import importlib
from types import ModuleType
from typing import Any


class Deferred:
    """A module that is imported when one of its attributes is first read."""

    __slots__ = ("_name", "_module")

    def __init__(self, name: str):
        self._name = name
        self._module: ModuleType | None = None

    def __getattr__(self, attribute: str) -> Any:
        if self._module is None:
            self._module = importlib.import_module(self._name)
        return getattr(self._module, attribute)

    def __dir__(self) -> list[str]:
        return dir(importlib.import_module(self._name))


def defer(name: str) -> Deferred:
    """Returns the module `name`, imported at the first use of one of its attributes."""
    return Deferred(name)
