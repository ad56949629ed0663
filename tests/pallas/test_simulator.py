"""Kernels on a simulated TPU have the values of jax's simulator."""

import threading

import compare
import numpy as np
import pallas_kernels  # noqa: F401  the short names of Pallas' modules
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.experimental import pallas as pl
from minijax.experimental.pallas import fuser, tpu as pltpu
from minijax.run.programs.inline import InlineProgram

rng = np.random.default_rng(0)
X = rng.normal(size=(16, 128)).astype(np.float32)
TALL = rng.normal(size=(20, 128)).astype(np.float32)
SQUARE = rng.normal(size=(256, 256)).astype(np.float32)
INTS = rng.integers(-99, 99, size=(16, 128)).astype(np.int32)


def rows(pl, n=8):
    return pl.BlockSpec((n, 128), lambda i: (i, 0))


def whole(pl):
    return pl.BlockSpec(memory_space=pl.ANY)


def double(x, o):
    o[...] = 2 * x[...]


# ---- values: each program returns a function of `InterpretParams` -------------------------------------------


def steps(jax, jnp, lax, pl, pltpu):
    def call(p):
        return pl.pallas_call(
            double,
            jax.ShapeDtypeStruct((16, 128), jnp.float32),
            grid=2,
            in_specs=[rows(pl)],
            out_specs=rows(pl),
            interpret=p,
        )

    return lambda p: call(p)(X)


def last_block_sticks_out(jax, jnp, lax, pl, pltpu):
    def call(p):
        return pl.pallas_call(
            double,
            jax.ShapeDtypeStruct((24, 128), jnp.float32),
            grid=3,
            in_specs=[rows(pl)],
            out_specs=rows(pl),
            interpret=p,
        )

    return lambda p: call(p)(TALL)


def matmul(jax, jnp, lax, pl, pltpu):
    def kernel(a, b, o, total):
        @pl.when(pl.program_id(2) == 0)
        def _():
            total[...] = jnp.zeros_like(total)

        total[...] += a[...] @ b[...]

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _():
            o[...] = total[...]

    specs = [pl.BlockSpec((128, 128), lambda i, j, k: (i, k)), pl.BlockSpec((128, 128), lambda i, j, k: (k, j))]
    out = pl.BlockSpec((128, 128), lambda i, j, k: (i, j))
    return lambda p: pl.pallas_call(
        kernel,
        jax.ShapeDtypeStruct((256, 256), jnp.float32),
        grid=(2, 2, 2),
        in_specs=specs,
        out_specs=out,
        scratch_shapes=[pltpu.VMEM((128, 128), jnp.float32)],
        interpret=p,
    )(SQUARE, SQUARE)


def copies(jax, jnp, lax, pl, pltpu):
    """Each step starts the copy of the next one, and uses two buffers in turn."""

    def kernel(x, o, buffers, semaphores, done):
        i = pl.program_id(0)
        copy = lambda n: pltpu.make_async_copy(  # noqa: E731
            x.at[pl.ds(n * 4, 4)], buffers.at[lax.rem(n, 2)], semaphores.at[lax.rem(n, 2)]
        )

        @pl.when(i == 0)
        def _():
            copy(0).start()

        @pl.when(i < 3)
        def _():
            copy(i + 1).start()

        copy(i).wait()
        slot = lax.rem(i, 2)
        buffers[slot] = buffers[slot] + 1
        out = pltpu.make_async_copy(buffers.at[slot], o.at[pl.ds(i * 4, 4)], done)
        out.start()
        out.wait()

    scratch = [pltpu.VMEM((2, 4, 128), jnp.float32), pltpu.SemaphoreType.DMA((2,)), pltpu.SemaphoreType.DMA]
    return lambda p: pl.pallas_call(
        kernel,
        jax.ShapeDtypeStruct((16, 128), jnp.float32),
        grid=4,
        in_specs=[whole(pl)],
        out_specs=whole(pl),
        scratch_shapes=scratch,
        interpret=p,
    )(X)


