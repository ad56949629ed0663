"""Explains why jitted functions are traced: the differences from the nearest earlier call, also for the log."""

import functools
import itertools
import operator
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minijax.base import cache, config, monitoring, source
from minijax.base.thread import thread
from minijax.ir.body import source_of

_REMEMBERED = 64  # calls of each definition
_histories = cache.BoundedDict(1024)  # by definition of a function: its calls, the latest last
numbers = itertools.count(1)  # for the caches of jitted functions


class Difference(NamedTuple):
    """One difference between two calls: its kind, the argument or option, and the values before and now."""

    what: str
    where: str
    before: str
    now: str


class CallRecord(NamedTuple):
    """The data on which a trace depends, as types and texts: keeps neither arrays nor the user's objects alive."""

    traceback: Any
    function: int  # the number of the function's cache
    jit: Sequence[Any]  # the options of `jit`, as named tuples
    names: Sequence[str]
    avals: Sequence[Any]
    placed: Sequence[Any]  # the signatures of the arguments, if all are arrays
    tree: str
    static: tuple[tuple[int | str, str, str], ...]  # position or name, type, value
    options: config.State
    axes: tuple[str, str]


class CacheInfo(NamedTuple):
    """How often a function was traced, and how many traces and programs are cached."""

    traces: int
    cached_traces: int
    cached_programs: int


class Explanation(NamedTuple):
    """Why a function was traced. Its `str` is a table of the differences from the nearest earlier call."""

    function: str
    traces: int  # of this definition, among the stored calls
    line: str
    earlier: str | None  # the line of the nearest earlier call
    differences: tuple[Difference, ...]

    def __str__(self):
        first = f"{self.function}: traced at {self.line}"
        if self.earlier is None:
            return f"{first}\n  no earlier call is known"
        first += f", call {self.traces} that is known; the nearest earlier one is at {self.earlier}"
        if not self.differences:  # after `clear_cache`, or if captured values belong to a finished trace, ...
            return f"{first}\n  nothing differs: its cache entry is gone, or it was not compiled yet"
        rows = [Difference._fields, *self.differences]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) for row in rows)
        return "\n".join([first, *(f"  {line.rstrip()}" for line in lines)])


class RecompileError(RuntimeError):
    """Is raised if a function is traced more often than a `recompile_budget` allows; `explanation` has the reason.

    Example:
        >>> f = jax.jit(lambda x: x + 1)
        >>> try:
        ...     with minijax.recompile_budget(1):
        ...         f(1), f(2.0)
        ... except minijax.RecompileError as error:
        ...     print(error)
        recompile_budget: <lambda> at ... is traced 2 times, the budget is 1. ...
    """

    def __init__(self, message: str, explanation: Explanation | None = None):
        super().__init__(message)
        self.explanation = explanation


class recompile_budget:
    """Raises RecompileError if a jitted function is traced more than `n` times within this context, in this thread.

    It is also a decorator, in which case each call has its own budget. Functions that are defined on one line count as
    one, since functions defined in a loop are the most common cause of recompilation.

    Example:
        >>> f = jax.jit(lambda x: 2 * x)
        >>> with jax.recompile_budget(1):
        ...     f(jnp.ones(2)), f(jnp.ones(3))
        Traceback (most recent call last):
            ...
        minijax.dispatch.explain.RecompileError: recompile_budget: ...
    """

    def __init__(self, n: int):
        self._n = operator.index(n)
        if self._n < 0:
            raise ValueError(f"recompile_budget: n is a number of traces and cannot be negative, got {n}")
        self._counts: list[dict[Any, int]] = []

    def __enter__(self) -> "recompile_budget":
        self._counts.append({})
        thread.budgets = (*thread.budgets, self)
        return self

    def __exit__(self, *exception: object) -> None:
        self._counts.pop()
        thread.budgets = thread.budgets[:-1]

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def within(*args, **kwargs):
            with recompile_budget(self._n):
                return function(*args, **kwargs)

        return within

    def spend(self, definition: str, history: Sequence[CallRecord]) -> None:
        """Counts a trace, whose call is the last in the history."""
        counts, place = self._counts[-1], _definition_key(definition, history[-1].function)
        counts[place] = count = counts.get(place, 0) + 1
        if count > self._n:
            explanation = _explained(definition, list(history), history[-1])
            text = f"recompile_budget: {definition} is traced {count} times, the budget is {self._n}.\n{explanation}"
            raise RecompileError(text, explanation)


