"""`scan`: runs a function along the leading axis of its arguments and carries a state from step to step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count, repeat
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple, TypeVar, cast, overload

import numpy as np

from minijax.base import cache, config, dtypes, errors, source, tree
from minijax.base.errors import JaxprTypeError
from minijax.base.mask import Mask
from minijax.calls.call import names_in, split_tangents
from minijax.dispatch.operands import operand
from minijax.higher.check_bodies import fixpoint, trace_loop_body
from minijax.higher.scan_lowering import Slots, resized, unrolled
from minijax.ir import state
from minijax.ir.body import Body, check_positional_aliases
from minijax.ir.check import check_params, is_closed, is_count, same_types, types_text
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, substituted
from minijax.ir.primitive import Folding, is_undefined_primal
from minijax.ir.refs import is_ref
from minijax.ir.trace import Tracer, eval_jaxpr, trace_to_jaxpr
from minijax.ir.types import ShapedArray, Zero, typeof
from minijax.primitives.moving import expand_dims
from minijax.primitives.structural import concatenate, index_in_dim
from minijax.primitives.zeros import instantiate, nonzero_mask, zeros_like_aval
from minijax.transforms.batch import batch_jaxpr, move_batch_dim
from minijax.transforms.discharge import dereferenced, discharge_jaxpr
from minijax.transforms.jvp import jvp_jaxpr, with_zeros
from minijax.transforms.linearize import linearize_jaxpr
from minijax.transforms.lower_types import HiControlFlow
from minijax.transforms.partial_eval import PartialEval, partial_eval_jaxpr, permute_jaxpr
from minijax.transforms.partial_eval_custom import EqnParts, partial_eval_jaxpr_custom
from minijax.transforms.prune import prune_closed
from minijax.transforms.transpose import transpose_jaxpr

_disable_jit = config.option("disable_jit")


class Residuals(NamedTuple):
    """The residuals of a scan. Those marked in `stacked` have a value for each step; the others are loop-invariant."""

    values: list
    stacked: Mask


def interleaved(groups: Sequence[Sequence], others: Sequence[Sequence]) -> tuple:
    """Concatenates groups[0], others[0], groups[1], others[1], and so on."""
    return tuple([x for pair in zip(groups, others, strict=True) for group in pair for x in group])


_PARAMS = {
    "jaxpr": ("ClosedJaxpr", is_closed),
    "reverse": ("bool", lambda x: isinstance(x, bool)),
    **dict.fromkeys(("length", "unroll", "num_consts", "num_carry"), ("non-negative int", is_count)),
}


def _check_groups(body_groups: Sequence[Sequence], operand_groups: Sequence[Sequence], length: int) -> None:
    """Raises JaxprTypeError unless the body takes constants, a carry and slices of the operands' types."""
    *rest, sequences = operand_groups
    if any(a.shape[:1] != (length,) for a in sequences if type(a) is ShapedArray):
        raise JaxprTypeError(f"scan of length {length} called with sequences of types {types_text(sequences)}")
    slices = [a.without_axis(0) if type(a) is ShapedArray else a for a in sequences]
    for what, ours, theirs in zip(("consts", "initial carry", "sequence"), body_groups, (*rest, slices), strict=True):
        # References are not compared: the body slices them when it reads them.
        pairs = [(a, b) for a, b in zip(ours, theirs, strict=False) if type(b) is ShapedArray]
        if len(ours) != len(theirs) or any(not same_types([a], [b]) for a, b in pairs):
            raise JaxprTypeError(
                f"scan jaxpr takes {what} types\n{types_text(ours)},\ncalled with {what} of types\n{types_text(theirs)}"
            )


