"""Source maps (revision 3): from each line of a printed jaxpr, StableHLO or HLO module to a line of the user's code."""

import dataclasses
import enum
import functools
import json
import re
import tempfile
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from minijax.api.jit import jit, make_jaxpr
from minijax.ir.jaxpr import ClosedJaxpr
from minijax.ir.show import lines_with_locations
from minijax.run.programs.compile import compile_text
from minijax.run.programs.hlo_places import PlaceTables

Segment = tuple[int, ...]  # generated column, index of the source, its line and column, index of a name
Place = tuple[str, int, int]  # file, line and column, both from 0

_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def _encoded(segment: Segment) -> str:
    """Encodes the numbers of a segment as base 64 digits (VLQ), five bits each, the lowest first."""
    text = ""
    for value in segment:
        rest = (abs(value) << 1) | (value < 0)
        while rest > 31:
            text, rest = text + _DIGITS[rest & 31 | 32], rest >> 5
        text += _DIGITS[rest]
    return text


def _decoded(text: str) -> Segment:
    values, value, shift = [], 0, 0
    for digit in map(_DIGITS.index, text):
        value, shift = value | (digit & 31) << shift, shift + 5
        if digit < 32:
            values.append(-(value >> 1) if value & 1 else value >> 1)
            value = shift = 0
    return tuple(values)


@dataclasses.dataclass(frozen=True)
class SourceMap:
    """A source map; `mappings` is a list of segments for each line, with numbers relative to the preceding ones."""

    version: int
    sources: Sequence[str]
    sources_content: Sequence[str]
    names: Sequence[str]
    mappings: Sequence[Sequence[Segment]]

    @classmethod
    def from_json(cls, json_data: str) -> "SourceMap":
        """Parses a map from JSON."""
        d = json.loads(json_data)
        lines = [[_decoded(s) for s in line.split(",") if s] for line in d["mappings"].split(";")]
        return cls(d["version"], d["sources"], d["sourcesContent"], d["names"], lines)

    def to_json(self) -> str:
        """Returns the map as JSON."""
        lines = ";".join(",".join(map(_encoded, line)) for line in self.mappings)
        contents = {"sourcesContent": self.sources_content, "names": self.names, "mappings": lines}
        return json.dumps({"version": self.version, "sources": self.sources, **contents})


class MappingsGenerator:
    """Builds the mappings of a source map from absolute numbers, line by line."""

    def __init__(self):
        self._lines: list[list[Segment]] = []
        self._last = [0, 0, 0, 0, 0]

    def new_group(self) -> None:
        """Begins a line."""
        self._lines.append([])
        self._last[0] = 0

    def new_segment(self, *seg: int) -> None:
        """Adds a segment to the current line. Raises RuntimeError before the first line."""
        if not self._lines:
            raise RuntimeError("No current group. Forgot to call new_group()?")
        self._lines[-1].append(tuple([new - old for new, old in zip(seg, self._last, strict=False)]))
        self._last[: len(seg)] = seg

    def mappings(self) -> list[list[Segment]]:
        """Returns the lines so far."""
        return self._lines


def _map_of(lines: Sequence[str], places: Iterable[Place | None], contents: bool = False) -> SourceMap:
    """Returns the map of a text, given a place or None for each line."""
    sources: dict[str, int] = {}
    made = MappingsGenerator()
    for line, place in zip(lines, places, strict=True):
        made.new_group()
        if place is not None:
            number = sources.setdefault(canonicalize_filename(place[0]), len(sources))
            made.new_segment(_indent(line), number, *place[1:])
    made.new_group()
    return SourceMap(3, list(sources), [""] * len(sources) if contents else [], [], made.mappings())


def canonicalize_filename(file_name: str) -> str:
    """Returns the name of a source file in maps."""
    return file_name


# ---- passes -----------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class SourceMapDump:
    """A printed program and its map."""

    source_map: SourceMap
    generated_code: str
    pass_name: str


class CompileFn(Protocol):
    """Builds the object that a pass prints from a function and its arguments."""

    def __call__(self, work_dir: str, fn: Callable, f_args: Sequence, f_kwargs: dict, **kwargs: Any) -> Any: ...


class GenerateDumpFn(Protocol):
    """Prints that object, and makes its map."""

    def __call__(self, compile_result: Any, **kwargs: Any) -> SourceMapDump: ...


