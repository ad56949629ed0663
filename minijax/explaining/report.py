"""The report of a program: how often each function was traced, lowered, compiled, loaded and called, and why.

Without a report nothing here is imported. `switch_on` replaces functions of dispatch and of transfers by others that
count; the programs that they make count their own launches, so that a call costs an addition more.
"""

import atexit
import functools
import html
import inspect
import json
import os
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from minijax.base import monitoring, source
from minijax.base.html import amount
from minijax.base.thread import thread
from minijax.dispatch import executable, explain, hot, lowering, operations
from minijax.dispatch.explain import CallRecord, Difference, differences
from minijax.dispatch.jitted import Engine
from minijax.ir.body import source_of
from minijax.ir.jaxpr import ClosedJaxpr, subjaxprs
from minijax.ir.types import ShapedArray
from minijax.run.arrays import transfer
from minijax.run.arrays.array import ArrayImpl
from minijax.run.programs import ahead, compile, launch, tiered

VARIABLE = "MINIJAX_REPORT"
LARGE = 1 << 20  # bytes from which constants and transfers are listed
COLUMNS = "traced lowered compiled loaded called tracing lowering compiling loading".split()
_TEMPLATE = Path(__file__).with_name("report.html")
_REMEMBERED = 64  # calls of each function with which a new one is compared
_LISTED, _KEPT = 10, 200  # lines of each list on a terminal, and in all
_OTHERS = "others"
FUNCTIONS, OPERATIONS = "Jitted functions", "Eager operations"


class Row:
    """The counts and seconds of one function or operation. It holds no function, which must be able to die."""

    __slots__ = ("name", "kind", "history", "reasons", *COLUMNS)

    def __init__(self, name: str, kind: str):
        self.name, self.kind = name, kind
        self.history: deque[explain.CallRecord] = deque(maxlen=_REMEMBERED)
        self.reasons: Counter[str] = Counter()
        self.traced = self.lowered = self.compiled = self.loaded = self.called = 0
        self.tracing = self.lowering = self.compiling = self.loading = 0.0

    def values(self) -> list[Any]:
        """The name and the numbers, in the order of the columns."""
        return [self.name, *[getattr(self, column) for column in COLUMNS]]


class _Subjects(threading.local):
    """The functions that this thread compiles at the moment, the innermost last."""

    def __init__(self):
        self.rows: list[Row] = []


