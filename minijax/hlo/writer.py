"""A StableHLO module under construction: names, functions, blocks, and the general forms of operations."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from minijax.base import dtypes
from minijax.hlo import spell
from minijax.hlo.locations import Mark, Surroundings, Written
from minijax.hlo.spell import constant, results_of, symbol, type_of, types_of
from minijax.ir.types import Aval, Name, ShapedArray

Names = Sequence[Name]
Avals = Sequence[Aval]
Ints = Sequence[int]
FLAG = ShapedArray((), dtypes.bool_)
INDEX = ShapedArray((), dtypes.int32)
PLATFORM_INDEX = "_platform_index"  # the number of the platform on which a module runs, among its platforms
Build = Callable[..., Names]  # names of block arguments -> names of the block's results


def global_attributes(name: str) -> dict[str, str]:
    """The attributes of an argument that all functions of the module take."""
    return {"jax.global_constant": spell.string(name)}


class Region(NamedTuple):
    """A region of an operation: the types of its arguments and results, and a function that emits its body."""

    args: Avals
    outs: Avals
    build: Build


class _Function:
    """The lines of a function under construction, and its names."""

    __slots__ = ("lines", "values", "args", "clashes", "used", "indent")

    def __init__(self, lines: list[str]):
        self.lines = lines
        self.values = -1
        self.args = -1
        self.clashes = -1
        self.used: set[str] = set()
        self.indent = "    "


class _Symbols:
    """The symbols of a module."""

    __slots__ = ("_taken", "_clashes")

    def __init__(self):
        self._taken, self._clashes = {"main"}, -1

    def unique(self, name: str) -> str:
        """`name` or `name_0`, ...: an unused symbol."""
        unique = name
        while unique in self._taken:
            self._clashes += 1
            unique = f"{name}_{self._clashes}"
        self._taken.add(unique)
        return symbol(unique)


_SIZE_TYPES = {aval.dtype: aval for aval in (INDEX, ShapedArray((), dtypes.int64))}


class Writer:
    """The base of the verbs: names, functions, regions, and the general forms of operations."""

    def __init__(self, *platforms: str):
        self.platforms = platforms or ("cpu",)
        self.has_asked = False  # True if the platform was read: the code depends on it
        self.size_type = _SIZE_TYPES[dtypes.scalar_dtype(int)]  # the type of sizes computed at run time
        self.globals: dict[str, Name] = {}  # the leading arguments of all functions, by jax's names
        self.functions: list[list[str]] = []
        self.preamble: list[str] = []  # lines before the functions, e.g. meshes
        self.around = self.around_function = Surroundings()  # of the current operation and function
        self.eqn: Any = None  # the equation that is being lowered
        self.reduction: str | None = None  # the operation whose reducer is being lowered
        self.unique_symbol = _Symbols().unique
        self.marks: list[Mark] = []
        self.lines: list[str] = []
        self._enter(_Function(self.lines))

    @property
    def platform(self) -> str:
        """The platform to lower for. If there are several, an operation that reads it is lowered for each."""
        self.has_asked = True
        return self.platforms[0]

    # ---- names, functions, regions ----------------------------------------------------------------

    def _enter(self, function: _Function) -> None:
        self._function = function
        self.lines = function.lines
        self._n, self._in = function.values, function.indent

    def _leave(self) -> None:
        self._function.values, self._function.indent = self._n, self._in

    def fresh(self, count: int = 1) -> tuple[str, list[str]]:
        """The start of an operation's line, `%0 = `, and the names of its results."""
        if not count:
            return "", []
        n = self._n = self._n + 1
        if count == 1:
            return f"%{n} = ", [f"%{n}"]
        return f"%{n}:{count} = ", [f"%{n}#{i}" for i in range(count)]

    def _stemmed(self, stem: str) -> Name:
        """`%cst`, `%cst_0`, ...: names of constants and loop variables, as in MLIR."""
        function = self._function
        if stem not in function.used:
            function.used.add(stem)
            return f"%{stem}"
        function.clashes += 1
        return f"%{stem}_{function.clashes}"

    def block_args(self, count: int) -> list[Name]:
        """New names for the arguments of a function or block."""
        start = self._function.args + 1
        self._function.args += count
        return [f"%arg{i}" for i in range(start, start + count)]

    def names_taken(self) -> tuple:
        """The names that are used in the current function."""
        f = self._function
        return self._n, f.args, f.clashes, frozenset(f.used)

    def take_names(self, names: tuple) -> None:
        """Restores an earlier state of `names_taken`."""
        f = self._function
        self._n, f.args, f.clashes, f.used = *names[:3], set(names[3])

    def indented(self, build: Callable[[], Names]) -> Names:
        """Returns `build()`, whose operations are indented as in a region."""
        outer, self._in = self._in, self._in + "  "
        results = build()
        self._in = outer
        return results

    def function(self, head: Callable[[list[str]], str], count: int, body: Callable, outs: Avals) -> None:
        """Emits a function: `head(argument names)` is its first line, `body(argument names)` its results' names."""
        lines: list[str] = []
        self.functions.append(lines)
        outer = self._function
        self._leave()
        self._enter(_Function(lines))
        args = self.block_args(count)
        lines.append(head(args))
        results = body(args)
        lines.append(f"    return {', '.join(results)} : {types_of(outs)}" if results else "    return")
        lines.append("  }")
        self._enter(outer)

    def typed_function(self, head: str, ins: Avals, outs: Avals, body: Callable) -> None:
        """As `function`, with `head` (`private @f`) before the types, and no attributes."""
        first = lambda names: f"  func.func {head}({self._typed(names, ins)}) -> {results_of(outs)} {{"  # noqa: E731
        self.function(first, len(ins), body, outs)

    def global_type(self, name: str) -> ShapedArray:
        """The type of an argument that all functions of the module take: the platform index, or a size."""
        return INDEX if name == PLATFORM_INDEX else self.size_type

    def program_function(self, head: str, ins: Avals, outs: Avals, body: Callable) -> None:
        """As `typed_function`, for a function that takes the module's globals first."""

        def first(names):
            attrs = [spell.dictionary(global_attributes(g)) for g in self.globals]
            leading = [
                f"{x}: {type_of(self.global_type(g))} {a}" for x, g, a in zip(names, self.globals, attrs, strict=False)
            ]
            typed = self._typed(names[len(leading) :], ins)
            return f"  func.func {head}({', '.join([*leading, typed] if ins else leading)}) -> {results_of(outs)} {{"

        self.function(first, len(self.globals) + len(ins), self.taking_globals(body), outs)

    def taking_globals(self, body: Callable) -> Callable:
        """`body` with the module's globals as additional leading arguments."""

        def with_globals(args):
            outer, self.globals = self.globals, dict(zip(self.globals, args, strict=False))
            results = body(args[len(outer) :])
            self.globals = outer
            return results

        return with_globals

    def main(self, ins: Avals, outs: Avals, body: Callable) -> None:
        """Emits the main function: `body(argument names)` returns its results' names."""
        self.typed_function("public @main", ins, outs, body)

    def line(self, text: str) -> None:
        """Appends an operation's line; `fresh` names its results."""
        self.lines.append(self._in + text)

    def _block(self, region: Region) -> None:
        outer, lines = self._in, self.lines
        names = self.block_args(len(region.args)) if region.args else []
        if names:
            lines.append(f"{outer}^bb0({self._typed(names, region.args)}):")
        self._inside(region.build, names, region.outs)

    def _inside(self, build: Build, names: Names, outs: Avals, end: str = "stablehlo.return") -> None:
        outer = self._in
        self._in = outer + "  "
        results = build(*names)
        if type(results) is str:
            results = [results]
        tail = f" {', '.join(results)} : {types_of(outs)}" if results else ""
        self.lines.append(f"{self._in}{end}{tail}")
        self._in = outer

    @staticmethod
    def _typed(names: Names, avals: Avals) -> str:
        return ", ".join([f"{n}: {type_of(a)}" for n, a in zip(names, avals, strict=True)])

    def annotate(self, start: int, attrs: Mapping[str, str]) -> None:
        """Adds frontend attributes to the operations emitted since line `start`."""
        if attrs:
            self.lines[start:] = [spell.with_frontend(line, attrs) for line in self.lines[start:]]

    def tag(self, names: Names, attrs: Mapping[str, str], constants: bool = False) -> None:
        """Adds frontend attributes to the operations in this block that have these results."""
        for base in {name.partition("#")[0] for name in names} if attrs else ():
            heads = f"{self._in}{base} = ", f"{self._in}{base}:"
            at = next((i for i in reversed(range(len(self.lines))) if self.lines[i].startswith(heads)), None)
            if at is None:
                continue
            if self.lines[at].endswith("({"):  # attributes follow the regions
                at = next(i for i in range(at + 1, len(self.lines)) if self.lines[i].startswith(f"{self._in}}}) "))
            self.lines[at] = spell.with_frontend(self.lines[at], attrs, constants)

    def written(self, name: str, attributes: Mapping[str, str], main: Callable[[], str] | None = None) -> Written:
        """The complete module; `main()` is the first line of its first function with locations of the arguments."""
        head = f"module {symbol(name)} attributes {spell.dictionary(attributes)} {{"
        return Written([head, *[f"  {line}" for line in self.preamble]], self.functions, self.marks, main)

    # ---- the general forms ------------------------------------------------------------------------

    # The forms of most operations append lines themselves, which saves a call for each.
    def assign(self, text: str) -> Name:
        """An operation with one result, given by `text` including its types."""
        n = self._n = self._n + 1
        self.lines.append(f"{self._in}%{n} = {text}")
        return f"%{n}"

    def unary(self, name: str, x: Name, aval: ShapedArray, attrs: str = "") -> Name:
        """An elementwise operation whose operand and result have the same type."""
        n = self._n = self._n + 1
        self.lines.append(f"{self._in}%{n} = stablehlo.{name} {x}{attrs} : {aval._hlo or type_of(aval)}")
        return f"%{n}"

    def map_to(self, name: str, x: Name, aval: ShapedArray, out: ShapedArray, attrs: str = "") -> Name:
        """An operation on one operand whose result has another type, such as `is_finite`."""
        n = self._n = self._n + 1
        self.lines.append(
            f"{self._in}%{n} = stablehlo.{name} {x}{attrs} : "
            f"({aval._hlo or type_of(aval)}) -> {out._hlo or type_of(out)}"
        )
        return f"%{n}"

    def binary(self, name: str, x: Name, y: Name, aval: ShapedArray) -> Name:
        """An elementwise operation on two operands of the result's type."""
        n = self._n = self._n + 1
        self.lines.append(f"{self._in}%{n} = stablehlo.{name} {x}, {y} : {aval._hlo or type_of(aval)}")
        return f"%{n}"

    def chlo(self, name: str, operands: Names, ins: Avals, out: ShapedArray) -> Name:
        """An elementwise operation of the `chlo` dialect, such as `erf`."""
        return self.assign(f"chlo.{name} {', '.join(operands)} : {types_of(ins)} -> {type_of(out)}")

    def op(
        self, name: str, operands: Names, ins: Avals, outs: Avals, attrs: str = "", regions: Sequence[Region] = ()
    ) -> list[Name]:
        """Any operation in the generic form; the default dialect is StableHLO."""
        full = name if "." in name else f"stablehlo.{name}"
        left, results = self.fresh(len(outs))
        head = f'{self._in}{left}"{full}"({", ".join(operands)})' + (f" <{{{attrs}}}>" if attrs else "")
        tail = f" : ({types_of(ins)}) -> {results_of(outs)}"
        if not regions:
            self.lines.append(head + tail)
            return results
        self.lines.append(f"{head} ({{")
        for i, region in enumerate(regions):
            if i:
                self.lines.append(f"{self._in}}}, {{")
            self._block(region)
        self.lines.append(f"{self._in}}}){tail}")
        return results

    def result(self, text: str, ins: Avals, out: Aval) -> Name:
        """An operation with one result, given by `text` without its types."""
        n = self._n = self._n + 1
        self.lines.append(f"{self._in}%{n} = {text} : ({types_of(ins)}) -> {type_of(out)}")
        return f"%{n}"

    def results(self, text: str, ins: Avals, outs: Avals) -> list[Name]:
        """As `result`, for any number of results."""
        left, names = self.fresh(len(outs))
        self.line(f"{left}{text} : ({types_of(ins)}) -> {results_of(outs)}")
        return names

    # ---- constants --------------------------------------------------------------------------------

    def constant(self, value: Any, aval: ShapedArray) -> Name:
        """Emits a constant; for an extended dtype, its physical value."""
        stem, text = constant(value, aval)
        name = self._stemmed(stem)
        self.lines.append(f"{self._in}{name} = stablehlo.constant {text}")
        return name
