"""Splash attention by kernels for TPUs: flash attention that visits only the blocks that a mask lets queries see."""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import minijax.numpy as jnp
from minijax import lax
from minijax.api.custom import custom_vjp
from minijax.api.jit import jit
from minijax.api.shapes import ShapeDtypeStruct
from minijax.api.vmap import vmap
from minijax.base import tree
from minijax.calls.remat import checkpoint_name
from minijax.kernels.blocks import BlockSpec, PrefetchScalarGridSpec
from minijax.kernels.call import pallas_call
from minijax.kernels.grid import num_programs, program_id
from minijax.kernels.memory import TpuMemorySpace
from minijax.kernels.operations.helpers import when
from minijax.kernels.ops.splash_mask_info import FULL, PARTIAL, MaskInfo, process_dynamic_mask, process_mask
from minijax.kernels.ops.splash_masks import Mask, MultiHeadMask, NumpyMask
from minijax.kernels.ops.tpu_scores import MASKED, Scores, Sums, add_by_keys, add_by_queries
from minijax.kernels.parameters import TpuParams
from minijax.partition.meshes import PartitionSpec
from minijax.run.arrays.array import Array


class SegmentIds(NamedTuple):
    """Names the segments of queries and keys by numbers, one array each: queries see only keys of their own.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu import splash_attention
        >>> segments = splash_attention.SegmentIds(q=jnp.array([0, 1]), kv=jnp.array([0, 0, 1]))
        >>> segments.q[:, None] == segments.kv
        Array([[ True,  True, False],
               [False, False,  True]], dtype=bool)
    """

    q: Any
    kv: Any


class QKVLayout(enum.IntEnum):
    """Names the last axis of queries, keys or values: the head size, or the sequence.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu import splash_attention
        >>> [layout.name for layout in splash_attention.QKVLayout]
        ['HEAD_DIM_MINOR', 'SEQ_MINOR']
    """

    HEAD_DIM_MINOR = enum.auto()
    SEQ_MINOR = enum.auto()


@dataclasses.dataclass(frozen=True, slots=True)
class BlockSizes:
    """Sets how many queries and keys the kernels of splash attention work on at once.

    Args:
      block_q: number of queries in the forward pass.
      block_kv: number of keys that are in vector memory.
      block_kv_compute: number of keys that are worked on.
      block_q_dkv: numbers for the kernel of derivatives by keys and values.
      block_kv_dkv: see there.
      block_kv_dkv_compute: see there.
      block_q_dq: numbers for the kernel of derivatives by queries.
      block_kv_dq: see there.
      use_fused_bwd_kernel: whether the last two are those of the kernel before.
      q_layout: last axis of queries: `QKVLayout.HEAD_DIM_MINOR`.
      k_layout: last axis of keys.
      v_layout: last axis of values.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu import splash_attention
        >>> sizes = splash_attention.BlockSizes(block_q=128, block_kv=256)
        >>> sizes.block_kv_compute, sizes.has_backward_blocks
        (256, False)
    """

    block_q: int
    block_kv: int
    block_kv_compute: int | None = None
    block_q_dkv: int | None = None
    block_kv_dkv: int | None = None
    block_kv_dkv_compute: int | None = None
    block_q_dq: int | None = None
    block_kv_dq: int | None = None
    use_fused_bwd_kernel: bool = False
    q_layout: QKVLayout = QKVLayout.HEAD_DIM_MINOR
    k_layout: QKVLayout = QKVLayout.HEAD_DIM_MINOR
    v_layout: QKVLayout = QKVLayout.HEAD_DIM_MINOR

    def __post_init__(self):
        for part, whole in (("block_kv_compute", "block_kv"), ("block_kv_dkv_compute", "block_kv_dkv")):
            if getattr(self, part) is None:
                object.__setattr__(self, part, getattr(self, whole))

    @property
    def has_backward_blocks(self) -> bool:
        """Whether the sizes for derivatives are given."""
        needed = [self.block_q_dkv, self.block_kv_dkv]
        return None not in (needed if self.use_fused_bwd_kernel else [*needed, self.block_q_dq, self.block_kv_dq])

    @classmethod
    def get_default(cls) -> BlockSizes:
        """The sizes that kernels use unless they get others."""
        return cls(128, 128, 128, 128, 128, 128, 128, 128)

    @property
    def for_queries(self) -> tuple[int, int]:
        """The sizes for derivatives by queries."""
        q, kv = (
            (self.block_q_dkv, self.block_kv_dkv) if self.use_fused_bwd_kernel else (self.block_q_dq, self.block_kv_dq)
        )
        return q or self.block_q, kv or self.block_kv


