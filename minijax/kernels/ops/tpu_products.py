"""Products of matrices by kernels for TPUs: of two matrices, and of groups of rows with a matrix for each group."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import minijax.numpy as jnp
from minijax import lax
from minijax.api.custom import custom_vjp
from minijax.api.jit import jit
from minijax.api.shapes import ShapeDtypeStruct
from minijax.base.dtypes import DTypeLike
from minijax.kernels.blocks import BlockSpec, PrefetchScalarGridSpec
from minijax.kernels.call import pallas_call
from minijax.kernels.grid import num_programs, program_id
from minijax.kernels.memory import TpuMemorySpace
from minijax.kernels.operations.helpers import cdiv, when
from minijax.kernels.parameters import TpuParams
from minijax.run.arrays.array import Array

_VMEM = TpuMemorySpace.VMEM
_NEEDED = ("parallel", "arbitrary", "arbitrary")


def double_kernel(x_ref: Any, y_ref: Any) -> None:
    """Writes twice a block; a kernel."""
    y_ref[...] = x_ref[...] * 2


def double(x: Array) -> Array:
    """Returns an array times two, by a kernel."""
    return pallas_call(double_kernel, ShapeDtypeStruct(x.shape, x.dtype))(x)


def matmul_kernel(x_tile_ref: Any, y_tile_ref: Any, o_tile_ref: Any, acc_ref: Any) -> None:
    """Adds the product of two blocks to a sum, which is the result in the last step; a kernel.

    Args:
      x_tile_ref: block of the left matrix.
      y_tile_ref: block of the right matrix.
      o_tile_ref: reference of the block of the result.
      acc_ref: reference of the sum, in scratch.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu import matmul
        >>> out, sums = jax.ShapeDtypeStruct((2, 2), jnp.float32), [pltpu.VMEM((2, 2), jnp.float32)]
        >>> f = pl.pallas_call(matmul.matmul_kernel, out, grid=(1, 1, 1), scratch_shapes=sums, interpret=True)
        >>> print(f(jnp.ones((2, 3)), jnp.ones((3, 2))))
        [[3. 3.]
         [3. 3.]]
    """

    @when(program_id(2) == 0)
    def _start():
        acc_ref[...] = jnp.zeros_like(acc_ref)

    acc_ref[...] += jnp.dot(x_tile_ref[...], y_tile_ref[...], preferred_element_type=acc_ref.dtype)
    o_tile_ref[...] = acc_ref[...].astype(o_tile_ref.dtype)


@functools.partial(jit, static_argnames=["block_shape", "block_k", "debug", "out_dtype"])
def matmul(
    x: Array,
    y: Array,
    *,
    block_shape: tuple[int, int],
    block_k: int = 256,
    out_dtype: DTypeLike | None = None,
    debug: bool = False,
) -> Array:
    """Computes the product of two matrices by a kernel for TPUs, block by block.

    Args:
      x: matrix.
      y: matrix.
      block_shape: shape of the blocks of the result.
      block_k: number of products that a step adds up.
      out_dtype: dtype of the result; that of the operands by default.
      debug: whether to print the kernel.

    Raises ValueError for matrices whose sizes do not fit, or that the blocks do not divide.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu import matmul
        >>> x = jnp.ones((8, 128))
        >>> with pltpu.force_tpu_interpret_mode():
        ...     print(matmul.matmul(x, jnp.ones((128, 128)), block_shape=(8, 128), block_k=128).mean())
        128.0
    """
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[0]:
        raise ValueError(f"matmul: the shapes {x.shape} and {y.shape} do not fit: it multiplies two matrices")
    if x.shape[1] % block_k:
        raise ValueError(
            f"matmul: block_k={block_k} does not divide {x.shape[1]}, the number of products that are added"
        )
    rows, columns = block_shape
    dtype = jnp.promote_types(x.dtype, y.dtype) if out_dtype is None else out_dtype
    acc_dtype = jnp.int32 if jnp.issubdtype(x.dtype, jnp.integer) else jnp.float32
    return pallas_call(
        matmul_kernel,
        ShapeDtypeStruct((x.shape[0], y.shape[1]), dtype),
        grid=(cdiv(x.shape[0], rows), cdiv(y.shape[1], columns), x.shape[1] // block_k),
        in_specs=[
            BlockSpec((rows, block_k), lambda i, j, k: (i, k)),
            BlockSpec((block_k, columns), lambda i, j, k: (k, j)),
        ],
        out_specs=BlockSpec((rows, columns), lambda i, j, k: (i, j)),
        scratch_shapes=[_VMEM((rows, columns), acc_dtype)],
        compiler_params=TpuParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
        debug=debug,
    )(x, y)


# ---- groups of rows ------------------------------------------------------------------------------------

Tiling = tuple[int, int, int] | Callable[[int, int, int], tuple[int, int, int] | None] | None


def make_group_metadata(
    *, group_sizes: Array, m: int, tm: int, start_group: Array, num_nonzero_groups: int, visit_empty_groups: bool = True
) -> tuple[tuple[Array, Array, Array], Array]:
    """Returns which block of rows and which group each step works on: each group in a block has a step of its own.

    Args:
      group_sizes: numbers of rows of the groups.
      m: number of all rows.
      tm: number of rows of a block.
      start_group: number of the first group that is worked on.
      num_nonzero_groups: number of groups that are worked on.
      visit_empty_groups: whether a group without rows has a step.

    Returns:
      The numbers of the first rows of the groups, with the number of all rows; for each step the number of the group
      and that of the block; and the number of steps.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu.megablox.gmm import make_group_metadata
        >>> (_, groups, blocks), steps = make_group_metadata(
        ...     group_sizes=jnp.array([3, 5]), m=8, tm=4, start_group=0, num_nonzero_groups=2)
        >>> groups, blocks, int(steps)
        (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32), 3)
    """
    count = group_sizes.shape[0]
    ends = jnp.cumsum(group_sizes).astype(jnp.int32)
    offsets = jnp.concatenate([jnp.zeros(1, jnp.int32), ends])
    starts = offsets[:-1]
    steps = jnp.where(group_sizes == 0, int(visit_empty_groups), (ends + tm - 1) // tm - starts // tm)
    numbers = jnp.arange(count, dtype=jnp.int32)
    steps = jnp.where((numbers >= start_group) & (numbers < start_group + num_nonzero_groups), steps, 0).astype(
        jnp.int32
    )
    total = m // tm + count - 1
    groups = jnp.repeat(numbers, steps, total_repeat_length=total)
    before = jnp.cumsum(steps) - steps
    blocks = starts[groups] // tm + jnp.arange(total, dtype=jnp.int32) - before[groups]
    return (offsets, groups, jnp.clip(blocks, 0, m // tm - 1).astype(jnp.int32)), jnp.sum(steps, dtype=jnp.int32)


class _Tiles(NamedTuple):
    """The sizes of a product of groups, those of its blocks, and the dtype in which blocks are multiplied."""

    m: int
    k: int
    n: int
    tm: int
    tk: int
    tn: int
    dtype: Any

    def in_group(self, offsets: Any, group: Any, block: Any) -> Any:
        """Which rows of a block are in a group, as a column."""
        rows = block * self.tm + lax.broadcasted_iota(jnp.int32, (self.tm, 1), 0)
        return (rows >= offsets[group]) & (rows < offsets[group + 1])


def _checked(lhs: Array, rhs: Array, group_sizes: Array, ranks: tuple[int, int]) -> None:
    for name, array, rank in (("lhs", lhs, ranks[0]), ("rhs", rhs, ranks[1])):
        if array.ndim != rank:
            raise ValueError(f"Expected {rank}-tensor for '{name}' but got {array.ndim}-tensor.")
        if array.dtype not in (jnp.bfloat16, jnp.float32):
            raise ValueError(f"Expected bfloat16 or float32 array but got {array.dtype}.")
    if group_sizes.dtype not in (jnp.int32, jnp.uint32):
        raise ValueError(f"Expected 32-bit integer 'group_sizes' but got {group_sizes.dtype}.")


def _tiles(tiling: Tiling, m: int, k: int, n: int, lhs: Array, rhs: Array) -> _Tiles:
    found = tiling(m, k, n) if callable(tiling) else tiling
    if found is None:
        raise ValueError(f"No tuned tiling found for (m, k, n) = {(m, k, n)}. Pass `tiling`, sizes of blocks.")
    tm, tk, tn = found
    if m % tm:
        raise ValueError(f"{m} must be divisible by x-dimension tile size ({tm}).")
    return _Tiles(m, k, n, tm, min(tk, k), min(tn, n), jnp.promote_types(lhs.dtype, rhs.dtype))


def _group_offset(group_offset: Any) -> Array:
    if group_offset is None:
        return jnp.zeros(1, jnp.int32)
    if group_offset.shape:
        raise ValueError(f"group_offset must be a ()-shaped array. Got: {group_offset.shape}.")
    return group_offset[None].astype(jnp.int32)


def _first(index: Any, numbers: Any) -> Any:
    """Whether a step is the first one with its number."""
    return (index == 0) | (numbers[index] != numbers[jnp.maximum(index - 1, 0)])


def _cut(x: Any, axis: int, size: Any) -> Any:
    """The block with zeros where its number on an axis is not less than `size`."""
    return jnp.where(lax.broadcasted_iota(jnp.int32, x.shape, axis) < size, x, jnp.zeros_like(x))


class _GroupedRows(NamedTuple):
    """The kernel of `gmm`, over the grid (blocks of columns, steps of groups, blocks of products that are added)."""

    tiles: _Tiles
    transpose_rhs: bool
    has_existing: bool

    def __call__(self, metadata_refs: Any, offset_ref: Any, lhs_ref: Any, rhs_ref: Any, *refs: Any) -> None:
        t, (out_ref, acc_ref) = self.tiles, refs[-2:]
        offsets, groups, blocks = metadata_refs
        step, part = program_id(1), program_id(2)
        existing = refs[0][...] if self.has_existing else None

        @when(part == 0)
        def _start():
            acc_ref[...] = jnp.zeros_like(acc_ref)

        x, y = lhs_ref[...].astype(t.dtype), rhs_ref[...].astype(t.dtype)
        added = 1 if self.transpose_rhs else 0
        if t.k % t.tk:  # the last block goes beyond the arrays, where anything may be
            x, y = (_cut(a, axis, t.k - part * t.tk) for a, axis in ((x, 1), (y, added)))
        acc_ref[...] += lax.dot_general(x, y, (((1,), (added,)), ((), ())), preferred_element_type=jnp.float32)

        @when(part == num_programs(2) - 1)
        def _store():
            seen = jnp.broadcast_to(t.in_group(offsets, groups[step], blocks[step]), (t.tm, t.tn))
            other = out_ref[...] if existing is None else jnp.where(_first(step, blocks), existing, out_ref[...])
            out_ref[...] = jnp.where(seen, acc_ref[...], other.astype(jnp.float32)).astype(out_ref.dtype)


class _GroupedColumns(NamedTuple):
    """The kernel of `tgmm`, over the grid (blocks of columns, blocks of rows, steps of groups)."""

    tiles: _Tiles

    def __call__(self, metadata_refs: Any, offset_ref: Any, lhs_ref: Any, rhs_ref: Any, *refs: Any) -> None:
        t, (out_ref, acc_ref) = self.tiles, refs[-2:]
        offsets, groups, blocks = metadata_refs
        step, last = program_id(2), num_programs(2) - 1

        @when(_first(step, groups))
        def _start():
            acc_ref[...] = jnp.zeros_like(acc_ref)

        seen = t.in_group(offsets, groups[step], blocks[step])
        x, y = (
            jnp.where(jnp.broadcast_to(seen, ref.shape), ref[...].astype(t.dtype), jnp.zeros(ref.shape, t.dtype))
            for ref in (lhs_ref, rhs_ref)
        )
        acc_ref[...] += lax.dot_general(x, y, (((0,), (0,)), ((), ())), preferred_element_type=jnp.float32)

        @when((step == last) | (groups[step] != groups[jnp.minimum(step + 1, last)]))
        def _store():
            out_ref[...] = acc_ref[...].astype(out_ref.dtype)


_STATIC = ("preferred_element_type", "tiling", "transpose_rhs", "interpret")


@functools.partial(jit, static_argnames=_STATIC)
def gmm(
    lhs: Array,
    rhs: Array,
    group_sizes: Array,
    preferred_element_type: DTypeLike = jnp.float32,
    tiling: Tiling = (128, 128, 128),
    group_offset: Array | None = None,
    existing_out: Array | None = None,
    transpose_rhs: bool = False,
    interpret: bool = False,
) -> Array:
    """Multiplies each group of rows by the matrix of the group, by a kernel for TPUs.

    Args:
      lhs: rows, of the shape (m, k).
      rhs: matrices, of the shape (groups, k, n).
      group_sizes: numbers of rows of the groups, which follow each other.
      preferred_element_type: dtype of the result.
      tiling: sizes of blocks along m, k and n, or a function of m, k and n that returns them.
      group_offset: number of the group to which the first matrix belongs; 0 by default.
      existing_out: result of the rows of other groups; they are undefined by default.
      transpose_rhs: whether the matrices have the shape (n, k).
      interpret: whether the kernel is interpreted, on any device.

    Returns:
      An array of the shape (m, n).

    Raises ValueError for ranks, dtypes or sizes that do not fit.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu.megablox.gmm import gmm
        >>> sizes, rows, matrices = jnp.array([3, 5]), jnp.ones((8, 2)), jnp.array([[[1.0], [1.0]], [[2.0], [3.0]]])
        >>> gmm(rows, matrices, sizes, tiling=(4, 2, 1), interpret=True)[:, 0]
        Array([2., 2., 2., 5., 5., 5., 5., 5.], dtype=float32)
    """
    _checked(lhs, rhs, group_sizes, (2, 3))
    (m, k), n = lhs.shape, rhs.shape[1 if transpose_rhs else 2]
    t = _tiles(tiling, m, k, n, lhs, rhs)
    if rhs.shape[2 if transpose_rhs else 1] != k:
        raise ValueError(f"gmm: the rows of lhs {lhs.shape} do not fit the matrices of rhs {rhs.shape}")
    offset = _group_offset(group_offset)
    metadata, steps = make_group_metadata(
        group_sizes=group_sizes,
        m=m,
        tm=t.tm,
        start_group=offset[0],
        num_nonzero_groups=rhs.shape[0],
        visit_empty_groups=False,
    )
    kernel = _GroupedRows(t, transpose_rhs, existing_out is not None)

    def of_group(j, i, p, metadata, offset):
        place = (j, p) if transpose_rhs else (p, j)
        return metadata[1][i] - offset[0], *place

    of_rows = BlockSpec((t.tm, t.tk), lambda j, i, p, metadata, offset: (metadata[2][i], p))
    of_result = BlockSpec((t.tm, t.tn), lambda j, i, p, metadata, offset: (metadata[2][i], j))
    existing = [] if existing_out is None else [existing_out]
    grid_spec = PrefetchScalarGridSpec(
        2,
        (cdiv(n, t.tn), steps, cdiv(k, t.tk)),
        [
            of_rows,
            BlockSpec((None, t.tn, t.tk) if transpose_rhs else (None, t.tk, t.tn), of_group),
            *[of_result] * len(existing),
        ],
        of_result,
        [_VMEM((t.tm, t.tn), jnp.float32)],
    )
    call = pallas_call(
        kernel,
        ShapeDtypeStruct((m, n), preferred_element_type),
        grid_spec=grid_spec,
        interpret=interpret,
        name="gmm",
        input_output_aliases={6: 0} if existing else {},
        compiler_params=TpuParams(dimension_semantics=_NEEDED),
    )
    return call(metadata, offset, lhs, rhs, *existing)


@functools.partial(jit, static_argnames=["preferred_element_type", "tiling", "num_actual_groups", "interpret"])
def tgmm(
    lhs: Array,
    rhs: Array,
    group_sizes: Array,
    preferred_element_type: DTypeLike = jnp.float32,
    tiling: Tiling = (128, 128, 128),
    group_offset: Array | None = None,
    num_actual_groups: int | None = None,
    existing_out: Array | None = None,
    interpret: bool = False,
) -> Array:
    """Multiplies, for each group, its columns of a matrix by its rows of another, by a kernel for TPUs.

    Args:
      lhs: matrix of the shape (k, m).
      rhs: matrix of the shape (m, n).
      group_sizes: numbers of columns and rows of the groups, which follow each other.
      preferred_element_type: dtype of the result.
      tiling: sizes of blocks along m, k and n, or a function of m, k and n that returns them.
      group_offset: number of the first group; 0 by default.
      num_actual_groups: number of groups; by default all from the first one on.
      existing_out: array whose memory the result may use.
      interpret: whether the kernel is interpreted, on any device.

    Returns:
      An array of the shape (groups, k, n).

    Raises ValueError for ranks, dtypes or sizes that do not fit.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu.megablox.gmm import tgmm
        >>> tgmm(jnp.ones((2, 8)), jnp.ones((8, 1)), jnp.array([3, 5]), tiling=(4, 2, 1), interpret=True)[:, :, 0]
        Array([[3., 3.],
               [5., 5.]], dtype=float32)
    """
    _checked(lhs, rhs, group_sizes, (2, 2))
    (k, m), n = lhs.shape, rhs.shape[1]
    t = _tiles(tiling, m, k, n, lhs, rhs)
    if rhs.shape[0] != m:
        raise ValueError(f"tgmm: the columns of lhs {lhs.shape} do not fit the rows of rhs {rhs.shape}")
    offset = _group_offset(group_offset)
    count = group_sizes.shape[0] if num_actual_groups is None else num_actual_groups
    metadata, steps = make_group_metadata(
        group_sizes=group_sizes, m=m, tm=t.tm, start_group=offset[0], num_nonzero_groups=count, visit_empty_groups=True
    )

    existing = [] if existing_out is None else [existing_out]
    of_result = BlockSpec((None, t.tk, t.tn), lambda j, p, i, metadata, offset: (metadata[1][i] - offset[0], p, j))
    grid_spec = PrefetchScalarGridSpec(
        2,
        (cdiv(n, t.tn), cdiv(k, t.tk), steps),
        [
            BlockSpec((t.tm, t.tk), lambda j, p, i, metadata, offset: (metadata[2][i], p)),
            BlockSpec((t.tm, t.tn), lambda j, p, i, metadata, offset: (metadata[2][i], j)),
            *[of_result] * len(existing),
        ],
        of_result,
        [_VMEM((t.tk, t.tn), jnp.float32)],
    )
    call = pallas_call(
        _GroupedColumns(t),
        ShapeDtypeStruct((count, k, n), preferred_element_type),
        grid_spec=grid_spec,
        interpret=interpret,
        name="tgmm",
        input_output_aliases={6: 0} if existing else {},
        compiler_params=TpuParams(dimension_semantics=_NEEDED),
    )
    return call(metadata, offset, lhs.T, rhs, *existing)


# ---- the product with its derivatives ------------------------------------------------------------------


@functools.partial(custom_vjp, nondiff_argnums=(3, 4, 7, 8))
def differentiable_gmm(
    lhs: Array,
    rhs: Array,
    group_sizes: Array,
    preferred_element_type: DTypeLike = jnp.float32,
    tiling: Tiling = (128, 128, 128),
    group_offset: Array | None = None,
    existing_out: Array | None = None,
    transpose_rhs: bool = False,
    interpret: bool = False,
) -> Array:
    """Multiplies each group of rows by the matrix of the group; has derivatives. See `megablox.gmm.gmm`.

    Args:
      lhs: rows, of the shape (m, k).
      rhs: matrices, of the shape (groups, k, n).
      group_sizes: numbers of rows of the groups, which follow each other.
      preferred_element_type: dtype of the result.
      tiling: sizes of blocks along m, k and n, or a function of m, k and n that returns them.
      group_offset: number of the group to which the first matrix belongs; 0 by default.
      existing_out: result of the rows of other groups; they are undefined by default.
      transpose_rhs: whether the matrices have the shape (n, k).
      interpret: whether the kernels are interpreted, on any device.
    """
    return gmm(
        lhs, rhs, group_sizes, preferred_element_type, tiling, group_offset, existing_out, transpose_rhs, interpret
    )


def _gmm_fwd(lhs: Array, rhs: Array, group_sizes: Array, *options: Any) -> tuple[Array, tuple]:
    return gmm(lhs, rhs, group_sizes, *options), (lhs, rhs, group_sizes, options[2])


def _gmm_bwd(dtype: Any, tiling: Tiling, transpose_rhs: bool, interpret: bool, residuals: tuple, ct: Array) -> tuple:
    lhs, rhs, group_sizes, group_offset = residuals
    swapped = tiling if tiling is None or callable(tiling) else (tiling[0], tiling[2], tiling[1])
    by_lhs = gmm(ct, rhs, group_sizes, lhs.dtype, swapped, group_offset, None, not transpose_rhs, interpret)
    by_rhs = tgmm(lhs.T, ct, group_sizes, rhs.dtype, tiling, group_offset, rhs.shape[0], None, interpret)
    return by_lhs, by_rhs.swapaxes(1, 2) if transpose_rhs else by_rhs, None, None, ct


differentiable_gmm.defvjp(_gmm_fwd, _gmm_bwd)
