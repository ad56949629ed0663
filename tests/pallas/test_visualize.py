"""`minijax.kernels.visualize`: the blocks of each step, what is moved, and the page."""

import json
import re

import numpy as np
import pytest

import minijax as jax
import minijax.experimental.pallas as pl
import minijax.numpy as jnp
from minijax.experimental.pallas import tpu as pltpu
from minijax.kernels import visualize


def product(a, b, o):
    o[...] += a[...] @ b[...]


def matmul(block=128):
    cut = lambda index: pl.BlockSpec((block, block), index)  # noqa: E731
    return pl.pallas_call(
        product, jax.ShapeDtypeStruct((500, 384), jnp.float32), grid=(4, 3, 2),
        in_specs=[cut(lambda i, j, k: (i, k)), cut(lambda i, j, k: (k, j))], out_specs=cut(lambda i, j, k: (i, j)),
    )  # fmt: skip


A, B = np.ones((500, 256), np.float32), np.ones((256, 384), np.float32)


@pytest.mark.parametrize(
    "wrap", [lambda f: f, jax.jit, lambda f: lambda a, b: f(a + 1, b) * 2], ids=["call", "jit", "function"]
)
def test_blocks_of_each_step(wrap):
    shown = visualize(wrap(matmul()), A, B)
    assert shown.grid == (4, 3, 2) and shown.steps == 24 and shown.name == "product"
    a, b, o = shown.operands
    steps = np.indices((4, 3, 2)).reshape(3, -1)
    assert (a.starts == 128 * steps[[0, 2]].T).all() and (o.starts == 128 * steps[[0, 1]].T).all()
    assert (a.role, o.role) == ("read", "written") and a.block_bytes == 128 * 128 * 4
    assert int(a.changed.sum()) == 24 and int(o.changed.sum()) == 12  # a result stays for the steps of `k`
    assert b.moved == 24 * 128 * 128 * 4 and b.least == 256 * 384 * 4 and o.least == 500 * 384 * 4
    assert a.outside.sum() == 6 and not b.outside.any() and (np.flatnonzero(o.outside) >= 18).all()
    assert shown.bytes_per_step == 2 * 3 * 128 * 128 * 4 and shown.bytes_moved == a.moved + b.moved + o.moved
    assert "args[0]: float32[500, 256] in blocks [128, 128], read; 24 copies" in repr(shown)


def test_scratch_prefetched_scalars_and_dynamic_grids():
    rows = np.array([2, 0, 1], np.int32)
    spec = pltpu.PrefetchScalarGridSpec(
        1, (3,), [pl.BlockSpec((4, 128), lambda i, s: (s[i], 0))], pl.BlockSpec((None, 128), lambda i, s: (i, 0)),
        [pltpu.VMEM((8, 128), jnp.bfloat16), pltpu.SemaphoreType.DMA],
    )  # fmt: skip

    def kernel(s, x, o, low, sem):
        x[...] = x[...] + 1
        o[...] = x[0]

    shown = visualize(
        pl.pallas_call(kernel, jax.ShapeDtypeStruct((3, 128), jnp.float32), grid_spec=spec),
        rows,
        np.ones((12, 128), np.float32),
    )
    x, o = shown.operands
    assert x.starts[:, 0].tolist() == [8, 0, 4] and x.role == "read and written" and o.block == (1, 128)
    assert shown.bytes_per_step == 2 * (4 * 128 * 4 + 128 * 4) + 8 * 128 * 2 + 4

    many = lambda n, x: pl.pallas_call(kernel_of_copy, x, grid=(n,))(x)  # noqa: E731
    assert visualize(many, 5, jnp.ones(3)).grid == (5,)


def kernel_of_copy(x, o):
    o[...] = x[...]


def test_a_batch_is_an_axis_of_the_grid():
    f = jax.vmap(pl.pallas_call(kernel_of_copy, jax.ShapeDtypeStruct((8,), jnp.float32)))
    shown = visualize(f, jnp.ones((3, 8)))
    assert shown.grid == (3,) and shown.operands[0].starts.tolist() == [[0, 0], [1, 0], [2, 0]]


def test_the_page_holds_what_it_shows(tmp_path):
    shown = visualize(matmul(), A, B)
    shown.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    data = json.loads(re.search(r"const data = (.*);\n", page)[1])
    assert data["grid"] == [4, 3, 2] and [o["name"] for o in data["operands"]] == ["args[0]", "args[1]", "outputs"]
    assert data["operands"][0]["starts"] == shown.operands[0].starts.tolist()
    assert "<title>product</title>" in page and "src=" not in page and "http" not in page
    assert shown._repr_mimebundle_()["text/html"].startswith("<iframe srcdoc=")


def test_refused():
    with pytest.raises(ValueError, match="must call one kernel, but it calls 0"):
        visualize(jnp.sin, 1.0)
    with pytest.raises(ValueError, match="has 100000 steps, more than 65536"):
        visualize(pl.pallas_call(kernel_of_copy, jax.ShapeDtypeStruct((8,), jnp.float32), grid=(100_000,)), jnp.ones(8))