class Scan(HiControlFlow):
    """Runs `jaxpr`, (constants, carry, slices) -> (carry, results), `length` times."""

    folding = Folding.EXACT
    name = "scan"
    multiple_results = True
    dce_inside = True
    auto_pvary = False
    constrain_results = False

    def check_equation(self, avals, params):
        check_params("scan", params, _PARAMS)
        closed, slots = _body(params)
        inputs = slots.operands(closed.in_avals)
        carried = slots.results(closed.out_avals)[0]
        if not same_types(inputs[1], carried):
            raise JaxprTypeError(
                f"scan input carry input and output types mismatch:\n{types_text(inputs[1])}\nvs\n{types_text(carried)}"
            )
        _check_groups(inputs, slots.operands(avals), params["length"])

    def infer(self, *avals, jaxpr, length, num_carry, **params):
        outs = jaxpr.out_avals
        return [*outs[:num_carry], *(a.with_axis(0, length) for a in outs[num_carry:])]

    def effects(self, *avals, jaxpr, **params):
        return jaxpr.effects

    def lower(self, e, ins, outs, *operands, jaxpr, length, reverse, unroll, num_consts, num_carry):
        lowered = unrolled(jaxpr, Slots(num_consts, num_carry), length, reverse, unroll)
        return e.inlined(lowered.jaxpr, e.constants(lowered), operands)

    def discharge(self, operands, refs, **params):
        closed, slots = _body(params)
        consts, carry, xs = slots.operands([is_ref(x) for x in operands])
        if any(carry):
            raise NotImplementedError("scan: a reference cannot be carried; capture it")
        n, k = len(closed.outvars), sum(consts)
        # (constants and references, carry, slices) -> (constants, references, carry, slices)
        ins = (*Mask(consts).order(), *range(slots.consts, len(operands)))
        # (results, references, slices of references) -> (references, results, slices of references)
        outs = (*range(n, n + k), *range(n), *range(n + k, n + len(refs)))
        body = permute_jaxpr(discharge_jaxpr(closed), ins, outs)
        inner = Slots(slots.consts - k, slots.carry + k)
        values = dereferenced(operands, closed.debug_info)
        operands, params = [values[i] for i in ins], _with_body(params, body, inner)
        return operands, params, lambda results: (results[k : k + n], results[:k] + results[k + n :])

    def regrouped(self, counts, params):
        consts, carry, _ = _body(params)[1].operands(counts)
        return _with_body(params, params["jaxpr"], Slots(sum(consts), sum(carry)))

    def jvp(self, primals, tangents, **params):
        _, slots = _body(params)
        (pushed, _), nonzeros, out_nonzeros = _carry_fixpoint(params, nonzero_mask(tangents), jvp_jaxpr)
        pushing = slots.pick(nonzeros)
        both = Slots(slots.consts + pushing.consts, slots.carry + pushing.carry)
        tangents = [instantiate(t) for t in nonzeros.marked(tangents)]
        n, m = len(nonzeros), len(out_nonzeros)
        # (primals, tangents) -> (constants, their tangents, carry, its tangents, slices, their tangents)
        ins = interleaved(slots.operands(range(n)), pushing.operands(range(n, n + len(tangents))))
        # (results, tangents) -> (carry, its tangents, stacked results, their tangents)
        outs = interleaved(slots.results(range(m)), pushing.results(range(m, m + sum(out_nonzeros))))
        operands = interleaved(slots.operands(primals), pushing.operands(tangents))
        carry, ys = both.results(self.bind_all(operands, _with_body(params, permute_jaxpr(pushed, ins, outs), both)))
        k = m - slots.carry
        results = [*carry[: slots.carry], *ys[:k]]
        return split_tangents(results, [*carry[slots.carry :], *ys[k:]], out_nonzeros)

    def linearize(self, nonzeros, primals, **params):
        _, slots = _body(params)
        flags_of = attrgetter("out_nonzeros")
        parts, instantiated, out_nonzeros = _carry_fixpoint(params, nonzeros, linearize_jaxpr, flags_of)
        outs, residuals = self._run_known(parts.primal, len(out_nonzeros), primals, params)

        def push(*tangents):
            tangents = with_zeros(primals, Mask(nonzeros).merge(repeat(None), tangents))
            tangents = [instantiate(t) for t in instantiated.marked(tangents)]
            return self.bind_all(*_with_residuals(residuals, parts.tangent, slots.pick(instantiated), tangents, params))

        return outs, out_nonzeros, push

    def _run_known(self, closed: ClosedJaxpr, count: int, operands: Sequence, params: dict) -> tuple[list, Residuals]:
        """Runs a body, (operands) -> (`count` results, residuals). Returns its results and the residuals.

        Equations that depend only on constants run once, before the loop. Residuals that are slices are not copied.
        """
        _, slots = _body(params)
        invariant, body, sources = _hoist_invariants(closed, slots, count)
        consts, carry, xs = slots.operands(operands)
        if state.is_eager():
            invariant, _ = prune_closed(invariant, (True,) * len(invariant.outvars), True)
        varies = Mask([kind != "invariant" for kind, _ in sources])
        # constants -> (residuals, constants of the body)
        computed = eval_jaxpr(invariant.jaxpr, invariant.consts, *consts)
        consts = computed[varies.count(False) :]
        results = []
        if body.outvars or body.effects:
            results = self.bind_all([*consts, *carry, *xs], _with_body(params, body, Slots(len(consts), slots.carry)))
        places = {"invariant": computed, "slice": xs, "stacked": results[count:]}
        return results[:count], Residuals([places[kind][i] for kind, i in sources], varies)

    def partial_eval(self, staging, operands, unknown_in, **params):
        _, slots = _body(params)
        parts, unknown, out_unknown = _partial_eval_body(params, unknown_in)
        if not parts.known.eqns and False not in out_unknown:
            return staging.process(self, operands, params)
        known, rest = unknown.partition(operands)
        known_params = _with_body(params, parts.known, slots.pick(~unknown))
        outs, residuals = self._run_known(parts.known, out_unknown.count(False), known, known_params)
        call = _with_residuals(residuals, parts.unknown, slots.pick(unknown), rest, params)
        return out_unknown.merge(outs, staging.process(self, *call))

    def partial_eval_custom(self, eqn, unknown_in, policy):
        _, slots = _body(eqn.params)
        parts, unknown, out_unknown = _partial_eval_body(eqn.params, unknown_in)
        known_params = _with_body(eqn.params, parts.known, slots.pick(~unknown))
        known_in, rest = unknown.partition(eqn.invars)
        known_out, unknown_out = out_unknown.partition(eqn.outvars)
        varies = Mask()

        def known(*operands):
            nonlocal varies
            outs, residuals = self._run_known(parts.known, len(known_out), operands, known_params)
            varies = residuals.stacked
            return [*outs, *residuals.values]

        info = eqn.params["jaxpr"].debug_info._replace(arg_names=None, result_paths=None)
        jaxpr, constants = trace_to_jaxpr(known, [v.aval for v in known_in], info)
        eqns, atoms = _substituted_eqns(jaxpr, constants, known_in, known_out)
        invars, params = _with_residuals(Residuals(atoms, varies), parts.unknown, slots.pick(unknown), rest, eqn.params)
        staged = [eqn.replace(invars=invars, outvars=unknown_out, params=params)] if unknown_out else []
        pairs = [_split_by_policy(e, policy) if e.primitive is scan_p else (e, e, []) for e in eqns]
        residuals = [v for *_, saved in pairs for v in saved]
        return EqnParts([e for e, _, _ in pairs], [*(e for _, e, _ in pairs), *staged], unknown_out, residuals)

    def transpose(self, cts, *operands, **params):
        closed, slots = _body(params)
        closed, used = _prune_body(closed, slots, nonzero_mask(cts))
        carry_cts, ys_cts = slots.results(cts)
        carry_cts = [instantiate(ct) for ct in Mask(slots.operands(used)[1]).marked(carry_cts)]
        slots, values = slots.pick(used), used.marked(operands)
        lin_consts, _, lin_xs = slots.operands([is_undefined_primal(x) for x in values])
        linear = Mask((*lin_consts, *(True,) * slots.carry, *lin_xs))
        known, running = slots.pick(~linear), slots.pick(linear)
        known_consts, _, known_xs = known.operands(linear.unmarked(values))
        summed, _, _ = running.operands(linear.marked(values))
        sums = [zeros_like_aval(x.aval) for x in summed]

        body = _returning_constants(closed, tuple(lin_consts), tuple(typeof(ct).weak_type for ct in carry_cts))
        summed_avals, ys_avals = body.out_avals[: len(sums)], slots.results(closed.out_avals)[1]
        ct_avals = tuple(map(typeof, carry_cts))
        ct_avals = (*(a.to_ct_aval() for a in summed_avals), *ct_avals, *(a.to_ct_aval() for a in ys_avals))
        instantiated = (True,) * sum(running) + (False,) * sum(lin_xs)
        back, nonzeros = transpose_jaxpr(body, linear, (True,) * len(ct_avals), instantiated, ct_avals)
        k, n = known.consts, linear.count(False)
        # (known constants, known slices, cts) -> (known constants, cts, known slices)
        back = permute_jaxpr(back, (*range(k), *range(n, len(back.invars)), *range(k, n)))
        results = self.bind_all(
            [*known_consts, *sums, *carry_cts, *nonzero_mask(ys_cts).marked(ys_cts), *known_xs],
            _with_body({**params, "reverse": not params["reverse"]}, back, Slots(k, sum(running))),
        )
        # nonzero cotangents -> those of the linear inputs -> those of the inputs read -> those of all operands
        for mask in (nonzeros, linear, used):
            results = mask.merge(repeat(None), results)
        return [
            None if not is_undefined_primal(x) else Zero(x.aval) if ct is None else ct
            for x, ct in zip(operands, results, strict=True)
        ]

    def batch(self, axis, operands, dims, **params):
        _, slots = _body(params)

        def transform(closed, batched, instantiated):
            return batch_jaxpr(closed, axis, _batch_dims(batched), instantiated)

        (body, _), batched, out_batched = _carry_fixpoint(params, [d is not None for d in dims], transform)
        in_dims = _batch_dims(batched, slots.consts + slots.carry)
        in_front = [move_batch_dim(x, d, to, axis) for x, d, to in zip(operands, dims, in_dims, strict=True)]
        return self.bind_all(in_front, _with_body(params, body, slots)), _batch_dims(out_batched, slots.carry)

    def has_own_constants(self, params):
        return params["length"] < 2 or params["unroll"] != 1  # XLA sees several steps together, or none

    def names_axis(self, params):
        return names_in(params["jaxpr"])

    def dce(self, used, eqn):
        closed, slots = _body(eqn.params)
        pruned, used_in = _prune_body(closed, slots, tuple(used))
        if pruned is closed:
            return list(used_in), eqn
        used_out = Mask((*slots.operands(used_in)[1], *slots.results(used)[1]))
        params, invars = _with_body(eqn.params, pruned, slots.pick(used_in)), used_in.marked(eqn.invars)
        outvars = used_out.marked(eqn.outvars)
        return list(used_in), eqn.replace(invars, outvars, params=params, effects=pruned.effects)

    def lift(self, eqn, fixed, lift):
        closed, slots = _body(eqn.params)
        if self.has_own_constants(eqn.params):
            return eqn
        consts, carry, xs = slots.operands(fixed)
        closed, lifted_consts = lift(closed, (*consts, *(False,) * len(carry), *xs))
        params = _with_body(eqn.params, closed, slots._replace(consts=slots.consts + len(lifted_consts)))
        return eqn.replace(params=params, invars=[*lifted_consts, *eqn.invars])