class Report:
    """What a program did, as far as it is known."""

    def __init__(self, title: str = ""):
        self.title = title
        self.rows: dict[Any, Row] = {}
        self.constants: Counter[str] = Counter()
        self.transfers: Counter[str] = Counter()
        self.donations: Counter[str] = Counter()
        self._latest: dict[str, Row] = {}
        self._subjects = _Subjects()
        self._lock = threading.Lock()

    # ---- whose work it is -----------------------------------------------------------------------------

    def row(self, key: Any, name: str, kind: str) -> Row:
        """The row of that key, made if there was none."""
        with self._lock:
            row = self.rows.get(key)
            if row is None:
                row = self.rows[key] = Row(name, kind)
            self._latest[name.partition(" at ")[0]] = row
        return row

    def row_of_engine(self, engine: Engine) -> Row:
        """The row of a jitted function; those of the library count as operations."""
        if not engine.by_user:
            return self.row((OPERATIONS, engine.name), engine.name, OPERATIONS)
        return self.row_of_function(source_of(engine.fun), engine.memory.number)

    def row_of_function(self, definition: str, number: int) -> Row:
        """The row of the functions of one definition; a callable without a source line has its own."""
        key = definition if " at " in definition else (definition, number)
        return self.row((FUNCTIONS, key), _shortened(definition), FUNCTIONS)

    def current(self, name: str) -> Row:
        """The row of what this thread compiles; without one, that of the latest function of this name."""
        if (row := self.innermost()) is not None:
            return row
        name = name.removeprefix("jit(").removesuffix(")").removeprefix("jit_")
        found = self._latest.get(name)
        return found or self.row((OPERATIONS, name), name, OPERATIONS)

    def innermost(self) -> Row | None:
        """The row for which this thread compiles."""
        return self._subjects.rows[-1] if self._subjects.rows else None

    def within(self, row: Row, function: Callable, *args: Any) -> Any:
        """Calls a function, whose tracing and compiling counts as that of the row."""
        rows = self._subjects.rows
        rows.append(row)
        try:
            return function(*args)
        finally:
            rows.pop()

    # ---- what is reported -----------------------------------------------------------------------------

    def on_duration(self, event: str, seconds: float, fun_name: str = "", **_: Any) -> None:
        """The listener of durations."""
        if event == monitoring.TRACING[0]:
            row = self.current(fun_name)
            row.tracing += seconds
            row.traced += row.kind is OPERATIONS
        elif event == monitoring.LOWERING[0]:
            row = self.current(fun_name)
            row.lowered += 1
            row.lowering += seconds

    def traced(self, fun: Callable, definition: str, call: explain.CallRecord, is_trace: bool) -> None:
        """Counts a trace of a user's function, and notes its difference from the nearest earlier call."""
        row = self.row_of_function(definition, call.function)
        if is_trace:
            row.traced += 1
            if row.history:
                _add(row.reasons, reason(list(row.history), call, _parameters(fun)))
        row.history.append(call)

    def captured(self, closed: ClosedJaxpr) -> None:
        """Notes the large constants of a jaxpr that is lowered."""
        jaxprs = [closed.jaxpr]
        for jaxpr in jaxprs:
            jaxprs += [inner for inner in subjaxprs(jaxpr) if inner not in jaxprs]
            for v in jaxpr.constvars:
                size = v.aval.size * v.aval.dtype.itemsize if isinstance(v.aval, ShapedArray) else 0
                if size > LARGE:
                    _add(self.constants, f"{closed.debug_info.func_name}: {v.aval.str_short()}, {amount(size)}")

    def moved(self, way: str, x: Any) -> None:
        """Notes a large transfer."""
        place = os.path.basename(source.summary(source.here()))
        _add(self.transfers, f"{way}: {x.dtype}{list(x.shape)}, {amount(x.nbytes)}, at {place}")

    # ---- the texts ------------------------------------------------------------------------------------

    def tables(self) -> list[tuple[str, list[list[Any]]]]:
        """The tables of functions and of operations: those that took longest to compile are first."""
        rows = sorted(self.rows.values(), key=lambda row: -(row.tracing + row.lowering + row.compiling + row.loading))
        pairs = [(kind, [row.values() for row in rows if row.kind is kind]) for kind in (FUNCTIONS, OPERATIONS)]
        return [(kind, values) for kind, values in pairs if values]

    def lists(self) -> list[tuple[str, list[str]]]:
        """Why functions were traced again, and what else is remarkable; without what did not happen."""
        found = [(f"{row.name} was traced again", row.reasons) for row in self.rows.values()]
        found += [
            ("Constants over 1 MB that functions captured", self.constants),
            ("Transfers of more than 1 MB", self.transfers),
            ("Donated buffers that could not be used", self.donations),
            ("Programs compiled in two tiers", Counter(map(str, tiered.accounts))),
        ]
        return [(title, list(_counted(lines))) for title, lines in found if lines]

    def text(self) -> str:
        """The report as a table for a terminal."""
        lines = [f"minijax report: {self.title}"]
        for title, rows in self.tables():
            cells = [[title, *COLUMNS], *[[_cell(x) for x in row] for row in rows]]
            widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
            lines += ["", *[_aligned(row, widths) for row in cells]]
        for title, items in self.lists():
            more = [f"... {len(items) - _LISTED} more"] if len(items) > _LISTED else []
            lines += ["", title, *[f"  {item}" for item in [*items[:_LISTED], *more]]]
        if not self.rows:
            lines.append("no function was traced or run")
        return "\n".join(lines) + "\n"

    def html(self) -> str:
        """The report as one page that loads nothing."""
        data = dict(columns=["", *COLUMNS], tables=self.tables(), lists=self.lists())
        text = json.dumps(data).replace("</", "<\\/")
        title = html.escape(f"minijax report: {self.title}")
        return _TEMPLATE.read_text(encoding="utf-8").replace("{{title}}", title).replace("{{data}}", text)


