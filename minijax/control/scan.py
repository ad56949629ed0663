"""`scan`: a function run along the leading axis of its arguments, a state carried from step to step."""

from collections.abc import Callable, Sequence
from itertools import count, repeat
from typing import Any, NamedTuple

import numpy as np

from minijax.base import cache, config, dtypes, errors, source, tree
from minijax.base.mask import Mask
from minijax.base.util import merged, picked
from minijax.control.agreement import trace_loop
from minijax.dispatch.call import names_in
from minijax.dispatch.operands import operand
from minijax.hlo.emitter import ordered_in
from minijax.ir import state
from minijax.ir.body import Body
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from minijax.ir.primitive import is_linear
from minijax.ir.refs import is_ref
from minijax.ir.trace import Tracer, eval_jaxpr, trace_to_jaxpr
from minijax.ir.types import ShapedArray, Zero, token_type, typeof
from minijax.ops.moving import axis_to_front, expand_dims, move_axis
from minijax.ops.shape import concatenate, index_in_dim
from minijax.ops.zeros import instantiate, zeros_like_aval
from minijax.transforms.batch import batch_jaxpr
from minijax.transforms.discharge import TakesRefs, discharge_jaxpr, values_of
from minijax.transforms.hoist import hoist_jaxpr, reordered
from minijax.transforms.jvp import jvp_jaxpr
from minijax.transforms.linearize import linearize_jaxpr
from minijax.transforms.prune import prune_closed
from minijax.transforms.split import EqnParts, split_jaxpr
from minijax.transforms.transpose import transpose_jaxpr

_disable_jit = config.option("disable_jit")


class Slots(NamedTuple):
    """How operands are grouped (constants, carry, slices), and results (carry, stacked ones)."""

    consts: int
    carry: int

    def operands(self, items: Sequence) -> tuple[Sequence, Sequence, Sequence]:
        n = self.consts + self.carry
        return items[: self.consts], items[self.consts : n], items[n:]

    def results(self, items: Sequence) -> tuple[Sequence, Sequence]:
        return items[: self.carry], items[self.carry :]


def grown(step: Callable, flags: Sequence[bool]) -> tuple[Any, tuple[bool, ...]]:
    """Grows a carry's flags until `step(flags) -> made, flags` adds none; what it made, and the flags."""
    flags = tuple(flags)
    while True:
        made, out = step(flags)
        wider = tuple(a or b for a, b in zip(flags, out, strict=True))
        if wider == flags:
            return made, flags
        flags = wider


def stacked(aval: ShapedArray, length: int) -> ShapedArray:
    return aval.update(shape=(length, *aval.shape))


