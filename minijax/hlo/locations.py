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

    def located(self, locate: Locate = source.positions) -> str:
        """The module with a location for each operation: its name, and the expressions that `locate` gives."""
        aliases: dict[str, str] = {}
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
            location = _named_location(name, () if eqn is None else locate(eqn.traceback))
            alias = aliases.setdefault(location, f"#loc{len(aliases) + 1}")
            for i in bare:
                lines[i] = f"{lines[i]} loc({alias})"
        return _joined(self.header, functions.values(), [f"{alias} = {text}" for text, alias in aliases.items()])


def _joined(header, functions, footer):
    return "\n".join([*header, *[line for lines in functions for line in lines], "}", *footer, ""])


def _named_location(name: str, stack: Sequence[source.Position]) -> str:
    """A location: the operation's name and the expressions, innermost first, that called for it."""
    if not stack:
        return f"loc({string(name)})"
    *inner, caller = [f"{string(p.function)}({_range(p)})" for p in stack]
    for callee in reversed(inner):
        caller = f"callsite({callee} at {caller})"
    return f"loc({string(name)}({caller}))"


def _range(p: source.Position) -> str:
    start = f"{string(p.file)}:{p.line}:{p.column}"
    if p.end_line < p.line:
        return start
    return f"{start} to {'' if p.end_line == p.line else p.end_line}:{p.end_column}"