def _add(lines: Counter[str], line: str) -> None:
    """Counts a line; a program that goes on for days has a last one for all that are too many."""
    lines[line if line in lines or len(lines) < _KEPT else _OTHERS] += 1


def _counted(lines: Counter[str]) -> Iterator[str]:
    for line, count in sorted(lines.items(), key=lambda item: (item[0] == _OTHERS, -item[1])):
        yield line if count == 1 else f"{line} ({count} times)"


def _cell(x: Any) -> str:
    return f"{x:.3f}" if isinstance(x, float) else str(x)


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(row, widths, strict=True)
    return "  ".join([first[0].ljust(first[1]), *[text.rjust(width) for text, width in others]])


def _shortened(definition: str) -> str:
    """`f at FILE:LINE` with the name of the file alone."""
    name, at, place = definition.partition(" at ")
    return f"{name} at {os.path.basename(place)}" if at else name


def _parameters(fun: Callable) -> list[str]:
    try:
        return list(inspect.signature(fun).parameters)
    except (TypeError, ValueError):
        return []


# ---- counting -----------------------------------------------------------------------------------------


def _making(report: Report, program_of: Callable) -> Callable:
    """Programs are made for the row that is compiled, or for that of their name."""

    @functools.wraps(program_of)
    def making(loaded, *args, **kwargs):
        return report.within(report.current(loaded.name), functools.partial(program_of, loaded, *args, **kwargs))

    return making


def _counting(report: Report, make: Callable) -> Callable:
    """Makes a function in place of `launch._program`; it repeats the body, since one more frame would cost more."""
    blank, launching, launched_again = launch.blank, launch.launching, launch._launched_again

    def counting(execute, handlers, sig, finish, donates=False):
        row = report.innermost()
        if row is None:  # transfers between layouts and shardings belong to no function
            return make(execute, handlers, sig, finish, donates)

        def program(raws):
            row.called += 1
            try:
                results = launching.send((execute, raws, handlers))
            except BaseException as error:
                results = launched_again(error, execute, raws, handlers)
            if finish is not None:
                return finish(results)
            array = blank()
            array._raw = results[0]
            array._sig = sig
            return array

        program.donates = donates
        return program

    return counting


def _binding(report: Report, bind: Callable) -> Callable:
    """For programs with ordered effects, which have a launch of their own."""

    @functools.wraps(bind)
    def binding(loaded, signatures, effects=None):
        run = bind(loaded, signatures, effects)
        if effects is None or effects.note is not None:
            return run
        row = report.current(loaded.name)

        def counted(raws):
            row.called += 1
            return run(raws)

        return counted

    return binding


def _noting(report: Report, note: Callable) -> Callable:
    @functools.wraps(note)
    def noting(fun, definition, call, by_user, is_trace):
        if by_user:
            report.traced(fun, definition, call, is_trace)
        note(fun, definition, call, by_user, is_trace)

    return noting


def _compiling(report: Report, compile_call: Callable) -> Callable:
    """For calls of jitted functions."""

    @functools.wraps(compile_call)
    def compiling(engine, *args):
        return report.within(report.row_of_engine(engine), compile_call, engine, *args)

    return compiling


