"""Faces: modules that re-export names defined elsewhere, each looked up at its first use."""

import importlib
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from minijax.base.documentation import document
from minijax.base.naming import claim, mirror
from minijax.base.util import alias

# The names defined in each room (a module): a mapping, or a text with one paragraph `room: names` a room whose
# further lines are indented.
Rooms = Mapping[str, str] | str


# These rooms do not need arrays, hence `Face.operators` is not imported for them: `install` stays cheap.
_WITHOUT_ARRAYS = "minijax.base.", "minijax.interop.alias"


class Face:
    """The public names of a module `name`: for each room, the names defined there, and the public submodules.

    The module is `__getattr__, __dir__ = _FACE = Face(__name__, ...)`: a face unpacks to these two functions.

    `abs=absolute` exports the room's `absolute` as `abs`; a function that is exported under both names is a separate
    object under each. `deprecated` maps a text, with `{0}` for the name, to rooms whose names give this warning at
    their first use. `removed` maps a text to names that no longer exist. `missing` maps a text to names that do not
    exist yet: functions and classes that raise NotImplementedError when called. If `partial` is set, a name that its
    room lacks is left out of the face. `later` are public submodules that jax's package does not import: `dir()` lists
    them once they are loaded.
    """

    operators = ""  # the module that sets the operators of arrays, which every name of a room with arrays needs

    def __init__(
        self,
        name: str,
        rooms: Rooms,
        submodules: Sequence[str] = (),
        *,
        later: Sequence[str] = (),
        deprecated: Mapping[str, Rooms] | None = None,
        removed: Mapping[str, str] | None = None,
        missing: Mapping[str, str] | None = None,
        partial: bool = False,
    ):
        self._name = name
        self._shown = frozenset(submodules)
        self._submodules = self._shown.union(later)
        self._partial = partial
        self._rooms = self.places = dict[str, tuple[str, str]]()  # for each name, the room and the name there
        self._add_rooms(rooms)
        self._warnings: dict[str, str] = {}
        for text, old in (deprecated or {}).items():
            self._warnings |= {public: text.format(public) for public in self._add_rooms(old)}
        self._removed = {old: text.format(old) for text, names in (removed or {}).items() for old in names.split()}
        self._missing = {n: text.format(n) for text, names in (missing or {}).items() for n in names.split()}

    def __iter__(self) -> Iterator[Callable[..., Any]]:
        return iter((self.attribute, self.names))

    def _add_rooms(self, rooms: Rooms) -> list[str]:
        placed = []
        if isinstance(rooms, str):
            rooms = dict(paragraph.split(": ") for paragraph in re.split(r"\n(?=\w)", rooms.strip()))
        for room, names in rooms.items():
            for public, _, inner in (entry.partition("=") for entry in names.split()):
                self._rooms[public] = room, inner or public
                placed.append(public)
        return placed

    def attribute(self, name: str) -> Any:
        """The module's `__getattr__`: looks a name up and stores it in the module."""
        if name in self._submodules:
            return self._submodule(f"{self._name}.{name}")
        if name == "__all__":  # read by `from module import *`
            return [n for n in self.names() if not n.startswith("_")]
        if name in self._missing:
            value = _unimplemented(self._name, name, self._missing[name])
            setattr(sys.modules[self._name], name, value)
            return value
        if not self._has(name):
            module = sys.modules.get(self._name)
            shown = getattr(module, "__name__", self._name)
            absent = f"module {shown!r} has no attribute {name!r}. dir({shown}) lists its names."
            raise AttributeError(self._removed.get(name, absent), name=name, obj=module)
        room, inner = self._rooms[name]
        if not room.startswith(_WITHOUT_ARRAYS):
            importlib.import_module(self.operators)
        value = attrgetter(inner)(importlib.import_module(room))
        original = ""
        if inner != name and inner in self._rooms and callable(value) and not isinstance(value, type):
            value = alias(value, name, self._name, f"jax.{self._name.partition('.')[2]}.{inner}")
            original = f"{self._name}.{inner}"
        document(value, f"{self._name}.{name}", original)
        claim(value, name, room, self._name)
        if name in self._warnings:
            warnings.warn(self._warnings[name], DeprecationWarning, stacklevel=2)
        setattr(sys.modules[self._name], name, value)
        return value

    def _submodule(self, path: str) -> Any:
        try:
            module = importlib.import_module(path)
        except ModuleNotFoundError as error:
            # Code that reads all names, such as a pretty printer, must not fail for packages that are not installed.
            if str(error.name).partition(".")[0] == __package__.partition(".")[0]:
                raise
            text = f"module {self._name!r} has no attribute {path.rpartition('.')[2]!r}: it needs {error.name}"
            raise AttributeError(text) from error
        mirror(path, module)
        return module

    def assign(self, name: str, value: Any) -> bool:
        """Sets a name in the room that defines it; returns False if no room does."""
        if name not in self._rooms:
            return False
        room, inner = self._rooms[name]
        setattr(importlib.import_module(room), inner, value)
        return True

    def remove(self, name: str) -> bool:
        """Deletes a name in the room that defines it; returns False if no room does."""
        if name not in self._rooms:
            return False
        room, inner = self._rooms[name]
        delattr(importlib.import_module(room), inner)
        return True

    def _has(self, name: str) -> bool:
        if name not in self._rooms:
            return False
        room, inner = self._rooms[name]
        return not self._partial or hasattr(importlib.import_module(room), inner)

    def names(self) -> list[str]:
        """The module's `__dir__`; deprecated names are not listed."""
        own = (n for n in vars(sys.modules[self._name]) if n.startswith("__"))
        shown = (n for n in self._rooms if n not in self._warnings and self._has(n))
        loaded = (n for n in self._submodules if f"{self._name}.{n}" in sys.modules)
        return sorted({*own, *shown, *self._missing, *self._shown, *loaded})


def listing(module: str, public: str) -> tuple[list[str], Callable[[], list[str]]]:
    """The `__all__` and `__dir__` of a module that is not a face, for its public names."""
    shown = public.split()
    return shown, lambda: sorted({*shown, *(n for n in vars(sys.modules[module]) if n.startswith("__"))})


def documented(module: str, public: str) -> tuple[list[str], Callable[[], list[str]]]:
    """As `listing`, at the end of a module whose functions are shown with NumPy's or SciPy's documentation."""
    for name in public.split():
        document(getattr(sys.modules[module], name), f"{module}.{name}")
    return listing(module, public)


def _unimplemented(module: str, name: str, text: str) -> Any:
    """Returns an object that can be imported, subclassed and inspected, but raises NotImplementedError when called."""

    def missing(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(text)

    if name[0].isupper():
        return type(name, (), {"__new__": missing, "__module__": module})
    missing.__name__ = missing.__qualname__ = name
    missing.__module__ = module
    return missing