def prefetched_numbers(jax, jnp, lax, pl, pltpu):
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(4,),
        in_specs=[pl.BlockSpec((4, 128), lambda i, order: (order[i], 0))],
        out_specs=pl.BlockSpec((4, 128), lambda i, order: (i, 0)),
    )

    def kernel(order, x, o):
        o[...] = x[...] * order[pl.program_id(0)]

    out = jax.ShapeDtypeStruct((16, 128), jnp.int32)
    return lambda p: pl.pallas_call(kernel, out, grid_spec=spec, interpret=p)(np.array([2, 0, 3, 1], np.int32), INTS)


def aliased(jax, jnp, lax, pl, pltpu):
    def kernel(x, o, count):
        @pl.when(pl.program_id(0) + pl.program_id(1) == 0)
        def _():
            count[0] = jnp.int32(0)

        count[0] = count[0] + 1
        o[...] = x[...] + count[0]

    spec = lambda f: pl.BlockSpec((4, 128), f)  # noqa: E731
    return lambda p: pl.pallas_call(
        kernel,
        jax.ShapeDtypeStruct((8, 256), jnp.int32),
        grid=(2, 2),
        in_specs=[spec(lambda i, j: (i, j))],
        out_specs=spec(lambda i, j: (j, i)),
        scratch_shapes=[pltpu.SMEM((1,), jnp.int32)],
        input_output_aliases={0: 0},
        interpret=p,
    )(INTS.reshape(8, 256))


def grid_of_unknown_size(jax, jnp, lax, pl, pltpu):
    def call(p):
        f = lambda n, x: pl.pallas_call(  # noqa: E731
            double,
            jax.ShapeDtypeStruct((16, 128), jnp.float32),
            grid=(n,),
            in_specs=[rows(pl)],
            out_specs=rows(pl),
            interpret=p,
        )(x)
        return jax.jit(f)(np.int32(2), X)

    return call


def loops(jax, jnp, lax, pl, pltpu):
    def kernel(x, o, total):
        total[...] = jnp.zeros_like(total)

        def body(i, carry):
            total[pl.ds(0, 1)] += x[pl.ds(i, 1)]
            return carry + i

        count = lax.fori_loop(0, 8, body, jnp.int32(0))
        last = lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + x[c[0], 0]), (jnp.int32(0), count))[1]
        o[...] = total[...] + last

    out = jax.ShapeDtypeStruct((16, 128), jnp.int32)
    scratch = [pltpu.VMEM((16, 128), jnp.int32)]
    return lambda p: pl.pallas_call(kernel, out, scratch_shapes=scratch, interpret=p)(INTS)


def views(jax, jnp, lax, pl, pltpu):
    def store(ref, value):
        ref[...] = value

    def fixed(x, o):
        o[...] = x[...]
        store(o.at[pl.ds(8, 8)].at[2, :], x[3, :])
        o[4:6, :128] = x.at[2:10][1:3]
        o[15] = x[0]

    out = jax.ShapeDtypeStruct((16, 128), jnp.float32)
    return lambda p: pl.pallas_call(fixed, out, interpret=p)(X)


def scopes(jax, jnp, lax, pl, pltpu):
    def kernel(x, o):
        def body(buffer, semaphore):
            pltpu.make_async_copy(x, buffer, semaphore).start()
            pltpu.make_async_copy(x, buffer, semaphore).wait()
            return jnp.sum(buffer[...], axis=0, keepdims=True)

        total = pl.run_scoped(body, pltpu.VMEM((16, 128), jnp.float32), pltpu.SemaphoreType.DMA)
        o[...] = jnp.broadcast_to(total, o.shape)

    out = jax.ShapeDtypeStruct((8, 128), jnp.float32)
    return lambda p: pl.pallas_call(kernel, out, in_specs=[whole(pl)], interpret=p)(X)


