"""`find_nan`: runs a jaxpr operation by operation, and says which one makes the first NaN or infinity."""

from __future__ import annotations

import inspect
import linecache
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.api.jit import make_jaxpr
from minijax.base import dtypes, source, tree
from minijax.calls.call import Inlined
from minijax.higher.cond import cond_p
from minijax.higher.scan import scan_p
from minijax.higher.while_loop import Loop, while_p
from minijax.ir import context, state
from minijax.ir.jaxpr import ClosedJaxpr, JaxprEqn, Literal
from minijax.ir.trace import environment, last_uses, values_of
from minijax.ir.types import typeof
from minijax.numpy.shaping import stack
from minijax.numpy.taking import where
from minijax.primitives.moving import as_array_or_constant
from minijax.run.arrays.array import Array

_CHAIN = 6  # steps of the chain that are shown
_TRACED = (Array, np.ndarray, np.inexact, float, complex)


class Range(NamedTuple):
    """The type of a value and the range of its finite numbers; None for both ends if it has none.

    Complex numbers count by their absolute values.
    """

    type: str
    low: float | None = None
    high: float | None = None
    zeros: int = 0
    nans: int = 0
    infinities: int = 0
    size: int = 0

    def __str__(self):
        ends = "" if self.low is None else f" from {self.low:.6g} to {self.high:.6g}"
        counts = ((self.zeros, "zero"), (self.nans, "NaN"), (self.infinities, "infinite"))
        parts = [f"{n} of {self.size} {word}" if self.size > 1 else word for n, word in counts if n]
        if self.size == 1 and self.low is not None:
            return f"{self.type} = {self.low:.6g}"
        return f"{self.type}{ends}{', ' * bool(ends and parts) or ' ' * bool(parts)}{', '.join(parts)}"


class Step(NamedTuple):
    """A value that led to the first NaN: the operation that made it, where, and its range."""

    operation: str
    range: Range
    file: str | None = None
    line: int | None = None

    def __str__(self):
        place = f"  {_short(self.file)}:{self.line}" if self.file else ""
        return f"{self.operation}: {self.range}{place}"


class Iteration(NamedTuple):
    """The number of an iteration, from 0, of a loop, which is a scan or a while loop, and the loop's line."""

    loop: str
    number: int
    length: int | None
    file: str | None
    line: int | None

    def __str__(self):
        length = "" if self.length is None else f" (of {self.length})"
        place = f", {_short(self.file)}:{self.line}" if self.file else ""
        return f"iteration {self.number}{length} of {self.loop}{place}"


class FirstNaN(NamedTuple):
    """The first operation that makes a NaN or an infinity, what `find_nan` returns.

    Attributes:
        kind: "nan" or "inf".
        operation: The name of the operation.
        file: The file of the user's line; None if it is not known.
        line: Its number.
        function: The function around it.
        source: Its text.
        part: "forward" or "backward".
        name_stack: The scopes and transformations around the operation.
        operands: The ranges of its operands.
        results: The ranges of its results.
        iterations: The loops around it, the outermost first.
        chain: The values that led to it, the nearest first.
    """

    kind: str
    operation: str
    file: str | None
    line: int | None
    function: str
    source: str
    part: str
    name_stack: str
    operands: tuple[Range, ...]
    results: tuple[Range, ...]
    iterations: tuple[Iteration, ...]
    chain: tuple[Step, ...]

    def __repr__(self):
        word = "NaN" if self.kind == "nan" else "infinity"
        place = f"{self.file}:{self.line} ({self.function})" if self.file else "a line that is not known"
        lines = [f"The first {word} is made by {self.operation}, in the {self.part} part, at {place}"]
        lines += [f"    {self.source}"] * bool(self.source)
        lines += [f"  in {iteration}" for iteration in self.iterations]
        lines += [f"  operand {i}: {x}" for i, x in enumerate(self.operands)]
        lines += [f"  result: {x}" for x in self.results]
        lines += [f"  name stack: {self.name_stack}"] * bool(self.name_stack)
        lines += ["  the values that led to it, the nearest first:"] * bool(self.chain)
        return "\n".join([*lines, *(f"    {step}" for step in self.chain)])


def _short(file: str | None) -> str:
    return os.path.basename(file or "")


