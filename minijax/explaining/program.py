"""The record of what a program became: equations, texts with links between them, costs, memory and shardings."""

from __future__ import annotations

import dataclasses
import html
import json
import linecache
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from minijax.api.stages import Compiled, Traced
from minijax.base import source, tree
from minijax.base.html import amount
from minijax.explaining.costs import bytes_of, flops_of
from minijax.explaining.memory import Buffer, Memory, memory_of
from minijax.explaining.texts import Computation, Instruction, Line, Links, Origin, Place, read_hlo, read_module
from minijax.ir.jaxpr import JaxprEqn, jaxprs_in_params
from minijax.ir.show import lines_with_equations
from minijax.partition.shardings import NamedSharding

_TEMPLATE = Path(__file__).with_name("program.html")
_AROUND = 2  # lines of source shown around those that equations have
_NO_OPERATION = ("parameter", "constant", "tuple", "get-tuple-element", "bitcast")
_CALL, _FUNCTION = re.compile(r"\bcall @(\w+)\("), re.compile(r"^\s+\S+ (?:private|public) @(\w+)\(")
_COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-", "ragged-all-to-all")


@dataclasses.dataclass
class Equation:
    """An equation of a jaxpr, inner ones included, with its costs by simple rules."""

    number: int
    name: str
    text: str
    label: str
    places: list[Place]  # innermost first
    flops: int | None
    nbytes: int
    is_call: bool  # whether its costs are those of the equations of its body
    types: list[str]
    shapes: list[tuple[int, ...]]
    fusions: list[str] = dataclasses.field(default_factory=list)
    seconds: float | None = None

    @property
    def source(self) -> str:
        """The innermost user line, or "unknown"."""
        return f"{os.path.basename(self.places[0][0])}:{self.places[0][1]}" if self.places else "unknown"


@dataclasses.dataclass
class Operation:
    """A fusion or a collective of the optimized program."""

    name: str
    kind: str
    nbytes: int
    equations: list[int]
    sources: list[str]


class Page:
    """The base of what a page shows: notebooks show `html()`."""

    def html(self) -> str:
        raise NotImplementedError

    def save(self, path: str | os.PathLike) -> None:
        """Writes the page to a file."""
        Path(path).write_text(self.html(), encoding="utf-8")

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        whole = html.escape(self.html(), quote=True)
        return {"text/html": f'<iframe srcdoc="{whole}" style="width:100%;height:760px;border:0"></iframe>'}


@dataclasses.dataclass
class Program(Page):
    """Holds what a program became: `minijax.explain` returns it; notebooks show its page, and `save` writes it.

    Each line of `source`, `jaxpr`, `stablehlo` and `hlo` has the numbers of its equations. `fits` is False,
    and `error` says why, if the program does not fit into the memory of the device it was compiled for; `hlo` is empty
    if the compiler therefore refused it.
    """

    name: str
    device: str
    num_devices: int
    equations: list[Equation]
    source: list[Line]
    jaxpr: list[Line]
    stablehlo: list[Line]
    hlo: list[Line]
    fusions: list[Operation]
    collectives: list[Operation]
    memory: Memory
    xla_memory: dict[str, int]
    costs: dict[str, float]
    shardings: list[tuple[str, str, str]]
    fits: bool
    error: str = ""

    def html(self) -> str:
        """Returns the page."""
        lines = {key: [dataclasses.astuple(x) for x in getattr(self, key)] for key in COLUMNS}
        rest = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in COLUMNS}
        rest["equations"] = [dataclasses.asdict(e) | {"source": e.source} for e in self.equations]
        rest["fusions"] = [dataclasses.asdict(x) for x in self.fusions]
        rest["collectives"] = [dataclasses.asdict(x) for x in self.collectives]
        rest["memory"] = dataclasses.asdict(self.memory) | {"peakStep": self.memory.peak_step}
        return page(_TEMPLATE, self.name, {**rest, "columns": lines})

    def __repr__(self):
        flops, nbytes = self.costs.get("flops", 0), self.costs.get("bytes accessed", 0)
        devices = f"{self.num_devices} × {self.device}" if self.num_devices > 1 else self.device
        lines = [f"{self.name} on {devices}: equations: {len(self.equations)}, fusions: {len(self.fusions)}"]
        if not self.fits:
            return "\n".join([*lines, f"  does not fit: {self.error.splitlines()[0]}"])
        lines.append(f"  XLA's costs: {flops:.4g} flops, {amount(max(nbytes, 0))} accessed")
        lines.append(f"  peak: {amount(self.memory.peak)} at {self._peak_name()}; alive there:")
        for b in self.memory.at_peak[:5]:
            lines.append(f"    {amount(b.nbytes)} {b.kind} {b.name}{_made_by(b)}")
        lines += [
            f"  {c.kind} {c.name}: {amount(c.nbytes)} ({', '.join(c.sources) or 'unknown'})" for c in self.collectives
        ]
        dear = sorted((e for e in self.equations if not e.is_call), key=lambda e: -(e.seconds or 0) - (e.flops or 0))
        for e in dear[:5]:
            time = "" if e.seconds is None else f", {e.seconds * 1e6:.4g} us"
            flops = "flops unknown" if e.flops is None else f"{e.flops:.4g} flops"
            lines.append(f"  {e.name} {' '.join(e.types)}: {flops}, {amount(e.nbytes)}{time} ({e.source})")
        return "\n".join(lines)

    def _peak_name(self) -> str:
        return self.memory.steps[self.memory.peak_step] if self.memory.steps else "no step"