class Scan(TakesRefs):
    """Runs `jaxpr`, (constants, carry, slices) -> (carry, results), `length` times."""

    name = "scan"
    multiple_results = True
    dce_inside = True
    unites = False

    def infer(self, *avals, jaxpr, length, num_carry, **params):
        outs = jaxpr.out_avals
        return [*outs[:num_carry], *(stacked(a, length) for a in outs[num_carry:])]

    def effects(self, *avals, jaxpr, **params):
        return jaxpr.effects

    def lower(self, e, ins, outs, *operands, jaxpr, length, reverse, unroll, num_consts, num_carry):
        loop = Loop(e, jaxpr, Slots(num_consts, num_carry), length, reverse, unroll)
        return loop.lower(ins, outs, operands)

    def discharge(self, operands, refs, **params):
        closed, slots = _body(params)
        flags = [is_ref(x) for x in operands]
        if any(flags[slots.consts :]):
            raise NotImplementedError("scan: a reference can be neither carried nor sliced; capture it")
        consts, of_refs = range(slots.consts), flags[: slots.consts]
        others = range(slots.consts, len(flags))
        order = (*picked(consts, of_refs, False), *picked(consts, of_refs), *others)
        n, k = len(closed.outvars), len(refs)
        body = reordered(discharge_jaxpr(closed), order, (*range(n, n + k), *range(n)))
        values = values_of(operands)
        made = _with(params, body, Slots(slots.consts - k, slots.carry + k))
        return [values[i] for i in order], made, lambda results: (results[k:], results[:k])

    def jvp(self, primals, tangents, **params):
        closed, slots = _body(params)
        given = [type(t) is not Zero for t in tangents]
        consts, carry, xs = slots.operands(given)
        ys = (False,) * (len(closed.outvars) - slots.carry)

        def step(carry):
            nonzeros = (*consts, *carry, *xs)
            pushed, out = jvp_jaxpr(closed, nonzeros, (*carry, *ys))
            return (pushed, nonzeros, out), out[: slots.carry]

        (pushed, nonzeros, out), carry = grown(step, carry)
        ins, outs = _woven(slots.operands, nonzeros), _woven(slots.results, out)
        values = [*primals, *(instantiate(t) for t in picked(tangents, nonzeros))]
        inner = Slots(slots.consts + sum(consts), slots.carry + sum(carry))
        results = self.bind_all([values[i] for i in ins], _with(params, reordered(pushed, ins, outs), inner))
        placed = dict(zip(outs, results, strict=True))
        primals_out = [placed[i] for i in range(len(out))]
        rest = (placed[i] for i in range(len(out), len(results)))
        return primals_out, [next(rest) if nz else _zero(r) for r, nz in zip(primals_out, out, strict=True)]

    def linearize(self, nonzeros, primals, **params):
        closed, slots = _body(params)
        consts, carry, xs = slots.operands(nonzeros)
        ys = (False,) * (len(closed.outvars) - slots.carry)

        def step(carry):
            split = linearize_jaxpr(closed, (*consts, *carry, *xs), (*carry, *ys))
            return split, split.out_nonzeros[: slots.carry]

        split, carry = grown(step, carry)
        outs, saved, along = self._run_saving(split.primal, len(split.out_nonzeros), primals, params)

        def push(*tangents):
            rest = iter(tangents)
            filled = [next(rest) if have else _zero(p) for p, have in zip(primals, nonzeros, strict=True)]
            filled = [instantiate(t) for t in picked(filled, (*consts, *carry, *xs))]
            inner = Slots(sum(consts), sum(carry))
            return self.bind_all(*self._with_saved(split.tangent, inner, saved, along, filled, params))

        return outs, split.out_nonzeros, push

    def _run_saving(self, closed, kept, operands, params):
        """Runs a body whose results from `kept` on are saved; its results, the saved ones, which are stacked.

        What depends on the constants alone is run once, before the loop; slices are not copied.
        """
        slots = Slots(params["num_consts"], params["num_carry"])
        early, late, sources = _saving(closed, slots, kept)
        consts, carry, xs = slots.operands(operands)
        if state.is_eager():
            early, _ = prune_closed(early, (True,) * len(early.outvars), True)
        fixed = eval_jaxpr(early.jaxpr, early.consts, *consts)
        n = len(fixed) - (len(late.invars) - len(carry) - len(xs))
        results = []
        if late.outvars or late.effects:
            inner = Slots(len(fixed) - n, slots.carry)
            results = self.bind_all([*fixed[n:], *carry, *xs], _with(params, late, inner))
        kinds = {"fixed": fixed, "slice": xs, "stacked": results[kept:]}
        saved = [kinds[kind][i] for kind, i in sources]
        return results[:kept], saved, [kind != "fixed" for kind, _ in sources]

    def _with_saved(self, closed, slots, saved, along, operands, params):
        """Operands and parameters for a body that takes saved values first: constants, or slices."""
        n = len(saved)
        order = (*picked(range(n), along, False), *range(n, len(closed.invars)), *picked(range(n), along))
        inner = slots._replace(consts=slots.consts + along.count(False))
        values = [*saved, *operands]
        return [values[i] for i in order], _with(params, reordered(closed, order), inner)

    def hoist(self, late, operands, is_late, **params):
        parts, consts, carry, wait = _hoisted(params, is_late)
        if not parts.early.eqns and all(carry):
            return late.process(self, operands, params)
        known = _with(params, parts.early, Slots(consts.count(False), carry.count(False)))
        kept = parts.out_late.count(False)
        outs, saved, along = self._run_saving(parts.early, kept, picked(operands, wait, False), known)
        inner = Slots(sum(consts), sum(carry))
        with_saved = self._with_saved(parts.late, inner, saved, along, picked(operands, wait), params)
        return merged(parts.out_late, late.process(self, *with_saved), outs)

    def split(self, eqn, unknown_in, policy):
        parts, consts, carry, wait = _hoisted(eqn.params, unknown_in)
        known = _with(eqn.params, parts.early, Slots(consts.count(False), carry.count(False)))
        kept, found = parts.out_late.count(False), []

        def early(*operands):
            outs, saved, found[:] = self._run_saving(parts.early, kept, operands, known)
            return [*outs, *saved]

        invars, outvars = picked(eqn.invars, wait, False), picked(eqn.outvars, parts.out_late, False)
        info = eqn.params["jaxpr"].debug_info._replace(arg_names=None, result_paths=None)
        jaxpr, constants = trace_to_jaxpr(early, [v.aval for v in invars], info)
        names: dict[Any, Any] = dict(zip(jaxpr.invars, invars, strict=True))
        names.update((v, Literal(c, v.aval)) for v, c in zip(jaxpr.constvars, constants, strict=True))
        names.update(zip(jaxpr.outvars, outvars, strict=False))
        eqns = [renamed(e, names) for e in jaxpr.eqns]
        saved = [names.get(v, v) if type(v) is Var else v for v in jaxpr.outvars[kept:]]
        inner = Slots(sum(consts), sum(carry))
        waiting = picked(eqn.invars, wait)
        late_in, params = self._with_saved(parts.late, inner, saved, found, waiting, eqn.params)
        late_out = picked(eqn.outvars, parts.out_late)
        late = [eqn.replace(invars=late_in, outvars=late_out, params=params)] if late_out else []
        split = [_again(e, policy) if e.primitive is scan_p else (e, e, []) for e in eqns]
        again = [e for _, e, _ in split]
        kept = [v for *_, vs in split for v in vs]
        return EqnParts([e for e, _, _ in split], [*again, *late], late_out, kept)

    def transpose(self, cts, *operands, **params):
        closed, slots = _body(params)
        closed, used, kept = _pruned(closed, slots, tuple(type(ct) is not Zero for ct in cts))
        carry_cts, ys_cts = slots.results(cts)
        slots = Slots(sum(used[: slots.consts]), sum(kept))
        consts, _, xs = slots.operands(picked(operands, used))
        lin_consts, lin_xs = [is_linear(x) for x in consts], [is_linear(x) for x in xs]
        running = (True,) * (sum(lin_consts) + slots.carry)  # the constants' sums come first
        ys = (True,) * (len(closed.outvars) - slots.carry)
        lin = (*lin_consts, *(True,) * slots.carry, *lin_xs)
        wanted = (*running, *(False,) * sum(lin_xs))
        carry_cts = [instantiate(ct) for ct in picked(carry_cts, kept)]
        weak = tuple(typeof(ct).weak_type for ct in carry_cts)
        body = _accumulating(closed, tuple(lin_consts), slots.consts, weak)
        summed = body.out_avals[: sum(lin_consts)]
        ct_avals = (*summed, *map(typeof, carry_cts), *slots.results(closed.out_avals)[1])
        back, found = transpose_jaxpr(body, lin, (*running, *ys), wanted, tuple(a.to_ct_aval() for a in ct_avals))
        known, given = lin_consts.count(False), lin_xs.count(False)
        # known constants, known slices, cotangents -> known constants, cotangents, known slices
        order = (*range(known), *range(known + given, len(back.invars)), *range(known, known + given))
        sums = [zeros_like_aval(x.aval.to_ct_aval()) for x in picked(consts, lin_consts)]
        ys_cts = [ct for ct in ys_cts if type(ct) is not Zero]
        backwards = {**params, "reverse": not params["reverse"]}
        results = self.bind_all(
            [*picked(consts, lin_consts, False), *sums, *carry_cts, *ys_cts, *picked(xs, lin_xs, False)],
            _with(backwards, reordered(back, order), Slots(known, len(running))),
        )
        found_xs = merged(lin_xs, found[len(running) :], repeat(False))
        present = (*lin_consts, *(True,) * slots.carry, *found_xs)
        placed = iter(merged(present, results, repeat(None)))
        cts_in = [next(placed) if u else None for u in used]
        return [
            None if not is_linear(x) else Zero(x.aval.to_ct_aval()) if ct is None else ct
            for x, ct in zip(operands, cts_in, strict=True)
        ]

    def batch(self, axis, operands, dims, **params):
        closed, slots = _body(params)
        fronts = [None if d is None else 0 for d in dims]
        consts, _, xs = slots.operands(fronts)
        ys = (None,) * (len(closed.outvars) - slots.carry)

        def step(carry):
            carried = [0 if c else None for c in carry]
            made, found = batch_jaxpr(closed, axis, (*consts, *carried, *xs), (*carried, *ys))
            if any(found):
                found = tuple(None if d is None else 0 for d in found)
                made, _ = batch_jaxpr(closed, axis, (*consts, *carried, *xs), found)
            return (made, found), [d is not None for d in found[: slots.carry]]

        (made, found), carry = grown(step, [d is not None for d in slots.operands(dims)[1]])
        pairs = slots.operands(list(zip(operands, dims, strict=True)))
        moved = [x if d is None else move_axis(x, d, 0) for x, d in pairs[0]]
        held = zip(pairs[1], carry, strict=True)
        moved += [axis_to_front(x, d, axis.size) if c else x for (x, d), c in held]
        moved += [x if d is None else move_axis(x, d, 1) for x, d in pairs[2]]
        results = self.bind_all(moved, _with(params, made, slots))
        return results, [*found[: slots.carry], *(None if d is None else 1 for d in found[slots.carry :])]

    def names_axis(self, params):
        return names_in(params["jaxpr"])

    def dce(self, used, eqn):
        closed, slots = _body(eqn.params)
        pruned, used_in, carry = _pruned(closed, slots, tuple(used))
        inner = Slots(sum(used_in[: slots.consts]), sum(carry))
        new = eqn.replace(
            params=_with(eqn.params, pruned, inner),
            effects=pruned.effects,
            invars=picked(eqn.invars, used_in),
            outvars=picked(eqn.outvars, (*carry, *used[slots.carry :])),
        )
        return list(used_in), new

    def lift(self, eqn, fixed, lift):
        closed, slots = _body(eqn.params)
        if eqn.params["unroll"] != 1 or eqn.params["length"] < 2:  # XLA sees several steps at once, or none
            return eqn
        consts, carry, xs = slots.operands(fixed)
        closed, passed = lift(closed, (*consts, *(False,) * len(carry), *xs))
        params = _with(eqn.params, closed, slots._replace(consts=slots.consts + len(passed)))
        return eqn.replace(params=params, invars=[*passed, *eqn.invars])