def masks(jax, jnp, lax, pl, pltpu):
    def kernel(i, x, mask, o):
        o[...] = jnp.zeros(o.shape, o.dtype)
        pltpu.store(o.at[pl.ds(i[0], 16), :], x[...], mask=mask[...])

    mask = np.zeros((16, 128), np.bool_)
    mask[1, 3:9] = True
    spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1)
    out = jax.ShapeDtypeStruct((16, 128), jnp.float32)
    return lambda p: pl.pallas_call(kernel, out, grid_spec=spec, interpret=p)(np.array([4], np.int32), X, mask)


def two_cores(jax, jnp, lax, pl, pltpu):
    mesh = pltpu.create_tensorcore_mesh("c", num_cores=2)

    def call(p):
        def body(x, o, buffer, arrived, copied):
            own = lax.axis_index("c")
            for core in range(2):
                pl.semaphore_signal(arrived, 1, core_index=core)
            pl.semaphore_wait(arrived, 2)
            part = pl.ds(own * 8, 8)
            pltpu.async_copy(x.at[part], buffer, copied).wait()
            buffer[...] = buffer[...] + own.astype(jnp.float32)
            pltpu.async_copy(buffer, o.at[part], copied).wait()

        scratch = [pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.REGULAR, pltpu.SemaphoreType.DMA]
        out = jax.ShapeDtypeStruct((16, 128), jnp.float32)
        return pl.kernel(body, out, mesh=mesh, scratch_types=scratch, interpret=p)(X)

    return call


def core_map(jax, jnp, lax, pl, pltpu):
    mesh = pltpu.create_tensorcore_mesh("c", num_cores=2)

    def call(p):
        def run(refs):
            x, y = refs

            @pl.core_map(mesh, interpret=p)
            def _():
                part = pl.ds(lax.axis_index("c") * 8, 8)
                pltpu.sync_copy(x.at[part], y.at[part])

        return pl.run_state(run)((jnp.asarray(X), jnp.zeros((16, 128))))

    return call


def barrier_of_cores(jax, jnp, lax, pl, pltpu):
    mesh = pltpu.create_tensorcore_mesh("c", num_cores=2)

    def body(x, o, semaphore):
        pltpu.core_barrier(semaphore, core_axis_name="c")
        pltpu.run_on_first_core("c")(lambda: pltpu.sync_copy(x, o))

    out, scratch = jax.ShapeDtypeStruct((16, 128), jnp.float32), [pltpu.SemaphoreType.REGULAR]
    return lambda p: pl.kernel(body, out, mesh=mesh, scratch_types=scratch, interpret=p)(X)


def named_axes(jax, jnp, lax, pl, pltpu):
    def kernel(x, o):
        o[...] = x[...] + 10 * lax.axis_index("a") + lax.axis_index("b")

    spec = pl.BlockSpec((4, 128), lambda i, j: (2 * i + j, 0))
    grid = pl.GridSpec(grid=(("a", 2), ("b", 2)), in_specs=[spec], out_specs=spec)
    out = jax.ShapeDtypeStruct((16, 128), jnp.int32)
    return lambda p: pl.pallas_call(kernel, out, grid_spec=grid, interpret=p)(INTS)


PROGRAMS = [
    steps, last_block_sticks_out, matmul, copies, prefetched_numbers, aliased, grid_of_unknown_size, loops, views,
    scopes, masks, two_cores, core_map, barrier_of_cores, named_axes,
]  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("mode", ["on_wait", "eager"])
def test_values(program, mode):
    compare.same(
        lambda jax, jnp, lax, pl, pltpu: jax.block_until_ready(
            program(jax, jnp, lax, pl, pltpu)(pltpu.InterpretParams(dma_execution_mode=mode))
        ),
        rtol=1e-5,
        atol=1e-4,
        why="products and sums are added in another order",
    )


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_programs_without_races_raise_none(program):
    run = program(jax, jnp, jax.lax, pl, pltpu)
    for mode in ("on_wait", "eager"):
        watched = run(pltpu.InterpretParams(detect_races=True, dma_execution_mode=mode))
        plain = run(pltpu.InterpretParams())
        for a, b in zip(jax.tree.leaves(watched), jax.tree.leaves(plain), strict=True):
            np.testing.assert_array_equal(a, b)


