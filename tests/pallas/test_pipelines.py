"""Pipelines within kernels are traced to jax's jaxprs, and compute what they should."""

import contextlib

import compare
import numpy as np
import pallas_kernels  # noqa: F401  the short names of Pallas' modules
import pytest
from pallas.mosaic_calls import on_v5e

import minijax as jax
import minijax.numpy as jnp
from minijax.experimental import pallas as pl
from minijax.experimental.pallas import tpu as pltpu

rng = np.random.default_rng(0)
X = rng.normal(size=(512, 128)).astype(np.float32)
ROWS = (128, 128), lambda i: (i, 0)
PROGRAMS = {}


def double(x, o):
    o[...] = 2 * x[...]


def pipeline(*operands, shape=(512, 128), want=None, grid=(4,), specs=(ROWS, ROWS), modes=(None, None), **options):
    """Decorator: a function (modules) -> body of a pipeline over whole arrays, with its operands and result."""

    def listed(make):
        def program(jax, jnp, lax, pl, pltpu, plt):
            pairs = zip(specs, modes or [None] * len(specs), strict=False)
            made = [pl.BlockSpec(*s, pipeline_mode=None if n is None else pl.Buffered(abs(n), n < 0)) for s, n in pairs]
            given = {k: v(pltpu) if callable(v) else v for k, v in options.items()}
            body = make(jax, jnp, lax, pl, pltpu)
            options_of_specs = dict(grid=grid, in_specs=made[:-1], out_specs=made[-1])

            def kernel(*refs):
                pltpu.emit_pipeline(body, **options_of_specs, **given)(*refs)

            whole = pl.BlockSpec(memory_space=pl.ANY)
            out = jax.ShapeDtypeStruct(shape, jnp.float32)
            return pl.pallas_call(kernel, out, in_specs=[whole] * len(operands), out_specs=whole, interpret=True)

        PROGRAMS[make.__name__] = program, operands, want
        return make

    return listed


def _doubled(*modules):
    return double


def add(name, **options):
    """Adds a pipeline that doubles its operand."""
    _doubled.__name__ = name
    pipeline(options.pop("x", X), want=options.pop("want", 2 * X), **options)(_doubled)


TILES = (128, 64), lambda i, j: (i, j)
SLABS = (None, 64, 128), lambda i: (i, 0, 0)
add("rows")
add("tiles", grid=(4, 2), specs=(TILES, TILES))
add("three_buffers", modes=(3, None))
add("three_buffers_of_many", grid=(8,), specs=(((64, 128), ROWS[1]),) * 2, modes=(3, None))
add("one_buffer", modes=(1, None))
add("one_buffer_each", modes=(1, 1))
add(
    "hidden",
    grid=(8,),
    specs=(SLABS, SLABS),
    x=X.reshape(8, 64, 128),
    want=2 * X.reshape(8, 64, 128),
    shape=(8, 64, 128),
)
add("constant_block", specs=((ROWS[0], lambda i: (0, 0)), ROWS), want=np.tile(2 * X[:128], (4, 1)))
add("without_scopes", trace_scopes=False)
add("semantics", dimension_semantics=lambda pltpu: (pltpu.ARBITRARY,))


@pipeline(X, X, want=3 * X, specs=(ROWS,) * 3, modes=(None,) * 3)
def two_operands(jax, jnp, lax, pl, pltpu):
    def body(x, y, o):
        o[...] = x[...] + 2 * y[...]

    return body


@pipeline(X, want=X + 4 * np.repeat(np.arange(4, dtype=np.float32), 128)[:, None])
def numbers(jax, jnp, lax, pl, pltpu):
    def body(x, o):
        o[...] = x[...] + pl.program_id(0).astype(jnp.float32) * pl.num_programs(0)

    return body


@pipeline(X, want=X + np.repeat(np.arange(4, dtype=np.float32), 128)[:, None], _explicit_indices=True)
def indices(jax, jnp, lax, pl, pltpu):
    def body(index, x, o):
        o[...] = x[...] + index[0].astype(jnp.float32)

    return body


A, B = rng.normal(size=(256, 512)).astype(np.float32), rng.normal(size=(512, 256)).astype(np.float32)
PRODUCT = [((128, 128), f) for f in (lambda i, j, k: (i, k), lambda i, j, k: (k, j), lambda i, j, k: (i, j))]


