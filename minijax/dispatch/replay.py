"""Traced calls whose equations depend on the operands' types only: repeated ones copy what an earlier call recorded."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from minijax.base import cache, config, errors, tree
from minijax.base.thread import EMPTY, thread
from minijax.calls.custom_derivatives import CustomDerivativeCall
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo, JaxprEqn, Literal
from minijax.ir.trace import DynamicJaxprTracer, JaxprTrace, Tracer, trace_to_jaxpr
from minijax.ir.types import ShapedArray
from minijax.primitives.convert import convert
from minijax.run.arrays.array import ArrayImpl


class Recording(NamedTuple):
    """The equations of a call, and the tree of its results; None for one result."""

    closed: ClosedJaxpr
    out_tree: Any
    reads_all: bool  # True if each input is read


recordings = cache.BoundedDict(16384)
lone = cache.BoundedDict(16384)
_SEEN, _REFUSED = "seen once", "not recorded"
_UNNAMED = EMPTY[1:]


def replayed(key: Hashable, arrays: Sequence, function: Callable[..., Any]) -> Any:
    """`function(*arrays)`, where `key` and the types of the arrays determine what it records.

    The second call with one key is recorded, and its equations are copied; the first if the function has a body, a
    jaxpr inside its equation, that all calls share. The function is called itself unless a jaxpr is being traced and
    all arrays, but one at most, are tracers of it; and if it warns, raises, captures values or returns an array.
    """
    trace, context = thread.trace, thread.context
    if type(trace) is not JaxprTrace or thread.manual or context is not EMPTY and context[1:] != _UNNAMED:
        return function(*arrays)
    avals, others = _types_under(trace, arrays)
    if others > 1:
        return function(*arrays)
    name = (config.state(), key, *avals)
    known = recordings.get(name)
    if known is None and not getattr(function, "_has_body", False):
        recordings[name] = _SEEN
    elif known is None or known is _SEEN:
        known = recordings[name] = _recorded(function, avals)
    if type(known) is Recording and (known.reads_all or not others):
        results = trace.inline(known.closed, arrays)
        return results[0] if known.out_tree is None else known.out_tree.unflatten(results)
    return function(*arrays)


class Lone(NamedTuple):
    """The one equation that a call records: it reads the operands in their order, and computes the result."""

    primitive: Any
    params: dict
    aval: ShapedArray
    scalar_types: list  # (dtype, weak type) of each operand that is a Python number
    body_name: str | None  # the parameter that is a jaxpr of the call's own

    def repeated(self, trace: JaxprTrace, atoms: list, arrays: Sequence) -> DynamicJaxprTracer:
        """Records the equation for other operands; None in `atoms` is a Python number."""
        params, types = self.params, self.scalar_types
        if types:
            left = iter(types)
            atoms = [
                trace.atom(convert(x, *next(left))) if a is None else a for a, x in zip(atoms, arrays, strict=True)
            ]
        if self.body_name:
            params = {**params, self.body_name: trace.copy(params[self.body_name])}
        return trace.append(self.primitive, params, self.aval, atoms)


def replayed_alone(key: Hashable, arrays: Sequence, function: Callable[..., Any]) -> Any:
    """`function(*arrays)`, whose equations depend on `key` and the types of the arrays, and which never warns.

    If the first call recorded one equation, later ones copy it, where a jaxpr is being traced and the arrays are
    tracers of it, and Python numbers.
    """
    trace, context = thread.trace, thread.context
    if thread.manual or context is not EMPTY and context[1:] != _UNNAMED:
        return function(*arrays)
    name: list[Any] = [config.state(), key]
    atoms: list[Any] = []
    for x in arrays:
        if type(x) is DynamicJaxprTracer and x._trace is trace:
            name.append(x.aval)
            atoms.append(x.val)
        elif type(x) is float or type(x) is int and x.bit_length() <= 31:
            name.append(type(x))
            atoms.append(None)
        else:
            return function(*arrays)
    known = lone.get(named := tuple(name))
    if known is None:
        count = len(trace.eqns)
        result = function(*arrays)
        lone[named] = _only_equation(trace.eqns[count:], result, atoms)
        return result
    if known is _REFUSED:
        return function(*arrays)
    return known.repeated(trace, atoms, arrays)


def _only_equation(eqns: Sequence[JaxprEqn], result: Any, atoms: Sequence) -> Any:
    """The equation that a call with these operands recorded, if it is one; None in `atoms` is a Python number."""
    if len(eqns) != 1 or type(result) is not DynamicJaxprTracer:
        return _REFUSED
    (eqn,) = eqns
    primitive, aval = eqn.primitive, result.aval
    if eqn.outvars != [result.val] or type(aval) is not ShapedArray or eqn.effects or primitive.fold is not None:
        return _REFUSED
    numbers = [a for a, own in zip(eqn.invars, atoms, strict=False) if own is None and type(a) is Literal]
    left = iter(numbers)
    if eqn.invars != [next(left, None) if own is None else own for own in atoms]:
        return _REFUSED
    body_name = primitive.body_name if isinstance(primitive, CustomDerivativeCall) else None
    return Lone(primitive, eqn.params, aval, [(a.aval.dtype, a.aval.weak_type) for a in numbers], body_name)


def _types_under(trace: JaxprTrace, arrays: Sequence) -> tuple[list, int]:
    """The types of the arrays, and how many are not tracers of this trace; one that has no array type counts twice."""
    avals, others = [], 0
    for x in arrays:
        if not (type(x) is DynamicJaxprTracer and x._trace is trace):
            others += 1 if isinstance(x, Tracer) or type(x) is ArrayImpl else 2
        aval = x.aval if others < 2 else None
        if type(aval) is not ShapedArray:
            return avals, 2
        avals.append(aval)
    return avals, others


def _recorded(function: Callable, avals: Sequence) -> Any:
    out_trees: list[Any] = []

    def flat(*tracers):
        leaves, out_tree = tree.flatten(function(*tracers))
        out_trees.append(out_tree)
        return leaves

    try:
        with errors.warnings_raised():
            closed = ClosedJaxpr(*trace_to_jaxpr(flat, avals, DebugInfo("jit", getattr(function, "__name__", "f"))))
    except Exception:
        return _REFUSED  # the direct call raises or warns again, for the user
    jaxpr = closed.jaxpr
    if closed.consts or jaxpr.effects or not set(jaxpr.invars).isdisjoint(jaxpr.outvars):
        return _REFUSED
    read = {a for eqn in jaxpr.eqns for a in eqn.invars}
    out_tree = None if tree.treedef_is_strict_leaf(out_trees[0]) else out_trees[0]
    return Recording(closed, out_tree, read.issuperset(jaxpr.invars))