scan_p = Scan()


def _zero(primal: Any) -> Zero:
    return Zero(typeof(primal).to_tangent_aval())


def _body(params: dict) -> tuple[ClosedJaxpr, Slots]:
    return params["jaxpr"], Slots(params["num_consts"], params["num_carry"])


def _hoisted(params: dict, late: Sequence[bool]) -> tuple[Any, tuple, tuple, tuple]:
    """Early and late parts of the body, and which constants, which of the carry, which inputs are late."""
    closed, slots = _body(params)
    consts, carry, xs = slots.operands(late)
    ys = (False,) * (len(closed.outvars) - slots.carry)

    def step(carry):
        parts = hoist_jaxpr(closed, (*consts, *carry, *xs), (*carry, *ys))
        return parts, parts.out_late[: slots.carry]

    parts, carry = grown(step, carry)
    return parts, consts, carry, (*consts, *carry, *xs)


def _with(params: dict, closed: ClosedJaxpr, slots: Slots) -> dict:
    return {**params, "jaxpr": closed, "num_consts": slots.consts, "num_carry": slots.carry}


def renamed(eqn: JaxprEqn, names: dict) -> JaxprEqn:
    """The equation with other variables, or literals, for its own."""
    swap = lambda v: names.get(v, v) if type(v) is Var else v  # noqa: E731
    return eqn.replace(invars=list(map(swap, eqn.invars)), outvars=list(map(swap, eqn.outvars)))


