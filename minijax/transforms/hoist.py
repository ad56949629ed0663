"""Lifting out of a jaxpr what depends on some inputs only: loop invariants, known parts of calls."""

from collections.abc import Sequence
from typing import NamedTuple

from minijax.base import cache
from minijax.ir import context, state
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var
from minijax.ir.trace import JaxprTrace, JaxprTracer, Tracer, constants_to_inputs, trace_to_jaxpr
from minijax.transforms.discharge import discharged


class Hoisted(NamedTuple):
    """A jaxpr in two parts: `early` runs on the inputs that are not late, `late` on the rest."""

    early: ClosedJaxpr  # early inputs -> (early results, saved values)
    late: ClosedJaxpr  # (saved values, late inputs) -> late results
    out_late: tuple[bool, ...]
    saved: int


@state.traced_cache
def hoist_jaxpr(closed: ClosedJaxpr, late_in: tuple[bool, ...], late_out: tuple[bool, ...]) -> Hoisted:
    """Splits a jaxpr for its late inputs; the results that `late_out` marks are late in any case."""
    closed = discharged(closed)
    marked, found = list(zip(closed.in_avals, late_in, strict=True)), []
    info = closed.debug_info._replace(arg_names=None, result_paths=None)

    def early(*xs):
        late, rest = JaxprTrace(state.current_trace(), info), iter(xs)
        outs = run_in_parts(late, closed, [late.new_arg(a) if w else next(rest) for a, w in marked])
        out_late = tuple(w or _belongs(x, late) for x, w in zip(outs, late_out, strict=True))
        body, saved = _late_part(late, [x for x, is_late in zip(outs, out_late, strict=True) if is_late])
        found[:] = [body, out_late, len(saved)]
        return [*(x for x, is_late in zip(outs, out_late, strict=True) if not is_late), *saved]

    known, consts = trace_to_jaxpr(early, [a for a, is_late in marked if not is_late], info)
    return Hoisted(ClosedJaxpr(known, consts), *found)


def run_in_parts(late: JaxprTrace, closed: ClosedJaxpr, operands: Sequence) -> list:
    """Runs a jaxpr under the current trace, but records what depends on values of `late` there."""
    jaxpr = closed.jaxpr
    env = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    env.update(zip(jaxpr.invars, operands, strict=True))
    for eqn in jaxpr.eqns:
        with context.entered(eqn.ctx):
            values = [env[a] if isinstance(a, Var) else a.val for a in eqn.invars]
            env.update(zip(eqn.outvars, _process(late, eqn, values), strict=True))
    return [env[a] if isinstance(a, Var) else a.val for a in jaxpr.outvars]


def _belongs(x, trace: JaxprTrace) -> bool:
    return type(x) is JaxprTracer and x._trace is trace


def _process(late: JaxprTrace, eqn: JaxprEqn, operands: Sequence) -> list:
    is_late = [_belongs(x, late) for x in operands]
    if not any(is_late) and not eqn.effects:
        return eqn.primitive.rebind(state.current_trace(), operands, eqn.params)
    if eqn.primitive.hoist is None or eqn.effects:
        return eqn.primitive.rebind(late, operands, eqn.params)
    return eqn.primitive.hoist(late, operands, is_late, **eqn.params)


def _late_part(late: JaxprTrace, results: Sequence) -> tuple[ClosedJaxpr, list]:
    jaxpr, consts = late.to_jaxpr(results)
    late.finish()
    pairs = list(zip(jaxpr.constvars, consts, strict=True))
    place = {v: i for i, v in enumerate(_constants_in_order(jaxpr))}
    saved = sorted([(v, c) for v, c in pairs if isinstance(c, Tracer)], key=lambda pair: place[pair[0]])
    fixed = [(v, c) for v, c in pairs if not isinstance(c, Tracer)]
    opened = constants_to_inputs(jaxpr.replace(constvars=[v for v, _ in saved]))
    closed = ClosedJaxpr(opened.replace(constvars=[v for v, _ in fixed]), [c for _, c in fixed])
    return closed, [c for _, c in saved]


def _constants_in_order(jaxpr: Jaxpr) -> list[Var]:
    """The constvars in the order in which jax finds them: by a depth-first walk from the results."""
    parents = {v: [a for a in e.invars if type(a) is Var] for e in jaxpr.eqns for v in e.outvars}
    ends = list(dict.fromkeys(v for v in jaxpr.outvars if type(v) is Var))
    children: dict[Var, int] = {}
    stack = list(ends)
    while stack:
        v = stack.pop()
        children[v] = children.get(v, 0) + 1
        if children[v] == 1:
            stack.extend(parents.get(v, ()))
    for v in ends:
        children[v] -= 1
    ready, order = [v for v in ends if not children[v]], []
    while ready:
        order.append(ready.pop())
        for parent in parents.get(order[-1], ()):
            children[parent] -= 1
            if not children[parent]:
                ready.append(parent)
    constants = set(jaxpr.constvars)
    reached = [v for v in reversed(order) if v in constants]
    return [*reached, *(v for v in jaxpr.constvars if v not in children)]


@cache.weak_cache
def reordered(closed: ClosedJaxpr, ins: tuple[int, ...], outs: tuple[int, ...] | None = None) -> ClosedJaxpr:
    """The jaxpr whose inputs (and results) are those of `closed` that the numbers name, in their order."""
    jaxpr = closed.jaxpr
    info = jaxpr.debug_info._replace(arg_names=None, result_paths=None)
    outvars = jaxpr.outvars if outs is None else [jaxpr.outvars[i] for i in outs]
    return ClosedJaxpr(
        jaxpr.replace(invars=[jaxpr.invars[i] for i in ins], outvars=outvars, debug_info=info), closed.consts
    )