@dataclasses.dataclass(frozen=True)
class Pass:
    """One printed form of functions, such as jaxprs or StableHLO."""

    name: str
    compile_fn: CompileFn
    generate_dump: GenerateDumpFn


_passes: dict[str, Pass] = {}


def register_pass(pass_: Pass) -> None:
    """Registers a pass. Raises ValueError if its name is taken."""
    if pass_.name in _passes:
        raise ValueError(f"Pass {pass_.name} already registered")
    _passes[pass_.name] = pass_


def all_passes() -> Sequence[Pass]:
    """Returns the registered passes."""
    return list(_passes.values())


def filter_passes(regex: str) -> Sequence[Pass]:
    """Returns the passes whose names begin with a match of the pattern."""
    return [p for p in _passes.values() if re.match(regex, p.name)]


class SourceMapGeneratorFn(Protocol):
    """Maps the arguments of a function to the printed program and map of each pass."""

    def __call__(self, *args: Any, **kwargs: Any) -> Sequence[SourceMapDump]: ...


def generate_sourcemaps(f: Callable, passes: Sequence[Pass], **pass_kwargs: Any) -> SourceMapGeneratorFn:
    """Returns a function of the arguments of `f` that returns the printed program and map of each pass."""

    @functools.wraps(f)
    def of(*args, **kwargs):
        with tempfile.TemporaryDirectory() as folder:
            results = [p.compile_fn(folder, f, args, kwargs, **pass_kwargs) for p in passes]
            return [p.generate_dump(x, **pass_kwargs) for p, x in zip(passes, results, strict=True)]

    return of


# ---- jaxprs -----------------------------------------------------------------------------------------


def compile_jaxpr(work_dir: str, f: Callable, f_args: Sequence, f_kwargs: dict, **_: Any) -> ClosedJaxpr:
    """Returns the jaxpr of a function."""
    return make_jaxpr(f)(*f_args, **f_kwargs)


def make_jaxpr_dump(jaxpr: Any, **_: Any) -> SourceMapDump:
    """Prints a jaxpr, with a map from the lines of each equation to its source position."""
    lines_and_places, places = lines_with_locations(jaxpr), []
    enclosing: list[tuple[int, Place | None]] = []  # (indentation, place) of the equations around a line
    for line, summaries in lines_and_places:
        depth = _indent(line)
        while enclosing and depth + line.lstrip().startswith("]") <= enclosing[-1][0]:
            enclosing.pop()
        if summaries:
            enclosing.append((depth, _place(summaries[0])))
        places.append(enclosing[-1][1] if enclosing else None)
    lines = [line for line, _ in lines_and_places]
    return SourceMapDump(_map_of(lines, places), "\n".join(lines), "jaxpr")


def _indent(line: str) -> int:
    """Returns the column at which an operation begins."""
    return line.index(" let ") + 5 if " let " in line and line[0] == "{" else len(line) - len(line.lstrip())


def _place(summary: str) -> Place | None:
    line = re.fullmatch(r"(.*):(\d+):(\d+) \(.*\)", summary)
    return (line[1], int(line[2]) - 1, int(line[3])) if line else None


# ---- StableHLO --------------------------------------------------------------------------------------


class Location(NamedTuple):
    """A line and column of a file, the line counted from 1."""

    file: str
    line: int
    col: int


class Redirect(NamedTuple):
    """A location that refers to another one."""

    tgt_id: int


_FILE = r"\"(?P<file>[^\"]*)\":(?P<line>[0-9]+):(?P<col>[0-9]+)( to (?P<endlineno>[0-9]+)?:(?P<endcolno>[0-9]+))?"
SRC_REGEX = re.compile(rf"#loc(?P<id>[0-9]+) = loc\((\"(?P<scope>[^\"]*)\"\()?{_FILE}\)")
SCOPED_REGEX = re.compile(r"#loc(?P<id>[0-9]+) = loc\(\"(?P<scope>.*)\"\(#loc(?P<tgt_id>[0-9]+)\)\)")
CALLSITE_REGEX = re.compile(r"#loc(?P<id>[0-9]+) = loc\(callsite\(#loc(?P<callee>[0-9]+) at #loc(?P<caller>[0-9]+)\)\)")
LOC_REGEX = re.compile(r"loc\(#loc(?P<id>[0-9]+)\)")


