"""Locations: for each line of a module, the name of its operation and the source lines that called it."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minijax.base import source
from minijax.base.lazy import defer
from minijax.hlo.spell import string
from minijax.ir.jaxpr import JaxprEqn

hashlib = defer("hashlib")


class LocationContext(NamedTuple):
    """The location context in which equations are lowered.

    The scope, the tracebacks of enclosing equations, innermost first, and that of the call that lowers.
    """

    scope: str = ""
    callers: tuple = ()
    base: Any = None


# (lines of a function, start, end, context, equation): the lines from start to end belong to the equation; None: to
# literals.
Mark = tuple[list[str], int, int, LocationContext, JaxprEqn | None]
Locate = Callable[..., Sequence[source.Position]]


class Located(NamedTuple):
    """The text of a module with locations, and a hash of the locations without the call that lowers."""

    text: str
    names: bytes


class Written(NamedTuple):
    """The lines of a module, with marks from which locations are computed on demand."""

    header: list[str]
    functions: list[list[str]]
    marks: list[Mark]
    main: Callable[[], str] | None  # the first line of the first function, with the arguments' names

    def text(self) -> str:
        """The module without locations."""
        return _joined(self.header, self.functions, [])

    def located(self, locate: Locate | None = None) -> Located:
        """The module with a location for each operation: its name, and the source positions that called it.

        `locate` returns these for tracebacks, innermost first.
        """
        locate, locations, names = locate or source.Positions(), _Locations(), hashlib.sha256()
        functions = {id(lines): list(lines) for lines in self.functions}
        if self.main is not None:
            functions[id(self.functions[0])][0] = self.main()
        for own, start, end, (scope, callers, base), eqn in self.marks:
            lines = functions[id(own)]
            bare = [i for i in range(start, end) if not _begins_operation(lines, i) and " loc(#" not in lines[i]]
            name = scope if eqn is None else eqn.primitive.label(eqn.ctx.name_stack, eqn.params)
            if not bare or not name:
                continue
            if eqn is not None:
                name, callers = f"{scope}/{name}" if scope else name, (eqn.traceback, *callers)
            names.update(f"{name} {locate(*callers)}\n".encode())
            location = locations.named(name, tuple(locate(*callers, base)))
            for i in bare:
                lines[i] = f"{lines[i]} loc({location})"
        return Located(_joined(self.header, functions.values(), locations.lines), names.digest())


def _begins_operation(lines: list[str], i: int) -> bool:
    """Returns whether the line only begins an operation, whose location stands at its end."""
    return lines[i].endswith(("{", "):")) or lines[i + 1 : i + 2] != [] and lines[i + 1].strip() == "cond {"


def _joined(header, functions, footer):
    return "\n".join([*header, *[line for lines in functions for line in lines], "}", *footer, ""])


class _Locations:
    """The locations of a module, each printed once, as an alias."""

    def __init__(self):
        self.lines: list[str] = []
        self._aliases: dict[tuple, str] = {}

    def _once(self, key: tuple, spell: Callable[[], str]) -> str:
        alias = self._aliases.get(key)
        if alias is None:
            text = spell()
            alias = self._aliases[key] = f"#loc{len(self._aliases) + 1}"
            self.lines.append(f"{alias} = loc({text})")
        return alias

    def named(self, name: str, stack: tuple[source.Position, ...]) -> str:
        """The location of an operation: its name and the source positions, innermost first, that called it."""
        where = lambda: f"({self._call_stack(stack)})" if stack else ""  # noqa: E731
        return self._once((name, stack), lambda: f"{string(name)}{where()}")

    def _call_stack(self, stack):
        if len(stack) == 1:
            return self._position(*stack)
        return self._once(stack, lambda: f"callsite({self._position(stack[0])} at {self._call_stack(stack[1:])})")

    def _position(self, p):
        return self._once((p,), lambda: f"{string(p.function)}({_range(p)})")


def _range(p: source.Position) -> str:
    start = f"{string(p.file)}:{p.line}:{p.column}"
    if p.end_line < p.line:
        return start
    return f"{start} to {'' if p.end_line == p.line else p.end_line}:{p.end_column}"
