"""How the operands of a kernel are cut into blocks: dimensions of blocks, specs of operands and of grids."""

from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from minijax.base.symbolic.dimension import SymbolicDim


@dataclasses.dataclass(frozen=True)
class Blocked:
    """Cuts a dimension into blocks of `block_size` elements: the index map returns the number of the block.

    Example:
        >>> spec, out = pl.BlockSpec((pl.Blocked(2),), lambda i: i), jax.ShapeDtypeStruct((4,), jnp.int32)
        >>> kernel = lambda x, o: o.set(x[...] * pl.program_id(0))
        >>> pl.pallas_call(kernel, out, grid=2, in_specs=[spec], out_specs=spec, interpret=True)(jnp.arange(4))
        Array([0, 0, 2, 3], dtype=int32)
    """

    block_size: int

    def __str__(self):
        return f"Blocked({self.block_size})"


@dataclasses.dataclass(frozen=True)
class Squeezed:
    """Takes one element of a dimension, which the kernel does not see; the index map returns its number.

    Example:
        >>> row = pl.BlockSpec((pl.Squeezed(), 2), lambda i: (i, 0))
        >>> kernel = lambda x, o: o.set(jnp.cumsum(x[...]))  # of rows, which have one axis
        >>> out = jax.ShapeDtypeStruct((2, 2), jnp.int32)
        >>> pl.pallas_call(kernel, out, grid=2, in_specs=[row], out_specs=row, interpret=True)(jnp.ones((2, 2), int))
        Array([[1, 2],
               [1, 2]], dtype=int32)
    """


@dataclasses.dataclass(frozen=True)
class Element:
    """Takes `block_size` elements of a dimension: the index map returns the number of the first one.

    `padding` is the number of elements by which the array is wider than it is stored, at the start and at the end.

    Example:
        >>> windows = pl.BlockSpec((pl.Element(2),), lambda i: i)  # [0, 1], [1, 2], [2, 3]
        >>> sum_of = lambda x, o: o.set(x[...].sum(keepdims=True))
        >>> out, one = jax.ShapeDtypeStruct((3,), jnp.int32), pl.BlockSpec((1,), lambda i: i)
        >>> pl.pallas_call(sum_of, out, grid=3, in_specs=[windows], out_specs=one, interpret=True)(jnp.arange(4))
        Array([1, 3, 5], dtype=int32)
    """

    block_size: int
    padding: tuple[int, int] = (0, 0)

    def __str__(self):
        return f"Element({self.block_size}, padding={self.padding})"


@dataclasses.dataclass(frozen=True)
class BoundedSlice:
    """Takes a slice of at most `block_size` elements of a dimension: the index map returns a `pl.ds`.

    Example:
        >>> pl.BoundedSlice(8)
        BoundedSlice(8)
    """

    block_size: int

    def __repr__(self):
        return f"BoundedSlice({self.block_size})"


@dataclasses.dataclass(frozen=True)
class Indirect:
    """Takes the elements of a dimension whose numbers are in an array of `block_size` indices, on SparseCores only.

    Example:
        >>> pl.BlockSpec((pl.Indirect(8), 128), lambda i: (jnp.arange(8), 0)).block_shape
        (Indirect(8), 128)
    """

    block_size: int

    def __repr__(self):
        return f"Indirect({self.block_size})"


BlockDim: TypeAlias = Element | Squeezed | Blocked | BoundedSlice | Indirect
squeezed = Squeezed()


def size_of(dim: BlockDim) -> int | None:
    """The size of a dimension of a block as the kernel sees it; None if it does not."""
    return None if type(dim) is Squeezed else dim.block_size


class RevisitMode(enum.Enum):
    """Says when a block of a result may be written again: in the next step only, or in any.

    Example:
        >>> pl.RevisitMode.ANY
        <RevisitMode.ANY: 'any'>
    """

    IMMEDIATE = "immediate"
    ANY = "any"


@dataclasses.dataclass(frozen=True)
class Buffered:
    """Sets the number of buffers of a block that is copied while the kernel runs.

    Args:
      buffer_count: number of buffers: 1 waits for each copy, 2 copies the next block meanwhile.
      use_lookahead: whether blocks further ahead are copied as soon as a buffer is free.
      revisit: when a block of a result may be written again.

    Example:
        >>> pl.BlockSpec((8, 128), lambda i: (i, 0), pipeline_mode=pl.Buffered(3)).pipeline_mode
        Buffered(buffer_count=3, use_lookahead=False, revisit=None)
    """

    buffer_count: int
    use_lookahead: bool = False
    revisit: RevisitMode | None = None


@dataclasses.dataclass(frozen=True)
class CostEstimate:
    """Says what a kernel costs, for XLA's scheduler.

    Args:
      flops: number of operations on floats.
      transcendentals: number of exponentials and the like.
      bytes_accessed: number of bytes that are read and written.
      remote_bytes_transferred: number of bytes that are sent to other devices.

    Raises ValueError if one is not an int.

    Example:
        >>> pl.CostEstimate(flops=2 * 8**3, transcendentals=0, bytes_accessed=3 * 8 * 8 * 4).bytes_accessed
        768
    """

    flops: int
    transcendentals: int
    bytes_accessed: int
    remote_bytes_transferred: int = 0

    def __post_init__(self):
        for name, value in dataclasses.asdict(self).items():
            if not isinstance(value, int):
                raise ValueError(
                    f"All fields in CostEstimate must be ints. {name} is not an int: {type(value)}({value})"
                )

    def to_json(self) -> bytes:
        """The fields as JSON."""
        return json.dumps(dataclasses.asdict(self)).encode()

    def times(self, count: int) -> CostEstimate:
        """The cost of `count` kernels."""
        return CostEstimate(*[count * value for value in dataclasses.astuple(self)])


