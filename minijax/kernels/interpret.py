"""Runs a kernel as operations of XLA: a loop over the steps of the grid, which reads and writes blocks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.base import cache, dtypes
from minijax.higher.fori_loop import fori_loop
from minijax.higher.while_loop import Loop, while_p
from minijax.ir import state
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, Literal
from minijax.ir.refs import Ref
from minijax.ir.trace import close_over, trace_to_jaxpr
from minijax.ir.types import ShapedArray, typeof
from minijax.kernels.blocks import Blocked, BoundedSlice, Element, Indirect
from minijax.kernels.expanded import Step, evaluate
from minijax.kernels.grid import dynamic_grid_dim
from minijax.kernels.mapping import BlockMapping, GridMapping
from minijax.kernels.memory import SemaphoreTy
from minijax.kernels.uninitialized import uninitialized, uninitialized_element
from minijax.kernels.writes import written
from minijax.primitives.convert import convert
from minijax.primitives.counting import broadcasted_iota
from minijax.primitives.dynamic_slice import dynamic_slice, dynamic_update_slice
from minijax.primitives.elementwise import add, div, lt, mul, rem, select
from minijax.primitives.moving import as_array_or_constant, broadcast_to_shape, reshape
from minijax.primitives.structural import pad, slice as lax_slice
from minijax.transforms.prune import prune_closed

_KEEPS_SIGN = frozenset("add mul div rem max min program_id num_programs convert_element_type".split())


def program(ins: tuple, params: dict, differentiated: bool = False) -> ClosedJaxpr:
    """The call as a jaxpr of ordinary operations; one to be differentiated keeps what its steps read."""
    return _program(params["jaxpr"], ins, params["grid_mapping"], tuple(params["input_output_aliases"]), differentiated)


@state.traced_cache
def _program(kernel: Jaxpr, ins: tuple, mapping: GridMapping, aliases: tuple, differentiated: bool) -> ClosedJaxpr:
    for block in mapping.block_mappings:
        if isinstance(block.array_aval.dtype, SemaphoreTy):
            raise NotImplementedError(
                f"pallas_call: {block.origin} are semaphores, which outlive an interpreted kernel as scratch only"
            )
    call = _Interpreted(kernel, mapping, dict(aliases), differentiated)
    info = DebugInfo("pallas_call", kernel.debug_info.func_src_info)
    jaxpr, consts = trace_to_jaxpr(call, ins, info)
    closed = close_over(jaxpr, consts)[0]
    return prune_closed(closed, [True] * len(closed.jaxpr.outvars), True)[0]


class _Interpreted:
    """A call of a kernel, as a function of (sizes of dynamic axes, scalars, inputs)."""

    def __init__(self, jaxpr: Jaxpr, mapping: GridMapping, aliases: dict[int, int], differentiated: bool):
        self.jaxpr, self.mapping, self.differentiated = jaxpr, mapping, differentiated
        self.first_input, self.first_output = (
            mapping.num_index_operands,
            mapping.num_index_operands + mapping.num_inputs,
        )
        self.first_scratch = self.first_output + mapping.num_outputs
        # A result that begins as an operand is one array with it: input -> output, by number of the reference.
        self.shared = {i: self.first_output + o for i, o in aliases.items()}
        writes = written(jaxpr)
        self.changes = [
            i not in self.shared and (i >= self.first_output or i in writes) for i in range(len(jaxpr.invars))
        ]

    def __call__(self, *operands: Any) -> list:
        mapping = self.mapping
        dynamic, values = operands[: mapping.num_dynamic_grid_bounds], operands[mapping.num_dynamic_grid_bounds :]
        bounds = iter(dynamic)
        grid = [next(bounds) if n is dynamic_grid_dim else n for n in mapping.grid]
        arrays = self._arrays(values)
        if any(isinstance(n, int) and n <= 0 for n in grid):
            last = arrays
        elif all(isinstance(n, int) and n == 1 for n in grid):
            last = self._merged(arrays, self._stepped(grid, [np.int32(0)] * len(grid), arrays))
        else:
            last = self._looped(grid, arrays)
        outs = last[self.first_output : self.first_scratch]
        return [_cut(x, b) for x, b in zip(outs, mapping.block_mappings_output, strict=True)]

    def _arrays(self, values: Sequence) -> list:
        """The arrays that the references are blocks of, as they are before the first step."""
        n = self.first_input
        inputs = [*values[:n]]
        for x, block in zip(values[n:], self.mapping.in_mappings, strict=True):
            inputs.append(_padded(x, block, self.differentiated))
        begins = {o: i for i, o in self.shared.items()}
        outputs = []
        for k, block in enumerate(self.mapping.block_mappings_output, self.first_output):
            if k not in begins:
                outputs.append(uninitialized(_padded_shape(block), block.array_aval.dtype))
                continue
            begin = inputs[begins[k]]
            if _padded_shape(block) != begin.shape or _lows(block) != _lows(self.mapping.in_mappings[begins[k] - n]):
                raise NotImplementedError(
                    "pallas_call: an operand and the result that begins as it must be padded alike, if they are padded"
                )
            outputs.append(begin)
        scratch = [uninitialized(a.shape, a.dtype) for a in self.mapping.scratch_avals]
        return [*inputs, *outputs, *scratch]

    def _looped(self, grid: list, arrays: list) -> list:
        """The arrays after all steps. Those that no step changes stay outside of the loop."""
        count = math.prod(n for n in grid if isinstance(n, int))
        total = np.int32(count) if count < 2**31 else np.int64(count)
        for n in grid:
            if not isinstance(n, int):
                total = mul(total, convert(n, np.dtype(np.int32)))
        changed = [x for x, c in zip(arrays, self.changes, strict=True) if c]

        def body(carry):
            i, *now = carry
            ids = _numbers_of(i, grid)
            return [add(i, i.dtype.type(1)), *self._stepped(grid, ids, self._merged(arrays, now))]

        begin = [total.dtype.type(0), *changed]
        if self.differentiated and isinstance(total, np.integer):
            _, *last = fori_loop(0, int(total), lambda _, carry: body(carry), begin)
        else:
            _, *last = _while_below(total, body, begin)
        return self._merged(arrays, last)

    def _merged(self, arrays: Sequence, changed: Sequence) -> list:
        """All arrays: those that steps change, the others, and for a shared one that of the result."""
        rest = iter(changed)
        merged = [next(rest) if c else x for x, c in zip(arrays, self.changes, strict=True)]
        for i, o in self.shared.items():
            merged[i] = merged[o]
        return merged

    def _stepped(self, grid: list, ids: Sequence, arrays: list) -> list:
        """The arrays that steps change, after the step with these numbers."""
        mapping = self.mapping
        scalars = [Ref(x) for x in arrays[: self.first_input]]
        step = self._step(grid, ids)
        windows = [_window(b, ids, scalars, step) for b in mapping.block_mappings]
        blocks = arrays[self.first_input : self.first_scratch]
        refs = [*scalars, *[Ref(_read(x, w)) for x, w in zip(blocks, windows, strict=True)]]
        for i, o in self.shared.items():
            if _same_window(mapping.block_mappings[i - self.first_input], mapping.block_mappings[o - self.first_input]):
                refs[i] = refs[o]
        refs += [Ref(x) for x in arrays[self.first_scratch :]]
        evaluate(self.jaxpr, [], refs, step)
        whole = [None] * len(arrays)
        whole[self.first_input : self.first_scratch] = windows
        return [
            ref._value if w is None else _written(x, w, ref._value)
            for ref, x, w, changes in zip(refs, arrays, whole, self.changes, strict=True)
            if changes
        ]

    def _step(self, grid: list, ids: Sequence) -> Step:
        """The numbers and sizes of the axes that the kernel sees."""
        seen = [i for i in range(len(grid)) if i not in self.mapping.vmapped_dims]
        sizes = [np.int32(grid[i]) if isinstance(grid[i], int) else grid[i] for i in seen]
        return Step(tuple([ids[i] for i in seen]), tuple(sizes), self.mapping.grid_names or ())


def _while_below(total: Any, body: Callable, begin: list) -> list:
    """Repeats a body while the first value of its carry is below a bound."""
    avals = [typeof(x) for x in begin]
    info = DebugInfo("while_loop", "pallas_call")
    test, of_test = close_over(*trace_to_jaxpr(lambda i, *_: [lt(i, total)], avals, info))
    repeated, of_body = close_over(*trace_to_jaxpr(lambda *carry: body(carry), avals, info))
    loop = Loop(len(of_test), test, len(of_body), repeated)
    return while_p.bind_all([*of_test, *of_body, *begin], loop._asdict())


def _numbers_of(i: Any, grid: list) -> list:
    """The numbers of step `i` on the axes; the last axis is the fastest."""
    numbers, rest = [], i
    for axis in reversed(range(len(grid))):
        n = grid[axis]
        if axis == 0:
            numbers.append(rest)
        elif isinstance(n, int) and n == 1:
            numbers.append(np.int32(0))
        else:
            n = rest.dtype.type(n) if isinstance(n, int) else n
            numbers.append(rem(rest, n))
            rest = div(rest, n)
    return [convert(n, np.dtype(np.int32)) for n in reversed(numbers)]


# ---- arrays and their blocks -------------------------------------------------------------------------


class _Window(NamedTuple):
    """A block in one step: the first element on each dimension, and how many belong to it where that is not all."""

    block: BlockMapping
    starts: list
    limits: dict[int, Any]
    signed: Sequence[bool]  # whether a start may be negative, which counts from the end


def _window(block: BlockMapping, ids: Sequence, scalars: Sequence[Ref], step: Step) -> _Window:
    """The block of a step. Raises NotImplementedError for a dimension that only SparseCores have."""
    closed = block.index_map_jaxpr
    numbers = evaluate(closed.jaxpr, closed.consts, [*ids, *scalars], step)
    found = numbers
    if any(type(d) is BoundedSlice for d in block.block_shape):
        found = block.index_map_out_tree.unflatten(numbers)
    starts, limits = [], {}
    for axis, (n, d) in enumerate(zip(found, block.block_shape, strict=True)):
        if type(d) is Indirect:
            raise NotImplementedError(f"pallas_call: a block with the dimension {d} cannot be interpreted")
        if type(d) is BoundedSlice:
            limits[axis] = n.size
            n = n.start
        elif type(d) is Blocked:
            n = mul(n, np.dtype(n.dtype).type(d.block_size))
        starts.append(_int32(n) if isinstance(n, int) else n)
    signed = (True,) * len(starts) if limits else _signed(closed.jaxpr)
    return _Window(block, starts, limits, signed)


def _padded_shape(block: BlockMapping) -> tuple[int, ...]:
    """The shape of the array with whole blocks."""
    shape = []
    for n, d, size in zip(block.array_aval.shape, block.block_shape, block.sizes, strict=True):
        if type(d) is BoundedSlice:
            shape.append(n + size)
            continue
        n += sum(d.padding) if type(d) is Element else 0
        shape.append(-(-n // size) * size)
    return tuple(shape)


def _padded(x: Any, block: BlockMapping, differentiated: bool) -> Any:
    """The array with whole blocks, padded by values that memory has before it is written.

    Derivatives there are multiplied by zero, but must be finite: floats that are differentiated are padded by ones.
    """
    aval = block.array_aval
    padded = _padded_shape(block)
    if padded == aval.shape:
        return x
    config = [(low, m - n - low, 0) for low, m, n in zip(_lows(block), padded, aval.shape, strict=True)]
    is_moved = differentiated and dtypes.issubdtype(aval.dtype, np.inexact)
    return pad(x, np.ones((), aval.dtype)[()] if is_moved else uninitialized_element(aval.dtype), config)


def _cut(x: Any, block: BlockMapping) -> Any:
    """The result without what it was padded by."""
    shape, lows = block.array_aval.shape, _lows(block)
    return x if x.shape == shape else lax_slice(x, lows, [low + n for low, n in zip(lows, shape, strict=True)])


def _lows(block: BlockMapping) -> list[int]:
    """The padding in front of each dimension."""
    return [d.padding[0] if type(d) is Element else 0 for d in block.block_shape]


def _read(x: Any, window: _Window) -> Any:
    """The block of an array, without the dimensions that the kernel does not see."""
    block = window.block
    if block.sizes != x.shape:
        x = dynamic_slice(x, window.starts, block.sizes, allow_negative_indices=window.signed)
    return reshape(x, block.ref_aval.shape) if x.shape != block.ref_aval.shape else x


def _written(x: Any, window: _Window, value: Any) -> Any:
    """The array with its block replaced, as far as elements belong to it."""
    block, starts, limits, signed = window
    if block.ref_aval.shape != block.sizes:
        value = reshape(value, block.sizes)
    for axis, limit in limits.items():
        belongs = lt(broadcasted_iota(np.int32, block.sizes, axis), broadcast_to_shape(_int32(limit), block.sizes))
        value = select(belongs, value, dynamic_slice(x, starts, block.sizes, allow_negative_indices=signed))
    if block.sizes == x.shape and not limits:
        return value
    return dynamic_update_slice(x, value, starts, allow_negative_indices=signed)


@cache.weak_cache
def _signed(jaxpr: Jaxpr) -> tuple[bool, ...]:
    """Whether each result of an index map may be negative, for numbers of steps that are not."""
    natural = {v for v in jaxpr.invars if type(v.aval) is ShapedArray}
    is_natural = lambda a: a.val >= 0 if type(a) is Literal else a in natural  # noqa: E731
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in _KEEPS_SIGN and all(map(is_natural, eqn.invars)):
            natural.update(eqn.outvars)
    return tuple([not is_natural(a) for a in jaxpr.outvars])


def _int32(n: Any) -> Any:
    return convert(as_array_or_constant(n), np.dtype(np.int32))


def _same_window(one: BlockMapping, other: BlockMapping) -> bool:
    """Returns whether two operands always have the same block."""
    return one.block_shape == other.block_shape and str(one.index_map_jaxpr) == str(other.index_map_jaxpr)
