"""Reads the texts of a program: for each line the names and source positions of the operations that it belongs to."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from minijax.run.programs.hlo_places import Place, PlaceTables


class Origin(NamedTuple):
    """The name, source position and result's shape of an operation, as far as the text has them."""

    name: str
    place: Place | None
    shape: tuple[int, ...] | None = None


@dataclasses.dataclass
class Line:
    """A line of a text, and the numbers of the equations that it belongs to.

    `how` says what the link is made from: "location", "line" (the source line alone), "name" (there is only a name),
    "unknown" (an operation without a location), or "" for a line that is not an operation.
    """

    text: str
    equations: list[int] = dataclasses.field(default_factory=list)
    how: str = ""


# ---- StableHLO

_ALIAS = re.compile(r"^#(loc\d*) = loc\((.*)\)$")
_AT_END = re.compile(r" loc\(#(loc\d*)\)$")
_ANY = re.compile(r' loc\((?:#loc\d*|"(?:[^"\\]|\\.)*"|unknown)\)')
_NAMED = re.compile(r'^"((?:[^"\\]|\\.)*)"\(#(loc\d*)\)$')
_BARE = re.compile(r'^"((?:[^"\\]|\\.)*)"$')
_POSITION = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)')
_RESULT = re.compile(r"<((?:\d+x)*)[a-z]\w*(?:<\w+>)?>$")
_CALLSITE = re.compile(r"^callsite\(#(loc\d*) at #loc\d*\)$")


def read_module(text: str) -> list[tuple[str, Origin | None]]:
    """The lines of a module with locations, each without its location and with the origin of the operation."""
    rows, aliases = [], {}
    for line in text.splitlines():
        if match := _ALIAS.match(line):
            aliases[match[1]] = match[2]
        elif line:
            rows.append(line)
    found = []
    for line in rows:
        match, bare = _AT_END.search(line), _ANY.sub("", line)
        found.append((bare, _origin(match[1], aliases)._replace(shape=_shape_at_end(bare)) if match else None))
    return _with_first_lines(found)


def _shape_at_end(line: str) -> tuple[int, ...] | None:
    match = _RESULT.search(line)
    return tuple(map(int, match[1].split("x")[:-1])) if match else None


def _with_first_lines(rows: list[tuple[str, Origin | None]]) -> list[tuple[str, Origin | None]]:
    """Gives the first line of an operation with regions the origin that stands at the end of its last line."""
    opened: dict[int, int] = {}
    for i, (line, origin) in enumerate(rows):
        indent = len(line) - len(line.lstrip())
        if line.lstrip().startswith("}") and indent in opened and origin is not None:
            first = opened[indent]
            rows[first] = rows[first][0], rows[first][1] or origin
        elif " = " in line:
            opened[indent] = i
    return rows


def _origin(alias: str, aliases: dict[str, str]) -> Origin:
    text = aliases.get(alias, "")
    if match := _NAMED.match(text):
        return Origin(match[1], _place(match[2], aliases))
    match = _BARE.match(text)
    return Origin(match[1] if match else "", _place(alias, aliases))


def _place(alias: str, aliases: dict[str, str]) -> Place | None:
    text = aliases.get(alias, "")
    while match := _CALLSITE.match(text):
        text = aliases.get(match[1], "")
    match = _POSITION.search(text)
    return (match[1], int(match[2]), int(match[3])) if match else None


# ---- optimized HLO

