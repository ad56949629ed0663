"""Lifting out of a jaxpr what depends on some inputs only: loop invariants, known parts of calls."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from minijax.base import cache
from minijax.base.mask import Mask
from minijax.ir import context, state
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var
from minijax.ir.trace import JaxprTrace, JaxprTracer, Tracer, constants_to_inputs, trace_to_jaxpr
from minijax.transforms.discharge import discharged


class Hoisted(NamedTuple):
    """A jaxpr in two parts: `early` runs on the inputs that are not late, `late` on the rest."""

    early: ClosedJaxpr  # early inputs -> (early results, saved values)
    late: ClosedJaxpr  # (saved values, late inputs) -> late results
    out_late: Mask
    saved: int


@state.traced_cache
def hoist_jaxpr(closed: ClosedJaxpr, late_in: tuple[bool, ...], late_out: tuple[bool, ...]) -> Hoisted:
    """Splits a jaxpr for its late inputs; the results that `late_out` marks are late in any case."""
    closed = discharged(closed)
    early_avals, late_avals = Mask(late_in).partition(closed.in_avals)
    late_part: list[Any] = []
    info = closed.debug_info._replace(arg_names=None, result_paths=None)

    def early(*xs):
        late = JaxprTrace(state.current_trace(), info)
        outs = run_in_parts(late, closed, Mask(late_in).merge(xs, map(late.new_arg, late_avals)))
        out_late = Mask([_belongs(x, late) for x in outs]) | late_out
        early_outs, late_outs = out_late.partition(outs)
        body, residuals = _late_part(late, late_outs)
        late_part[:] = body, out_late, len(residuals)
        return [*early_outs, *residuals]

    jaxpr, consts = trace_to_jaxpr(early, early_avals, info)
    return Hoisted(ClosedJaxpr(jaxpr, consts), *late_part)


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
    values = dict(zip(jaxpr.constvars, consts, strict=True))
    residuals = [v for v in _constvars_in_order_of_jax(jaxpr) if isinstance(values[v], Tracer)]
    fixed = [v for v, x in values.items() if not isinstance(x, Tracer)]
    opened = constants_to_inputs(jaxpr.replace(constvars=residuals)).replace(constvars=fixed)
    return ClosedJaxpr(opened, [values[v] for v in fixed]), [values[v] for v in residuals]


def _constvars_in_order_of_jax(jaxpr: Jaxpr) -> list[Var]:
    """The constvars in jax's order, to which residuals are held: a topological order of the graph from the results.

    Constvars that no result depends on come last.
    """
    parents = {v: [a for a in e.invars if type(a) is Var] for e in jaxpr.eqns for v in e.outvars}
    ends = list(dict.fromkeys(v for v in jaxpr.outvars if type(v) is Var))
    children = _reads_of_each(ends, parents)
    ready = [v for v in ends if not children[v]]
    order = []
    while ready:
        order.append(ready.pop())
        for parent in parents.get(order[-1], ()):
            children[parent] -= 1
            if not children[parent]:
                ready.append(parent)
    constvars = set(jaxpr.constvars)
    return [*(v for v in reversed(order) if v in constvars), *(v for v in jaxpr.constvars if v not in children)]


def _reads_of_each(ends: Sequence[Var], parents: dict[Var, list[Var]]) -> dict[Var, int]:
    """How often each variable that the `ends` depend on is read on the way to them."""
    reads: dict[Var, int] = dict.fromkeys(ends, 0)
    seen, stack = set(ends), list(ends)
    while stack:
        for parent in parents.get(stack.pop(), ()):
            reads[parent] = reads.get(parent, 0) + 1
            if parent not in seen:
                seen.add(parent)
                stack.append(parent)
    return reads


@cache.weak_cache
def reordered(closed: ClosedJaxpr, ins: tuple[int, ...], outs: tuple[int, ...] | None = None) -> ClosedJaxpr:
    """The jaxpr whose inputs (and results) are those of `closed` that the numbers name, in their order."""
    jaxpr = closed.jaxpr
    info = jaxpr.debug_info._replace(arg_names=None, result_paths=None)
    outvars = jaxpr.outvars if outs is None else [jaxpr.outvars[i] for i in outs]
    return ClosedJaxpr(
        jaxpr.replace(invars=[jaxpr.invars[i] for i in ins], outvars=outvars, debug_info=info), closed.consts
    )
