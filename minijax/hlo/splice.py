"""Splices foreign modules into the one that an Emitter emits."""

import re
from collections.abc import Sequence

from minijax.hlo.writer import Writer

_SYMBOL = r'@(?:[\w$.\-]+|"[^"]*")'
_TOKEN = re.compile(rf'{_SYMBOL}|"(?:[^"\\]|\\.)*"|%[\w$.\-]+')
_DEFINED = re.compile(rf"^  func\.func (?:\w+ )?({_SYMBOL})")


def splice(e: Writer, text: str, operands: Sequence[str]) -> list[str]:
    """Inlines the function `rule` of a module and adds its other functions. Returns the names of the results."""
    functions = _functions(text)
    body = functions.pop("@rule")
    symbols = {name: e.unique_symbol(name[1:].strip('"')) for name in functions}
    prefix = f"%r{e.fresh()[1][0][1:]}_"
    arguments = {f"%arg{i}": x for i, x in enumerate(operands)}

    def local(match: re.Match) -> str:
        token: str = match[0]
        if token[0] == "%":
            return arguments.get(token) or prefix + token[1:]
        return symbols.get(token, token)

    for lines in functions.values():
        e.functions.append([_TOKEN.sub(lambda m: symbols.get(m[0], m[0]), line) for line in lines])
    for line in body[1:-2]:
        e.line(re.sub(r"^(\s*(?:%\S+ = )?)call @", r"\1func.call @", _TOKEN.sub(local, line[4:])))
    returned = _TOKEN.sub(local, body[-2]).partition("return")[2].partition(" : ")[0]
    return [name.strip() for name in returned.split(",") if name.strip()]


def _functions(text):
    """The lines of each function of a printed module, by its symbol."""
    functions, lines = {}, []
    for line in text.splitlines():
        if match := _DEFINED.match(line):
            lines = functions[match[1]] = []
        lines.append(line)
        if line == "  }":
            lines = []
    return functions