scan_p = Scan()


def _body(params: dict) -> tuple[ClosedJaxpr, Slots]:
    return params["jaxpr"], Slots(params["num_consts"], params["num_carry"])


def _with_body(params: dict, closed: ClosedJaxpr, slots: Slots) -> dict:
    return {**params, "jaxpr": closed, "num_consts": slots.consts, "num_carry": slots.carry}


def _batch_dims(batched: Sequence[bool], unstacked: int | None = None) -> tuple:
    """The batch dims: 0 for the first `unstacked` values; 1, after the axis of the steps, for the others."""
    unstacked = len(batched) if unstacked is None else unstacked
    return tuple([int(i >= unstacked) if b else None for i, b in enumerate(batched)])


def _carry_fixpoint(
    params: dict, flags: Sequence[bool], transform: Callable, flags_of: Callable = itemgetter(1)
) -> tuple[Any, Mask, Mask]:
    """Transforms the body with flags (nonzero, unknown, batched) that are equal for the input and the output carry.

    `flags_of(transform(body, flags of inputs, minimal flags of results))` are the flags of the results.
    Returns the result of `transform`, the flags of the inputs, and those of the results.
    """
    closed, slots = _body(params)
    consts, carry, xs = slots.operands(flags)
    ys = (False,) * (len(closed.outvars) - slots.carry)

    def step(carry):
        ins = Mask((*consts, *carry, *xs))
        transformed = transform(closed, ins, (*carry, *ys))
        outs = flags_of(transformed)
        return (transformed, ins, outs), outs[: slots.carry]

    return fixpoint(step, carry)[0]