@pipeline(A, B, want=A @ B, shape=(256, 256), grid=(2, 2, 4), specs=PRODUCT, modes=(None,) * 3)
def matmul(jax, jnp, lax, pl, pltpu):
    def body(a, b, o):
        @pl.when(pl.program_id(2) == 0)
        def _():
            o[...] = jnp.zeros_like(o)

        o[...] += jnp.dot(a[...], b[...], preferred_element_type=jnp.float32)

    return body


@pipeline(
    X,
    X[:128],
    want=np.tile(X[:128] + X[:128], (4, 1)),
    specs=((X.shape, lambda i: (0, 0)), ((128, 128), lambda i: (0, 0)), ROWS),
    modes=(None,) * 3,
)
def whole_operands(jax, jnp, lax, pl, pltpu):
    def body(a, b, o):
        o[...] = a[:128] + b[...]

    return body


# A negative number of buffers looks ahead.
SOME, REPEATED = (64, 128), lambda i: (i // 3, 0)
add("far_ahead", modes=(-2, None))
add("far_ahead_in_tiles", grid=(4, 2), specs=(TILES, TILES), modes=(-2, None))
add("far_ahead_in_three_buffers", grid=(8,), specs=((SOME, ROWS[1]),) * 2, modes=(-3, None))
add("far_ahead_of_blocks_that_stay", grid=(24,), specs=((SOME, REPEATED),) * 2, modes=(-2, None))
add("whole", specs=((X.shape, lambda i: (0, 0)),) * 2)
add("without_grid", grid=(), specs=((), ()))
add("one_after_the_other", no_pipelining=True)
add("tiles_one_after_the_other", grid=(4, 2), specs=(TILES, TILES), no_pipelining=True)


def sticking_out(name, grid, shape, block, index_map, **options):
    """Adds a pipeline whose last blocks stick out of the array."""
    x = X.reshape(-1)[: np.prod(shape)].reshape(shape)
    specs = (block, index_map)
    add(name, x=x, want=2 * x, shape=shape, grid=grid, specs=(specs, specs), **options)


sticking_out("last_rows", (4,), (500, 128), *ROWS)
sticking_out("last_rows_of_few", (2,), (180, 128), *ROWS)
sticking_out("last_columns", (2, 2), (256, 200), (128, 128), lambda i, j: (i, j))
sticking_out("last_rows_and_columns", (3, 3), (20, 300), (8, 128), lambda i, j: (i, j), modes=(1, 1))
sticking_out("last_rows_in_three_buffers", (4,), (500, 128), *ROWS, modes=(3, None))
sticking_out("last_rows_one_after_the_other", (4,), (500, 128), *ROWS, no_pipelining=True)
sticking_out("last_hidden_rows", (2, 2), (2, 12, 128), (None, 8, 128), lambda i, j: (i, j, 0))
sticking_out("vectors", (4,), (1000,), (256,), lambda i: (i,))
sticking_out("vectors_of_whole_blocks", (4,), (1024,), (256,), lambda i: (i,), modes=(3, None))
sticking_out("vectors_one_after_the_other", (4,), (1000,), (256,), lambda i: (i,), no_pipelining=True)
sticking_out("hidden_rows", (4, 2), (4, 500), (None, 256), lambda i, j: (i, j))
sticking_out("axes_of_one_step", (1, 4, 1), (512, 128), (128, 128), lambda i, j, k: (j, k))


@pytest.mark.oracle
@pytest.mark.parametrize("name", PROGRAMS)
def test_jaxprs(name):
    program, operands, _ = PROGRAMS[name]
    with compare.on_both(on_v5e):
        compare.same_jaxpr(program, *operands)


@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name):
    program, operands, want = PROGRAMS[name]
    f = compare.run_on(jax, program)
    np.testing.assert_allclose(jax.jit(f)(*operands), want, rtol=1e-4, atol=1e-4)


def test_values_in_transformations():
    f = compare.run_on(jax, PROGRAMS["rows"][0])
    xs = np.stack([X, X + 1])
    np.testing.assert_array_equal(jax.jit(jax.vmap(f))(xs), 2 * xs)
    np.testing.assert_allclose(jax.jit(jax.grad(lambda x: jnp.sum(f(x) * x)))(X), 4 * X, rtol=1e-5)


# ---- grids of cores and of unknown sizes -------------------------------------------------------------------


def on_cores(grid, block, rows):
    def program(jax, jnp, lax, pl, pltpu, plt):
        spec = pl.BlockSpec((block, 128), lambda i: (i, 0))
        options = dict(core_axis_name="c", dimension_semantics=(pltpu.PARALLEL,))
        body = lambda x, o: pltpu.emit_pipeline(  # noqa: E731
            double, grid=(grid,), in_specs=[spec], out_specs=spec, **options
        )(x, o)
        mesh = pltpu.create_tensorcore_mesh("c", num_cores=2)
        return pl.kernel(body, jax.ShapeDtypeStruct((rows, 128), jnp.float32), mesh=mesh, interpret=True)

    return program


