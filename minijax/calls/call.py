"""Base classes of primitives that call one jaxpr; their rules are derived from those of the jaxpr."""

from collections.abc import Sequence
from typing import Any

from minijax.base import cache
from minijax.base.mask import Mask
from minijax.calls.bodied import CONST, RESULT, Binders, Bodied, Bodies, Residuals, Role, numbered
from minijax.ir import state
from minijax.ir.hitypes import AvalQDD
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, Var
from minijax.ir.primitive import Primitive, cotangents, is_undefined_primal
from minijax.ir.trace import constants_to_inputs, eval_jaxpr
from minijax.ir.types import Zero, hi_classes, typeof
from minijax.primitives.zeros import nonzero_mask
from minijax.transforms.batch import batch_jaxpr_axes
from minijax.transforms.discharge import discharged
from minijax.transforms.lower_types import flat, lower_hi_jaxpr, lower_values
from minijax.transforms.transpose import transpose_jaxpr

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


class Call(Inlined, Bodied):
    """A call of a jaxpr: each rule transforms the body and calls the result in the same way."""

    copies_known = True
    linearize: Any = None  # the jvp of its body suffices
    partial_eval: Any = None
    lift: Any = None

    def calling(
        self, params: dict, closed: ClosedJaxpr, operands: Sequence, ins: Places, outs: Places
    ) -> tuple[list, dict]:
        """Operands and parameters of a call of `closed` instead of the body.

        Its inputs and results correspond to the inputs and results of the current body with indices `ins` and `outs`.
        """
        return list(operands), {**params, self.body_name: closed}

    def bodies(self, params):
        return (self.body(params),)

    def binders(self, params):
        body = self.body(params)
        return numbered((Role.CONST, len(body.invars))), numbered((Role.RESULT, len(body.outvars)))

    def call_of(self, params, bodies, operands, ins, outs):
        return self.calling(params, bodies[0], operands, [b.number for b in ins], [b.number for b in outs])

    def residuals(self, params, known, others, ins, outs):
        return forwarding(known, others, outs)

    def batch(self, axis, operands, dims, **params):
        closed, out_dims = batch_jaxpr_axes(self.body(params), axis, tuple(dims))
        call = self.calling(params, closed, operands, range(len(operands)), range(len(out_dims)))
        return self.bind_all(*call), list(out_dims)

    def to_lo(self, operands, params):
        low = lower_hi_jaxpr(self.body(params))
        values = flat(lower_values(low.in_types, operands))
        ins = list(low.hi_indices(low.in_types))
        outs = [*(None for _ in low.hi_indices(low.last_types)), *low.hi_indices(low.out_types)]
        return low.raise_values(operands, self.bind_all(*self.calling(params, low.closed, values, ins, outs)))


def forwarding(known: Bodies, others: Bodies, outs: Binders, repeats: bool = False) -> Residuals:
    """The residuals of a call: those that are operands or results of the known call are no new results of it."""
    n = len(outs)
    closed, sources = forwarded(known[0], n, (True,) * n, repeats)
    new = [RESULT] * (len(closed.outvars) - n)
    return Residuals([closed], others, new, sources[n:], [CONST] * len(sources[n:]))


class KeptCall(Call):
    """A call whose derivatives are calls with the same parameters."""

    linearize = Bodied.linearize

    def transpose(self, cts, *operands, **params):
        linear, nonzero = Mask(map(is_undefined_primal, operands)), nonzero_mask(cts)
        avals = tuple([ct.aval if type(ct) is Zero else typeof(ct) for ct in cts])
        closed, nonzero_in = transpose_jaxpr(self.body(params), linear, nonzero, False, avals)
        values = [*linear.unmarked(operands), *nonzero.marked(cts)]
        results = self.bind_all(*self.calling(params, closed, values, (None,) * len(values), ()))
        return cotangents(operands, results, nonzero_in)


class ClosedCall(KeptCall):
    """Calls a jaxpr, which is lowered to a separate function of the module."""

    name = "closed_call"
    body_name = "call_jaxpr"

    def lower(self, e, ins, outs, *operands, call_jaxpr, name=None):
        return e.call_jaxpr(call_jaxpr, self.name, operands)

    def batch(self, axis, operands, dims, **params):
        # As in jax, a call of a function that has a name.
        return super().batch(axis, operands, dims, **params | dict(name=params.get("name", "eval_jaxpr")))

    def residuals(self, params, known, others, ins, outs):
        split = super().residuals(params, known, others, ins, outs)
        # Residuals precede results, as in jax.
        return split._replace(new=[CONST] * len(split.new))


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