def _again(eqn: JaxprEqn, policy: Any) -> tuple[JaxprEqn, JaxprEqn, list[Var]]:
    """A scan that also returns what the policy lets be saved, a scan that starts from that, the saved."""
    closed, slots = _body(eqn.params)
    n, outs = len(closed.invars), len(closed.outvars)
    parts = split_jaxpr(closed, (False,) * n, policy, (True,) * outs)
    if not parts.saved:
        return eqn, eqn, []
    saved = [Var(stacked(a, eqn.params["length"])) for a in parts.known.out_avals[outs:]]
    early = eqn.replace(params=_with(eqn.params, parts.known, slots), outvars=[*eqn.outvars, *saved])
    late = parts.late.jaxpr
    given = dict(zip(parts.needed, late.invars[parts.saved :], strict=True))
    taken = [i for i in range(n) if i in given or slots.consts <= i < slots.consts + slots.carry]
    invars = [given[i] if i in given else Var(closed.invars[i].aval) for i in taken]
    body = ClosedJaxpr(late.replace(invars=[*invars, *late.invars[: parts.saved]]), parts.late.consts)
    inner = Slots(sum(i < slots.consts for i in taken), slots.carry)
    operands = [*(eqn.invars[i] for i in taken), *saved]
    return early, eqn.replace(params=_with(eqn.params, body, inner), invars=operands), saved


