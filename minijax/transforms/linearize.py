"""Linearisation: runs a function and records the linear jaxpr of its tangents as it runs.

The linear jaxpr below takes the residual `cos(x)` and the tangent of `x`:

>>> linearize_jaxpr(jax.make_jaxpr(lambda x: jnp.sin(x) * 3.0)(1.0), (True,)).tangent
{ lambda ; a:f32[] b:f32[]. let
    c:f32[] = mul b a
    d:f32[] = mul c 3.0:f32[]
  in (d,) }
"""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from minijax.base import stack
from minijax.base.mask import Mask
from minijax.base.naming import known_as
from minijax.base.thread import called_under
from minijax.ir import context, state
from minijax.ir.hitypes import full_type
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn, Var
from minijax.ir.refs import Ref
from minijax.ir.rules import no_reverse_mode_error, no_rule
from minijax.ir.trace import DynamicJaxprTracer, JaxprTrace, Trace, Tracer, eval_jaxpr, open_at, trace_to_jaxpr
from minijax.ir.types import Zero, is_float0, register_value_type, typeof
from minijax.primitives.zeros import instantiate
from minijax.transforms.jvp import DualTrace, JVPTracer, with_zeros
from minijax.transforms.prune import prune_closed, prune_fresh


@known_as("jax._src.interpreters.ad.LinearizeTracer")
class LinearizeTracer(JVPTracer):
    """A value, and the variable of its tangent in the linear jaxpr."""

    __slots__ = ()

    def __repr__(self):
        return f"GradTracer(primal={self.primal}, typeof(tangent)={self.tangent.aval.str_short(True)})"


class RuleTrace(Trace):
    """Current while a jvp rule runs: records operations on tangents, and runs all others in the parent."""

    __slots__ = ("tangent_trace",)
    records_rules = True

    def __init__(self, parent: Trace, tangent_trace: JaxprTrace):
        super().__init__(parent)
        self.tangent_trace = tangent_trace

    def _is_tangent(self, x: Any) -> bool:
        return type(x) is DynamicJaxprTracer and x._trace is self.tangent_trace

    def _trace_of(self, operands: Sequence) -> Trace:
        tangents = self.tangent_trace
        for x in operands:
            if type(x) is DynamicJaxprTracer and x._trace is tangents:
                return tangents
        return self.parent

    def process(self, primitive, operands, params):
        target = self._trace_of(operands)
        if primitive.partial_eval is not None and (target is not self.parent or type(target) is JaxprTrace):
            is_tangent = [self._is_tangent(x) for x in operands]
            # A call may also compute primals, which must run in the parent.
            with state.set_current_trace(self.parent):
                return primitive.partial_eval(self.tangent_trace, operands, is_tangent, **params)
        if type(target) is JaxprTrace:  # which records: no rule runs
            return target.process(primitive, operands, params)
        with state.set_current_trace(target):
            return target.process(primitive, operands, params)


class LinearizeTrace(DualTrace):
    """Runs primals in its parent and records tangents in `tangent_trace`."""

    __slots__ = ("tangent_trace",)
    records_ref_calls = True

    def __init__(self, parent: Trace, tangent_trace: JaxprTrace):
        super().__init__(parent)
        self.tangent_trace = tangent_trace
        self.rule_trace = RuleTrace(parent, tangent_trace)

    def join(self, primals, tangents):
        joined, tangent_trace = [], self.tangent_trace
        for p, t in zip(primals, tangents, strict=True):
            # A tangent that does not depend on input tangents is a zero.
            is_nonzero = type(t) is DynamicJaxprTracer and t._trace is tangent_trace
            joined.append(LinearizeTracer(self, p, t) if is_nonzero else p)
        return joined

    def process(self, primitive, operands, params):
        primals, tangents = self.split(operands)
        nonzeros = Mask([t is not None for t in tangents])
        if True not in nonzeros:
            return self.parent.process(primitive, primals, params)
        if primitive.linearize is not None:
            results = self._process_by_linearize_rule(primitive, primals, tangents, nonzeros, params)
            if results is not None:
                return results
        tangents = with_zeros(primals, tangents)
        rule = primitive.jvp or no_rule(primitive, "jvp")
        results, tangents = called_under(self.rule_trace, rule, primals, tangents, **params)
        if primitive.partial_eval is not None and any(map(self.rule_trace._is_tangent, results)):
            raise no_reverse_mode_error(primitive)
        return self.join(results, tangents)

    def _process_by_linearize_rule(self, primitive, primals, tangents, nonzeros, params):
        parts = called_under(self.beneath, primitive.linearize, nonzeros, primals, **params)
        if parts is None:
            return None
        results, out_nonzeros, push = parts
        pushed = called_under(self.tangent_trace, push, *nonzeros.marked(tangents))
        if len(results) == 1 and out_nonzeros[0]:
            return [LinearizeTracer(self, results[0], pushed[0])]
        pushed = iter(pushed)
        return [
            LinearizeTracer(self, r, next(pushed)) if nz else r for r, nz in zip(results, out_nonzeros, strict=True)
        ]


