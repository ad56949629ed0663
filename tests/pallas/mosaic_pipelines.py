"""Kernels for TPUs with pipelines within, as those of `mosaic_kernels.py`."""

from pallas.mosaic_cores import KERNELS, mesh
from pallas.mosaic_kernels import F, I, kernel

X = ((512, 128), F)
__all__ = ["KERNELS"]


def block(m, shape=(128, 128), index_map=lambda i: (i, 0), **options):
    return m.pl.BlockSpec(shape, index_map, **options)


def double(x, o):
    o[...] = 2 * x[...]


def piped(m, body=double, *types, specs=None, out=X, **options):
    """A call whose kernel is a pipeline over whole arrays."""
    types = types or (X,)
    specs = specs or [block(m)] * (len(types) + 1)
    options = dict(grid=(4,), in_specs=specs[:-1], out_specs=specs[-1]) | options

    def run(*refs):
        m.pltpu.emit_pipeline(body, **options)(*refs)

    whole = m.pl.BlockSpec(memory_space=m.pl.ANY)
    f = m.pl.pallas_call(run, m.jax.ShapeDtypeStruct(*out), in_specs=[whole] * len(types), out_specs=whole)
    return f, *types


@kernel
def pipeline(m):
    return piped(m)


@kernel
def pipeline_of_three_buffers(m):
    return piped(m, specs=[block(m, pipeline_mode=m.pl.Buffered(3)), block(m)])


@kernel
def pipeline_of_one_buffer(m):
    return piped(m, specs=[block(m, pipeline_mode=m.pl.Buffered(1)), block(m)])


@kernel
def pipeline_without_scopes(m):
    return piped(m, trace_scopes=False)


@kernel
def pipeline_that_waits(m):
    return piped(m, no_pipelining=True)


@kernel
def pipeline_of_a_constant_block(m):
    return piped(m, specs=[block(m, index_map=lambda i: (0, 0)), block(m)])


@kernel
def pipeline_of_hidden_dimensions(m):
    spec = block(m, (None, 64, 128), lambda i: (i, 0, 0))
    return piped(m, double, ((4, 64, 128), F), specs=[spec, spec], out=((4, 64, 128), F))


@kernel
def pipeline_of_a_matmul(m):
    def body(a, b, o):
        @m.pl.when(m.pl.program_id(2) == 0)
        def _():
            o[...] = m.jnp.zeros_like(o)

        o[...] += m.jnp.dot(a[...], b[...], preferred_element_type=m.jnp.float32)

    maps = [lambda i, j, k: (i, k), lambda i, j, k: (k, j), lambda i, j, k: (i, j)]
    specs = [block(m, index_map=f) for f in maps]
    return piped(m, body, ((256, 512), F), ((512, 256), F), specs=specs, out=((256, 256), F), grid=(2, 2, 4))


@kernel
def pipeline_on_cores(m):
    options = dict(core_axis_name="c", dimension_semantics=(m.pltpu.PARALLEL,))

    def body(x, o):
        m.pltpu.emit_pipeline(double, grid=(4,), in_specs=[block(m)], out_specs=block(m), **options)(x, o)

    return m.pl.kernel(body, m.jax.ShapeDtypeStruct(*X), mesh=mesh(m)), X


@kernel
def pipeline_that_adds_to_its_result(m):
    def add(x, o):
        o[...] += x[...]

    def body(x, o):
        def run(ins, outs):
            pipeline = m.pltpu.emit_pipeline(add, grid=(4,), in_specs=[block(m)], out_specs=block(m))
            pipeline(x, o, allocations=(ins, outs))

        ref = m.pltpu.BufferedRef
        buffers = [make(block(m), m.jnp.float32, grid_rank=1) for make in (ref.input, ref.input_output)]
        m.pl.run_scoped(run, *buffers)

    whole = m.pl.BlockSpec(memory_space=m.pl.ANY)
    return m.pl.pallas_call(body, m.jax.ShapeDtypeStruct(*X), in_specs=[whole], out_specs=whole), X


@kernel
def pipeline_of_last_rows(m):
    return piped(m, double, ((500, 128), F), out=((500, 128), F))


@kernel
def pipeline_of_last_columns(m):
    spec = block(m, index_map=lambda i, j: (i, j))
    return piped(m, double, ((256, 200), F), specs=[spec, spec], out=((256, 200), F), grid=(2, 2))


@kernel
def pipeline_of_last_rows_in_one_buffer(m):
    spec = block(m, pipeline_mode=m.pl.Buffered(1))
    return piped(m, double, ((500, 128), F), specs=[spec, spec], out=((500, 128), F))


@kernel
def pipeline_of_slices_of_any_length(m):
    def run(starts, x, o):
        first = lambda i: m.pl.multiple_of(starts[i], 8)  # noqa: E731
        rows = lambda i: (m.pl.ds(first(i), m.pl.multiple_of(starts[i + 1] - starts[i], 8)), 0)  # noqa: E731
        spec = block(m, (m.pl.BoundedSlice(32), 128), rows)
        m.pltpu.emit_pipeline(double, grid=(3,), in_specs=[spec], out_specs=spec)(x, o)

    specs = [m.pl.BlockSpec(memory_space=m.pltpu.SMEM), m.pl.BlockSpec(memory_space=m.pl.ANY)]
    return m.pl.pallas_call(run, m.jax.ShapeDtypeStruct(*X), in_specs=specs, out_specs=specs[1]), ((4,), I), X


@kernel
def copies_of_any_length(m):
    def run(n, x, o):
        count = m.pl.multiple_of(n[0], 8)
        m.pltpu.sync_copy(x.at[m.pl.ds(0, count)], o.at[m.pl.ds(8, count)])
        m.pltpu.sync_copy(x.at[m.pl.ds(count, count), m.pl.ds(0, 128)], o.at[m.pl.ds(2 * count, count)])

    specs = [m.pl.BlockSpec(memory_space=m.pltpu.SMEM), m.pl.BlockSpec(memory_space=m.pl.ANY)]
    return m.pl.pallas_call(run, m.jax.ShapeDtypeStruct(*X), in_specs=specs, out_specs=specs[1]), ((4,), I), X
