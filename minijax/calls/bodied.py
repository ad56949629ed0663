"""Operations that run jaxprs, their bodies: the rules that follow from the roles of operands and results.

Each operand and each result of a call has a `Binder`, which names its role: a constant, a carry, a slice. A rule
transforms the bodies, appends new operands and results with binders of their own, and sorts all of them by role.
A carry has equal flags (nonzero, batched, unknown, used) where it enters a body and where it leaves it.

Below, `jvp` appends the tangents of a constant and of a carry. Sorting puts each behind the primals of its role:

>>> f = lambda c, x: jax.lax.scan(lambda x, _: (x * c, None), x, None, length=3)[0]
>>> jaxpr = jax.make_jaxpr(lambda *args: jax.jvp(f, args, args))(2.0, 1.0)
>>> [(params["num_consts"], params["num_carry"]) for params in [jaxpr.eqns[0].params]]
[(2, 2)]
"""

from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from itertools import accumulate, repeat
from typing import Any, NamedTuple

from minijax.base import cache
from minijax.base.mask import Mask
from minijax.ir import effects
from minijax.ir.body import with_leading
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var
from minijax.ir.primitive import Primitive
from minijax.ir.refs import is_ref
from minijax.ir.trace import constants_to_inputs
from minijax.ir.types import Zero
from minijax.primitives.zeros import instantiate, nonzero_mask
from minijax.transforms.batch import batch_jaxpr, move_batch_dim
from minijax.transforms.discharge import dereferenced, discharge_jaxpr
from minijax.transforms.jvp import jvp_jaxpr, with_zeros
from minijax.transforms.linearize import linearize_jaxpr
from minijax.transforms.partial_eval import partial_eval_jaxpr, permute_jaxpr
from minijax.transforms.partial_eval_custom import EqnParts, PartialEvalCustom, Policy, partial_eval_jaxpr_custom
from minijax.transforms.prune import is_read_whole, prune_closed


class Role(IntEnum):
    """The part of an operand or a result in a call. Calls have operands, and results, in this order."""

    INDEX = 0  # selects the body; no body takes it
    TEST = 1  # a constant of a loop's predicate; no body takes it
    CONST = 2
    STATE = 3  # the value of a reference, which a loop carries
    CARRY = 4
    SLICE = 5  # for each step an element of an operand; the result of each step, stacked
    STACKED = 6  # as SLICE, for the residuals of another loop
    RESULT = 7


class Binder(NamedTuple):
    """The role of an operand or a result, and how the parameters of the call describe it."""

    role: Role
    number: int | None = None  # its place in the call before a rule; None: the rule adds it
    spec: Any = None  # its sharding, for `shard_map`

    @property
    def added(self) -> "Binder":
        """The binder of a value that a rule adds to a call."""
        return self._replace(number=None)


Binders = Sequence[Binder]
Bodies = Sequence[ClosedJaxpr]

CONST, CARRY, RESULT, STACKED = map(Binder, (Role.CONST, Role.CARRY, Role.RESULT, Role.STACKED))


@cache.cache(maxsize=1024)
def numbered(*counts: tuple[Role, int]) -> tuple[Binder, ...]:
    """Binders of consecutive operands, or results: of each role, as many as the count says."""
    roles = [role for role, count in counts for _ in range(count)]
    return tuple([Binder(role, i) for i, role in enumerate(roles)])


def taken(ins: Binders) -> Mask:
    """Marks the operands that bodies take."""
    first = Role.CONST
    return Mask([b.role >= first for b in ins])


def carried(binders: Binders) -> Mask:
    """Marks the operands or the results that are carried."""
    carry = Role.CARRY
    return Mask([b.role is carry for b in binders])


def count_of(role: Role, binders: Binders) -> int:
    return sum(b.role is role for b in binders)


def either(flags: Iterable[Sequence[bool]]) -> Mask:
    """The elementwise `or` of sequences of flags."""
    return Mask([any(column) for column in zip(*flags, strict=True)])


def fixpoint(step: Callable, flags: Sequence[bool]) -> tuple[Any, Mask]:
    """Grows flags until `step(flags) -> (result, flags)` adds none. Returns that result and the flags."""
    now = Mask(flags)
    while True:
        result, out = step(now)
        wider = now | out
        if wider == now:
            return result, now
        now = wider