def _partial_eval_body(params: dict, unknown_in: Sequence[bool]) -> tuple[PartialEval, Mask, Mask]:
    """The body's known and unknown jaxprs, and the masks of its unknown inputs and results."""
    return _carry_fixpoint(params, unknown_in, partial_eval_jaxpr, attrgetter("out_unknown"))


def _with_residuals(
    residuals: Residuals, closed: ClosedJaxpr, slots: Slots, operands: Sequence, params: dict
) -> tuple[list, dict]:
    """Operands and parameters for a body whose first inputs are residuals, which become constants or slices."""
    n = len(residuals.values)
    invariant, varying = residuals.stacked.partition(range(n))
    # (residuals, constants, carry, slices) -> (invariant residuals, constants, carry, slices, stacked residuals)
    order = (*invariant, *range(n, len(closed.invars)), *varying)
    values = [*residuals.values, *operands]
    inner = slots._replace(consts=slots.consts + len(invariant))
    return [values[i] for i in order], _with_body(params, permute_jaxpr(closed, order), inner)


@cache.weak_cache
def _hoist_invariants(closed: ClosedJaxpr, slots: Slots, results: int) -> tuple[ClosedJaxpr, ClosedJaxpr, tuple]:
    """Hoists equations that depend only on constants out of a body, (operands) -> (`results` results, residuals).

    Returns the jaxpr to run before the loop, (constants) -> (invariant residuals, constants of the body), the body,
    (constants, carry, slices) -> (results, stacked residuals), and the source of each residual: its kind and index.
    """
    pruned, _ = prune_closed(closed, (True,) * len(closed.outvars), True)
    varying_in = (False,) * slots.consts + (True,) * (len(closed.invars) - slots.consts)
    varying_out = (True,) * results + (False,) * (len(closed.outvars) - results)
    parts = partial_eval_jaxpr(pruned, varying_in, varying_out)
    jaxpr = parts.unknown.jaxpr
    slices = {v: i for i, v in enumerate(jaxpr.invars[parts.num_residuals + slots.carry :])}
    varying, numbers = jaxpr.outvars[results:], count()
    body = jaxpr.replace(outvars=[*jaxpr.outvars[:results], *(v for v in varying if v not in slices)])
    sources = [("slice", slices[v]) if v in slices else ("stacked", next(numbers)) for v in varying]
    sources = Mask(parts.out_unknown[results:]).merge(zip(repeat("invariant"), count()), sources)
    return parts.known, ClosedJaxpr(body, parts.unknown.consts), tuple(sources)


