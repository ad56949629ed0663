"""Partial evaluation: splits a jaxpr into what depends on known inputs only, and the rest.

Below `x` is known and `y` is not; the residual `sin(x)` goes from the known part to the unknown one:

>>> parts = partial_eval_jaxpr(jax.make_jaxpr(lambda x, y: jnp.sin(x) * y)(1.0, 2.0), (False, True), (False,))
>>> parts.known
{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
>>> parts.unknown
{ lambda ; a:f32[] b:f32[]. let c:f32[] = mul a b in (c,) }
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from minijax.base import cache
from minijax.base.mask import Mask
from minijax.ir import context, state
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var, jaxprs_in_params
from minijax.ir.refs import REF_EFFECT, AbstractRef
from minijax.ir.trace import DynamicJaxprTracer, JaxprTrace, Tracer, environment, open_at, trace_to_jaxpr, values_of
from minijax.transforms.discharge import discharged
from minijax.transforms.prune import read_variables


class PartialEval(NamedTuple):
    """The known and the unknown part of a jaxpr, and a mask of the unknown results."""

    known: ClosedJaxpr  # known inputs -> (known results, residuals)
    unknown: ClosedJaxpr  # (residuals, unknown inputs) -> unknown results
    out_unknown: Mask
    num_residuals: int


@state.traced_cache
def partial_eval_jaxpr(closed: ClosedJaxpr, unknown_in: tuple[bool, ...], instantiate: tuple[bool, ...]) -> PartialEval:
    """Splits a jaxpr for its unknown inputs; results that `instantiate` marks are always unknown."""
    closed = discharged(closed)
    known_avals, unknown_avals = Mask(unknown_in).partition(closed.in_avals)
    unknown_part: list[Any] = []
    info = closed.debug_info._replace(arg_names=None, result_paths=None)

    def known(*xs):
        staging = JaxprTrace(state.current_trace(), info)
        inputs = Mask(unknown_in).merge(xs, map(staging.new_arg, unknown_avals))
        outs = partial_eval_into(staging, closed, inputs)
        out_unknown = Mask([_is_unknown(x, staging) for x in outs]) | instantiate
        known_outs, unknown_outs = out_unknown.partition(outs)
        unknown, residuals = _unknown_part(staging, unknown_outs, True)
        unknown_part[:] = unknown, out_unknown, len(residuals)
        return [*known_outs, *residuals]

    jaxpr, consts = trace_to_jaxpr(known, known_avals, info)
    return PartialEval(ClosedJaxpr(jaxpr, consts), *unknown_part)


def evaluated_and_staged(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list]:
    """Evaluates what depends on no input. Returns the rest, (residuals, inputs) -> results, and the residuals."""
    closed = discharged(closed)
    staging = JaxprTrace(state.current_trace(), closed.debug_info._replace(arg_names=None, result_paths=None))
    return _unknown_part(staging, partial_eval_into(staging, closed, [staging.new_arg(a) for a in closed.in_avals]))


def partial_eval_into(staging: JaxprTrace, closed: ClosedJaxpr, operands: Sequence) -> list:
    """Evaluates a jaxpr under the current trace, but records in `staging` what depends on tracers of `staging`."""
    jaxpr = closed.jaxpr
    env = environment(jaxpr, closed.consts)
    env.update(zip(jaxpr.invars, operands, strict=True))
    for eqn in jaxpr.eqns:
        with context.entered(eqn.ctx):
            values = values_of(eqn.invars, env)
            env.update(zip(eqn.outvars, _process(staging, eqn, values), strict=True))
    return values_of(jaxpr.outvars, env)


def _is_unknown(x: Any, staging: JaxprTrace) -> bool:
    return type(x) is DynamicJaxprTracer and x._trace is staging


def _process(staging: JaxprTrace, eqn: JaxprEqn, operands: Sequence) -> list:
    unknown_in = [_is_unknown(x, staging) for x in operands]
    # Operations on references are all unknown, which keeps their order.
    touches_refs = not REF_EFFECT.isdisjoint(eqn.effects) and not _has_own_refs_only(eqn)
    if not any(unknown_in) and not touches_refs and eqn.primitive.partial_eval is None:
        return eqn.primitive.rebind(state.current_trace(), operands, eqn.params)
    if eqn.primitive.partial_eval is None or touches_refs:
        return eqn.primitive.rebind(staging, operands, eqn.params)
    return eqn.primitive.partial_eval(staging, operands, unknown_in, **eqn.params)


def _has_own_refs_only(eqn: JaxprEqn) -> bool:
    """Whether an equation with effects on references is a call that makes these references."""
    bodies = tuple(jaxprs_in_params(eqn.params))
    is_passed = any(type(v.aval) is AbstractRef for v in (*eqn.invars, *eqn.outvars))
    return bool(bodies) and not is_passed and not any(map(_captures_refs, bodies))


@cache.weak_cache
def _captures_refs(jaxpr: Jaxpr) -> bool:
    """Whether constants of the jaxpr, or of one within it, are references."""
    inner = (body for eqn in jaxpr.eqns if eqn.effects for body in jaxprs_in_params(eqn.params))
    return any(type(v.aval) is AbstractRef for v in jaxpr.constvars) or any(map(_captures_refs, inner))


def _unknown_part(staging: JaxprTrace, results: Sequence, opens_constants: bool = False) -> tuple[ClosedJaxpr, list]:
    """The jaxpr (residuals, unknown inputs) -> results, and the residuals, the known values that it reads.

    As in jax arrays that it reads are residuals, too, if it `opens_constants`.
    """
    jaxpr, consts = staging.to_jaxpr(results)
    staging.finish()
    values = dict(zip(jaxpr.constvars, consts, strict=True))
    jaxpr = jaxpr.replace(eqns=_live_eqns(jaxpr))
    jaxpr = jaxpr.replace(constvars=_constvars_in_jax_order(jaxpr))
    consts = [values[v] for v in jaxpr.constvars]
    return open_at(jaxpr, consts, Mask([opens_constants or isinstance(x, Tracer) for x in consts]))


def _live_eqns(jaxpr: Jaxpr) -> list[JaxprEqn]:
    """The equations that a result depends on or that have effects, unchanged: a rule may have staged others."""
    live, eqns = set(jaxpr.outvars), []
    for eqn in reversed(jaxpr.eqns):
        if eqn.effects or not live.isdisjoint(eqn.outvars):
            eqns.append(eqn)
            live.update(eqn.invars)
    eqns.reverse()
    return eqns


def _constvars_in_jax_order(jaxpr: Jaxpr) -> list[Var]:
    """The constvars in jax's order of residuals: a topological order of the graph from the results.

    Each read of a constvar is a node of its own. Constvars that only effects depend on come last.
    """
    constvars = set(jaxpr.constvars)
    parents = {v: [a for a in e.invars if type(a) is Var] for e in jaxpr.eqns for v in e.outvars}
    ends = list(dict.fromkeys(v for v in jaxpr.outvars if type(v) is Var))
    children = _count_reads(ends, parents)
    ready = [v for v in ends if not children[v] or v in constvars]
    order = []
    while ready:
        order.append(ready.pop())
        for parent in parents.get(order[-1], ()):
            children[parent] -= 1
            if parent in constvars or not children[parent]:
                ready.append(parent)
    read = read_variables(jaxpr)
    return [
        *dict.fromkeys([v for v in reversed(order) if v in constvars]),
        *(v for v in jaxpr.constvars if v in read and v not in children),
    ]


def _count_reads(ends: Sequence[Var], parents: dict[Var, list[Var]]) -> dict[Var, int]:
    """For each variable that the `ends` depend on, the number of its reads on paths to them."""
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
def permute_jaxpr(closed: ClosedJaxpr, ins: tuple[int, ...], outs: tuple[int, ...] | None = None) -> ClosedJaxpr:
    """The jaxpr with the inputs (and results) of `closed` at the given indices, in that order."""
    jaxpr = closed.jaxpr
    info = jaxpr.debug_info._replace(arg_names=None, result_paths=None)
    outvars = jaxpr.outvars if outs is None else [jaxpr.outvars[i] for i in outs]
    return ClosedJaxpr(
        jaxpr.replace(invars=[jaxpr.invars[i] for i in ins], outvars=outvars, debug_info=info), closed.consts
    )
