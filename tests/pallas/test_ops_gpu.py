"""Kernels for GPUs: values and derivatives against operations of XLA and against jax's kernels, and their modules."""

import functools

import compare
import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp

ROUNDED = "sums in another order"
for _name in "attention decode_attention layer_norm paged_attention rms_norm softmax".split():
    compare.SHORT_NAMES[f"gpu_{_name}"] = f"experimental.pallas.ops.gpu.{_name}"
rms_norm, layer_norm, softmax = (
    getattr(jax.experimental.pallas.ops.gpu, name) for name in ("rms_norm", "layer_norm", "softmax")
)


@pytest.fixture(autouse=True)
def _ranks_are_equal():
    """Arrays of different ranks are not broadcast, as users may want it."""
    with jax.numpy_rank_promotion("raise"):
        yield


def normal(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def lowers(f, *xs):
    """The function's module for CUDA, which has a kernel."""
    text = jax.jit(f).trace(*xs).lower(lowering_platforms=("cuda",)).as_text()
    assert "__gpu$xla.gpu.triton" in text
    return text


# ---- rows ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(2, 3, 192), (5,), (1, 1), (4, 128)])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_softmax(shape, dtype):
    x = jnp.asarray(normal(*shape)).astype(dtype)
    got = softmax.softmax(x, interpret=True)
    want = jax.nn.softmax(x.astype(jnp.float32), -1).astype(dtype)
    compare.same_value(got, want, rtol=1e-6 if dtype == "float32" else 1e-2, why=ROUNDED)
    lowers(softmax.softmax, x)


@pytest.mark.oracle
def test_softmax_of_other_axes_is_refused_as_in_jax():
    x = normal(2, 3)
    compare.same_refusal(
        lambda gpu_softmax: lambda: gpu_softmax.softmax(x, axis=0), ["reductions along non-trailing dimension"]
    )


def test_softmax_of_rows_in_vmap_and_scan():
    x = jnp.asarray(normal(3, 4, 24))
    f = functools.partial(softmax.softmax, interpret=True)
    want = jax.nn.softmax(x, -1)
    compare.same_value(jax.jit(jax.vmap(f, 1, 1))(x), want, rtol=1e-6, why=ROUNDED)
    compare.same_value(jax.lax.scan(lambda c, x: (c, f(x)), 0, x)[1], want, rtol=1e-6, why=ROUNDED)


NORMS = {"layer_norm": (layer_norm.layer_norm, layer_norm.layer_norm_reference),
         "rms_norm": (rms_norm.rms_norm, rms_norm.rms_norm_reference)}  # fmt: skip


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("shape", [(2, 40, 192), (1, 3, 128), (7, 300), (5,)])
def test_norms_and_their_derivatives(name, shape):
    f, reference = NORMS[name]
    x, w, b = (jnp.asarray(normal(*s, seed=i)) for i, s in enumerate((shape, shape[-1:], shape[-1:])))
    c = jnp.asarray(normal(*shape, seed=9))
    compare.same_value(f(x, w, b, interpret=True), reference(x, w, b), rtol=1e-4, atol=1e-5, why=ROUNDED)
    loss = lambda f: lambda *xs: jnp.sum(jnp.sin(f(*xs)) * c)  # noqa: E731
    ours = lambda *xs, how="triton": f(*xs, backward_pass_impl=how, interpret=True)  # noqa: E731
    want = jax.grad(loss(reference), (0, 1, 2))(x, w, b)
    compare.same_value(jax.grad(loss(ours), (0, 1, 2))(x, w, b), want, rtol=2e-3, atol=1e-4, why=ROUNDED)
    by_xla = jax.jit(jax.grad(loss(functools.partial(ours, how="xla")), (0, 1, 2)))(x, w, b)
    compare.same_value(by_xla, want, rtol=2e-3, atol=1e-4, why=ROUNDED)


@pytest.mark.parametrize("name", NORMS)
def test_norms_of_half_precision_in_vmap(name):
    f, reference = NORMS[name]
    x, w, b = jnp.asarray(normal(3, 4, 64)).astype(jnp.bfloat16), jnp.ones(64), jnp.zeros(64)
    run = jax.jit(jax.vmap(lambda x: f(x, w, b, interpret=True)))
    assert run(x).dtype == jnp.bfloat16
    wide = x.astype(jnp.float32)
    compare.same_value(run(x).astype(jnp.float32), reference(wide, w, b), rtol=1e-2, atol=1e-2, why="bfloat16")


@pytest.mark.parametrize("name", NORMS)
def test_norms_are_lowered_in_both_directions(name):
    f, _ = NORMS[name]
    x, w = jnp.ones((2, 24, 192)), jnp.ones(192)
    lowers(f, x, w, w)
    text = lowers(jax.grad(lambda x, w, b: f(x, w, b).sum(), (0, 1, 2)), x, w, w)
    assert text.count("__gpu$xla.gpu.triton") == 3  # rows with their statistics, then rows, then weights and biases


@pytest.mark.parametrize("name", NORMS)
def test_another_backward_pass_is_refused(name):
    with pytest.raises(ValueError, match="Invalid backward pass implementation: cuda"):
        NORMS[name][0](jnp.ones((1, 8)), jnp.ones(8), jnp.ones(8), backward_pass_impl="cuda")


@pytest.mark.oracle
@pytest.mark.parametrize("name", NORMS)
def test_norms_are_those_of_jax(name):
    x, w, b = normal(2, 5, 72), normal(72, seed=1), normal(72, seed=2)

    def program(jax, jnp, gpu_layer_norm, gpu_rms_norm):
        module = dict(layer_norm=gpu_layer_norm, rms_norm=gpu_rms_norm)[name]
        f = lambda x, w, b: getattr(module, name)(x, w, b, interpret=True)  # noqa: E731
        xs = jnp.asarray(x), jnp.asarray(w), jnp.asarray(b)
        grads = jax.grad(lambda *xs: jnp.sum(jnp.sin(f(*xs))), (0, 1, 2))(*xs)
        return f(*xs), grads, getattr(module, f"{name}_reference")(*xs)

    compare.same(program, rtol=1e-4, atol=1e-4, why=ROUNDED)


# ---- attention -----------------------------------------------------------------------------------------

attention = jax.experimental.pallas.ops.gpu.attention
SIZES = attention.BlockSizes(64, 32, 32, 16, 16, 32)


def heads(*lengths, size=32, count=2, batch=2, dtype="float32"):
    """Queries, keys and values, of one length or of two."""
    q, k = lengths[0], lengths[-1]
    return [jnp.asarray(normal(batch, n, count, size, seed=i)).astype(dtype) for i, n in enumerate((q, k, k))]


def segments(length):
    return jnp.asarray(np.arange(2 * length).reshape(2, length) % length * 3 // length, jnp.int32)


MHA = {
    "whole blocks": (heads(128), {}, False),
    "causal": (heads(128), dict(causal=True, sm_scale=0.3), False),
    "segments": (heads(96), {}, True),
    "causal segments": (heads(128), dict(causal=True, sm_scale=0.2), True),
    "head size": (heads(64, size=24), dict(causal=True), False),
    "part of a block": (heads(70), dict(sm_scale=0.2), False),
    "part of a block, causal, in segments": (heads(70), dict(causal=True), True),
    "fewer queries": (heads(32, 96), dict(sm_scale=0.3), False),
    "short": (heads(8, size=16), dict(causal=True), False),
}


@pytest.mark.parametrize("name", MHA)
def test_attention_and_its_derivatives(name):
    xs, options, in_segments = MHA[name]
    ids = segments(xs[0].shape[1]) if in_segments else None
    ours = lambda *xs: attention.mha(*xs, ids, block_sizes=SIZES, interpret=True, **options)  # noqa: E731
    reference = lambda *xs: attention.mha_reference(*xs, ids, **options)  # noqa: E731
    compare.same_value(ours(*xs), reference(*xs), rtol=1e-4, atol=1e-5, why=ROUNDED)
    loss = lambda f: lambda *xs: jnp.sum(jnp.sin(f(*xs)))  # noqa: E731
    want = jax.grad(loss(reference), (0, 1, 2))(*xs)
    compare.same_value(jax.jit(jax.grad(loss(ours), (0, 1, 2)))(*xs), want, rtol=1e-3, atol=1e-4, why=ROUNDED)


def test_attention_in_vmap_and_of_half_precision():
    xs = heads(64, dtype="float16")
    f = lambda *xs: attention.mha(*xs, None, 0.2, interpret=True)  # noqa: E731
    want = jnp.stack([attention.mha_reference(*xs, None, 0.2)] * 2)
    got = jax.jit(jax.vmap(f))(*[jnp.stack([x, x]) for x in xs])
    compare.same_value(got, want, atol=5e-3, why="half precision")
    grads = jax.grad(lambda *xs: f(*xs).astype(jnp.float32).sum(), (0, 1, 2))(*xs)
    by_xla = jax.grad(lambda *xs: attention.mha(*xs, None, 0.2, backward_pass_impl="xla", interpret=True).astype(jnp.float32).sum(), (0, 1, 2))  # fmt: skip
    compare.same_value(grads, by_xla(*xs), atol=2e-2, why="half precision")


def test_attention_is_lowered_in_both_directions():
    xs, ids = heads(128, dtype="float16"), segments(128)
    for options in (dict(), dict(causal=True, segment_ids=ids)):
        f = lambda *xs, o=options: attention.mha(*xs, **{"segment_ids": None, **o})  # noqa: E731
        lowers(f, *xs)
        assert lowers(jax.grad(lambda *xs, f=f: f(*xs).sum(), (0, 1, 2)), *xs).count("__gpu$xla.gpu.triton") == 3


@pytest.mark.oracle
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("in_segments", [False, True])
def test_attention_is_that_of_jax(causal, in_segments):
    xs = [np.asarray(x) for x in heads(128)]
    ids = np.asarray(segments(128)) if in_segments else None

    def program(jax, jnp, gpu_attention):
        attention = gpu_attention
        sizes = attention.BlockSizes(64, 64, 32, 32, 32, 32)
        arrays = [jnp.asarray(x) for x in xs]
        own = None if ids is None else jnp.asarray(ids)
        f = lambda *xs: attention.mha(*xs, own, 0.3, causal, sizes, interpret=True)  # noqa: E731
        grads = jax.grad(lambda *xs: jnp.sum(jnp.sin(f(*xs))), (0, 1, 2))(*arrays)
        with_sums = attention.mha(*arrays, own, 0.3, causal, sizes, interpret=True, return_residuals=True)
        return f(*arrays), with_sums, grads, attention.mha_reference(*arrays, own, 0.3, causal)

    compare.same(program, rtol=1e-3, atol=1e-4, why=ROUNDED)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "options, phrase",
    [
        (dict(return_residuals=True), "Kernel differentiation is not supported if return_residuals is True."),
        (dict(backward_pass_impl="foo"), "Invalid backward pass implementation: foo"),
        (dict(block_sizes=(64, 64)), "Backward block sizes must all be set."),
    ],
)
def test_derivatives_of_attention_are_refused_as_in_jax(options, phrase):
    x = normal(1, 64, 1, 16)

    def program(jax, gpu_attention):
        attention = gpu_attention
        given = {k: attention.BlockSizes(*v) if k == "block_sizes" else v for k, v in options.items()}
        return lambda: jax.grad(
            lambda q: jax.tree.leaves(attention.mha(q, q, q, None, interpret=True, **given))[0].sum()
        )(x)

    compare.same_refusal(program, [phrase])


def test_shapes_of_attention_that_do_not_fit_are_refused():
    q, k, v = heads(32, 64)
    with pytest.raises(ValueError, match="may differ in the length of queries only"):
        attention.mha(q, k[:, :, :1], v[:, :, :1], None, interpret=True)
    with pytest.raises(ValueError, match="need as many queries 32 as keys 64"):
        attention.mha(q, k, v, segments(64), interpret=True)


# ---- attention of one query ----------------------------------------------------------------------------

decode_attention, paged_attention = (
    getattr(jax.experimental.pallas.ops.gpu, name) for name in ("decode_attention", "paged_attention")
)
DECODE = {
    "all keys": ((2, 8, 2, 256), {}),
    "a window": ((2, 8, 2, 256), dict(start_idx=37, kv_seq_len=200)),
    "a window each": ((2, 8, 2, 256), dict(start_idx=np.array([3, 100]), kv_seq_len=np.array([250, 101]))),
    "one head of keys": ((1, 4, 1, 128), dict(k_splits=4, sm_scale=0.3)),
    "many heads": ((1, 40, 1, 128), dict(k_splits=2, block_k=32)),
    "part of a block": ((2, 6, 3, 100), dict(k_splits=3, block_k=16)),
}  # fmt: skip


@pytest.mark.parametrize("name", DECODE)
def test_attention_of_one_query(name):
    (batch, count, kv_count, length), options = DECODE[name]
    q = jnp.asarray(normal(batch, count, 16))
    k, v = (jnp.asarray(normal(batch, length, kv_count, 16, seed=i)) for i in (1, 2))
    of_reference = {n: o for n, o in options.items() if n in ("start_idx", "kv_seq_len", "sm_scale")}
    got = decode_attention.gqa(q, k, v, interpret=True, **options)
    compare.same_value(got, decode_attention.gqa_reference(q, k, v, **of_reference), rtol=1e-4, atol=1e-5, why=ROUNDED)
    parts = dict(return_residuals=True, normalize_output=False)
    got = jax.jit(lambda *xs: decode_attention.gqa(*xs, interpret=True, **parts, **options))(q, k, v)
    want = decode_attention.gqa_reference(q, k, v, **parts, **of_reference)
    compare.same_value(got, want, rtol=1e-4, atol=1e-4, why=ROUNDED)
    lowers(lambda *xs: decode_attention.gqa(*xs, **options), q, k, v)


def test_attention_of_one_query_with_common_keys_in_vmap():
    q, k, v = (jnp.asarray(normal(3, 2, *s, seed=i)) for i, s in enumerate(((4, 16), (128, 16), (128, 16))))
    f = jax.jit(jax.vmap(lambda *xs: decode_attention.mqa(*xs, kv_seq_len=90, k_splits=2, interpret=True)))
    want = jnp.stack([decode_attention.mqa_reference(*xs, kv_seq_len=90) for xs in zip(q, k, v, strict=True)])
    compare.same_value(f(q, k, v), want, rtol=1e-4, atol=1e-5, why=ROUNDED)
    lowers(decode_attention.mqa, q[0], k[0], v[0])


def test_keys_that_do_not_fit_are_refused():
    q, k = jnp.ones((1, 5, 16)), jnp.ones((1, 64, 2, 16))
    with pytest.raises(ValueError, match="the number of queries' heads is a multiple of that of keys' heads"):
        decode_attention.gqa(q, k, k, interpret=True)


def pages(page_size=16, count=24, kv_heads=2, size=16, per_sequence=10):
    k, v = (normal(kv_heads, count, page_size, size, seed=i) for i in (1, 2))
    table = np.random.default_rng(0).integers(0, count, (3, per_sequence)).astype(np.int32)
    return k, v, table, np.array([1, per_sequence * page_size, 77], np.int32)


def in_rows(pages, table):
    """The keys of each sequence in a row."""
    return jnp.asarray(pages[:, table].transpose(1, 2, 3, 0, 4).reshape(len(table), -1, len(pages), pages.shape[-1]))


@pytest.mark.parametrize("cap", [None, 1.5])
def test_attention_with_pages(cap):
    k, v, table, lengths = pages()
    q = jnp.asarray(normal(3, 8, 16)) / 4
    f = functools.partial(
        paged_attention.paged_attention, k_splits=3, pages_per_compute_block=2, attn_logits_soft_cap=cap
    )
    want = paged_attention.paged_attention_reference(
        q, in_rows(k, table), in_rows(v, table), lengths, attn_logits_soft_cap=cap
    )
    got = f(q, k, v, table, lengths, interpret=True)
    compare.same_value(got, want, rtol=1e-4, atol=1e-5, why=ROUNDED)
    everything = f(q, k, v, table, None, interpret=True)
    compare.same_value(everything[1], want[1], rtol=1e-4, atol=1e-5, why=ROUNDED)
    lowers(f, q, k, v, table, lengths)
    torn = np.where(np.arange(10) * 16 < lengths[:, None], table, -12345)
    compare.same_value(f(q, k, v, torn, lengths, interpret=True), want, rtol=1e-4, atol=1e-5, why=ROUNDED)


def test_pages_of_small_integers_with_factors():
    k, v, table, lengths = pages()
    small = lambda x: (np.clip(np.round(x * 30), -127, 127).astype(np.int8), np.full(x.shape[:3], 1 / 30, np.float32))  # noqa: E731
    (k8, k_scale), (v8, v_scale) = small(k), small(v)
    q = jnp.asarray(normal(3, 8, 16)) / 4
    f = functools.partial(paged_attention.paged_attention, k_splits=2)
    got = f(q, k8, v8, table, lengths, k_scale, v_scale, interpret=True)
    rows = [in_rows(x.astype(np.float32) / 30, table) for x in (k8, v8)]
    want = paged_attention.paged_attention_reference(q, *rows, lengths)
    compare.same_value(got, want, rtol=1e-4, atol=1e-5, why=ROUNDED)
    lowers(f, q, k8, v8, table, lengths, k_scale, v_scale)


@pytest.mark.oracle
def test_attention_of_one_query_is_that_of_jax():
    k, v, table, lengths = pages(per_sequence=16, page_size=16)
    q = normal(3, 8, 16) / 4
    kr, vr = np.asarray(in_rows(k, table)), np.asarray(in_rows(v, table))

    def program(jax, jnp, gpu_decode_attention, gpu_paged_attention):
        decode_attention, paged_attention = gpu_decode_attention, gpu_paged_attention
        paged = paged_attention.paged_attention(q, k, v, table, lengths, k_splits=4, interpret=True)
        parts = decode_attention.gqa(
            q, kr, vr, 5, 200, k_splits=8, interpret=True, return_residuals=True, normalize_output=False
        )
        plain = decode_attention.mqa_reference(q, kr[:, :, 0], vr[:, :, 0], 5, 200, return_residuals=True)
        return paged, parts, plain, decode_attention.mqa(q, kr[:, :, 0], vr[:, :, 0], k_splits=8, interpret=True)

    compare.same(program, rtol=1e-4, atol=1e-4, why=ROUNDED)


@pytest.mark.oracle
def test_heads_that_pages_do_not_fit_are_refused_as_in_jax():
    k, v, table, lengths = pages(per_sequence=16)
    compare.same_refusal(
        lambda gpu_paged_attention: (
            lambda: gpu_paged_attention.paged_attention(np.ones((3, 7, 16), "f"), k, v, table, lengths)
        ),
        ["Number of Q heads must be divisible by number of KV heads"],
    )


# ---- options -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["x64", "strict promotion"])
def test_kernels_have_the_same_results_under_options(option):
    xs, rows, columns = heads(32), jnp.asarray(normal(2, 3, 48)), jnp.asarray(normal(48))
    k, v, table, lengths = pages()
    q = jnp.asarray(normal(3, 8, 16)) / 4

    def run():
        loss = lambda q: attention.mha(q, *xs[1:], segments(32), 0.3, True, SIZES, interpret=True).sum()  # noqa: E731
        normed = lambda x: layer_norm.layer_norm(x, columns, columns, interpret=True).sum()  # noqa: E731
        paged = paged_attention.paged_attention(q, k, v, table, lengths, k_splits=2, interpret=True)
        one = decode_attention.mqa(q, in_rows(k, table)[:, :, 0], in_rows(v, table)[:, :, 0], 3, 100, interpret=True)
        return jax.grad(loss)(xs[0]), jax.grad(normed)(rows), softmax.softmax(rows, interpret=True), paged, one

    want = run()
    with jax.enable_x64(True) if option == "x64" else jax.numpy_dtype_promotion("strict"):
        got = run()
    compare.same_value(got, want, rtol=1e-5, atol=1e-6, why=ROUNDED)
