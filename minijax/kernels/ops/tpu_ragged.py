"""Attention of sequences of any lengths by a kernel for TPUs, with keys in pages (PagedAttention, FlashAttention)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import minijax.numpy as jnp
from minijax import lax
from minijax.api.jit import jit
from minijax.api.shapes import ShapeDtypeStruct
from minijax.base.dtypes import DTypeLike
from minijax.kernels.blocks import BlockSpec, PrefetchScalarGridSpec
from minijax.kernels.call import pallas_call
from minijax.kernels.grid import program_id
from minijax.kernels.memory import MemorySpace, SemaphoreType, TpuMemorySpace
from minijax.kernels.operations.copies import make_async_copy, run_together
from minijax.kernels.operations.helpers import cdiv, dslice, loop
from minijax.kernels.ops.tpu_scores import MASKED, Scores, Sums
from minijax.kernels.parameters import TpuParams
from minijax.run.arrays.array import Array

_KEYS, _QUERIES = 128, 32  # of a block, unless the caller says otherwise


class _Kernel(NamedTuple):
    """The kernel, over blocks of queries, which walks through the sequences of its block and the pages of each."""

    queries: int  # tokens of a block
    pages: int  # of a block of keys
    page_size: int
    kv_heads: int
    scale: float
    window: int | None
    cap: float | None
    mask_value: float
    factors: tuple[float | None, float | None]  # of keys and values

    def __call__(self, ranges_ref: Any, lengths_ref: Any, table_ref: Any, starts_ref: Any, *refs: Any) -> None:
        tokens_ref, q_ref, pages_ref, o_ref, buffer, semaphore, *sums = refs
        block = program_id(0)
        first = block * self.queries
        tokens = first + tokens_ref[...]
        for head in range(self.kv_heads):
            _of_head(sums, head).start()

        @loop(ranges_ref[0, block], ranges_ref[1, block])
        def _sequence(s: Any) -> None:
            low, high = starts_ref[s], starts_ref[s + 1]
            length = lengths_ref[s]
            shift = length - high  # from the number of a token to its place in the sequence
            keys = self.pages * self.page_size
            begin = 0
            if self.window is not None:
                begin = jnp.maximum(jnp.maximum(first, low) + shift - self.window + 1, 0) // keys
            end = cdiv(jnp.minimum(first + self.queries, high) + shift, keys)
            is_own = jnp.logical_and(tokens >= low, tokens < high)

            @loop(begin, end)
            def _block(i: Any) -> None:
                self._copy(table_ref, s, i, length, pages_ref, buffer, semaphore)
                self._attend(i * keys, length, tokens + shift, is_own, q_ref, buffer, sums)

        is_token = tokens < starts_ref[ranges_ref[1, block]]
        for head in range(self.kv_heads):
            _of_head(sums, head).finish(o_ref.at[head], None)
            o_ref[head] = jnp.where(is_token, o_ref[head], jnp.zeros((), o_ref.dtype))

    def _copy(self, table_ref: Any, s: Any, i: Any, length: Any, pages_ref: Any, buffer: Any, semaphore: Any) -> None:
        """Copies the pages of a block, all at once; those after the last one that has keys are the last one again."""
        last = jnp.maximum(cdiv(length, self.page_size) - 1, 0)
        copies = []
        for page in range(self.pages):
            number = table_ref[s, jnp.minimum(i * self.pages + page, last)]
            rows = dslice(page * self.page_size, self.page_size)
            copies.append(make_async_copy(pages_ref.at[number], buffer.at[rows], semaphore))
        run_together(copies)

    def _attend(
        self, start: Any, length: Any, places: Any, is_own: Any, q_ref: Any, buffer: Any, sums: list[Any]
    ) -> None:
        """Adds a block of keys from the place `start` of its sequence on, for queries at these places of it."""
        rows, count = q_ref.shape[1], buffer.shape[0]
        keys = start + lax.broadcasted_iota(jnp.int32, (rows, count), 1)
        seen = jnp.logical_and(is_own, keys <= places)
        if self.window is not None:
            seen = jnp.logical_and(seen, keys > places - self.window)
        # Rows past the end may hold anything, and zero times that may be no number.
        there = start + lax.broadcasted_iota(jnp.int32, (count, buffer.shape[2]), 0) < length
        for head in range(self.kv_heads):
            q = q_ref[head].astype(jnp.float32)
            k, v = (self._loaded(buffer, 2 * head + at, q_ref.dtype) for at in (0, 1))
            scores = Scores.of(q, k, self.scale, seen=seen, mask_value=self.mask_value, cap=self.cap)
            _of_head(sums, head).add(scores, jnp.where(there, v, 0.0))

    def _loaded(self, buffer: Any, row: int, dtype: DTypeLike) -> Any:
        """The keys or values of a head, multiplied by their factor and rounded to the dtype of the queries."""
        found, factor = buffer[:, row, :].astype(jnp.float32), self.factors[row % 2]
        return found if factor is None else (found * jnp.float32(factor)).astype(dtype).astype(jnp.float32)


def _of_head(sums: list[Any], head: int) -> Sums:
    return Sums(*[ref.at[head] for ref in sums])


def static_validate_inputs(
    q: Array,
    kv_pages: Array,
    kv_lens: Array,
    page_indices: Array,
    cu_q_lens: Array,
    num_seqs: Array,
    *,
    sm_scale: float | None = None,
    sliding_window: int | None = None,
    soft_cap: float | None = None,
    mask_value: float | None = None,
    k_scale: float | None = None,
    v_scale: float | None = None,
    num_kv_pages_per_block: int | None = None,
    num_queries_per_block: int | None = None,
    vmem_limit_bytes: int | None = None,
) -> None:
    """Checks the types of the operands of `ragged_paged_attention`, and its options.

    The arguments are those of `ragged_paged_attention`.

    Raises ValueError for operands or options that do not fit.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu import ragged_paged_attention as ragged
        >>> q, pages = jnp.zeros((2, 1, 128)), jnp.ones((1, 16, 2, 128))  # two tokens of one sequence; a page of 16
        >>> lengths, table, starts, count = jnp.array([2]), jnp.array([[0]]), jnp.array([0, 2]), jnp.array([1])
        >>> ragged.static_validate_inputs(q, pages, lengths, table, starts, count)
    """
    del sm_scale, mask_value, k_scale, v_scale
    (_, heads, size), (_, _, both, kv_size) = q.shape, kv_pages.shape
    sequences, per_sequence = page_indices.shape
    kv_heads, pages = both // 2, num_kv_pages_per_block
    integers = [a.dtype for a in (kv_lens, page_indices, cu_q_lens)]
    errors = [
        (both % 2, f"kv_pages has {both} combined heads, which are keys and values in turn: an even number"),
        (size != kv_size, f"Q head_dim {size} must be the same as that of K/V {kv_size}."),
        (heads % max(kv_heads, 1), f"num_q_heads={heads} must be divisible by num_kv_heads={kv_heads}"),
        (kv_lens.shape != (sequences,), f"Expected kv_lens.shape={kv_lens.shape} to be ({sequences},)."),
        (cu_q_lens.shape != (sequences + 1,), f"Expected cu_q_lens.shape={cu_q_lens.shape} to be ({sequences + 1},)."),
        (num_seqs.shape != (1,), f"num_seqs.shape={num_seqs.shape} must be (1,)"),
        (
            any(d != np.int32 for d in integers),
            "The dtype of `kv_lens`, `page_indices`, and `cu_q_lens` must be int32. "
            f"Got {', '.join(map(str, integers))}.",
        ),
        (sliding_window is not None and sliding_window <= 0, f"sliding_window={sliding_window} must be positive."),
        (soft_cap == 0.0, f"soft_cap={soft_cap} must not be 0.0."),
        (
            pages is not None and not 0 < pages <= per_sequence,
            f"num_kv_pages_per_block={pages} must be in range (0, {per_sequence}].",
        ),
        (
            num_queries_per_block is not None and num_queries_per_block <= 0,
            f"num_queries_per_block={num_queries_per_block} must be positive.",
        ),
        (vmem_limit_bytes is not None and vmem_limit_bytes <= 0, f"{vmem_limit_bytes=} must be positive."),
    ]
    for is_wrong, text in errors:
        if is_wrong:
            raise ValueError(f"ragged_paged_attention: {text}")


def dynamic_validate_inputs(
    q: Array,
    kv_pages: Array,
    kv_lens: Array,
    page_indices: Array,
    cu_q_lens: Array,
    num_seqs: Array,
    *,
    sm_scale: float | None = None,
    sliding_window: int | None = None,
    soft_cap: float | None = None,
    mask_value: float | None = None,
    k_scale: float | None = None,
    v_scale: float | None = None,
    num_kv_pages_per_block: int | None = None,
    num_queries_per_block: int | None = None,
    vmem_limit_bytes: int | None = None,
) -> None:
    """Checks the operands of `ragged_paged_attention` with their values; arguments and errors are those of its types.

    Raises ValueError for more tokens, pages or sequences than there is room for, or more queries than keys.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu import ragged_paged_attention as ragged
        >>> q, pages = jnp.zeros((2, 1, 128)), jnp.ones((1, 16, 2, 128))  # two tokens of one sequence; a page of 16
        >>> lengths, table, starts, count = jnp.array([2]), jnp.array([[0]]), jnp.array([0, 2]), jnp.array([1])
        >>> ragged.dynamic_validate_inputs(q, pages, lengths, table, starts, count)
    """
    static_validate_inputs(
        q,
        kv_pages,
        kv_lens,
        page_indices,
        cu_q_lens,
        num_seqs,
        sliding_window=sliding_window,
        soft_cap=soft_cap,
        num_kv_pages_per_block=num_kv_pages_per_block,
        num_queries_per_block=num_queries_per_block,
        vmem_limit_bytes=vmem_limit_bytes,
    )
    del sm_scale, mask_value, k_scale, v_scale
    count, (most, per_sequence) = int(num_seqs[0]), page_indices.shape
    if count > most:
        raise ValueError(f"num_seqs[0]={count} must be less or equal to max_num_seqs={most}")
    lengths, starts = np.asarray(kv_lens)[:count], np.asarray(cu_q_lens)[: count + 1]
    needed = -(-int(lengths.max(initial=0)) // kv_pages.shape[1])
    if needed > per_sequence:
        raise ValueError(f"pages_per_seq={per_sequence} must be greater or equal to min_pages_per_seq={needed}")
    if starts[-1] > q.shape[0]:
        raise ValueError(f"Total q tokens {starts[-1]} must be less or equal to max_num_batched_tokens={q.shape[0]}.")
    for i, (queries, keys) in enumerate(zip(np.diff(starts), lengths, strict=True)):
        if queries > keys:
            raise ValueError(f"q_len={queries} must be less or equal to kv_len={keys} at sequence {i}.")


def ref_ragged_paged_attention(
    queries: Array,
    kv_pages: Array,
    kv_lens: Array,
    page_indices: Array,
    cu_q_lens: Array,
    num_seqs: Array,
    *,
    sm_scale: float = 1.0,
    sliding_window: int | None = None,
    soft_cap: float | None = None,
    mask_value: float | None = MASKED,
    k_scale: float | None = None,
    v_scale: float | None = None,
) -> Array:
    """Computes `ragged_paged_attention` by operations of XLA, one sequence after the other.

    The arguments and errors are those of `ragged_paged_attention`, but `num_seqs` and lengths must be known.

    Returns:
      An array of the queries that `cu_q_lens` counts.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu import ragged_paged_attention as ragged
        >>> q, pages = jnp.zeros((2, 1, 128)), jnp.ones((1, 16, 2, 128))  # two tokens of one sequence; a page of 16
        >>> lengths, table, starts, count = jnp.array([2]), jnp.array([[0]]), jnp.array([0, 2]), jnp.array([1])
        >>> ragged.ref_ragged_paged_attention(q, pages, lengths, table, starts, count).shape
        (2, 1, 128)
    """
    static_validate_inputs(
        queries, kv_pages, kv_lens, page_indices, cu_q_lens, num_seqs, sliding_window=sliding_window, soft_cap=soft_cap
    )
    group = queries.shape[1] // (kv_pages.shape[2] // 2)
    outs = []
    for i in range(int(num_seqs[0])):
        low, high, length = int(cu_q_lens[i]), int(cu_q_lens[i + 1]), int(kv_lens[i])
        q = queries[low:high].astype(jnp.float32)
        pages = kv_pages[page_indices[i]].reshape(-1, *kv_pages.shape[2:])[:length].astype(jnp.float32)
        k, v = pages[:, 0::2], pages[:, 1::2]
        k, v = (
            x if f is None else (x * f).astype(queries.dtype).astype(jnp.float32)
            for x, f in ((k, k_scale), (v, v_scale))
        )
        k, v = jnp.repeat(k, group, axis=1), jnp.repeat(v, group, axis=1)
        scores = jnp.einsum("qhd,khd->hqk", q, k) * sm_scale
        places, keys = jnp.arange(high - low)[:, None] + length - (high - low), jnp.arange(length)[None]
        seen = keys <= places
        if sliding_window is not None:
            seen &= keys > places - sliding_window
        if soft_cap is not None:
            scores = soft_cap * jnp.tanh(scores / soft_cap)
        scores = jnp.where(seen, scores, MASKED if mask_value is None else mask_value)
        shares = jnp.exp(scores - scores.max(-1, keepdims=True))
        shares = shares / shares.sum(-1, keepdims=True)
        outs.append(jnp.einsum("hqk,khd->qhd", shares, v).astype(queries.dtype))
    return jnp.concatenate(outs, axis=0)


def get_tuned_block_sizes(
    q_dtype: DTypeLike,
    kv_dtype: DTypeLike,
    num_q_heads_per_blk: int,
    num_kv_heads_per_blk: int,
    head_dim: int,
    page_size: int,
    max_num_batched_tokens: int,
    pages_per_seq: int,
) -> tuple[int, int]:
    """Returns the numbers of pages and of queries of a block that `ragged_paged_attention` chooses.

    Args:
      q_dtype: ignored, as all that are not named below.
      kv_dtype: ignored.
      num_q_heads_per_blk: ignored.
      num_kv_heads_per_blk: ignored.
      head_dim: ignored.
      page_size: keys of a page.
      max_num_batched_tokens: number of queries.
      pages_per_seq: most pages of a sequence.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu import ragged_paged_attention as ragged
        >>> ragged.get_tuned_block_sizes(jnp.float32, jnp.float32, 8, 4, 128, 16, 64, 20)
        (8, 32)
    """
    del q_dtype, kv_dtype, num_q_heads_per_blk, num_kv_heads_per_blk, head_dim
    return min(pages_per_seq, max(_KEYS // page_size, 1)), min(max_num_batched_tokens, _QUERIES)


_STATIC = """sm_scale sliding_window soft_cap mask_value k_scale v_scale num_kv_pages_per_block num_queries_per_block
    vmem_limit_bytes"""


@functools.partial(jit, static_argnames=_STATIC.split())
def ragged_paged_attention(
    q: Array,
    kv_pages: Array,
    kv_lens: Array,
    page_indices: Array,
    cu_q_lens: Array,
    num_seqs: Array,
    *,
    sm_scale: float = 1.0,
    sliding_window: int | None = None,
    soft_cap: float | None = None,
    mask_value: float | None = MASKED,
    k_scale: float | None = None,
    v_scale: float | None = None,
    num_kv_pages_per_block: int | None = None,
    num_queries_per_block: int | None = None,
    vmem_limit_bytes: int | None = None,
) -> Array:
    """Computes causal attention of sequences of any lengths, with keys in pages that a table names, on TPUs.

    Args:
      q: queries of all sequences, one after the other, of the shape (tokens, heads, head size).
      kv_pages: keys and values in turn, of the shape (pages, page size, 2 * heads of keys, head size).
      kv_lens: numbers of each sequence's keys, of the shape (most sequences,), int32. Its queries are the last ones.
      page_indices: numbers of each sequence's pages, of the shape (most sequences, most pages of a sequence), int32.
      cu_q_lens: number of the first query of each sequence, and the number of queries, (most sequences + 1,), int32.
      num_seqs: number of sequences, of the shape (1,), int32.
      sm_scale: number by which scores are multiplied.
      sliding_window: how many keys a query sees, itself included; None: all before it.
      soft_cap: bound that scores approach, by a hyperbolic tangent; None: no bound.
      mask_value: score of keys that are not seen.
      k_scale: number by which keys are multiplied.
      v_scale: number by which values are multiplied.
      num_kv_pages_per_block: number of pages that are worked on at once.
      num_queries_per_block: number of queries that are worked on at once.
      vmem_limit_bytes: limit of the memory of the kernel.

    Returns:
      An array of the shape and dtype of `q`; zeros after the last sequence.

    Raises ValueError for operands or options that do not fit.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu.ragged_paged_attention import ragged_paged_attention
        >>> q, pages = jnp.ones((4, 2, 128)), jnp.ones((3, 8, 2, 128))
        >>> ints = lambda *xs: jnp.array(xs, jnp.int32)
        >>> operands = q, pages, ints(5, 9), ints([0, 2], [1, 2]), ints(0, 3, 4), ints(2)
        >>> print(jax.eval_shape(ragged_paged_attention, *operands).shape)
        (4, 2, 128)
    """
    static_validate_inputs(
        q,
        kv_pages,
        kv_lens,
        page_indices,
        cu_q_lens,
        num_seqs,
        sliding_window=sliding_window,
        soft_cap=soft_cap,
        num_kv_pages_per_block=num_kv_pages_per_block,
        num_queries_per_block=num_queries_per_block,
        vmem_limit_bytes=vmem_limit_bytes,
    )
    (tokens, heads, size), (_, page_size, both, _) = q.shape, kv_pages.shape
    kv_heads, per_sequence = both // 2, page_indices.shape[1]
    group = heads // kv_heads
    tuned = get_tuned_block_sizes(q.dtype, kv_pages.dtype, heads, kv_heads, size, page_size, tokens, per_sequence)
    pages, queries = num_kv_pages_per_block or tuned[0], num_queries_per_block or tuned[1]
    blocks = cdiv(tokens, queries)
    rows = queries * group
    padded = jnp.pad(q, ((0, blocks * queries - tokens), (0, 0), (0, 0)))
    by_head = padded.reshape(blocks * queries, kv_heads, group, size).transpose(1, 0, 2, 3)
    kernel = _Kernel(
        queries,
        pages,
        page_size,
        kv_heads,
        sm_scale,
        sliding_window,
        soft_cap,
        MASKED if mask_value is None else mask_value,
        (k_scale, v_scale),
    )
    numbers = (jnp.arange(rows, dtype=jnp.int32) // group).reshape(rows, 1)
    ranges = _sequences(cu_q_lens, num_seqs, blocks, queries)
    call = _call(kernel, blocks, group, size, q.dtype, kv_pages, vmem_limit_bytes)
    found = call(ranges, kv_lens, page_indices, cu_q_lens, numbers, by_head.reshape(kv_heads, -1, size), kv_pages)
    found = found.reshape(kv_heads, -1, group, size).transpose(1, 0, 2, 3)
    return found.reshape(-1, heads, size)[:tokens]


def _call(
    kernel: _Kernel, blocks: int, group: int, size: int, dtype: DTypeLike, kv_pages: Array, limit: int | None
) -> Callable:
    """The call of the kernel."""
    kv_heads, rows = kernel.kv_heads, kernel.queries * group
    block = BlockSpec((kv_heads, rows, size), lambda b, *_: (0, b, 0))
    return pallas_call(
        kernel,
        ShapeDtypeStruct((kv_heads, blocks * rows, size), dtype),
        grid_spec=PrefetchScalarGridSpec(
            4,
            (blocks,),
            [BlockSpec((rows, 1), lambda b, *_: (0, 0)), block, BlockSpec(memory_space=MemorySpace.ANY)],
            block,
            [
                TpuMemorySpace.VMEM((kernel.pages * kernel.page_size, *kv_pages.shape[2:]), kv_pages.dtype),
                SemaphoreType.DMA(()),
                *[TpuMemorySpace.VMEM((kv_heads, rows, n), jnp.float32) for n in (1, 1, size)],
            ],
        ),
        compiler_params=TpuParams(dimension_semantics=("arbitrary",), vmem_limit_bytes=limit),
        name="ragged_paged_attention",
    )


def _sequences(starts: Array, count: Array, blocks: int, queries: int) -> Array:
    """The first sequence of each block of queries, and the first one that is not in it, as two rows."""
    low = jnp.arange(blocks, dtype=jnp.int32) * queries
    is_there = jnp.arange(starts.shape[0] - 1) < count[0]
    ended = jnp.logical_and(is_there, starts[1:] <= low[:, None])
    begun = jnp.logical_and(is_there, starts[:-1] < low[:, None] + queries)
    return jnp.stack([ended.sum(1), begun.sum(1)]).astype(jnp.int32)