def _woven(grouped: Callable, nonzeros: Sequence[bool]) -> tuple[int, ...]:
    """Numbers that take (values, nonzero tangents) to the tangents of each group behind its values."""
    numbers = count(len(nonzeros))
    tangent = [next(numbers) if nz else None for nz in nonzeros]
    order: list[int] = []
    for group in grouped(range(len(nonzeros))):
        order += [*group, *(tangent[i] for i in group if nonzeros[i])]
    return tuple(order)


@cache.weak_cache
def _saving(closed: ClosedJaxpr, slots: Slots, results: int) -> tuple[ClosedJaxpr, ClosedJaxpr, tuple]:
    """What runs before the loop, the body, and where each saved value is: fixed, a slice, or stacked."""
    pruned, _ = prune_closed(closed, (True,) * len(closed.outvars), True)
    late_in = tuple(i >= slots.consts for i in range(len(pruned.invars)))
    parts = hoist_jaxpr(pruned, late_in, tuple(i < results for i in range(len(pruned.outvars))))
    late = parts.late.jaxpr
    slices = {v: i for i, v in enumerate(late.invars[parts.saved + slots.carry :])}
    saved, fixed = iter(late.outvars[results:]), count()
    kept, sources = [], []
    for is_late in parts.out_late[results:]:
        v = next(saved) if is_late else None
        if v is None:
            sources.append(("fixed", next(fixed)))
        elif v in slices:
            sources.append(("slice", slices[v]))
        else:
            sources.append(("stacked", len(kept)))
            kept.append(v)
    body = late.replace(outvars=[*late.outvars[:results], *kept])
    return parts.early, ClosedJaxpr(body, parts.late.consts), tuple(sources)


@cache.weak_cache
def _pruned(closed: ClosedJaxpr, slots: Slots, used: tuple[bool, ...]) -> tuple[ClosedJaxpr, tuple, tuple]:
    """The body of the results wanted, the inputs that it reads, and the carry that stays."""
    carry, ys = slots.results(used)
    xs = (False,) * (len(closed.invars) - slots.consts - slots.carry)

    def step(carry):
        pruned, used_in = prune_closed(closed, (*carry, *ys), ((False,) * slots.consts + carry + xs))
        return (pruned, used_in), slots.operands(used_in)[1]

    (pruned, used_in), carry = grown(step, carry)
    return pruned, used_in, carry


@cache.weak_cache
def _accumulating(closed: ClosedJaxpr, linear: tuple[bool, ...], first: int, weak: tuple[bool, ...]) -> ClosedJaxpr:
    """The body with its linear constants as first results: transposing it adds to their cotangents.

    Its carry, which begins at input `first`, is as weakly typed as the cotangents that go in.
    """
    jaxpr = closed.jaxpr
    names = {}
    for v, is_weak in zip(jaxpr.invars[first:], weak, strict=False):
        if isinstance(v.aval, ShapedArray) and v.aval.weak_type != is_weak:
            names[v] = Var(v.aval.update(weak_type=is_weak))
    invars = [names.get(v, v) for v in jaxpr.invars]
    outvars = [names.get(v, v) if type(v) is Var else v for v in jaxpr.outvars]
    eqns = [renamed(eqn, names) for eqn in jaxpr.eqns] if names else jaxpr.eqns
    sums = picked(invars[: len(linear)], linear)
    return ClosedJaxpr(jaxpr.replace(invars=invars, eqns=eqns, outvars=[*sums, *outvars]), closed.consts)


# ---- lowering ---------------------------------------------------------------------------------------