def on_steps(jax, jnp, lax, pl, pltpu, plt):
    spec = pl.BlockSpec((64, 128), lambda i, j: (i * 2 + j, 0))
    options = dict(core_axis=0, dimension_semantics=(pltpu.PARALLEL, pltpu.ARBITRARY))
    body = lambda x, o: pltpu.emit_pipeline(double, grid=(4, 2), in_specs=[spec], out_specs=spec, **options)(x, o)  # noqa: E731
    whole = pl.BlockSpec(memory_space=pl.ANY)
    out = jax.ShapeDtypeStruct((512, 128), jnp.float32)
    return pl.pallas_call(body, out, grid=(2,), in_specs=[whole], out_specs=whole, interpret=True)


@pytest.mark.oracle
@pytest.mark.parametrize("program", [on_cores(4, 128, 512), on_cores(3, 128, 512), on_steps])
def test_jaxprs_on_cores(program):
    with compare.on_both(on_v5e):
        compare.same_jaxpr(program, X)


@pytest.mark.oracle
def test_the_jaxpr_of_a_grid_of_unknown_size():
    def program(jax, jnp, lax, pl, pltpu, plt):
        spec, whole = pl.BlockSpec((128, 128), lambda i: (i, 0)), pl.BlockSpec(memory_space=pl.ANY)

        def body(n, x, o):
            pltpu.emit_pipeline(double, grid=(n[0],), in_specs=[spec], out_specs=spec)(x, o)

        specs = [pl.BlockSpec(memory_space=pltpu.SMEM), whole]
        return pl.pallas_call(body, jax.ShapeDtypeStruct((512, 128), jnp.float32), in_specs=specs, out_specs=whole)

    with compare.on_both(on_v5e):
        compare.same_jaxpr(program, np.array([4], np.int32), X)


@pytest.mark.parametrize(
    ("program", "rows"),
    [(on_cores(4, 128, 512), 512), (on_cores(3, 128, 384), 384), (on_cores(1, 128, 128), 128), (on_steps, 512)],
)
def test_cores_divide_the_grid(program, rows):
    np.testing.assert_array_equal(compare.run_on(jax, program)(X[:rows]), 2 * X[:rows])


WHOLE = pl.BlockSpec(memory_space=pl.ANY)
SPEC = pl.BlockSpec((128, 128), lambda i: (i, 0))


def call(body, *operands, specs=(WHOLE,), shape=X.shape, **options):
    out = jax.ShapeDtypeStruct(shape, jnp.float32)
    f = pl.pallas_call(body, out, in_specs=list(specs), out_specs=WHOLE, interpret=True, **options)
    return jax.jit(f)(*operands)


@pytest.mark.parametrize("steps", [0, 1, 4])
def test_a_grid_of_unknown_size(steps):
    def body(n, x, o):
        pltpu.sync_copy(x, o)
        pltpu.emit_pipeline(double, grid=(n[0],), in_specs=[SPEC], out_specs=SPEC)(x, o)

    want = np.concatenate([2 * X[: 128 * steps], X[128 * steps :]])
    smem = pl.BlockSpec(memory_space=pltpu.SMEM)
    np.testing.assert_array_equal(call(body, jnp.array([steps], jnp.int32), X, specs=(smem, WHOLE)), want)


def test_a_grid_without_steps():
    def body(x, o):
        pltpu.sync_copy(x, o)
        pltpu.emit_pipeline(double, grid=(4, 0), in_specs=[SPEC], out_specs=SPEC)(x, o)

    np.testing.assert_array_equal(call(body, X), X)


def test_slices_of_any_start():
    spec = pl.BlockSpec((pl.BoundedSlice(128), 128), lambda i: (pl.ds(i * 100, 100), 0))

    def body(x, o):
        pltpu.emit_pipeline(double, grid=(5,), in_specs=[spec], out_specs=spec)(x, o)

    np.testing.assert_array_equal(call(body, X[:500], shape=(500, 128)), 2 * X[:500])