def _calling_traced(report: Report, call_traced: Callable) -> Callable:
    """For calls of jitted functions that have no program of their own: of captured tracers and references."""

    @functools.wraps(call_traced)
    def calling(engine, *args):
        if thread.trace is not None:
            return call_traced(engine, *args)
        return report.within(report.row_of_engine(engine), call_traced, engine, *args)

    return calling


def _compiling_operation(report: Report, compile_operation: Callable) -> Callable:
    @functools.wraps(compile_operation)
    def compiling(primitive, arrays, params):
        row = report.row((OPERATIONS, primitive.name), primitive.name, OPERATIONS)
        return report.within(row, compile_operation, primitive, arrays, params)

    return compiling


def _building(report: Report, build: Callable) -> Callable:
    @functools.wraps(build)
    def building(program, *args):
        row, started = report.current(program.name), time.perf_counter()
        built = build(program, *args)
        row.compiled += 1
        row.compiling += time.perf_counter() - started
        return built

    return building


def _loading(report: Report, log: Callable) -> Callable:
    @functools.wraps(log)
    def loading(name, key, compiled, retrieved):
        row = report.current(name)
        row.loaded += 1
        row.loading += retrieved
        log(name, key, compiled, retrieved)

    return loading


def _capturing(report: Report, warn: Callable) -> Callable:
    @functools.wraps(warn)
    def capturing(closed):
        report.captured(closed)
        warn(closed)

    return capturing


def _donating(report: Report, warn: Callable) -> Callable:
    @functools.wraps(warn)
    def donating(lowered):
        text = lowered.module
        for n, port in enumerate(lowered.program.ins):
            if port.donated and n not in text.aliases and n not in text.donors:
                _add(report.donations, f"{lowered.name}: {port.aval.str_short()}")
        warn(lowered)

    return donating


def _putting(report: Report, put: Callable) -> Callable:
    @functools.wraps(put)
    def putting(x, *args):
        if getattr(x, "nbytes", 0) > LARGE:
            report.moved("host to device", x)
        return put(x, *args)

    return putting


def _copying(report: Report, copy: Callable) -> Callable:
    @functools.wraps(copy)
    def copying(x, new):
        if x.nbytes > LARGE and x._sig.sharding.device_set != new.sharding.device_set:
            report.moved("device to device", x)
        return copy(x, new)

    return copying


def _reading(report: Report, read: Callable) -> property:
    def reading(x):
        value = read(x)
        if value.nbytes > LARGE:
            report.moved("device to host", value)
        return value

    return property(reading)


def install(report: Report) -> None:
    """Replaces the functions that do the work by others that also count it, in the thread that calls."""
    ahead.stop()
    explain.note = _noting(report, explain.note)
    Engine._compile = _compiling(report, Engine._compile)
    Engine._call_traced = _calling_traced(report, Engine._call_traced)
    operations._compile_operation = _compiling_operation(report, operations._compile_operation)
    launch.program_of = _making(report, launch.program_of)
    launch._program = _counting(report, launch._program)
    launch.bind = _binding(report, launch.bind)
    compile._build = _building(report, compile._build)
    monitoring.log_disk_cache_hit = _loading(report, monitoring.log_disk_cache_hit)
    lowering.warn_of_constants = _capturing(report, lowering.warn_of_constants)
    executable._warn_of_unused_donations = _donating(report, executable._warn_of_unused_donations)
    transfer.put_numpy = hot.put_numpy = _putting(report, transfer.put_numpy)
    transfer.put_host = _putting(report, transfer.put_host)
    transfer.copy_raw = _copying(report, transfer.copy_raw)
    ArrayImpl._value = _reading(report, ArrayImpl._numbers)
    monitoring.register_event_duration_secs_listener(report.on_duration)


# ---- switching on ---------------------------------------------------------------------------------------


