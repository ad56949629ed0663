"""Templates: the lines of operations that depend on types and parameters only, with gaps for names."""

import re
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from minijax.base import cache, config
from minijax.ir.binding import programs_in
from minijax.ir.types import Name

_NAME = re.compile(r"%(?:\d+|[a-z]\w*)")  # the name of a value in a line
_STEM = re.compile(r"%([a-z]+)(?:_\d+)?")
_NONE: tuple[()] = ()
_SEEN: Any = "seen once"
_NUMBERED, _ARGUMENT = 0, 1
_by_program = cache.BoundedDict(64)  # (platforms, options) -> {operation: its template}


class Line(NamedTuple):
    """A line: its text with `%s` for names, the places of these names, and the kinds of those that it defines.

    The places count the operands, then the names that lines define. A name is numbered, that of an argument of a block,
    or has a stem.
    """

    text: str
    places: tuple[int, ...]
    defined: tuple[int | str, ...]


class Lines(NamedTuple):
    """The lines of an operation, and its results: the places of their names, and what follows the name."""

    lines: tuple[tuple[str, Callable[[list], Any] | None, tuple], ...]  # as `Line`, with a function that picks names
    results: tuple[tuple[int, str], ...]


Template = str | Lines | tuple[()]  # the text of one numbered line with the operands in order; any lines; or none


def templates_for(e: Any) -> dict | None:
    """The templates of a program's emitter; None if what operations print may depend on more than their types."""
    if (
        e.rule_of is not None
        or e.explicit is not None
        or e.manual is not None
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
    """The template of an operation; () if it must be lowered by itself.

    The key tells 1, 1.0 and True apart as parameters, but not inside tuples, where operations have ints only.
    """
    outs = (outvars[0].aval,) if len(outvars) == 1 else tuple([v.aval for v in outvars])
    try:
        if params:
            key = (primitive, *outs, *ins, *params.items(), *map(type, params.values()))
        else:
            key = (primitive, *outs, *ins)
        known = templates.get(key)
    except TypeError:  # a parameter has no hash
        return _NONE
    if known is None:
        # A stored key would keep a program alive, and 0.0 and -0.0 are equal in one.
        if next(programs_in(params.values()), None) is None and not _has_float(params.values()):
            templates[key] = _SEEN
        return _NONE
    if known is _SEEN:  # most operations of a program that is lowered once occur once
        known = templates[key] = _learned(type(e)(*e.platforms), primitive, ins, outs, params)
    return known


def _has_float(values: Iterable) -> bool:
    return any(isinstance(x, float | complex) or isinstance(x, tuple | list) and _has_float(x) for x in values)


def _learned(probe: Any, primitive: Any, ins: Sequence, outs: Sequence, params: dict) -> Template:
    """The template of what the primitive prints to a new emitter, for operands with names of their own."""
    operands = [f"%operand{i}" for i in range(len(ins))]
    results = _printed(probe, primitive, ins, outs, operands, params)
    places, counts = {x: i for i, x in enumerate(operands)}, [0, 0]
    lines: list[Any] = [_line(line, probe._in, places, counts) for line in probe.lines]
    found: list[Any] = [_NAME.match(x) for x in results]
    if not results or None in lines or None in found or min([places.get(m[0], -1) for m in found]) < len(operands):
        return _NONE
    in_order = (len(operands), *range(len(operands)))
    if ([x[1:] for x in lines], list(results)) == ([(in_order, (_NUMBERED,))], ["%0"]):
        return lines[0].text.removeprefix("%s = ")
    picking = [(x.text, itemgetter(*x.places) if x.places else None, x.defined) for x in lines]
    return Lines(tuple(picking), tuple([(places[m[0]], m.string[m.end() :]) for m in found]))


def _printed(probe: Any, primitive: Any, ins: Sequence, outs: Sequence, operands: list, params: dict) -> Sequence[Name]:
    """Lowers the operation to a new emitter. Returns the names of its results; none if it did more than print lines."""
    before = list(probe.functions), list(probe.preamble)
    try:
        results = primitive.lower(probe, ins, outs, *operands, **params)
    except Exception:
        return ()  # the operation raises again where it is lowered
    others = probe.marks, probe.tokens, probe.callbacks, probe.watchers, probe._called
    is_pure = not any(others) and (probe.functions, probe.preamble) == before
    return results if is_pure and probe.lines else ()


def _line(line: str, indent: str, places: dict[str, int], counts: list[int]) -> Line | None:
    """The template of a line; adds the names that it defines to `places`. None if it has another form."""
    used, defined = _NAME.findall(line), []
    for x in used:
        if x not in places:
            defined.append(_kind(x, counts))
            places[x] = len(places)
    if None in defined or len(used) != line.count("%") or not line.startswith(indent):
        return None
    return Line(_NAME.sub("%s", line[len(indent) :]), tuple([places[x] for x in used]), tuple(defined))


def _kind(name: str, counts: list[int]) -> int | str | None:
    """The kind of a name that the emitter's next request for one returned; None for any other."""
    if name == f"%{counts[_NUMBERED]}" or name == f"%arg{counts[_ARGUMENT]}":
        kind = _NUMBERED if name[1:].isdigit() else _ARGUMENT
        counts[kind] += 1
        return kind
    stem = _STEM.fullmatch(name)
    return None if stem is None or stem[1] == "arg" else stem[1]


def emitted(e: Any, template: Any, operands: Sequence) -> list[Name]:
    """Emits the lines of a template, and returns the names of the results."""
    names, lines, indent = list(operands), e.lines, e._in
    for text, pick, defined in template.lines:
        for kind in defined:
            if kind == _NUMBERED:
                n = e._n = e._n + 1
                names.append(f"%{n}")
            else:
                names.append(*e.block_args(1) if kind == _ARGUMENT else (e._stemmed(kind),))
        lines.append(indent + text if pick is None else indent + text % pick(names))
    return [names[i] + rest for i, rest in template.results]
