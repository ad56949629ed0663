"""Splash attention: values and derivatives against operations of XLA and against jax's kernels, and modules."""

import compare
import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.experimental.pallas.ops.tpu import splash_attention as splash

ROUNDED = "sums in another order"
compare.SHORT_NAMES["splash_attention"] = "experimental.pallas.ops.tpu.splash_attention"


@pytest.fixture(autouse=True)
def _ranks_are_equal():
    """Arrays of different ranks are not broadcast, as users may want it."""
    with jax.numpy_rank_promotion("raise"):
        yield


def normal(*shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape).astype(np.float32)) / 3


def causal(heads=2, q=64, kv=64):
    return splash.MultiHeadMask([splash.CausalMask((q, kv))] * heads)


def dense(rows=64, columns=64):
    return (np.random.default_rng(5).random((rows, columns)) < 0.4) | np.eye(rows, columns, dtype=bool)


SIZES = splash.BlockSizes(16, 32, 16, 32, 16, 16, 16, 16)
LOCAL = splash.LocalMask((64, 64), (9, 3), 0)
MASKS = {
    "causal": causal(),
    "longer keys": causal(q=32, kv=64),
    "local": splash.MultiHeadMask([LOCAL] * 2),
    "full": splash.MultiHeadMask([splash.FullMask((64, 64))] * 2),
    "different heads": splash.MultiHeadMask([splash.CausalMask((64, 64)), LOCAL]),
    "random": splash.MultiHeadMask([splash.NumpyMask(dense()), splash.NumpyMask(dense().T)]),
    "sparse": splash.MultiHeadMask([splash.NumpyMask(np.eye(64, dtype=bool))] * 2),
    "chunks": splash.MultiHeadMask([splash.splash_attention_mask.ChunkedCausalMask((64, 64), 24)] * 2),
}
OPTIONS = {"plain": {}, "bound": dict(attn_logits_soft_cap=2.0)}


def operands(mask, kv_heads=2, value_size=32):
    heads, q_len, kv_len = mask.shape
    return normal(heads, q_len, 32), normal(kv_heads, kv_len, 32, seed=1), normal(kv_heads, kv_len, value_size, seed=2)


def check(kernel, reference, xs, *more):
    got, want = jax.device_get((kernel(*xs, *more), reference(*xs, *more)))  # on however many devices they are
    compare.same_value(got, want, rtol=1e-4, atol=1e-5, why=ROUNDED)
    loss = lambda f: lambda *xs: jnp.sum(jnp.sin(f(*xs, *more)))  # noqa: E731
    numbers = tuple(range(len(xs)))
    got, want = jax.device_get([jax.jit(jax.grad(loss(f), numbers))(*xs) for f in (kernel, reference)])
    compare.same_value(got, want, rtol=1e-3, atol=1e-4, why=ROUNDED)


@pytest.mark.parametrize("name", MASKS)
def test_masks(name):
    mask = MASKS[name]
    kernel = splash.make_splash_mha_single_device(mask, block_sizes=SIZES, interpret=True)
    check(kernel, splash.make_masked_mha_reference(mask), operands(mask))


def test_scores_with_a_bound_and_values_of_another_size():
    mask = MASKS["causal"]
    kernel = splash.make_splash_mha_single_device(mask, block_sizes=SIZES, attn_logits_soft_cap=0.5, interpret=True)
    reference = splash.make_masked_mha_reference(mask, attn_logits_soft_cap=0.5)
    check(kernel, reference, operands(mask, value_size=48))


def test_heads_that_share_keys():
    mask = causal(heads=4)
    kernel = splash.make_splash_mha_single_device(mask, block_sizes=SIZES, interpret=True)
    check(kernel, splash.make_masked_mha_reference(mask), operands(mask))
    q, k, v = operands(mask)
    kernel = splash.make_splash_mqa_single_device(mask, block_sizes=SIZES, interpret=True)
    check(kernel, splash.make_masked_mqa_reference(mask), (q, k[0], v[0]))