def _substituted_eqns(
    jaxpr: Jaxpr, consts: Sequence, invars: Sequence, outvars: Sequence[Var]
) -> tuple[list[JaxprEqn], list[Any]]:
    """The equations of a jaxpr, and its results after `outvars`, with the variables of another jaxpr substituted."""
    names: dict[Any, Any] = dict(zip(jaxpr.invars, invars, strict=True))
    names.update((v, Literal(c, v.aval)) for v, c in zip(jaxpr.constvars, consts, strict=True))
    names.update(zip(jaxpr.outvars, outvars, strict=False))
    return [eqn.renamed(names) for eqn in jaxpr.eqns], substituted(jaxpr.outvars[len(outvars) :], names)


def _split_by_policy(eqn: JaxprEqn, policy: Any) -> tuple[JaxprEqn, JaxprEqn, list[Var]]:
    """A scan that also returns the residuals that `policy` saves, one that recomputes from them, the residuals."""
    closed, slots = _body(eqn.params)
    n, outs = len(closed.invars), len(closed.outvars)
    parts = partial_eval_jaxpr_custom(closed, (False,) * n, policy, (True,) * outs)
    if not parts.num_residuals:
        return eqn, eqn, []
    residuals = [Var(a.with_axis(0, eqn.params["length"])) for a in parts.known.out_avals[outs:]]
    known = eqn.replace(params=_with_body(eqn.params, parts.known, slots), outvars=[*eqn.outvars, *residuals])
    staged = parts.staged.jaxpr
    read = dict(zip(parts.input_residuals, staged.invars[parts.num_residuals :], strict=True))
    taken = Mask([i in read or slots.consts <= i < slots.consts + slots.carry for i in range(n)])
    inputs = [read[i] if i in read else Var(closed.invars[i].aval) for i in taken.marked(range(n))]
    # (residuals, inputs that are read) -> (constants, carry, slices, residuals)
    body = ClosedJaxpr(staged.replace(invars=[*inputs, *staged.invars[: parts.num_residuals]]), parts.staged.consts)
    params = _with_body(eqn.params, body, slots.pick(taken))
    return known, eqn.replace(params=params, invars=[*taken.marked(eqn.invars), *residuals]), residuals


