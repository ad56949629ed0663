"""Writes modules of kernels as MLIR text in the generic form, in which every operation is spelled the same way.

The names of values are free, since modules are compared as MLIR prints them; the operations and their order are not.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.hlo import spell


class Type(NamedTuple):
    """An MLIR type: its text, and what rules ask of it."""

    text: str
    shape: tuple[int, ...] = ()
    element: str = ""  # the text of the element type, that of the type itself for scalars


class Value(NamedTuple):
    """A value in a kernel: its SSA name and type, and the dtype of its elements, whose sign the type does not tell."""

    name: str
    type: Type
    dtype: Any = None

    shape = property(lambda self: self.type.shape)
    element = property(lambda self: self.type.element)


class Region(NamedTuple):
    """A region of one block: the types of its arguments, what writes its body, and the operation that ends it.

    `build` gets the arguments and returns the values that the last operation takes.
    """

    args: Sequence[Type]
    build: Callable[..., Iterable[Value]]
    end: str


def scalar(element: str) -> Type:
    """The type of a value that is one number, `i32`, `index`, `!tt.ptr<f32>`."""
    return Type(element, (), element)


def shaped(kind: str, shape: Sequence[Any], element: str, rest: str = "") -> Type:
    """`tensor<8x128xf32>`, `vector<...>`, `memref<8xf32, rest>`."""
    sizes = "".join(f"{'?' if n is None else n}x" for n in shape)
    return Type(f"{kind}<{sizes}{element}{rest and ', ' + rest}>", tuple(shape), element)


I1, I32, I64, INDEX = map(scalar, ("i1", "i32", "i64", "index"))


def element_of(dtype: Any) -> str:
    """The element type of a dtype in kernels, whose integers have no sign: `f32`, `i8` for uint8, `i1`."""
    return spell.element(np.dtype(dtype)).removeprefix("u")


def number(value: Any, dtype: Any) -> str:
    """A number as an attribute without its type: `1`, `1.000000e+00`, `0x7FC00000`; `true`."""
    return spell.scalar(np.asarray(value, dtype)[()])


class Writer:
    """The lines of a module under construction."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names, self._indent = -1, ""
        self._ends: dict[str, int] = {}  # name of a result -> the line with the types of its operation
        self._notes: dict[int, list[str]] = {}  # line -> attributes added to the operation that ends there

    def line(self, text: str) -> None:
        """Writes a line as it is."""
        self.lines.append(self._indent + text)

    def names(self, types: Sequence[Type]) -> list[Value]:
        """Values with new names, for the arguments of a function or block."""
        start = self._names + 1
        self._names += len(types)
        return [Value(f"%{start + i}", t) for i, t in enumerate(types)]

    def op(
        self,
        name: str,
        operands: Sequence[Value] = (),
        results: Sequence[Type] = (),
        attributes: Mapping[str, str] | None = None,
        regions: Sequence[Region] = (),
        notes: str = "",
    ) -> list[Value]:
        """Writes an operation, whose attributes are texts by name, and returns its results.

        `notes` are attributes that the operation does not declare, as a text with braces.
        """
        head = ""
        values: list[Value] = []
        if results:
            self._names += 1
            own = f"%{self._names}"
            several = len(results) > 1
            head = f"{own}:{len(results)} = " if several else f"{own} = "
            values = [Value(f"{own}#{i}" if several else own, t) for i, t in enumerate(results)]
        named = f" <{spell.dictionary(attributes)}>" if attributes else ""
        start = f'{head}"{name}"({", ".join([x.name for x in operands])}){named}'
        ins, outs = (", ".join([t.text for t in types]) for types in ([x.type for x in operands], results))
        types = f"{notes and ' ' + notes} : ({ins}) -> ({outs})"
        for i, region in enumerate(regions):
            self.line("}, {" if i else f"{start} ({{")
            self._block(region)
        self.line(f"}}){types}" if regions else start + types)
        for value in values:
            self._ends[value.name] = len(self.lines) - 1
        return values

    def annotate(self, value: Value, attribute: str) -> None:
        """Adds an attribute, as `name = text`, to the operation that made a value; arguments of blocks take none."""
        if (line := self._ends.get(value.name)) is not None:
            self._notes.setdefault(line, []).append(attribute)

    def _block(self, region: Region) -> None:
        args = self.names(region.args)
        if args:
            self.line(f"^bb0({', '.join(f'{x.name}: {x.type.text}' for x in args)}):")
        outer, self._indent = self._indent, self._indent + "  "
        self.op(region.end, list(region.build(*args)))
        self._indent = outer

    def function(
        self,
        head: str,
        args: Sequence[Type],
        build: Callable[..., Iterable[Value]],
        end: str,
        results: Sequence[Type] = (),
        arg_attributes: Sequence[str] = (),
        attributes: str = "",
    ) -> None:
        """Writes a function: `head` is as `tt.func public @name`, attributes are texts with their braces.

        `build` gets the arguments and returns the values that the operation `end` returns.
        """
        values = self.names(args)
        spelled = [f"{x.name}: {x.type.text}" for x in values]
        if arg_attributes:
            spelled = [f"{text} {more}".rstrip() for text, more in zip(spelled, arg_attributes, strict=True)]
        outs = f" -> ({', '.join([t.text for t in results])})" if results else ""
        more = f" attributes {attributes}" if attributes else ""
        self.line(f"{head}({', '.join(spelled)}){outs}{more} {{")
        outer, self._indent = self._indent, self._indent + "  "
        self.op(end, list(build(*values)))
        self._indent = outer
        self.line("}")

    def module(self, name: str = "", attributes: str = "") -> str:
        """The whole module, whose functions were written before."""
        named = f" {spell.symbol(name)}" if name else ""
        more = f" attributes {attributes}" if attributes else ""
        return "\n".join([f"module{named}{more} {{", *[f"  {line}" for line in self._annotated()], "}", ""])

    def _annotated(self) -> list[str]:
        lines = list(self.lines)
        for i, notes in self._notes.items():
            head, _, types = lines[i].rpartition(" : (")
            lines[i] = f"{head} {{{', '.join(notes)}}} : ({types}"
        return lines
