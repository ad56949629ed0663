"""`vmap` of kernels: the batch becomes the first axis of the grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.base import tree
from minijax.dispatch.jitted import jitted
from minijax.higher.fori_loop import fori_loop
from minijax.ir.jaxpr import ClosedJaxpr, Var
from minijax.ir.primitive import Axis, Primitive
from minijax.ir.types import ShapedArray
from minijax.kernels.blocks import Squeezed
from minijax.kernels.flows import sources_of_results
from minijax.kernels.grid import INDEX
from minijax.kernels.mapping import BlockMapping, GridMapping
from minijax.primitives.dynamic_slice import dynamic_index_in_dim, dynamic_update_index_in_dim
from minijax.primitives.moving import broadcast_in_dim, filled
from minijax.primitives.structural import squeeze
from minijax.transforms.batch import move_batch_dim


def batch(
    primitive: Primitive, axis: Axis, operands: Sequence, dims: Sequence, params: dict
) -> tuple[Sequence, Sequence]:
    """The batched results of a call, and their batch dimensions."""
    mapping = params["grid_mapping"]
    count = len(params["out_avals"])
    if axis.size == 1:
        return one_by_one(primitive, axis, operands, dims, params)
    first = mapping.num_dynamic_grid_bounds + mapping.num_index_operands
    if any(d is not None for d in dims[:first]):
        return one_by_one(primitive, axis, operands, dims, params)
    operands, dims = list(operands), list(dims)
    for i, _ in params["input_output_aliases"]:
        at = i + mapping.num_dynamic_grid_bounds
        operands[at], dims[at] = move_batch_dim(operands[at], dims[at], 0, axis), 0
    results = primitive.bind_all(operands, _batched(params, axis.size, dims[first:]))
    is_batched = _depend(params, dims[first:])
    if all(is_batched):
        return results, [0] * count
    # All elements are equal; results that count as unbatched let `jacfwd` return the value.
    single = [
        x if b else dynamic_index_in_dim(x, 0, 0, keepdims=False) for x, b in zip(results, is_batched, strict=True)
    ]
    return single, [0 if b else None for b in is_batched]


def _depend(params: dict, dims: Sequence) -> list[bool]:
    """Whether each result depends on a batched input."""
    mapping: GridMapping = params["grid_mapping"]
    scalars, split = mapping.num_index_operands, mapping.num_index_operands + mapping.num_inputs
    if all(d is not None for d in dims):
        return [True] * mapping.num_outputs
    moving = {scalars + k for k, d in enumerate(dims) if d is not None}
    aliased = {o: i for i, o in params["input_output_aliases"]}
    sources = sources_of_results(params["jaxpr"], split, mapping.num_outputs)
    return [not moving.isdisjoint(s) or aliased.get(o) in moving or not s for o, s in enumerate(sources)]


def _with_front(x: Any) -> Any:
    return broadcast_in_dim(x, (1, *x.shape), tuple(range(1, len(x.shape) + 1)))


def one_by_one(
    primitive: Primitive, axis: Axis, operands: Sequence, dims: Sequence, params: dict
) -> tuple[Sequence, Sequence]:
    """The batched results of a call for each element of the batch in turn, and their batch dimensions."""
    if axis.size == 1:
        single = [x if d is None else squeeze(x, (d,)) for x, d in zip(operands, dims, strict=True)]
        results = primitive.bind_all(single, params)
        return [_with_front(x) for x in results], [0] * len(results)

    def body(i, outs):
        one = [
            x if d is None else dynamic_index_in_dim(x, i, d, keepdims=False)
            for x, d in zip(operands, dims, strict=True)
        ]
        results = primitive.bind_all(one, params)
        return [_updated(out, x, i) for out, x in zip(outs, results, strict=True)]

    empty = [filled((axis.size, *a.shape), 0, a.dtype) for a in params["out_avals"]]
    return fori_loop(0, axis.size, body, empty), [0] * len(empty)


@jitted("dynamic_update_index_in_dim")
def _updated(operand, update, index):
    return dynamic_update_index_in_dim(operand, update, index, 0)


def _batched(params: dict, size: int, dims: Sequence) -> dict:
    """The parameters of the batched call; `dims` are those of the inputs."""
    mapping: GridMapping = params["grid_mapping"]
    blocks = [
        _batched_block(b, d, size)
        for b, d in zip(mapping.block_mappings, [*dims, *[0] * mapping.num_outputs], strict=True)
    ]
    positional, named = mapping.index_map_tree.children()
    index_tree = tree.treedef_tuple([tree.treedef_tuple([tree.tree_structure(0), *positional.children()]), named])
    names = mapping.grid_names
    cost = params["cost_estimate"]
    return {
        **params,
        "grid_mapping": mapping.replace(
            grid=(size, *mapping.grid),
            grid_names=names and (None, *names),
            block_mappings=tuple(blocks),
            index_map_avals=(INDEX, *mapping.index_map_avals),
            index_map_tree=index_tree,
            vmapped_dims=(0, *[v + 1 for v in mapping.vmapped_dims]),
        ),
        "out_avals": tuple([_widened(a, 0, size) for a in params["out_avals"]]),
        "cost_estimate": cost and cost.times(size),
    }


def _widened(aval: ShapedArray, at: int, size: int) -> ShapedArray:
    return aval.update(shape=(*aval.shape[:at], size, *aval.shape[at:]), sharding=None)


def _batched_block(block: BlockMapping, dim: int | None, size: int) -> BlockMapping:
    """The blocks of an operand that is batched at `dim`: each has one element of the batch."""
    closed = block.index_map_jaxpr
    first = Var(INDEX)
    outvars, dims, aval = list(closed.jaxpr.outvars), list(block.block_shape), block.array_aval
    if dim is not None:
        outvars.insert(dim, first)
        dims.insert(dim, Squeezed())
        aval = _widened(aval, dim, size)
    info = closed.jaxpr.debug_info._replace(arg_names=None, result_paths=None)
    jaxpr = closed.jaxpr.replace(invars=[first, *closed.jaxpr.invars], outvars=outvars, debug_info=info)
    return block.replace(
        index_map_jaxpr=ClosedJaxpr(jaxpr, closed.consts),
        block_shape=tuple(dims),
        array_aval=aval,
        index_map_out_tree=tree.tree_structure((0,) * len(dims)),
    )
