"""Attention of one query a sequence by a kernel for TPUs, with keys in pages (PagedAttention)."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import minijax.numpy as jnp
from minijax import lax
from minijax.api.jit import jit
from minijax.api.shapes import ShapeDtypeStruct
from minijax.base.dtypes import DTypeLike
from minijax.kernels.blocks import BlockSpec, PrefetchScalarGridSpec
from minijax.kernels.call import pallas_call
from minijax.kernels.grid import num_programs, program_id
from minijax.kernels.memory import MemorySpace, SemaphoreType, TpuMemorySpace
from minijax.kernels.operations.copies import make_async_copy, run_together
from minijax.kernels.operations.helpers import dslice, when
from minijax.kernels.ops.tpu_scores import MASKED, Scores, Sums
from minijax.kernels.parameters import TpuParams
from minijax.run.arrays.array import Array

_HIGHEST_INT8 = 127.5


class QuantizedTensor(NamedTuple):
    """Holds small integers, and the factors by which they are multiplied, one a row.

    Attributes:
      weight: array of int8.
      scales: the highest absolute value of each row of the array that is meant.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu.paged_attention import quantization_utils as quantized
        >>> tensor = quantized.quantize_to_int8(jnp.array([[0.5, 1.0]]))
        >>> tensor.weight.dtype, tensor.scales.shape
        (dtype('int8'), (1, 1))
    """

    weight: Any
    scales: Any


def get_quantization_scales(x: Array) -> Array:
    """Returns the highest absolute value of each row of an array, whose last axis has one element then.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu.paged_attention import quantization_utils as quantized
        >>> quantized.get_quantization_scales(jnp.array([[1.0, -4.0], [2.0, 3.0]]))
        Array([[4.],
               [3.]], dtype=float32)
    """
    return jnp.max(jnp.abs(x), axis=-1, keepdims=True)


def to_int8(x: Array, h: Array) -> Array:
    """Returns an array as small integers.

    Args:
      x: array.
      h: the highest absolute values.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu.paged_attention import quantization_utils as quantized
        >>> quantized.to_int8(jnp.array([[0.5, -1.0]]), jnp.array([[1.0]]))
        Array([[  64, -128]], dtype=int8)
    """
    return jnp.clip(jnp.rint(x * (_HIGHEST_INT8 / h)), -128, 127).astype(jnp.int8)


def from_int8(x: Array, h: Array, dtype: DTypeLike = jnp.bfloat16) -> Array:
    """Returns the array that small integers mean.

    Args:
      x: the integers.
      h: the highest absolute values.
      dtype: dtype to which the integers are converted first.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu.paged_attention import quantization_utils as quantized
        >>> quantized.from_int8(jnp.array([[127]], jnp.int8), jnp.array([[2.0]]), jnp.float32).round(1)
        Array([[2.]], dtype=float32)
    """
    return x.astype(dtype) * h / _HIGHEST_INT8


def quantize_to_int8(x: Array) -> QuantizedTensor:
    """Returns an array as a `QuantizedTensor`.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu.paged_attention import quantization_utils
        >>> quantization_utils.quantize_to_int8(jnp.array([[0.5, 1.0, -1.0]])).weight
        Array([[  64,  127, -128]], dtype=int8)
    """
    scales = get_quantization_scales(x)
    return QuantizedTensor(to_int8(x, scales), scales)


def unquantize_from_int8(x: QuantizedTensor, dtype: DTypeLike = jnp.bfloat16) -> Array:
    """Returns the array that a `QuantizedTensor` means. See `from_int8`.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu.paged_attention import quantization_utils as quantized
        >>> tensor = quantized.quantize_to_int8(jnp.array([[0.5, 1.0]]))
        >>> quantized.unquantize_from_int8(tensor, jnp.float32).round(1)
        Array([[0.5, 1. ]], dtype=float32)
    """
    return from_int8(x.weight, x.scales, dtype)


def grouped_query_attention_reference(
    queries: Array, k_pages: Array, v_pages: Array, seq_lens: Array, soft_cap: float | None = None, debug: bool = False
) -> Array:
    """Computes attention of one query a head by operations of XLA.

    Args:
      queries: array of the shape (batch, heads, head size).
      k_pages: keys, of the shape (batch, heads of keys, keys, head size).
      v_pages: values, of the shape of the keys.
      seq_lens: numbers of each sequence's keys, of the shape (batch,).
      soft_cap: bound that scores approach; None: no bound.
      debug: ignored.
    """
    (batch, heads, size), kv_heads = queries.shape, k_pages.shape[1]
    grouped = queries.reshape(batch, kv_heads, heads // kv_heads, size)
    scores = jnp.einsum("bhgd,bhkd->bhgk", grouped.astype(jnp.float32), k_pages.astype(jnp.float32))
    if soft_cap is not None:
        scores = jnp.tanh(scores / soft_cap) * soft_cap
    seen = jnp.arange(k_pages.shape[2])[None, :] < seq_lens[:, None]
    scores = jnp.where(seen[:, None, None], scores, MASKED)
    shares = jnp.exp(scores - jnp.max(scores, -1, keepdims=True))
    shares = shares / jnp.sum(shares, -1, keepdims=True)
    out = jnp.einsum("bhgk,bhkd->bhgd", shares, v_pages.astype(jnp.float32))
    return out.reshape(queries.shape).astype(queries.dtype)


# ---- the kernel ----------------------------------------------------------------------------------------


class _Kernel(NamedTuple):
    """The kernel, over the grid (batch, heads of keys, blocks of pages), and which of its arrays have factors."""

    pages: int  # of a block
    page_size: int
    per_sequence: int  # pages of a sequence
    mask_value: float
    cap: float | None
    has_factors: tuple[bool, bool]

    def __call__(self, lengths_ref: Any, table_ref: Any, q_ref: Any, *refs: Any) -> None:
        count = 2 + sum(self.has_factors)
        arrays, (o_ref, *rest) = refs[:count], refs[count:]
        buffers, semaphore, sums = rest[:count], rest[count], Sums(*rest[count + 1 :])
        step, keys = program_id(2), self.pages * self.page_size
        length = lengths_ref[program_id(0)]

        @when(step == 0)
        def _start():
            sums.start()

        @when(step * keys < length)
        def _add():
            self._copy(table_ref, arrays, buffers, semaphore)
            loaded = iter([ref[...] for ref in buffers])
            k, v = (self._values(loaded, has) for has in self.has_factors)
            q = q_ref[...].astype(jnp.float32)
            shape = (q.shape[0], keys)
            seen = step * keys + lax.broadcasted_iota(jnp.int32, shape, 1) < length
            # Rows past the end may hold anything, and zero times that may be no number.
            there = step * keys + lax.broadcasted_iota(jnp.int32, v.shape, 0) < length
            scores = Scores.of(q, k, seen=seen, mask_value=self.mask_value, cap=self.cap)
            sums.add(scores, jnp.where(there, v, 0.0))

        @when(step == num_programs(2) - 1)
        def _finish():
            sums.finish(o_ref, None)

    def _copy(self, table_ref: Any, arrays: Any, buffers: Any, semaphore: Any) -> None:
        """Copies the pages of a block, all at once."""
        first = program_id(0) * self.per_sequence + program_id(2) * self.pages
        copies = []
        for page in range(self.pages):
            number = table_ref[first + page]
            rows = dslice(page * self.page_size, self.page_size)
            for array, buffer in zip(arrays, buffers, strict=True):
                copies.append(make_async_copy(array.at[program_id(1), number], buffer.at[rows], semaphore))
        run_together(copies)

    @staticmethod
    def _values(loaded: Any, has_factors: bool) -> Any:
        found = next(loaded).astype(jnp.float32)
        return found * (next(loaded) / _HIGHEST_INT8) if has_factors else found


def _check(q: Array, k: Array, v: Array, lengths: Array, table: Array, pages: int, megacore_mode: str | None) -> None:
    """Raises ValueError for operands that do not fit."""
    (batch, heads, size), kv_heads = q.shape, k.shape[0]
    errors = [
        (k.shape != v.shape, f"k_pages and v_pages must have the same shape. Got {k.shape} and {v.shape}"),
        (heads % kv_heads, f"Number of Q heads must be divisible by number of KV heads. Got {heads} and {kv_heads}."),
        (size != k.shape[-1], f"head_dim of Q must be the same as that of K/V. Got {size} and {k.shape[-1]}."),
        (
            table.shape[1] % pages,
            f"pages_per_compute_block must be divisible by pages per sequence. Got {pages} and {table.shape[1]}.",
        ),
        (lengths.shape != (batch,), "`lengths` and `q` must have the same batch size"),
        (table.shape[0] != batch, "`page_indices` and `q` must have the same batch size"),
        (lengths.dtype != jnp.int32, f"The dtype of `lengths` must be int32. Got {lengths.dtype}"),
        (megacore_mode not in ("kv_head", "batch", None), "megacore_mode must be one of ['kv_head', 'batch', None]"),
        (
            megacore_mode == "kv_head" and kv_heads % 2,
            "number of KV heads must be even when megacore_mode is 'kv_head'",
        ),
        (megacore_mode == "batch" and batch % 2, "batch size must be even when megacore_mode is 'batch'"),
    ]
    for is_wrong, text in errors:
        if is_wrong:
            raise ValueError(text)


@functools.partial(
    jit,
    static_argnames=[
        "pages_per_compute_block",
        "attn_logits_soft_cap",
        "mask_value",
        "megacore_mode",
        "inline_seq_dim",
    ],
)
def paged_attention(
    q: Array,
    k_pages: Array | QuantizedTensor,
    v_pages: Array | QuantizedTensor,
    lengths: Array,
    page_indices: Array,
    *,
    mask_value: float = MASKED,
    attn_logits_soft_cap: float | None = None,
    pages_per_compute_block: int,
    megacore_mode: str | None = None,
    inline_seq_dim: bool = True,
) -> Array:
    """Computes attention of one query a head, with keys in pages that a table names, by a kernel for TPUs.

    Args:
      q: queries, of the shape (batch, heads, head size). They have to be scaled.
      k_pages: keys, of the shape (heads of keys, pages, page size, head size), or a `QuantizedTensor`.
      v_pages: values, of the shape of the keys.
      lengths: numbers of each sequence's keys, of the shape (batch,), int32.
      page_indices: numbers of each sequence's pages, of the shape (batch, pages of a sequence), int32.
      mask_value: score of keys that are not seen.
      attn_logits_soft_cap: bound that scores approach, by a hyperbolic tangent; None: no bound.
      pages_per_compute_block: number of pages that are worked on at once.
      megacore_mode: which axis is divided among the cores of a chip: "kv_head", "batch", or None.
      inline_seq_dim: ignored: the blocks of a sequence are an axis of the grid.

    Returns:
      An array of the shape and dtype of `q`; zeros for sequences without keys.

    Raises ValueError for operands that do not fit.
    """
    arrays, specs = [], []
    factors = []
    for pages in (k_pages, v_pages):
        is_quantized = isinstance(pages, QuantizedTensor)
        factors.append(is_quantized)
        weight = pages.weight if is_quantized else pages
        arrays.append(weight)
        if is_quantized:
            arrays.append(jnp.broadcast_to(pages.scales.astype(jnp.float32), weight.shape))
    k, v = arrays[0], arrays[1 + factors[0]]
    _check(q, k, v, lengths, page_indices, pages_per_compute_block, megacore_mode)
    (batch, heads, size), (kv_heads, _, page_size, _) = q.shape, k.shape
    group, per_sequence = heads // kv_heads, page_indices.shape[1]
    kernel = _Kernel(
        pages_per_compute_block, page_size, per_sequence, mask_value, attn_logits_soft_cap, (factors[0], factors[1])
    )
    specs = [BlockSpec((None, None, group, size), lambda b, h, i, *_: (b, h, 0, 0))]
    rows = pages_per_compute_block * page_size
    grid_spec = PrefetchScalarGridSpec(
        2,
        (batch, kv_heads, per_sequence // pages_per_compute_block),
        [*specs, *[BlockSpec(memory_space=MemorySpace.ANY)] * len(arrays)],
        specs[0],
        [
            *[TpuMemorySpace.VMEM((rows, size), a.dtype) for a in arrays],
            SemaphoreType.DMA(()),
            *Sums.scratch(group, size),
        ],
    )
    semantics = {
        "kv_head": ("arbitrary", "parallel"),
        "batch": ("parallel", "arbitrary"),
        None: ("arbitrary", "arbitrary"),
    }
    call = pallas_call(
        kernel,
        ShapeDtypeStruct((batch, kv_heads, group, size), q.dtype),
        grid_spec=grid_spec,
        compiler_params=TpuParams(dimension_semantics=(*semantics[megacore_mode], "arbitrary")),
        name="paged_attention",
    )
    found = call(lengths, page_indices.reshape(-1), q.reshape(batch, kv_heads, group, size), *arrays)
    return found.reshape(q.shape)
