"""Counts the equations of a jaxpr by primitive and by the user's source line, as a profile for pprof."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from minijax.base import source
from minijax.base.lazy import defer
from minijax.base.protobuf import message, packed
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, subjaxprs

gzip = defer("gzip")


def equation_profile(closed: ClosedJaxpr) -> bytes:
    """The profile: each sample has a stack of the user's functions, a primitive and a number of equations."""
    func_src = closed.debug_info.func_src_info
    counts = Counter((eqn.primitive.name, _frames(eqn, func_src)) for eqn in _eqns(closed.jaxpr))
    strings, functions, locations, samples = _Table([""]), _Table(), _Table(), []
    for (name, frames), count in counts.items():
        stack = [locations[functions[_function(f, strings)] + 1, f.line] + 1 for f in frames]
        label = message((1, strings["primitive"]), (2, strings[name]))
        samples.append((2, message((1, packed(stack)), (2, packed([count])), (3, label))))
    kind = message((1, strings["equations"]), (2, strings["count"]))
    comment = strings[func_src]
    places = [(4, message((1, i + 1), (4, message((1, f), (2, line))))) for (f, line), i in locations.items()]
    bodies = [
        (5, message((1, i + 1), (2, name), (4, file), (5, start))) for (name, file, start), i in functions.items()
    ]
    table = [(6, text.encode()) for text in strings]
    return gzip.compress(message((1, kind), *samples, *places, *bodies, *table, (13, comment)))


def _eqns(jaxpr: Jaxpr) -> Iterator[JaxprEqn]:
    yield from jaxpr.eqns
    for inner in subjaxprs(jaxpr):
        yield from _eqns(inner)


class _Frame(NamedTuple):
    file: str
    function: str
    start: int
    line: int


def _frames(eqn: JaxprEqn, func_src: str) -> tuple[_Frame, ...]:
    """The frames of the user's program, innermost first, up to that of the traced function."""
    frames = source.user_frames(eqn.traceback)
    outermost = [n for n, f in enumerate(frames) if func_src.endswith(f" at {f.file_name}:{f.function_start_line}")]
    frames = frames[: outermost[-1] + 1] if outermost else frames
    return tuple(_Frame(f.file_name, f.function_name, f.function_start_line, f.line_num) for f in frames)


def _function(frame: _Frame, strings: "_Table") -> tuple[int, int, int]:
    module = os.path.splitext(frame.file)[0].replace(os.sep, ".")
    return strings[f"{module}.{frame.function}"], strings[frame.file], frame.start


class _Table(dict):
    """Numbers keys in the order in which they are first looked up."""

    def __init__(self, keys: Iterable = ()):
        super().__init__({key: n for n, key in enumerate(keys)})

    def __missing__(self, key: Any) -> int:
        return self.setdefault(key, len(self))