_INSTRUCTION = re.compile(r"^\s+(ROOT )?%?([\w.\-]+) = (\(.*?\)|\S+) ([\w\-]+)\((.*)$")
_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) .*\{$")
_SHAPE = re.compile(r"\b(pred|token|[a-z]+\d+\w*)\[([\d,<=]*)\](\{[^}]*\})?")
_CALLS = re.compile(r"(?:calls|body|condition|to_apply|true_computation|false_computation)=%?([\w.\-]+)")
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_OPERAND = re.compile(r"%([\w.\-]+)")
_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')


@dataclasses.dataclass
class Instruction:
    """An instruction of an optimized program."""

    name: str
    opcode: str
    type: str
    operands: list[str]
    calls: list[str]
    origins: list[Origin]
    is_root: bool
    row: int  # its line
    text: str
    equations: list[int] = dataclasses.field(default_factory=list)
    how: str = "unknown"

    @property
    def _results(self) -> list[tuple[int, int]]:
        """The bytes and memory spaces of the results; the start of an operation has its operands in its type too."""
        sizes = list(sizes_of(self.type))
        if self.opcode == "copy-start":
            return sizes[:1]
        if self.opcode.endswith("-start") and len(sizes) > 1:
            return [max(sizes)]
        return sizes

    @property
    def in_main_memory(self) -> list[int]:
        """The bytes of each part of the result, 0 for one in another memory, such as a TPU's VMEM."""
        return [0 if space else size for size, space in self._results] or [0]

    @property
    def nbytes(self) -> int:
        """The bytes of the result, in whatever memory it is."""
        return sum(size for size, _ in self._results)


@dataclasses.dataclass
class Computation:
    """The instructions of a computation, in the order in which they run."""

    name: str
    is_entry: bool
    instructions: list[Instruction]


def sizes_of(type_text: str) -> Iterator[tuple[int, int]]:
    """The bytes of each array of a type, and the number of its memory space, 0 for the main one."""
    for kind, dims, layout in _SHAPE.findall(type_text):
        count = 1
        for size in filter(None, dims.split(",")):
            count *= int(size.lstrip("<="))
        space = re.search(r"S\((\d+)\)", layout)
        yield -(-count * _bits(kind) // 8), int(space[1]) if space else 0


def _bits(kind: str) -> int:
    if kind in ("pred", "token"):
        return 8 * (kind == "pred")
    return int(re.findall(r"\d+", kind)[0])


def read_hlo(text: str) -> tuple[list[str], list[Computation]]:
    """The lines of an optimized program without tables and metadata, and its computations."""
    tables = PlaceTables()
    lines: list[str] = []
    computations: list[Computation] = []
    for line in text.splitlines():
        if not tables.read(line) and (line or (lines and lines[-1])):
            lines.append(_without(line, "metadata", "backend_config", "frontend_attributes"))
            _read_line(line, len(lines) - 1, tables, computations)
    return lines, computations


def _read_line(line: str, row: int, tables: PlaceTables, computations: list[Computation]) -> None:
    if match := _COMPUTATION.match(line):
        if not line.startswith("HloModule"):
            computations.append(Computation(match[2], bool(match[1]), []))
    elif (match := _INSTRUCTION.match(line)) and computations:
        root, name, kind, opcode, rest = match.groups()
        arguments = rest[: _closing(rest)]
        calls = _CALLS.findall(rest) + [n.strip(" %") for b in _BRANCHES.findall(rest) for n in b.split(",")]
        shape = next(iter(_SHAPE.findall(kind)), None)
        dims = tuple(int(n.lstrip("<=")) for n in shape[1].split(",") if n) if shape else None
        origins = [o._replace(shape=dims) for o in _origins(rest, tables)]
        computations[-1].instructions.append(
            Instruction(name, opcode, kind, _OPERAND.findall(arguments), calls, origins, bool(root), row, line.strip())
        )


def _closing(text: str) -> int:
    """The position of the bracket that closes the operands."""
    depth = 1
    for i, letter in enumerate(text):
        depth += (letter in "({") - (letter in ")}")
        if not depth:
            return i
    return len(text)


def _without(line: str, *fields: str) -> str:
    """The line without these fields, whose values are in braces; strings may hold braces too."""
    for field in fields:
        start = line.find(f", {field}={{")
        if start >= 0:
            end, depth, quoted = start + len(field) + 4, 1, False
            while depth and end < len(line):
                quoted ^= line[end] == '"' and line[end - 1] != "\\"
                depth += 0 if quoted else (line[end] == "{") - (line[end] == "}")
                end += 1
            line = line[:start] + line[end:]
    return line


def _origins(text: str, tables: PlaceTables) -> list[Origin]:
    name, place = _NAME.search(text), tables.place(text)
    names = name[1].replace("\\'", "'").split(";") if name else [""]
    return [Origin(n, place if len(names) == 1 else None) for n in names if n or place]


# ---- links


class Links:
    """Finds the equations of operations by their names and source positions."""

    def __init__(self, equations: Sequence[Any]):
        self._by_place: dict[Place, list] = {}
        self._by_line: dict[tuple[str, int], list] = {}
        self._by_name: dict[str, list] = {}
        for e in equations:
            if e.places:
                file, line, _ = e.places[0]
                self._by_place.setdefault(e.places[0], []).append(e)
                self._by_line.setdefault((file, line), []).append(e)
            self._by_name.setdefault(e.label, []).append(e)

    def find(self, origins: Iterable[Origin | None]) -> tuple[list[int], str]:
        """The numbers of the equations of an operation, and what the links are made from."""
        found: dict[int, None] = {}
        kinds = []
        for origin in filter(None, origins):
            equations, how = self._of(origin)
            found.update(dict.fromkeys([e.number for e in equations]))
            kinds.append(how)
        known = [how for how in ("location", "line", "name") if how in kinds]
        return list(found), known[0] if known else "unknown"

    def _of(self, origin: Origin) -> tuple[list, str]:
        if origin.place is not None:
            exact = self._by_place.get(origin.place, [])
            if named := _longest(exact, origin):
                return named, "location"
            near = _longest(self._by_line.get(origin.place[:2], []), origin)
            calls = [e for e in exact if e.is_call]  # what a loop adds to its body
            if calls and not near:
                return calls, "location"
            return near or exact, "line" if near or exact else "unknown"
        ends = [e for label, group in self._by_name.items() if _ends(origin.name, label) for e in group]
        named = _longest(ends, origin)
        return named, "name" if named else "unknown"


def _ends(name: str, label: str) -> bool:
    return bool(label) and (name == label or name.endswith(f"/{label}"))


def _longest(equations: Sequence[Any], origin: Origin) -> list:
    """The equations whose label is the longest end of the name; of several those with the shape, if there are any."""
    fitting = [e for e in equations if _ends(origin.name, e.label)]
    longest = max((len(e.label) for e in fitting), default=0)
    fitting = [e for e in fitting if len(e.label) == longest]
    return [e for e in fitting if origin.shape in e.shapes] or fitting
