"""What a reader of a document on TPU pipelining writes: copies by hand, pipelines, reductions, products, cores."""

import functools

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.experimental import pallas as pl
from minijax.experimental.pallas import tpu as pltpu

rng = np.random.default_rng(48)
X, Y = (rng.integers(-8, 9, size=(64, 256)).astype(np.float32) / 4 for _ in range(2))
A, B = (rng.integers(-4, 5, size=shape).astype(np.float32) / 4 for shape in ((64, 256), (256, 128)))
WHOLE = pl.BlockSpec(memory_space=pl.ANY)
PARAMS = functools.partial(pltpu.InterpretParams, detect_races=True)
# Interpreted, and simulated with copies as late and as early as they may be.
MODES = {
    "interpreted": True,
    "late copies": PARAMS(dma_execution_mode="on_wait"),
    "early copies": PARAMS(dma_execution_mode="eager"),
    "two cores": PARAMS(num_cores_or_threads=2, random_seed=1),
}


def rows(n=8, width=256):
    return pl.BlockSpec((n, width), lambda i: (i, 0))


def like(x, dtype=None):
    return jax.ShapeDtypeStruct(x.shape, dtype or x.dtype)


def copied_by_hand(interpret):
    """Both operands into vector memory, the sum back."""

    def kernel(x, y, o, x_near, y_near, o_near, done):
        copies = [pltpu.make_async_copy(a, b, done.at[i]) for i, (a, b) in enumerate([(x, x_near), (y, y_near)])]
        for copy in copies:
            copy.start()
        for copy in copies:
            copy.wait()
        o_near[...] = x_near[...] + y_near[...]
        pltpu.sync_copy(o_near, o)

    scratch = [*[pltpu.VMEM(X.shape, jnp.float32)] * 3, pltpu.SemaphoreType.DMA((2,))]
    call = pl.pallas_call(kernel, like(X), in_specs=[WHOLE, WHOLE], out_specs=WHOLE, scratch_shapes=scratch,
                          interpret=interpret)  # fmt: skip
    return call(X, Y), X + Y


def copied_ahead(interpret):
    """Two buffers by hand: the next block is copied while this one is used."""

    def kernel(x, o, near, done):
        copy = lambda i: pltpu.make_async_copy(x.at[pl.ds(8 * i, 8)], near.at[i % 2], done.at[i % 2])  # noqa: E731
        copy(0).start()

        @pl.loop(0, 8)
        def _(i):
            @pl.when(i < 7)
            def _():
                copy(i + 1).start()

            copy(i).wait()
            o[pl.ds(8 * i, 8)] = near[i % 2] * 2

    scratch = [pltpu.VMEM((2, 8, 256), jnp.float32), pltpu.SemaphoreType.DMA((2,))]
    call = pl.pallas_call(kernel, like(X), in_specs=[WHOLE], scratch_shapes=scratch, interpret=interpret)
    return call(X), X * 2


def by_the_grid(interpret):
    def kernel(x, y, o):
        o[...] = x[...] + y[...]

    call = pl.pallas_call(kernel, like(X), grid=8, in_specs=[rows(), rows()], out_specs=rows(), interpret=interpret,
                          compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)))  # fmt: skip
    return call(X, Y), X + Y


def in_a_pipeline(interpret):
    def kernel(x, y, o):
        def body(x, y, o):
            o[...] = x[...] + y[...]

        specs = [rows().replace(pipeline_mode=pl.Buffered(3)), rows()]
        pltpu.emit_pipeline(body, grid=(8,), in_specs=specs, out_specs=rows())(x, y, o)

    call = pl.pallas_call(kernel, like(X), in_specs=[WHOLE, WHOLE], out_specs=WHOLE, interpret=interpret)
    return call(X, Y), X + Y