class Loop:
    """Writes a scan as a while loop over blocks of `unroll` steps, and the steps that are left behind it."""

    def __init__(self, e: Any, closed: ClosedJaxpr, slots: Slots, length: int, reverse: bool, unroll: int):
        self.e, self.closed, self.slots = e, closed, slots
        self.length, self.reverse, self.unroll = length, reverse, unroll
        self.trips, self.rest = divmod(length, unroll) if unroll else (0, length)
        if unroll > 1 and self.trips == 1 and not self.rest:
            self.trips, self.rest = 0, length
        self.index = ShapedArray((), dtypes.default_int_dtype())

    def lower(self, ins: Sequence, outs: Sequence, operands: Sequence[str]) -> list[str]:
        e, whole = self.e, self.length - self.rest
        consts, carry, xs = self.slots.operands(operands)
        x_avals, y_avals = self.slots.operands(ins)[2], self.slots.results(outs)[1]
        pieces = ((0, self.rest), (self.rest, whole)) if self.reverse else ((0, whole), (whole, self.rest))
        parts = [[self._part(x, a, *piece) for piece in pieces] for x, a in zip(xs, x_avals, strict=True)]
        main = int(self.reverse)
        made = [[], []]
        if self.trips:
            carry, made[main] = self._loop(consts, carry, [p[main] for p in parts], y_avals)
        if self.rest:
            carry, made[1 - main] = self._steps(consts, carry, [p[1 - main] for p in parts], self.rest)
        if not self.trips or not self.rest:
            return [*carry, *(made[0] or made[1] or map(e.zeros, y_avals))]
        sized = [[a.update(shape=(n, *a.shape[1:])) for _, n in pieces] for a in y_avals]
        return [*carry, *map(e.concatenate, zip(*made, strict=True), sized, y_avals, repeat(0))]

    def _part(self, x: str, aval: ShapedArray, start: int, size: int) -> str:
        """`size` slices of an operand from `start` on."""
        if size in (0, self.length):
            return x
        out, zeros = aval.update(shape=(size, *aval.shape[1:])), (0,) * (aval.ndim - 1)
        return self.e.slice(x, aval, out, (start, *zeros), (start + size, *aval.shape[1:]))

    def _loop(self, consts, carry, blocks, y_avals):
        e, index, body = self.e, self.index, self.closed.jaxpr
        const_avals, carry_avals, x_avals = self.slots.operands(body.in_avals)
        flat_xs = [stacked(a, self.trips * self.unroll) for a in x_avals]
        flat_ys = [a.update(shape=(self.trips * self.unroll, *a.shape[1:])) for a in y_avals]
        x_types, y_types = self._blocked(flat_xs), self._blocked(flat_ys)
        if self.unroll > 1:
            blocks = list(map(e.reshape, blocks, flat_xs, x_types))
        ordered = ordered_in(body)
        first, n = len(ordered), len(ordered) + len(blocks) + len(consts)
        empty = list(map(e.zeros, y_types))
        inits = [*(e.tokens[o] for o in ordered), *blocks, *consts, e.constant(0, index), *carry, *empty]
        avals = [*[token_type] * first, *x_types, *const_avals, index, *carry_avals, *y_types]

        def cond(*names):
            return [e.compare("LT", names[n], e.constant(self.trips, index), index)]

        def step(*names):
            e.tokens.update(zip(ordered, names, strict=False))
            i = at = names[n]
            if self.reverse:
                left = e.binary("subtract", e.constant(self.trips, index), i, index)
                at = e.binary("subtract", left, e.constant(1, index), index)
            rows = [self._row_at(x, at, t) for x, t in zip(names[first:], x_types, strict=False)]
            carry, stacks = self.slots.results(names[n + 1 :])
            run = self._call if self.unroll == 1 else self._steps
            carry, ys = run(names[first + len(rows) : n], carry, rows)
            stacks = [self._put(s, y, at, t) for s, y, t in zip(stacks, ys, y_types, strict=True)]
            i = e.binary("add", i, e.constant(1, index), index)
            return [*(e.tokens[o] for o in ordered), *names[first:n], i, *carry, *stacks]

        results = e.while_(inits, avals, cond, step)
        e.tokens.update(zip(ordered, results, strict=False))
        carry, ys = self.slots.results(results[n + 1 :])
        return carry, list(map(e.reshape, ys, y_types, flat_ys)) if self.unroll > 1 else ys

    def _blocked(self, avals: Sequence[ShapedArray]) -> list[ShapedArray]:
        """Types of stacks of slices, or, if unrolled, of blocks of them."""
        lead = (self.trips,) if self.unroll == 1 else (self.trips, self.unroll)
        return [a.update(shape=(*lead, *a.shape[1:])) for a in avals]

    def _call(self, consts, carry, xs):
        return self.slots.results(self.e.call_jaxpr(self.closed, "closed_call", [*consts, *carry, *xs]))

    def _steps(self, consts, carry, blocks, size=None):
        """Steps one after the other over blocks of slices."""
        size = size or self.unroll
        x_avals = self.slots.operands(self.closed.in_avals)[2]
        made: list[Any] = [None] * size
        for i in reversed(range(size)) if self.reverse else range(size):
            xs = [self._row(x, a, i, size) for x, a in zip(blocks, x_avals, strict=True)]
            carry, made[i] = self._call(consts, carry, xs)
        y_avals = self.slots.results(self.closed.out_avals)[1]
        return carry, [self._joined(ys, a) for ys, a in zip(zip(*made, strict=True), y_avals, strict=True)]

    def _row(self, x: str, aval: ShapedArray, i: int, size: int) -> str:
        one, zeros = stacked(aval, 1), (0,) * aval.ndim
        x = self.e.slice(x, stacked(aval, size), one, (i, *zeros), (i + 1, *aval.shape))
        return self.e.reshape(x, one, aval)

    def _joined(self, ys: Sequence[str], aval: ShapedArray) -> str:
        one = stacked(aval, 1)
        ys = [self.e.broadcast_in_dim(y, aval, one, range(1, one.ndim)) for y in ys]
        return ys[0] if len(ys) == 1 else self.e.concatenate(ys, [one] * len(ys), stacked(aval, len(ys)), 0)

    def _row_at(self, x: str, i: str, aval: ShapedArray) -> str:
        """Calls a function that takes the slice numbered `i`."""
        e, index, out = self.e, self.index, aval.update(shape=aval.shape[1:])
        one = stacked(out, 1)

        def take(x, i):
            starts = [i, *(e.constant(0, index) for _ in out.shape)]
            return [e.reshape(e.dynamic_slice(x, starts, aval, [index] * aval.ndim, one), one, out)]

        return e.call_shared("dynamic_index_in_dim", "scan", [x, i], [aval, index], [out], take)[0]

    def _put(self, x: str, y: str, i: str, aval: ShapedArray) -> str:
        """Calls a function that writes the slice numbered `i`."""
        e, index, row = self.e, self.index, aval.update(shape=aval.shape[1:])
        one = stacked(row, 1)

        def put(x, y, i):
            y = e.broadcast_in_dim(y, row, one, range(1, one.ndim))
            starts = [i, *(e.constant(0, index) for _ in row.shape)]
            return [e.dynamic_update_slice(x, y, starts, aval, one, [index] * aval.ndim)]

        ins = [aval, row, index]
        return e.call_shared("dynamic_update_index_in_dim", "scan", [x, y, i], ins, [aval], put)[0]


