"""Base classes of primitives that call one jaxpr; their rules are derived from those of the jaxpr."""

from collections.abc import Callable, Sequence
from typing import Any

from minijax.base import cache
from minijax.base.mask import Mask
from minijax.ir import state
from minijax.ir.hitypes import AvalQDD
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var, substituted
from minijax.ir.primitive import Primitive
from minijax.ir.trace import constants_to_inputs, eval_jaxpr, jaxpr_as_fun
from minijax.ir.types import Zero, hi_classes
from minijax.primitives.zeros import nonzero_mask
from minijax.transforms.batch import batch_jaxpr_axes
from minijax.transforms.discharge import dereferenced, discharge_jaxpr, discharged
from minijax.transforms.jvp import jvp_flat, jvp_jaxpr
from minijax.transforms.lower_types import flat, lower_hi_jaxpr, lower_values
from minijax.transforms.partial_eval_custom import EqnParts, Policy, partial_eval_jaxpr_custom
from minijax.transforms.prune import prune_closed

Places = Sequence[int | None]  # indices of inputs or results; None for a new one


class Inlined(Primitive):
    """Evaluates the jaxpr in the parameter `body_name`; it is lowered inline."""

    multiple_results = True
    auto_pvary = False
    constrain_results = False
    caches_types = False  # a call's body has them, and parameters with a body are no cache key
    body_name = "jaxpr"

    def body(self, params: dict) -> ClosedJaxpr:
        return params[self.body_name]

    def infer(self, *avals, **params):
        return self.body(params).out_avals

    def effects(self, *avals, **params):
        return self.body(params).effects

    def at_once(self, *operands, **params):
        body = self.body(params)
        return eval_jaxpr(body.jaxpr, body.consts, *operands)

    def lower(self, e, ins, outs, *operands, **params):
        body = discharged(self.body(params))
        return e.inlined(body.jaxpr, e.constants(body), operands)

    def typed(self, avals, params):
        if hi_classes:
            self._note_changes(avals, params)
        return super().typed(avals, params)

    def _note_changes(self, avals: Sequence, params: dict) -> None:
        """Records the types that the states of operands have after the call."""
        for have, a in zip(avals, self.body(params).in_avals, strict=False):
            if type(have) is type(a) is AvalQDD:
                have.mutable_qdd.update(a.last().qdd)

    def to_lo(self, operands, params):
        return Inlined.at_once(self, *operands, **params)

    def label(self, stack, params):
        return "" if type(self).lower is Inlined.lower else super().label(stack, params)


class Call(Inlined):
    """A call of a jaxpr: each rule transforms the body and calls the result in the same way."""

    dce_inside = True

    def calling(
        self, params: dict, closed: ClosedJaxpr, operands: Sequence, ins: Places, outs: Places
    ) -> tuple[list, dict]:
        """Operands and parameters of a call of `closed` instead of the body.

        Its inputs and results correspond to the inputs and results of the current body with indices `ins` and `outs`.
        """
        return list(operands), {**params, self.body_name: closed}

    def parts(self, params: dict) -> tuple[dict, dict]:
        """The parameters from which those of the known and the staged call are derived."""
        return params, params

    def jvp(self, primals, tangents, **params):
        body, nonzeros = self.body(params), nonzero_mask(tangents)
        with self.body_context(params):
            pushed, out_nonzeros = jvp_jaxpr(body, nonzeros, (False,) * len(body.outvars))
        every, n = range(len(primals)), len(out_nonzeros)
        ins, outs = [*every, *nonzeros.marked(every)], [*range(n), *out_nonzeros.marked(range(n))]
        results = self.bind_all(*self.calling(params, pushed, [*primals, *nonzeros.marked(tangents)], ins, outs))
        return split_tangents(results[:n], results[n:], out_nonzeros)

    def batch(self, axis, operands, dims, **params):
        closed, out_dims = batch_jaxpr_axes(self.body(params), axis, tuple(dims))
        call = self.calling(params, closed, operands, range(len(operands)), range(len(out_dims)))
        return self.bind_all(*call), list(out_dims)

    def discharge(self, operands: Sequence, refs: Sequence, **params: Any) -> tuple[list, dict, Callable]:
        """See `DischargeableCall`."""
        body = self.body(params)
        n = len(body.outvars)
        values = dereferenced(operands, body.debug_info)
        call = self.calling(params, discharge_jaxpr(body), values, range(len(operands)), range(n))
        return *call, lambda results: (results[:n], results[n:])

    def to_lo(self, operands, params):
        low = lower_hi_jaxpr(self.body(params))
        values = flat(lower_values(low.in_types, operands))
        ins = list(low.hi_indices(low.in_types))
        outs = [*(None for _ in low.hi_indices(low.last_types)), *low.hi_indices(low.out_types)]
        return low.raise_values(operands, self.bind_all(*self.calling(params, low.closed, values, ins, outs)))

    def names_axis(self, params):
        return names_in(self.body(params))

    def dce(self, used, eqn):
        body, used = self.body(eqn.params), Mask(used)
        closed, used_in = prune_closed(body, used)
        if closed is body:
            return list(used_in), eqn
        ins, outs = used_in.marked(range(len(used_in))), used.marked(range(len(used)))
        invars, params = self.calling(eqn.params, closed, used_in.marked(eqn.invars), ins, outs)
        outvars = used.marked(eqn.outvars)
        return list(used_in), eqn.replace(params=params, effects=closed.effects, invars=invars, outvars=outvars)

    def partial_eval_custom(self, eqn: JaxprEqn, unknown_in: Sequence[bool], policy: Policy | None) -> EqnParts:
        unknown = Mask(unknown_in)
        pe = partial_eval_jaxpr_custom(self.body(eqn.params), unknown, policy, (True,) * len(eqn.outvars))
        known_ins, unknown_ins = unknown.partition(range(len(unknown)))
        known_outs = pe.out_unknown.unmarked(range(len(eqn.outvars)))
        known_in = unknown.unmarked(eqn.invars)
        known_out, unknown_out = pe.out_unknown.partition(eqn.outvars)
        # A residual may be an input or a result, both of the known jaxpr and of the call.
        results, saved = pe.known.jaxpr.outvars[: len(known_out)], pe.known.jaxpr.outvars[len(known_out) :]
        outside = dict(zip(results, known_out, strict=True)) | dict(zip(pe.known.jaxpr.invars, known_in, strict=True))
        fresh = {v: Var(v.aval) for v in saved if v not in outside}
        residuals = [*substituted(saved, outside | fresh), *(known_in[i] for i in pe.input_residuals)]
        closed = pe.known.replace(jaxpr=pe.known.jaxpr.replace(outvars=[*results, *fresh]))
        known_params, staged_params = self.parts(eqn.params)
        ins, known_params = self.calling(known_params, closed, known_in, known_ins, known_outs)
        known = eqn.replace(params=known_params, invars=ins, outvars=[*known_out, *fresh.values()])
        # The staged part recomputes the results, except for those that are residuals.
        forwarded = {outside[v] for v in saved if v in results}
        recomputed = Mask([v not in forwarded for v in eqn.outvars])
        closed, _ = prune_closed(pe.staged, recomputed, True)
        operands, places = [*residuals, *unknown.marked(eqn.invars)], [*(None for _ in residuals), *unknown_ins]
        outs = recomputed.marked(range(len(recomputed)))
        ins, staged_params = self.calling(staged_params, closed, operands, places, outs)
        staged = eqn
        if ins != eqn.invars or not all(recomputed) or not _is_alike(staged_params, eqn.params):
            staged = eqn.replace(params=staged_params, invars=ins, outvars=recomputed.marked(eqn.outvars))
        return EqnParts([known], [staged], unknown_out, [*fresh.values()], False, [*forwarded])