def by_runs(jax, jnp, lax, pl, pltpu, plt):
    """A pipeline of slices whose starts and lengths are operands."""

    def kernel(starts, x, o):
        first = lambda i: pl.multiple_of(starts[i], 8)  # noqa: E731
        run = lambda i: (pl.ds(first(i), pl.multiple_of(starts[i + 1] - starts[i], 8)), 0)  # noqa: E731
        spec = pl.BlockSpec((pl.BoundedSlice(32), 128), run)
        pltpu.emit_pipeline(double, grid=(3,), in_specs=[spec], out_specs=spec)(x, o)

    scalars, whole = pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec(memory_space=pl.ANY)
    return pl.pallas_call(
        kernel, jax.ShapeDtypeStruct((64, 128), "float32"), in_specs=[scalars, whole], out_specs=whole
    )


def by_copies(jax, jnp, lax, pl, pltpu, plt):
    """Copies of as many rows as an operand says."""

    def kernel(n, x, o):
        count = pl.multiple_of(n[0], 8)
        pltpu.sync_copy(x, o)
        pltpu.sync_copy(x.at[pl.ds(0, count)], o.at[pl.ds(8, count)])
        pltpu.sync_copy(x.at[pl.ds(count, count), pl.ds(0, 64)], o.at[pl.ds(2 * count, count), pl.ds(64, 64)])

    scalars, whole = pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec(memory_space=pl.ANY)
    return pl.pallas_call(
        kernel, jax.ShapeDtypeStruct((64, 128), "float32"), in_specs=[scalars, whole], out_specs=whole
    )


@pytest.mark.oracle
@pytest.mark.parametrize(("program", "numbers"), [(by_runs, [0, 8, 40, 64]), (by_copies, [16])])
def test_jaxprs_of_slices_of_any_length(program, numbers):
    with compare.on_both(on_v5e):
        compare.same_jaxpr(program, np.array(numbers, np.int32), X[:64])


@pytest.mark.filterwarnings("ignore:pallas_call. there is no compiler")
@pytest.mark.parametrize("interpret", [True, pltpu.InterpretParams(detect_races=True)])
def test_copies_of_any_length(interpret):
    with pltpu.force_tpu_interpret_mode(interpret) if interpret is not True else contextlib.nullcontext():
        found = compare.run_on(jax, by_copies)(np.array([16], np.int32), X[:64])
    want = X[:64].copy()
    want[8:24] = X[:16]
    want[32:48, 64:] = X[16:32, :64]
    np.testing.assert_array_equal(found, want)


def test_only_copies_take_slices_of_any_length():
    def read(n, x, o):
        o[...] = x[pl.ds(0, n[0])]

    smem = pl.BlockSpec(memory_space=pltpu.SMEM)
    with pytest.raises(NotImplementedError, match="only copies take slices whose size is not known"):
        call(read, np.array([8], np.int32), X, specs=(smem, pl.BlockSpec(memory_space=pltpu.VMEM)))


@pytest.mark.parametrize("count", [1, 2])
def test_slices_of_any_length(count):
    starts = np.array([0, 5, 5, 18, 49, 50, 64], np.int32)

    def kernel(starts, x, o):
        run = lambda i: (pl.ds(starts[i], starts[i + 1] - starts[i]), 0)  # noqa: E731
        spec = pl.BlockSpec((pl.BoundedSlice(32), 128), run, pipeline_mode=pl.Buffered(count))
        pltpu.emit_pipeline(double, grid=(6,), in_specs=[spec], out_specs=spec)(x, o)

    whole, scalars = pl.BlockSpec(memory_space=pl.ANY), pl.BlockSpec(memory_space=pltpu.SMEM)
    out = jax.ShapeDtypeStruct((64, 128), jnp.float32)
    f = pl.pallas_call(kernel, out, in_specs=[scalars, whole], out_specs=whole, interpret=True)
    np.testing.assert_array_equal(f(starts, X[:64]), 2 * X[:64])