@pytest.mark.parametrize("name", ["causal", "random", "full"])
def test_segments(name):
    mask = MASKS[name]
    ids = splash.SegmentIds(*[jnp.asarray(np.arange(n) * 3 // n, jnp.int32) for n in mask.shape[1:]])
    kernel = splash.make_splash_mha_single_device(mask, block_sizes=SIZES, interpret=True)
    seen = np.stack([m[:, :] & (ids.q[:, None] == ids.kv[None, :]) for m in mask.masks])
    # Queries whose segment has no key that they see have no result that means something.
    q, k, v = operands(mask)
    rows = jnp.asarray(seen.any(-1))[..., None]
    masked = lambda f: lambda q, k, v: jnp.where(rows, f(q, k, v, ids), 0)  # noqa: E731
    check(masked(kernel), masked(splash.make_masked_mha_reference(mask)), (q, k, v))


def test_sinks():
    mask, sinks = MASKS["causal"], jnp.array([0.5, 2.0])
    kernel = splash.make_splash_mha_single_device(mask, block_sizes=SIZES, interpret=True)
    reference = splash.make_masked_mha_reference(mask)
    of = lambda f: lambda q, k, v, s: f(q, k, v, None, s)  # noqa: E731
    check(of(kernel), of(reference), (*operands(mask), sinks))


def test_arrays_as_masks_are_computed_when_the_program_runs():
    arrays = jnp.asarray(np.stack([dense(), dense().T]))
    reference = splash.make_masked_mha_reference(MASKS["random"])

    def run(mask, *xs):
        return splash.make_splash_mha_single_device(mask, block_sizes=SIZES, interpret=True)(*xs)

    check(lambda *xs: jax.jit(run)(arrays, *xs), reference, operands(arrays))
    written = splash.make_splash_mha_single_device(np.asarray(arrays), block_sizes=SIZES, interpret=True)
    check(written, reference, operands(arrays))


def test_logarithms_of_sums_are_returned():
    mask = MASKS["local"]
    kernel = splash.make_splash_mha_single_device(mask, block_sizes=SIZES, save_residuals=True, interpret=True)
    want = splash.make_masked_mha_reference(mask)(*operands(mask), save_residuals=True)
    compare.same_value(kernel(*operands(mask)), want, rtol=1e-4, atol=1e-5, why=ROUNDED)
    with pytest.raises(NotImplementedError, match="save residuals have no derivatives"):
        jax.grad(lambda q, k, v: kernel(q, k, v)[0].sum())(*operands(mask))


def test_a_kernel_is_an_argument_and_is_mapped():
    mask = MASKS["causal"]
    kernel = splash.make_splash_mha_single_device(mask, block_sizes=SIZES, interpret=True)
    xs = [jnp.stack([x, x * 2]) for x in operands(mask)]
    got = jax.jit(lambda kernel, xs: jax.vmap(kernel)(*xs))(kernel, xs)
    reference = splash.make_masked_mha_reference(mask)
    want = jnp.stack([reference(*[x[i] for x in xs]) for i in range(2)])
    compare.same_value(got, want, rtol=1e-4, atol=1e-5, why=ROUNDED)


def test_what_derivatives_need_has_a_name():
    mask = MASKS["causal"]
    kernel = splash.make_splash_mha_single_device(
        mask, block_sizes=SIZES, residual_checkpoint_name="attended", interpret=True
    )
    f = jax.checkpoint(kernel, policy=jax.checkpoint_policies.save_only_these_names("attended"))
    assert "name[name=attended]" in str(jax.make_jaxpr(jax.grad(lambda *xs: f(*xs).sum()))(*operands(mask)))


@pytest.mark.parametrize("name", ["causal", "random", "different heads"])
def test_kernels_are_lowered_in_both_directions(name):
    masks = {
        "causal": splash.MultiHeadMask([splash.CausalMask((512, 512))] * 2),
        "random": splash.MultiHeadMask([splash.NumpyMask(dense(512, 512))] * 2),
        "different heads": splash.MultiHeadMask(
            [splash.CausalMask((512, 512)), splash.LocalMask((512, 512), (9, 9), 0)]
        ),
    }
    kernel = splash.make_splash_mha_single_device(masks[name])
    xs = [jnp.ones((2, 512, 128), jnp.bfloat16)] * 3
    ids = splash.SegmentIds(*[jnp.zeros(512, jnp.int32)] * 2)
    for f, count in ((kernel, 1), (jax.grad(lambda *xs: kernel(*xs, ids).astype(jnp.float32).sum(), (0, 1, 2)), 3)):
        text = jax.jit(f).trace(*xs).lower(lowering_platforms=("tpu",)).as_text()
        assert text.count("tpu_custom_call") == count


@pytest.mark.oracle
@pytest.mark.parametrize(
    "make",
    [
        lambda m: m.CausalMask((256, 256)),
        lambda m: m.LocalMask((256, 256), (60, 9), 0),
        lambda m: m.FullMask((256, 256)),
    ],
)
def test_splash_attention_is_that_of_jax(make):
    xs = [np.asarray(normal(2, 256, 128, seed=i)) for i in range(3)]
    ids = np.arange(256, dtype=np.int32) // 100

    def program(jax, jnp, splash_attention):
        mask = splash_attention.MultiHeadMask([make(splash_attention)] * 2)
        kernel = splash_attention.make_splash_mha_single_device(mask, interpret=True)
        arrays, own = list(map(jnp.asarray, xs)), splash_attention.SegmentIds(jnp.asarray(ids), jnp.asarray(ids))
        grads = jax.grad(lambda *xs: jnp.sum(jnp.sin(kernel(*xs, own))), (0, 1, 2))(*arrays)
        saved = splash_attention.make_splash_mha_single_device(mask, interpret=True, save_residuals=True)
        reference = splash_attention.make_masked_mha_reference(mask)
        return kernel(*arrays), grads, saved(*arrays), reference(*arrays, save_residuals=True)

    compare.same(program, rtol=1e-3, atol=1e-4, why=ROUNDED)


X = np.ones((2, 256, 128), np.float32)
BAD = {
    "sizes": ((X, X[..., :64], X), "Expected 'key' head dimension to be: 128. Instead got: 64."),
    "lengths": ((X, X[:, :128], X), "to have the same leading dimensions."),
    "ranks": ((X[0], X, X), "not enough values to unpack"),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", BAD)
def test_shapes_are_refused_as_in_jax(name):
    def program(splash_attention):
        mask = splash_attention.MultiHeadMask([splash_attention.CausalMask((256, 256))] * 2)
        return lambda: splash_attention.make_splash_mha_single_device(mask, interpret=True)(*BAD[name][0])

    compare.same_refusal(program, [BAD[name][1]])


@pytest.mark.oracle
@pytest.mark.parametrize("case", ["blocks", "one head", "dtype", "backward", "segments"])
def test_kernels_are_refused_as_in_jax(case):
    def program(jax, splash_attention):
        m = splash_attention
        mask = m.MultiHeadMask([m.CausalMask((256, 256))] * 2)
        make = lambda mask=mask, **options: m.make_splash_mha_single_device(mask, interpret=True, **options)  # noqa: E731
        ids = m.SegmentIds(np.zeros(128, np.int32), np.zeros(256, np.int32))
        return {
            "blocks": lambda: make(block_sizes=m.BlockSizes(96, 128)),
            "one head": lambda: make(m.CausalMask((256, 256))),
            "dtype": lambda: make(np.ones((2, 256, 256))),
            "backward": lambda: jax.grad(lambda q: make(block_sizes=m.BlockSizes(128, 128))(q, X, X).sum())(X),
            "segments": lambda: make()(X, X, X, ids),
        }[case]

    phrases = dict(
        blocks="q_block_size=96 should divide", dtype="Mask must be a boolean array", backward="backward blocks"
    )
    phrases |= {"one head": "Unexpected mask shape: (256, 256)", "segments": "Invalid shape for q segment_ids: (128,)"}
    compare.same_refusal(program, [phrases[case]])


@pytest.mark.oracle
def test_names_and_shardings_are_those_of_jax():
    def program(jax, splash_attention):
        mask = splash_attention.MultiHeadMask([splash_attention.CausalMask((256, 256))] * 2)
        kernel = splash_attention.make_splash_mha_single_device(mask, interpret=True)
        P = jax.sharding.PartitionSpec  # noqa: N806
        mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]).reshape(1, 1), ("h", "q"))
        specs = jax.tree.leaves(kernel.manual_sharding_spec(jax.sharding.NamedSharding(mesh, P("h", "q"))))
        name = splash_attention.splash_attention_kernel.get_kernel_name
        return list(map(str, specs)), name(True, False, True, "fwd"), name(False, False, False, "dq")

    compare.same(program)


@pytest.mark.parametrize("shards", [(2, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("name", ["causal", "different heads", "random"])
def test_heads_and_queries_are_divided_among_devices(name, shards):
    P, (heads, queries) = jax.sharding.PartitionSpec, shards  # noqa: N806
    devices = jax.devices()[: heads * queries]
    if len(devices) < heads * queries:
        pytest.skip("there are not enough devices")
    mesh = jax.sharding.Mesh(np.array(devices).reshape(shards), ("h", "q"))
    kernel = splash.make_splash_mha(
        MASKS[name], head_shards=heads, q_seq_shards=queries, block_sizes=SIZES, interpret=True
    )
    spec = kernel.manual_sharding_spec(jax.sharding.NamedSharding(mesh, P("h", "q")))
    specs = (spec, P("h", "q"), P("h"), P("h"))
    run = jax.shard_map(lambda f, *xs: f(*xs), mesh=mesh, in_specs=specs, out_specs=P("h", "q"), check_vma=False)
    check(lambda *xs: jax.jit(run)(kernel, *xs), splash.make_masked_mha_reference(MASKS[name]), operands(MASKS[name]))


def test_transforms_of_kernels_in_each_other():
    mask, loss = MASKS["local"], lambda f: lambda q, k, v: jnp.sum(jnp.sin(f(q, k, v)))
    kernel = splash.make_splash_mha_single_device(mask, block_sizes=SIZES, interpret=True)
    reference = splash.make_masked_mha_reference(mask)
    xs = [jnp.stack([x, x / 2]) for x in operands(mask)]
    for transform in (
        lambda f: jax.jit(jax.vmap(jax.grad(loss(f)))),
        lambda f: jax.grad(loss(jax.vmap(f))),
        lambda f: jax.vmap(jax.grad(loss(jax.checkpoint(f)))),
        lambda f: lambda *xs: jax.lax.map(lambda x: jax.grad(loss(f))(*x), xs),
    ):
        compare.same_value(transform(kernel)(*xs), transform(reference)(*xs), rtol=1e-3, atol=1e-4, why=ROUNDED)
