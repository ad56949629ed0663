"""Kernels for TPUs: values and derivatives against operations of XLA and against jax's kernels, and their modules."""

import functools

import compare
import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.experimental.pallas.ops.tpu import matmul, megablox
from minijax.experimental.pallas.ops.tpu.megablox.gmm import gmm, make_group_metadata, tgmm

ROUNDED = "sums in another order"
compare.SHORT_NAMES["tpu_gmm"] = "experimental.pallas.ops.tpu.megablox.gmm"
compare.SHORT_NAMES["tpu_gmm_ops"] = "experimental.pallas.ops.tpu.megablox.ops"


@pytest.fixture(autouse=True)
def _ranks_are_equal():
    """Arrays of different ranks are not broadcast, as users may want it."""
    with jax.numpy_rank_promotion("raise"):
        yield


def normal(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def lowers(f, *xs):
    """The function's module for TPUs, which has a kernel."""
    text = jax.jit(f).trace(*xs).lower(lowering_platforms=("tpu",)).as_text()
    assert "tpu_custom_call" in text
    return text


# ---- products ------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:pallas_call. there is no compiler of kernels for CPUs")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_matmul(dtype):
    x, y = (jnp.asarray(normal(*s, seed=i) * 4).astype(dtype) for i, s in enumerate(((40, 64), (64, 24))))
    out = "int32" if dtype == "int8" else "float32"
    f = functools.partial(matmul.matmul, block_shape=(16, 24), block_k=32, out_dtype=out)
    want = jnp.matmul(x, y, preferred_element_type=out)
    compare.same_value(f(x, y), want, rtol=1e-5, atol=1e-4, why=ROUNDED)
    wide = jnp.ones((256, 256), dtype)
    lowers(functools.partial(matmul.matmul, block_shape=(128, 128), block_k=128, out_dtype=out), wide, wide)


def test_shapes_of_matmul_that_do_not_fit_are_refused():
    x = jnp.ones((64, 32))
    with pytest.raises(ValueError, match="do not fit"):
        matmul.matmul(x, x, block_shape=(8, 8), block_k=32)
    with pytest.raises(ValueError, match="block_k=24 does not divide 32"):
        matmul.matmul(x, x.T, block_shape=(8, 8), block_k=24)


def grouped(rows, matrices, sizes, first=0):
    """The products of groups one by one; zeros for the rows of other groups."""
    ends = np.cumsum(sizes)
    parts = []
    for g, (start, end) in enumerate(zip(ends - sizes, ends, strict=True)):
        is_own = first <= g < first + len(matrices)
        parts.append(rows[start:end] @ matrices[g - first] if is_own else np.zeros((end - start, matrices.shape[2])))
    return jnp.asarray(np.concatenate(parts).astype(np.float32))


SIZES = {
    "empty ones": [30, 0, 50, 48],
    "one": [0, 128, 0, 0],
    "even": [32] * 4,
    "small": [1, 2, 3, 122],
    "all rows": [128],
}
TILINGS = [(32, 32, 32), (16, 24, 20), (128, 64, 48)]


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("tiling", TILINGS)
def test_products_of_groups(name, tiling):
    sizes = np.array(SIZES[name], np.int32)
    x, w, y = normal(128, 64), normal(len(sizes), 64, 48, seed=1), normal(128, 48, seed=2)
    got = gmm(x, w, sizes, tiling=tiling, interpret=True)
    compare.same_value(got, grouped(x, w, sizes), rtol=1e-4, atol=1e-4, why=ROUNDED)
    turned = gmm(x, w.swapaxes(1, 2), sizes, tiling=tiling, transpose_rhs=True, interpret=True)
    compare.same_value(turned, got, rtol=1e-4, atol=1e-4, why=ROUNDED)
    ends = np.cumsum(sizes)
    want = np.stack([x[e - n : e].T @ y[e - n : e] for n, e in zip(sizes, ends, strict=True)])
    got = tgmm(x.T, y, sizes, tiling=tiling, interpret=True)
    compare.same_value(got, jnp.asarray(want), rtol=1e-4, atol=1e-4, why=ROUNDED)


def test_products_of_some_groups_keep_the_other_rows():
    sizes, x, w = np.array(SIZES["empty ones"], np.int32), normal(128, 64), normal(2, 64, 48, seed=1)
    there = jnp.full((128, 48), 7.0)
    f = functools.partial(gmm, tiling=(32, 32, 48), interpret=True)
    got = f(x, w, sizes, group_offset=jnp.int32(2), existing_out=there)
    want = grouped(x, w, sizes, 2).at[:30].set(7.0)
    compare.same_value(got, want, rtol=1e-4, atol=1e-4, why=ROUNDED)
    first = f(x, w, sizes, group_offset=jnp.int32(0), existing_out=there)
    compare.same_value(first, grouped(x, w, sizes).at[30:].set(7.0), rtol=1e-4, atol=1e-4, why=ROUNDED)
    part = tgmm(x.T, x, sizes, tiling=(32, 32, 32), group_offset=jnp.int32(2), num_actual_groups=2, interpret=True)
    compare.same_value(
        part, tgmm(x.T, x, sizes, tiling=(32, 32, 32), interpret=True)[2:], rtol=1e-5, atol=1e-4, why=ROUNDED
    )


@pytest.mark.parametrize("transpose_rhs", [False, True])
def test_derivatives_of_products_of_groups(transpose_rhs):
    sizes, x, w = np.array(SIZES["empty ones"], np.int32), normal(128, 64) / 8, normal(4, 64, 48, seed=1)
    w = w.swapaxes(1, 2) if transpose_rhs else w
    numbers = np.repeat(np.arange(4), sizes)

    def plain(x, w):
        return jnp.einsum("mk,mnk->mn" if transpose_rhs else "mk,mkn->mn", x, w[numbers])

    def ours(x, w):
        return megablox.gmm(x, w, sizes, jnp.float32, (32, 32, 16), None, None, transpose_rhs, True)

    loss = lambda f: lambda *xs: jnp.sum(jnp.sin(f(*xs)))  # noqa: E731
    want = jax.grad(loss(plain), (0, 1))(x, w)
    compare.same_value(jax.jit(jax.grad(loss(ours), (0, 1)))(x, w), want, rtol=1e-3, atol=1e-3, why=ROUNDED)


def test_products_of_groups_are_lowered():
    sizes, x, w = jnp.array([100, 156]), jnp.ones((256, 256), jnp.bfloat16), jnp.ones((2, 256, 256), jnp.bfloat16)
    lowers(gmm, x, w, sizes)
    lowers(tgmm, x, x, sizes)
    assert lowers(jax.grad(lambda x, w: megablox.gmm(x, w, sizes).sum(), (0, 1)), x, w).count("tpu_custom_call") == 2


@pytest.mark.oracle
def test_products_of_groups_are_those_of_jax():
    sizes, x, w = np.array(SIZES["empty ones"], np.int32), normal(128, 64), normal(4, 64, 48, seed=1)

    def program(jax, jnp, tpu_gmm, tpu_gmm_ops):
        gmm, ops = tpu_gmm, tpu_gmm_ops
        options = dict(tiling=(32, 32, 48), interpret=True)
        f = lambda x, w: ops.gmm(x, w, sizes, jnp.float32, (32, 32, 48), None, None, False, True)  # noqa: E731
        grads = jax.grad(lambda x, w: jnp.sum(jnp.sin(f(x, w))), (0, 1))(jnp.asarray(x), jnp.asarray(w))
        return gmm.gmm(x, w, sizes, **options), gmm.tgmm(x.T, x, sizes, **options), grads

    compare.same(program, rtol=1e-3, atol=1e-3, why=ROUNDED)


@pytest.mark.oracle
@pytest.mark.parametrize("visits", [False, True])
@pytest.mark.parametrize("name", SIZES)
def test_steps_of_products_of_groups_are_those_of_jax(name, visits):
    sizes = np.array(SIZES[name], np.int32)

    def program(jax, jnp, tpu_gmm):
        return tpu_gmm.make_group_metadata(
            group_sizes=jnp.asarray(sizes), m=128, tm=32, start_group=jnp.int32(0), num_nonzero_groups=len(sizes), visit_empty_groups=visits
        )  # fmt: skip

    compare.same(program)


WRONG = {
    "sizes": (lambda x, w: dict(group_sizes=np.ones(4, np.float32)), "Expected 32-bit integer 'group_sizes' but got float32."),
    "rank of lhs": (lambda x, w: dict(lhs=x[0]), "Expected 2-tensor for 'lhs' but got 1-tensor."),
    "rank of rhs": (lambda x, w: dict(rhs=w[0]), "Expected 3-tensor for 'rhs' but got 2-tensor."),
    "blocks": (lambda x, w: dict(tiling=(48, 32, 32)), "128 must be divisible by x-dimension tile size (48)."),
    "dtype": (lambda x, w: dict(lhs=x.astype(np.int32)), "Expected bfloat16 or float32 array but got int32."),
    "no tiling": (lambda x, w: dict(tiling=None), "No tuned tiling found for (m, k, n) = (128, 64, 48)"),
    "offset": (lambda x, w: dict(group_offset=np.zeros(1, np.int32)), "group_offset must be a ()-shaped array. Got: (1,)."),
}  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("name", WRONG)
def test_wrong_operands_of_products_of_groups_are_refused_as_in_jax(name):
    changed, phrase = WRONG[name]
    x, w = normal(128, 64), normal(4, 64, 48)
    given = dict(lhs=x, rhs=w, group_sizes=np.array([32] * 4, np.int32), tiling=(32, 32, 48), interpret=True)
    compare.same_refusal(lambda tpu_gmm: lambda: tpu_gmm.gmm(**{**given, **changed(x, w)}), [phrase])


def test_sizes_that_do_not_fit_are_refused():
    x, sizes = jnp.ones((128, 64)), jnp.array([128])
    with pytest.raises(ValueError, match="do not fit the matrices"):
        gmm(x, jnp.ones((1, 32, 8)), sizes, tiling=(32, 32, 8), interpret=True)
    with pytest.raises(ValueError, match="do not fit the rows"):
        tgmm(x, x, sizes, tiling=(32, 32, 8), interpret=True)
    assert int(make_group_metadata(group_sizes=sizes, m=128, tm=32, start_group=0, num_nonzero_groups=1)[1]) == 4


# ---- attention -----------------------------------------------------------------------------------------

from minijax.experimental.pallas.ops.tpu import flash_attention as flash  # noqa: E402

SMALL = flash.BlockSizes(16, 32, 16, 1, 16, 32, 32, 16, 16, 16, 32)
interpreted = pytest.mark.filterwarnings("ignore:pallas_call. there is no compiler of kernels for CPUs")


def heads(q_len, kv_len=None, size=32, dtype="float32"):
    lengths = (q_len, kv_len or q_len, kv_len or q_len)
    return [jnp.asarray(normal(2, 3, n, size, seed=i)).astype(dtype) for i, n in enumerate(lengths)]


def segments(q_len, kv_len=None):
    number = lambda n: jnp.asarray(np.arange(2 * n).reshape(2, n) % n * 3 // n, jnp.int32)  # noqa: E731
    return flash.SegmentIds(number(q_len), number(kv_len or q_len))


FLASH = {
    "plain": (heads(64), False, None, {}),
    "causal": (heads(64), False, None, dict(causal=True, sm_scale=0.2)),
    "segments": (heads(64, 96), False, segments(64, 96), dict(sm_scale=0.3)),
    "added numbers": (heads(32, 64), True, None, dict(sm_scale=0.5)),
    "everything": (heads(64), True, segments(64), dict(causal=True, sm_scale=0.2)),
    "short": (heads(16, 32), False, None, dict(causal=True)),
}


@interpreted
@pytest.mark.parametrize("name", FLASH)
def test_flash_attention_and_its_derivatives(name):
    xs, has_bias, ids, options = FLASH[name]
    bias = [jnp.asarray(normal(2, 3, xs[0].shape[2], xs[1].shape[2], seed=7))] if has_bias else []

    def of(f):
        return lambda q, k, v, *bias: f(q, k, v, bias[0] if bias else None, ids, **options)

    ours, reference = of(functools.partial(flash.flash_attention, block_sizes=SMALL)), of(flash.mha_reference)
    compare.same_value(ours(*xs, *bias), reference(*xs, *bias), rtol=1e-4, atol=1e-5, why=ROUNDED)
    loss = lambda f: lambda *xs: jnp.sum(jnp.sin(f(*xs)))  # noqa: E731
    numbers = tuple(range(3 + len(bias)))
    want = jax.grad(loss(reference), numbers)(*xs, *bias)
    compare.same_value(jax.jit(jax.grad(loss(ours), numbers))(*xs, *bias), want, rtol=1e-3, atol=1e-4, why=ROUNDED)


@interpreted
def test_flash_attention_of_half_precision_in_vmap():
    xs = heads(32, dtype="bfloat16")
    f = functools.partial(flash.flash_attention, causal=True, block_sizes=SMALL)
    want = jnp.stack([flash.mha_reference(*xs, None, causal=True)] * 2)
    compare.same_value(jax.vmap(f)(*[jnp.stack([x, x]) for x in xs]), want, atol=0.05, why="half precision")


def test_flash_attention_is_lowered_in_both_directions():
    xs, ids = heads(256, size=128, dtype="bfloat16"), segments(256)
    bias = jnp.ones((2, 3, 256, 256), jnp.bfloat16)
    for options in ({}, dict(causal=True, segment_ids=ids), dict(ab=bias)):
        f = functools.partial(flash.flash_attention, **options)
        lowers(f, *xs)
        assert lowers(jax.grad(lambda *xs, f=f: f(*xs).sum(), (0, 1, 2)), *xs).count("tpu_custom_call") == 3


compare.SHORT_NAMES["flash_attention"] = "experimental.pallas.ops.tpu.flash_attention"
X = np.ones((1, 2, 256, 64), np.float32)
BAD = {
    "heads": ((X, X[:, :1], X[:, :1]), {}, "Head count mismatch: got 2, 1, 1 (for q, k, v respectively)"),
    "sizes": ((X, X[..., :32], X[..., :32]), {}, "Model dimension mismatch: got 64 and 32 (for q and k respectively)"),
    "lengths": ((X, X, X[:, :, :128]), {}, "KV sequence length mismatch: got 256 and 128"),
    "ranks": ((X[0], X[0], X[0]), {}, "not enough values to unpack"),
    "added numbers": ((X, X, X, X), {}, "Attention bias shape mismatch: expected (batch_size=1, num_heads=2, q_seq_len=256, kv"),
}  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("name", BAD)
def test_shapes_that_flash_attention_refuses(name):
    operands, options, phrase = BAD[name]
    compare.same_refusal(
        lambda flash_attention: lambda: flash_attention.flash_attention(*operands, **options), [phrase]
    )


@pytest.mark.oracle
@pytest.mark.parametrize("sizes", [(128, 64, 128, 1), (128, 128, 100, 1)])
def test_sizes_of_blocks_that_flash_attention_refuses(sizes):
    compare.same_refusal(lambda flash_attention: lambda: flash_attention.BlockSizes(*sizes), ["should"])


@pytest.mark.oracle
def test_the_reference_of_flash_attention_is_that_of_jax():
    xs, ids = [np.asarray(x) for x in heads(32)], segments(32)

    def program(jax, jnp, flash_attention):
        own = flash_attention.SegmentIds(*map(np.asarray, ids))
        default = flash_attention.BlockSizes.get_default(1, 2, 256, 256, 64)
        options = dict(causal=True, sm_scale=0.3, save_residuals=True)
        found = flash_attention.mha_reference_no_custom_vjp(*map(jnp.asarray, xs), None, own, **options)
        return found, default.has_backward_blocks, default.block_q_major_dkv

    compare.same(program, rtol=1e-4, atol=1e-4, why=ROUNDED)


# ---- attention of one query with keys in pages ---------------------------------------------------------

from minijax.experimental.pallas.ops.tpu import paged_attention as paged  # noqa: E402

quantized, reference = paged.quantization_utils, paged.util.grouped_query_attention_reference
compare.SHORT_NAMES["tpu_paged"] = "experimental.pallas.ops.tpu.paged_attention"
compare.SHORT_NAMES["quantization_utils"] = "experimental.pallas.ops.tpu.paged_attention.quantization_utils"
compare.SHORT_NAMES["tpu_paged_util"] = "experimental.pallas.ops.tpu.paged_attention.util"


def pages(kv_heads=2, count=24, page_size=16, size=128, per_sequence=8):
    k, v = (jnp.asarray(normal(kv_heads, count, page_size, size, seed=i)) for i in (1, 2))
    table = np.random.default_rng(0).integers(0, count, (3, per_sequence)).astype(np.int32)
    return k, v, np.array([1, per_sequence * page_size, 77], np.int32), table


def in_rows(pages, table):
    return pages[:, table].transpose(1, 0, 2, 3, 4).reshape(len(table), pages.shape[0], -1, pages.shape[-1])


@interpreted
@pytest.mark.parametrize("cap", [None, 2.0])
@pytest.mark.parametrize("is_quantized", [False, True])
def test_paged_attention(cap, is_quantized):
    k, v, lengths, table = pages()
    q = jnp.asarray(normal(3, 8, 128)) / 10
    if is_quantized:
        k, v = quantized.quantize_to_int8(k), quantized.quantize_to_int8(v)
    f = functools.partial(paged.paged_attention, pages_per_compute_block=4, attn_logits_soft_cap=cap)
    got = f(q, k, v, lengths, table)
    rows = [in_rows(quantized.unquantize_from_int8(a, jnp.float32) if is_quantized else a, table) for a in (k, v)]
    compare.same_value(got, reference(q, *rows, lengths, cap), rtol=1e-4, atol=1e-5, why=ROUNDED)
    lowers(f, q, k, v, lengths, table)
    empty = f(q, k, v, np.zeros(3, np.int32), table)
    compare.same_value(empty, jnp.zeros_like(q))


@pytest.mark.oracle
def test_small_integers_and_the_reference_are_those_of_jax():
    x, q = normal(2, 5, 8), normal(2, 4, 8, seed=1)

    def program(jax, jnp, quantization_utils, tpu_paged_util):
        found = quantization_utils.quantize_to_int8(jnp.asarray(x))
        again = quantization_utils.unquantize_from_int8(found, jnp.float32)
        keys = jnp.asarray(x)[:, None]
        attended = tpu_paged_util.grouped_query_attention_reference(jnp.asarray(q), keys, keys, jnp.array([2, 5]), 3.0)
        return tuple(found), again, attended

    compare.same(program, rtol=1e-5, atol=1e-6, why=ROUNDED)


Q, K, LENGTHS, TABLE = (
    np.ones((2, 8, 128), "f"),
    np.ones((2, 8, 16, 128), "f"),
    np.array([3, 20], "i"),
    np.zeros((2, 4), "i"),
)
UNFIT = {
    "heads": ((Q[:, :7], K, K, LENGTHS, TABLE), {}, "Number of Q heads must be divisible by number of KV heads. Got 7 and 2."),
    "values": ((Q, K, K[:1], LENGTHS, TABLE), {}, "k_pages and v_pages must have the same shape."),
    "blocks": ((Q, K, K, LENGTHS, TABLE), dict(pages_per_compute_block=3), "pages_per_compute_block must be divisible by"),
    "mode": ((Q, K, K, LENGTHS, TABLE), dict(megacore_mode="foo"), "megacore_mode must be one of ['kv_head', 'batch', None]"),
    "one sequence": ((Q[:1], K, K, LENGTHS[:1], TABLE[:1]), dict(megacore_mode="batch"), "batch size must be even when"),
    "one head": ((Q, K[:1], K[:1], LENGTHS, TABLE), dict(megacore_mode="kv_head"), "number of KV heads must be even when"),
    "size": ((Q[..., :64], K, K, LENGTHS, TABLE), {}, "head_dim of Q must be the same as that of K/V. Got 64 and 128."),
    "lengths": ((Q, K, K, LENGTHS[:1], TABLE), {}, "`lengths` and `q` must have the same batch size"),
    "table": ((Q, K, K, LENGTHS, TABLE[:1]), {}, "`page_indices` and `q` must have the same batch size"),
    "dtype": ((Q, K, K, LENGTHS.astype("f"), TABLE), {}, "The dtype of `lengths` must be int32. Got float32"),
}  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("name", UNFIT)
def test_operands_that_paged_attention_refuses(name):
    operands, options, phrase = UNFIT[name]
    given = dict(pages_per_compute_block=2) | options
    compare.same_refusal(lambda tpu_paged: lambda: tpu_paged.paged_attention(*operands, **given), [phrase])


# ---- all-gather ----------------------------------------------------------------------------------------

from minijax.experimental.pallas.ops.tpu import all_gather as gathering  # noqa: E402

compare.SHORT_NAMES["all_gather"] = "experimental.pallas.ops.tpu.all_gather"


@pytest.mark.oracle
def test_meshes_that_an_all_gather_refuses():
    x = np.ones((8, 128), np.float32)
    for names, shape in (("xy", (1, 1)), (("x", "y"), (1, 1)), ("z", (1,))):

        def program(jax, all_gather, names=names, shape=shape):
            mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]).reshape(shape), ("x", "y")[: len(shape)])
            return lambda: all_gather.all_gather(x, mesh=mesh, axis_name=names)

        compare.same_refusal(program)


