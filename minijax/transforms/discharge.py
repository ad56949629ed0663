"""Discharge: jaxprs without references, whose values are inputs and results instead."""

from collections.abc import Callable, Sequence
from typing import Any

from minijax.ir import state
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, jaxprs_in_params
from minijax.ir.primitive import Primitive
from minijax.ir.refs import REF_EFFECT, AbstractRef, Ref, is_ref
from minijax.ir.trace import JaxprTrace, Trace, Tracer, close_over, eval_jaxpr, trace_to_jaxpr


def uses_refs(jaxpr: Any) -> bool:
    """Whether a jaxpr makes, reads or writes references."""
    return not REF_EFFECT.isdisjoint(jaxpr.effects)


@state.traced_cache
def discharge_jaxpr(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The jaxpr over the values of its references; their last values are further results."""
    are_refs = [type(a) is AbstractRef for a in closed.in_avals]

    def run(*args):
        boxes = [Ref(x) if r else x for x, r in zip(args, are_refs, strict=True)]
        results = eval_jaxpr(closed.jaxpr, closed.consts, *boxes)
        return [*results, *(x._value for x, r in zip(boxes, are_refs, strict=True) if r)]

    avals = [a.inner_aval if r else a for a, r in zip(closed.in_avals, are_refs, strict=True)]
    info = closed.debug_info
    if any(are_refs):
        info = info._replace(result_paths=None)
    jaxpr, consts = trace_to_jaxpr(run, avals, info)
    return close_over(jaxpr, consts)[0]


def discharged(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The jaxpr without references of its own."""
    return discharge_jaxpr(closed) if uses_refs(closed.jaxpr) else closed


class TakesRefs(Primitive):
    """A higher-order operation that takes references; where they are not recorded, it runs without them."""

    multiple_results = True

    def bind_all(self, operands, params):
        if any(map(is_ref, operands)) and _is_open(operands) and not _is_kept(operands, params):
            return self._on_values(operands, params)
        return super().bind_all(operands, params)

    def bind(self, *operands, **params):
        return self.bind_all(operands, params)

    def rebind(self, trace, operands, params):
        refs = [x for x in operands if isinstance(x, Ref)]
        if not any(map(is_ref, refs)) and not any(map(uses_refs, jaxprs_in_params(params))):
            return super().rebind(trace, operands, params)
        if not refs or any(map(is_ref, refs)) and _is_open(refs) and not _is_kept(refs, params):
            return self._on_values(operands, params)
        return super().rebind(trace, operands, params)

    def _on_values(self, operands, params):
        refs = list(dict.fromkeys(filter(is_ref, operands)))
        flat, params, finish = self.discharge(operands, refs, **params)
        results, last = finish(self.bind_all(flat, params))
        for ref, value in zip(refs, last, strict=True):
            ref._value = stored("swap", ref, value)
        return list(results)

    def discharge(self, operands: Sequence, refs: Sequence[Ref], **params: Any) -> tuple[list, dict, Callable]:
        """Operands and parameters without references; what takes the results to (results, last values)."""
        raise NotImplementedError(f"{self.name} does not take references")


def mixed_error(name: str, value: str, kind: str, aval: Any) -> Exception:
    return Exception(
        f"performing {_VERBS[name]} operation with {value} value on {kind} array reference of type "
        f"{aval}. Move the array reference to be an argument of the transformed function?"
    )


_VERBS = {"swap": "a set/swap", "addupdate": "an addupdate", "get": "a get", "freeze": "a freeze"}


def stored(name: str, ref: Ref, value: Any) -> Any:
    """What the operation `name` leaves in a reference: of one that has no gradients, the primal value.

    Raises Exception for a value of a transformation that began after the reference was made: it would outlive it.
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
    return value


def values_of(operands: Sequence) -> list:
    """The operands, with their values for references. Raises ValueError if one is there twice."""
    refs = list(filter(is_ref, operands))
    if len(set(refs)) < len(refs):
        raise ValueError(
            "only one reference to a mutable array may be passed to a function: one is given twice, or was "
            "both closed over and passed as the argument"
        )
    return [x._value if is_ref(x) else x for x in operands]


def _is_kept(operands: Sequence, params: dict) -> bool:
    """Whether the references are recorded with the linear program, since its transpose reads or writes them."""
    trace = state.thread.trace
    if trace is None or not trace.keeps_refs or not any(map(_goes_back, jaxprs_in_params(params))):
        return False
    return all(is_fixed(x, trace) for x in operands)


def is_fixed(x: Any, trace: Trace) -> bool:
    """Whether `x` is no reference to a value that the trace differentiates."""
    return not is_ref(x) or getattr(x._value, "_trace", None) is not trace


def _goes_back(jaxpr: Jaxpr) -> bool:
    """Whether a backward rule in the jaxpr is given references."""
    return any(
        eqn.primitive.has_backward_rule
        and any(type(a.aval) is AbstractRef for a in eqn.invars)
        or any(map(_goes_back, jaxprs_in_params(eqn.params)))
        for eqn in jaxpr.eqns
    )


def _is_open(operands):
    """Whether references among the operands are not to be recorded in the current trace."""
    trace = state.thread.trace
    return type(trace) is not JaxprTrace or any(is_ref(x) and x._trace is trace for x in operands)