class _Options(NamedTuple):
    """The options of a kernel."""

    sizes: BlockSizes
    is_mqa: bool
    save_residuals: bool
    mask_value: float
    mask_functions: tuple[Any, Any, Any]  # of the forward pass, of derivatives by queries, and by keys
    cap: float | None
    checkpoint_name: str | None
    interpret: bool


# ---- kernels -------------------------------------------------------------------------------------------


class _Visits(NamedTuple):
    """The blocks that a kernel visits, in the order (heads, blocks that are kept, blocks that are added)."""

    info: MaskInfo
    mask_function: Any
    block: tuple[int, int]
    is_dkv: bool
    group: int  # queries' heads a head of keys
    is_mqa: bool

    @property
    def counts(self) -> tuple[int, int]:
        """The numbers of blocks that are kept, and that are added."""
        _, rows, columns = self.info.block_mask.shape
        return (columns, rows) if self.is_dkv else (rows, columns)

    def _at(self, h: Any, i: Any, j: Any) -> tuple[Any, Any, Any]:
        """The place of a step in the arrays of the mask, which all heads share or have one each."""
        head = h if self.info.block_mask.shape[0] > 1 else 0
        return (head, j, i) if self.is_dkv else (head, i, j)

    def of_derivative(self, size: int, v_size: int) -> list[BlockSpec]:
        """The blocks of queries, keys, values, cotangents, and of two numbers a query."""
        keys, values = self.keys(size), self.keys(v_size)
        return [self.queries(size), keys, values, self.queries(v_size), *[self.queries(1)] * 2]

    def scalars(self) -> list[Array]:
        """The arrays that are prefetched: kinds of blocks, and which data and blocks of the mask come next."""
        given = [self.info.block_mask, self.info.data_next]
        if self.has_blocks:
            given.append(self.info.mask_next)
        return [jnp.asarray(a).astype(jnp.int32) for a in given]

    @property
    def has_blocks(self) -> bool:
        """Whether blocks of the mask are read."""
        return self.info.partial_mask_blocks is not None

    def kind(self, scalars: Sequence) -> Any:
        """The kind of the block of this step."""
        return scalars[0][self._at(*map(program_id, range(3)))]

    def numbers(self, h: Any, i: Any, j: Any, scalars: Sequence) -> tuple[Any, Any]:
        """The numbers of the blocks of queries and of keys in a step."""
        other = scalars[1][self._at(h, i, j)]
        return (other, i) if self.is_dkv else (i, other)

    def queries(self, *tail: int, heads: bool = True) -> BlockSpec:
        """The spec of an array of the shape ([heads,] queries, *tail)."""

        def at(h, i, j, *scalars):
            return (*[h] * heads, self.numbers(h, i, j, scalars)[0], *[0] * len(tail))

        return BlockSpec((*[None] * heads, self.block[0], *tail), at)

    def keys(self, size: int) -> BlockSpec:
        """The spec of keys or values."""

        def at(h, i, j, *scalars):
            place = self.numbers(h, i, j, scalars)[1], 0
            return place if self.is_mqa else (lax.div(h, jnp.int32(self.group)), *place)

        return BlockSpec((*[None] * (not self.is_mqa), self.block[1], size), at)

    def masks(self, segment_ids: SegmentIds | None) -> tuple[list, list[BlockSpec]]:
        """The operands that say what is seen, and their specs."""
        operands: list = []
        specs = []
        if self.has_blocks:
            blocks = jnp.asarray(self.info.partial_mask_blocks)
            blocks = blocks.reshape(-1, *blocks.shape[-2:])
            operands.append((blocks.swapaxes(1, 2) if self.is_dkv else blocks).astype(jnp.int8))
            specs.append(BlockSpec((None, *self.block), lambda h, i, j, *s: (s[2][self._at(h, i, j)], 0, 0)))
        elif self.mask_function is not None:
            operands.append(jnp.asarray(self.info.q_sequence)[:, None])
            specs.append(self.queries(1, heads=False))
        if segment_ids is not None:
            operands += [segment_ids.q[:, None], segment_ids.kv[None, :]]
            specs.append(self.queries(1, heads=False))
            specs.append(BlockSpec((1, self.block[1]), lambda h, i, j, *s: (0, self.numbers(h, i, j, s)[1])))
        return operands, specs

    def seen(self, refs: Sequence, scalars: Sequence, is_partial: bool, in_segments: bool) -> Any:
        """Which queries see which keys in this step, or None: all."""
        found: list[Any] = []
        rest, function = list(refs), self.mask_function
        first: Any = rest.pop(0) if self.has_blocks or self.mask_function is not None else None
        if is_partial and self.has_blocks:
            found.append(first[...].astype(jnp.int32) != 0)
        elif is_partial and function is not None:
            h, i, j = map(program_id, range(3))
            start = self.numbers(h, i, j, scalars)[1] * self.block[1]
            shape = self.block
            q_ids = jnp.broadcast_to(first[...], shape)
            found.append(function(q_ids, start + lax.broadcasted_iota(jnp.int32, shape, 1)))
        if in_segments:
            found.append(rest[0][...] == rest[1][...])
        return functools.reduce(lambda x, y: x & y, found) if found else None

    def each_kind(self, scalars: Sequence, add: Callable[[bool], None]) -> None:
        """Calls `add` in a branch for each kind of blocks that is seen."""
        kind = self.kind(scalars)
        if self.has_blocks or self.mask_function is not None:
            when(kind == PARTIAL)(lambda: add(True))
        when(kind == FULL)(lambda: add(False))

    def run(
        self, kernel: Any, out: list, ins: list, outs: list, scratch: list, heads: int, options: _Options, name: str
    ) -> Any:
        """The call of a kernel."""
        scalars = self.scalars()
        grid = PrefetchScalarGridSpec(len(scalars), (heads, *self.counts), ins, outs, scratch)
        params = TpuParams(dimension_semantics=("parallel", "arbitrary", "arbitrary"))
        call = pallas_call(kernel, out, grid_spec=grid, interpret=options.interpret, name=name, compiler_params=params)
        return lambda *operands: call(*scalars, *operands)