def in_nested_pipelines(interpret):
    """The outer pipeline brings rows, the inner one, within vector memory and by arrays, columns of them."""

    def kernel(x, y, o):
        def of_rows(x_rows, o_rows):
            def of_columns(y_part, o_part):
                at = pl.program_id(0)
                o_part[...] = x_rows[:, pl.ds(128 * at, 128)] * y_part[...]

            row = pl.program_id(0)
            part = pl.BlockSpec((8, 128), lambda j: (row, j))
            own = pl.BlockSpec((8, 128), lambda j: (0, j))
            pltpu.emit_pipeline(of_columns, grid=(2,), in_specs=[part], out_specs=own)(y, o_rows)

        pltpu.emit_pipeline(of_rows, grid=(8,), in_specs=[rows()], out_specs=rows())(x, o)

    call = pl.pallas_call(kernel, like(X), in_specs=[WHOLE, WHOLE], out_specs=WHOLE, interpret=interpret)
    return call(X, Y), X * Y


def summed_over_an_axis(interpret):
    """The block of the result stays for the steps of the last axis, which begins with zeros."""

    def kernel(x, o):
        @pl.when(pl.program_id(1) == 0)
        def _():
            o[...] = jnp.zeros_like(o)

        o[...] += x[...]

    stack = np.stack([X, Y, X - Y])
    spec = pl.BlockSpec((None, 8, 256), lambda i, k: (k, i, 0))
    call = pl.pallas_call(kernel, like(X), grid=(8, 3), in_specs=[spec], interpret=interpret,
                          out_specs=pl.BlockSpec((8, 256), lambda i, k: (i, 0)))  # fmt: skip
    return call(stack), stack.sum(0)


def summed_in_a_wider_type(interpret):
    """bfloat16 in and out; the sum is float32 until the last step."""

    def kernel(x, o, total):
        k = pl.program_id(0)

        @pl.when(k == 0)
        def _():
            total[...] = jnp.zeros_like(total)

        total[...] += x[...].astype(jnp.float32)

        @pl.when(k == pl.num_programs(0) - 1)
        def _():
            o[...] = total[...].astype(o.dtype)

    x = X.reshape(8, 8, 256).astype(jnp.bfloat16)
    call = pl.pallas_call(
        kernel, jax.ShapeDtypeStruct((8, 256), jnp.bfloat16), grid=8,
        in_specs=[pl.BlockSpec((None, 8, 256), lambda k: (k, 0, 0))], out_specs=pl.BlockSpec((8, 256), lambda k: (0, 0)),
        scratch_shapes=[pltpu.VMEM((8, 256), jnp.float32)], interpret=interpret,
    )  # fmt: skip
    return call(x), x.astype(np.float32).sum(0).astype(jnp.bfloat16)


