"""Faces: modules of names that live elsewhere, each looked up when it is first asked for."""

import importlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any


class Face:
    """The names of a module `name`: for each room, the names that it holds; and the public submodules.

    `abs=absolute` gives the room's `absolute` under the name `abs`.
    """

    def __init__(self, name: str, submodules: Sequence[str], rooms: Mapping[str, str]):
        self._name = name
        self._submodules = frozenset(submodules)
        self._rooms: dict[str, tuple[str, str]] = {}
        for room, names in rooms.items():
            for public, _, inner in (entry.partition("=") for entry in names.split()):
                self._rooms[public] = room, inner or public

    def attribute(self, name: str) -> Any:
        """The module's `__getattr__`: finds a name and leaves it in the module."""
        if name in self._submodules:
            return importlib.import_module(f"{self._name}.{name}")
        if name not in self._rooms:
            raise AttributeError(f"module {self._name!r} has no attribute {name!r}")
        room, inner = self._rooms[name]
        value = getattr(importlib.import_module(room), inner)
        setattr(sys.modules[self._name], name, value)
        return value

    def names(self) -> list[str]:
        """The module's `__dir__`."""
        own = (n for n in vars(sys.modules[self._name]) if n.startswith("__"))
        return sorted({*own, *self._rooms, *self._submodules})
