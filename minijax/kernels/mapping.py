"""The grid of a `pallas_call`, and the blocks of its operands and results."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.base import tree
from minijax.base.symbolic.dimension import SymbolicDim
from minijax.ir.body import Flat, argument_names, signature_of, source_of
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo
from minijax.ir.refs import AbstractRef
from minijax.ir.trace import trace_to_jaxpr
from minijax.ir.types import AbstractValue, ShapedArray
from minijax.kernels import symbolic
from minijax.kernels.blocks import (
    BlockDim,
    Blocked,
    BlockSpec,
    BoundedSlice,
    Buffered,
    Indirect,
    Squeezed,
    no_block_spec,
    size_of,
)
from minijax.kernels.grid import INDEX, Grid, dynamic_grid_dim, within
from minijax.kernels.memory import MemorySpace
from minijax.primitives.gather_dims import Slice


@dataclasses.dataclass(frozen=True, repr=False)
class BlockMapping:
    """How one operand or result is cut into blocks."""

    block_shape: tuple[BlockDim, ...]
    transformed_block_aval: AbstractRef  # the type of the kernel's reference
    index_map_jaxpr: ClosedJaxpr  # (numbers of a step, references of prefetched scalars) -> numbers of the block
    index_map_out_tree: Any
    array_aval: ShapedArray
    origin: str  # the name of the operand in messages
    pipeline_mode: Buffered | None = None
    result_space: Any = None  # the memory space that `out_shape` names for a result

    block_aval = ref_aval = property(lambda self: self.transformed_block_aval)
    memory_space = property(lambda self: self.transformed_block_aval.memory_space)

    def replace(self, **changes: Any) -> BlockMapping:
        """The mapping with some fields changed."""
        return dataclasses.replace(self, **changes)

    def __repr__(self):
        return f"BlockMapping(block_shape={self.block_shape})"

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of a block, 1 for a dimension that the kernel does not see."""
        return tuple([size_of(d) or 1 for d in self.block_shape])

    def has_trivial_window(self) -> bool:
        """Returns whether the block is the whole array, with all its dimensions."""
        return self.is_everything() and not any(type(d) is Squeezed for d in self.block_shape)

    def is_everything(self) -> bool:
        """Returns whether the block has all elements of the array."""
        outs = self.index_map_jaxpr.jaxpr.outvars
        return self.sizes == self.array_aval.shape and not any(getattr(v, "val", None) != 0 for v in outs)


@dataclasses.dataclass(frozen=True, repr=False)
class GridMapping:
    """Holds the grid of a call, and the blocks of its operands and results.

    Example:
        >>> f = pl.pallas_call(lambda x, o: None, jax.ShapeDtypeStruct((2,), jnp.int32), grid=(2, 3))
        >>> call = jax.make_jaxpr(f)(jnp.arange(2)).eqns[0]
        >>> call.params['grid_mapping'].grid, call.params['grid_mapping'].num_inputs
        ((2, 3), 1)
    """

    grid: tuple[Any, ...]  # ints, or `dynamic_grid_dim`
    grid_names: tuple[Any, ...] | None
    block_mappings: tuple[BlockMapping, ...]  # of inputs, then of results
    index_map_tree: Any
    index_map_avals: tuple[AbstractValue, ...]
    vmapped_dims: tuple[int, ...]  # axes that `vmap` added, which `program_id` does not count
    num_index_operands: int
    num_inputs: int
    num_outputs: int
    scratch_avals: tuple[AbstractRef, ...]

    def __repr__(self):
        return f"GridMapping(grid={self.grid}, block_mappings={self.block_mappings})"

    def replace(self, **changes: Any) -> GridMapping:
        """The mapping with some fields changed."""
        return dataclasses.replace(self, **changes)

    def with_result_spaces(self, spaces: Sequence[Any]) -> GridMapping:
        """The mapping, whose results are in these memory spaces; None leaves it to the compiler."""
        if not any(spaces):
            return self
        outs = [b.replace(result_space=s) for b, s in zip(self.block_mappings_output, spaces, strict=True)]
        return self.replace(block_mappings=(*self.in_mappings, *outs))

    @property
    def num_dynamic_grid_bounds(self) -> int:
        return sum(n is dynamic_grid_dim for n in self.grid)

    @property
    def static_grid(self) -> tuple[int, ...]:
        """The sizes of the axes. Raises ValueError if one is known only when the program runs."""
        if self.num_dynamic_grid_bounds:
            raise ValueError("Expected a grid with fully static bounds")
        return self.grid

    @property
    def num_scratch_operands(self) -> int:
        return len(self.scratch_avals)

    @property
    def in_mappings(self) -> tuple[BlockMapping, ...]:
        return self.block_mappings[: self.num_inputs]

    @property
    def block_mappings_output(self) -> tuple[BlockMapping, ...]:
        return self.block_mappings[self.num_inputs :]

    @property
    def local_grid(self) -> Grid:
        """The grid that the kernel sees, without the axes that `vmap` added."""
        return Grid(tuple([n for i, n in enumerate(self.grid) if i not in self.vmapped_dims]))


# ---- from specs to mappings --------------------------------------------------------------------------