def get_kernel_name(is_mqa: bool, save_residuals: bool, is_segmented: bool, phase: str) -> str:
    """Returns the name of a kernel.

    Args:
      is_mqa: whether all heads share keys.
      save_residuals: whether the logarithms of sums of powers are kept.
      is_segmented: whether there are numbers of segments.
      phase: "fwd", "dq" or "dkv".
    """
    parts = "mqa" if is_mqa else "mha", phase, *["segmented"] * is_segmented
    return f"splash_{'_'.join(parts)}_{'residuals' if save_residuals else 'no_residuals'}"


class _Operands(NamedTuple):
    """The arrays of a call."""

    q: Array
    k: Array
    v: Array
    segment_ids: SegmentIds | None
    sinks: Array | None

    def visits(self, info: MaskInfo, function: Any, block: tuple[int, int], is_dkv: bool, options: _Options) -> _Visits:
        group = 1 if options.is_mqa else self.q.shape[0] // self.k.shape[0]
        return _Visits(info, function, block, is_dkv, group, options.is_mqa)

    def name(self, options: _Options, residuals: bool, phase: str) -> str:
        return get_kernel_name(options.is_mqa, residuals, self.segment_ids is not None, phase)


def _scores(options: _Options, q: Any, k: Any, seen: Any) -> Scores:
    return Scores.of(q, k, seen=seen, mask_value=options.mask_value, cap=options.cap)