# ---- transformations -------------------------------------------------------------------------------------------


def call(p, kernel=double, shape=(16, 128), n=8):
    out = jax.ShapeDtypeStruct(shape, jnp.float32)
    return pl.pallas_call(kernel, out, grid=shape[0] // n, in_specs=[rows(pl, n)], out_specs=rows(pl, n), interpret=p)


def test_calls_in_transformations():
    f = call(pltpu.InterpretParams())
    xs = np.stack([X, X + 1])
    np.testing.assert_array_equal(jax.jit(jax.vmap(f))(xs), 2 * xs)
    np.testing.assert_array_equal(jax.vmap(jax.jit(f), in_axes=1, out_axes=1)(xs.swapaxes(0, 1)), 2 * xs.swapaxes(0, 1))
    np.testing.assert_array_equal(jax.vmap(jax.vmap(f))(xs[None])[0], 2 * xs)
    np.testing.assert_allclose(jax.jit(jax.grad(lambda x: jnp.sum(f(x) * x)))(X), 4 * X, rtol=1e-5)
    y, dy = jax.jvp(f, (X,), (X,))
    np.testing.assert_array_equal(y, 2 * X)
    np.testing.assert_array_equal(dy, 2 * X)
    _, stacked = jax.lax.scan(lambda c, _: (f(c), c[0, 0]), X, None, length=3)
    np.testing.assert_allclose(stacked, X[0, 0] * 2.0 ** np.arange(3), rtol=1e-6)


def test_vmap_of_arrays_in_main_memory():
    def kernel(x, o):
        pltpu.sync_copy(x.at[pl.ds(0, 8)], o.at[pl.ds(8, 8)])
        pltpu.sync_copy(x.at[pl.ds(8, 8)], o.at[pl.ds(0, 8)])

    out = jax.ShapeDtypeStruct((16, 128), jnp.float32)
    for p in (pltpu.InterpretParams(), pltpu.InterpretParams(detect_races=True)):
        f = pl.pallas_call(kernel, out, in_specs=[whole(pl)], out_specs=whole(pl), interpret=p)
        xs = np.stack([X, X + 1, X - 1])
        np.testing.assert_array_equal(jax.vmap(f)(xs), np.concatenate([xs[:, 8:], xs[:, :8]], 1))


@pytest.mark.parametrize("mode", ["on_wait", "eager"])
def test_a_copy_that_adds(mode):
    def kernel(x, o):
        pltpu.sync_copy(x, o)
        pltpu.sync_copy(x.at[pl.ds(0, 4)], o.at[pl.ds(8, 4)], add=True)

    out, p = jax.ShapeDtypeStruct((16, 128), jnp.float32), pltpu.InterpretParams(dma_execution_mode=mode)
    y = pl.pallas_call(kernel, out, in_specs=[whole(pl)], out_specs=whole(pl), interpret=p)(X)
    want = X.copy()
    want[8:12] += X[:4]
    np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.int8, jnp.uint32, jnp.bool_, jnp.float8_e4m3fn, jnp.int4])
def test_dtypes_of_blocks(dtype):
    def kernel(x, o, buffer):
        buffer[...] = x[...]
        o[...] = buffer[...]

    x = jnp.asarray(np.arange(16 * 128).reshape(16, 128) % 2, dtype)
    out = jax.ShapeDtypeStruct((16, 128), dtype)
    scratch = [pltpu.VMEM((8, 128), dtype)]
    options = dict(grid=2, in_specs=[rows(pl)], out_specs=rows(pl), scratch_shapes=scratch)
    y = pl.pallas_call(kernel, out, interpret=pltpu.InterpretParams(), **options)(x)
    np.testing.assert_array_equal(y, x)