class _NoBlockSpec:
    """The type of `no_block_spec`."""

    def __repr__(self):
        return "NoBlockSpec"


no_block_spec = _NoBlockSpec()


@dataclasses.dataclass
class BlockSpec:
    """Says how an operand or a result is cut into blocks. In each step of the grid the kernel gets one block.

    Args:
      block_shape: for each dimension an int, the size of the blocks; None or `pl.squeezed` for a dimension that the
        kernel does not see, since it gets one element; or `pl.Element`, `pl.Blocked`, `pl.BoundedSlice`. None:
        the block is the whole array.
      index_map: function of the numbers of a step on the axes of the grid, and of the references of scalars that are
        prefetched, that returns the number of the block on each dimension. None: zeros.
      pipeline_mode: `pl.Buffered`, how many buffers the block has.
      memory_space: where the block is, such as `pltpu.VMEM` or `pl.ANY`.

    See also: `pl.pallas_call`, `pl.GridSpec`.

    Example:
        >>> spec = pl.BlockSpec((8, 128), lambda i, j: (i, j))
        >>> spec.block_shape
        (8, 128)
    """

    block_shape: Sequence[BlockDim | int | None] | None = None
    index_map: Callable[..., Any] | None = None
    memory_space: Any | None = dataclasses.field(kw_only=True, default=None)
    pipeline_mode: Buffered | None = None

    def replace(self, **changes: Any) -> BlockSpec:
        """The spec with some fields changed."""
        return dataclasses.replace(self, **changes)


@dataclasses.dataclass(init=False, unsafe_hash=True)
class GridSpec:
    """Says over which grid a kernel runs, and how its operands, results and scratch are cut and allocated.

    Args:
      grid: size of each axis of the grid, ints or scalar arrays; an int for one axis. The last axis is the fastest.
      in_specs: tuple of the operands' `BlockSpec`s, a tree of them for an operand that is a tree.
      out_specs: tree of the results' `BlockSpec`s.
      scratch_shapes: types of memory that the kernel gets besides, such as `pltpu.VMEM((8, 128), jnp.float32)`.

    See also: `pl.pallas_call`, `pltpu.PrefetchScalarGridSpec`.

    Example:
        >>> pl.GridSpec(grid=4).grid
        (4,)
    """

    grid: tuple[Any, ...]
    grid_names: tuple[Any, ...] | None
    in_specs: Any
    out_specs: Any
    scratch_shapes: Any = ()

    def __init__(
        self, grid: Any = (), in_specs: Any = no_block_spec, out_specs: Any = no_block_spec, scratch_shapes: Any = ()
    ):
        self.grid, self.grid_names = _checked_grid(grid)
        self.in_specs = tuple(in_specs) if isinstance(in_specs, list) else in_specs
        self.out_specs = tuple(out_specs) if isinstance(out_specs, list) else out_specs
        self.scratch_shapes = tuple(scratch_shapes) if isinstance(scratch_shapes, list) else scratch_shapes
        if self.in_specs is not no_block_spec and not isinstance(self.in_specs, tuple):
            raise ValueError(f"`in_specs` must be a tuple or a list. Found: {in_specs}")

    num_scalar_prefetch = 0  # the number of leading operands that are given to index maps too


@dataclasses.dataclass(init=False, unsafe_hash=True)
class PrefetchScalarGridSpec(GridSpec):
    """Is a `GridSpec` whose first operands are read before the grid runs, and are given to the index maps too.

    Args:
      num_scalar_prefetch: number of these operands, which the kernel gets as references in SMEM.
      grid: as in `pl.GridSpec`.
      in_specs: specs of the other operands.
      out_specs: as in `pl.GridSpec`.
      scratch_shapes: as in `pl.GridSpec`.

    Example:
        >>> pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=4).num_scalar_prefetch
        1
    """

    num_scalar_prefetch: int

    def __init__(
        self,
        num_scalar_prefetch: int,
        grid: Any = (),
        in_specs: Any = no_block_spec,
        out_specs: Any = no_block_spec,
        scratch_shapes: Any = (),
    ):
        super().__init__(grid, in_specs, out_specs, scratch_shapes)
        self.num_scalar_prefetch = num_scalar_prefetch


def _checked_grid(grid: Any) -> tuple[tuple, tuple | None]:
    """The sizes of the axes, and their names if they have any. Raises ValueError for another kind of grid."""
    refusal = ValueError(f"Grid must be a tuple of integers or jax.Array, got {grid}")
    if isinstance(grid, str):
        raise refusal
    if _is_size(grid):
        grid = (grid,)
    if not isinstance(grid, Sequence):
        raise refusal
    sizes, names = list(grid), None
    if sizes and all(isinstance(axis, tuple) and len(axis) == 2 for axis in sizes):
        names, sizes = zip(*sizes, strict=True)
    if not all(map(_is_size, sizes)):
        raise refusal
    return tuple([int(n) if isinstance(n, np.integer) else n for n in sizes]), names and tuple(names)


def _is_size(n: Any) -> bool:
    """Returns whether `n` can be the size of an axis: an int, a symbolic dimension, or a scalar array of integers."""
    if isinstance(n, int | np.integer | SymbolicDim):
        return True
    return getattr(n, "shape", None) == () and np.issubdtype(getattr(n, "dtype", np.void), np.integer)