def _forward(x: _Operands, info: MaskInfo, options: _Options, keeps_lse: bool) -> tuple[Array, Array | None]:
    (heads, q_len, size), v_size = x.q.shape, x.v.shape[-1]
    block = options.sizes.block_q, options.sizes.block_kv
    visits = x.visits(info, options.mask_functions[0], block, False, options)
    masks, mask_specs = visits.masks(x.segment_ids)
    count, has_sinks = len(visits.scalars()), x.sinks is not None

    def kernel(*refs):
        scalars, (q_ref, k_ref, v_ref, *rest) = refs[:count], refs[count:]
        given, (*outs, sums) = rest[: len(masks)], [*rest[len(masks) : -3], Sums(*rest[-3:])]
        sink = outs.pop(0)[program_id(0)] if has_sinks else None

        @when(program_id(2) == 0)
        def _start():
            sums.start(sink)

        def add(is_partial):
            seen = visits.seen(given, scalars, is_partial, x.segment_ids is not None)
            sums.add(_scores(options, q_ref[...], k_ref[...], seen), v_ref[...])

        visits.each_kind(scalars, add)

        @when(program_id(2) == num_programs(2) - 1)
        def _finish():
            sums.finish(outs[0], outs[1] if keeps_lse else None)

    ins = [visits.queries(size), visits.keys(size), visits.keys(v_size), *mask_specs]
    sinks = [x.sinks.astype(jnp.float32)] if x.sinks is not None else []
    ins += [BlockSpec(memory_space=TpuMemorySpace.SMEM)] * len(sinks)
    out = [ShapeDtypeStruct((heads, q_len, v_size), x.q.dtype), ShapeDtypeStruct((heads, q_len, 1), jnp.float32)]
    outs = [visits.queries(v_size), visits.queries(1)]
    name, scratch = x.name(options, keeps_lse, "fwd"), Sums.scratch(block[0], v_size)
    call = visits.run(kernel, out[: 1 + keeps_lse], ins, outs[: 1 + keeps_lse], scratch, heads, options, name)
    found = call(x.q, x.k, x.v, *masks, *sinks)
    return found[0], found[1] if keeps_lse else None