def test_views_of_other_shapes_and_bits():
    shapes = [((16, 128), jnp.int32), ((2, 128), jnp.float32), ((16, 128), jnp.int16)]
    x = np.arange(16 * 128, dtype=np.int32).reshape(16, 128)

    def run(interpret):
        def sliced(x, o, p, q):
            o[...] = x[...]
            p[...] = x.bitcast(jnp.float32).reshape(8, 2, 128)[1]
            q[...] = x.at[pl.ds(8, 8)].bitcast(jnp.int16)[...]
            o.reshape(2, 8, 128)[1] = x[:8]

        return pl.pallas_call(sliced, [jax.ShapeDtypeStruct(*s) for s in shapes], interpret=interpret)(x)

    for ours, plain in zip(run(pltpu.InterpretParams()), run(True), strict=True):
        np.testing.assert_array_equal(ours, plain)


NUMBERS = [-(2**31), -7, -1, 0, 1, 2, 5, 2**31 - 1]


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_scalars_are_those_of_xla(dtype):
    lax = jax.lax
    operations = [
        lax.add, lax.sub, lax.mul, lax.div, lax.rem, lax.min, lax.max, lax.bitwise_and, lax.bitwise_or, lax.bitwise_xor,
        lambda a, b: lax.select(a < b, a, b), lambda a, b: lax.clamp(a, b, a + 3),
        lambda a, b: (a == b).astype(dtype) + 2 * (a != b).astype(dtype) + 4 * ((a >= b) | ~(a > b)).astype(dtype),
        lambda a, b: lax.convert_element_type(a, jnp.int8).astype(dtype) - jnp.sign(b) + lax.neg(a), lambda a, b: abs(a),
    ]  # fmt: skip
    pairs = np.array([(a, b) for a in NUMBERS for b in NUMBERS], np.int64).astype(dtype).T

    def kernel(x, o):
        def body(i, _):
            for k, f in enumerate(operations):
                if dtype != np.uint32 or k != 14:
                    o[k, i] = f(x[0, i], x[1, i])
            return 0

        lax.fori_loop(0, pairs.shape[1], body, 0)

    out, smem = jax.ShapeDtypeStruct((len(operations), pairs.shape[1]), dtype), pl.BlockSpec(memory_space=pltpu.SMEM)
    got = pl.pallas_call(kernel, out, in_specs=[smem], out_specs=smem, interpret=pltpu.InterpretParams())(pairs)
    for k, f in enumerate(operations):
        if dtype != np.uint32 or k != 14:
            np.testing.assert_array_equal(got[k], f(*map(jnp.asarray, pairs)), err_msg=str(k))


@pytest.mark.parametrize("inner", [pltpu.InterpretParams(), True], ids=["simulated", "interpreted"])
def test_a_kernel_within_a_kernel(inner):
    out = jax.ShapeDtypeStruct((16, 128), jnp.float32)

    def outer(x, o):
        o[...] = 3 * pl.pallas_call(double, out, interpret=inner)(x[...])

    y = pl.pallas_call(outer, out, interpret=pltpu.InterpretParams())(X)
    np.testing.assert_allclose(y, 6 * X, rtol=1e-6)


def test_random_numbers_and_wide_ones():
    def kernel(seed, o):
        o[...] = jax.random.uniform(jax.random.key(seed[0]), (8, 128))

    smem, p = pl.BlockSpec(memory_space=pltpu.SMEM), pltpu.InterpretParams()
    y = pl.pallas_call(kernel, jax.ShapeDtypeStruct((8, 128), jnp.float32), in_specs=[smem], interpret=p)(np.array([3]))
    np.testing.assert_array_equal(y, jax.random.uniform(jax.random.key(3), (8, 128)))
    with jax.enable_x64(True):
        f = pl.pallas_call(
            lambda x, o: o.__setitem__(..., x[...] * 2 + pl.program_id(0)),
            jax.ShapeDtypeStruct((16, 128), jnp.float64),
            grid=2,
            in_specs=[rows(pl)],
            out_specs=rows(pl),
            interpret=p,
        )
        y = f(jnp.asarray(X, jnp.float64))
        assert y.dtype == np.float64
        np.testing.assert_array_equal(y, X.astype(np.float64) * 2 + np.repeat([0, 1], 8)[:, None])


