"""Locations: which lines of a program were written for which operation, its name and where it was called."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from minijax.base import source
from minijax.hlo.spell import string
from minijax.ir.jaxpr import JaxprEqn

# Lines of a function, from where to where they were written for an equation or (None) for literals, and the scope.
Mark = tuple[list[str], int, int, str, JaxprEqn | None]
_UNMARKED = ("{", "):")  # ends of lines that are the beginning of an operation
Locate = Callable[[object], Sequence[source.Position]]


class Written(NamedTuple):
    """The lines of a module, with marks from which locations are made when somebody asks for them."""

    header: list[str]
    functions: list[list[str]]
    marks: list[Mark]
    main: Callable[[], str] | None  # the first line of the first function, with the arguments' names

    def text(self) -> str:
        """The module without locations."""
        return _joined(self.header, self.functions, [])

    def located(self, locate: Locate | None = None) -> str:
        """The module with a location for each operation: its name, and the expressions that called for it.

        `locate` gives these for a traceback, innermost first.
        """
        locate, locations = locate or source.Positions(), _Locations()
        functions = {id(lines): list(lines) for lines in self.functions}
        if self.main is not None:
            functions[id(self.functions[0])][0] = self.main()
        for own, start, end, scope, eqn in self.marks:
            lines = functions[id(own)]
            bare = [i for i in range(start, end) if not lines[i].endswith(_UNMARKED) and " loc(#" not in lines[i]]
            name = scope if eqn is None else eqn.primitive.label(eqn.ctx.name_stack, eqn.params)
            if not bare or not name:
                continue
            if eqn is not None and scope:
                name = f"{scope}/{name}"
            location = locations.named(name, () if eqn is None else tuple(locate(eqn.traceback)))
            for i in bare:
                lines[i] = f"{lines[i]} loc({location})"
        return _joined(self.header, functions.values(), locations.lines)


def _joined(header, functions, footer):
    return "\n".join([*header, *[line for lines in functions for line in lines], "}", *footer, ""])


class _Locations:
    """The locations of a module, each once, as aliases."""

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
        """An operation's: its name and the expressions, innermost first, that called for it."""
        where = lambda: f"({self._called(stack)})" if stack else ""  # noqa: E731
        return self._once((name, stack), lambda: f"{string(name)}{where()}")

    def _called(self, stack):
        if len(stack) == 1:
            return self._at(*stack)
        return self._once(stack, lambda: f"callsite({self._at(stack[0])} at {self._called(stack[1:])})")

    def _at(self, p):
        return self._once((p,), lambda: f"{string(p.function)}({_range(p)})")


def _range(p: source.Position) -> str:
    start = f"{string(p.file)}:{p.line}:{p.column}"
    if p.end_line < p.line:
        return start
    return f"{start} to {'' if p.end_line == p.line else p.end_line}:{p.end_column}"