def _by_keys(x: _Operands, info: MaskInfo, options: _Options, do: Array, stats: list) -> tuple[Array, Array]:
    """The derivatives by keys and values."""
    (heads, _, size), v_size = x.q.shape, x.v.shape[-1]
    block = options.sizes.block_q_dkv or 0, options.sizes.block_kv_dkv or 0
    visits = x.visits(info, options.mask_functions[2], block, True, options)
    masks, mask_specs = visits.masks(x.segment_ids)
    count = len(visits.scalars())

    def kernel(*refs):
        scalars, (q_ref, k_ref, v_ref, do_ref, lse_ref, delta_ref, *rest) = refs[:count], refs[count:]
        given, (dk_ref, dv_ref, *sums) = rest[: len(masks)], rest[len(masks) :]

        @when(program_id(2) == 0)
        def _start():
            for ref in sums:
                ref[...] = jnp.zeros(ref.shape, jnp.float32)

        def add(is_partial):
            seen, q = visits.seen(given, scalars, is_partial, x.segment_ids is not None), q_ref[...]
            scores, row = _scores(options, q, k_ref[...], seen), (lse_ref[...], delta_ref[...])
            add_by_keys(scores, q, v_ref[...], do_ref[...], row, (sums[0], sums[1]), 1.0)

        visits.each_kind(scalars, add)

        @when(program_id(2) == num_programs(2) - 1)
        def _finish():
            for ref, total in ((dk_ref, sums[0]), (dv_ref, sums[1])):
                ref[...] = total[...].astype(ref.dtype)

    kv_len = x.k.shape[-2]
    ins = visits.of_derivative(size, v_size)
    # The heads of queries that share keys are added up afterwards.
    out = [ShapeDtypeStruct((heads, kv_len, n), jnp.float32) for n in (size, v_size)]
    outs = [BlockSpec((None, block[1], n), lambda h, i, j, *s: (h, i, 0)) for n in (size, v_size)]
    scratch = [TpuMemorySpace.VMEM((block[1], n), jnp.float32) for n in (size, v_size)]
    call = visits.run(kernel, out, [*ins, *mask_specs], outs, scratch, heads, options, x.name(options, False, "dkv"))
    found = call(x.q, x.k, x.v, do, *stats, *masks)
    if options.is_mqa:
        return tuple([d.sum(0).astype(a.dtype) for d, a in zip(found, (x.k, x.v), strict=True)])
    grouped = [d.reshape(-1, visits.group, *d.shape[1:]).sum(1) for d in found]
    return tuple([d.astype(a.dtype) for d, a in zip(grouped, (x.k, x.v), strict=True)])


def _by_queries(x: _Operands, info: MaskInfo, options: _Options, do: Array, stats: list) -> Array:
    """The derivatives by queries."""
    (heads, _, size), v_size = x.q.shape, x.v.shape[-1]
    visits = x.visits(info, options.mask_functions[1], options.sizes.for_queries, False, options)
    masks, mask_specs = visits.masks(x.segment_ids)
    count = len(visits.scalars())

    def kernel(*refs):
        scalars, (q_ref, k_ref, v_ref, do_ref, lse_ref, delta_ref, *rest) = refs[:count], refs[count:]
        given, (dq_ref, total) = rest[: len(masks)], rest[len(masks) :]

        @when(program_id(2) == 0)
        def _start():
            total[...] = jnp.zeros(total.shape, jnp.float32)

        def add(is_partial):
            seen, k = visits.seen(given, scalars, is_partial, x.segment_ids is not None), k_ref[...]
            scores, row = _scores(options, q_ref[...], k, seen), (lse_ref[...], delta_ref[...])
            add_by_queries(scores, k, v_ref[...], do_ref[...], row, total, 1.0)

        visits.each_kind(scalars, add)

        @when(program_id(2) == num_programs(2) - 1)
        def _finish():
            dq_ref[...] = total[...].astype(dq_ref.dtype)

    ins = visits.of_derivative(size, v_size)
    scratch = [TpuMemorySpace.VMEM((visits.block[0], size), jnp.float32)]
    out, outs = [ShapeDtypeStruct(x.q.shape, x.q.dtype)], [visits.queries(size)]
    call = visits.run(kernel, out, [*ins, *mask_specs], outs, scratch, heads, options, x.name(options, False, "dq"))
    return call(x.q, x.k, x.v, do, *stats, *masks)[0]


@functools.partial(custom_vjp, nondiff_argnums=(2,))
def _attend(x: _Operands, infos: tuple, options: _Options) -> Any:
    out, lse = _forward(x, infos[0], options, options.save_residuals)
    return out if lse is None else (out, (lse[..., 0],))


def _attend_fwd(x: _Operands, infos: tuple, options: _Options) -> tuple:
    if options.save_residuals:
        raise NotImplementedError("Higher-order AD not supported: kernels that save residuals have no derivatives")
    out, lse = _forward(x, infos[0], options, True)
    if options.checkpoint_name is not None:
        out, lse = (checkpoint_name(a, options.checkpoint_name) for a in (out, lse))
    return out, (x, infos, out, lse)


