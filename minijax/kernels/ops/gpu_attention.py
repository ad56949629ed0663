"""Attention by kernels for GPUs: blocks of queries over blocks of keys, with derivatives (FlashAttention 2)."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import minijax.numpy as jnp
from minijax import lax
from minijax.api.autodiff import vjp
from minijax.api.custom import custom_vjp
from minijax.api.jit import jit
from minijax.api.shapes import ShapeDtypeStruct
from minijax.kernels.blocks import BlockSpec
from minijax.kernels.call import pallas_call
from minijax.kernels.grid import program_id
from minijax.kernels.operations.asm import dot
from minijax.kernels.operations.helpers import cdiv, next_power_of_2
from minijax.kernels.ops.gpu_tiles import LOG2_E, MASKED, Rows
from minijax.kernels.parameters import TritonParams
from minijax.run.arrays.array import Array


@dataclasses.dataclass(frozen=True, slots=True)
class BlockSizes:
    """Sets how many queries and keys the kernels of `mha` work on at once.

    Args:
      block_q: number of queries in the forward pass.
      block_k: number of keys in the forward pass.
      block_q_dkv: number of queries where derivatives by keys and values are computed; these four are needed for
        derivatives.
      block_kv_dkv: number of keys there.
      block_q_dq: number of queries where derivatives by queries are computed.
      block_kv_dq: number of keys there.

    Example:
        >>> from minijax.experimental.pallas.ops.gpu import attention
        >>> attention.BlockSizes(64, 64).has_backward_blocks
        False
    """

    block_q: int
    block_k: int
    block_q_dkv: int | None = None
    block_kv_dkv: int | None = None
    block_q_dq: int | None = None
    block_kv_dq: int | None = None

    @classmethod
    def get_default(cls) -> BlockSizes:
        """The sizes that `mha` uses unless it gets others."""
        return cls(128, 128, 32, 32, 32, 32)

    @property
    def has_backward_blocks(self) -> bool:
        """Whether the sizes for derivatives are given."""
        return None not in (self.block_q_dkv, self.block_kv_dkv, self.block_q_dq, self.block_kv_dq)


def segment_mask(q_segment_ids: Array, kv_segment_ids: Array) -> Array:
    """Returns which queries see which keys: those of the same segment.

    Args:
      q_segment_ids: numbers of the queries' segments; the last axis is that of the queries.
      kv_segment_ids: numbers of the keys' segments.

    Example:
        >>> from minijax.experimental.pallas.ops.gpu import attention
        >>> attention.segment_mask(jnp.array([0, 1]), jnp.array([0, 0]))
        Array([[ True,  True],
               [False, False]], dtype=bool)
    """
    return q_segment_ids[..., :, None] == kv_segment_ids[..., None, :]


@functools.partial(jit, static_argnames=("sm_scale", "causal"))
def mha_reference(
    q: Array, k: Array, v: Array, segment_ids: Array | None, sm_scale: float = 1.0, causal: bool = False
) -> Array:
    """Computes `mha` by operations of XLA, with all scores at once. Its arguments are the first six of `mha`.

    Example:
        >>> from minijax.experimental.pallas.ops.gpu import attention
        >>> q, k = jnp.zeros((1, 2, 1, 4)), jnp.ones((1, 2, 1, 4))  # equal scores: means of the values
        >>> attention.mha_reference(q, k, jnp.array([1.0, 3.0]).reshape(1, 2, 1, 1), None).ravel()
        Array([2., 2.], dtype=float32)
    """
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32)
    seen = jnp.ones((1, 1, *scores.shape[2:]), bool)
    if segment_ids is not None:
        seen = segment_mask(segment_ids, segment_ids)[:, None]
    if causal:
        seen = seen & jnp.tril(jnp.ones(scores.shape[2:], bool))[None, None]
    scores = jnp.where(seen, scores * sm_scale, MASKED)
    shares = jnp.exp(scores - jnp.max(scores, -1, keepdims=True))
    shares = shares / jnp.sum(shares, -1, keepdims=True)
    return jnp.einsum("bhqk,bkhd->bqhd", shares.astype(v.dtype), v)


# ---- kernels -------------------------------------------------------------------------------------------


class _Scores(NamedTuple):
    """How scores of queries and keys are computed, in units of powers of two."""

    sm_scale: float
    causal: bool
    segment_ids_ref: Any  # the segments of all keys, or None

    def of(self, q: Any, k: Any, queries: Rows, keys: Rows) -> Any:
        """The scores, and `MASKED` for what is not seen."""
        scores = dot(q, k.T) * jnp.float32(self.sm_scale * LOG2_E)
        seen = []
        if self.segment_ids_ref is not None:
            ids = [Rows(r.size, r.total, r.numbers[0]).read_numbers(self.segment_ids_ref) for r in (queries, keys)]
            seen.append(segment_mask(*ids))
        if self.causal:
            seen.append(queries.numbers[:, None] >= keys.numbers[None, :])
        if not keys.is_exact:
            seen.append(jnp.broadcast_to(keys.there[None, :], scores.shape))
        for mask in seen:
            scores = jnp.where(mask, scores, MASKED)
        return scores


def mha_forward_kernel(
    q_ref: Any,
    k_ref: Any,
    v_ref: Any,
    segment_ids_ref: Any,
    o_ref: Any,
    *residual_refs: Any,
    sm_scale: float,
    causal: bool,
    block_q: int,
    block_k: int,
    head_dim: int,
) -> None:
    """Computes the results of a block of queries; a kernel, of the grid (blocks of queries, batch, heads).

    Args:
      q_ref: the block of queries.
      k_ref: all keys.
      v_ref: all values.
      segment_ids_ref: the segments of all keys, or None.
      o_ref: reference of the results.
      *residual_refs: one reference of the logarithms to base 2 of the sums of powers, or none.
      sm_scale: factor of the scores.
      causal: whether queries see only keys that are not after them.
      block_q: number of queries.
      block_k: number of keys that are read at once.
      head_dim: size of a query.

    There are as many queries as keys.

    Example:
        >>> import functools
        >>> from minijax.experimental.pallas.ops.gpu import attention
        >>> sizes = dict(block_q=16, block_k=16, head_dim=16)
        >>> kernel = functools.partial(attention.mha_forward_kernel, sm_scale=1.0, causal=False, **sizes)
        >>> f = pl.pallas_call(kernel, jax.ShapeDtypeStruct((16, 16), jnp.float32), grid=(1, 1, 1), interpret=True)
        >>> print(f(jnp.zeros((16, 16)), jnp.ones((16, 16)), jnp.ones((16, 16)), None).mean())
        1.0
    """
    refs = q_ref, k_ref, v_ref, segment_ids_ref, o_ref, *residual_refs
    _forward_kernel(*refs, sizes=(block_q, block_k, head_dim, k_ref.shape[0]), sm_scale=sm_scale, causal=causal)


def _forward_kernel(
    q_ref: Any,
    k_ref: Any,
    v_ref: Any,
    segment_ids_ref: Any,
    o_ref: Any,
    *residual_refs: Any,
    sizes: tuple[int, int, int, int],
    sm_scale: float,
    causal: bool,
) -> None:
    """As `mha_forward_kernel`; `sizes` are block_q, block_k, head_dim and the number of all queries."""
    block_q, block_k, head_dim, q_len = sizes
    kv_len, number = k_ref.shape[0], program_id(0)
    scores_of = _Scores(sm_scale, causal, segment_ids_ref)
    queries = Rows(block_q, q_len, first=number * block_q)
    q = queries.read(q_ref, head_dim)

    def add(i, carry):
        out, last, total = carry
        keys = Rows(block_k, kv_len, i * block_k)
        scores = scores_of.of(q, keys.read(k_ref, head_dim), queries, keys)
        highest = jnp.maximum(last, jnp.max(scores, 1))
        factor, powers = jnp.exp2(last - highest), jnp.exp2(scores - highest[:, None])
        v = keys.read(v_ref, head_dim)
        out = out * factor[:, None] + dot(powers.astype(v.dtype), v)
        return out, highest, total * factor + jnp.sum(powers, 1)

    start = (
        jnp.zeros((block_q, next_power_of_2(head_dim)), jnp.float32),
        jnp.full((block_q,), MASKED, jnp.float32),
        jnp.zeros((block_q,), jnp.float32),
    )
    steps = _last(number, block_q, block_k, kv_len) if causal else cdiv(kv_len, block_k)
    out, highest, total = lax.fori_loop(0, steps, add, start)
    queries.write(o_ref, out / total[:, None], head_dim)
    for ref in residual_refs:
        ref[...] = (highest + jnp.log2(total)).astype(ref.dtype)


def _last(number: Any, block_q: int, block_k: int, kv_len: int) -> Any:
    """The number of blocks of keys that a block of queries sees, if it sees no later ones."""
    return jnp.minimum((number * block_q + block_q + block_k - 1) // block_k, cdiv(kv_len, block_k))


def _shares(q: Any, k: Any, v: Any, do: Any, lse: Any, delta: Any, scores: Any) -> tuple[Any, Any]:
    """The shares of keys in queries, and the derivatives by their scores."""
    shares = jnp.exp2(scores - lse[:, None])
    return shares, shares * (dot(do, v.T) - delta[:, None])


def _dkv_kernel(
    q_ref: Any,
    k_ref: Any,
    v_ref: Any,
    segment_ids_ref: Any,
    do_ref: Any,
    lse_ref: Any,
    delta_ref: Any,
    dk_ref: Any,
    dv_ref: Any,
    *,
    sm_scale: float,
    causal: bool,
    block_q: int,
    block_k: int,
    kv_len: int,
) -> None:
    """Computes the derivatives by a block of keys and values; the grid is (blocks of keys, batch, heads)."""
    (q_len, head_dim), number = q_ref.shape, program_id(0)
    scores_of = _Scores(sm_scale, causal, segment_ids_ref)
    keys = Rows(block_k, kv_len, first=number * block_k)
    k, v = keys.read(k_ref, head_dim), keys.read(v_ref, head_dim)

    def add(i, carry):
        dk, dv = carry
        queries = Rows(block_q, q_len, i * block_q)
        q, do = queries.read(q_ref, head_dim), queries.read(do_ref, head_dim)
        # Powers of queries past the end vanish.
        lse, delta = queries.read_numbers(lse_ref, -MASKED), queries.read_numbers(delta_ref, 0.0)
        shares, by_scores = _shares(q, k, v, do, lse, delta, scores_of.of(q, k, queries, keys))
        return dk + dot(by_scores.astype(q.dtype).T, q), dv + dot(shares.astype(do.dtype).T, do)

    zeros = jnp.zeros(k.shape, jnp.float32)
    first = number * block_k // block_q if causal else 0
    dk, dv = lax.fori_loop(first, cdiv(q_len, block_q), add, (zeros, zeros))
    keys.write(dk_ref, dk * sm_scale, head_dim)
    keys.write(dv_ref, dv, head_dim)


def _dq_kernel(
    q_ref: Any,
    k_ref: Any,
    v_ref: Any,
    segment_ids_ref: Any,
    do_ref: Any,
    lse_ref: Any,
    delta_ref: Any,
    dq_ref: Any,
    *,
    sm_scale: float,
    causal: bool,
    block_q: int,
    block_k: int,
    q_len: int,
) -> None:
    """Computes the derivatives by a block of queries; the grid is (blocks of queries, batch, heads)."""
    (kv_len, head_dim), number = k_ref.shape, program_id(0)
    scores_of = _Scores(sm_scale, causal, segment_ids_ref)
    queries = Rows(block_q, q_len, first=number * block_q)
    q, do = queries.read(q_ref, head_dim), queries.read(do_ref, head_dim)
    lse, delta = queries.read_numbers(lse_ref, -MASKED), queries.read_numbers(delta_ref, 0.0)

    def add(i, dq):
        keys = Rows(block_k, kv_len, i * block_k)
        k, v = keys.read(k_ref, head_dim), keys.read(v_ref, head_dim)
        _, by_scores = _shares(q, k, v, do, lse, delta, scores_of.of(q, k, queries, keys))
        return dq + dot(by_scores.astype(k.dtype), k)

    steps = _last(number, block_q, block_k, kv_len) if causal else cdiv(kv_len, block_k)
    dq = lax.fori_loop(0, steps, add, jnp.zeros(q.shape, jnp.float32))
    queries.write(dq_ref, dq * sm_scale, head_dim)


# ---- calls ---------------------------------------------------------------------------------------------


class _Options(NamedTuple):
    """The arguments of `mha` that are not arrays."""

    sm_scale: float
    causal: bool
    block_sizes: BlockSizes
    backward_pass_impl: str
    num_warps: int | None
    num_stages: int
    grid: Any
    interpret: bool
    debug: bool
    return_residuals: bool

    def call(self, kernel: Any, out: Any, grid: Any, ins: list, outs: Any, name: str, head_dim: int) -> Any:
        """The call of a kernel."""
        warps = self.num_warps or (4 if head_dim <= 64 else 8)
        return pallas_call(
            kernel,
            out,
            grid=grid,
            in_specs=ins,
            out_specs=outs,
            name=name,
            interpret=self.interpret,
            debug=self.debug,
            compiler_params=TritonParams(num_warps=warps, num_stages=self.num_stages),
        )


def _some(size: int, head_dim: int) -> BlockSpec:
    """A block of rows of one head."""
    return BlockSpec((None, size, None, head_dim), lambda i, b, h: (b, i, h, 0))


def _every(size: int, head_dim: int) -> BlockSpec:
    """All rows of one head."""
    return BlockSpec((None, size, None, head_dim), lambda i, b, h: (b, 0, h, 0))


def _ids(segment_ids: Array | None) -> list[BlockSpec | None]:
    return [None if segment_ids is None else BlockSpec((None, segment_ids.shape[1]), lambda i, b, h: (b, 0))]


def _checked(q: Array, k: Array, v: Array, segment_ids: Array | None) -> None:
    if q.ndim != 4 or k.shape != v.shape or (q.shape[0], *q.shape[2:]) != (k.shape[0], *k.shape[2:]):
        raise ValueError(
            f"mha: queries {q.shape}, keys {k.shape} and values {v.shape} must have the shape (batch, length, heads, "
            "head size), and may differ in the length of queries only"
        )
    if segment_ids is not None and not q.shape[1] == k.shape[1] == segment_ids.shape[1]:
        raise ValueError(f"mha: segment_ids {segment_ids.shape} need as many queries {q.shape[1]} as keys {k.shape[1]}")


def _forward(q: Array, k: Array, v: Array, segment_ids: Array | None, options: _Options, keeps_lse: bool) -> Any:
    _checked(q, k, v, segment_ids)
    (batch, q_len, heads, head_dim), kv_len = q.shape, k.shape[1]
    block_q, block_k = min(options.block_sizes.block_q, q_len), min(options.block_sizes.block_k, kv_len)
    block_q, block_k = next_power_of_2(block_q), next_power_of_2(block_k)
    sizes = block_q, block_k, head_dim, q_len
    kernel = functools.partial(_forward_kernel, sizes=sizes, sm_scale=options.sm_scale, causal=options.causal)
    out = [ShapeDtypeStruct(q.shape, q.dtype)]
    outs = [_some(block_q, head_dim)]
    if keeps_lse:
        out.append(ShapeDtypeStruct((batch, heads, q_len), jnp.float32))
        outs.append(BlockSpec((None, None, block_q), lambda i, b, h: (b, h, i)))
    grid = options.grid or (cdiv(q_len, block_q), batch, heads)
    ins = [_some(block_q, head_dim), _every(kv_len, head_dim), _every(kv_len, head_dim), *_ids(segment_ids)]
    return options.call(kernel, out, grid, ins, outs, "mha_forward", head_dim)(q, k, v, segment_ids)


def _backward(options: _Options, residuals: tuple, do: Array) -> tuple:
    q, k, v, segment_ids, out, lse = residuals
    if options.backward_pass_impl not in ("triton", "xla"):
        raise ValueError(f"Invalid backward pass implementation: {options.backward_pass_impl}. Use 'triton' or 'xla'.")
    if options.backward_pass_impl == "xla":
        reference = lambda q, k, v: mha_reference(q, k, v, segment_ids, options.sm_scale, options.causal)  # noqa: E731
        return *vjp(reference, q, k, v)[1](do.astype(out.dtype)), None
    if not options.block_sizes.has_backward_blocks:
        raise ValueError("Backward block sizes must all be set. BlockSizes takes six sizes.")
    (batch, q_len, heads, head_dim), kv_len, sizes = q.shape, k.shape[1], options.block_sizes
    delta = jnp.einsum("bqhd,bqhd->bhq", out.astype(jnp.float32), do.astype(jnp.float32))
    number = lambda size, at: BlockSpec((None, None, size), at)  # noqa: E731
    operands = q, k, v, segment_ids, do, lse, delta
    common = dict(sm_scale=options.sm_scale, causal=options.causal)
    like = lambda x: ShapeDtypeStruct(x.shape, x.dtype)  # noqa: E731

    block_q, block_k = _within(sizes.block_q_dkv, q_len), _within(sizes.block_kv_dkv, kv_len)
    queries, keys = _every(q_len, head_dim), _some(block_k, head_dim)
    stats = [number(q_len, lambda i, b, h: (b, h, 0))] * 2
    kernel = functools.partial(_dkv_kernel, block_q=block_q, block_k=block_k, kv_len=kv_len, **common)
    ins = [queries, keys, keys, *_ids(segment_ids), queries, *stats]
    grid = cdiv(kv_len, block_k), batch, heads
    dk, dv = options.call(kernel, [like(k), like(v)], grid, ins, [keys, keys], "mha_backward_dkv", head_dim)(*operands)

    block_q, block_k = _within(sizes.block_q_dq, q_len), _within(sizes.block_kv_dq, kv_len)
    queries, keys = _some(block_q, head_dim), _every(kv_len, head_dim)
    stats = [number(block_q, lambda i, b, h: (b, h, i))] * 2
    kernel = functools.partial(_dq_kernel, block_q=block_q, block_k=block_k, q_len=q_len, **common)
    ins = [queries, keys, keys, *_ids(segment_ids), queries, *stats]
    grid = cdiv(q_len, block_q), batch, heads
    dq = options.call(kernel, like(q), grid, ins, queries, "mha_backward_dq", head_dim)(*operands)
    return dq, dk, dv, None


def _within(size: int | None, length: int) -> int:
    """The size of a block, a power of two that is not much longer than the sequence."""
    return next_power_of_2(min(size or length, length))


_NONDIFF = tuple(range(4, 14))


@functools.partial(custom_vjp, nondiff_argnums=_NONDIFF)
@functools.partial(jit, static_argnums=_NONDIFF)
def mha(
    q: Array,
    k: Array,
    v: Array,
    segment_ids: Array | None,
    sm_scale: float = 1.0,
    causal: bool = False,
    block_sizes: BlockSizes = BlockSizes.get_default(),  # noqa: B008
    backward_pass_impl: str = "triton",
    num_warps: int | None = None,
    num_stages: int = 2,
    grid: tuple[int, ...] | None = None,
    interpret: bool = False,
    debug: bool = False,
    return_residuals: bool = False,
) -> Any:
    """Computes attention with several heads by kernels for GPUs, which hold no more than a block of the scores.

    Args:
      q: queries, of the shape (batch, queries, heads, head size).
      k: keys, of the shape (batch, keys, heads, head size).
      v: values, of the shape of the keys.
      segment_ids: numbers of the shape (batch, keys): queries see only keys with the same number. None: all keys.
      sm_scale: factor of the scores.
      causal: whether queries see only keys that are not after them.
      block_sizes: `BlockSizes` of the kernels.
      backward_pass_impl: "triton" computes derivatives by kernels, "xla" by operations of XLA.
      num_warps: number of warps that run a step.
      num_stages: number of stages into which loops are pipelined.
      grid: grid of the forward kernel, (blocks of queries, batch, heads) by default.
      interpret: whether the kernels are interpreted, on any device.
      debug: whether to print the kernels.
      return_residuals: whether to return the logarithms of the sums of powers, too, to base 2.

    Returns:
      An array of the shape and dtype of `q`; with `return_residuals` a pair of it and an array of the shape (batch,
      heads, queries).

    Raises ValueError for shapes that do not fit, and on differentiation for block sizes that are not set, another
    `backward_pass_impl`, or `return_residuals`.

    Example:
        >>> from minijax.experimental.pallas.ops.gpu import attention
        >>> x = jnp.ones((1, 16, 2, 16))
        >>> attention.mha(x, x, x, None, interpret=True).shape
        (1, 16, 2, 16)
    """
    options = _Options(
        sm_scale,
        causal,
        block_sizes,
        backward_pass_impl,
        num_warps,
        num_stages,
        grid,
        interpret,
        debug,
        return_residuals,
    )
    out, *residuals = _forward(q, k, v, segment_ids, options, return_residuals)
    return (out, *residuals) if return_residuals else out


def _mha_forward(q: Array, k: Array, v: Array, segment_ids: Array | None, *options: Any) -> tuple[Array, tuple]:
    given = _Options(*options)
    if given.return_residuals:
        raise ValueError("Kernel differentiation is not supported if return_residuals is True.")
    out, lse = _forward(q, k, v, segment_ids, given, True)
    return out, (q, k, v, segment_ids, out, lse)


def _mha_backward(*args: Any) -> tuple:
    *options, residuals, do = args
    return _backward(_Options(*options), residuals, do)


mha.defvjp(_mha_forward, _mha_backward)
