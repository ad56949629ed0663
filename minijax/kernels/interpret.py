"""Runs a kernel as operations of XLA: a loop over the steps of the grid, which reads and writes blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.higher.fori_loop import fori_loop
from minijax.higher.while_loop import while_loop
from minijax.ir import state
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr
from minijax.ir.refs import Ref
from minijax.ir.trace import close_over, trace_to_jaxpr
from minijax.kernels.blocks import Blocked, BoundedSlice, Element, Indirect
from minijax.kernels.expanded import Step, evaluate
from minijax.kernels.grid import dynamic_grid_dim
from minijax.kernels.mapping import BlockMapping, GridMapping
from minijax.kernels.uninitialized import uninitialized, uninitialized_element
from minijax.kernels.writes import written
from minijax.primitives.convert import convert
from minijax.primitives.dynamic_slice import dynamic_slice, dynamic_update_slice
from minijax.primitives.elementwise import add, div, lt, mul, rem
from minijax.primitives.moving import reshape
from minijax.primitives.structural import pad, slice as lax_slice
from minijax.transforms.prune import prune_closed


def program(ins: tuple, params: dict, differentiated: bool = False) -> ClosedJaxpr:
    """The call as a jaxpr of ordinary operations; one to be differentiated keeps what its steps read."""
    return _program(params["jaxpr"], ins, params["grid_mapping"], tuple(params["input_output_aliases"]), differentiated)


@state.traced_cache
def _program(kernel: Jaxpr, ins: tuple, mapping: GridMapping, aliases: tuple, differentiated: bool) -> ClosedJaxpr:
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
        inputs = [*values[: self.first_input]]
        for x, block in zip(values[self.first_input :], self.mapping.in_mappings, strict=True):
            inputs.append(_padded(x, block))
        begins = {o: i for i, o in self.shared.items()}
        outputs = []
        for k, block in enumerate(self.mapping.block_mappings_output, self.first_output):
            if k not in begins:
                outputs.append(uninitialized(_padded_shape(block), block.array_aval.dtype))
                continue
            if _padded_shape(block) != block.array_aval.shape:
                raise NotImplementedError("Padding with aliasing not supported.")
            outputs.append(inputs[begins[k]])
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
            _, *last = while_loop(lambda carry: lt(carry[0], total), body, begin)
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
        seen = [i for i in range(len(grid)) if i not in mapping.vmapped_dims]
        sizes = [np.int32(n) if isinstance(n, int) else n for n in grid]
        step = Step(tuple([ids[i] for i in seen]), tuple([sizes[i] for i in seen]), mapping.grid_names or ())
        blocks = [self._starts(b, ids, scalars, step) for b in mapping.block_mappings]
        refs = list(scalars)
        for x, block, starts in zip(arrays[self.first_input :], mapping.block_mappings, blocks, strict=False):
            refs.append(Ref(_read(x, block, starts)))
        for i, o in self.shared.items():
            if _same_window(mapping.block_mappings[i - self.first_input], mapping.block_mappings[o - self.first_input]):
                refs[i] = refs[o]
        refs += [Ref(x) for x in arrays[self.first_scratch :]]
        evaluate(self.jaxpr, [], refs, step)
        after = []
        for k, (ref, x) in enumerate(zip(refs, arrays, strict=True)):
            if self.changes[k]:
                is_block = self.first_input <= k < self.first_scratch
                at = k - self.first_input
                value = ref._value
                after.append(_written(x, mapping.block_mappings[at], blocks[at], value) if is_block else value)
        return after

    def _starts(self, block: BlockMapping, ids: Sequence, scalars: Sequence[Ref], step: Step) -> list:
        """The first element of a block on each dimension of the array, and whether it may be negative."""
        closed = block.index_map_jaxpr
        numbers = evaluate(closed.jaxpr, closed.consts, [*ids, *scalars], step)
        starts = []
        for n, d in zip(numbers, block.block_shape, strict=True):
            if type(d) in (BoundedSlice, Indirect):
                raise NotImplementedError(f"pallas_call: a block with the dimension {d} cannot be interpreted")
            starts.append(mul(n, np.dtype(n.dtype).type(d.block_size)) if type(d) is Blocked else n)
        return starts


def _numbers_of(i: Any, grid: list) -> list:
    """The numbers of step `i` on the axes, of which the last is the fastest."""
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


def _padded_shape(block: BlockMapping) -> tuple[int, ...]:
    """The shape of the array with whole blocks."""
    shape = []
    for n, d, size in zip(block.array_aval.shape, block.block_shape, block.sizes, strict=True):
        n += sum(d.padding) if type(d) is Element else 0
        shape.append(-(-n // size) * size)
    return tuple(shape)


def _padded(x: Any, block: BlockMapping) -> Any:
    """The array with whole blocks, padded by values that memory has before it is written."""
    aval = block.array_aval
    padded = _padded_shape(block)
    if padded == aval.shape:
        return x
    lows = [d.padding[0] if type(d) is Element else 0 for d in block.block_shape]
    config = [(low, m - n - low, 0) for low, m, n in zip(lows, padded, aval.shape, strict=True)]
    return pad(x, uninitialized_element(aval.dtype), config)


def _cut(x: Any, block: BlockMapping) -> Any:
    """The result without what it was padded by."""
    shape = block.array_aval.shape
    return x if x.shape == shape else lax_slice(x, (0,) * len(shape), shape)


def _read(x: Any, block: BlockMapping, starts: Sequence) -> Any:
    """The block of an array, without the dimensions that the kernel does not see."""
    if block.sizes != x.shape:
        x = dynamic_slice(x, starts, block.sizes)
    return reshape(x, block.ref_aval.shape) if x.shape != block.ref_aval.shape else x


def _written(x: Any, block: BlockMapping, starts: Sequence, value: Any) -> Any:
    """The array with its block replaced."""
    if block.ref_aval.shape != block.sizes:
        value = reshape(value, block.sizes)
    return value if block.sizes == x.shape else dynamic_update_slice(x, value, starts)


def _same_window(one: BlockMapping, other: BlockMapping) -> bool:
    """Returns whether two operands always have the same block."""
    return one.block_shape == other.block_shape and str(one.index_map_jaxpr) == str(other.index_map_jaxpr)
