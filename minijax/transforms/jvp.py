"""Forward-mode differentiation: computes the tangent of each operation along with its result.

>>> jax.make_jaxpr(lambda x, t: jax.jvp(jnp.sin, (x,), (t,)))(1.0, 1.0)
{ lambda ; a:f32[] b:f32[]. let
    c:f32[] = sin a
    d:f32[] = cos a
    e:f32[] = mul b d
  in (c, e) }
"""

from collections.abc import Callable, Sequence
from itertools import repeat
from operator import attrgetter
from typing import Any

from minijax.base import stack
from minijax.base.mask import Mask
from minijax.base.naming import known_as
from minijax.base.thread import called_under
from minijax.ir import context, state
from minijax.ir.concrete import concrete_value
from minijax.ir.jaxpr import ClosedJaxpr
from minijax.ir.refs import Ref
from minijax.ir.rules import no_rule
from minijax.ir.trace import Trace, Tracer, eval_jaxpr, referent, trace_to_jaxpr
from minijax.ir.types import Zero, is_float0, of_type, register_value_type, typeof
from minijax.primitives.moving import as_array_or_constant
from minijax.primitives.zeros import instantiate, nonzero_mask


@known_as("jax._src.interpreters.ad.JVPTracer")
class JVPTracer(Tracer):
    """A value and its tangent."""

    __slots__ = ("primal", "tangent")

    def __init__(self, trace: Trace, primal: Any, tangent: Any):
        self._trace = trace
        self.aval = primal.aval if isinstance(primal, Tracer) else typeof(primal)
        self.primal = primal
        self.tangent = tangent

    def get_referent(self):
        return referent(self.primal)

    def concrete_value(self):
        return concrete_value(self.primal)

    def _contents(self):
        return [("primal", self.primal), ("tangent", self.tangent)]

    def _origin_msg(self):
        return self.primal._origin_msg() if isinstance(self.primal, Tracer) else ""


class DualTrace(Trace):
    """Runs jvp rules on primals and tangents, with `rule_trace` as the current trace."""

    __slots__ = ("rule_trace",)

    def qdd_of(self, x):
        return self.parent.qdd_of(x.primal if isinstance(x, JVPTracer) and x._trace is self else x)

    def split(self, operands: Sequence) -> tuple[list, list]:
        """Primals and tangents of operands; the tangent is None if an operand is not a tracer of this trace."""
        primals, tangents = [], []
        for x in operands:
            if isinstance(x, JVPTracer) and x._trace is self:
                primal = x.primal
                primals.append(primal if isinstance(primal, Tracer) else of_type(primal, x.aval))
                tangents.append(x.tangent)
            else:
                if isinstance(x, Tracer):
                    self.admit(x)
                primals.append(x)
                tangents.append(None)
        return primals, tangents

    def of_refs(self, results: Sequence, tangents: Sequence) -> tuple[list, list]:
        """Results and their tangents, where some results are references: one to the primal and one to the tangent."""
        for i, ref in enumerate(results := list(results)):
            if type(ref) is Ref:
                (primal,), (tangent,) = self.split([ref._value])
                results[i] = Ref(as_array_or_constant(primal)) if ref._trace is self else ref
                (tangent,) = with_zeros([primal], [tangent])
                tangents = [*tangents[:i], Ref(as_array_or_constant(instantiate(tangent))), *tangents[i + 1 :]]
        return results, list(tangents)

    def join(self, primals: Sequence, tangents: Sequence) -> list:
        """Tracers of primals and tangents; the primal alone if the tangent is zero."""
        raise NotImplementedError(type(self).__name__)


class JVPTrace(DualTrace):
    """Runs the jvp rules in its parent."""

    __slots__ = ()

    def __init__(self, parent: Trace):
        super().__init__(parent)
        self.rule_trace = parent

    def join(self, primals, tangents):
        return [p if type(t) is Zero else JVPTracer(self, p, t) for p, t in zip(primals, tangents, strict=True)]

    def process(self, primitive, operands, params):
        primals, tangents = self.split(operands)
        if all([t is None or type(t) is Zero for t in tangents]):
            return self.parent.process(primitive, primals, params)
        tangents = with_zeros(primals, tangents)
        rule = primitive.jvp or no_rule(primitive, "jvp")
        return self.join(*called_under(self.beneath, rule, primals, tangents, **params))


def zero_if_float0(t: Any) -> Any:
    """Replaces a tangent of dtype float0 by a symbolic zero."""
    if type(t) is Zero:
        return t
    return Zero(typeof(t)) if is_float0(typeof(t)) else t


def with_zeros(primals: Sequence, tangents: Sequence) -> list:
    """The tangents, None replaced by symbolic zeros."""
    return [Zero.from_primal_value(p) if t is None else t for p, t in zip(primals, tangents, strict=True)]


@stack.deep
def jvp_flat(fun: Callable, primals: Sequence, tangents: Sequence) -> tuple[list, list]:
    """Results and tangents (`Zero` where known) of a flat function."""
    trace = JVPTrace(state.current_trace())
    args = trace.join(primals, tangents)
    primals_out, tangents_out = context.run_under(trace, lambda: trace.split(list(fun(*args))))
    if Ref in map(type, primals_out):
        primals_out, tangents_out = trace.of_refs(primals_out, tangents_out)
    return primals_out, with_zeros(primals_out, tangents_out)


@state.traced_cache
def jvp_jaxpr(
    closed: ClosedJaxpr, nonzeros: tuple[bool, ...], instantiate_out: tuple[bool, ...]
) -> tuple[ClosedJaxpr, Mask]:
    """The jaxpr (primals, nonzero tangents) -> (results, nonzero tangents), and a mask of the nonzero tangents."""
    nonzeros, out_nonzeros = Mask(nonzeros), Mask()

    def pushed(*args):
        nonlocal out_nonzeros
        primals, rest = args[: len(nonzeros)], args[len(nonzeros) :]
        run = lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs)  # noqa: E731
        results, tangents = jvp_flat(run, primals, with_zeros(primals, nonzeros.merge(repeat(None), rest)))
        tangents = [instantiate(t) if keep else t for t, keep in zip(tangents, instantiate_out, strict=True)]
        out_nonzeros = nonzero_mask(tangents)
        return [*results, *out_nonzeros.marked(tangents)]

    tangent_avals = [a.to_tangent_aval() for a in nonzeros.marked(closed.in_avals)]
    info = closed.debug_info._replace(arg_names=None, result_paths=None)
    jaxpr, consts = trace_to_jaxpr(pushed, [*closed.in_avals, *tangent_avals], info)
    return ClosedJaxpr(jaxpr, consts), out_nonzeros


register_value_type(JVPTracer, attrgetter("aval"))