def parse_mlir_locations(mlir_dump: list[str]) -> tuple[dict[int, Segment], list[str]]:
    """Returns the segments of the locations of a module, by number, and the names of the files."""
    known: dict[int, Location | Redirect] = {}
    for line in mlir_dump:
        if match := SRC_REGEX.match(line):
            known[int(match["id"])] = Location(match["file"], int(match["line"]), int(match["col"]))
        elif match := SCOPED_REGEX.match(line):
            known[int(match["id"])] = Redirect(int(match["tgt_id"]))
        elif match := CALLSITE_REGEX.match(line):
            known[int(match["id"])] = Redirect(int(match["callee"]))
    segments, sources = {}, {}
    for number, location in known.items():
        while isinstance(location, Redirect) and location.tgt_id in known:
            location = known[location.tgt_id]
        if isinstance(location, Location) and location.file != "-":  # "-" is the module itself, without a source
            place = sources.setdefault(location.file, len(sources))
            segments[number] = (0, place, location.line - 1, location.col)
    return segments, list(sources)


def create_mlir_sourcemap(mlir_dump: str) -> SourceMap:
    """Returns the map of a module that was printed with locations."""
    lines = mlir_dump.split("\n")
    segments, files = parse_mlir_locations(lines)

    def place(line):
        match = None if line.startswith("#loc") else LOC_REGEX.search(line)
        segment = segments.get(int(match["id"])) if match else None
        return segment and (files[segment[1]], *segment[2:])

    return _map_of(lines, map(place, lines), contents=True)


# ---- HLO --------------------------------------------------------------------------------------------


class HloPass(enum.Enum):
    """The passes between a function and its executable."""

    STABLE_HLO = "hlo:stable-hlo"
    ORIGINAL = "hlo:original"
    OPTIMIZED = "hlo:optimized"


METADATA_REGEX = re.compile(
    r"metadata={.*op_name=\"(?P<scope>.*)\" source_file=\"(?P<src_file>.*)\" source_line=(?P<src_line>[0-9]+).*?}"
)


def parse_hlo_dump(text: str) -> SourceMap:
    """Returns the map of an HLO module with source positions in its instructions or its table of stack frames."""
    return map_of_hlo(text.split("\n"))


def map_of_hlo(lines: Sequence[str]) -> SourceMap:
    """Like `parse_hlo_dump`, for the module's lines."""
    tables = PlaceTables()
    places = [None if tables.read(line) else tables.place(line) for line in lines]
    return _map_of(lines, [place and (place[0], place[1] - 1, 0) for place in places])


def trace_and_lower(work_dir: str, f: Callable, f_args: Sequence, f_kwargs: dict, **_: Any) -> tuple[Any, str]:
    """Returns the lowered function, and the working directory."""
    return jit(lambda *args, **kwargs: f(*args, **kwargs)).lower(*f_args, **f_kwargs), work_dir


def stable_hlo_generate_dump(args: tuple[Any, str], **_: Any) -> SourceMapDump:
    """Prints the StableHLO of a lowered function, with its map."""
    text = args[0].compiler_ir().operation.get_asm(enable_debug_info=True)  # MLIR numbers all locations
    return SourceMapDump(create_mlir_sourcemap(text), text, HloPass.STABLE_HLO.value)


def original_hlo_generate_dump(args: tuple[Any, str], **_: Any) -> SourceMapDump:
    """Prints the HLO of a lowered function before optimization, with its map."""
    text = args[0].as_text("hlo", debug_info=True)
    return SourceMapDump(parse_hlo_dump(text), text, HloPass.ORIGINAL.value)


def optimized_generate_dump(
    args: tuple[Any, str], xla_compiler_flags: dict[str, Any] | None = None, **_: Any
) -> SourceMapDump:
    """Prints the HLO of a lowered function, optimized by XLA with these options, with its map."""
    lowered = args[0]
    devices = lowered._program.placement.devices
    text = compile_text(lowered.as_text(debug_info=True), devices=devices, options=xla_compiler_flags or {}).as_text()
    return SourceMapDump(parse_hlo_dump(text), text, HloPass.OPTIMIZED.value)


_DUMPS: Sequence[GenerateDumpFn] = (stable_hlo_generate_dump, original_hlo_generate_dump, optimized_generate_dump)
register_pass(Pass("jaxpr", compile_jaxpr, make_jaxpr_dump))
for _kind, _dump in zip(HloPass, _DUMPS, strict=True):
    register_pass(Pass(_kind.value, trace_and_lower, _dump))
