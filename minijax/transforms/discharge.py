"""Discharge: replaces references in jaxprs by inputs and results that carry their values.

>>> double = jax.make_jaxpr(lambda ref: ref.set(ref[...] * 2.0))(jax.new_ref(jnp.ones(3)))
>>> double
{ lambda ; a:Ref{f32[3]}. let
    b:f32[3] <- a[...]
    c:f32[3] = mul b 2.0:f32[]
    a[...] <- c
  in () }
>>> discharge_jaxpr(double)
{ lambda ; a:f32[3]. let b:f32[3] = mul a 2.0:f32[] in (b,) }
"""

from collections.abc import Callable, Sequence
from typing import Any

from minijax.ir import state
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, jaxprs_in_params
from minijax.ir.primitive import Primitive
from minijax.ir.refs import REF_EFFECT, AbstractRef, Ref, is_ref
from minijax.ir.trace import JaxprTrace, Trace, Tracer, close_over, eval_jaxpr, trace_to_jaxpr
from minijax.primitives.convert import convert
from minijax.run.arrays.array import ArrayImpl


def uses_refs(jaxpr: Any) -> bool:
    """Returns whether a jaxpr creates, reads or writes references."""
    return not REF_EFFECT.isdisjoint(jaxpr.effects)


@state.traced_cache
def discharge_jaxpr(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The jaxpr over the values of its references; their final values are additional results."""
    are_refs = [type(a) is AbstractRef for a in closed.in_avals]

    def run(*args):
        inputs = [Ref(x) if r else x for x, r in zip(args, are_refs, strict=True)]
        results = eval_jaxpr(closed.jaxpr, closed.consts, *inputs)
        return [*results, *(x._value for x, r in zip(inputs, are_refs, strict=True) if r)]

    avals = [a.inner_aval if r else a for a, r in zip(closed.in_avals, are_refs, strict=True)]
    info = closed.debug_info
    if any(are_refs):
        info = info._replace(result_paths=None)
    jaxpr, consts = trace_to_jaxpr(run, avals, info, JaxprTrace(state.thread.trace, info, False))
    return close_over(jaxpr, consts)[0]


def discharged(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The jaxpr, discharged if it uses references."""
    return discharge_jaxpr(closed) if uses_refs(closed.jaxpr) else closed


class DischargeableCall(Primitive):
    """A higher-order operation that takes references; it is discharged unless the trace records them."""

    multiple_results = True

    def bind_all(self, operands, params):
        if (
            Ref in map(type, operands)
            and _must_discharge(operands)
            and not _is_recorded_with_transpose(operands, params)
        ):
            return self._on_values(operands, params)
        thread = state.thread
        if thread.manual and self.auto_pvary:
            operands = thread.manual.unite(operands)
        return (thread.trace or state.eval_trace[0]).process(self, operands, params)

    def bind(self, *operands, **params):
        return self.bind_all(operands, params)

    def rebind(self, trace, operands, params):
        refs = [x for x in operands if isinstance(x, Ref)]
        if not any(map(is_ref, refs)) and not any(map(uses_refs, jaxprs_in_params(params))):
            return super().rebind(trace, operands, params)
        if (
            not (refs or trace.keeps_refs)
            or any(map(is_ref, refs))
            and _must_discharge(refs)
            and not _is_recorded_with_transpose(refs, params)
        ):
            return self._on_values(operands, params)
        return super().rebind(trace, operands, params)

    def _on_values(self, operands, params):
        refs = list(dict.fromkeys(filter(is_ref, operands)))
        flat, params, finish = self.discharge(operands, refs, **params)
        results, last = finish(self.bind_all(flat, params))
        for ref, value in zip(refs, last, strict=True):
            ref._value = checked_write("swap", ref, value)
        return list(results)

    def discharge(self, operands: Sequence, refs: Sequence[Ref], **params: Any) -> tuple[list, dict, Callable]:
        """Discharged operands and parameters, and a function: results -> (results, final values of `refs`)."""
        raise NotImplementedError(f"{self.name} does not take references")


def mixed_error(name: str, value: str, kind: str, aval: Any) -> Exception:
    return Exception(
        f"performing {_VERBS[name]} operation with {value} value on {kind} array reference of type "
        f"{aval}. Move the array reference to be an argument of the transformed function?"
    )


_VERBS = {"swap": "a set/swap", "addupdate": "an addupdate", "get": "a get", "freeze": "a freeze"}


def checked_write(name: str, ref: Ref, value: Any) -> Any:
    """The value to store by the operation `name`: weakly typed as the reference; without gradients, the primal value.

    Raises Exception for a tracer of a transformation that began after the reference was created: it would leak.
    """
    while isinstance(value, Tracer):
        trace = ref._trace
        while trace is not None and trace is not value._trace:
            trace = trace.parent
        if trace is not None:
            break
        primal = getattr(value, "primal", None)
        if primal is None or ref.kind != "no_grad_no_remat":
            words = (
                ("vmapped", "an unbatched") if hasattr(value, "dim") else ("a differentiated", "a non-differentiated")
            )
            raise mixed_error(name, *words, ref.aval)
        value = primal
    # In jaxprs a written value keeps its type, as in jax.
    keeps = getattr(ref._trace, "keeps_written_types", False) and type(value) is not ArrayImpl
    return convert(value, ref.dtype, weak_type=True) if ref.aval.inner_aval.weak_type and not keeps else value


def dereferenced(operands: Sequence, info: DebugInfo | None = None) -> list:
    """The operands, references replaced by their values. Raises ValueError if a reference occurs twice.

    `info` describes the function whose arguments are the last operands.
    """
    refs = list(filter(is_ref, operands))
    if len(set(refs)) < len(refs):
        names = () if info is None else info.arg_names or ()
        named = zip(operands[len(operands) - len(names) :], names, strict=True)
        argument = next(
            (f"argument {name}" for x, name in named if name and is_ref(x) and refs.count(x) > 1), "argument"
        )
        where = "" if info is None else f" when tracing {info.func_src_info} for {info.traced_for},"
        raise ValueError(
            f"only one reference to a mutable array may be passed to a function:{where} a mutable array reference was "
            f"given twice, or was both closed over and passed as the {argument}"
        )
    return [x._value if is_ref(x) else x for x in operands]


def _is_recorded_with_transpose(operands: Sequence, params: dict) -> bool:
    """Returns whether the call is recorded with its references, because its transpose reads or writes them."""
    trace = state.thread.trace
    if (
        trace is None
        or not trace.records_ref_calls
        or not any(map(_has_backward_rule_on_refs, jaxprs_in_params(params)))
    ):
        return False
    return all(is_fixed(x, trace) for x in operands)


def is_fixed(x: Any, trace: Trace) -> bool:
    """Returns False if `x` is a reference to a value that the trace differentiates."""
    return not is_ref(x) or getattr(x._value, "_trace", None) is not trace


def _has_backward_rule_on_refs(jaxpr: Jaxpr) -> bool:
    """Returns whether a backward rule in the jaxpr takes references."""
    return any(
        eqn.primitive.has_backward_rule
        and any(type(a.aval) is AbstractRef for a in eqn.invars)
        or any(map(_has_backward_rule_on_refs, jaxprs_in_params(eqn.params)))
        for eqn in jaxpr.eqns
    )


def _must_discharge(operands):
    """Returns whether references among the operands must be discharged: the current trace does not record them."""
    trace = state.thread.trace
    return type(trace) is not JaxprTrace or any(is_ref(x) and x._trace is trace for x in operands)
