"""Lowers `scan` to a while loop over blocks of steps, and the remaining steps."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from minijax.base import dtypes
from minijax.calls.call import closed_call_p
from minijax.dispatch.jitted import jitted
from minijax.higher.while_loop import Loop, while_p
from minijax.ir import state
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, Var
from minijax.ir.trace import trace_to_jaxpr
from minijax.ir.types import Aval, typeof
from minijax.primitives.counting import empty_of
from minijax.primitives.dynamic_slice import dynamic_index_in_dim, dynamic_update_index_in_dim
from minijax.primitives.elementwise import add, lt, sub
from minijax.primitives.families import scalar_like
from minijax.primitives.moving import expand_dims, reshape
from minijax.primitives.structural import concatenate, index_in_dim, slice_in_dim


class Slots(NamedTuple):
    """The grouping of operands into (constants, carry, slices), and of results into (carry, stacked results)."""

    consts: int
    carry: int

    def operands(self, items: Sequence) -> tuple[Sequence, Sequence, Sequence]:
        n = self.consts + self.carry
        return items[: self.consts], items[self.consts : n], items[n:]

    def results(self, items: Sequence) -> tuple[Sequence, Sequence]:
        return items[: self.carry], items[self.carry :]

    def pick(self, mask: Sequence[bool]) -> "Slots":
        """The grouping of the marked operands."""
        consts, carry, _ = self.operands(mask)
        return Slots(sum(consts), sum(carry))


def _with_leading_axes(aval: Aval, lead: tuple[int, ...]) -> Aval:
    for n in reversed(lead):
        aval = aval.with_axis(0, n)
    return aval


def resized(aval: Aval, *sizes: int) -> Aval:
    """The type with its leading axis replaced by axes of `sizes`."""
    return _with_leading_axes(aval.without_axis(0), sizes)


def unrolled(body: ClosedJaxpr, slots: Slots, length: int, reverse: bool, unroll: int) -> ClosedJaxpr:
    """The jaxpr that a scan is lowered to: a loop over blocks of `unroll` steps, and then the remaining steps."""
    types = tuple(body.in_avals), tuple(body.out_avals), body.jaxpr.effects
    skeleton, placeholder = _skeleton(types, slots, length, reverse, unroll)
    return _with_step(skeleton, placeholder, body)


@state.traced_cache
def _skeleton(types: tuple, slots: Slots, length: int, reverse: bool, unroll: int) -> tuple[ClosedJaxpr, ClosedJaxpr]:
    """`unrolled` of a placeholder with the types and effects of a body, and the placeholder."""
    in_avals, out_avals, effects = types
    results = [Var(a) for a in out_avals]
    body = ClosedJaxpr(Jaxpr(results, [Var(a) for a in in_avals], results, [], effects), [None] * len(results))
    trips, rest = _blocks(length, unroll)
    order = slice(None, None, -1 if reverse else 1)  # of the looped and the remaining steps in memory
    first_size = (length - rest, rest)[order][0]

    def run(*operands):
        consts, carry, xs = slots.operands(operands)
        pieces = [_split_at(x, first_size)[order] for x in xs]
        stacks: list[Sequence] = []
        if trips:
            looped = [x for x, _ in pieces]
            carry, ys = _loop(body, slots, (consts, carry, looped), trips, reverse, unroll)
            stacks.append(ys)
        if rest:
            remaining = [x for _, x in pieces]
            carry, ys = _steps(body, slots, (consts, carry, remaining), rest, reverse)
            stacks.append(ys)
        if not length:
            stacks.append([empty_of(a.with_axis(0, 0)) for a in slots.results(out_avals)[1]])
        return [*carry, *(_concatenated(parts[order]) for parts in zip(*stacks, strict=True))]

    consts, carry, slices = slots.operands(in_avals)
    avals = [*consts, *carry, *(a.with_axis(0, length) for a in slices)]
    return ClosedJaxpr(*trace_to_jaxpr(run, avals, body.jaxpr.debug_info)), body


def _with_step(closed: ClosedJaxpr, placeholder: ClosedJaxpr, body: ClosedJaxpr) -> ClosedJaxpr:
    """The jaxpr with `body` in the place of `placeholder`, in loops too, and with the body's name."""
    eqns = []
    for eqn in closed.jaxpr.eqns:
        if eqn.primitive is while_p:
            loop = {name: _with_step(eqn.params[name], placeholder, body) for name in ("cond_jaxpr", "body_jaxpr")}
            eqn = eqn.replace(params={**eqn.params, **loop})
        elif eqn.primitive is closed_call_p and eqn.params["call_jaxpr"] is placeholder:
            eqn = eqn.replace(params={**eqn.params, "call_jaxpr": body})
        eqns.append(eqn)
    info = body.debug_info._replace(arg_names=None, result_paths=None)
    return ClosedJaxpr(closed.jaxpr.replace(eqns=eqns, debug_info=info), closed.consts)


