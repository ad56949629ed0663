"""The library's kernels for TPUs run on simulated ones, without races."""

import functools

import compare
import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.experimental import pallas as pl
from minijax.experimental.pallas import tpu as pltpu
from minijax.experimental.pallas.ops.tpu import (
    all_gather,
    flash_attention as flash,
    matmul,
    paged_attention as paged,
    ragged_paged_attention as ragged,
    splash_attention as splash,
)
from minijax.experimental.pallas.ops.tpu.megablox.gmm import gmm, tgmm

ROUNDED = "sums in another order"
near = functools.partial(compare.same_value, rtol=1e-4, atol=1e-4, why=ROUNDED)


@pytest.fixture(autouse=True, params=["on_wait", "eager"])
def simulated(request):
    """All kernels are simulated."""
    with pltpu.force_tpu_interpret_mode(pltpu.InterpretParams(detect_races=True, dma_execution_mode=request.param)):
        yield


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_matmul():
    x, y = normal(32, 64), normal(64, 48, seed=1)
    near(matmul.matmul(x, y, block_shape=(16, 24), block_k=32), jnp.asarray(x @ y))


def test_products_of_groups():
    sizes, x, w = np.array([30, 0, 50, 48], np.int32), normal(128, 64), normal(4, 64, 48, seed=1)
    numbers = np.repeat(np.arange(4), sizes)
    near(gmm(x, w, sizes, tiling=(32, 32, 48)), jnp.einsum("mk,mkn->mn", x, w[numbers]))
    ends = np.cumsum(sizes)
    want = np.stack([x[e - n : e].T @ x[e - n : e] for n, e in zip(sizes, ends, strict=True)])
    near(tgmm(x.T, x, sizes, tiling=(32, 32, 32)), jnp.asarray(want))


def test_flash_attention_and_its_derivatives():
    xs = [jnp.asarray(normal(1, 2, 64, 32, seed=i)) for i in range(3)]
    sizes = flash.BlockSizes(16, 32, 16, 1, 16, 32, 32, 16, 16, 16, 32)
    ours = functools.partial(flash.flash_attention, causal=True, block_sizes=sizes)
    reference = functools.partial(flash.mha_reference, ab=None, causal=True)
    near(ours(*xs), reference(*xs))
    of = lambda f: jax.grad(lambda *xs: jnp.sum(jnp.sin(f(*xs))), (0, 1, 2))(*xs)  # noqa: E731
    compare.same_value(of(ours), of(reference), rtol=1e-3, atol=1e-4, why=ROUNDED)


def test_splash_attention():
    mask = splash.MultiHeadMask([splash.CausalMask((64, 64))] * 2)
    q, k, v = (jnp.asarray(normal(2, 64, 32, seed=i)) / 3 for i in range(3))
    kernel = splash.make_splash_mha_single_device(mask, block_sizes=splash.BlockSizes(16, 32, 16, 32, 16, 16, 16, 16))
    near(kernel(q, k, v), splash.make_masked_mha_reference(mask)(q, k, v))


def test_paged_attention():
    k, v = (jnp.asarray(normal(2, 24, 16, 128, seed=i)) for i in (1, 2))
    table = np.random.default_rng(0).integers(0, 24, (3, 8)).astype(np.int32)
    lengths, q = np.array([1, 128, 77], np.int32), jnp.asarray(normal(3, 8, 128)) / 10
    rows = [x[:, table].transpose(1, 0, 2, 3, 4).reshape(3, 2, -1, 128) for x in (k, v)]
    want = paged.util.grouped_query_attention_reference(q, *rows, lengths, None)
    near(paged.paged_attention(q, k, v, lengths, table, pages_per_compute_block=4), want)


def test_ragged_paged_attention():
    q, pages = jnp.asarray(normal(16, 4, 128)) / 10, jnp.asarray(normal(10, 8, 4, 128, seed=1))
    table = np.random.default_rng(0).integers(0, 10, (3, 3)).astype(np.int32)
    operands = q, pages, np.array([9, 20, 0], np.int32), table, np.array([0, 5, 14, 0], np.int32), np.array([2])
    operands = (*operands[:5], operands[5].astype(np.int32))
    got = ragged.ragged_paged_attention(*operands, num_queries_per_block=8, num_kv_pages_per_block=2)
    near(got[:14], ragged.ref_ragged_paged_attention(*operands))


@pytest.mark.parametrize("space", [pltpu.VMEM, pltpu.HBM])
@pytest.mark.parametrize("shape", [(32, 128), (96, 128), (12, 8, 128)])
def test_all_gather(shape, space):
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:4]), ("x",))
    x = normal(*shape)
    np.testing.assert_array_equal(all_gather.all_gather(x, mesh=mesh, axis_name="x", memory_space=space), x)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_pipelines_within_kernels(count):
    def double(x, o):
        o[...] = 2 * x[...]

    spec, whole = pl.BlockSpec((8, 128), lambda i: (i, 0)), pl.BlockSpec(memory_space=pl.ANY)
    own = pl.BlockSpec((8, 128), lambda i: (i, 0), pipeline_mode=pl.Buffered(count))
    body = lambda x, o: pltpu.emit_pipeline(double, grid=(4,), in_specs=[own], out_specs=spec)(x, o)  # noqa: E731
    x = normal(32, 128)
    f = pl.pallas_call(body, jax.ShapeDtypeStruct((32, 128), jnp.float32), in_specs=[whole], out_specs=whole)
    np.testing.assert_array_equal(f(x), 2 * x)
    np.testing.assert_array_equal(jax.vmap(f)(np.stack([x, x + 1])), 2 * np.stack([x, x + 1]))


def test_a_pipeline_whose_last_block_sticks_out():
    def double(x, o):
        o[...] = 2 * x[...]

    spec, whole = pl.BlockSpec((8, 128), lambda i: (i, 0)), pl.BlockSpec(memory_space=pl.ANY)
    body = lambda x, o: pltpu.emit_pipeline(double, grid=(4,), in_specs=[spec], out_specs=spec)(x, o)  # noqa: E731
    x, out = normal(30, 128), jax.ShapeDtypeStruct((30, 128), jnp.float32)
    f = pl.pallas_call(body, out, in_specs=[whole], out_specs=whole)
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"Out-of-bounds read of .*: \[24:32, 0:128\]"):
        jax.block_until_ready(f(x))
    with pltpu.force_tpu_interpret_mode(pltpu.InterpretParams(buffer_bounds="padded")):
        np.testing.assert_array_equal(f(x), 2 * x)
