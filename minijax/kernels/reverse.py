"""The transpose of a kernel as a kernel, where each step writes blocks of its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.api.autodiff import vjp
from minijax.api.shapes import ShapeDtypeStruct
from minijax.base import cache
from minijax.base.mask import Mask
from minijax.higher.fori_loop import fori_loop
from minijax.ir.jaxpr import DebugInfo, Jaxpr
from minijax.ir.primitive import is_undefined_primal
from minijax.ir.refs import REF_EFFECT, Ref
from minijax.ir.trace import eval_jaxpr, trace_to_jaxpr
from minijax.ir.types import ShapedArray
from minijax.kernels.blocks import Blocked, BlockSpec, Squeezed
from minijax.kernels.expanded import Step, evaluate, ordinary_type
from minijax.kernels.grid import INDEX, program_id
from minijax.kernels.mapping import BlockMapping, GridMapping
from minijax.kernels.memory import MemorySpace
from minijax.kernels.starts import starts_of
from minijax.kernels.uninitialized import uninitialized
from minijax.kernels.writes import written
from minijax.primitives.dynamic_slice import dynamic_index_in_dim, dynamic_slice, dynamic_update_slice
from minijax.primitives.elementwise import add
from minijax.primitives.moving import filled, reshape, transpose
from minijax.primitives.reduce import reduce_sum
from minijax.primitives.zeros import instantiate
from minijax.transforms.prune import prune_fresh

MOST_STEPS = 1 << 16


def writes_own_blocks(params: dict) -> bool:
    """Returns whether each step of a kernel computes blocks that no other step writes, from its inputs alone."""
    mapping: GridMapping = params["grid_mapping"]
    is_fixed = not (mapping.num_dynamic_grid_bounds or mapping.num_index_operands or params["input_output_aliases"])
    jaxpr = params["jaxpr"]
    if not is_fixed or jaxpr.constvars or jaxpr.effects - REF_EFFECT or not math.prod(mapping.grid) <= MOST_STEPS:
        return False
    return math.prod(mapping.grid) > 0 and _steps_are_apart(jaxpr, mapping)


@cache.weak_cache
def _steps_are_apart(jaxpr: Jaxpr, mapping: GridMapping) -> bool:
    if any(i < mapping.num_inputs for i in written(jaxpr)) or _reads_what_it_did_not_write(jaxpr, mapping):
        return False
    for k, block in enumerate(mapping.block_mappings):
        if not all(type(d) in (Blocked, Squeezed) for d in block.block_shape):
            return False
        starts = starts_of(block, mapping, mapping.grid)
        if np.any(starts < 0) or np.any(starts + block.sizes > np.array(block.array_aval.shape, np.int64)):
            return False
        if k >= mapping.num_inputs and len(np.unique(starts, axis=0)) < len(starts):
            return False
    return True


def _reads_what_it_did_not_write(jaxpr: Jaxpr, mapping: GridMapping) -> bool:
    """Whether a step reads a result or scratch that it did not write before."""
    axes, first = len(mapping.local_grid.sizes), mapping.num_inputs
    types = [ordinary_type(v.aval).inner_aval for v in jaxpr.invars]

    def run(*args):
        refs = list(map(Ref, args[2 * axes :]))
        evaluate(jaxpr, [], refs, Step(args[:axes], args[axes : 2 * axes], mapping.grid_names or ()))
        return [r._value for r in refs[first : first + mapping.num_outputs]]

    traced, _ = trace_to_jaxpr(run, [*[INDEX] * (2 * axes), *types], DebugInfo("pallas_call", "step"))
    _, used = prune_fresh(traced, (True,) * mapping.num_outputs)
    return any(used[2 * axes + first :])


def transposed(call: Callable, cts: Sequence, operands: Sequence, params: dict) -> list:
    """The cotangents of the operands in which a kernel is linear, by a kernel of the same grid.

    `call` is `pallas_call`. Each step of that kernel writes the parts of the cotangents that it adds to.
    """
    mapping: GridMapping = params["grid_mapping"]
    blocks, n = mapping.block_mappings, mapping.num_inputs
    is_linear = Mask(map(is_undefined_primal, operands))
    is_moved = Mask(map(_is_float, params["out_avals"]))
    known_blocks, linear_blocks = is_linear.partition(blocks[:n])
    ct_blocks = is_moved.marked(blocks[n:])
    values = [*is_linear.unmarked(operands), *map(instantiate, is_moved.marked(cts))]
    kernel = _transposed_kernel(params, is_linear, is_moved)
    shapes = [ShapeDtypeStruct((*mapping.grid, *b.ref_aval.shape), b.ref_aval.dtype) for b in linear_blocks]
    specs, outs = list(map(_spec, [*known_blocks, *ct_blocks])), [_part(b, mapping) for b in linear_blocks]
    options = {key: params[key] for key in ("interpret", "debug", "compiler_params", "name")}
    parts = call(kernel, shapes, grid=mapping.grid, in_specs=specs, out_specs=outs, **options)(*values)
    sums = [_summed(part, b, mapping) for part, b in zip(parts, linear_blocks, strict=True)]
    return is_linear.merge([None] * len(known_blocks), sums)


def _transposed_kernel(params: dict, is_linear: Mask, is_moved: Mask) -> Callable:
    """The kernel (known blocks, cotangents of results) -> parts of the cotangents of linear operands."""
    mapping: GridMapping = params["grid_mapping"]
    n, jaxpr, axes = mapping.num_inputs, params["jaxpr"], range(len(mapping.grid))
    seen = [i for i in axes if i not in mapping.vmapped_dims]
    sizes = tuple([np.int32(mapping.grid[i]) for i in seen])
    count, moved = is_linear.count(False), sum(is_moved)
    linear = [b.ref_aval for b in is_linear.marked(mapping.in_mappings)]

    def kernel(*refs):
        known = [r[...] for r in refs[:count]]
        cts, parts = [r[...] for r in refs[count : count + moved]], refs[count + moved :]
        step = Step(tuple([program_id(i) for i in seen]), sizes, mapping.grid_names or ())

        def results(*moving):
            others = [uninitialized(v.aval.shape, v.aval.dtype) for v in jaxpr.invars[n:]]
            inner = [Ref(x) for x in (*is_linear.merge(known, moving), *others)]
            evaluate(jaxpr, [], inner, step)
            return [r._value for r in is_moved.marked(inner[n : n + len(is_moved)])]

        _, pull = vjp(results, *[filled(a.shape, 0, a.dtype) for a in linear])
        for part, ct in zip(parts, pull(cts), strict=True):
            part[...] = ct

    return kernel


def _spec(block: BlockMapping) -> BlockSpec:
    """The spec that a mapping was made from."""
    closed = block.index_map_jaxpr
    space = None if block.memory_space is MemorySpace.DEFAULT else block.memory_space
    index_map = lambda *ids: tuple(eval_jaxpr(closed.jaxpr, closed.consts, *ids))  # noqa: E731
    return BlockSpec(block.block_shape, index_map, block.pipeline_mode, memory_space=space)


def _part(block: BlockMapping, mapping: GridMapping) -> BlockSpec:
    """The spec of an array that has a block for each step."""
    rank = len(block.ref_aval.shape)
    shape = (*[None] * len(mapping.grid), *block.ref_aval.shape)
    return BlockSpec(shape, lambda *ids: (*ids, *(0,) * rank))


def _summed(parts: Any, block: BlockMapping, mapping: GridMapping) -> Any:
    """The array to whose blocks the parts of the steps are added."""
    aval, steps = block.array_aval, math.prod(mapping.grid)
    if block.has_trivial_window():
        return reduce_sum(parts, tuple(range(len(mapping.grid)))) if mapping.grid else parts
    parts = reshape(parts, (steps, *block.sizes))
    starts = starts_of(block, mapping, mapping.grid)
    counts = tuple([n // size for n, size in zip(aval.shape, block.sizes, strict=True)])
    numbers = np.ravel_multi_index(tuple((starts // np.array(block.sizes)).T), counts) if counts else np.zeros(1, int)
    if len(numbers) == math.prod(counts) and (numbers == np.arange(len(numbers))).all() and _tiles(block):
        rank = len(counts)
        # (numbers of blocks, elements of a block) -> (number, element) of each axis
        apart = reshape(parts, (*counts, *block.sizes))
        return reshape(transpose(apart, [axis for i in range(rank) for axis in (i, rank + i)]), aval.shape)
    at = starts.astype(np.int32)

    def body(i, total):
        place = [dynamic_index_in_dim(at[:, axis], i, 0, keepdims=False) for axis in range(at.shape[1])]
        part = dynamic_index_in_dim(parts, i, 0, keepdims=False)
        return dynamic_update_slice(total, add(dynamic_slice(total, place, block.sizes), part), place)

    return fori_loop(0, steps, body, filled(aval.shape, 0, aval.dtype))


def _tiles(block: BlockMapping) -> bool:
    return all(n % size == 0 for n, size in zip(block.array_aval.shape, block.sizes, strict=True))


def _is_float(aval: ShapedArray) -> bool:
    return aval.to_tangent_aval().dtype == aval.dtype