def describe(function: int, options: tuple, names: Sequence[str], key: tuple, placed: Sequence[Any]) -> CallRecord:
    """The call with that key, which consists of thread state, types, tree and static arguments."""
    state, axes, manual, _, avals, treedef, static = key
    values = [(where, type(s.value).__qualname__, _text(s.value)) for where, s in static]
    texts = str(axes), str(manual)
    return CallRecord(source.here(), function, options, names, avals, placed, str(treedef), tuple(values), state, texts)


def _text(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:
        return f"<{type(value).__qualname__} without a repr>"
    return text if len(text) <= 200 else f"{text[:150]}... ({len(text)} characters, hash {hash(value)})"


def _definition_key(definition: str, function: int) -> Any:
    """The key that all functions of one definition share; a callable without a source line has its own."""
    return definition if " at " in definition else (definition, function)


def note(fun: Callable, definition: str, call: CallRecord, by_user: bool, is_trace: bool) -> None:
    """Stores a call that caused tracing or compilation. Raises RecompileError if a budget is exceeded.

    `definition`: `source_of(fun)`.
    """
    place = _definition_key(definition, call.function)
    history = _histories.get(place) or _histories.once(place, lambda: deque(maxlen=_REMEMBERED))
    if is_trace and by_user and config.explain_cache_misses.value:
        _log(fun, definition, call, list(history))
    history.append(call)
    for budget in thread.budgets if is_trace and by_user else ():
        budget.spend(definition, history)


def why(fun: Callable, function: int) -> Explanation | None:
    """Explains why the function with that number was last traced or compiled; None if no call of it is stored."""
    definition = source_of(fun)
    history = list(_histories.get(_definition_key(definition, function), ()))
    calls = [call for call in history if call.function == function]
    return _explained(definition, history, calls[-1]) if calls else None


def _explained(definition: str, history: Sequence[CallRecord], call: CallRecord) -> Explanation:
    line = source.summary(call.traceback)
    at = next(i for i in reversed(range(len(history))) if history[i] is call)
    earlier = [history[i] for i in reversed(range(at))]  # among equally near ones, `min` takes the latest
    pairs = [(differences(other, call), other) for other in earlier]
    if not pairs:
        return Explanation(definition, 1, line, None, ())
    nearest, other = min(pairs, key=lambda pair: len(pair[0]))
    return Explanation(definition, at + 1, line, source.summary(other.traceback), tuple(nearest))


def differences(before: CallRecord, now: CallRecord) -> list[Difference]:
    """The differences between two calls of a definition."""
    rows = _of_functions(before, now) + _of_statics(before, now) + _of_options(before, now)
    if before.tree != now.tree:
        return [*rows, Difference("tree", "arguments", before.tree, now.tree)]
    for name, old, new in zip(now.names, before.avals, now.avals, strict=True):
        if old is not new:
            changed = _of_fields(name, old, new, ("shape", "dtype", "weak_type", "memory_space"))
            rows += changed or [Difference("type", name, str(old), str(new))]
    if before.placed and now.placed:
        for name, old, new in zip(now.names, before.placed, now.placed, strict=True):
            rows += _of_fields(name, old, new, ("sharding", "committed", "layout"))
    return rows


def _of_fields(where: str, old: Any, new: Any, fields: Sequence[str]) -> list[Difference]:
    pairs = [(field, getattr(old, field, None), getattr(new, field, None)) for field in fields]
    return [Difference(field.replace("_", " "), where, str(a), str(b)) for field, a, b in pairs if a != b]


def _of_functions(before: CallRecord, now: CallRecord) -> list[Difference]:
    if before.function == now.function:
        return []
    old, new = ([item for part in call.jit for item in part._asdict().items()] for call in (before, now))
    rows = [
        Difference("jit option", name, str(a), str(b)) for (name, a), (_, b) in zip(old, new, strict=True) if a != b
    ]
    return rows or [Difference("function", "of this definition", "another object", "a new object")]


def _of_statics(before: CallRecord, now: CallRecord) -> list[Difference]:
    old, new = ({where: (kind, text) for where, kind, text in call.static} for call in (before, now))
    rows = []
    for where in dict.fromkeys((*new, *old)):
        a, b = (values.get(where, ("", "absent")) for values in (old, new))
        if a != b:
            shown = [x[1] for x in (a, b)] if a[1] != b[1] else [f"{x[1]} ({x[0]})" for x in (a, b)]
            rows.append(Difference("static value", str(where), *shown))
    return rows


def _of_options(before: CallRecord, now: CallRecord) -> list[Difference]:
    old, new = vars(before.options), vars(now.options)
    rows = [
        Difference("option", f"jax_{name}", str(old.get(name)), str(value))
        for name, value in new.items()
        if value is not old.get(name)
    ]
    pairs = zip(("named axes", "manual axes"), before.axes, now.axes, strict=True)
    return rows + [Difference("context", what, a, b) for what, a, b in pairs if a != b]


# ---- the log ----------------------------------------------------------------------------------------

_WEAK_TYPES = "https://docs.jax.dev/en/latest/type_promotion.html#weak-types"


def _log(fun: Callable, definition: str, call: CallRecord, history: Sequence[CallRecord]) -> None:
    name, _, place = definition.partition(" at ")
    lines = [f"TRACING CACHE MISS at {source.summary(call.traceback, columns=True)}:"]
    known = [_logged(other, call) for other in reversed(history) if other.function == call.function]
    if not known or [] in known:  # a function after `clear_cache` counts as new
        lines += ["  never seen function:", f"    {name} id={id(fun)}{place and f' defined at {place}'}"]
        options = [] if known or not history else _of_functions(history[-1], call)
        if [d.what for d in options] == ["jit option"] * len(options):
            lines += [f"    * its jit option {d.where} differs: now {d.now} and before {d.before}" for d in options]
        else:
            lines += ["  but seen another function defined on the same line; maybe the function is"]
            lines += ["  being re-defined repeatedly, preventing caching?"]
    else:
        lines += [f"  for {name}{place and f' defined at {place}'}"]
        lines += ["  all previously seen cache keys differ. For the closest previous key:"]
        lines += ["  " + line for line in min(known, key=len)]
    monitoring.log_cache_miss("\n".join(lines))


def _logged(before: CallRecord, now: CallRecord) -> list[str]:
    lines = []
    if before.tree != now.tree:
        lines += ["different input pytree:", f"* now {now.tree} and before {before.tree}"]
    elif before.avals != now.avals:
        lines.append("different input types:")
        triples = zip(now.names, now.avals, before.avals, strict=True)
        lines += [f"* at {name}, {_logged_types(a, b)}" for name, a, b in triples if a != b]
    if static := _of_statics(before, now):
        lines += [
            "different static arguments:",
            *(f"* at {d.where}, now {d.now} and before {d.before}" for d in static),
        ]
    if context := _of_options(before, now):
        lines.append("Tracing context doesn't match, e.g. due to config or context manager.")
        lines += [f"* {d.where} differs: now {d.now} and before {d.before}" for d in context]
    return lines


def _logged_types(now: Any, before: Any) -> str:
    texts, end = [a.str_short(True) for a in (now, before)], ""
    if texts[0] == texts[1] and getattr(now, "weak_type", None) != getattr(before, "weak_type", None):
        texts, end = [f"{texts[0]}{{weak_type={a.weak_type}}}" for a in (now, before)], f": {_WEAK_TYPES}"
    return f"now {texts[0]} and before {texts[1]}{end}"