class Sorted(NamedTuple):
    """A call whose operands and results are sorted by role; `places` has the unsorted position of each result."""

    operands: list
    params: dict
    places: Sequence[int]

    def unsorted(self, results: Sequence) -> list:
        unsorted: list[Any] = [None] * len(results)
        for place, result in zip(self.places, results, strict=True):
            unsorted[place] = result
        return unsorted


class Residuals(NamedTuple):
    """The values that known bodies hand to others, which take them as their leading inputs.

    `known`: inputs -> (results, new results), `others`: (residuals, inputs) -> results. Each residual is an input
    ("in") or a result ("out") of `known`, with that index.
    """

    known: Bodies
    others: Bodies
    new: Binders  # of the new results
    sources: Sequence[tuple[str, int]]
    ins: Binders  # of the residuals, as operands

    def values(self, operands: Sequence, results: Sequence) -> list:
        return [operands[i] if kind == "in" else results[i] for kind, i in self.sources]


class Bodied(Primitive):
    """Runs the jaxprs `bodies(params)`. A call's `binders` and `call_of` say how it is taken apart and made again."""

    multiple_results = True
    auto_pvary = False
    dce_inside = True
    closes_linear = True  # constants that only the linear part reads are its operands; else results of the primal part
    prunes_known = True  # dead operations of the body leave the primal part of its derivative
    copies_known = False  # known parts have jaxprs of their own: those of equal calls are printed apart, as jax's are
    residual_role: Role | None = None  # of residuals as results where a call is evaluated in part

    # ---- an operation defines these

    def bodies(self, params: dict) -> Bodies:
        """The jaxprs that rules transform, all with the same inputs and results."""
        raise NotImplementedError(type(self).__name__)

    def binders(self, params: dict) -> tuple[Binders, Binders]:
        """The binders of operands and of results, sorted by role."""
        raise NotImplementedError(type(self).__name__)

    def call_of(
        self, params: dict, bodies: Bodies, operands: Sequence, ins: Binders, outs: Binders
    ) -> tuple[list, dict]:
        """Operands and parameters of a call of `bodies` instead of those in `params`; all are sorted by role."""
        raise NotImplementedError(type(self).__name__)

    def residuals(self, params: dict, known: Bodies, others: Bodies, ins: Binders, outs: Binders) -> Residuals:
        """Chooses how values pass from `known`, inputs -> (results, residuals), to `others`, (residuals, ...) -> ...

        `ins` and `outs` are the binders of the inputs and results of `known`.
        """
        raise NotImplementedError(type(self).__name__)

    def parts(self, params: dict) -> tuple[dict, dict]:
        """The parameters from which those of the known and the staged call are derived."""
        return params, params

    def of_reference(self, binder: Binder) -> tuple[Binder, Binder]:
        """The binders of a reference's value: as an operand, and as a result."""
        return binder, binder._replace(role=Role.RESULT, number=None)

    # ---- calls

    def sorted_call(self, params: dict, bodies: Bodies, operands: Sequence, ins: Binders, outs: Binders) -> Sorted:
        """The call of bodies whose inputs and results have these binders, sorted by role."""
        order, places = _by_role(ins), _by_role(outs)
        if order != (every := list(range(len(order)))) or places != list(range(len(places))):
            inner = tuple(_by_role(taken(ins).marked(ins)))
            bodies = tuple([permute_jaxpr(b, inner, tuple(places)) for b in bodies])
            if order != every:
                operands, ins = [operands[i] for i in order], [ins[i] for i in order]
            outs = [outs[i] for i in places]
        return Sorted(*self.call_of(params, bodies, operands, ins, outs), places)

    def bound(self, params: dict, bodies: Bodies, operands: Sequence, ins: Binders, outs: Binders) -> list:
        """The results of a call, in the order of `outs`."""
        call = self.sorted_call(params, bodies, operands, ins, outs)
        return call.unsorted(self.bind_all(call.operands, call.params))

    def settled(self, params: dict, flags: Sequence[bool], transform: Callable) -> tuple[list, Mask, Mask]:
        """Transforms the bodies with flags on which they agree, as the input and the output carry do.

        `transform(body, flags of its inputs, least flags of its results)` returns a new body and the flags of its
        results. Returns the new bodies, the flags of the operands, which include `flags`, and those of the results.
        """
        (ins, outs), bodies = self.binders(params), self.bodies(params)
        inner, carry = taken(ins), carried(ins)
        k, n = carry.count(True), len(outs)
        fixed = [f and t for f, t in zip(flags, inner, strict=True)]

        def step(wanted: Mask) -> tuple:
            flagged = Mask(carry.merge(carry.unmarked(fixed), wanted[:k]))
            least = (*wanted, *repeat(False, n - len(wanted)))
            pairs = [transform(b, tuple(inner.marked(flagged)), least) for b in bodies]
            new, out = [p[0] for p in pairs], either(p[1] for p in pairs)
            return (new, flagged, out), out[: len(wanted)]

        more = n - k if len(bodies) > 1 else 0
        with self.body_context(params):
            return fixpoint(step, (*carry.marked(fixed), *repeat(False, more)))[0]

    # ---- rules

    def effects(self, *avals, **params):
        return effects.join(*(j.effects for j in self.jaxprs(params)))

    def names_axis(self, params):
        return tuple(dict.fromkeys(name for j in self.jaxprs(params) for name in names_in(j)))

    def jvp(self, primals, tangents, **params):
        ins, outs = self.binders(params)
        pushed, nonzeros, out_nonzeros = self.settled(params, nonzero_mask(tangents), jvp_jaxpr)
        operands = [*primals, *map(instantiate, nonzeros.marked(tangents))]
        ins, both = [*ins, *nonzeros.marked(ins)], [*outs, *out_nonzeros.marked(outs)]
        results, n = self.bound(params, pushed, operands, ins, both), len(outs)
        return split_tangents(results[:n], results[n:], out_nonzeros)

    def linearize(self, nonzeros, primals, **params):
        ins, outs = self.binders(params)
        parts, flagged, out_nonzeros = self.settled(params, nonzeros, self.linearized)
        known, linear = [p.primal for p in parts], [p.tangent for p in parts]
        results, residuals, leading, linear = self.run_known(params, known, linear, primals, ins, outs)
        others, consts = ~taken(ins), []
        if any(body.consts for body in linear):
            # As in jax the constants of the linear part are its operands.
            consts, linear = [*linear[0].consts], [ClosedJaxpr(constants_to_inputs(linear[0].jaxpr))]
        residuals = [*others.marked(primals), *consts, *residuals]
        leading = [*others.marked(ins), *repeat(CONST, len(consts)), *leading]
        params = self.parts(params)[1]

        def push(*tangents):
            tangents = with_zeros(primals, Mask(nonzeros).merge(repeat(None), tangents))
            operands = [*residuals, *map(instantiate, flagged.marked(tangents))]
            return self.bound(params, linear, operands, [*leading, *flagged.marked(ins)], out_nonzeros.marked(outs))

        return results, out_nonzeros, push

    def linearized(self, body: ClosedJaxpr, nonzeros: tuple, least: tuple) -> tuple:
        """The parts of a body, and a mask of the results with a nonzero tangent."""
        parts = linearize_jaxpr(body, nonzeros, least, self.prunes_known, self.closes_linear)
        return parts, parts.out_nonzeros

    def run_known(
        self,
        params: dict,
        known: Bodies,
        others: Bodies,
        operands: Sequence,
        ins: Binders,
        outs: Binders,
        role: Role | None = None,
    ) -> tuple[list, list, Binders, Bodies]:
        """Runs known bodies, inputs -> (results, residuals), on operands with binders `ins`.

        New results have the binders that the call gives them, or these with `role`. Returns the results, the
        residuals, their binders, and `others`, which take them as leading inputs.
        """
        with self.body_context(params):
            split = self.residuals(params, known, others, ins, outs)
        bodies = [b.replace(jaxpr=b.jaxpr.replace()) for b in split.known] if self.copies_known else split.known
        outs_and_new = [*outs, *_with_role(split.new, role)]
        results = self.bound(self.parts(params)[0], bodies, operands, ins, outs_and_new)
        return results[: len(outs)], split.values(operands, results), split.ins, split.others

    def partial_eval(self, staging, operands, unknown_in, **params):
        (ins, outs), unknown = self.binders(params), Mask(unknown_in)
        others = ~taken(ins)
        if any(others.marked(unknown)):
            return staging.process(self, operands, params)
        parts, unknown, out_unknown = self.settled(params, unknown, partially_evaluated)
        known, staged = [p.known for p in parts], [p.unknown for p in parts]
        results, residuals, leading, staged = self.run_known(
            params,
            known,
            staged,
            unknown.unmarked(operands),
            unknown.unmarked(ins),
            out_unknown.unmarked(outs),
            self.residual_role,
        )
        values = [*others.marked(operands), *residuals, *unknown.marked(operands)]
        binders = [*others.marked(ins), *leading, *unknown.marked(ins)]
        call = self.sorted_call(self.parts(params)[1], staged, values, binders, out_unknown.marked(outs))
        return out_unknown.merge(results, call.unsorted(staging.process(self, call.operands, call.params)))

    def partial_eval_custom(self, eqn: JaxprEqn, unknown_in: Sequence[bool], policy: Policy | None) -> EqnParts | None:
        (ins, outs), unknown = self.binders(eqn.params), Mask(unknown_in)
        inner = taken(ins)
        if any(inner.unmarked(unknown)):
            return None
        known_params, staged_params = self.parts(eqn.params)
        known_in, known_ins = unknown.unmarked(eqn.invars), unknown.unmarked(ins)
        with self.body_context(eqn.params):
            mask, every = tuple(inner.marked(unknown)), (True,) * len(outs)
            parts = [partial_eval_jaxpr_custom(b, mask, policy, every) for b in self.bodies(eqn.params)]
            known, staged, out_unknown, read = _agreeing(parts)
            known_outs = out_unknown.unmarked(outs)
            split = self.residuals(eqn.params, known, staged, known_ins, known_outs)
        known_out, unknown_out = out_unknown.partition(eqn.outvars)
        known_outs = [*known_outs, *_with_role(split.new, self.residual_role)]
        call = self.sorted_call(known_params, split.known, known_in, known_ins, known_outs)
        avals, effs = self.typed([v.aval for v in call.operands], call.params)
        new = [Var(a) for a in call.unsorted(avals)[len(known_out) :]]
        results = [*known_out, *new]
        outvars = [results[i] for i in call.places]
        first = eqn.replace(params=call.params, invars=call.operands, outvars=outvars, effects=effs)
        residuals = split.values(inner_in := taken(known_ins).marked(known_in), results)
        # The staged part recomputes the results, except for those that are residuals.
        recomputed = Mask([v not in known_out or v not in residuals for v in eqn.outvars])
        again = [prune_closed(b, recomputed, True, constants=False)[0] for b in split.others]
        inner_ins = taken(known_ins).marked(known_ins)
        values = [*inner.unmarked(eqn.invars), *residuals, *(inner_in[i] for i in read), *unknown.marked(eqn.invars)]
        binders = [*inner.unmarked(ins), *split.ins, *(inner_ins[i].added for i in read), *unknown.marked(ins)]
        call = self.sorted_call(staged_params, again, values, binders, recomputed.marked(outs))
        second = self._with_call(eqn, call, recomputed.marked(eqn.outvars))
        return EqnParts([first], [second], unknown_out, new, False, recomputed.unmarked(eqn.outvars))

    def _with_call(self, eqn: JaxprEqn, call: Sorted, outvars: Sequence[Var]) -> JaxprEqn:
        """The equation of a call, or `eqn` itself if that is the same."""
        outvars = [outvars[i] for i in call.places]
        if call.operands == eqn.invars and outvars == eqn.outvars and _are_alike(call.params, eqn.params):
            return eqn
        effs = self.effects(*(v.aval for v in call.operands), **call.params)
        return eqn.replace(params=call.params, invars=call.operands, outvars=outvars, effects=effs)

    def batch(self, axis, operands, dims, **params):
        ins, outs = self.binders(params)

        def transform(body, batched, least):
            return batch_jaxpr(body, axis, tuple([0 if b else None for b in batched]), least)

        bodies, batched, out_batched = self.settled(params, [d is not None for d in dims], transform)
        moved = zip(operands, dims, _batch_dims(ins, batched), strict=True)
        in_front = [move_batch_dim(x, d, to, axis) for x, d, to in moved]
        return self.bind_all(*self.call_of(params, bodies, in_front, ins, outs)), _batch_dims(outs, out_batched)

    def discharge(self, operands: Sequence, refs: Sequence, **params: Any) -> tuple[list, dict, Callable]:
        """See `DischargeableCall`."""
        (ins, outs), bodies = self.binders(params), self.bodies(params)
        pairs = [self.of_reference(b) if is_ref(x) else (b, None) for x, b in zip(operands, ins, strict=True)]
        ins, last = [i for i, _ in pairs], [o for _, o in pairs if o is not None]
        values, n = dereferenced(operands, bodies[0].debug_info), len(outs)
        with self.body_context(params):
            bodies = [discharge_jaxpr(b) for b in bodies]
        call = self.sorted_call(params, bodies, values, ins, [*outs, *last])

        def finish(results):
            results = call.unsorted(results)
            return results[:n], results[n:]

        return call.operands, call.params, finish

    def dce(self, used: Sequence[bool], eqn: JaxprEqn) -> tuple[list[bool], JaxprEqn | None]:
        bodies = self.bodies(eqn.params)
        if all(used) and all([is_read_whole(b) for b in bodies]):
            return [True] * len(eqn.invars), eqn
        ins, outs = self.binders(eqn.params)
        pruned, used_in, used_out = self.pruned(eqn.params, used)
        if all(new is old for new, old in zip(pruned, bodies, strict=True)):
            return list(used_in), eqn
        invars, left = used_in.marked(eqn.invars), used_out.marked(outs)
        invars, params = self.call_of(eqn.params, pruned, invars, used_in.marked(ins), left)
        effs = effects.join(*(b.effects for b in pruned))
        return list(used_in), eqn.replace(invars, used_out.marked(eqn.outvars), params=params, effects=effs)

    def pruned(self, params: dict, used: Sequence[bool]) -> tuple[list, Mask, Mask]:
        """The bodies that compute the used results, and masks of the operands and the results that are left.

        All bodies have the same inputs. A carry is kept, or dropped, as both input and result.
        """
        (ins, outs), bodies = self.binders(params), self.bodies(params)
        carry_in, carry_out = carried(taken(ins).marked(ins)), carried(outs)
        several = len(bodies) > 1

        def step(flags: Mask) -> tuple:
            keep = flags if several else carry_in.merge(repeat(False), flags)
            used_out = used if several else carry_out.merge(carry_out.unmarked(used), flags)
            pairs = [prune_closed(b, used_out, keep, constants=False) for b in bodies]
            reads = either(p[1] for p in pairs)
            return ([p[0] for p in pairs], reads, Mask(used_out)), reads if several else carry_in.marked(reads)

        flags = repeat(False, len(carry_in)) if several else carry_out.marked(used)
        (bodies, reads, used_out), _ = fixpoint(step, tuple(flags))
        return bodies, Mask(taken(ins).merge(repeat(True), reads)), used_out

    def lift(self, eqn, fixed, lift):
        ins, outs = self.binders(eqn.params)
        own = [f and b.role is not Role.CARRY for f, b in zip(fixed, ins, strict=True)]
        lifted = [lift(b, taken(ins).marked(own)) for b in self.bodies(eqn.params)]
        consts = [v for _, found in lifted for v in found]
        types, ends = tuple([v.aval for v in consts]), accumulate(len(found) for _, found in lifted)
        bodies = [
            with_leading(b, tuple(range(end - len(found), end)), types)
            for (b, found), end in zip(lifted, ends, strict=True)
        ]
        others = ~taken(ins)
        operands = [*others.marked(eqn.invars), *consts, *others.unmarked(eqn.invars)]
        binders = [*others.marked(ins), *repeat(CONST, len(consts)), *others.unmarked(ins)]
        invars, params = self.call_of(eqn.params, bodies, operands, binders, outs)
        return eqn.replace(params=params, invars=invars)

    def regrouped(self, counts: Sequence[int], params: dict, new: dict) -> dict:
        """The parameters `new`, in which each operand of a call with `params` is replaced by as many as `counts`."""
        ins, outs = self.binders(params)
        ins = [b for b, count in zip(ins, counts, strict=True) for _ in range(count)]
        return self.call_of(new, self.bodies(new), (), ins, outs)[1]