def _is_alike(one: dict, other: dict) -> bool:
    """Returns whether parameters are the same objects, or equal plain ones: nested calls then stay as they are."""
    return one.keys() == other.keys() and all([one[k] is other[k] or _plain(one[k], other[k]) for k in one])


def _plain(x: object, y: object) -> bool:
    return type(x) is type(y) and type(x) in (bool, str, tuple) and x == y


class ClosedCall(Call):
    """Calls a jaxpr, which is lowered to a separate function of the module."""

    name = "closed_call"
    body_name = "call_jaxpr"

    def lower(self, e, ins, outs, *operands, call_jaxpr):
        return e.call_jaxpr(call_jaxpr, self.name, operands)

    def jvp(self, primals, tangents, *, call_jaxpr):
        return jvp_flat(jaxpr_as_fun(call_jaxpr), primals, tangents)


closed_call_p = ClosedCall()


class OpenCall(Call):
    """A call of an open jaxpr: its constants are leading operands."""

    def body(self, params):
        return closed_of(params[self.body_name])

    def calling(self, params, closed, operands, ins, outs):
        jaxpr, consts = opened(closed)
        return [*consts, *operands], {**params, self.body_name: jaxpr}


@cache.weak_cache
def closed_of(jaxpr: Jaxpr) -> ClosedJaxpr:
    """The closed jaxpr of a jaxpr without constants; the same object each time."""
    return ClosedJaxpr(jaxpr, [])


def opened(closed: ClosedJaxpr) -> tuple[Jaxpr, list]:
    """closed -> (jaxpr with constants as leading inputs, constants)"""
    return _opened(closed.jaxpr), closed.consts


@cache.weak_cache
def _opened(jaxpr: Jaxpr) -> Jaxpr:
    return constants_to_inputs(jaxpr)


def split_tangents(results: Sequence, tangents: Sequence, nonzeros: Sequence[bool]) -> tuple[list, list]:
    """Results and their tangents, with `Zero` for the results without a nonzero tangent."""
    zeros = (Zero.from_primal_value(r) for r, nz in zip(results, nonzeros, strict=True) if not nz)
    return list(results), Mask(nonzeros).merge(zeros, tangents)


@state.traced_cache
def forwarded(
    primal: ClosedJaxpr, results: int, held: tuple[bool, ...], repeats: bool = False
) -> tuple[ClosedJaxpr, tuple]:
    """The jaxpr without forwarded outputs (inputs or repeated outputs), and the source of each output: kind and index.

    Among the first `results` outputs, those of the function itself, only inputs are forwarded, except for outputs that
    are `held`. With `repeats`, other outputs that repeat earlier ones are kept as well.
    """
    inputs = {v: i for i, v in enumerate(primal.jaxpr.invars)}
    outvars: list[Any] = []
    at: dict[Any, int] = {}
    sources = []
    for n, v in enumerate(primal.jaxpr.outvars):
        if type(v) is Var and v in inputs and not (n < results and held[n]):
            sources.append(("in", inputs[v]))
        elif n >= results and v in at and not repeats:
            sources.append(("out", at[v]))
        else:
            sources.append(("out", len(outvars)))
            if type(v) is Var:
                at.setdefault(v, len(outvars))
            outvars.append(v)
    return ClosedJaxpr(primal.jaxpr.replace(outvars=outvars), primal.consts), tuple(sources)


@cache.weak_cache
def names_in(closed: ClosedJaxpr) -> tuple:
    """The axis names to which the equations of a jaxpr refer."""
    names: dict[Any, None] = {}
    for eqn in closed.jaxpr.eqns:
        names.update(dict.fromkeys(eqn.primitive.names_axis(eqn.params)))
    return tuple(names)