def test_threads_share_a_function():
    f, found = jax.jit(call(pltpu.InterpretParams())), []

    def run(n):
        found.extend(np.array_equal(f(X + i), 2 * (X + i)) for i in range(n, n + 10))

    threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [True] * 40


def test_arrays_without_elements_and_grids_without_steps():
    empty = pl.pallas_call(double, jax.ShapeDtypeStruct((0, 128), jnp.float32), interpret=pltpu.InterpretParams())
    assert empty(np.ones((0, 128), np.float32)).shape == (0, 128)
    none = pl.pallas_call(
        double, jax.ShapeDtypeStruct((16, 128), jnp.float32), grid=0, interpret=pltpu.InterpretParams()
    )
    assert np.isnan(none(X)).all()


def test_results_without_operands():
    def kernel(o):
        o[...] = jnp.full((8, 128), 3.0)

    f = pl.pallas_call(kernel, jax.ShapeDtypeStruct((8, 128), jnp.float32), interpret=pltpu.InterpretParams())
    assert float(f()[0, 0]) == 3


def test_operations_that_are_others_in_kernels():
    @fuser.custom_fusion
    def twice(x):
        return x * 2

    twice.def_pull_block_spec(lambda blocks: blocks)
    twice.def_push_block_spec(lambda specs: specs)
    twice.def_eval_rule(lambda context, x: (x * 2,))
    twice.def_pallas_impl(lambda x: x + x + 1)

    def kernel(x, o, p):
        o[...] = jax.lax.fori_loop(0, 2, lambda i, y: twice(y), x[...])
        p[...] = pltpu.einshape("(ab)c->b(ac)", x[...], a=2)

    outs = [jax.ShapeDtypeStruct((16, 128), jnp.float32), jax.ShapeDtypeStruct((8, 256), jnp.float32)]
    for ours, plain in zip(
        *[pl.pallas_call(kernel, outs, interpret=p)(X) for p in (pltpu.InterpretParams(), True)], strict=True
    ):
        np.testing.assert_allclose(ours, plain, rtol=1e-6)


def test_a_step_runs_few_programs(monkeypatch):
    """All that a step computes between two accesses to memory is one program, and integers need none."""
    ran = []
    run = InlineProgram.__call__
    monkeypatch.setattr(InlineProgram, "__call__", lambda self, values: ran.append(0) or run(self, values))

    def kernel(x, y, o):
        start = 4 * (pl.program_id(0) % 2)
        rows = x[pl.ds(start, 4), :]
        z = jnp.exp(rows) @ jnp.tanh(y[...]).T + jnp.sum(rows, axis=1, keepdims=True)
        o[...] = z / jnp.max(jnp.abs(z), axis=0)

    spec = pl.BlockSpec((8, 128), lambda i: (i // 2, 0))
    out, out_spec = jax.ShapeDtypeStruct((16, 8), jnp.float32), pl.BlockSpec((4, 8), lambda i: (i, 0))
    options = dict(grid=4, in_specs=[spec] * 2, out_specs=out_spec)
    y = jax.block_until_ready(pl.pallas_call(kernel, out, interpret=pltpu.InterpretParams(), **options)(X, X))
    assert len(ran) == 4
    np.testing.assert_allclose(y, pl.pallas_call(kernel, out, interpret=True, **options)(X, X), rtol=1e-5)


def test_values_are_printed_and_callbacks_called(capfd):
    def kernel(x, o):
        jax.debug.print("step {}: {}", pl.program_id(0), x[0, 0])
        o[...] = x[...]

    jax.block_until_ready(call(pltpu.InterpretParams(), kernel)(np.ones((16, 128), np.float32)))
    assert "step 1: 1.0" in capfd.readouterr().out
