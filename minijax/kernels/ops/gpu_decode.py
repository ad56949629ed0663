"""Attention of one query a sequence by kernels for GPUs: keys in a row (decoding), or in pages (PagedAttention).

The keys of a sequence are divided among several programs, whose results are put together afterwards.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from math import sqrt
from typing import Any, NamedTuple

import minijax.numpy as jnp
from minijax import lax
from minijax.api.jit import jit
from minijax.api.shapes import ShapeDtypeStruct
from minijax.kernels.blocks import BlockSpec
from minijax.kernels.call import pallas_call
from minijax.kernels.grid import program_id
from minijax.kernels.operations.asm import dot
from minijax.kernels.operations.helpers import cdiv, next_power_of_2
from minijax.kernels.operations.masked import load
from minijax.kernels.ops.gpu_tiles import MASKED, Rows
from minijax.kernels.parameters import TritonParams
from minijax.run.arrays.array import Array


class _Parts(NamedTuple):
    """How the keys of a sequence are divided: how many a program has, and how many it reads at once."""

    splits: int
    size: int
    step: int

    @classmethod
    def of(cls, length: int, splits: int, step: int) -> _Parts:
        step = next_power_of_2(min(step, length))
        return cls(splits, cdiv(cdiv(length, splits), step) * step, step)


class _Query(NamedTuple):
    """The shape of queries, (batch, heads of keys, queries a head of keys, head size), and a kernel's share of them."""

    batch: int
    kv_heads: int
    group: int
    head_dim: int
    block_h: int

    @property
    def grid(self) -> tuple[int, int]:
        return self.batch * self.kv_heads, cdiv(self.group, self.block_h)

    def spec(self, *sizes: int | None, split: bool = False) -> BlockSpec:
        """The block of an array of the shape (batch, heads of keys, [splits,] *sizes); the first size is cut."""
        dims = [None, None, *[None] * split, self.block_h, *sizes]

        def at(n, h, s):
            return (*self.place(n), *[s] * split, h, *[0] * len(sizes))

        return BlockSpec(dims, at)

    def place(self, n: Any) -> tuple[Any, Any]:
        """The sequence and the head of keys that a program works on."""
        return lax.div(n, jnp.int32(self.kv_heads)), lax.rem(n, jnp.int32(self.kv_heads))


