"""Masks of splash attention, and which of their blocks a kernel visits, against jax's."""

import compare
import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp

PATH = "experimental.pallas.ops.tpu.splash_attention"
for _name in ("splash_attention_mask", "splash_attention_mask_info"):
    compare.SHORT_NAMES[_name] = f"{PATH}.{_name}"
masks = jax.experimental.pallas.ops.tpu.splash_attention.splash_attention_mask
info = jax.experimental.pallas.ops.tpu.splash_attention.splash_attention_mask_info
RANDOM = np.random.default_rng(0).random((32, 24)) < 0.5


MASKS = [
    lambda m: m.CausalMask((32, 24)), lambda m: m.CausalMask((32, 24), 3), lambda m: m.CausalMask((24, 32), -2, shard_count=2), lambda m: m.FullMask((32, 24)),
    lambda m: m.LocalMask((32, 24), (3, 5), 0), lambda m: m.LocalMask((32, 24), (None, 2), 4), lambda m: m.LocalMask((24, 32), (2, None), -1),
    lambda m: m.LocalMask((32, 24), (None, None), 0), lambda m: m.ChunkedCausalMask((32, 24), 5), lambda m: m.NumpyMask(RANDOM),
    lambda m: m.CausalMask((32, 24)) | m.NumpyMask(RANDOM), lambda m: m.LocalMask((32, 24), (9, 9), 0) & m.NumpyMask(RANDOM),
]  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("make", MASKS)
def test_masks_are_jaxs(make):
    def parts(splash_attention_mask):
        mask = make(splash_attention_mask)
        return mask.shape, mask[:, :], mask[3:9, 2:20], mask[:4, 5:6]

    compare.same(parts)


@pytest.mark.oracle
def test_masks_of_several_heads_and_functions_are_jaxs():
    def parts(splash_attention_mask):
        m = splash_attention_mask
        both = m.MultiHeadMask([m.CausalMask((8, 6)), m.LocalMask((8, 6), (1, 1), 0)])
        arrays = m.make_causal_mask((5, 7), 1), m.make_local_attention_mask((5, 7), (1, 2), offset=1)
        arrays += m.make_chunk_attention_mask((5, 7), 2), m.make_random_mask((9, 7), 0.3, seed=4)
        return both.shape, both[0, :, :], both[:, 2:4, :], both[0:1, 1:2, :3], arrays

    compare.same(parts)


@pytest.mark.oracle
def test_equal_masks_are_found():
    def equalities(splash_attention_mask):
        made = [make(splash_attention_mask) for make in MASKS for _ in range(2)]
        return [[a == b for b in made] for a in made], len({*made})

    compare.same(equalities)