def switch_on(path: str) -> Report:
    """Reports, at the end of this process, what the program did from now on.

    Args:
      path: the HTML file to write; "" or "1" for the table on stderr alone.

    Returns:
      The report, which is filled while the program runs.
    """
    os.environ.pop(VARIABLE, None)  # processes that this one starts would write the same file
    report = Report()
    install(report)
    atexit.register(_finish, report, os.path.abspath(path) if path not in ("", "1") else "", os.getpid())
    return report


def _finish(report: Report, path: str, process: int) -> None:
    if os.getpid() != process:  # a fork
        return
    report.title = report.title or " ".join([os.path.basename(sys.argv[0]), *sys.argv[1:]])
    print(report.text(), end="", file=sys.stderr)
    if path:
        try:
            Path(path).write_text(report.html(), encoding="utf-8")
            print(f"the report is in {path}", file=sys.stderr)
        except OSError as error:
            print(f"minijax --report: cannot write {path}: {error.strerror}", file=sys.stderr)


def reason(earlier: Sequence[CallRecord], call: CallRecord, parameters: Sequence[str]) -> str:
    """Returns in plain words how a call differs from the nearest earlier one.

    Args:
      earlier: the earlier calls of the same definition, at least one.
      call: the call that caused a trace.
      parameters: the names of the function's parameters, for static arguments.

    Returns:
      The differences, separated by semicolons.
    """
    # Among equally near ones `min` takes the latest.
    rows, before = min(((differences(old, call), old) for old in reversed(earlier)), key=lambda pair: len(pair[0]))
    texts = [*_of_types(rows, before, call)]
    for row in rows:
        texts += _of_row(row, before, call, parameters)
    return "; ".join(texts) or "nothing differs: its cache entry is gone"


_TYPES = ("shape", "dtype", "weak type", "memory space", "type")
_PLACES = ("sharding", "committed", "layout")


def _of_types(rows: Sequence[Difference], before: CallRecord, now: CallRecord) -> list[str]:
    """A sentence for each argument whose type differs."""
    changed: dict[str, set[str]] = {}
    for row in rows:
        if row.what in _TYPES:
            changed.setdefault(row.where, set()).add(row.what)
    texts = []
    for name, old, new in zip(now.names, before.avals, now.avals, strict=False):
        if whats := changed.get(name):
            texts.append(f"{name} {_verb(whats, new)}: {_typed(old)} -> {_typed(new)}")
    return texts


def _verb(whats: set[str], new: Any) -> str:
    if whats == {"weak type"}:
        return "became weak" if getattr(new, "weak_type", False) else "is weak no longer"
    if whats == {"shape"}:
        return "has another shape"
    if whats == {"dtype"}:
        return "has another dtype"
    return "has another type"


def _typed(aval: Any) -> str:
    return ("weak " if getattr(aval, "weak_type", False) else "") + aval.str_short()


def _of_row(row: Difference, before: CallRecord, now: CallRecord, parameters: Sequence[str]) -> list[str]:
    """A sentence for a difference that is not of a type."""
    if row.what in _TYPES:
        return []
    if row.what == "static value":
        is_named = row.where.isdecimal() and int(row.where) < len(parameters)
        name = parameters[int(row.where)] if is_named else row.where
        return [f"the static argument `{name}` was {row.before}, then {row.now}"]
    if row.what == "tree":
        return [_of_tree(before, now)]
    if row.what == "function":
        return ["the function was defined again: a new object of the same line"]
    if row.what in _PLACES:
        return [f"the {row.what} of {row.where} was {row.before}, then {row.now}"]
    return [f"the {row.what} `{row.where}` was {row.before}, then {row.now}"]


def _of_tree(before: CallRecord, now: CallRecord) -> str:
    """The keys that are new or gone; the trees, if both have the same keys."""
    new = [f"`{name}` is new" for name in now.names if name not in before.names]
    gone = [f"`{name}` is gone" for name in before.names if name not in now.names]
    keys = ", ".join(new + gone)
    return f"the tree of the arguments differs: {keys or f'{before.tree}, then {now.tree}'}"