@stack.deep
def linearize_flat(
    fun: Callable, primals: Sequence, nonzeros: Sequence[bool] | None = None, debug_info: DebugInfo | None = None
) -> tuple[list, list[bool], Jaxpr, list]:
    """Runs a flat function at `primals`.

    Returns its results, for each whether it depends on the inputs, the linear jaxpr (nonzero input tangents ->
    nonzero result tangents) with residuals as constvars, and the residuals.
    """
    parent = state.current_trace()
    info = debug_info or DebugInfo("linearize", getattr(fun, "__name__", "fun"))
    tangent_trace = JaxprTrace(parent, info._replace(arg_names=None, result_paths=None))
    trace = LinearizeTrace(parent, tangent_trace)
    nonzeros = nonzeros or [True] * len(primals)
    args = []
    for p, nz in zip(primals, nonzeros, strict=True):
        tangent = tangent_trace.new_arg(full_type(p).to_tangent_aval()) if nz else None
        is_nonzero = tangent is not None and not is_float0(tangent.aval)
        args.append(LinearizeTracer(trace, p, tangent) if is_nonzero else p)
    try:
        results, tangents = context.run_under(trace, lambda: trace.split(list(fun(*args))))
        if Ref in map(type, results):
            results, _ = trace.of_refs(results, tangents)
        if outer := len(context.current_context().name_stack):
            _drop_outer_names(tangent_trace.eqns, outer)
        jaxpr, consts = tangent_trace.to_jaxpr([t for t in tangents if t is not None])
    finally:
        tangent_trace.alive = False
    jaxpr, consts = prune_residuals(jaxpr, consts)
    return results, [t is not None for t in tangents], jaxpr, consts


def _drop_outer_names(eqns: Sequence[JaxprEqn], count: int) -> None:
    """Drops the `count` outer names of the equations' name stacks, which are added when the equations are evaluated."""
    last, inner = None, context.EMPTY
    for eqn in eqns:
        if eqn.ctx is not last:  # neighbouring equations often share a context
            last, inner = eqn.ctx, eqn.ctx._replace(name_stack=eqn.ctx.name_stack[count:])
        eqn.ctx = inner


def prune_residuals(jaxpr: Jaxpr, consts: Sequence) -> tuple[Jaxpr, list]:
    """Drops dead equations and the residuals that only they read; orders residuals by first use."""
    jaxpr, _ = prune_fresh(jaxpr, (True,) * len(jaxpr.outvars), True)
    values = dict(zip(jaxpr.constvars, consts, strict=True))
    order: dict[Var, None] = {}
    for eqn in jaxpr.eqns:
        order.update(dict.fromkeys([a for a in eqn.invars if a in values]))
    order.update(dict.fromkeys([a for a in jaxpr.outvars if a in values]))
    return jaxpr.replace(constvars=list(order)), [values[v] for v in order]


class Linearized(NamedTuple):
    """The primal and the linear part of a jaxpr, and a mask of the results with a nonzero tangent."""

    primal: ClosedJaxpr  # inputs -> (results, residuals)
    tangent: ClosedJaxpr  # (residuals, nonzero tangents) -> nonzero result tangents
    out_nonzeros: Mask


@state.traced_cache
def linearize_jaxpr(
    closed: ClosedJaxpr,
    nonzeros: tuple[bool, ...],
    instantiate_out: tuple[bool, ...] | None = None,
    prunes: bool = True,
    closes: bool = True,
) -> Linearized:
    """Linearizes a jaxpr with respect to the inputs that `nonzeros` marks; `prunes` dead operations.

    Residuals that are constants are those of the linear part, if it `closes`; else results of the primal part.
    """
    linear_part: list[Any] = []

    def primal(*args):
        run = lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs)  # noqa: E731
        results, out_nonzeros, jaxpr, values = linearize_flat(run, args, nonzeros)
        residual = [not closes or isinstance(x, Tracer) for x in values]
        if instantiate_out is not None:
            jaxpr, zeros, out_nonzeros = _instantiated(jaxpr, results, Mask(out_nonzeros), Mask(instantiate_out))
            values, residual = [*values, *zeros], [*residual, *(True,) * len(zeros)]
        tangent, residuals = open_at(jaxpr, values, Mask(residual))
        linear_part[:] = tangent, Mask(out_nonzeros)
        return [*results, *residuals]

    jaxpr, consts = trace_to_jaxpr(primal, closed.in_avals, closed.debug_info._replace(result_paths=None))
    known = ClosedJaxpr(jaxpr, consts)
    if prunes:
        known, _ = prune_closed(known, (True,) * len(jaxpr.outvars), True)
    return Linearized(known, *linear_part)


def _instantiated(jaxpr: Jaxpr, results: Sequence, nonzeros: Mask, instantiated: Mask) -> tuple[Jaxpr, list, Mask]:
    """The linear jaxpr with instantiated zero tangents, read from new constvars, for results that must have one."""
    missing = Mask([want and not nz for nz, want in zip(nonzeros, instantiated, strict=True)])
    zeros = [instantiate(Zero.from_primal_value(r)) for r in missing.marked(results)]
    constvars = [Var(typeof(r).to_tangent_aval()) for r in missing.marked(results)]
    out_nonzeros = nonzeros | instantiated
    outvars = Mask(out_nonzeros.marked(missing)).merge(jaxpr.outvars, constvars)
    return jaxpr.replace(constvars=[*jaxpr.constvars, *constvars], outvars=outvars), zeros, out_nonzeros


register_value_type(LinearizeTracer, attrgetter("aval"))