def _by_role(binders: Binders) -> list[int]:
    """The order in which binders are sorted by role; those of one role keep their order."""
    roles = [b.role for b in binders]
    return sorted(range(len(roles)), key=roles.__getitem__)


def _with_role(binders: Binders, role: Role | None) -> Binders:
    return binders if role is None else [b._replace(role=role) for b in binders]


def partially_evaluated(body: ClosedJaxpr, unknown: tuple[bool, ...], least: tuple[bool, ...]) -> tuple:
    """The parts of a body, and the mask of its unknown results, for `Bodied.settled`."""
    parts = partial_eval_jaxpr(body, unknown, least)
    return parts, parts.out_unknown


def _batch_dims(binders: Binders, batched: Sequence[bool]) -> list:
    """The batch dims: 0, but 1 behind the axis of the steps; None: not batched."""
    stacked = Role.SLICE, Role.STACKED
    return [int(b.role in stacked) if flag else None for b, flag in zip(binders, batched, strict=True)]


def known_returning(p: PartialEvalCustom, out_unknown: Mask) -> ClosedJaxpr:
    """The known part, which returns residuals and only results that are known by `out_unknown` too."""
    if p.out_unknown == out_unknown:
        return p.known
    left = ~Mask(p.out_unknown.unmarked(out_unknown))
    n = len(left)
    outs = (*left.marked(range(n)), *range(n, n + p.num_residuals))
    return permute_jaxpr(p.known, tuple(range(len(p.known.invars))), outs)