def _attend(
    q: Any, bounds: tuple[Any, Any], parts: _Parts, scores_of: Callable[[Any, Any, Any], Any], value_of: Callable
) -> tuple[Any, Any, Any]:
    """The sum of values, the sum of powers, and the highest score of a program's keys.

    `scores_of(q, first, positions)` has the scores of the keys from the position `first` on, `value_of(shares, first,
    positions)` the sum of their values.
    """
    first = jnp.maximum(program_id(2) * parts.size, bounds[0] // parts.step * parts.step)
    last = jnp.minimum((program_id(2) + 1) * parts.size, bounds[1])

    def add(i, carry):
        out, highest, total = carry
        start = first + i * parts.step
        positions = start + lax.iota(jnp.int32, parts.step)
        seen = (positions >= bounds[0]) & (positions < bounds[1])
        scores = jnp.where(seen[None, :], scores_of(q, start, positions), MASKED)
        new = jnp.maximum(highest, jnp.max(scores, 1))
        factor, powers = jnp.exp(highest - new), jnp.exp(scores - new[:, None])
        return out * factor[:, None] + value_of(powers, start, positions), new, total * factor + jnp.sum(powers, 1)

    rows = q.shape[0]
    start = jnp.zeros(q.shape, jnp.float32), jnp.full((rows,), MASKED, jnp.float32), jnp.zeros((rows,), jnp.float32)
    steps = jnp.maximum((last - first + parts.step - 1) // parts.step, 0)
    out, highest, total = lax.fori_loop(0, steps, add, start)
    return out, total, highest


def _write(query: _Query, found: tuple, refs: tuple) -> None:
    rows = Rows(query.block_h, query.group, first=program_id(1) * query.block_h)
    (out, total, highest), (o_ref, l_ref, m_ref) = found, refs
    rows.write(o_ref, out, query.head_dim)
    rows.write_numbers(l_ref, total)
    rows.write_numbers(m_ref, highest)


def _run(query: _Query, parts: _Parts, kernel: Callable, ins: list, operands: list, options: dict) -> tuple:
    """Runs a kernel and puts the parts together: sums of values, sums of powers, highest scores."""
    shape = query.batch, query.kv_heads, parts.splits, query.group
    out, total, highest = pallas_call(
        kernel,
        [ShapeDtypeStruct((*shape, *tail), jnp.float32) for tail in ((query.head_dim,), (), ())],
        grid=(*query.grid, parts.splits),
        in_specs=[query.spec(query.head_dim), *ins],
        out_specs=[query.spec(query.head_dim, split=True), *[query.spec(split=True)] * 2],
        **options,
    )(*operands)
    most = jnp.max(highest, 2)
    factor = jnp.exp(highest - most[:, :, None])
    return jnp.sum(out * factor[..., None], 2), jnp.sum(total * factor, 2), most


def _finished(query: _Query, found: tuple, dtype: Any, normalize: bool) -> tuple[Any, tuple[Any, Any]]:
    """The result and its sums in the shape of the queries."""
    out, total, highest = found
    if normalize:
        out = out / jnp.where(total == 0, 1, total)[..., None]
    shape = query.batch, query.kv_heads * query.group
    return out.reshape(*shape, query.head_dim).astype(dtype), (total.reshape(shape), highest.reshape(shape))


# ---- keys in a row -------------------------------------------------------------------------------------


def _decode(
    q: Array,
    k: Array,
    v: Array,
    start_idx: Any,
    kv_seq_len: Any,
    sm_scale: float | None,
    block_h: int,
    block_k: int,
    k_splits: int,
    num_warps: int | None,
    num_stages: int,
    interpret: bool,
    debug: bool,
    normalize_output: bool,
) -> tuple:
    """Attention of grouped queries."""
    (batch, heads, head_dim), (_, length, kv_heads, _) = q.shape, k.shape
    if heads % kv_heads or k.shape != v.shape or (batch, head_dim) != (k.shape[0], k.shape[3]):
        raise ValueError(
            f"attention: queries {q.shape}, keys {k.shape} and values {v.shape} do not fit: the number of queries' "
            "heads is a multiple of that of keys' heads, batch and head size are equal"
        )
    query = _Query(batch, kv_heads, heads // kv_heads, head_dim, max(16, next_power_of_2(min(block_h, heads))))
    parts = _Parts.of(length, k_splits, block_k)
    scale = 1 / sqrt(head_dim) if sm_scale is None else sm_scale

    def kernel(q_ref, k_ref, v_ref, start_ref, end_ref, *outs):
        rows = Rows(query.block_h, query.group, first=program_id(1) * query.block_h)
        at = lambda start: Rows(parts.step, length, start)  # noqa: E731
        scores = lambda q, start, _: dot(q, at(start).read(k_ref, head_dim).T) * jnp.float32(scale)  # noqa: E731

        def values(powers, start, _):
            v = at(start).read(v_ref, head_dim)
            return dot(powers.astype(v.dtype), v)

        bounds = start_ref[...], end_ref[...]
        _write(query, _attend(rows.read(q_ref, head_dim), bounds, parts, scores, values), outs)

    def of_keys(n, h, s):
        sequence, head = query.place(n)
        return sequence, 0, head, 0

    keys = BlockSpec((None, length, None, head_dim), of_keys)
    bound = BlockSpec((None,), lambda n, h, s: (query.place(n)[0],))
    bounds = _bound(start_idx, 0, batch), jnp.minimum(_bound(kv_seq_len, length, batch), length)
    params = TritonParams(num_warps=num_warps or 4, num_stages=num_stages)
    options = dict(interpret=interpret, debug=debug, name="decode_attention", compiler_params=params)
    grouped = q.reshape(batch, kv_heads, query.group, head_dim)
    found = _run(query, parts, kernel, [keys, keys, bound, bound], [grouped, k, v, *bounds], options)
    return _finished(query, found, q.dtype, normalize_output)


def _bound(index: Any, default: int, batch: int) -> Array:
    return jnp.broadcast_to(jnp.asarray(default if index is None else index, jnp.int32), (batch,))


_STATIC = (
    "sm_scale block_h block_k k_splits num_warps num_stages grid interpret debug return_residuals normalize_output"
).split()


@functools.partial(jit, static_argnames=_STATIC)
def mqa(
    q: Array,
    k: Array,
    v: Array,
    start_idx: Any = None,
    kv_seq_len: Any = None,
    sm_scale: float | None = None,
    block_h: int = 16,
    block_k: int = 256,
    k_splits: int = 16,
    num_warps: int | None = None,
    num_stages: int = 2,
    grid: tuple[int, ...] | None = None,
    interpret: bool = False,
    debug: bool = False,
    return_residuals: bool = False,
    normalize_output: bool = True,
) -> Any:
    """Computes attention of one query a head, with keys that all heads share, by a kernel for GPUs.

    Args:
      q: queries, of the shape (batch, heads, head size).
      k: keys, of the shape (batch, keys, head size).
      v: values, of the shape of the keys.
      start_idx: number of the first key that is seen, one for all or one a sequence; 0 by default.
      kv_seq_len: number of the keys; all by default.
      sm_scale: factor of the scores; the inverse root of the head size by default.
      block_h: number of heads that a program works on.
      block_k: number of keys that it reads at once.
      k_splits: number of parts into which the keys are divided, each for a program.
      num_warps: number of warps of a program.
      num_stages: number of stages into which loops are pipelined.
      grid: ignored; it follows from the numbers above.
      interpret: whether the kernel is interpreted, on any device.
      debug: whether to print the kernel.
      return_residuals: whether to return sums of powers and highest scores, too.
      normalize_output: whether the result is divided by the sums of powers.

    Returns:
      An array of the shape and dtype of `q`; with `return_residuals` a pair of it and of two arrays of the shape
      (batch, heads).

    Raises ValueError for shapes that do not fit.

    Example:
        >>> from minijax.experimental.pallas.ops.gpu import decode_attention
        >>> q, k = jnp.ones((1, 8, 16)), jnp.ones((1, 64, 16))
        >>> decode_attention.mqa(q, k, k, kv_seq_len=20, interpret=True).shape
        (1, 8, 16)
    """
    return gqa(
        q,
        k[:, :, None],
        v[:, :, None],
        start_idx,
        kv_seq_len,
        sm_scale,
        block_h,
        block_k,
        k_splits,
        num_warps,
        num_stages,
        grid,
        interpret,
        debug,
        return_residuals,
        normalize_output,
    )


@functools.partial(jit, static_argnames=_STATIC)
def gqa(
    q: Array,
    k: Array,
    v: Array,
    start_idx: Any = None,
    kv_seq_len: Any = None,
    sm_scale: float | None = None,
    block_h: int = 16,
    block_k: int = 128,
    k_splits: int = 16,
    num_warps: int | None = None,
    num_stages: int = 2,
    grid: tuple[int, ...] | None = None,
    interpret: bool = False,
    debug: bool = False,
    return_residuals: bool = False,
    normalize_output: bool = True,
) -> Any:
    """Computes attention of one query a head, with keys that groups of heads share, by a kernel for GPUs.

    Args:
      q: queries, of the shape (batch, heads, head size).
      k: keys, of the shape (batch, keys, heads of keys, head size).
      v: values, of the shape of the keys.
      start_idx: number of the first key that is seen, one for all or one a sequence; 0 by default.
      kv_seq_len: number of the keys; all by default.
      sm_scale: factor of the scores; the inverse root of the head size by default.
      block_h: number of heads that a program works on.
      block_k: number of keys that it reads at once.
      k_splits: number of parts into which the keys are divided, each for a program.
      num_warps: number of warps of a program.
      num_stages: number of stages into which loops are pipelined.
      grid: ignored; it follows from the numbers above.
      interpret: whether the kernel is interpreted, on any device.
      debug: whether to print the kernel.
      return_residuals: whether to return sums of powers and highest scores, too.
      normalize_output: whether the result is divided by the sums of powers.

    Returns:
      As `mqa`.

    Raises ValueError for shapes that do not fit.

    Example:
        >>> from minijax.experimental.pallas.ops.gpu import decode_attention
        >>> q, k = jnp.ones((1, 8, 16)), jnp.ones((1, 64, 2, 16))
        >>> decode_attention.gqa(q, k, k, interpret=True).shape
        (1, 8, 16)
    """
    found = _decode(
        q,
        k,
        v,
        start_idx,
        kv_seq_len,
        sm_scale,
        block_h,
        block_k,
        k_splits,
        num_warps,
        num_stages,
        interpret,
        debug,
        normalize_output,
    )
    return found if return_residuals else found[0]


@functools.partial(jit, static_argnames=["sm_scale", "return_residuals", "normalize_output"])
def gqa_reference(
    q: Array,
    k: Array,
    v: Array,
    start_idx: Any = None,
    kv_seq_len: Any = None,
    sm_scale: float | None = None,
    return_residuals: bool = False,
    normalize_output: bool = True,
) -> Any:
    """Computes `gqa` by operations of XLA. Its arguments are those of `gqa` without the options of the kernel.

    Example:
        >>> from minijax.experimental.pallas.ops.gpu import decode_attention
        >>> q, k = jnp.zeros((1, 2, 4)), jnp.ones((1, 2, 1, 4))  # equal scores: the mean of the values
        >>> v = jnp.array([1.0, 3.0])[None, :, None, None] * jnp.ones(4)
        >>> print(decode_attention.gqa_reference(q, k, v)[0, 0])
        [2. 2. 2. 2.]
    """
    (batch, heads, head_dim), kv_heads = q.shape, k.shape[2]
    grouped = q.reshape(batch, kv_heads, heads // kv_heads, head_dim)
    scores = jnp.einsum("bhgd,bkhd->bhgk", grouped, k, preferred_element_type=jnp.float32)
    scores = scores * (1 / sqrt(head_dim) if sm_scale is None else sm_scale)
    positions = jnp.arange(k.shape[1])[None, :]
    start, end = _bound(start_idx, 0, batch), _bound(kv_seq_len, k.shape[1], batch)
    seen = (positions >= start[:, None]) & (positions < end[:, None])
    scores = jnp.where(seen[:, None, None], scores, MASKED)
    highest = jnp.max(scores, -1)
    powers = jnp.exp(scores - highest[..., None])
    total = jnp.sum(powers, -1)
    shares = powers / total[..., None] if normalize_output else powers
    out = jnp.einsum("bhgk,bkhd->bhgd", shares.astype(v.dtype), v).reshape(q.shape)
    return (out, (total.reshape(batch, heads), highest.reshape(batch, heads))) if return_residuals else out


@functools.partial(jit, static_argnames=["sm_scale", "return_residuals", "normalize_output"])
def mqa_reference(
    q: Array,
    k: Array,
    v: Array,
    start_idx: Any = None,
    kv_seq_len: Any = None,
    sm_scale: float | None = None,
    return_residuals: bool = False,
    normalize_output: bool = True,
) -> Any:
    """Computes `mqa` by operations of XLA. Its arguments are those of `mqa` without the options of the kernel.

    Example:
        >>> from minijax.experimental.pallas.ops.gpu import decode_attention
        >>> q, k = jnp.zeros((1, 2, 4)), jnp.ones((1, 2, 4))  # equal scores: the mean of the values
        >>> decode_attention.mqa_reference(q, k, jnp.array([[[1.0] * 4, [3.0] * 4]])).ravel()[:2]
        Array([2., 2.], dtype=float32)
    """
    k, v = k[:, :, None], v[:, :, None]
    return gqa_reference(q, k, v, start_idx, kv_seq_len, sm_scale, return_residuals, normalize_output)


@functools.partial(jit, static_argnames=["sm_scale"])
def mha_reference(
    q: Array, k: Array, v: Array, start_idx: Any = None, kv_seq_len: Any = None, sm_scale: float | None = None
) -> Array:
    """Computes attention of one query a head, with keys of its own for each, by operations of XLA. See `gqa`.

    Example:
        >>> from minijax.experimental.pallas.ops.gpu import decode_attention
        >>> q, k = jnp.zeros((1, 1, 4)), jnp.ones((1, 2, 1, 4))  # equal scores: the mean of the values
        >>> v = jnp.array([1.0, 3.0])[None, :, None, None] * jnp.ones(4)
        >>> print(decode_attention.mha_reference(q, k, v)[0, 0])
        [2. 2. 2. 2.]
    """
    return gqa_reference(q, k, v, start_idx, kv_seq_len, sm_scale)


# ---- keys in pages -------------------------------------------------------------------------------------


class _Paged(NamedTuple):
    """A kernel for keys in pages: which factors there are, of keys and of values, and the bound of scores."""

    query: _Query
    parts: _Parts
    page_size: int
    has_factors: tuple[bool, bool]
    cap: float | None

    def __call__(self, q_ref: Any, k_ref: Any, v_ref: Any, table_ref: Any, end_ref: Any, *refs: Any) -> None:
        query, count = self.query, sum(self.has_factors)
        given = iter(refs[:count])
        k_factors, v_factors = [next(given) if has else None for has in self.has_factors]
        rows = Rows(query.block_h, query.group, first=program_id(1) * query.block_h)
        q, end = rows.read(q_ref, query.head_dim), end_ref[...]

        def read(ref, factors, positions):
            """Rows of keys or values in the pages of the sequence, and their factors."""
            there = positions < end  # the table may have anything after that
            page = load(table_ref.at[positions // self.page_size], mask=there, other=0)
            places = page * self.page_size + positions % self.page_size
            columns = lax.iota(jnp.int32, next_power_of_2(query.head_dim))
            mask = there[:, None] & (columns < query.head_dim)[None, :]
            found = load(ref.at[places[:, None], columns[None, :]], mask=mask, other=0).astype(q_ref.dtype)
            return found, 1.0 if factors is None else load(factors.at[places], mask=there, other=0.0)[None, :]

        def scores(q, _, positions):
            k, factor = read(k_ref, k_factors, positions)
            found = dot(q, k.T) * factor
            return found if self.cap is None else jnp.tanh(found / self.cap) * self.cap

        def values(powers, _, positions):
            v, factor = read(v_ref, v_factors, positions)
            return dot((powers * factor).astype(v.dtype), v)

        _write(query, _attend(q, (0, end), self.parts, scores, values), refs[count:])


@functools.partial(
    jit,
    static_argnames="block_h pages_per_compute_block k_splits num_warps num_stages interpret debug mask_value "
    "attn_logits_soft_cap".split(),
)
def paged_attention(
    q: Array,
    k_pages: Array,
    v_pages: Array,
    block_tables: Array,
    lengths: Array | None,
    k_scales_pages: Array | None = None,
    v_scales_pages: Array | None = None,
    *,
    block_h: int = 16,
    pages_per_compute_block: int = 8,
    k_splits: int = 16,
    num_warps: int = 8,
    num_stages: int = 2,
    interpret: bool = False,
    debug: bool = False,
    mask_value: float = MASKED,
    attn_logits_soft_cap: float | None = None,
) -> Array:
    """Computes attention of one query a head, with keys in pages that a table names, by a kernel for GPUs.

    Args:
      q: queries, of the shape (batch, heads, head size). They have to be scaled.
      k_pages: keys, of the shape (heads of keys, pages, page size, head size).
      v_pages: values, of the shape of the keys.
      block_tables: numbers of each sequence's pages, of the shape (batch, pages of a sequence).
      lengths: numbers of each sequence's keys, of the shape (batch,). None: as many as its pages hold.
      k_scales_pages: factors of the keys, of the shape (heads of keys, pages, page size).
      v_scales_pages: factors of the values.
      block_h: number of heads that a program works on.
      pages_per_compute_block: number of pages that it reads at once.
      k_splits: number of parts into which the pages of a sequence are divided, each for a program.
      num_warps: number of warps of a program.
      num_stages: number of stages into which loops are pipelined.
      interpret: whether the kernel is interpreted, on any device.
      debug: whether to print the kernel.
      mask_value: score of keys that are not seen; only sequences without keys depend on it.
      attn_logits_soft_cap: bound that scores approach, by a hyperbolic tangent; None: no bound.

    Returns:
      An array of the shape and dtype of `q`.

    Raises ValueError for shapes that do not fit.

    Example:
        >>> from minijax.experimental.pallas.ops.gpu import paged_attention
        >>> pages, table = jnp.ones((2, 8, 16, 32)), jnp.array([[3, 1], [0, 7]])
        >>> q, lengths = jnp.ones((2, 4, 32)), jnp.array([20, 32])
        >>> paged_attention.paged_attention(q, pages, pages, table, lengths, interpret=True).shape
        (2, 4, 32)
    """
    (batch, heads, head_dim), (kv_heads, pages, page_size, _) = q.shape, k_pages.shape
    if heads % kv_heads or k_pages.shape != v_pages.shape or k_pages.shape[3] != head_dim:
        raise ValueError(
            "paged_attention: Number of Q heads must be divisible by number of KV heads, and head sizes are equal. Got "
            f"queries {q.shape}, pages of keys {k_pages.shape} and of values {v_pages.shape}"
        )
    if block_tables.shape[0] != batch:
        raise ValueError(f"paged_attention: block_tables {block_tables.shape} has no row for each of {batch} queries")
    length = block_tables.shape[1] * page_size
    query = _Query(batch, kv_heads, heads // kv_heads, head_dim, max(16, next_power_of_2(min(block_h, heads))))
    parts = _Parts.of(length, k_splits, pages_per_compute_block * page_size)
    scales = [s for s in (k_scales_pages, v_scales_pages) if s is not None]

    kernel = _Paged(
        query, parts, page_size, (k_scales_pages is not None, v_scales_pages is not None), attn_logits_soft_cap
    )
    flat = lambda x: x.reshape(kv_heads, pages * page_size, *x.shape[3:])  # noqa: E731
    all_pages = BlockSpec((None, pages * page_size, head_dim), lambda n, h, s: (query.place(n)[1], 0, 0))
    factors = BlockSpec((None, pages * page_size), lambda n, h, s: (query.place(n)[1], 0))
    table = BlockSpec((None, block_tables.shape[1]), lambda n, h, s: (query.place(n)[0], 0))
    bound = BlockSpec((None,), lambda n, h, s: (query.place(n)[0],))
    params = TritonParams(num_warps=num_warps, num_stages=num_stages)
    options = dict(interpret=interpret, debug=debug, name="paged_attention", compiler_params=params)
    grouped = q.reshape(batch, kv_heads, query.group, head_dim)
    operands = [
        grouped,
        flat(k_pages),
        flat(v_pages),
        block_tables,
        jnp.minimum(_bound(lengths, length, batch), length),
        *map(flat, scales),
    ]
    ins = [all_pages, all_pages, table, bound, *[factors] * len(scales)]
    return _finished(query, _run(query, parts, kernel, ins, operands, options), q.dtype, True)[0]


@functools.partial(jit, static_argnames=["mask_value", "attn_logits_soft_cap"])
def paged_attention_reference(
    q: Array,
    k: Array,
    v: Array,
    lengths: Array,
    *,
    mask_value: float = MASKED,
    attn_logits_soft_cap: float | None = None,
) -> Array:
    """Computes attention of one query a head by operations of XLA.

    Args:
      q: queries, of the shape (batch, heads, head size). They have to be scaled.
      k: keys, of the shape (batch, keys, heads of keys, head size).
      v: values, of the shape of the keys.
      lengths: numbers of each sequence's keys, of the shape (batch,).
      mask_value: score of keys that are not seen.
      attn_logits_soft_cap: bound that scores approach; None: no bound.

    Example:
        >>> from minijax.experimental.pallas.ops.gpu import paged_attention
        >>> q, k = jnp.zeros((1, 1, 4)), jnp.ones((1, 2, 1, 4))  # equal scores: the mean of the values that are seen
        >>> v = jnp.array([1.0, 3.0])[None, :, None, None] * jnp.ones(4)
        >>> paged_attention.paged_attention_reference(q, k, v, jnp.array([1]))[0, 0, 0]
        Array(1., dtype=float32)
    """
    (batch, heads, head_dim), kv_heads = q.shape, k.shape[2]
    grouped = q.reshape(batch, kv_heads, heads // kv_heads, head_dim)
    scores = jnp.einsum("bhgd,bkhd->bhgk", grouped, k, preferred_element_type=jnp.float32)
    if attn_logits_soft_cap is not None:
        scores = jnp.tanh(scores / attn_logits_soft_cap) * attn_logits_soft_cap
    seen = jnp.arange(k.shape[1])[None, :] < lengths[:, None]
    scores = jnp.where(seen[:, None, None], scores, mask_value)
    shares = jnp.exp(scores - jnp.max(scores, -1, keepdims=True))
    shares = shares / jnp.sum(shares, -1, keepdims=True)
    return jnp.einsum("bhgk,bkhd->bhgd", shares.astype(v.dtype), v).reshape(q.shape).astype(q.dtype)
