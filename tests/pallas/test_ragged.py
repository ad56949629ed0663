"""Ragged paged attention for TPUs: beside jax's own operations of XLA, interpreted, and lowered."""

import compare
import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.experimental.pallas.ops.tpu import ragged_paged_attention as ragged

compare.SHORT_NAMES["tpu_ragged"] = "experimental.pallas.ops.tpu.ragged_paged_attention"
ROUNDED = dict(rtol=1e-4, atol=1e-5, why="sums in another order")
pytestmark = pytest.mark.filterwarnings("ignore:pallas_call. there is no compiler")
BLOCKS = ("num_queries_per_block", "num_kv_pages_per_block")


def operands(lengths, heads=4, kv_heads=2, dtype=np.float32, seed=0):
    """The operands for (queries, keys) of each sequence, after which there is room for more."""
    rng, count = np.random.default_rng(seed), len(lengths)
    starts, keys = np.zeros(count + 2, np.int32), np.zeros(count + 1, np.int32)
    starts[1 : count + 1], keys[:count] = np.cumsum([n for n, _ in lengths]), [n for _, n in lengths]
    q = rng.standard_normal((20, heads, 128)).astype(dtype)
    pages = rng.standard_normal((40, 4, 2 * kv_heads, 128)).astype(dtype)
    table = rng.integers(0, 40, (count + 1, 8)).astype(np.int32)
    return q, pages, keys, table, starts, np.array([count], np.int32)


MIXED = [(3, 5), (6, 9), (1, 30), (8, 8)]
CASES = {
    "two": ([(3, 5), (6, 9)], {}),
    "blocks": (MIXED, dict(num_queries_per_block=4, num_kv_pages_per_block=2, sm_scale=0.1)),
    "odd_blocks": (MIXED, dict(num_queries_per_block=5, num_kv_pages_per_block=3, sm_scale=0.1)),
    "window": (MIXED, dict(num_queries_per_block=5, num_kv_pages_per_block=1, sliding_window=3, sm_scale=0.1)),
    "cap": (MIXED, dict(soft_cap=2.0, sm_scale=0.3, k_scale=0.5, v_scale=2.0)),
    "decode": ([(1, 7), (1, 1), (1, 32)], dict(num_kv_pages_per_block=1)),
    "without_queries": ([(0, 4), (2, 6), (0, 3), (5, 5)], dict(num_queries_per_block=2)),
    "mask_value": (MIXED, dict(mask_value=None, sliding_window=2)),
}


@pytest.mark.parametrize("name", CASES)
def test_is_that_of_plain_operations(name):
    lengths, options = CASES[name]
    xs = operands(lengths)
    plain = {k: v for k, v in options.items() if k not in BLOCKS}
    got, count = ragged.ragged_paged_attention(*xs, **options), xs[4][len(lengths)]
    compare.same_value(got[:count], ragged.ref_ragged_paged_attention(*xs, **plain), **ROUNDED)
    assert not got[count:].any()


@pytest.mark.parametrize("heads", [(1, 1), (8, 1), (6, 3)])
def test_groups_of_heads(heads):
    xs = operands(MIXED, *heads)
    got = ragged.ragged_paged_attention(*xs, num_queries_per_block=8, sm_scale=0.1)
    compare.same_value(got[:18], ragged.ref_ragged_paged_attention(*xs, sm_scale=0.1), **ROUNDED)


@pytest.mark.oracle
@pytest.mark.parametrize("name", CASES)
def test_plain_operations_are_those_of_jax(name):
    lengths, options = CASES[name]
    plain = {k: v for k, v in options.items() if k not in BLOCKS and v is not None}

    def program(jnp, tpu_ragged):
        return tpu_ragged.ref_ragged_paged_attention(*map(jnp.asarray, operands(lengths)), **plain)

    compare.same(program, **ROUNDED)


def test_keys_that_are_not_there_may_be_no_numbers():
    q, pages, keys, table, starts, count = operands([(2, 3), (1, 6)])
    table[:2] = [[0] * 8, [1, 2] * 4]
    pages[0, 3:], pages[2, 2:] = np.nan, np.nan
    got = ragged.ragged_paged_attention(q, pages, keys, table, starts, count)
    assert jnp.isfinite(got).all()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_is_lowered_for_tpus(dtype):
    xs = operands(MIXED)
    f = jax.jit(lambda q, pages, *rest: ragged.ragged_paged_attention(q.astype(dtype), pages.astype(dtype), *rest))
    text = f.trace(*xs).lower(lowering_platforms=("tpu",)).as_text()
    assert text.count("tpu_custom_call") == 1


REFUSED = {
    "head_size": (dict(q=np.zeros((20, 4, 64), "f")), {}, "must be the same as that of K/V"),
    "groups": (dict(q=np.zeros((20, 3, 128), "f")), {}, "must be divisible by num_kv_heads=2"),
    "lengths": (dict(kv_lens=np.zeros(2, np.int32)), {}, "Expected kv_lens.shape"),
    "starts": (dict(cu_q_lens=np.zeros(2, np.int32)), {}, "Expected cu_q_lens.shape"),
    "count": (dict(num_seqs=np.zeros(2, np.int32)), {}, "must be (1,)"),
    "integers": (dict(page_indices=np.zeros((3, 8), "f")), {}, "must be int32"),
    "window": ({}, dict(sliding_window=0), "sliding_window=0 must be positive"),
    "cap": ({}, dict(soft_cap=0.0), "soft_cap=0.0 must not be 0.0"),
    "pages": ({}, dict(num_kv_pages_per_block=9), "must be in range (0, 8]"),
    "queries": ({}, dict(num_queries_per_block=0), "num_queries_per_block=0 must be positive"),
    "memory": ({}, dict(vmem_limit_bytes=0), "must be positive"),
}
NAMES = "q kv_pages kv_lens page_indices cu_q_lens num_seqs".split()


@pytest.mark.oracle
@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    changed, options, phrase = REFUSED[name]
    xs = dict(zip(NAMES, operands([(3, 5), (6, 9)]), strict=True)) | changed
    compare.same_refusal(lambda tpu_ragged: lambda: tpu_ragged.static_validate_inputs(**xs, **options), [phrase])


VALUES = {
    "sequences": (dict(num_seqs=np.array([4], np.int32)), "must be less or equal to max_num_seqs=3"),
    "pages": (dict(kv_lens=np.array([50, 9, 0], np.int32)), "pages_per_seq=8 must be greater or equal"),
    "tokens": (dict(cu_q_lens=np.array([0, 3, 25, 0], np.int32)), "must be less or equal to max_num_batched_tokens=20"),
    "keys": (dict(kv_lens=np.array([2, 9, 0], np.int32)), "at sequence 0"),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", VALUES)
def test_values_that_are_refused(name):
    changed, phrase = VALUES[name]
    xs = dict(zip(NAMES, operands([(3, 5), (6, 9)]), strict=True)) | changed
    compare.same_refusal(lambda tpu_ragged: lambda: tpu_ragged.dynamic_validate_inputs(**xs), [phrase])


def test_values_that_fit():
    ragged.dynamic_validate_inputs(*operands(MIXED))
