"""The text of a `scan`: a while loop over blocks of steps, and the steps that are left."""

from collections.abc import Sequence
from itertools import repeat
from typing import Any, NamedTuple

from minijax.base import dtypes
from minijax.hlo.emitter import ordered_in
from minijax.ir.jaxpr import ClosedJaxpr
from minijax.ir.types import ShapedArray, token_type


class Slots(NamedTuple):
    """How operands are grouped (constants, carry, slices), and results (carry, stacked ones)."""

    consts: int
    carry: int

    def operands(self, items: Sequence) -> tuple[Sequence, Sequence, Sequence]:
        n = self.consts + self.carry
        return items[: self.consts], items[self.consts : n], items[n:]

    def results(self, items: Sequence) -> tuple[Sequence, Sequence]:
        return items[: self.carry], items[self.carry :]

    def pick(self, mask: Sequence[bool]) -> "Slots":
        """How those of the operands are grouped that are marked."""
        consts, carry, _ = self.operands(mask)
        return Slots(sum(consts), sum(carry))


def stacked(aval: ShapedArray, length: int) -> ShapedArray:
    return aval.update(shape=(length, *aval.shape))


def resized(aval: ShapedArray, *sizes: int) -> ShapedArray:
    """The type with other sizes in place of its leading one."""
    return aval.update(shape=(*sizes, *aval.shape[1:]))


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
        main = int(self.reverse)  # the piece that the loop runs over
        ys = [[], []]
        if self.trips:
            carry, ys[main] = self._loop(consts, carry, [p[main] for p in parts], y_avals)
        if self.rest:
            carry, ys[1 - main] = self._steps(consts, carry, [p[1 - main] for p in parts], self.rest)
        if not self.trips or not self.rest:
            return [*carry, *(ys[0] or ys[1] or map(e.zeros, y_avals))]
        sized = [[resized(a, n) for _, n in pieces] for a in y_avals]
        return [*carry, *map(e.concatenate, zip(*ys, strict=True), sized, y_avals, repeat(0))]

    def _part(self, x: str, aval: ShapedArray, start: int, size: int) -> str:
        """`size` slices of an operand from `start` on."""
        if size in (0, self.length):
            return x
        zeros = (0,) * (aval.ndim - 1)
        return self.e.slice(x, aval, resized(aval, size), (start, *zeros), (start + size, *aval.shape[1:]))

    def _loop(
        self, consts: Sequence[str], carry: Sequence[str], blocks: Sequence[str], y_avals: Sequence[ShapedArray]
    ) -> tuple[Sequence[str], Sequence[str]]:
        """The carry after the trips, and the stacked results."""
        e, index, body = self.e, self.index, self.closed.jaxpr
        const_avals, carry_avals, x_avals = self.slots.operands(body.in_avals)
        flat_xs = [stacked(a, self.trips * self.unroll) for a in x_avals]
        flat_ys = [resized(a, self.trips * self.unroll) for a in y_avals]
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
        return [resized(a, *lead) for a in avals]

    def _call(self, consts, carry, xs):
        """One step: its carry and its results."""
        return self.slots.results(self.e.call_jaxpr(self.closed, "closed_call", [*consts, *carry, *xs]))

    def _steps(self, consts, carry, blocks, size=None):
        """Steps one after the other over blocks of slices."""
        size = size or self.unroll
        x_avals = self.slots.operands(self.closed.in_avals)[2]
        rows: list[Any] = [None] * size
        for i in reversed(range(size)) if self.reverse else range(size):
            xs = [self._row(x, a, i, size) for x, a in zip(blocks, x_avals, strict=True)]
            carry, rows[i] = self._call(consts, carry, xs)
        y_avals = self.slots.results(self.closed.out_avals)[1]
        return carry, [self._joined(ys, a) for ys, a in zip(zip(*rows, strict=True), y_avals, strict=True)]

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
        e, index, out = self.e, self.index, resized(aval)
        one = stacked(out, 1)

        def take(x, i):
            starts = [i, *(e.constant(0, index) for _ in out.shape)]
            return [e.reshape(e.dynamic_slice(x, starts, aval, [index] * aval.ndim, one), one, out)]

        return e.call_shared("dynamic_index_in_dim", "scan", [x, i], [aval, index], [out], take)[0]

    def _put(self, x: str, y: str, i: str, aval: ShapedArray) -> str:
        """Calls a function that writes the slice numbered `i`."""
        e, index, row = self.e, self.index, resized(aval)
        one = stacked(row, 1)

        def put(x, y, i):
            y = e.broadcast_in_dim(y, row, one, range(1, one.ndim))
            starts = [i, *(e.constant(0, index) for _ in row.shape)]
            return [e.dynamic_update_slice(x, y, starts, aval, one, [index] * aval.ndim)]

        ins = [aval, row, index]
        return e.call_shared("dynamic_update_index_in_dim", "scan", [x, y, i], ins, [aval], put)[0]
