"""`minijax.kernels.visualize`: the blocks of each step, what is moved, and the page."""

import functools
import json
import re

import numpy as np
import pytest

import minijax as jax
import minijax.experimental.pallas as pl
import minijax.numpy as jnp
from minijax.experimental.pallas import tpu as pltpu
from minijax.kernels import visualize
from minijax.kernels.pipeline.emit import _Run


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


# ---- pipelines ------------------------------------------------------------------------------------------------

GRIDS = {
    "each step its block": lambda i, j: (i * 3 + j, 0),
    "blocks of three steps": lambda i, j: (i, 0),
    "the same blocks again": lambda i, j: (j, 0),
    "one block": lambda i, j: (0, 0),
    "a block, and then others": lambda i, j: (jnp.maximum(i * 3 + j - 3, 0), 0),
}


def pipelined(read, written, buffers, no_pipelining=False):
    """A kernel that runs a pipeline of six steps."""

    def kernel(x_ref, y_ref, o_ref):
        def body(x, y, o):
            o[...] = x[...] + y[...]

        block = lambda index, **options: pl.BlockSpec((8, 128), index, **options)  # noqa: E731
        pltpu.emit_pipeline(
            body, grid=(2, 3), in_specs=[block(read, pipeline_mode=pl.Buffered(buffers)), block(GRIDS["one block"])],
            out_specs=block(written), no_pipelining=no_pipelining,
        )(x_ref, y_ref, o_ref)  # fmt: skip

    whole = pl.BlockSpec(memory_space=pl.ANY)
    shape = jax.ShapeDtypeStruct((48, 128), jnp.float32)
    return pl.pallas_call(kernel, shape, in_specs=[whole, whole], out_specs=whole, interpret=pltpu.InterpretParams())


@pytest.mark.parametrize("buffers", [1, 2, 3])
@pytest.mark.parametrize("written", ["each step its block", "blocks of three steps"])
@pytest.mark.parametrize("read", GRIDS)
def test_the_copies_of_a_pipeline_are_those_that_run(monkeypatch, read, written, buffers):
    f = pipelined(GRIDS[read], GRIDS[written], buffers)
    ((shown),) = visualize(f, *OPERANDS).pipelines
    assert shown.grid == (2, 3) and shown.name == "body"
    flying = {"copy_in": 0, "copy_out": 0}
    at_bodies, found = [], []

    def event(kind):
        if kind == "body":
            at_bodies.append(tuple(flying.values()))
        elif kind.startswith("copy"):
            flying[kind] += 1
        else:
            flying[kind.replace("wait", "copy")] -= 1

    def told(kind, method):
        def run(self, *args):
            jax.debug.callback(functools.partial(event, kind))
            return method(self, *args)

        return run

    for kind in ("copy_in", "wait_in", "copy_out", "wait_out"):
        monkeypatch.setattr(pltpu.BufferedRef, kind, told(kind, getattr(pltpu.BufferedRef, kind)))
    run = _Run._call_body
    monkeypatch.setattr(_Run, "_call_body", lambda *args: told("body", lambda _: run(*args))(None))
    jax.clear_caches()
    jax.block_until_ready(f(*OPERANDS))
    jax.effects_barrier()
    for column in range(1, 7):
        marks = [lane.marks[column] for lane in shown.lanes]
        found.append((marks.count("in"), marks.count("out")))
    # A single buffer of a result is copied at once, after its step.
    assert at_bodies == found
    jax.clear_caches()


OPERANDS = jnp.ones((48, 128)), jnp.ones((8, 128))


def test_where_a_pipeline_waits():
    (shown,) = visualize(
        pipelined(GRIDS["each step its block"], GRIDS["blocks of three steps"], 2), *OPERANDS
    ).pipelines
    assert list(map(str, shown.waits)) == ["x before step 0", "y before step 0", "o after step 5"]
    assert shown.copies == 6 + 1 + 2
    (shown,) = visualize(pipelined(GRIDS["blocks of three steps"], GRIDS["one block"], 1), *OPERANDS).pipelines
    assert [str(w) for w in shown.waits if w.name == "x"] == ["x before step 0", "x before step 3"]
    (shown,) = visualize(pipelined(GRIDS["one block"], GRIDS["one block"], 2, no_pipelining=True), *OPERANDS).pipelines
    assert len(shown.waits) == shown.copies == 18


TABLE = """double over the grid (4,): 6 copies, 2 waits without work
                     before  0    1    2    3    after
  args[0], buffer 0  in      use  use  .    .    .
  args[0], buffer 1  .       .    in   use  use  .
  outputs, buffer 0  .       use  out  use  out  .
  outputs, buffer 1  .       .    use  out  use  out
  waits              wait    .    .    .    .    wait"""


def double(x, o):
    o[...] = 2 * x[...]


def test_the_copies_of_a_grid():
    block = lambda index: pl.BlockSpec((8, 128), index)  # noqa: E731
    shape = jax.ShapeDtypeStruct((32, 128), jnp.float32)
    f = pl.pallas_call(
        double, shape, grid=4, in_specs=[block(lambda i: (i // 2, 0))], out_specs=block(lambda i: (i, 0))
    )
    shown = visualize(f, jnp.ones((16, 128)))
    assert repr(shown.pipelines[0]) == TABLE
    page = json.loads(re.search(r"const data = (.*);\n", shown.html())[1])["pipelines"]
    assert page[0]["title"] == TABLE.split("\n")[0] and page[0]["lanes"][1][1:] == ["", "", "in", "use", "use", ""]
    whole = pl.BlockSpec(memory_space=pl.ANY)
    assert (
        visualize(
            pl.pallas_call(double, shape, grid=4, in_specs=[whole], out_specs=whole), jnp.ones((32, 128))
        ).pipelines
        == []
    )


def test_pipelines_of_cores_are_found_again_after_a_trace():
    mesh = pltpu.create_tensorcore_mesh("core", num_cores=2)
    block = pl.BlockSpec((8, 128), lambda i: (i, 0))

    @pl.kernel(out_type=jax.ShapeDtypeStruct((512, 128), jnp.float32), mesh=mesh, interpret=True)
    def doubled(x_ref, o_ref):
        half = pl.ds(256 * jax.lax.axis_index("core"), 256)
        pltpu.emit_pipeline(double, grid=(32,), in_specs=[block], out_specs=block)(x_ref.at[half], o_ref.at[half])

    doubled(jnp.ones((512, 128)))
    for _ in range(2):
        (shown,) = visualize(doubled, jnp.ones((512, 128))).pipelines
        assert (shown.steps, shown.copies) == (32, 64) and " 20 more  after" in repr(shown)


def test_blocks_that_the_kernel_chooses_are_refused():
    def kernel(n_ref, x_ref, o_ref):
        block = pl.BlockSpec((8, 128), lambda i: (n_ref[0] + i, 0))
        pltpu.emit_pipeline(double, grid=(2,), in_specs=[block], out_specs=block)(x_ref, o_ref)

    whole = pl.BlockSpec(memory_space=pl.ANY)
    f = pl.pallas_call(kernel, jax.ShapeDtypeStruct((48, 128), jnp.float32), interpret=True, out_specs=whole,
                       in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), whole])  # fmt: skip
    with pytest.raises(ValueError, match="visualize: the blocks .* depend on values of the kernel"):
        visualize(f, jnp.zeros(1, jnp.int32), jnp.ones((48, 128)))