@cache.weak_cache
def _prune_body(closed: ClosedJaxpr, slots: Slots, used: tuple[bool, ...]) -> tuple[ClosedJaxpr, Mask]:
    """Prunes the body. Returns it and the mask of its inputs. A carry is kept, or dropped, as both input and result."""
    carry, ys = slots.results(used)
    consts, xs = (False,) * slots.consts, (False,) * (len(closed.invars) - slots.consts - slots.carry)

    def step(carry):
        pruned, used_in = prune_closed(closed, (*carry, *ys), (*consts, *carry, *xs))
        return (pruned, used_in), slots.operands(used_in)[1]

    return fixpoint(step, carry)[0]


@cache.weak_cache
def _returning_constants(closed: ClosedJaxpr, linear: tuple[bool, ...], weak: tuple[bool, ...]) -> ClosedJaxpr:
    """The body with its linear constants as leading results. Its transpose accumulates their cotangents.

    Its carry has the weak types of the incoming cotangents.
    """
    jaxpr = closed.jaxpr
    names = {}
    for v, is_weak in zip(jaxpr.invars[len(linear) :], weak, strict=False):
        if isinstance(v.aval, ShapedArray) and v.aval.weak_type != is_weak:
            names[v] = Var(v.aval.update(weak_type=is_weak))
    invars, outvars = substituted(jaxpr.invars, names), substituted(jaxpr.outvars, names)
    eqns = [eqn.renamed(names) for eqn in jaxpr.eqns] if names else jaxpr.eqns
    constants = Mask(linear).marked(invars[: len(linear)])
    return ClosedJaxpr(jaxpr.replace(invars=invars, eqns=eqns, outvars=[*constants, *outvars]), closed.consts)


# ---- the public function ----------------------------------------------------------------------------


Carry = TypeVar("Carry")
X = TypeVar("X")
Y = TypeVar("Y")