WRONG = {
    "no masks": lambda m: m.MultiHeadMask([]),
    "shapes": lambda m: m.MultiHeadMask([m.CausalMask((4, 4)), m.CausalMask((4, 8))]),
    "nested": lambda m: m.MultiHeadMask([m.MultiHeadMask([m.CausalMask((4, 4))])]),
    "dtype": lambda m: m.NumpyMask(np.ones((2, 2))),
    "rank": lambda m: m.NumpyMask(np.ones((2, 2, 2), bool)),
    "shape": lambda m: m.FullMask(3),
    "chunk": lambda m: m.ChunkedCausalMask((4, 4), 0),
    "chunks": lambda m: m.make_chunk_attention_mask((4, 4), -1),
    "shards": lambda m: m.CausalMask((4, 4), shard_count=3),
    "or": lambda m: m.CausalMask((4, 4)) or m.CausalMask((4, 4)),
    "other shape": lambda m: m.CausalMask((4, 4)) | m.CausalMask((4, 8)),
    "index": lambda m: m.CausalMask((4, 4))[0, 1],
    "abstract": lambda m: m.Mask().shape,
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", WRONG)
def test_wrong_masks_are_refused_as_in_jax(name):
    compare.same_refusal(lambda splash_attention_mask: lambda: WRONG[name](splash_attention_mask))


# ---- blocks --------------------------------------------------------------------------------------------

A = np.eye(16, dtype=bool)
B = A | np.kron(np.eye(4, k=1)[:1].repeat(4, 0) * (np.arange(4) == 0)[:, None], np.ones((4, 4))).astype(bool)
HEADS = {
    "a": [A], "b": [B], "a, b": [A, B], "a, a": [A, A], "a, a, b, b": [A, A, B, B], "a, b, a, b": [A, B, A, B],
    "full, b": [A | True, B], "random": [np.random.default_rng(i).random((16, 16)) < 0.3 for i in range(2)],
    "causal": [lambda m: m.CausalMask((16, 16))], "local": [lambda m: m.LocalMask((16, 16), (2, 2), 0)] * 2, "full mask": [lambda m: m.FullMask((16, 16))],
    "causal, local": [lambda m: m.CausalMask((16, 16)), lambda m: m.LocalMask((16, 16), (2, 2), 0)], "far": [lambda m: m.CausalMask((16, 16), 16)],
    "either": [lambda m: m.CausalMask((16, 16)) | m.LocalMask((16, 16), (2, 2), 0)],
}  # fmt: skip


def processed(name, head_shards, q_seq_shards, is_dkv):
    def program(splash_attention_mask, splash_attention_mask_info):
        m = splash_attention_mask
        of = lambda head: head(m) if callable(head) else m.NumpyMask(head)  # noqa: E731
        process = splash_attention_mask_info.process_mask_dkv if is_dkv else splash_attention_mask_info.process_mask
        mask = m.MultiHeadMask(tuple(map(of, HEADS[name])))
        found, function = process(mask, (4, 4), head_shards=head_shards, q_seq_shards=q_seq_shards)
        is_seen, is_read = found.block_mask > 0, found.block_mask == 1
        # Only steps that compute read these: jax chooses other numbers for the steps that do not.
        data = np.where(is_seen, found.data_next, -1)
        read = None if found.mask_next is None else np.where(is_read, found.mask_next, -1)
        computed = function is not None and function(np.arange(16)[:, None], np.arange(16)[None, :])
        kinds = found.block_mask.dtype, found.data_next.dtype, found.data_next.min() >= 0, found.data_next.max() < 4
        return found.block_mask, data, read, found.partial_mask_blocks, found.q_sequence, computed, kinds

    return program


@pytest.mark.oracle
@pytest.mark.parametrize("is_dkv", [False, True])
@pytest.mark.parametrize("name", HEADS)
def test_blocks_are_jaxs(name, is_dkv):
    for head_shards in {1, len(HEADS[name])}:
        # jax fails for queries on several devices that see all keys.
        for q_seq_shards in (1,) if name in ("far", "full mask") else (1, 2, 4):
            compare.same(processed(name, head_shards, q_seq_shards, is_dkv))


@pytest.mark.oracle
@pytest.mark.parametrize("is_dkv", [False, True])
@pytest.mark.parametrize("options", [{}, dict(q_seq_shards=2), dict(head_shards=2), dict(downcast_smem_data=False)])
def test_blocks_of_arrays_are_jaxs(is_dkv, options):
    mask = np.stack([A, B])

    def program(jax, splash_attention_mask_info):
        process = splash_attention_mask_info.process_dynamic_mask
        found, _ = jax.jit(lambda m: process(m, (4, 2), is_dkv=is_dkv, **options)[0][:4])(mask), None
        return found

    compare.same(program)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "options", [dict(head_shards=3), dict(q_seq_shards=3), dict(q_seq_shards=8), dict(block_shape=(4, 5))]
)
def test_parts_that_do_not_divide_a_mask_are_refused_as_in_jax(options):
    given = {"block_shape": (4, 4), **options}

    def program(splash_attention_mask, splash_attention_mask_info):
        m = splash_attention_mask
        return lambda: splash_attention_mask_info.process_mask(m.MultiHeadMask([m.CausalMask((16, 16))] * 2), **given)

    compare.same_refusal(program, ["should divide"])


def test_a_query_that_sees_no_key_is_refused():
    lonely = np.ones((8, 8), bool)
    lonely[3] = False
    with pytest.raises(ValueError, match="invalid softmax"):
        info._check_mask(masks.NumpyMask(lonely))
    info._check_mask(masks.CausalMask((8, 8)))
    for mask in (A, np.ones((1, 8, 8))):
        with pytest.raises(ValueError, match="Expected a"):
            info.process_dynamic_mask(jnp.asarray(mask), (4, 4))