def _attend_bwd(options: _Options, residuals: tuple, do: Array) -> tuple:
    x, infos, out, lse = residuals
    if not options.sizes.has_backward_blocks:
        raise ValueError("Need to specify backward blocks.")
    delta = jnp.sum(out.astype(jnp.float32) * do.astype(jnp.float32), -1, keepdims=True)
    stats = [lse, delta]
    dk, dv = _by_keys(x, infos[2], options, do, stats)
    dq = _by_queries(x, infos[1], options, do, stats)
    dsinks = None
    if x.sinks is not None:
        shares = jnp.exp(x.sinks.astype(jnp.float32)[:, None, None] - lse)
        dsinks = -jnp.sum(shares * delta, (1, 2)).astype(x.sinks.dtype)
    return _Operands(dq, dk, dv, None, dsinks), None


_attend.defvjp(_attend_fwd, _attend_bwd)


# ---- kernels as objects --------------------------------------------------------------------------------


def _check(x: _Operands, is_mqa: bool) -> None:
    """Raises ValueError for shapes that do not fit."""
    heads, q_len, size = x.q.shape
    if x.k.shape[-1] != size:
        raise ValueError(f"Expected 'key' head dimension to be: {size}. Instead got: {x.k.shape[-1]}.")
    rank = 2 if is_mqa else 3
    if x.k.ndim != rank or x.v.ndim != rank:
        raise ValueError(
            f"Expected {rank}-dim 'key' and 'value' tensors. Instead got {x.k.ndim}-dim and {x.v.ndim}-dim."
        )
    if x.k.shape[:-1] != x.v.shape[:-1]:
        raise ValueError(f"Expected 'key' {x.k.shape} and 'value' {x.v.shape} to have the same leading dimensions.")
    if not is_mqa and heads % x.k.shape[0]:
        raise ValueError(f"Expected 'key' heads {x.k.shape[0]} to divide the number of queries' heads {heads}")
    if x.segment_ids is not None:
        for what, ids, length in (("q", x.segment_ids.q, q_len), ("kv", x.segment_ids.kv, x.k.shape[-2])):
            if ids.shape != (length,):
                raise ValueError(f"Invalid shape for {what} segment_ids: {ids.shape}. Expected: {(length,)}")


@tree.register_pytree_node_class
class SplashAttentionKernel:
    """Computes attention with a mask: a function of queries, keys and values, and a tree of the mask's arrays.

    It is made by `make_splash_mha` and the like. Called with queries of the shape (heads, queries, head size), keys and
    values of the shape (heads of keys, keys, head size), or without heads for `make_splash_mqa`, and optional
    `SegmentIds` and scores of sinks, one a head, it returns an array of the shape of the queries.

    Args:
      fwd_mask_info: `MaskInfo` of the forward pass.
      dq_mask_info: that of the derivatives by queries, or None.
      dkv_mask_info: that of the derivatives by keys and values, or None.
      **kwargs: the options of the kernels.
    """

    def __init__(
        self, fwd_mask_info: MaskInfo, dq_mask_info: MaskInfo | None, dkv_mask_info: MaskInfo | None, **kwargs: Any
    ):
        self.fwd_mask_info, self.dq_mask_info, self.dkv_mask_info = fwd_mask_info, dq_mask_info, dkv_mask_info
        self.kwargs = kwargs

    def __call__(
        self, q: Array, k: Array, v: Array, segment_ids: SegmentIds | None = None, sinks: Array | None = None
    ) -> Any:
        options = _Options(**self.kwargs)
        x = _Operands(q, k, v, segment_ids, sinks)
        _check(x, options.is_mqa)
        infos = self.fwd_mask_info, self.dq_mask_info, self.dkv_mask_info
        return _attend(x, tuple([i and i._replace(is_dynamic_mask=None) for i in infos]), options)

    def manual_sharding_spec(self, sharding: Any) -> SplashAttentionKernel:
        """Returns the `PartitionSpec`s of the arrays of the mask, as a tree like this one, for `shard_map`.

        Args:
          sharding: sharding of heads and queries, a `NamedSharding` whose spec has these two axes.
        """
        spec = sharding.spec
        if len(spec) != 2:
            raise ValueError(f"manual_sharding_spec: the spec {spec} must have two axes, for heads and queries")

        def of(info: MaskInfo | None) -> MaskInfo | None:
            if info is None:
                return None
            blocks = None if info.partial_mask_blocks is None else PartitionSpec()
            is_dynamic = info.partial_mask_blocks is not None and info.partial_mask_blocks.ndim == 5
            return MaskInfo(
                spec,
                None if info.mask_next is None else spec,
                spec,
                spec if is_dynamic else blocks,
                None if info.q_sequence is None else PartitionSpec(spec[1]),
                info.is_dynamic_mask,
            )

        infos: Any = map(of, (self.fwd_mask_info, self.dq_mask_info, self.dkv_mask_info))
        return SplashAttentionKernel(*infos, **self.kwargs)

    def tree_flatten(self):
        """The arrays of the mask, and the options."""
        return (self.fwd_mask_info, self.dq_mask_info, self.dkv_mask_info), tuple(self.kwargs.items())

    @classmethod
    def tree_unflatten(cls, kwargs: Any, values: Any) -> SplashAttentionKernel:
        """A kernel of these arrays and options."""
        return cls(*values, **dict(kwargs))