class _Node:
    """How a value was made: the step, and the nodes of the operands."""

    __slots__ = ("step", "parents")

    def __init__(self, step: Step, parents: Sequence[_Node] = ()):
        self.step, self.parents = step, parents


class _Value(NamedTuple):
    value: Any
    node: _Node


class _Found(Exception):
    """Ends the search."""

    def __init__(self, finding: FirstNaN):
        self.finding = finding


def range_of(x: Any) -> Range:
    """The type and the range of a value."""
    aval: Any = typeof(x)
    name, dtype = aval.str_short(short_dtypes=True), getattr(aval, "dtype", None)
    if dtype is None or dtypes.is_extended(dtype) or not isinstance(x, (Array, np.ndarray, np.generic, int, float)):
        return Range(name)
    numbers = np.asarray(x)
    if numbers.dtype == np.bool_ or not numbers.size:
        return Range(name)
    if not dtypes.is_inexact(dtype):
        return Range(name, int(numbers.min()), int(numbers.max()), size=numbers.size)
    if numbers.dtype.itemsize < 4:
        numbers = numbers.astype(np.float32)
    finite = numbers[np.isfinite(numbers)]
    finite = np.abs(finite) if np.iscomplexobj(finite) else finite
    ends = (float(finite.min()), float(finite.max())) if finite.size else (None, None)
    nans, infinities = np.isnan(numbers), np.isinf(numbers)
    zeros = int((numbers == 0).sum()) if numbers.size > 1 else 0
    return Range(name, *ends, zeros, int(nans.sum()), int((infinities & ~nans).sum()), numbers.size)


def _place(traceback: Any) -> tuple[str | None, int | None, str]:
    frames = source.user_frames(traceback)
    return (frames[0].file_name, frames[0].line_num, frames[0].function_name) if frames else (None, None, "")


class _Search:
    """Evaluates jaxprs; raises _Found at the first NaN, or infinity if `infinities`."""

    def __init__(self, infinities: bool):
        self.infinities = infinities
        self.iterations: tuple[Iteration, ...] = ()
        self.names: tuple = ()

    def run(self, closed: ClosedJaxpr, args: Sequence[_Value]) -> list[_Value]:
        jaxpr = closed.jaxpr
        values = environment(jaxpr, closed.consts)
        nodes = {v: _Node(Step("constant", range_of(x))) for v, x in values.items()}
        for v, x in zip(jaxpr.invars, args, strict=True):
            values[v], nodes[v] = x
        last = last_uses(jaxpr)
        with context.within() as enter:
            for i, eqn in enumerate(jaxpr.eqns):
                operands = self._read(eqn.invars, values, nodes)
                enter(eqn.ctx, eqn.traceback)
                for v, x in zip(eqn.outvars, self._equation(eqn, operands), strict=True):
                    values[v], nodes[v] = x
                for v in last.get(i, ()):
                    values.pop(v, None)
                    nodes.pop(v, None)
        return self._read(jaxpr.outvars, values, nodes)

    def _read(self, atoms: Sequence, values: dict, nodes: dict) -> list[_Value]:
        read = values_of(atoms, values)
        made = lambda a, x: _Node(Step("literal", range_of(x))) if type(a) is Literal else nodes[a]  # noqa: E731
        return [_Value(x, made(a, x)) for a, x in zip(atoms, read, strict=True)]

    def _equation(self, eqn: JaxprEqn, operands: list[_Value]) -> list[_Value]:
        rule = _RULES.get(eqn.primitive)
        if rule is None and not isinstance(eqn.primitive, Inlined):
            return self.operation(eqn, operands)
        names, iterations = self.names, self.iterations
        self.names = (*names, *eqn.ctx.name_stack)
        results = rule(self, eqn, operands) if rule else self.run(eqn.primitive.body(eqn.params), operands)
        self.names, self.iterations = names, iterations
        return results

    def operation(self, eqn: JaxprEqn, operands: list[_Value]) -> list[_Value]:
        """Runs an operation that has no body, or one that is not entered, and looks at its results."""
        results = eqn.primitive.rebind(state.current_trace(), [x.value for x in operands], eqn.params)
        ranges = [range_of(x) for x in results]
        before = [x.node.step.range for x in operands]
        if kind := self._made(before, ranges):
            raise _Found(self._finding(kind, eqn, operands, ranges))
        file, line, _ = _place(eqn.traceback)
        parents = [x.node for x in operands]
        return [
            _Value(x, _Node(Step(eqn.primitive.name, r, file, line), parents))
            for x, r in zip(results, ranges, strict=True)
        ]

    def _made(self, before: Sequence[Range], after: Sequence[Range]) -> str | None:
        """The kind of what arose; an infinity does not arise from a NaN or from another infinity."""
        if any(r.nans for r in before):
            return None
        if any(r.nans for r in after):
            return "nan"
        arose = any(r.infinities for r in after) and not any(r.infinities for r in before)
        return "inf" if self.infinities and arose else None

    def _finding(self, kind: str, eqn: JaxprEqn, operands: list[_Value], ranges: list[Range]) -> FirstNaN:
        file, line, function = _place(eqn.traceback)
        stack = (*self.names, *eqn.ctx.name_stack)
        text = linecache.getline(file, line).strip() if file and line else ""
        return FirstNaN(
            kind,
            eqn.primitive.name,
            file,
            line,
            function,
            text,
            "backward" if context.TRANSPOSE in stack else "forward",
            context.path(stack),
            tuple([x.node.step.range for x in operands]),
            tuple(ranges),
            self.iterations,
            _chain([x.node for x in operands]),
        )

    def enter_iteration(self, outer: tuple, eqn: JaxprEqn, number: int, length: int | None) -> None:
        self.iterations = (*outer, Iteration(eqn.primitive.name, number, length, *_place(eqn.traceback)[:2]))