def product(interpret, transposed=False, activation=lambda x: x, dtype=np.float32):
    """Blocks of rows, columns and the axis that is summed over, with a float32 accumulator."""

    def kernel(a, b, o, total):
        k = pl.program_id(2)

        @pl.when(k == 0)
        def _():
            total[...] = jnp.zeros_like(total)

        total[...] += jax.lax.dot_general(
            a[...], b[...], (((1,), (1 if transposed else 0,)), ((), ())), preferred_element_type=jnp.float32
        )

        @pl.when(k == pl.num_programs(2) - 1)
        def _():
            o[...] = activation(total[...]).astype(o.dtype)

    a, b = A.astype(dtype), (B.T if transposed else B).astype(dtype)
    by_k = pl.BlockSpec((128, 128), (lambda i, j, k: (j, k)) if transposed else (lambda i, j, k: (k, j)))
    call = pl.pallas_call(
        kernel, jax.ShapeDtypeStruct((64, 128), dtype), grid=(4, 1, 2),
        in_specs=[pl.BlockSpec((16, 128), lambda i, j, k: (i, k)), by_k],
        out_specs=pl.BlockSpec((16, 128), lambda i, j, k: (i, j)), interpret=interpret,
        scratch_shapes=[pltpu.VMEM((16, 128), jnp.float32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
    )  # fmt: skip
    return call(a, b), np.asarray(activation(jnp.asarray(A @ B))).astype(dtype)


def product_of_narrow_types(interpret):
    return product(interpret, dtype=jnp.bfloat16)


def product_with_an_activation(interpret):
    return product(interpret, activation=lambda x: jnp.maximum(x, 0))


def product_by_a_transposed_matrix(interpret):
    return product(interpret, transposed=True)


def product_in_a_pipeline(interpret):
    """A pipeline over all three axes, with the accumulator as scratch of the kernel."""

    def kernel(a, b, o, total):
        def body(a, b, o, total):
            k = pl.program_id(1)

            @pl.when(k == 0)
            def _():
                total[...] = jnp.zeros_like(total)

            total[...] += a[...] @ b[...]

            @pl.when(k == pl.num_programs(1) - 1)
            def _():
                o[...] = total[...]

        specs = [pl.BlockSpec((16, 128), lambda i, k: (i, k)), pl.BlockSpec((128, 128), lambda i, k: (k, 0))]
        out = pl.BlockSpec((16, 128), lambda i, k: (i, 0))
        pltpu.emit_pipeline(body, grid=(4, 2), in_specs=specs, out_specs=out)(a, b, o, scratches=[total])

    call = pl.pallas_call(
        kernel, jax.ShapeDtypeStruct((64, 128), jnp.float32), in_specs=[WHOLE, WHOLE], out_specs=WHOLE,
        scratch_shapes=[pltpu.VMEM((16, 128), jnp.float32)], interpret=interpret,
    )  # fmt: skip
    return call(A, B), A @ B


def divided_among_cores(interpret):
    """Each core of a mesh runs its part of the parallel axis."""

    def kernel(x, y, o):
        def body(x, y, o):
            o[...] = x[...] - y[...]

        pltpu.emit_pipeline(
            body, grid=(8,), in_specs=[rows(), rows()], out_specs=rows(), core_axis_name="core",
            dimension_semantics=(pltpu.PARALLEL,),
        )(x, y, o)  # fmt: skip

    mesh = pltpu.create_tensorcore_mesh("core", num_cores=2)
    return pl.kernel(kernel, like(X), mesh=mesh, interpret=interpret)(X, Y), X - Y


def indexed_by_prefetched_scalars(interpret):
    """The rows that scalars name, which are known before the blocks are copied."""

    def kernel(order, x, o):
        o[...] = x[...]

    order = np.array([3, 1, 7, 0, 2, 2, 5, 4], np.int32)
    spec = pltpu.PrefetchScalarGridSpec(
        1, (8,), [pl.BlockSpec((8, 256), lambda i, order: (order[i], 0))], pl.BlockSpec((8, 256), lambda i, _: (i, 0))
    )
    call = pl.pallas_call(kernel, like(X), grid_spec=spec, interpret=interpret)
    return call(order, X), X.reshape(8, 8, 256)[order].reshape(64, 256)


def copied_far_ahead(interpret):
    """Two passes of an axis over blocks that stay, with the next blocks copied before the step that needs them."""

    def kernel(x, o):
        def body(x, o):
            @pl.when(pl.program_id(1) == 0)
            def _():
                o[...] = jnp.zeros_like(o)

            o[...] += x[...]

        ahead = pl.BlockSpec((8, 256), lambda i, k: (i, 0), pipeline_mode=pl.Buffered(2, use_lookahead=True))
        out = pl.BlockSpec((8, 256), lambda i, k: (i, 0))
        pltpu.emit_pipeline(body, grid=(8, 3), in_specs=[ahead], out_specs=out)(x, o)

    return pl.pallas_call(kernel, like(X), in_specs=[WHOLE], out_specs=WHOLE, interpret=interpret)(X), 3 * X


def slices_of_any_size(interpret):
    """Runs of rows of different lengths, each of which is a block of at most 32."""
    starts = np.array([0, 8, 40, 48, 64], np.int32)

    def kernel(starts, x, o):
        def run(i):
            return pl.ds(pl.multiple_of(starts[i], 8), pl.multiple_of(starts[i + 1] - starts[i], 8)), 0

        def body(x, o):
            o[...] = 2 * x[...]

        spec = pl.BlockSpec((pl.BoundedSlice(32), 256), run)
        pltpu.emit_pipeline(body, grid=(4,), in_specs=[spec], out_specs=spec)(x, o)

    scalars = pl.BlockSpec(memory_space=pltpu.SMEM)
    call = pl.pallas_call(kernel, like(X), in_specs=[scalars, WHOLE], out_specs=WHOLE, interpret=interpret)
    return call(starts, X), 2 * X


def in_the_place_of_the_operand(interpret):
    """The result has the buffer of an operand, whose other rows stay."""

    def kernel(x, o):
        o[...] = -x[...]

    spec = pl.BlockSpec((8, 256), lambda i: (2 * i, 0))
    call = pl.pallas_call(
        kernel, like(X), grid=(4,), in_specs=[spec], out_specs=spec, input_output_aliases={0: 0}, interpret=interpret
    )
    return call(X), np.where(np.arange(64)[:, None] // 8 % 2 == 0, -X, X)


def product_by_the_blocks_that_are_not_zero(interpret):
    """The blocks of a sparse matrix are listed in order; scalars say where each of them is."""
    at = np.array([[0, 0], [0, 1], [2, 0], [3, 1]], np.int32)
    found = np.zeros((4, 2, 16, 128), np.float32)
    found[tuple(at.T)] = A.reshape(4, 16, 2, 128).transpose(0, 2, 1, 3)[tuple(at.T)]
    dense = found.transpose(0, 2, 1, 3).reshape(64, 256)

    def kernel(at, blocks, y, start, o):
        i = pl.program_id(0)

        @pl.when((i == 0) | (at[i, 0] != at[jnp.maximum(i - 1, 0), 0]))
        def _():
            o[...] = jnp.zeros_like(o)

        o[...] += jnp.dot(blocks[...], y[...], preferred_element_type=jnp.float32)

    row = pl.BlockSpec((16, 128), lambda i, at: (at[i, 0], 0))
    spec = pltpu.PrefetchScalarGridSpec(
        1,
        (4,),
        [
            pl.BlockSpec((None, 16, 128), lambda i, at: (i, 0, 0)),
            pl.BlockSpec((128, 128), lambda i, at: (at[i, 1], 0)),
            row,
        ],
        row,
    )
    out = jax.ShapeDtypeStruct((64, 128), jnp.float32)
    call = pl.pallas_call(kernel, out, grid_spec=spec, input_output_aliases={3: 0}, interpret=interpret)
    # Rows without a block are those of the last operand.
    return call(at, found[tuple(at.T)], B, np.zeros((64, 128), np.float32)), dense @ B


PROGRAMS = [
    copied_far_ahead, slices_of_any_size, in_the_place_of_the_operand, product_by_the_blocks_that_are_not_zero,
    copied_by_hand, copied_ahead, by_the_grid, in_a_pipeline, in_nested_pipelines, summed_over_an_axis,
    summed_in_a_wider_type, product, product_of_narrow_types, product_with_an_activation, product_by_a_transposed_matrix,
    product_in_a_pipeline, divided_among_cores, indexed_by_prefetched_scalars,
]  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_values_are_those_of_plain_operations(program, mode):
    found, expected = program(MODES[mode])
    # Sums and products of such numbers are exact, so that their order does not matter.
    np.testing.assert_array_equal(np.asarray(found), expected)


def test_a_sum_that_does_not_begin_with_zeros_is_not_a_number():
    def kernel(x, o):
        o[...] += x[...]

    spec, out = pl.BlockSpec((8, 256), lambda k: (k, 0)), pl.BlockSpec((8, 256), lambda k: (0, 0))
    for mode in MODES.values():
        call = pl.pallas_call(kernel, jax.ShapeDtypeStruct((8, 256), jnp.float32), grid=8, in_specs=[spec], out_specs=out,
                              interpret=mode)  # fmt: skip
        assert np.isnan(call(X)).all()


def test_a_block_that_is_left_and_visited_again_is_refused_where_it_would_be_lost():
    def kernel(x, o):
        o[...] = x[...]

    out = pl.BlockSpec((8, 256), lambda k: (k % 2, 0))
    call = pl.pallas_call(kernel, jax.ShapeDtypeStruct((16, 256), jnp.float32), grid=4, out_specs=out,
                          in_specs=[rows()], interpret=PARAMS())  # fmt: skip
    with pytest.raises(jax.errors.JaxRuntimeError, match="Revisited block"):
        jax.block_until_ready(call(X))