def _make_splash_attention(
    mask: Any,
    *,
    block_sizes: BlockSizes | None = None,
    is_mqa: bool,
    save_residuals: bool = False,
    mask_value: float = MASKED,
    attn_logits_soft_cap: float | None = None,
    downcast_smem_data: bool = True,
    head_shards: int,
    q_seq_shards: int,
    residual_checkpoint_name: str | None = None,
    interpret: bool = False,
) -> SplashAttentionKernel:
    """Makes a kernel of attention with a mask, for TPUs.

    Args:
      mask: mask of all heads: a `MultiHeadMask`, or an array of bools of the shape (heads, queries, keys).
      block_sizes: `BlockSizes` of the kernels.
      is_mqa: whether all heads share keys and values.
      save_residuals: whether the logarithms of the sums of powers are returned, too.
      mask_value: score of keys that are not seen.
      attn_logits_soft_cap: bound that scores approach, by a hyperbolic tangent; None: no bound.
      downcast_smem_data: whether indices of blocks have the smallest type that holds them.
      head_shards: number of devices among which the heads are divided.
      q_seq_shards: number of devices among which the queries are divided.
      residual_checkpoint_name: name of what derivatives need, for policies of `jax.checkpoint`.
      interpret: whether the kernels are interpreted, on any device.

    Returns:
      A `SplashAttentionKernel`.

    Raises ValueError for a mask without three axes, or sizes that do not divide it.
    """
    if len(mask.shape) != 3:
        raise ValueError(f"Unexpected mask shape: {mask.shape}. A mask has the shape (heads, queries, keys).")
    sizes = block_sizes or BlockSizes.get_default()
    if {sizes.q_layout, sizes.k_layout, sizes.v_layout} != {QKVLayout.HEAD_DIM_MINOR}:
        raise NotImplementedError(
            "make_splash_mha: operands whose last axis is the sequence are not there; transpose them"
        )
    if isinstance(mask, np.ndarray):
        mask = MultiHeadMask([NumpyMask(head) for head in mask])
    process: Any = process_mask if isinstance(mask, Mask) else process_dynamic_mask
    common = dict(downcast_smem_data=downcast_smem_data, head_shards=head_shards, q_seq_shards=q_seq_shards)
    found = [process(mask, (sizes.block_q, sizes.block_kv), **common)]
    found += [(None, None)] * 2
    if sizes.has_backward_blocks:
        found[1] = process(mask, sizes.for_queries, **common)
        found[2] = process(mask, (sizes.block_q_dkv, sizes.block_kv_dkv), is_dkv=True, **common)
    infos, functions = zip(*found, strict=True)
    options = _Options(
        sizes, is_mqa, save_residuals, mask_value, functions, attn_logits_soft_cap, residual_checkpoint_name, interpret
    )
    return SplashAttentionKernel(*infos, **options._asdict())


