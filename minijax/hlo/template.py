"""Templates: the lines of operations that depend on types and parameters only, with gaps for names."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from minijax.base import cache, config
from minijax.ir.types import Name

_NAME = re.compile(r"%(?:\d+|[a-z]\w*)")  # the name of a value in a line
_NUMBERED = re.compile(r"%\d+")
_STEM = re.compile(r"%([a-z]+)(?:_\d+)?")
_NONE = ()
_by_program = cache.BoundedDict(64)  # (platforms, options) -> {operation: its template}


class Line(NamedTuple):
    """A line with one result: its text with `%s` for names, the places of these names, and the stem of the result's.

    The places count the operands, then the results of earlier lines. `stem` is None for a numbered result.
    """

    text: str
    places: tuple[int, ...]
    stem: str | None


Template = str | tuple[Line, ...]  # the text of one numbered line with the operands in their order, or any lines


def templates_for(e: Any) -> dict | None:
    """The templates of a program's emitter; None if what operations print may depend on more than their types."""
    if (
        e.rule_of is not None
        or e.explicit is not None
        or e.manual is not None
        or e.num_partitions > 1
        or e.for_export
        or e.is_polymorphic
        or e.reduction is not None
    ):
        return None
    key = e.platforms, config.state()
    known = _by_program.get(key)
    if known is None:
        _by_program[key] = known = {}
    if len(known) > 1 << 15:
        known.clear()
    return known


def template_of(e: Any, templates: dict, primitive: Any, ins: Sequence, outvars: Sequence, params: dict) -> Template:
    """The lines of an operation with one result; () if it must be lowered by itself."""
    if len(outvars) != 1:
        return _NONE
    out = outvars[0].aval
    try:
        key = (primitive, out, *ins, *params.items()) if params else (primitive, out, *ins)
        known = templates.get(key)
    except TypeError:  # a parameter has no hash
        return _NONE
    if known is None:
        known = templates[key] = _learned(type(e)(*e.platforms), primitive, ins, [out], params)
    return known


def _learned(probe: Any, primitive: Any, ins: Sequence, outs: Sequence, params: dict) -> Template:
    """The template of what the primitive prints to a new emitter, for operands with names of their own."""
    operands = [f"%operand{i}" for i in range(len(ins))]
    functions, preamble = list(probe.functions), list(probe.preamble)
    try:
        (result,) = primitive.lower(probe, ins, outs, *operands, **params)
    except Exception:
        return _NONE  # the operation raises again where it is lowered
    kept = probe.functions == functions and probe.preamble == preamble and not (probe.marks or probe.tokens)
    if not kept or probe.callbacks or probe.watchers or probe._called:
        return _NONE
    known, lines = {x: i for i, x in enumerate(operands)}, []
    for line in probe.lines:
        name, equals, text = line.removeprefix(probe._in).partition(" = ")
        used = _NAME.findall(text)
        stem, numbered = _STEM.fullmatch(name), _NUMBERED.fullmatch(name)
        if not equals or not (stem or numbered) or name in known or not all([x in known for x in used]):
            return _NONE
        stem = None if stem is None else stem[1]
        if stem is None and name != f"%{sum([line.stem is None for line in lines])}":
            return _NONE
        places = tuple([known[x] for x in used])
        if len(used) != text.count("%"):
            return _NONE
        lines.append(Line(_NAME.sub("%s", text), places, stem))
        known[name] = len(known)
    if not lines or known.get(result) != len(known) - 1:
        return _NONE
    if len(lines) == 1 and lines[0].places == tuple(range(len(operands))) and lines[0].stem is None:
        return lines[0].text
    return tuple(lines)


def emitted(e: Any, template: tuple[Line, ...], operands: Sequence[Name]) -> Name:
    """Emits the lines of a template, and returns the name of the last result."""
    names, name = list(operands), ""
    for text, places, stem in template:
        if stem is None:
            n = e._n = e._n + 1
            name = f"%{n}"
        else:
            name = e._stemmed(stem)
        e.lines.append(f"{e._in}{name} = {text % tuple([names[i] for i in places])}")
        names.append(name)
    return name