def test_neighbours_are_around_the_ring():
    class Ring:
        shape, axis_names = {"x": 4}, ("x",)

    for place, direction, want in ((3, "right", 0), (1, "right", 2), (0, "left", 3), (2, "left", 1)):
        assert int(gathering.get_neighbor(jnp.int32(place), Ring, "x", direction=direction)[0]) == want


# ---- options -------------------------------------------------------------------------------------------


@interpreted
@pytest.mark.parametrize("option", ["x64", "strict promotion"])
def test_kernels_have_the_same_results_under_options(option):
    xs, sizes = heads(32), np.array([100, 28], np.int32)
    x, w = normal(128, 64), normal(2, 64, 48, seed=1)
    k, v, lengths, table = pages()
    q = jnp.asarray(normal(3, 8, 128)) / 10

    def run():
        loss = lambda q: flash.flash_attention(q, *xs[1:], causal=True, block_sizes=SMALL).sum()  # noqa: E731
        product = gmm(x, w, sizes, tiling=(32, 32, 48), interpret=True)
        return jax.grad(loss)(xs[0]), product, paged.paged_attention(q, k, v, lengths, table, pages_per_compute_block=4)

    want = run()
    with jax.enable_x64(True) if option == "x64" else jax.numpy_dtype_promotion("strict"):
        got = run()
    compare.same_value(got, want, rtol=1e-5, atol=1e-6, why=ROUNDED)