# ---- the public function ----------------------------------------------------------------------------


@source.boundary
def scan(
    f: Callable,
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Any, Any]:
    """Runs `f`, (carry, x) -> (carry, y), over the leading axis of `xs`; the last carry and all y, stacked.

    `length` is needed only if there are no `xs`; `reverse` starts at the end; `unroll` steps are made one
    trip of the loop. Raises TypeError if the carry changes its type, ValueError for lengths that differ.
    """
    if not callable(f):
        raise TypeError(f"lax.scan: f argument should be a callable. Got {f!r}.")
    leaves, treedef = tree.flatten((init, xs))
    init_tree, xs_tree = treedef.children()
    carry, slices = Slots(0, init_tree.num_leaves).results(leaves)
    avals = [typeof(x) for x in leaves]
    length = _length(slices, length)
    if unroll is True or unroll is False:
        unroll = max(length, 1) if unroll else 1
    if unroll < 0:
        raise ValueError(f"scan: `unroll` must be a `bool` or a non-negative `int`. Got {unroll}.")
    if _disable_jit.value:
        return _python_loop(f, init, xs_tree, slices, length, reverse)
    rows = [a.update(shape=a.shape[1:]) for a in avals[len(carry) :]]
    body, carry = trace_loop(f, carry, rows, treedef, "scan", init_tree, _carry_tree)
    return _bind(body, carry, slices, length=length, reverse=bool(reverse), unroll=int(unroll))