make_splash_mha = functools.partial(_make_splash_attention, is_mqa=False)
make_splash_mqa = functools.partial(_make_splash_attention, is_mqa=True)
make_splash_mha_single_device = functools.partial(make_splash_mha, is_mqa=False, head_shards=1, q_seq_shards=1)
make_splash_mqa_single_device = functools.partial(make_splash_mqa, is_mqa=True, head_shards=1, q_seq_shards=1)


# ---- references ----------------------------------------------------------------------------------------


def attention_reference(
    mask: Array,
    q: Array,
    k: Array,
    v: Array,
    segment_ids: SegmentIds | None,
    sinks: Array | None = None,
    *,
    mask_value: float = MASKED,
    save_residuals: bool = False,
    custom_type: str = "flash",
    attn_logits_soft_cap: float | None = None,
) -> Any:
    """Computes attention of one head by operations of XLA.

    Args:
      mask: mask of the shape (queries, keys).
      q: queries, of the shape (queries, head size).
      k: keys.
      v: values.
      segment_ids: `SegmentIds`, or None.
      sinks: score of a key without a value, or None.
      mask_value: score of keys that are not seen.
      save_residuals: whether the logarithms of the sums of powers are returned, too.
      custom_type: ignored; derivatives are those of the operations.
      attn_logits_soft_cap: bound that scores approach; None: no bound.
    """
    scores = jnp.einsum("qd,kd->qk", q.astype(jnp.float32), k.astype(jnp.float32))
    if segment_ids is not None:
        mask = mask & (segment_ids.q[:, None] == segment_ids.kv[None, :])
    if attn_logits_soft_cap is not None:
        scores = jnp.tanh(scores / attn_logits_soft_cap) * attn_logits_soft_cap
    scores = jnp.where(mask, scores, mask_value)
    highest = jnp.max(scores, -1)
    highest = highest if sinks is None else jnp.maximum(highest, sinks)
    powers = jnp.exp(scores - highest[:, None])
    total = jnp.sum(powers, -1)
    total = total if sinks is None else total + jnp.exp(sinks - highest)
    out = jnp.einsum("qk,kd->qd", powers / total[:, None], v.astype(jnp.float32)).astype(q.dtype)
    return (out, (highest + jnp.log(total),)) if save_residuals else out


def make_attention_reference(
    mask: Any, is_mqa: bool, backward_impl: str = "vanilla", **params: Any
) -> Callable[..., Any]:
    """Makes a function of the arguments of a `SplashAttentionKernel` that is computed by operations of XLA.

    Args:
      mask: mask of all heads.
      is_mqa: whether all heads share keys and values.
      backward_impl: ignored; derivatives are those of the operations.
      **params: options of `attention_reference`.
    """

    @functools.partial(jit, static_argnames=["mask_value", "save_residuals", "attn_logits_soft_cap"])
    def reference(mask, q, k, v, segment_ids=None, sinks=None, **options):
        group = 1 if is_mqa else q.shape[0] // k.shape[0]
        keys = (k, v) if is_mqa else [jnp.repeat(a, group, 0) for a in (k, v)]
        one = functools.partial(attention_reference, **{**params, **options})
        axes = 0, 0, *[None if is_mqa else 0] * 2, None, None if sinks is None else 0
        return vmap(one, axes)(mask, q, *keys, segment_ids, sinks)

    return functools.partial(reference, jnp.asarray(mask[:, :, :]))


make_masked_mha_reference = functools.partial(make_attention_reference, is_mqa=False)
make_masked_mqa_reference = functools.partial(make_attention_reference, is_mqa=True)
