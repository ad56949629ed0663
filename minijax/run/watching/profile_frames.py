"""Removes the library's own Python frames from a profile, so that it shows the calls of the user's program.

A profile is an `XSpace`: planes of lines of events. An event refers to its name by a number. The Python tracer names
a function `$file.py:line name`, and a C function `$module name`.
"""

import math
import os
import re
import sys
from collections.abc import Iterator, Set
from types import CodeType

from minijax.base.protobuf import message, read

# The numbers of the fields that are read here.
_PLANES = 1  # of XSpace
_LINES, _NAMES = 3, 4  # of XPlane; the second is a map from numbers to XEventMetadata
_KEY, _VALUE = 1, 2
_NAME = 2  # of XEventMetadata
_EVENTS = 4  # of XLine
_NUMBER, _START, _DURATION = 1, 2, 3  # of XEvent

_POSITION = re.compile(r"\$(.+\.py):\d+ ")
_OWN = __name__.partition(".")[0]
_BELOW = frozenset({"numpy", "jaxlib", "ml_dtypes", *sys.stdlib_module_names})


def without_own_frames(space: bytes) -> bytes:
    """The profile without the library's frames, and without the functions they call up to the next user function."""
    fields = [(n, _without_frames(value) if n == _PLANES else value) for n, value in read(space)]
    return message(*fields)


def _without_frames(plane: bytes) -> bytes:
    fields = list(read(plane))
    names = dict(_named(value) for number, value in fields if number == _NAMES)
    frames = {number: name for number, name in names.items() if name.startswith("$")}
    if not frames:
        return plane
    files = {match[1] for match in map(_POSITION.match, frames.values()) if match}
    own, below = _functions({_OWN}, files), _functions(_BELOW, files)
    is_own = {number: _is_own(name, own, below) for number, name in frames.items()}
    kept = []
    for number, value in fields:
        if number == _LINES:
            value = _line(value, is_own)
        if number != _NAMES or is_own.get(_named(value)[0]) is not True:
            kept.append((number, value))
    return message(*kept)


def _is_own(name: str, own: set[str], below: set[str]) -> bool | None:
    """Returns whether a function is the library's; None if that depends on its caller."""
    if name in own:
        return True
    has_file = _POSITION.match(name)  # C functions and generated code have no file
    return False if has_file and name not in below else None


def _named(entry: bytes) -> tuple[int, str]:
    """A number by which events refer to a name, and that name."""
    fields = dict(read(entry))
    return fields.get(_KEY, 0), dict(read(fields[_VALUE])).get(_NAME, b"").decode(errors="replace")


def _line(line: bytes, is_own: dict[int, bool | None]) -> bytes:
    """The events of a thread without the hidden ones."""
    fields, calls = list(read(line)), []
    for place, (number, event) in enumerate(fields):
        if number == _EVENTS and next(read(event), (0, 0))[1] in is_own:
            parts = dict(read(event))
            calls.append((parts.get(_START, 0), -parts.get(_DURATION, 0), place, is_own[parts[_NUMBER]]))
    if not calls:
        return line
    calls.sort()  # callers precede the functions they call
    hidden: set[int] = set()
    running = [(math.inf, False)]  # when the calls end, and whether they are hidden
    for start, minus_duration, place, own in calls:
        while running[-1][0] <= start:
            running.pop()
        hides = running[-1][1] if own is None else own
        running.append((start - minus_duration, hides))
        if hides:
            hidden.add(place)
    return message(*(field for place, field in enumerate(fields) if place not in hidden))


def _functions(packages: Set[str], files: set[str]) -> set[str]:
    """The names in profiles of all functions of the packages that are defined in files with these names."""
    found: set[str] = set()
    for name, module in list(sys.modules.items()):
        file = os.path.basename(getattr(module, "__file__", None) or "")
        if file in files and name.partition(".")[0] in packages:
            loader = module.__spec__.loader if module.__spec__ else None
            # A loader knows a module by its own name, which under `import jax` is another than the entry's.
            own = getattr(loader, "name", module.__spec__.name) if loader else name
            code = loader.get_code(own) if hasattr(loader, "get_code") else None
            found.update(f"${file}:{c.co_firstlineno} {c.co_name}" for c in _all_code(code))
    return found


def _all_code(code: CodeType | None) -> Iterator[CodeType]:
    if code is not None:
        yield code
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                yield from _all_code(constant)