@pytest.mark.parametrize("shape", [(500, 128), (384, 200), (300, 300)])
@pytest.mark.parametrize("count", [1, 2])
def test_the_last_blocks_stick_out_of_the_array(shape, count):
    spec = pl.BlockSpec((128, 128), lambda i, j: (i, j), pipeline_mode=pl.Buffered(count))
    grid = tuple([-(-n // 128) for n in shape])
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    body = lambda x, o: pltpu.emit_pipeline(double, grid=grid, in_specs=[spec], out_specs=spec)(x, o)  # noqa: E731
    np.testing.assert_array_equal(call(body, x, shape=shape), 2 * x)


# ---- buffers -----------------------------------------------------------------------------------------------


def test_a_result_that_is_added_to():
    def add(x, o):
        o[...] += x[...]

    def body(x, o):
        pltpu.sync_copy(x, o)
        buffers = [
            make(SPEC, jnp.float32, grid_rank=1) for make in (pltpu.BufferedRef.input, pltpu.BufferedRef.input_output)
        ]
        pipeline = pltpu.emit_pipeline(add, grid=(4,), in_specs=[SPEC], out_specs=SPEC)
        pl.run_scoped(lambda *made: pipeline(x, o, allocations=made), *buffers)

    np.testing.assert_array_equal(call(body, X), 2 * X)


def test_buffers_of_the_caller_and_scratch():
    def body(x, o, scratch):
        def add(x, o, scratch):
            o[...] = x[...] + scratch[...]

        pipeline, allocations = pltpu.emit_pipeline_with_allocations(add, grid=(4,), in_specs=[SPEC], out_specs=SPEC)

        def fill():
            scratch[...] = jnp.ones((128, 128))

        pl.run_scoped(
            lambda made: pipeline(x, o, allocations=made, scratches=(scratch,), body_prologue=fill), allocations(x, o)
        )

    found = call(body, X, scratch_shapes=[pltpu.VMEM((128, 128), jnp.float32)])
    np.testing.assert_array_equal(found, X + 1)


def test_blocks_of_arrays_in_vector_memory_are_not_copied():
    spec = pl.BlockSpec((128, 128), lambda i: (i, 0), memory_space=pltpu.VMEM)

    def body(x, o):
        pltpu.emit_pipeline(double, grid=(4,), in_specs=[spec], out_specs=spec)(x, o)

    vmem = pl.BlockSpec(memory_space=pltpu.VMEM)
    out = jax.ShapeDtypeStruct(X.shape, jnp.float32)
    f = pl.pallas_call(body, out, in_specs=[vmem], out_specs=vmem, interpret=True)
    assert "dma_start" not in str(jax.make_jaxpr(f)(X))
    np.testing.assert_array_equal(f(X), 2 * X)


@pytest.mark.oracle
def test_buffers_are_those_of_jax():
    def described(jax, jnp, lax, pl, pltpu, plt):
        spec = pl.BlockSpec((None, 8, 128), lambda i: (i, 0, 0))
        ref = pltpu.BufferedRef
        made = [ref.input(spec, jnp.float32, 3), ref.output(spec, jnp.bfloat16), ref.input_output(spec, jnp.int32)]
        facts = [(b.buffer_type.name, b.buffer_count, b.is_input, b.is_output, b.is_buffered) for b in made]
        return str([(f, b.window_ref.shape, b.sem_recvs, b.sem_sends) for f, b in zip(facts, made, strict=True)])

    compare.same(described)


# ---- errors ------------------------------------------------------------------------------------------------


REFUSED = {
    "core_axis and core_axis_name cannot both be provided": lambda pl, pltpu: pltpu.emit_pipeline(
        double, grid=(4,), core_axis=0, core_axis_name="c"
    ),
    "Buffer count >2 not supported for output buffered refs": lambda pl, pltpu: pltpu.BufferedRef.output(
        pl.BlockSpec((8, 128), lambda i: (i, 0)), np.float32, 3
    ),
}


@pytest.mark.oracle
@pytest.mark.parametrize("message", REFUSED)
def test_errors_are_those_of_jax(message):
    compare.same_refusal(lambda jax, jnp, lax, pl, pltpu, plt: lambda: REFUSED[message](pl, pltpu), [message])


def _piped(refs=2, **options):
    options = dict(grid=(4,), in_specs=[SPEC], out_specs=SPEC) | options
    return lambda x, o: pltpu.emit_pipeline(double, **options)(*(x, o)[:refs])


MISTAKES = {
    "a block of 100 elements must be a multiple of the tile of 8": (
        ValueError,
        _piped(in_specs=[pl.BlockSpec((100, 128), lambda i: (i, 0))]),
        X.shape,
    ),
    "takes 1 inputs and 1 results": (ValueError, _piped(refs=1), X.shape),
    "must have as many dimensions": (ValueError, _piped(out_specs=pl.BlockSpec((128,), lambda i: (i,))), X.shape),
    "buffer_count must be at least 1": (
        ValueError,
        _piped(in_specs=[SPEC.replace(pipeline_mode=pl.Buffered(0))]),
        X.shape,
    ),
    "grid must be a tuple of integers": (ValueError, _piped(grid=(1.5,)), X.shape),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_errors(message):
    kind, body, shape = MISTAKES[message]
    with pytest.raises(kind, match=message):
        call(body, X[: shape[0]], shape=shape)