def _chain(nodes: Sequence[_Node]) -> tuple[Step, ...]:
    """The steps behind an operation, breadth first, but for literals."""
    steps, waiting, seen = [], list(nodes), set()
    while waiting and len(steps) < _CHAIN:
        node = waiting.pop(0)
        if id(node) not in seen:
            seen.add(id(node))
            waiting += node.parents
            if node.step.operation != "literal":
                steps.append(node.step)
    return tuple(steps)


# ---- control flow: (search, equation, operands) -> results -------------------------------------------


def _cond(search: _Search, eqn: JaxprEqn, operands: list[_Value]) -> list[_Value]:
    index, *rest = operands
    branches = eqn.params["branches"]
    return search.run(branches[min(max(int(index.value), 0), len(branches) - 1)], rest)


def _carried(values: Sequence[_Value]) -> list[_Value]:
    """The carry without its history, so that a long loop keeps nothing of its earlier iterations."""
    return [_Value(x, _Node(node.step)) for x, node in values]


def _scan(search: _Search, eqn: JaxprEqn, operands: list[_Value]) -> list[_Value]:
    params, outer = eqn.params, search.iterations
    n, m, length = params["num_consts"], params["num_carry"], params["length"]
    if not length:
        return search.operation(eqn, operands)
    consts, carry, stacked = operands[:n], operands[n : n + m], operands[n + m :]
    rows: list[list[Any]] = []
    numbers = range(length)
    for i in reversed(numbers) if params["reverse"] else numbers:
        search.enter_iteration(outer, eqn, i, length)
        slices = [_slice(x, i) for x in stacked]
        results = search.run(params["jaxpr"], [*consts, *_carried(carry), *slices])
        carry = results[:m]
        rows.append([x.value for x in results[m:]])
    rows = rows[::-1] if params["reverse"] else rows
    columns = zip(*rows, strict=True)
    return [*carry, *(_made_by(eqn, stack(column)) for column in columns)]


def _slice(x: _Value, i: int) -> _Value:
    return _derived(as_array_or_constant(x.value)[i], f"slice {i} of {x.node.step.operation}", x)


def _derived(x: Any, text: str, whole: _Value) -> _Value:
    step = whole.node.step
    return _Value(x, _Node(Step(text, range_of(x), step.file, step.line)))


def _made_by(eqn: JaxprEqn, x: Any) -> _Value:
    return _Value(x, _Node(Step(eqn.primitive.name, range_of(x), *_place(eqn.traceback)[:2])))