def _made_by(buffer: Buffer) -> str:
    made = ", ".join(buffer.sources)
    return f" ({made or 'unknown'})" if made or buffer.kind != "argument" else ""


COLUMNS = ("source", "jaxpr", "stablehlo", "hlo")


def page(template: Path, title: str, data: dict[str, Any]) -> str:
    """The page of a template with its data."""
    text = json.dumps(data, default=str, allow_nan=False).replace("<", "\\u003c")
    return template.read_text(encoding="utf-8").replace("{{title}}", html.escape(title)).replace("{{data}}", text)


def read_jaxpr(jaxpr: Any) -> tuple[list[Line], list[Equation], list[JaxprEqn]]:
    """The lines of a jaxpr and its equations in their order, inner ones included."""
    rows = lines_with_equations(jaxpr)
    found = {id(eqn): eqn for _, begun in rows for eqn in begun}
    numbers = {key: n for n, key in enumerate(found)}
    positions = source.Positions()
    equations = [_equation(n, eqn, positions) for n, eqn in enumerate(found.values())]
    lines, opened = [], []
    for text, begun in rows:
        indent = len(text) - len(text.lstrip())
        while opened and (indent < opened[-1][0] or (begun and indent == opened[-1][0])):
            opened.pop()
        opened += [(indent, numbers[id(eqn)]) for eqn in begun]
        mine = [n for _, n in opened[-1:]]
        lines.append(Line(text, mine, "location" if mine else ""))
        for n in mine:
            own = equations[n].text
            equations[n].text = f"{own}\n{text}" if own else text.strip()
    return lines, equations, list(found.values())


def _equation(number: int, eqn: JaxprEqn, positions: source.Positions) -> Equation:
    places = [(p.file, p.line, p.column) for p in positions(eqn.traceback)]
    if not places:  # the body was transformed: it has the line of the call alone
        places = [(f.file_name, f.line_num, -1) for f in source.user_frames(eqn.traceback)[:1]]
    label = eqn.primitive.label(eqn.ctx.name_stack, eqn.params)
    types = [v.aval.str_short(True) for v in eqn.outvars]
    shapes = [tuple(getattr(v.aval, "shape", ())) for v in eqn.outvars]
    is_call = any(True for _ in jaxprs_in_params(eqn.params))
    return Equation(
        number, eqn.primitive.name, "", label, places, flops_of(eqn), bytes_of(eqn), is_call, types, shapes
    )  # fmt: skip


def source_lines(equations: Sequence[Equation]) -> list[Line]:
    """The user's lines that equations come from and those around them, innermost files first."""
    users: dict[str, dict[int, list[int]]] = {}
    for e in equations:
        for file, line, _ in e.places:
            mine = users.setdefault(file, {}).setdefault(line, [])
            if e.number not in mine:
                mine.append(e.number)
    lines = []
    for file, rows in users.items():
        texts = linecache.getlines(file)
        lines.append(Line(file))
        shown = sorted({n for row in rows for n in range(row - _AROUND, row + _AROUND + 1) if 0 < n <= len(texts)})
        for n in shown or sorted(rows):
            if n - 1 not in shown and len(lines) > 1 and lines[-1].text != file:
                lines.append(Line("   ⋮"))
            text = texts[n - 1].rstrip() if shown else "(this source is not available)"
            mine = rows.get(n, [])
            lines.append(Line(f"{n:4} {text}", mine, "location" if mine else ""))
    return lines


def sources_of(numbers: Sequence[int], equations: Sequence[Equation]) -> list[str]:
    """The source lines of equations, each once."""
    return list(dict.fromkeys(equations[n].source for n in numbers if equations[n].places))


