"""Prints jaxprs: names variables and breaks lines.

A jaxpr becomes a flat list of tokens, which one loop breaks into lines: nested jaxprs need no recursion.
A primitive may define how its equations are printed, by attributes that all have defaults:
`show_params(eqn)` returns the parameters to print, as pairs (None: all, sorted);
`inherits_names` is the parameter whose jaxpr is printed with the names of the operands and results;
`show_eqn(eqn, name)` returns the whole text, where `name(atom, typed)` gives the names of operands and results, and
`mark_reference(text)` marks the part of a reference that is read or written.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator
from types import GeneratorType
from typing import Any, NamedTuple

from minijax.base import html, source
from minijax.ir.atoms import Atom, DropVar, Literal, Var
from minijax.ir.context import path

_WIDTH = 80
_MAX_INLINE_EQNS = 10
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class _Break(NamedTuple):
    """A line break, or the text `flat` if its group fits on the line."""

    flat: str


class _Note(NamedTuple):
    """A remark printed to the right of the line that it falls on, or the equation that begins there."""

    text: Any


class _Styled(str):
    """Text in a colour."""

    __slots__ = ("style",)
    style: str


# Marks within texts: each sets the colour, a terminal code, of the text up to the next mark.
_PLAIN, _KEYWORD, _TYPE, _PLACE = "\0\1\2\3"
_CODES = {_PLAIN: ("39", "22"), _KEYWORD: ("34", "1"), _TYPE: ("35", "22"), _PLACE: ("32", "22")}
_MARKS, _ESCAPES = re.compile(f"([{_PLAIN}{_KEYWORD}{_TYPE}{_PLACE}])"), re.compile("\x1b\\[[0-9;]*m")


def mark_reference(text: str) -> str:
    """Marks the text of the part of a reference that is read or written, which is coloured."""
    return f"{_PLACE}{text}{_PLAIN}"


_OPEN, _CLOSE, _INDENT, _DEDENT = object(), object(), object(), object()
_SPACE, _EMPTY, _SEMICOLON = _Break(" "), _Break(""), _Break("; ")
_NEVER_FLAT = _Break(" " * 100_000)
_FILL = (_OPEN, _SPACE, _CLOSE)


class Options(NamedTuple):
    """Options of printing."""

    source_info: bool = False
    print_shapes: bool = True
    custom_pp_eqn_rules: bool = True
    name_stack: bool = False
    print_effects: bool = False
    use_color: bool = False


class Printed:
    """The base of open and closed jaxprs: the methods that print them."""

    __slots__ = ()

    def __str__(self):
        return jaxpr_text(self)

    __repr__ = __str__

    def pretty_print(self, **options) -> str:
        return jaxpr_text(self, **options)

    def _repr_pretty_(self, printer, cycle):
        printer.text(jaxpr_text(self, use_color=True))

    @html.bundled
    def _repr_mimebundle_(self):
        return html.table([(line, ", ".join(where)) for line, where in lines_with_locations(self)], ("jaxpr", "source"))


def jaxpr_text(
    jaxpr: Printed,
    *,
    source_info: bool = False,
    print_shapes: bool = True,
    custom_pp_eqn_rules: bool = True,
    name_stack: bool = False,
    print_effects: bool = False,
    use_color: bool = False,
    width: int | None = None,
    **unused: Any,
) -> str:
    """Prints a jaxpr; inner jaxprs that are long or used twice are printed first, with a name.

    With `use_color`, terminal codes colour keywords, types and references.
    """
    options = Options(source_info, print_shapes, custom_pp_eqn_rules, name_stack, print_effects, use_color)
    tokens, width = _tokens(jaxpr, options), _WIDTH if width is None else width
    if not use_color:
        return _text(_lines(tokens, width))
    tokens = [piece for token in tokens for piece in (_pieces(token) if type(token) is str else (token,))]
    return _text(_lines(tokens, width, _Colours().line), "\x1b[2m", "\x1b[22m")


def lines_with_locations(jaxpr: Printed) -> list[tuple[str, list[str]]]:
    """The lines of a printed jaxpr, each with the source locations of the equations that begin there."""
    return _lines(_tokens(jaxpr, Options(source_info=True)))


def lines_with_equations(jaxpr: Printed) -> list[tuple[str, list]]:
    """The lines of a jaxpr printed with one equation a line, each with the equation that begins there."""
    return _lines(_tokens(jaxpr, Options(), _Marking))


def _tokens(jaxpr: Printed, options: Options, kind: Any = None) -> list:
    root = _open(jaxpr)
    shared = _shared_jaxprs(root)
    printer = (kind or _Printer)(options, shared)
    printer.drop_unused(root)
    tokens: list = []
    for inner, name in shared.items():
        tokens.append(f"let {name} = ")
        tokens += _flatten(printer.jaxpr(inner))
        tokens += (" in", _SPACE)
    return tokens + _flatten(printer.jaxpr(root))


def eqn_text(eqn: Any, names: dict[Var, str] | None = None) -> str:
    """Prints one equation with its inner jaxprs inline, and with these names for variables."""
    printer = _Printer(Options(), {})
    printer.names |= names or {}
    printer.taken |= set(printer.names.values())
    return _text(_lines(_flatten(printer.eqn(eqn))))


def names_of(jaxpr: Any) -> dict[Var, str]:
    """The names with which the variables of a jaxpr are printed, except those of inner jaxprs."""
    variables = [*jaxpr.constvars, *jaxpr.invars, *(v for eqn in jaxpr.eqns for v in eqn.outvars)]
    return {v: _letters(i) for i, v in enumerate(dict.fromkeys(variables)) if not isinstance(v, DropVar)}


def _open(jaxpr: Any) -> Any:
    return getattr(jaxpr, "jaxpr", jaxpr)


def _is_jaxpr(x: Any) -> bool:
    return isinstance(x, Printed)


def _inner(eqn: Any) -> Iterator:
    for value in eqn.params.values():
        yield from map(_open, filter(_is_jaxpr, value if isinstance(value, (tuple, list)) else (value,)))


def _shared_jaxprs(root: Any) -> dict[Any, str]:
    """The inner jaxprs that get a name, breadth first: those that are used twice or are long."""
    uses: dict[Any, int] = {root: 1}
    titles: dict[Any, str] = {}
    queue = deque([root])
    while queue:
        for eqn in queue.popleft().eqns:
            for inner in _inner(eqn):
                uses[inner] = uses.get(inner, 0) + 1
                if isinstance(title := eqn.params.get("name"), str):
                    titles.setdefault(inner, title.strip("<>"))
                if uses[inner] <= 2:
                    queue.append(inner)
    del uses[root]
    return _numbered({j: titles.get(j, "jaxpr") for j, n in uses.items() if n > 1 or len(j.eqns) > _MAX_INLINE_EQNS})


def _numbered(titles: dict[Any, str]) -> dict[Any, str]:
    """The titles, with a number after repeated ones; as in jax, numbered ones may still clash."""
    seen: dict[str, int] = {}
    names = {}
    for jaxpr, title in titles.items():
        count = seen.get(title, 0)
        seen[title] = count + 1
        name = names[jaxpr] = f"{title}{count or ''}"
        if count:
            seen[name] = seen.get(name, 0) + 1
    return names


def _letters(n: int) -> str:
    text = ""
    while True:
        n, digit = divmod(n, 26)
        text = chr(ord("a") + digit) + text
        if not n:
            return text


class _Printer:
    """Names variables and yields tokens; a generator among the tokens is replaced by the tokens it yields."""

    def __init__(self, options: Options, shared: dict[Any, str]):
        self.options = options
        self.shared = shared
        self.taken = set(shared.values())
        self.names: dict[Var, str] = {}
        self.count = 0

    def name(self, atom: Atom, typed: bool = False) -> str:
        if isinstance(atom, Literal):
            return f"{_literal_text(atom.val)}:{_type_text(atom.aval)}"
        text = self.names.get(atom) or self._new_name(atom)
        if not (typed and self.options.print_shapes):
            return text
        return text + self.styled(_TYPE, f":{_type_text(atom.aval)}")

    def styled(self, mark: str, text: str) -> str:
        return f"{mark}{text}{_PLAIN}" if self.options.use_color else text

    def _new_name(self, var: Var) -> str:
        if isinstance(var, DropVar):
            return "_"
        while (name := _letters(self.count)) in self.taken:
            self.count += 1
        self.count += 1
        self.names[var] = name
        return name

    def share_names(self, inner: list, outer: list) -> None:
        """Gives inner variables the names of the outer ones, each name once."""
        used = set()
        for new, old in zip(inner, outer, strict=False):
            if isinstance(old, Var) and old not in used and isinstance(new, Var) and new not in self.names:
                used.add(old)
                self.names[new] = self.name(old)

    def atoms(self, atoms: list, typed: bool = False, separator: str = "") -> Iterator:
        yield from (_INDENT, _OPEN)
        for i, atom in enumerate(atoms):
            if i:
                yield separator
                yield from _FILL
            yield self.name(atom, typed)
        yield from (_CLOSE, _DEDENT)

    def jaxpr(self, jaxpr: Any) -> Iterator:
        yield from (_OPEN, _INDENT, "{ " + self.styled(_KEYWORD, "lambda "))
        yield from self.atoms(jaxpr.constvars, True)
        yield "; "
        yield from self.atoms(jaxpr.invars, True)
        yield from (". " + self.styled(_KEYWORD, "let"), _INDENT, _SPACE)
        for i, eqn in enumerate(jaxpr.eqns):
            if i:
                yield _SEMICOLON
            yield from self.eqn(eqn)
        yield from (_DEDENT, _SPACE, self.styled(_KEYWORD, "in ") + "(")
        yield from self.atoms(jaxpr.outvars, separator=",")
        yield ",)" if len(jaxpr.outvars) == 1 else ")"
        if self.options.print_effects:
            yield f" : {{ {', '.join(map(self._effect, jaxpr.effects))} }}"
        yield from (_DEDENT, " }", _CLOSE)

    def _effect(self, effect: Any) -> str:
        var = getattr(effect, "input", None)
        if var is None:
            return str(effect)
        kind = self.styled(_PLACE, type(effect).__name__.removesuffix("Effect"))
        return f"{kind}<{self.name(var)}>"

    def drop_unused(self, jaxpr: Any) -> None:
        """Names unused results `_`; as in jax, only in the outermost jaxpr."""
        used = {v for eqn in jaxpr.eqns for v in eqn.invars if isinstance(v, Var)}
        used.update(v for v in jaxpr.outvars if isinstance(v, Var))
        for eqn in jaxpr.eqns:
            for var in eqn.outvars:
                if var not in used:
                    self.names.setdefault(var, "_")

    def eqn(self, eqn: Any) -> Iterator:
        custom = self.options.custom_pp_eqn_rules
        if custom and eqn.primitive.as_printed is not None:
            eqn = eqn.primitive.as_printed(eqn)
        text = None
        if custom and (show := eqn.primitive.show_eqn) is not None:
            text = show(eqn, self.name)
        if text is not None:
            yield text if self.options.use_color else _MARKS.sub("", text)
            yield from self.source_note(eqn)
            return
        if custom and (param := eqn.primitive.inherits_names) is not None:
            inner = _open(eqn.params[param])
            if inner not in self.shared:
                self.share_names(inner.invars, eqn.invars)
                self.share_names(inner.outvars, eqn.outvars)
        if eqn.outvars:
            yield from self.atoms(eqn.outvars, True)
            yield " = "
            yield from self.source_note(eqn)
        yield eqn.primitive.name
        if self.options.name_stack:
            yield _Note(f"[{path(eqn.ctx.name_stack)}]")
        yield from self.params(_shown_params(eqn, custom))
        yield " "
        yield from self.atoms(eqn.invars)

    def source_note(self, eqn: Any) -> Iterator:
        if self.options.source_info:
            yield _Note(source.summary(eqn.traceback, columns=True))

    def params(self, pairs: list[tuple[str, Any]]) -> Iterator:
        if not pairs:
            return
        yield from (_OPEN, _INDENT, "[", _EMPTY)
        for i, (key, value) in enumerate(pairs):
            if i:
                yield _SPACE
            yield f"{key}="
            yield from self.value(value)
        yield from (_DEDENT, _EMPTY, "]", _CLOSE)

    def value(self, value: Any) -> Iterator:
        if _is_jaxpr(value):
            yield self._reference(value)
        elif type(value) is tuple and value and all(map(_is_jaxpr, value)):
            yield from (_OPEN, _INDENT, "(", _EMPTY)
            for i, item in enumerate(value):
                if i:
                    yield _SPACE
                yield self._reference(item)
            yield from (_DEDENT, _EMPTY, ")", _CLOSE)
        elif type(value) is frozenset:
            yield f"frozenset({{{', '.join(sorted(map(repr, value)))}}})"
        else:
            yield _ADDRESS.sub(" at 0xXXXXXXXXXXXX", str(value))

    def _reference(self, jaxpr: Any) -> str | Iterator:
        jaxpr = _open(jaxpr)
        return self.shared.get(jaxpr) or self.jaxpr(jaxpr)


class _Marking(_Printer):
    """Puts each equation on a line of its own, with a note of it where it begins."""

    def jaxpr(self, jaxpr: Any) -> Iterator:
        depth = 0
        for token in super().jaxpr(jaxpr):
            depth += (token is _OPEN) - (token is _CLOSE)
            yield _NEVER_FLAT if depth == 1 and type(token) is _Break and jaxpr.eqns else token

    def eqn(self, eqn: Any) -> Iterator:
        yield _Note(eqn)
        yield from super().eqn(eqn)


def _type_text(aval: Any) -> str:
    return getattr(aval, "text", None) or aval.str_short(True)


def _literal_text(value: Any) -> str:
    return str(value.item() if hasattr(value, "item") else value)


def _shown_params(eqn: Any, custom: bool) -> list[tuple[str, Any]]:
    show = getattr(eqn.primitive, "show_params", None) if custom else None
    pairs = show(eqn) if show is not None else None
    return sorted(eqn.params.items(), key=lambda pair: pair[0]) if pairs is None else pairs


def _flatten(walk: Iterator) -> list:
    """The tokens of a generator and of the generators among them, without recursion."""
    tokens = []
    walks = [walk]
    while walks:
        for item in walks[-1]:
            if isinstance(item, GeneratorType):
                walks.append(item)
                break
            tokens.append(item)
        else:
            walks.pop()
    return tokens


_TEXTS = frozenset({str, _Styled})


def _fits(tokens: list, start: int, room: int) -> bool:
    """Returns whether the group whose tokens begin at `start` fits into `room` columns."""
    depth = 1
    while room >= 0:
        token = tokens[start]
        start += 1
        if type(token) in _TEXTS:
            room -= len(token)
        elif type(token) is _Break:
            room -= len(token.flat)
        elif token is _OPEN:
            depth += 1
        elif token is _CLOSE:
            depth -= 1
            if not depth:
                return True
    return False


def _joined(parts: list[str], notes: list[str]) -> str:
    return "".join(parts)


def _lines(
    tokens: list, width: int = _WIDTH, line: Callable[[list[str], list[str]], str] = _joined
) -> list[tuple[str, list[str]]]:
    """Breaks the tokens into lines, each with its remarks: a group stays on one line if it fits there.

    `line` joins the parts of a line; the first part is the indentation.
    """
    lines: list[tuple[str, list[str]]] = []
    parts: list[str] = [""]
    notes: list[str] = []
    column = indent = 0
    flat = [False]
    for i, token in enumerate(tokens):
        if type(token) is _Break and not flat[-1]:
            lines.append((line(parts, notes), notes))
            parts, notes, column = [" " * indent], [], indent
        elif type(token) in _TEXTS or type(token) is _Break:
            text = token.flat if isinstance(token, _Break) else token
            parts.append(text)
            column += len(text)
        elif token is _OPEN:
            flat.append(flat[-1] or _fits(tokens, i + 1, width - column))
        elif token is _CLOSE:
            flat.pop()
        elif type(token) is _Note:
            notes.append(token.text)
        else:
            indent += 2 if token is _INDENT else -2
    lines.append((line(parts, notes), notes))
    return lines


def _text(lines: list[tuple[str, list[str]]], before: str = "", after: str = "") -> str:
    """The lines with their remarks in one column, to the right of the longest line, between `before` and `after`."""
    widths = [len(_ESCAPES.sub("", text) if before else text) for text, _ in lines]
    width = max(widths)
    shown = []
    for (text, notes), used in zip(lines, widths, strict=True):
        shown.append(f"{text}{before}{' ' * (width - used)} # {notes[0]}{after}" if notes else text)
        shown += [f"{before}{' ' * width} # {note}{after}" for note in notes[1:]]
    return "\n".join(shown)


# ---- colours ----------------------------------------------------------------------------------------


def _pieces(text: str) -> Iterator[str]:
    """Splits a text into parts that each have one colour."""
    plain, *rest = _MARKS.split(text)
    if plain or not rest:
        yield plain
    for mark, part in zip(rest[::2], rest[1::2], strict=True):
        if part:
            piece = _Styled(part)
            piece.style = mark
            yield piece


class _Colours:
    """Joins lines with colour codes; a colour ends where the next text begins, which may be on another line."""

    def __init__(self):
        self._style = _PLAIN

    def line(self, parts: list[str], notes: list[str]) -> str:
        indentation, *texts = parts
        coloured = "".join([self._change(getattr(text, "style", _PLAIN)) + text for text in texts])
        return indentation + coloured + (self._change(_PLAIN) if notes else "")

    def _change(self, style: str) -> str:
        pairs = zip(_CODES[self._style], _CODES[style], strict=True)
        codes = ";".join([new for old, new in pairs if old != new])
        self._style = style
        return f"\x1b[{codes}m" if codes else ""
