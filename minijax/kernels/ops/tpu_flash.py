"""Flash attention by kernels for TPUs: blocks of queries over blocks of keys, with derivatives (FlashAttention 2)."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import minijax.numpy as jnp
from minijax import lax
from minijax.api.custom import custom_vjp
from minijax.api.jit import jit
from minijax.api.shapes import ShapeDtypeStruct
from minijax.kernels.blocks import BlockSpec
from minijax.kernels.call import pallas_call
from minijax.kernels.grid import num_programs, program_id
from minijax.kernels.memory import TpuMemorySpace
from minijax.kernels.operations.helpers import when
from minijax.kernels.ops.tpu_scores import MASKED, Scores, Sums, add_by_keys, add_by_queries
from minijax.kernels.parameters import TpuParams
from minijax.run.arrays.array import Array


class SegmentIds(NamedTuple):
    """Names the segments of queries and keys, of the shape (batch, length): queries see only keys of their own.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu import flash_attention
        >>> segments = flash_attention.SegmentIds(q=jnp.array([[0, 0, 1]]), kv=jnp.array([[0, 0, 1]]))
        >>> (segments.q[:, :, None] == segments.kv[:, None])[0]  # which keys each query sees
        Array([[ True,  True, False],
               [ True,  True, False],
               [False, False,  True]], dtype=bool)
    """

    q: Any
    kv: Any


@dataclasses.dataclass(frozen=True)
class BlockSizes:
    """Sets how many queries and keys the kernels of `flash_attention` work on at once.

    Args:
      block_q: number of queries in the forward pass.
      block_k_major: number of keys that are in vector memory.
      block_k: number of keys that are worked on, which divides `block_k_major`.
      block_b: number of sequences.
      block_q_major_dkv: numbers for the kernel of derivatives by keys and values; derivatives need these seven.
      block_k_major_dkv: see there.
      block_k_dkv: see there.
      block_q_dkv: see there.
      block_k_major_dq: numbers for the kernel of derivatives by queries.
      block_k_dq: see there.
      block_q_dq: see there.

    Raises ValueError for a number that does not divide the one that it is a part of.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu import flash_attention
        >>> flash_attention.BlockSizes(block_q=128, block_k_major=128, block_k=128, block_b=1).has_backward_blocks
        False
    """

    block_q: int
    block_k_major: int
    block_k: int
    block_b: int
    block_q_major_dkv: int | None = None
    block_k_major_dkv: int | None = None
    block_k_dkv: int | None = None
    block_q_dkv: int | None = None
    block_k_major_dq: int | None = None
    block_k_dq: int | None = None
    block_q_dq: int | None = None

    def __post_init__(self):
        pairs = [("block_k_major", "block_k"), ("block_q_major_dkv", "block_q_dkv")]
        pairs += [("block_k_major_dkv", "block_k_dkv"), ("block_k_major_dq", "block_k_dq")]
        for major, minor in pairs:
            whole, part = getattr(self, major), getattr(self, minor)
            if whole is None or part is None:
                continue
            if part > whole:
                raise ValueError(f"{minor}={part} should be smaller than {major}={whole}")
            if whole % part:
                raise ValueError(f"{minor}={part} should divide {major}={whole}")

    @property
    def has_backward_blocks(self) -> bool:
        """Whether the sizes for derivatives are given."""
        return None not in dataclasses.astuple(self)

    @classmethod
    def get_default(cls, batch_size: int, num_heads: int, q_seq_len: int, kv_len: int, d_model: int) -> BlockSizes:
        """The sizes that `flash_attention` uses unless it gets others."""
        return cls(128, 128, 128, 1, 128, 128, 128, 128, 128, 128, 128)


def mha_reference_no_custom_vjp(
    q: Array,
    k: Array,
    v: Array,
    ab: Array | None = None,
    segment_ids: SegmentIds | None = None,
    *,
    causal: bool = False,
    mask_value: float = MASKED,
    sm_scale: float = 1.0,
    save_residuals: bool = False,
) -> Any:
    """Computes `flash_attention` by operations of XLA, with all scores at once.

    Args:
      q: queries, of the shape (batch, heads, queries, head size).
      k: keys.
      v: values.
      ab: numbers that are added to the scores.
      segment_ids: `SegmentIds`, or None.
      causal: whether queries see only keys that are not after them.
      mask_value: score of keys that are not seen.
      sm_scale: factor of the scores.
      save_residuals: whether sums of powers and highest scores are returned, too.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu import flash_attention
        >>> q, k = jnp.zeros((1, 1, 2, 4)), jnp.ones((1, 1, 2, 4))  # equal scores: means of the values
        >>> flash_attention.mha_reference_no_custom_vjp(q, k, k, causal=True).shape
        (1, 1, 2, 4)
    """
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k, preferred_element_type=jnp.float32)
    scores = (scores if ab is None else scores + ab) * sm_scale
    seen = jnp.ones((1, 1, *scores.shape[2:]), bool)
    if segment_ids is not None:
        seen = (segment_ids.q[:, :, None] == segment_ids.kv[:, None, :])[:, None]
    if causal:
        seen = seen & jnp.tril(jnp.ones(scores.shape[2:], bool))[None, None]
    scores = jnp.where(seen, scores, mask_value)
    highest = jnp.max(scores, -1)
    powers = jnp.exp(scores - highest[..., None])
    total = jnp.sum(powers, -1)
    out = jnp.einsum("bhqk,bhkd->bhqd", (powers / total[..., None]).astype(v.dtype), v)
    return (out, total, highest) if save_residuals else out


@functools.partial(jit, static_argnames=["causal", "mask_value", "sm_scale"])
def mha_reference(
    q: Array,
    k: Array,
    v: Array,
    ab: Array | None,
    segment_ids: SegmentIds | None = None,
    causal: bool = False,
    mask_value: float = MASKED,
    sm_scale: float = 1.0,
) -> Array:
    """Computes `flash_attention` by operations of XLA. See `mha_reference_no_custom_vjp`.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu import flash_attention
        >>> q, k = jnp.zeros((1, 1, 2, 4)), jnp.ones((1, 1, 2, 4))  # equal scores: means of the values
        >>> flash_attention.mha_reference(q, k, jnp.array([1.0, 3.0]).reshape(1, 1, 2, 1) * k, None).mean()
        Array(2., dtype=float32)
    """
    return mha_reference_no_custom_vjp(
        q, k, v, ab, segment_ids, causal=causal, mask_value=mask_value, sm_scale=sm_scale
    )


# ---- kernels -------------------------------------------------------------------------------------------


class _Call(NamedTuple):
    """A call: the shapes of its operands, its options, and which of the optional operands there are."""

    shape: tuple[int, int, int, int, int]  # batch, heads, queries, keys, head size
    causal: bool
    sm_scale: float
    sizes: BlockSizes
    has_bias: bool
    has_segments: bool
    debug: bool

    def block(self, size: int | None, length: int) -> int:
        """The size of a block, which is no longer than the sequence. Raises ValueError if it does not divide it."""
        found = min(size or length, length)
        if length % found:
            raise ValueError(f"flash_attention: blocks of {found} do not divide a sequence of {length}")
        return found

    def specs(
        self, block_q: int, block_k: int, keys_last: bool
    ) -> tuple[BlockSpec, BlockSpec, list[BlockSpec], BlockSpec]:
        """The blocks of queries, of keys, of the optional operands, and of one number a query.

        The grid is (batch, heads, blocks of queries, blocks of keys), or the last two exchanged.
        """
        size = self.shape[4]
        of = lambda f: (lambda b, h, i, j: f(b, h, i, j)) if keys_last else (lambda b, h, j, i: f(b, h, i, j))  # noqa: E731
        queries = BlockSpec((None, None, block_q, size), of(lambda b, h, i, j: (b, h, i, 0)))
        keys = BlockSpec((None, None, block_k, size), of(lambda b, h, i, j: (b, h, j, 0)))
        stats = BlockSpec((None, None, block_q, 1), of(lambda b, h, i, j: (b, h, i, 0)))
        optional = []
        if self.has_bias:
            optional.append(BlockSpec((None, None, block_q, block_k), of(lambda b, h, i, j: (b, h, i, j))))
        if self.has_segments:
            optional.append(BlockSpec((None, block_q, 1), of(lambda b, h, i, j: (b, i, 0))))
            optional.append(BlockSpec((None, 1, block_k), of(lambda b, h, i, j: (b, 0, j))))
        return queries, keys, optional, stats

    def scores(self, q: Any, k: Any, first: tuple[Any, Any], optional: Any) -> Scores:
        """The scores of a block; `first` are the numbers of its first query and key."""
        given, shape, seen = iter(optional), (q.shape[0], k.shape[0]), None
        bias = next(given)[...] if self.has_bias else None
        if self.has_segments:
            seen = next(given)[...] == next(given)[...]
        if self.causal:
            rows, columns = (n + lax.broadcasted_iota(jnp.int32, shape, axis) for axis, n in enumerate(first))
            seen = rows >= columns if seen is None else seen & (rows >= columns)
        return Scores.of(q, k, self.sm_scale, bias, seen)

    def when_seen(self, first: tuple[Any, Any], block_q: int) -> Any:
        """Decorates what is done only if some query of a block sees some of its keys."""
        return when(first[0] + block_q > first[1] if self.causal else True)

    def run(
        self, kernel: Any, out: Any, blocks: tuple[int, int], ins: list, outs: Any, scratch: list, name: str
    ) -> Any:
        """The call of a kernel over (batch, heads, two axes of blocks)."""
        return pallas_call(
            kernel,
            out,
            grid=(*self.shape[:2], *blocks),
            in_specs=ins,
            out_specs=outs,
            scratch_shapes=scratch,
            name=name,
            debug=self.debug,
            compiler_params=TpuParams(dimension_semantics=("parallel", "parallel", "parallel", "arbitrary")),
        )


def _forward(call: _Call, q: Array, k: Array, v: Array, optional: list, keeps_lse: bool) -> tuple[Array, Array | None]:
    batch, heads, q_len, kv_len, size = call.shape
    block_q, block_k = call.block(call.sizes.block_q, q_len), call.block(call.sizes.block_k, kv_len)
    count = len(optional)

    def kernel(q_ref, k_ref, v_ref, *refs):
        given, outs, sums = refs[:count], refs[count:-3], Sums(*refs[-3:])
        first = program_id(2) * block_q, program_id(3) * block_k

        @when(program_id(3) == 0)
        def _start():
            sums.start()

        @call.when_seen(first, block_q)
        def _add():
            sums.add(call.scores(q_ref[...], k_ref[...], first, given), v_ref[...])

        @when(program_id(3) == num_programs(3) - 1)
        def _finish():
            sums.finish(outs[0], outs[1] if keeps_lse else None)

    queries, keys, specs, stats = call.specs(block_q, block_k, True)
    out = [ShapeDtypeStruct(q.shape, q.dtype), ShapeDtypeStruct((batch, heads, q_len, 1), jnp.float32)][: 1 + keeps_lse]
    outs = [queries, stats][: 1 + keeps_lse]
    blocks, scratch = (q_len // block_q, kv_len // block_k), Sums.scratch(block_q, size)
    found = call.run(kernel, out, blocks, [queries, keys, keys, *specs], outs, scratch, "flash_attention")(
        q, k, v, *optional
    )
    return found[0], found[1] if keeps_lse else None


def _by_keys(call: _Call, operands: list, optional: list) -> list:
    """The derivatives by keys and values."""
    _, _, q_len, kv_len, size = call.shape
    block_q, block_k = call.block(call.sizes.block_q_dkv, q_len), call.block(call.sizes.block_k_dkv, kv_len)
    k, v = operands[1:3]

    def kernel(q_ref, k_ref, v_ref, do_ref, lse_ref, delta_ref, *refs):
        given, (dk_ref, dv_ref, *sums) = refs[: len(optional)], refs[len(optional) :]
        first = program_id(3) * block_q, program_id(2) * block_k

        @when(program_id(3) == 0)
        def _start():
            for ref in sums:
                ref[...] = jnp.zeros(ref.shape, jnp.float32)

        @call.when_seen(first, block_q)
        def _add():
            q = q_ref[...]
            scores = call.scores(q, k_ref[...], first, given)
            stats = lse_ref[...], delta_ref[...]
            add_by_keys(scores, q, v_ref[...], do_ref[...], stats, (sums[0], sums[1]), call.sm_scale)

        @when(program_id(3) == num_programs(3) - 1)
        def _finish():
            for ref, total in ((dk_ref, sums[0]), (dv_ref, sums[1])):
                ref[...] = total[...].astype(ref.dtype)

    queries, keys, specs, stats = call.specs(block_q, block_k, False)
    out = [ShapeDtypeStruct(x.shape, x.dtype) for x in (k, v)]
    scratch = [TpuMemorySpace.VMEM((block_k, size), jnp.float32)] * 2
    ins, blocks = [queries, keys, keys, queries, stats, stats, *specs], (kv_len // block_k, q_len // block_q)
    return call.run(kernel, out, blocks, ins, [keys, keys], scratch, "flash_attention_dkv")(*operands, *optional)


def _by_queries(call: _Call, operands: list, optional: list) -> list:
    """The derivatives by queries, and by what is added to the scores."""
    batch, heads, q_len, kv_len, size = call.shape
    block_q, block_k = call.block(call.sizes.block_q_dq, q_len), call.block(call.sizes.block_k_dq, kv_len)

    def kernel(q_ref, k_ref, v_ref, do_ref, lse_ref, delta_ref, *refs):
        given, (dq_ref, *dbias_ref, total) = refs[: len(optional)], refs[len(optional) :]
        first = program_id(2) * block_q, program_id(3) * block_k

        @when(program_id(3) == 0)
        def _start():
            total[...] = jnp.zeros(total.shape, jnp.float32)

        if dbias_ref:
            dbias_ref[0][...] = jnp.zeros(dbias_ref[0].shape, dbias_ref[0].dtype)

        @call.when_seen(first, block_q)
        def _add():
            k = k_ref[...]
            scores = call.scores(q_ref[...], k, first, given)
            stats = lse_ref[...], delta_ref[...]
            by_scores = add_by_queries(scores, k, v_ref[...], do_ref[...], stats, total, call.sm_scale)
            for ref in dbias_ref:
                ref[...] = (by_scores * jnp.float32(call.sm_scale)).astype(ref.dtype)

        @when(program_id(3) == num_programs(3) - 1)
        def _finish():
            dq_ref[...] = total[...].astype(dq_ref.dtype)

    queries, keys, specs, stats = call.specs(block_q, block_k, True)
    out, outs = [ShapeDtypeStruct(operands[0].shape, operands[0].dtype)], [queries]
    if call.has_bias:
        out.append(ShapeDtypeStruct((batch, heads, q_len, kv_len), optional[0].dtype))
        outs.append(specs[0])
    scratch = [TpuMemorySpace.VMEM((block_q, size), jnp.float32)]
    ins, blocks = [queries, keys, keys, queries, stats, stats, *specs], (q_len // block_q, kv_len // block_k)
    return call.run(kernel, out, blocks, ins, outs, scratch, "flash_attention_dq")(*operands, *optional)


def _optional(ab: Array | None, segment_ids: SegmentIds | None) -> list:
    """The operands that may be absent: numbers of segments as a column of queries and a row of keys."""
    found = [] if ab is None else [ab]
    return found if segment_ids is None else [*found, segment_ids.q[:, :, None], segment_ids.kv[:, None, :]]


@functools.partial(custom_vjp, nondiff_argnums=(5,))
def _attend(q: Array, k: Array, v: Array, ab: Array | None, segment_ids: SegmentIds | None, call: _Call) -> Array:
    return _forward(call, q, k, v, _optional(ab, segment_ids), False)[0]


def _attend_fwd(q: Array, k: Array, v: Array, ab: Array | None, segment_ids: SegmentIds | None, call: _Call) -> tuple:
    out, lse = _forward(call, q, k, v, _optional(ab, segment_ids), True)
    return out, (q, k, v, ab, segment_ids, out, lse)


def _attend_bwd(call: _Call, residuals: tuple, do: Array) -> tuple:
    q, k, v, ab, segment_ids, out, lse = residuals
    if not call.sizes.has_backward_blocks:
        raise ValueError("Program is being differentiated, but not all backward blocks are specified")
    delta = jnp.sum(out.astype(jnp.float32) * do.astype(jnp.float32), -1, keepdims=True)
    operands, optional = [q, k, v, do, lse, delta], _optional(ab, segment_ids)
    dk, dv = _by_keys(call, operands, optional)
    dq, *dab = _by_queries(call, operands, optional)
    return dq, dk, dv, dab[0] if dab else None, None


_attend.defvjp(_attend_fwd, _attend_bwd)


def _check(q: Array, k: Array, v: Array, ab: Array | None, segment_ids: SegmentIds | None) -> None:
    """Raises ValueError for shapes that do not fit."""
    batch, heads, q_len, size = q.shape
    for what, axis in (("Batch size", 0), ("Head count", 1)):
        sizes = [x.shape[axis] for x in (q, k, v)]
        if len(set(sizes)) > 1:
            raise ValueError(f"{what} mismatch: got {', '.join(map(str, sizes))} (for q, k, v respectively)")
    for what, axis, (n, x), (m, y) in (
        ("Model dimension", 3, ("q", q), ("k", k)),
        ("V model dimension", 3, ("q", q), ("v", v)),
        ("KV sequence length", 2, ("k", k), ("v", v)),
    ):
        if x.shape[axis] != y.shape[axis]:
            names = "" if axis == 2 else f" (for {n} and {m} respectively)"
            raise ValueError(f"{what} mismatch: got {x.shape[axis]} and {y.shape[axis]}{names}")
    kv_len = k.shape[2]
    if ab is not None and ab.shape != (batch, heads, q_len, kv_len):
        raise ValueError(
            f"Attention bias shape mismatch: expected (batch_size={batch}, num_heads={heads}, q_seq_len={q_len}, "
            f"kv_seq_len={kv_len}), got {ab.shape}"
        )
    if segment_ids is not None:
        for what, name, ids, length in (
            ("Q", "q_seq_len", segment_ids.q, q_len),
            ("KV", "kv_seq_len", segment_ids.kv, kv_len),
        ):
            if ids.shape != (batch, length):
                raise ValueError(
                    f"{what} segment ids shape mismatch: expected (batch_size={batch}, {name}={length},), got "
                    f"{ids.shape}"
                )


@functools.partial(jit, static_argnames=["causal", "sm_scale", "block_sizes", "debug"])
def flash_attention(
    q: Array,
    k: Array,
    v: Array,
    ab: Array | None = None,
    segment_ids: SegmentIds | None = None,
    *,
    causal: bool = False,
    sm_scale: float = 1.0,
    block_sizes: BlockSizes | None = None,
    debug: bool = False,
) -> Array:
    """Computes attention with several heads by kernels for TPUs, which hold no more than a block of the scores.

    Args:
      q: queries, of the shape (batch, heads, queries, head size).
      k: keys, of the shape (batch, heads, keys, head size).
      v: values, of the shape of the keys.
      ab: numbers that are added to the scores before they are scaled, of the shape (batch, heads, queries, keys).
      segment_ids: `SegmentIds`: queries see only keys of their segment.
      causal: whether queries see only keys that are not after them.
      sm_scale: factor of the scores.
      block_sizes: `BlockSizes` of the kernels.
      debug: whether to print the kernels.

    Returns:
      An array of the shape and dtype of `q`.

    Raises ValueError for shapes or sizes of blocks that do not fit.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu import flash_attention
        >>> q, k = jnp.zeros((1, 1, 128, 128)), jnp.ones((1, 1, 128, 128))  # equal scores: means of the values
        >>> with pltpu.force_tpu_interpret_mode():
        ...     print(flash_attention.flash_attention(q, k, k).mean())
        1.0
    """
    _check(q, k, v, ab, segment_ids)
    (batch, heads, q_len, size), kv_len = q.shape, k.shape[2]
    sizes = block_sizes or BlockSizes.get_default(batch, heads, q_len, kv_len, size)
    shape = batch, heads, q_len, kv_len, size
    call = _Call(shape, causal, sm_scale, sizes, ab is not None, segment_ids is not None, debug)
    return _attend(q, k, v, ab, segment_ids, call)