@overload
def scan(
    f: Callable[[Carry, X], tuple[Carry, Y]], init: Carry, xs: X | None = ...,
    length: int | None = ..., reverse: bool = ..., unroll: int | bool = ..., _split_transpose: bool = ...,
) -> tuple[Carry, Y]: ...  # fmt: skip
@overload  # a Python number is promoted to the type that `f` returns
def scan(
    f: Callable[[Any, Any], tuple[Carry, Y]], init: complex, xs: Any = ...,
    length: int | None = ..., reverse: bool = ..., unroll: int | bool = ..., _split_transpose: bool = ...,
) -> tuple[Carry, Y]: ...  # fmt: skip
@source.boundary
def scan(
    f: Callable[[Any, Any], tuple[Carry, Y]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Carry, Y]:
    """Runs a function over the leading axis of arrays, and carries state from step to step.

    It equals the loop `for x in xs: carry, y = f(carry, x)`, with the ys stacked. The step is traced and compiled
    once, whatever the length, and the loop has derivatives in forward and in reverse mode. In reverse mode the
    residuals of all steps are kept; wrap `f` in `jax.checkpoint` to keep the carries alone.

    Args:
        f: The step: a function (carry, x) -> (carry, y). The carry it returns must have the tree, shapes and dtypes of
            the one it takes; a weak type of `init` is promoted. y is a pytree of any kind; None is common.
        init: The first carry: an array, a number, or a pytree of these.
        xs: The arrays to loop over: a pytree whose leaves have a leading axis of one size. None: each x is None, and
            `length` must be given.
        length: The number of steps. By default, the size of the leading axes.
        reverse: If true, the loop begins with the last slice. The ys stay at the places of their xs.
        unroll: How many steps an iteration of the compiled loop runs. True: all; False: one.

    Returns:
        A pair (last carry, stacked ys).

    Raises:
        TypeError: If the carry changes its tree, shape or dtype.
        ValueError: If the leading axes have different sizes, or the length is not known.

    See also: `jax.lax.fori_loop`, `jax.lax.map`, `jax.lax.associative_scan`, `jax.lax.while_loop`.

    Example:
        >>> def step(total, x):
        ...     total = total + x
        ...     return total, 10 * total
        >>> jax.lax.scan(step, 0.0, jnp.array([1.0, 2.0, 3.0]))
        (Array(6., dtype=float32), Array([10., 30., 60.], dtype=float32))

        A number of steps without arrays to loop over:

        >>> powers = jax.lax.scan(lambda x, _: (2 * x, x), 1, length=5)[1]
        >>> powers
        Array([ 1,  2,  4,  8, 16], dtype=int32, weak_type=True)
    """
    if not callable(f):
        raise TypeError(f"lax.scan: f argument should be a callable. Got {f!r}.")
    leaves, treedef = tree.flatten((init, xs))
    init_tree, xs_tree = treedef.children()
    carry, slices = Slots(0, init_tree.num_leaves).results(leaves)
    avals = [typeof(x) for x in leaves]
    length = _length(slices, length)
    if isinstance(unroll, Tracer):
        raise errors.ConcretizationTypeError(
            unroll, "The `unroll` argument to `scan` expects a concrete `int` or `bool` value."
        )
    if unroll is True or unroll is False:
        unroll = max(length, 1) if unroll else 1
    if unroll < 0:
        raise ValueError(f"scan: `unroll` must be a `bool` or a non-negative `int`. Got {unroll}.")
    if _disable_jit.value:
        return _python_loop(f, init, xs_tree, slices, length, reverse)
    check_positional_aliases(f, "scan", (init, xs), leaves)
    for a in avals[len(carry) :]:
        if type(a) is ShapedArray and a.entries[0] is not None:
            raise ValueError(f"scan: 0th dimension of all xs should be replicated. Got {a.sharding.spec}")
    rows = [a.without_axis(0) if a.is_high else resized(a) for a in avals[len(carry) :]]
    body, carry = trace_loop_body(f, carry, rows, treedef, "scan", init_tree, _carry_tree)
    return _bind(body, carry, slices, reverse=bool(reverse), length=length, unroll=int(unroll))


def _length(slices: Sequence, length: int | None) -> int:
    if length is not None:
        if isinstance(length, Tracer):
            raise errors.ConcretizationTypeError(
                length,
                "The `length` argument to `scan` expects a concrete `int` value. For a computed "
                "length, use `while_loop` or `fori_loop`.",
            )
        length = int(length)
    slices = [x for x in slices if not typeof(x).is_high]
    for x in slices:
        if not typeof(x).shape:
            kind = ValueError if type(x) in dtypes.PYTHON_SCALARS else IndexError
            raise kind(
                f"scan got value with no leading axis to scan over: {x}. Give it one, or capture it in the body."
            )
    sizes = list(dict.fromkeys(typeof(x).shape[0] for x in slices))
    if length is not None and any(n != length for n in sizes):
        raise ValueError(f"scan got `length` argument of {length} which disagrees with leading axis sizes {sizes}.")
    if len(sizes) > 1:
        raise ValueError(
            f"scan got values with different leading axis sizes: {', '.join(map(str, sizes))}. Slice xs to one."
        )
    if length is None and not sizes:
        raise ValueError("scan got no values to scan over and `length` not provided. Pass xs or length.")
    return cast("int", sizes[0] if sizes else length)


def _python_loop(f, init, xs_tree, slices, length, reverse):
    if not length:
        raise ValueError("zero-length scan is not supported in disable_jit() mode because the output type is unknown.")
    carry, rows = init, [None] * length
    for i in reversed(range(length)) if reverse else range(length):
        x = xs_tree.unflatten([index_in_dim(s, i, keepdims=False) for s in slices])
        carry, rows[i] = f(carry, x)
    return carry, tree.tree_map(lambda *ys: concatenate([expand_dims(y, (0,)) for y in ys], 0), *rows)


def _carry_tree(body: Body) -> Any:
    pair = body.out_tree.children()
    if len(pair) != 2:
        raise TypeError(
            f"scan body output must be a pair, got {body.out_tree.unflatten(body.closed.out_avals)}. Return (carry, "
            "y), with None for y if there is none."
        )
    return pair[0]


def _bind(body: Body, carry: Sequence, slices: Sequence, **loop: Any) -> Any:
    """Binds the loop. A carry that the body forwards becomes a constant; a slice that it returns is not computed."""
    closed, is_constant, copies = _drop_forwarded(body.jaxpr, Slots(len(body.captured), len(carry)))
    varying, constant = is_constant.partition(carry)
    consts = [*constant, *body.captured]
    counts = {"num_consts": len(consts), "num_carry": len(varying), "unroll": loop.pop("unroll")}
    results = scan_p.bind(*consts, *varying, *slices, **loop, jaxpr=closed, **counts)
    carried, ys = Slots(0, len(varying)).results(results)
    rest = iter(ys)
    ys = [next(rest) if i is None else _as_result(slices[i]) for i in copies]
    return body.out_tree.unflatten([*is_constant.merge(carried, constant), *ys])


def _as_result(x: Any) -> Any:
    return operand(x) if isinstance(x, np.ndarray) else x


@cache.weak_cache
def _drop_forwarded(jaxpr: Jaxpr, slots: Slots) -> tuple[ClosedJaxpr, Mask, tuple]:
    """Removes forwarded inputs from the results. Returns the body, the mask of constant carry, the slice of each y."""
    consts, carry, xs = slots.operands(jaxpr.invars)
    carry_out, ys = slots.results(jaxpr.outvars)
    is_constant = Mask([a is b for a, b in zip(carry, carry_out, strict=True)])
    slices = {v: i for i, v in enumerate(xs)}
    copies = tuple(slices.get(v) for v in ys)
    varying, constant = is_constant.partition(carry)
    # (consts, carry, slices) -> (constant carry, consts, varying carry, slices)
    invars = [*constant, *consts, *varying, *xs]
    computed = Mask((*~is_constant, *(i is None for i in copies)))
    info = jaxpr.debug_info
    names = dict(zip(jaxpr.invars, info.arg_names or (), strict=False))
    info = info._replace(
        arg_names=tuple(names.get(v, "") for v in invars), result_paths=tuple(computed.marked(info.result_paths or ()))
    )
    body = jaxpr.replace(invars=invars, outvars=computed.marked(jaxpr.outvars), debug_info=info)
    return ClosedJaxpr(body), is_constant, copies
