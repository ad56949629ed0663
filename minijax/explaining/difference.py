"""Where two programs part: their first differing equations, and their texts side by side."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from minijax.explaining.program import Equation, Page, page
from minijax.explaining.texts import read_hlo

_TEMPLATE = Path(__file__).with_name("difference.html")
# The names of variables in each text, and of the module.
_NAMES = {
    "jaxpr": re.compile(r"\b[a-z]{1,2}\b(?=:[a-z\w~*]+\d*\[)|(?<=[ \]])[a-z]{1,2}\b(?= |$)"),
    "stablehlo": re.compile(r"%[\w#:]+|@jit_\w+"),
    "hlo": re.compile(r"%[\w.\-]+|\b[\w.\-]+(?=: \w+\[)|^HloModule [\w.\-]+"),
}


class Stages(NamedTuple):
    """A function's equations and texts."""

    name: str
    equations: list[Equation]
    texts: dict[str, list[str]]


class Row(NamedTuple):
    """Lines of two texts, "" where one has none, and how they compare: "equal", "renamed", "changed"."""

    how: str
    left: str
    right: str


@dataclasses.dataclass
class Difference(Page):
    """Holds where two programs part: `minijax.diff` returns it; notebooks show its page, and `save` writes it."""

    names: tuple[str, str]
    first: int | None
    equations: tuple[Equation | None, Equation | None]
    rows: dict[str, list[Row]]

    def __bool__(self):
        return self.first is not None or any(row.how == "changed" for rows in self.rows.values() for row in rows)

    def html(self) -> str:
        """Returns the page."""
        pair = [e and {"text": e.text, "source": e.source} for e in self.equations]
        data = {"names": self.names, "first": self.first, "equations": pair, "rows": self.rows}
        return page(_TEMPLATE, " and ".join(self.names), data)

    def __repr__(self):
        lines = ["The jaxprs have the same equations."]
        if self.first is not None:
            lines = [f"The jaxprs part at equation {self.first}:"]
            lines += [
                f"  {side}: {f'{e.text} ({e.source})' if e else 'has no further equation'}"
                for side, e in zip("fg", self.equations, strict=True)
            ]
        for key, rows in self.rows.items():
            counts = [sum(row.how == how for row in rows) for how in ("changed", "renamed")]
            lines.append(f"{key}: {counts[0]} lines differ, {counts[1]} only in names")
        return "\n".join(lines)


def compare(f: Stages, g: Stages) -> Difference:
    """Where the programs of two functions part."""
    first, pair = None, (None, None)
    for n in range(max(len(f.equations), len(g.equations))):
        pair = tuple(s.equations[n] if n < len(s.equations) else None for s in (f, g))
        if None in pair or pair[0].text != pair[1].text:  # pyright: ignore[reportOptionalMemberAccess]
            first = n
            break
    rows = {key: list(_rows(key, f.texts[key], g.texts[key])) for key in f.texts}
    return Difference((f.name, g.name), first, (None, None) if first is None else pair, rows)  # pyright: ignore


def _rows(key: str, left: list[str], right: list[str]) -> Iterator[Row]:
    """The lines side by side, matched without the names of variables."""
    if key == "hlo":
        left, right = (read_hlo("\n".join(lines))[0] for lines in (left, right))
    bare = [[_NAMES[key].sub("_", line) for line in lines] for lines in (left, right)]
    for tag, i, j, k, m in difflib.SequenceMatcher(None, *bare, autojunk=False).get_opcodes():
        for n in range(max(j - i, m - k)):
            a, b = left[i + n] if i + n < j else "", right[k + n] if k + n < m else ""
            yield Row("equal" if a == b and tag == "equal" else "renamed" if tag == "equal" else "changed", a, b)