def build(traced: Traced, stablehlo: str, compiled: Compiled | None, optimized: str, devices: Sequence) -> Program:
    """Describes a traced, lowered and compiled function; without the compiled one if it did not fit."""
    jaxpr, equations, _ = read_jaxpr(traced.jaxpr)
    links = Links(equations)
    module = [_module_line(text, origin, links) for text, origin in read_module(stablehlo)]
    _link_functions(module)
    texts, computations = read_hlo(optimized)
    hlo = [Line(text) for text in texts]
    _link(computations, links, hlo)
    operations = [op for c in computations for op in c.instructions]
    fusions = [_operation(op, _kind(op), equations) for op in operations if op.opcode == "fusion"]
    collectives = [
        _operation(op, op.opcode.removesuffix("-start"), equations) for op in operations if _is_collective(op.opcode)
    ]
    for fusion in fusions:
        for n in fusion.equations:
            equations[n].fusions.append(fusion.name)
    kind = devices[0].device_kind if devices else "unknown"
    memory = memory_of(computations, texts[0] if texts else "")
    for b in memory.buffers:
        b.sources = sources_of(b.equations, equations)
    return Program(
        traced.fun_name, kind, max(len(devices), 1), equations, source_lines(equations),
        jaxpr, module, hlo, fusions, collectives, memory, _xla_memory(compiled), _costs(compiled),
        _shardings(traced, compiled), compiled is not None,
    )  # fmt: skip


def _operation(op: Instruction, kind: str, equations: Sequence[Equation]) -> Operation:
    return Operation(op.name, kind, op.nbytes, op.equations, sources_of(op.equations, equations))


def _is_collective(opcode: str) -> bool:
    return opcode.startswith(_COLLECTIVES) and not opcode.endswith("-done")


def _module_line(text: str, origin: Origin | None, links: Links) -> Line:
    numbers, how = links.find([origin]) if origin else ([], "unknown")
    is_operation = re.match(r"\s+%\S+ = (?!\S*\bconstant )", text)
    return Line(text, numbers, how if numbers or is_operation else "")


def _link_functions(module: Sequence[Line]) -> None:
    """Links what has no location of its own in a function to the equations that call the function."""
    callers: dict[str, dict[int, None]] = {}
    for line in module:
        if match := _CALL.search(line.text):
            callers.setdefault(match[1], {}).update(dict.fromkeys(line.equations))
    function = ""
    for line in module:
        if match := _FUNCTION.match(line.text):
            function = match[1]
        elif line.how == "unknown" and callers.get(function):
            line.equations, line.how = list(callers[function]), "line"


def _link(computations: Sequence[Computation], links: Links, hlo: Sequence[Line]) -> None:
    """Links instructions to equations; a fusion is linked to those of all that is in it."""
    by_name = {c.name: c for c in computations}
    for op in (op for c in computations for op in c.instructions):
        inner = [i for name in op.calls for i in by_name[name].instructions] if op.opcode in ("fusion", "call") else []
        origins = [o for i in [op, *inner] if i.opcode != "parameter" for o in i.origins]
        op.equations, op.how = links.find(origins)
        if op.how == "unknown" and op.opcode in _NO_OPERATION:
            op.how = ""
        hlo[op.row].equations, hlo[op.row].how = op.equations, op.how


def _kind(op: Instruction) -> str:
    return op.text.partition("kind=")[2].partition(",")[0] or "fusion"


def _xla_memory(compiled: Compiled | None) -> dict[str, int]:
    stats = compiled and compiled.memory_analysis()
    names = ("argument", "output", "alias", "temp", "generated_code")
    return {name: getattr(stats, f"{name}_size_in_bytes") for name in names} if stats else {}


def _costs(compiled: Compiled | None) -> dict[str, float]:
    costs = (compiled and compiled.cost_analysis()) or {}
    return {name: costs[name] for name in ("flops", "bytes accessed", "transcendentals") if costs.get(name, -1) >= 0}


def _spelled(sharding: Any) -> str:
    """The spec of a sharding and the mesh that it is over, or the sharding."""
    if not isinstance(sharding, NamedSharding):
        return str(sharding)
    return f"{sharding.spec} over {', '.join(f'{name}={n}' for name, n in sharding.mesh.shape.items())}"


def _shardings(traced: Traced, compiled: Compiled | None) -> list[tuple[str, str, str]]:
    """The shardings of arguments and results as (name, type, sharding), where the program runs on several devices."""
    if compiled is None:
        return []
    leaves = lambda x: tree.tree_leaves(x, is_leaf=lambda s: s is None)  # noqa: E731
    ins, outs = leaves(compiled.input_shardings), leaves(compiled.output_shardings)
    names = traced._arg_names if len(traced._arg_names) == len(ins) else [f"argument {i}" for i in range(len(ins))]
    rows = [
        (name, aval.str_short(True), "unused" if s is None else _spelled(s))
        for name, aval, s in zip(names, traced._flat_avals, ins, strict=False)
    ]
    rows += [
        (f"result {i}", aval.str_short(True), _spelled(s))
        for i, (aval, s) in enumerate(zip(traced._out_avals, outs, strict=False))
    ]
    return rows if any(s is not None and len(s.device_set) > 1 for s in [*ins, *outs]) else []