def _length(slices: Sequence, length: int | None) -> int:
    if length is not None:
        if isinstance(length, Tracer):
            raise errors.ConcretizationTypeError(
                length,
                "The `length` argument to `scan` expects a concrete `int` value: for a computed "
                "length, use `while_loop` or `fori_loop`.",
            )
        length = int(length)
    for x in slices:
        if not typeof(x).shape:
            kind = ValueError if type(x) in (bool, int, float, complex) else IndexError
            raise kind(f"scan got value with no leading axis to scan over: {x}.")
    sizes = list(dict.fromkeys(typeof(x).shape[0] for x in slices))
    if length is not None and any(n != length for n in sizes):
        raise ValueError(f"scan got `length` argument of {length} which disagrees with leading axis sizes {sizes}.")
    if len(sizes) > 1:
        raise ValueError(f"scan got values with different leading axis sizes: {', '.join(map(str, sizes))}.")
    if length is None and not sizes:
        raise ValueError("scan got no values to scan over and `length` not provided.")
    return sizes[0] if sizes else length


def _python_loop(f, init, xs_tree, slices, length, reverse):
    if not length:
        raise ValueError("zero-length scan is not supported in disable_jit() mode because the output type is unknown.")
    carry, made = init, [None] * length
    for i in reversed(range(length)) if reverse else range(length):
        x = xs_tree.unflatten([index_in_dim(s, i, keepdims=False) for s in slices])
        carry, made[i] = f(carry, x)
    return carry, tree.tree_map(lambda *ys: concatenate([expand_dims(y, (0,)) for y in ys], 0), *made)


def _carry_tree(body: Body) -> Any:
    pair = body.out_tree.children()
    if len(pair) != 2:
        raise TypeError(f"scan body output must be a pair, got {body.out_tree.unflatten(body.closed.out_avals)}.")
    return pair[0]


def _bind(body: Body, carry: Sequence, slices: Sequence, **loop: Any) -> Any:
    """Binds the loop without what it only hands on: carry that stays is a constant, a slice is a result."""
    closed, stays, copies = _forwarded(body.jaxpr, Slots(len(body.captured), len(carry)))
    moving, still = stays.partition(carry)
    consts = [*still, *body.captured]
    results = scan_p.bind(
        *consts, *moving, *slices, jaxpr=closed, num_consts=len(consts), num_carry=len(moving), **loop
    )
    carried, ys = Slots(0, len(moving)).results(results)
    rest = iter(ys)
    ys = [next(rest) if i is None else _as_result(slices[i]) for i in copies]
    return body.out_tree.unflatten([*stays.merge(carried, still), *ys])


def _as_result(x: Any) -> Any:
    return operand(x) if isinstance(x, np.ndarray) else x


@cache.weak_cache
def _forwarded(jaxpr: Jaxpr, slots: Slots) -> tuple[ClosedJaxpr, Mask, tuple]:
    """The body without carry and results that are inputs; which carry stays, which slice each result is."""
    consts, carry, xs = slots.operands(jaxpr.invars)
    carry_out, ys = slots.results(jaxpr.outvars)
    stays = Mask(a is b for a, b in zip(carry, carry_out, strict=True))
    slices = {v: i for i, v in enumerate(xs)}
    copies = tuple(slices.get(v) for v in ys)
    moving, still = stays.partition(carry)
    # (consts, carry, xs) -> (still carry, consts, moving carry, xs)
    invars = [*still, *consts, *moving, *xs]
    computed = Mask((*~stays, *(i is None for i in copies)))
    info = jaxpr.debug_info
    names = dict(zip(jaxpr.invars, info.arg_names or (), strict=False))
    info = info._replace(
        arg_names=tuple(names.get(v, "") for v in invars), result_paths=tuple(computed.marked(info.result_paths))
    )
    body = jaxpr.replace(invars=invars, outvars=computed.marked(jaxpr.outvars), debug_info=info)
    return ClosedJaxpr(body), stays, copies