def dims_of(block_shape: Sequence, origin: str) -> tuple[BlockDim, ...]:
    """The dimensions of a block as users write them. Raises ValueError for one of another type or without elements."""
    found = []
    for d in block_shape:
        if d is None:
            d = Squeezed()
        elif isinstance(d, SymbolicDim) or isinstance(d, int | np.integer) and not isinstance(d, bool):
            d = Blocked(d)
        if not isinstance(d, BlockDim):
            raise ValueError(
                f"Unsupported block dimension type: {type(d)}. Allowed types: `pl.Squeezed`, `pl.Blocked`, "
                "`pl.Element`, `int`, `None`."
            )
        size = size_of(d)
        if isinstance(size, int) and size < 1:
            raise ValueError(
                f"Block shape for {origin} (= {tuple(block_shape)}) has the size {size}. Sizes are at least 1; use "
                "None for a dimension that the kernel does not see."
            )
        found.append(d)
    return tuple(found)


def block_mapping(
    spec: BlockSpec | None, aval: ShapedArray, origin: str, grid: Grid, index_tree: Any, index_avals: Sequence
) -> BlockMapping:
    """Traces the index map of a spec.

    Raises ValueError for a spec that does not fit the array, or an index map that does not return numbers of a block.
    """
    if spec is None or spec is no_block_spec:
        spec = BlockSpec()
    dims = tuple(map(Blocked, aval.shape)) if spec.block_shape is None else dims_of(spec.block_shape, origin)
    if any(isinstance(size_of(d), SymbolicDim) for d in dims) and not symbolic.are_allowed():
        raise ValueError(
            "shape polymorphism for Pallas does not support dynamically-shaped blocks. Block spec for "
            f"{origin} has the block shape {dims}. Kernels that are to be exported may have them within "
            "`pl.pallas_export_experimental(dynamic_shapes=True)`."
        )
    if len(dims) != len(aval.shape):
        raise ValueError(
            f"Block shape for {origin} (= {dims}) must have the same number of dimensions as the array shape "
            f"{aval.shape}."
        )
    space = MemorySpace.DEFAULT if spec.memory_space is None else spec.memory_space
    block = ShapedArray(tuple([n for n in map(size_of, dims) if n is not None]), aval.dtype)
    closed, out_tree = _index_map(spec.index_map, dims, origin, grid, index_tree, index_avals)
    return BlockMapping(dims, AbstractRef(block, space), closed, out_tree, aval, origin, spec.pipeline_mode)


def _index_map(
    index_map: Callable | None, dims: tuple, origin: str, grid: Grid, index_tree: Any, index_avals: Sequence
) -> tuple[ClosedJaxpr, Any]:
    """The index map as a jaxpr, and the tree of its results."""
    function = index_map or (lambda *_: (0,) * len(dims))
    flat = Flat(_with_tuple(function, dims), index_tree, _arguments)
    signature = signature_of(function)
    names = argument_names(signature, index_tree, ())
    info = DebugInfo("pallas_call index_map", source_of(function), names)
    where = f"Index map function {source_of(function)} for {origin}"

    def indices(*leaves):
        numbers = flat(*leaves)
        _check_count(where, dims, flat.out_tree)
        return [np.int32(n) if isinstance(n, int) and not isinstance(n, bool) else n for n in numbers]

    with within(grid):
        jaxpr, consts = trace_to_jaxpr(indices, index_avals, info)
    if consts:
        raise ValueError(f"{where} must not capture constants: {consts}. Pass them as scalars that are prefetched.")
    for i, aval in enumerate(jaxpr.out_avals):
        if aval.shape or not np.issubdtype(aval.dtype, np.integer):
            if not (i < len(dims) and type(dims[i]) is Indirect):
                raise ValueError(f"{where} must return integer scalars. Output[{i}] has type {aval.str_short()}.")
    return ClosedJaxpr(jaxpr), flat.out_tree


def _arguments(values: Any) -> tuple:
    return values


def _with_tuple(function: Callable, dims: tuple) -> Callable:
    """The index map, which returns a tuple also if the block has one dimension."""

    def index_map(*args, **kwargs):
        numbers = function(*args, **kwargs)
        numbers = tuple(numbers) if isinstance(numbers, list | tuple) else (numbers,)
        for i, (n, d) in enumerate(zip(numbers, dims, strict=False)):
            if type(d) is BoundedSlice and not isinstance(n, Slice):
                raise ValueError(
                    f"index_map returned a value of type {type(n)} at position {i} with block dimension {d} when it "
                    "should be pl.Slice"
                )
        return numbers

    return index_map


def _check_count(where: str, dims: tuple, out_tree: Any) -> None:
    count = len(out_tree.children()) if out_tree.node_data() is not None else 1
    if count != len(dims):
        raise ValueError(
            f"{where} must return {len(dims)} values to match block_shape={dims}. Currently returning {count} values: "
            "return one number for each dimension of the block."
        )


def grid_bounds(grid: tuple) -> tuple[tuple, list]:
    """The grid with a mark for each size that is an array, and these arrays."""
    fixed, arrays = [], []
    for n in grid:
        is_static = isinstance(n, int) or not hasattr(n, "dtype")
        fixed.append(n if is_static else dynamic_grid_dim)
        if not is_static:
            arrays.append(n)
    return tuple(fixed), arrays


def index_types(
    count: int, scalars: Sequence[AbstractRef], scalar_trees: Sequence
) -> tuple[Any, tuple[AbstractValue, ...]]:
    """The tree and the types of the arguments of index maps: the numbers of a step, and the prefetched scalars."""
    number = tree.tree_structure(0)
    positional = tree.treedef_tuple([*[number] * count, *scalar_trees])
    return tree.treedef_tuple([positional, tree.tree_structure({})]), (*(INDEX,) * count, *scalars)