def _while(search: _Search, eqn: JaxprEqn, operands: list[_Value]) -> list[_Value]:
    loop, outer, number = Loop(**eqn.params), search.iterations, 0
    of_cond, of_body, carry = map(list, loop.split(operands))
    while True:
        search.enter_iteration(outer, eqn, number, None)
        going = search.run(loop.cond_jaxpr, [*of_cond, *_carried(carry)])[0].value
        flags = np.asarray(going)
        if not flags.any():
            return carry
        results = search.run(loop.body_jaxpr, [*of_body, *_carried(carry)])
        # Examples of a batch that have ended keep their values, and their rows cannot hide a later NaN.
        carry = results if flags.all() else [_kept(going, new, old) for new, old in zip(results, carry, strict=True)]
        number += 1


def _kept(going: Any, new: _Value, old: _Value) -> _Value:
    flags = as_array_or_constant(going)
    flags = flags.reshape(flags.shape + (1,) * (np.ndim(new.value) - flags.ndim))
    chosen = where(flags, new.value, old.value)
    return _derived(chosen, new.node.step.operation, new)


_RULES: dict[Any, Callable[[_Search, JaxprEqn, list[_Value]], list[_Value]]] = {
    cond_p: _cond,
    scan_p: _scan,
    while_p: _while,
}


def _named_leaves(f: Callable, args: tuple, kwargs: dict) -> list[str]:
    """The names of the arguments' leaves, such as `params['w']`."""
    try:
        bound = inspect.signature(f).bind(*args, **kwargs)
        names = [name for name, p in bound.signature.parameters.items() if p.kind is not p.VAR_POSITIONAL]
    except (TypeError, ValueError):
        names = []
    words = [names[i] if i < len(names) else f"args[{i}]" for i in range(len(args))]
    paths = [path for x in args for path, _ in tree.tree_flatten_with_path(x)[0]]
    counts = [len(tree.tree_leaves(x)) for x in args]
    owners = [word for word, n in zip(words, counts, strict=True) for _ in range(n)]
    named = [owner + tree.keystr(path) for owner, path in zip(owners, paths, strict=True)]
    rest = [path for path, _ in tree.tree_flatten_with_path(kwargs)[0]]
    return [*named, *("kwargs" + tree.keystr(path) for path in rest)]


@source.boundary
def find_nan(f: Callable, *args: Any, infinities: bool = True, **kwargs: Any) -> FirstNaN | None:
    """Finds the first operation of a function that makes a NaN or an infinity out of finite operands.

    The function is traced, and its operations run one by one, also those of the bodies of jitted functions, loops,
    branches and custom rules: `find_nan(jax.grad(loss), x)` finds operations of the backward part. This is slow, and
    meant for debugging. Bodies of `shard_map` and of kernels are run as one operation.

    Args:
        f: The function.
        *args: Its arguments; arrays and floats are traced, all others are passed as they are.
        infinities: Whether operations that make infinities count, too; if false, only those that make NaNs do.
        **kwargs: Its keyword arguments.

    Returns:
        An object that says which operation it is, its line, its operands with their ranges, the iterations of the
        loops around it, and the values that led to it; None if all operations are innocent. Printing it shows all.

    Raises:
        TypeError: If `f` is not callable.

    Example:
        >>> found = jax.find_nan(jax.jit(lambda x: jnp.log(x - 2)), 1.0)
        >>> found.kind, found.operation, found.operands[0].low
        ('nan', 'log', -1.0)
    """
    if not callable(f):
        raise TypeError(f"find_nan: the first argument must be callable, got {f!r}")
    leaves, structure = tree.tree_flatten((args, kwargs))
    places = [i for i, x in enumerate(leaves) if isinstance(x, _TRACED)]

    def function(*traced):
        filled = list(leaves)
        for i, x in zip(places, traced, strict=True):
            filled[i] = x
        args, kwargs = structure.unflatten(filled)
        return f(*args, **kwargs)

    values = [as_array_or_constant(leaves[i]) for i in places]
    names = _named_leaves(f, args, kwargs)
    closed = make_jaxpr(function)(*values)
    ins = [_Value(x, _Node(Step(f"argument {names[i]}", range_of(x)))) for i, x in zip(places, values, strict=True)]
    try:
        _Search(infinities).run(closed, ins)
    except _Found as found:
        return found.finding
    return None
