"""Lowering of user-defined (hijax) types: replaces hi values in jaxprs and operations by their lo values.

Below, a value of the type `PairType` becomes two numbers:

>>> class PairType(hijax.HiType):
...     lo_ty = lambda self: [jax.typeof(1.0)] * 2
...     lower_val = lambda self, pair: list(pair.numbers)
...     raise_val = lambda self, *numbers: Pair(*numbers)
...     str_short = lambda self, *_, **__: "Pair"
...     __hash__ = lambda self: 0
...     __eq__ = lambda self, other: type(other) is PairType
>>> class Pair:
...     def __init__(self, *numbers):
...         self.numbers = numbers
>>> hijax.register_hitype(Pair, lambda pair: PairType())
>>> swapped = jax.make_jaxpr(jax.jit(lambda pair: pair))(Pair(1.0, 2.0))
>>> swapped.jaxpr.invars[0].aval.str_short(), [a.str_short() for a in lower_hi_jaxpr(swapped).closed.in_avals]
('Pair', ['float32[]', 'float32[]'])
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from minijax.ir import context, effects, state
from minijax.ir.context import EMPTY
from minijax.ir.hitypes import AvalQDD, full_type
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn, Var, is_high_call
from minijax.ir.primitive import Primitive
from minijax.ir.refs import REF_EFFECT, AbstractRef, Ref, is_ref
from minijax.ir.trace import Trace, eval_jaxpr, trace_to_jaxpr
from minijax.ir.types import Aval, typeof
from minijax.transforms.discharge import DischargeableCall, dereferenced


def is_hi_operation(primitive: Primitive, operands: Sequence, params: dict) -> bool:
    """Returns whether an operation has hi operands, is a hi primitive, or has a hi jaxpr as a parameter."""
    return is_high_call(primitive, params) or any(typeof(x).is_high for x in operands)


class LoTrace(Trace):
    """Forwards operations to its parent, and lowers those on hi values."""

    keeps_written_types = True
    __slots__ = ()

    def qdd_of(self, x):
        return x.cur_qdd()

    def process(self, primitive, operands, params):
        if primitive.to_lo is not None and is_hi_operation(primitive, operands, params):
            return primitive.to_lo(operands, params)
        with state.set_current_trace(self.parent):
            return self.parent.process(primitive, operands, params)


def lower_values(types: Sequence[Aval], values: Sequence) -> list[list]:
    """The lo values of each hi value; for a mutable one, those of its state."""
    pairs = zip(types, values, strict=True)
    return [a.read_loval(x) if type(a) is AvalQDD else list(a.lower_val(x)) for a, x in pairs]


def raise_values(types: Sequence[Aval], lo_values: Sequence) -> list:
    """The hi values of these types with the given lo values; mutable ones are new objects."""
    parts, values = iter(lo_values), []
    for a in types:
        own = islice(parts, len(a.lo_ty()))
        values.append(a.new_from_loval(*own) if type(a) is AvalQDD else a.raise_val(*own))
    return values


def flat(groups: Sequence[Sequence]) -> list:
    return [x for group in groups for x in group]


class LoweredJaxpr(NamedTuple):
    """A jaxpr over lo values; it returns the final states of mutable inputs, then the results."""

    closed: ClosedJaxpr
    in_types: tuple[Aval, ...]
    last_types: tuple[AvalQDD, ...]  # of the mutable inputs
    out_types: tuple[Aval, ...]

    def hi_indices(self, types: Sequence[Aval]) -> Iterator[int]:
        """For each lo value, the index of its hi value."""
        return (i for i, a in enumerate(types) for _ in a.lo_ty())

    def raise_values(self, operands: Sequence, results: Sequence) -> list:
        """The hi results; stores the final states in the mutable operands."""
        rest = iter(results)
        changed = [x for a, x in zip(self.in_types, operands, strict=True) if type(a) is AvalQDD]
        for a, x in zip(self.last_types, changed, strict=True):
            a.aval.update_from_loval(a.qdd, x, *islice(rest, len(a.lo_ty())))
        return raise_values(self.out_types, list(rest))


@state.traced_cache
def lower_hi_jaxpr(closed: ClosedJaxpr) -> LoweredJaxpr:
    """Lowers the hi values and hi primitives of a jaxpr."""
    in_types, out_types = closed.in_avals, closed.out_avals
    if returned := [a for a in out_types if type(a) is AvalQDD]:
        name = closed.debug_info.func_name
        raise TypeError(f"{name} returns a value of type {returned[0].aval}, but mutable values cannot be returned")
    last_types = [a.last() for a in in_types if type(a) is AvalQDD]

    def run(*lo_values):
        args = raise_values(in_types, lo_values)
        results = lower_values(out_types, eval_jaxpr(closed.jaxpr, closed.consts, *args))
        changed = [x for a, x in zip(in_types, args, strict=True) if type(a) is AvalQDD]
        return flat([*lower_values(last_types, changed), *results])

    def in_lo(*lo_values):
        return context.run_under(LoTrace(state.current_trace()), run, *lo_values)

    info = _with_names_of_lo_values(closed.debug_info, in_types, last_types, out_types)
    jaxpr, consts = trace_to_jaxpr(in_lo, flat([a.lo_ty() for a in in_types]), info)
    return LoweredJaxpr(ClosedJaxpr(jaxpr, consts), tuple(in_types), tuple(last_types), tuple(out_types))


def _with_names_of_lo_values(
    info: DebugInfo, ins: Sequence[Aval], last: Sequence[Aval], outs: Sequence[Aval]
) -> DebugInfo:
    """The names of arguments and results, repeated for each of their lo values."""
    names, paths = info.arg_names, info.result_paths
    if names is not None:
        names = tuple([n for n, a in zip(names, ins, strict=True) for _ in a.lo_ty()])
    if paths is not None:
        unnamed = [("", a) for a in last]
        paths = tuple([p for p, a in (*unnamed, *zip(paths, outs, strict=True)) for _ in a.lo_ty()])
    return info._replace(arg_names=names, result_paths=paths)


# ---- control flow, whose bodies take references to mutable states -----------------------------------


class CallOnRefs(Primitive):
    """Calls a jaxpr on operands and on the values of references, and stores its first results in the references."""

    name = "call_on_refs"
    multiple_results = True
    auto_pvary = False

    def infer(self, *avals, closed):
        return closed.out_avals[sum(type(a) is AbstractRef for a in avals) :]

    def effects(self, *avals, closed):
        return REF_EFFECT

    def rebind(self, trace, operands, params):
        refs = list(filter(is_ref, operands))
        closed = params["closed"]
        results = eval_jaxpr(closed.jaxpr, closed.consts, *dereferenced(operands))
        for ref, value in zip(refs, results, strict=False):
            ref._value = value
        return results[len(refs) :]


call_on_refs_p = CallOnRefs()


def _with_refs(name: str, closed: ClosedJaxpr) -> ClosedJaxpr:
    """The jaxpr over lo values, with references to the states of mutable inputs.

    Raises TypeError if the type of a state changes.
    """
    low = lower_hi_jaxpr(closed)
    for a in low.in_types:
        if type(a) is AvalQDD and a.last().qdd.normalize() != a.qdd.normalize():
            where = {"while": "while_loop body", "scan": "scan body", "cond": "cond branch"}.get(name, name)
            raise TypeError(f"type-changing mutations not allowed in {where}: {a.qdd} became {a.last().qdd}")
    if not low.last_types:
        return low.closed
    is_state = [type(low.in_types[i]) is AvalQDD for i in low.hi_indices(low.in_types)]
    avals = [AbstractRef(a) if b else a for a, b in zip(low.closed.in_avals, is_state, strict=True)]
    invars = list(map(Var, avals))
    outvars = [Var(a) for a in low.closed.out_avals[sum(is_state) :]]
    effs = effects.join(REF_EFFECT, low.closed.effects)
    eqn = JaxprEqn([*invars], outvars, call_on_refs_p, dict(closed=low.closed), effs, None, EMPTY)
    return ClosedJaxpr(Jaxpr([], invars, outvars, [eqn], effs, closed.debug_info._replace(arg_names=None)))


_with_refs_cached = state.traced_cache(lambda closed, name: _with_refs(name, closed))


class HiControlFlow(DischargeableCall):
    """A higher-order operation that accepts hi operands: it is bound to their lo values."""

    def regrouped(self, counts: Sequence[int], params: dict, new: dict) -> dict:
        """The parameters `new`, in which each operand of a call with `params` is replaced by as many as `counts`."""
        return new

    def to_lo(self, operands: Sequence, params: dict) -> list:
        types: list[Any] = [full_type(x) for x in operands]
        out_types, _ = self.typed(types, params)
        groups = lower_values(types, operands)
        mutable = [i for i, a in enumerate(types) if type(a) is AvalQDD]
        for i in mutable:
            groups[i] = [Ref(x) for x in groups[i]]
        bodies = {name: self._bodies_with_refs(value) for name, value in params.items()}
        results = self.bind_all(flat(groups), self.regrouped(list(map(len, groups)), params, bodies))
        for i in mutable:
            types[i].aval.update_from_loval(types[i].qdd, operands[i], *[x._value for x in groups[i]])
        return raise_values(out_types, results)

    def _bodies_with_refs(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(self._bodies_with_refs, value))
        return _with_refs_cached(value, self.name) if isinstance(value, ClosedJaxpr) else value