def _agreeing(parts: Sequence[PartialEvalCustom]) -> tuple[Bodies, Bodies, Mask, list[int]]:
    """The known and staged bodies, the mask of results that are unknown in any, the known inputs that any reads.

    The staged bodies are (residuals, known inputs read, unknown inputs) -> results.
    """
    out_unknown = either(p.out_unknown for p in parts)
    read = sorted({i for p in parts for i in p.input_residuals})
    types = {i: p.staged.in_avals[p.num_residuals + n] for p in parts for n, i in enumerate(p.input_residuals)}

    def staged(p: PartialEvalCustom) -> ClosedJaxpr:
        if len(p.input_residuals) == len(read):
            return p.staged
        # (residuals, own inputs, unknown inputs) -> (own inputs, residuals, ...) -> (inputs, residuals, ...) -> ...
        n, m, k, end = p.num_residuals, p.num_residuals + len(p.input_residuals), len(read), len(p.staged.invars)
        closed = permute_jaxpr(p.staged, (*range(n, m), *range(n), *range(m, end)))
        places = tuple([read.index(i) for i in p.input_residuals])
        closed = with_leading(closed, places, tuple([types[i] for i in read]))
        return permute_jaxpr(closed, (*range(k, k + n), *range(k), *range(k + n, k + n + end - m)))

    return [known_returning(p, out_unknown) for p in parts], list(map(staged, parts)), out_unknown, read


def _are_alike(one: dict, other: dict) -> bool:
    """Returns whether parameters are the same objects, or equal plain ones: nested calls then stay as they are."""
    return one.keys() == other.keys() and all([one[k] is other[k] or _plain(one[k], other[k]) for k in one])


def _plain(x: object, y: object) -> bool:
    return type(x) is type(y) and type(x) in (bool, str, tuple) and x == y


def split_tangents(results: Sequence, tangents: Sequence, nonzeros: Sequence[bool]) -> tuple[list, list]:
    """Results and their tangents, with `Zero` for the results without a nonzero tangent."""
    zeros = (Zero.from_primal_value(r) for r, nz in zip(results, nonzeros, strict=True) if not nz)
    return list(results), Mask(nonzeros).merge(zeros, tangents)


@cache.weak_cache
def names_in(jaxpr: Jaxpr) -> tuple:
    """The axis names to which the equations of a jaxpr refer."""
    names: dict[Any, None] = {}
    for eqn in jaxpr.eqns:
        names.update(dict.fromkeys(eqn.primitive.names_axis(eqn.params)))
    return tuple(names)