def _blocks(length: int, unroll: int) -> tuple[int, int]:
    """The number of blocks of `unroll` steps in the loop, and of remaining steps. A single block is not looped over."""
    trips, rest = divmod(length, unroll) if unroll else (0, length)
    return (0, length) if unroll > 1 and trips == 1 and not rest else (trips, rest)


def _split_at(x: Any, at: int) -> tuple[Any, Any]:
    size = typeof(x).shape[0]
    return (x, x) if at in (0, size) else (slice_in_dim(x, 0, at), slice_in_dim(x, at, size))


def _concatenated(parts: Sequence) -> Any:
    return concatenate(parts, 0) if len(parts) > 1 else parts[0]


def _loop(body: ClosedJaxpr, slots: Slots, operands: tuple, trips: int, reverse: bool, unroll: int) -> tuple:
    """Loops over `trips` blocks of `unroll` steps. Returns the carry and the stacked results."""
    consts, carry, xs = operands
    lead = (trips,) if unroll == 1 else (trips, unroll)
    if unroll > 1:
        xs = [reshape(x, (*lead, *typeof(x).shape[1:])) for x in xs]
    ys = [empty_of(_with_leading_axes(a, lead)) for a in slots.results(body.out_avals)[1]]
    fixed, n = [*xs, *consts], len(xs)
    start = [dtypes.default_int_dtype().type(0), *carry, *ys]

    def test(i, *_):
        return [lt(i, scalar_like(i, trips))]

    def step(*names):
        xs, consts, (i, *names) = names[:n], names[n : len(fixed)], names[len(fixed) :]
        one = i.dtype.type(1)
        at = sub(sub(scalar_like(i, trips), i), one) if reverse else i
        carry, stacks = slots.results(names)
        rows = [_slice_at(x, at) for x in xs]
        if unroll == 1:
            carry, ys = slots.results(closed_call_p.bind(*consts, *carry, *rows, call_jaxpr=body))
        else:
            carry, ys = _steps(body, slots, (consts, carry, rows), unroll, reverse)
        stacks = [_with_slice(s, y, at) for s, y in zip(stacks, ys, strict=True)]
        return [add(i, one), *carry, *stacks]

    info, avals = body.jaxpr.debug_info, list(map(typeof, start))
    cond = ClosedJaxpr(*trace_to_jaxpr(test, avals, info))
    block = ClosedJaxpr(*trace_to_jaxpr(step, [*map(typeof, fixed), *avals], info))
    results = while_p.bind(*fixed, *start, **Loop(0, cond, len(fixed), block)._asdict())
    carry, ys = slots.results(results[1:])
    return carry, [reshape(y, (trips * unroll, *typeof(y).shape[2:])) for y in ys] if unroll > 1 else ys


def _steps(body: ClosedJaxpr, slots: Slots, operands: tuple, count: int, reverse: bool) -> tuple:
    """Unrolls `count` steps. Returns the carry and the stacked results."""
    consts, carry, xs = operands
    rows: list[Any] = [None] * count
    for i in reversed(range(count)) if reverse else range(count):
        x = [index_in_dim(x, i, keepdims=False) for x in xs]
        carry, rows[i] = slots.results(closed_call_p.bind(*consts, *carry, *x, call_jaxpr=body))
    return carry, [_stacked(ys) for ys in zip(*rows, strict=True)]


def _stacked(rows: Sequence) -> Any:
    """The rows as one array, put together 16 at a time: TPUs take long for more."""
    parts = [expand_dims(row, (0,)) for row in rows]
    while len(parts) > 1:
        parts = [concatenate(parts[i : i + 16], 0) for i in range(0, len(parts), 16)]
    return parts[0]


@jitted("dynamic_index_in_dim")
def _slice_at(x: Any, i: Any) -> Any:
    return dynamic_index_in_dim(x, i, keepdims=False, allow_negative_indices=False)


@jitted("dynamic_update_index_in_dim")
def _with_slice(x: Any, y: Any, i: Any) -> Any:
    return dynamic_update_index_in_dim(x, y, i, 0, allow_negative_indices=False)
