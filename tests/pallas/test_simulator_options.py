"""Options of the simulator of TPUs, what it refuses, and where it finds errors."""

import dataclasses

import compare
import numpy as np
import pallas_kernels  # noqa: F401  the short names of Pallas' modules
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.experimental import pallas as pl
from minijax.experimental.pallas import tpu as pltpu
from minijax.kernels.simulator.options import LoggingMode

X = np.random.default_rng(0).normal(size=(16, 128)).astype(np.float32)
ROWS = pl.BlockSpec((8, 128), lambda i: (i, 0))
WHOLE = pl.BlockSpec(memory_space=pl.ANY)
OUT = jax.ShapeDtypeStruct((16, 128), jnp.float32)


def double(x, o):
    o[...] = 2 * x[...]


def nothing(*refs):
    pass


# ---- the options themselves ------------------------------------------------------------------------------------


@pytest.mark.oracle
def test_the_options_are_those_of_jax():
    compare.same(lambda pltpu: [repr(pltpu.InterpretParams()), hash(pltpu.InterpretParams()) is not None])
    compare.same(lambda pltpu: repr(pltpu.InterpretParams(detect_races=True, random_seed=3, num_cores_or_threads=2)))
    compare.same(lambda pltpu: pltpu.InterpretParams(num_cores_or_threads=3).num_cores_per_device)
    compare.same_error(
        lambda: pltpu.InterpretParams(True),
        lambda: compare.module_of("jax.experimental.pallas.tpu").InterpretParams(True),
    )


@pytest.mark.oracle
def test_fields_in_order():
    compare.same(lambda pltpu: [(f.name, f.default) for f in _fields(pltpu.InterpretParams)])


def _fields(kind):
    return dataclasses.fields(kind)


@pytest.mark.oracle
@pytest.mark.parametrize("forced", [True, False])
def test_the_jaxpr_of_a_call_shows_the_options(forced):
    def program(jax, jnp, lax, pl, pltpu):
        def f(x):
            own = False if forced else pltpu.InterpretParams(random_seed=1)
            with pltpu.force_tpu_interpret_mode(pltpu.InterpretParams(random_seed=1) if forced else None):
                return pl.pallas_call(double, jax.ShapeDtypeStruct((16, 128), jnp.float32), interpret=own)(x)

        return f

    compare.same_jaxpr(program, X)


def test_forced_options_are_part_of_the_key_of_traces():
    traces = []

    @jax.jit
    def f(x):
        traces.append(0)
        return pl.pallas_call(double, OUT, interpret=True)(x)

    f(X)
    for p in (pltpu.InterpretParams(), pltpu.InterpretParams(random_seed=1), pltpu.InterpretParams()):
        with pltpu.force_tpu_interpret_mode(p):
            np.testing.assert_array_equal(f(X), 2 * X)
    f(X)
    assert len(traces) == 3
    pltpu.set_tpu_interpret_mode()
    try:
        f(X)
        assert len(traces) == 3
        assert "InterpretParams" in str(jax.make_jaxpr(lambda x: pl.pallas_call(double, OUT)(x))(X))
    finally:
        pltpu.set_tpu_interpret_mode(None)
    pltpu.reset_tpu_interpret_mode_state()


@pytest.mark.parametrize(
    ("options", "kind", "phrase"),
    [
        (dict(num_cores_or_threads=0), ValueError, "Number of cores or threads must be at least 1, but got 0."),
        (dict(uninitialized_memory="ones"), NotImplementedError, "uninitialized_memory must be 'nan' or 'zero'"),
        (dict(dma_execution_mode="late"), ValueError, "dma_execution_mode must be one of"),
        (dict(out_of_bounds_reads="clamp"), ValueError, "out_of_bounds_reads must be one of"),
        (dict(buffer_bounds=3), ValueError, "buffer_bounds must be one of"),
    ],
)
def test_options_without_a_meaning(options, kind, phrase):
    with pytest.raises(kind, match=phrase):
        pl.pallas_call(double, OUT, interpret=pltpu.InterpretParams(**options))(X)


@pytest.mark.parametrize("name", ["force_tpu_interpret_mode", "set_tpu_interpret_mode"])
def test_modes_that_are_none(name):
    with pytest.raises(TypeError, match=f"{name}: params must be an InterpretParams or None, got True"):
        getattr(pltpu, name)(True)


@pytest.mark.parametrize(
    "option", ["transfer_guard", "debug_key_reuse", "check_tracer_leaks", "enable_x64", "debug_nans"]
)
def test_options_of_programs(option):
    value = "disallow" if option == "transfer_guard" else True
    params = pltpu.CompilerParams(dimension_semantics=("parallel",))
    options = dict(grid=2, in_specs=[ROWS], out_specs=ROWS, compiler_params=params, interpret=pltpu.InterpretParams())
    x, f = jnp.asarray(X), jax.jit(pl.pallas_call(double, OUT, **options))
    with getattr(jax, option)(value):
        y = f(x)
    np.testing.assert_array_equal(y, 2 * X)


# ---- memory that was not written -------------------------------------------------------------------------------


@pytest.mark.oracle
@pytest.mark.parametrize("how", ["nan", "zero"])
def test_uninitialized_memory(how):
    def program(jax, jnp, lax, pl, pltpu):
        dtypes = [jnp.float32, jnp.bfloat16, jnp.int8, jnp.int16, jnp.int32, jnp.uint32]

        def kernel(*refs):
            for o, buffer in zip(refs[:6], refs[7:], strict=True):
                o[...] = buffer[...]

        outs = [jax.ShapeDtypeStruct((8, 128), d) for d in dtypes] + [jax.ShapeDtypeStruct((8, 128), jnp.float32)]
        scratch = [pltpu.VMEM((8, 128), d) for d in dtypes]
        p = pltpu.InterpretParams(uninitialized_memory=how)
        return jax.block_until_ready(pl.pallas_call(kernel, outs, scratch_shapes=scratch, interpret=p)())

    compare.same(program)


def test_infinities_in_place_of_floating_point_operations():
    def kernel(x, o, n):
        o[...] = x[...] @ x[...].T
        n[...] = jnp.ones((8, 128), jnp.int32) * 3

    outs = [jax.ShapeDtypeStruct((16, 16), jnp.float32), jax.ShapeDtypeStruct((8, 128), jnp.int32)]
    o, n = pl.pallas_call(kernel, outs, interpret=pltpu.InterpretParams(skip_floating_point_ops=True))(X)
    assert np.isinf(o).all()
    assert (n == 3).all()


# ---- the order of steps ----------------------------------------------------------------------------------------


@pytest.mark.oracle
@pytest.mark.parametrize("seed", [None, 3, 12345])
@pytest.mark.parametrize(
    ("grid", "semantics", "cores"),
    [
        ((8,), ("parallel",), 1),
        ((3, 2), ("parallel", "parallel"), 2),
        ((4, 2), ("parallel", "arbitrary"), 3),
        ((2, 3), ("arbitrary", "arbitrary"), 2),
        ((4,), ("core_parallel",), 2),
    ],
)
def test_the_order_of_steps(grid, semantics, cores, seed):
    def program(jax, jnp, lax, pl, pltpu):
        seen = []

        def note(token, ids, core):
            seen.append((int(core), *map(int, ids)))
            return token

        p = pltpu.InterpretParams(random_seed=seed, num_cores_or_threads=cores, grid_point_recorder=note)
        params = pltpu.CompilerParams(dimension_semantics=semantics)
        out, whole = jax.ShapeDtypeStruct((8, 128), jnp.float32), pl.BlockSpec(memory_space=pl.ANY)
        f = pl.pallas_call(nothing, out, grid=grid, out_specs=whole, compiler_params=params, interpret=p)
        jax.block_until_ready(f())
        return sorted(seen, key=lambda step: step[0])

    compare.same(program)


def test_axes_that_cannot_be_in_any_order():
    def run(grid, *semantics):
        params = pltpu.CompilerParams(dimension_semantics=semantics)
        p = pltpu.InterpretParams()
        return pl.pallas_call(nothing, OUT, grid=grid, out_specs=WHOLE, compiler_params=params, interpret=p)()

    with pytest.raises(ValueError, match="'parallel' must come before all others"):
        run((2, 2), "arbitrary", "parallel")
    with pytest.raises(jax.errors.ConcretizationTypeError, match="the size of a 'parallel' axis"):
        jax.jit(lambda n: run((n,), "parallel"))(3)


# ---- out of bounds ---------------------------------------------------------------------------------------------


def scalars(kernel, *numbers, **options):
    spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1)
    f = pl.pallas_call(kernel, OUT, grid_spec=spec, interpret=pltpu.InterpretParams(**options))
    return jax.block_until_ready(f(np.array(numbers, np.int32), X))


def read(i, x, o):
    o[...] = x[pl.ds(i[0], 16), :]


def read_one(i, x, o):
    o[0, :] = x[i[0], :]


def write(i, x, o):
    o[pl.ds(i[0], 4), :] = x[:4, :]


def masked(i, x, o):
    pltpu.store(o.at[pl.ds(i[0], 4), :], x[:4, :], mask=jnp.full((4, 128), True))


@pytest.mark.parametrize(
    ("kernel", "start", "phrase"),
    [
        (read, 4, r"IndexError: Out-of-bounds read of x \(default, device 0, core 0\): \[4:20, 0:128\]"),
        (read, -1, r"IndexError: Out-of-bounds read of x .*: \[-1:15, 0:128\]"),
        (read_one, 16, r"IndexError: Out-of-bounds read of x .*: \[16, 0:128\] of a buffer that has shape \(16, 128\)"),
        (write, 14, r"ValueError: Out-of-bounds write of o .*: \[14:18, 0:128\]"),
        (masked, 14, r"ValueError: Out-of-bounds masked swap of o"),
    ],
)
def test_accesses_out_of_bounds(kernel, start, phrase):
    with pytest.raises(jax.errors.JaxRuntimeError, match=phrase) as caught:
        scalars(kernel, start)
    assert f"The kernel was at {__file__}:" in str(caught.value)
    assert f"({kernel.__name__}), on device 0, core 0." in str(caught.value)


def test_reads_out_of_bounds_may_be_uninitialized():
    y = scalars(read, 4, out_of_bounds_reads="uninitialized")
    np.testing.assert_array_equal(y[:12], X[4:])
    assert np.isnan(y[12:]).all()
    assert np.isnan(scalars(read_one, 16, out_of_bounds_reads="uninitialized")[0]).all()
    assert (scalars(read, 20, out_of_bounds_reads="uninitialized", uninitialized_memory="zero") == 0).all()


@pytest.mark.oracle
def test_a_negative_number_counts_from_the_end():
    def program(jax, jnp, lax, pl, pltpu):
        spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1)
        f = pl.pallas_call(
            lambda i, x, o: o.__setitem__(..., x[i[0], :]),
            jax.ShapeDtypeStruct((128,), jnp.float32),
            grid_spec=spec,
            interpret=pltpu.InterpretParams(),
        )
        return jax.block_until_ready(f(np.array([-1], np.int32), X))

    compare.same(program)


def test_bounds_of_tiles():
    def kernel(i, x, o, buffer):
        buffer[...] = jnp.zeros_like(buffer)
        pltpu.sync_copy(x.at[pl.ds(0, 8)], buffer.at[pl.ds(i[0], 8)])
        o[...] = buffer[pl.ds(i[0], 8), :]

    def run(space, **options):
        spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, scratch_shapes=[space((10, 128), jnp.float32)])
        p, out = pltpu.InterpretParams(**options), jax.ShapeDtypeStruct((8, 128), jnp.float32)
        return jax.block_until_ready(
            pl.pallas_call(kernel, out, grid_spec=spec, interpret=p)(np.array([4], np.int32), X)
        )

    y = run(pltpu.VMEM, buffer_bounds="padded")
    np.testing.assert_array_equal(y[:6], X[:6])
    assert np.isnan(y[6:]).all()
    for space, bounds in ((pltpu.VMEM, "logical"), (pltpu.SMEM, "padded")):
        with pytest.raises(jax.errors.JaxRuntimeError, match="Out-of-bounds write of buffer"):
            run(space, buffer_bounds=bounds)


def test_views_that_stick_out_of_a_buffer():
    """Only what is in the buffer is written, also through views of other shapes."""

    def kernel(i, x, o, buffer):
        buffer[...] = jnp.zeros_like(buffer)
        window = buffer.at[pl.ds(i[0], 8)]
        window.reshape(2, 4, 128)[...] = x[:8].reshape(2, 4, 128)
        window.reshape(2, 4, 128)[0] += jnp.ones((4, 128))
        o[:8] = window.reshape(8, 128)[...]
        o[pl.ds(8, 2)] = buffer[:2]
        o[pl.ds(10, 6)] = buffer[pl.ds(i[0] + 20, 6), :]

    spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, scratch_shapes=[pltpu.VMEM((10, 128), jnp.float32)])
    for races in (False, True):
        p = pltpu.InterpretParams(buffer_bounds="padded", out_of_bounds_reads="uninitialized", detect_races=races)
        y = pl.pallas_call(kernel, OUT, grid_spec=spec, interpret=p)(np.array([4], np.int32), X)
        np.testing.assert_array_equal(y[:4], X[:4] + 1)
        np.testing.assert_array_equal(y[4:6], X[4:6])
        assert np.isnan(y[6:8]).all()
        assert (y[8:10] == 0).all()
        assert np.isnan(y[10:]).all()


def test_static_numbers_are_checked_when_the_kernel_runs():
    def kernel(x, o, buffer):
        buffer[...] = jnp.zeros_like(buffer)
        buffer[10, :] = x[0, :]
        o[0, :] = buffer[10, :]

    def run(kernel, **options):
        scratch, p = [pltpu.VMEM((10, 128), jnp.float32)], pltpu.InterpretParams(**options)
        return jax.block_until_ready(pl.pallas_call(kernel, OUT, scratch_shapes=scratch, interpret=p)(X))

    with pytest.raises(jax.errors.JaxRuntimeError, match=r"Out-of-bounds write of buffer .*: \[10, 0:128\]"):
        run(kernel)
    assert np.isnan(run(kernel, buffer_bounds="padded")[0]).all()
    with pytest.raises(ValueError, match="Out of bound indexer: idx=10, dim=10."):
        pl.pallas_call(kernel, OUT, scratch_shapes=[pltpu.VMEM((10, 128), jnp.float32)], interpret=True)(X)


def blocks(in_map=lambda i: (i, 0), out_map=lambda i: (i, 0), grid=2, **options):
    specs = dict(in_specs=[pl.BlockSpec((8, 128), in_map)], out_specs=pl.BlockSpec((8, 128), out_map))
    return jax.block_until_ready(
        pl.pallas_call(double, OUT, grid=grid, interpret=pltpu.InterpretParams(**options), **specs)(X)
    )


def test_blocks_out_of_bounds():
    beyond = r"Out-of-bounds block index \(2, 0\) for input \"args\[0\]\" in iteration \(1,\) on device 0 \(core 0\)"
    with pytest.raises(jax.errors.JaxRuntimeError, match=beyond):
        blocks(lambda i: (i + 1, 0))
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"Out-of-bounds block index \(-1, 0\) for input"):
        blocks(lambda i: (i - 1, 0))
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"Out-of-bounds block index \(2, 0\) for output 0"):
        blocks(out_map=lambda i: (i + 1, 0), out_of_bounds_reads="uninitialized")
    assert np.isnan(blocks(lambda i: (i + 1, 0), out_of_bounds_reads="uninitialized")[8:]).all()


def test_rows_of_main_memory_out_of_bounds():
    def run(last):
        spec = pl.BlockSpec((None, 16, 128), lambda i: (i + last, 0, 0), memory_space=pl.ANY)
        out = jax.ShapeDtypeStruct((2, 16, 128), jnp.float32)
        out_spec = pl.BlockSpec((None, 16, 128), lambda i: (i, 0, 0), memory_space=pl.ANY)
        options = dict(grid=2, in_specs=[spec], out_specs=out_spec, interpret=pltpu.InterpretParams())
        return jax.block_until_ready(pl.pallas_call(pltpu.sync_copy, out, **options)(np.stack([X, X + 1, X + 2])))

    np.testing.assert_array_equal(run(1), np.stack([X + 1, X + 2]))
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"Out-of-bounds block index \(3, 0, 0\) for input"):
        run(2)


def test_blocks_that_are_revisited():
    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        blocks(lambda i: (0, 0), lambda i: (i % 2, 0), grid=3)
    message = str(caught.value)
    assert "Revisited block [0:8, 0:128] of output 0 in iteration (2,)." in message
    assert "previously visited in iterations (0,) through (0,)" in message
    assert f"<lambda> at {__file__}:" in message


@pytest.mark.parametrize("space", [pl.ANY, pltpu.HBM])
def test_main_memory_is_not_read_directly(space):
    main, near = pl.BlockSpec(memory_space=space), pl.BlockSpec(memory_space=pltpu.VMEM)
    for name, ins, out in (("get", main, near), ("swap", near, main)):
        phrase = f"{name}_p: Buffers with a memory space of HBM or ANY cannot be referenced directly"
        with pytest.raises(ValueError, match=phrase):
            pl.pallas_call(double, OUT, in_specs=[ins], out_specs=out, interpret=pltpu.InterpretParams())(X)


def test_main_memory_of_a_scope():
    def kernel(x, o):
        def copy(buffer):
            pltpu.sync_copy(x, buffer)
            pltpu.sync_copy(buffer, o)

        pl.run_scoped(copy, pltpu.HBM((16, 128), jnp.float32))

    def run(**options):
        mesh, p = pltpu.create_tensorcore_mesh("c", num_cores=2), pltpu.InterpretParams(**options)
        return pl.kernel(kernel, OUT, mesh=mesh, interpret=p)(X)

    with pytest.raises(ValueError, match="Cannot allocate HBM in `run_scoped`."):
        run()
    np.testing.assert_array_equal(run(allow_hbm_allocation_in_run_scoped=True), X)


# ---- what there is not -----------------------------------------------------------------------------------------


def test_operations_that_only_gpus_have():
    from minijax.experimental.pallas import triton as plt

    def kernel(x, o):
        plt.atomic_add(o, (0, 0), x[0, 0])

    with pytest.raises(NotImplementedError, match=rf"atomic_rmw at {__file__}:\d+ \(.*kernel\) cannot be simulated"):
        pl.pallas_call(kernel, OUT, interpret=pltpu.InterpretParams())(X)


@pytest.mark.oracle
@pytest.mark.parametrize("what", ["semaphores", "keys"])
def test_arrays_that_are_not_simulated(what):
    def program(jax, jnp, lax, pl, pltpu):
        whole, out = pl.BlockSpec(memory_space=pl.ANY), jax.ShapeDtypeStruct((16, 128), jnp.float32)
        options = dict(interpret=pltpu.InterpretParams())
        if what == "keys":
            options |= dict(in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM)])
            return lambda: pl.pallas_call(nothing, out, **options)(jax.random.key(0))
        options |= dict(out_specs=(whole, pl.BlockSpec(memory_space=pltpu.SEMAPHORE)), in_specs=[whole])
        return lambda: pl.pallas_call(nothing, (out, pltpu.SemaphoreType.DMA(())), **options)(X)

    compare.same_refusal(program)


@pytest.mark.oracle
def test_random_bits_are_zeros():
    def program(jax, jnp, lax, pl, pltpu):
        def kernel(o):
            pltpu.prng_seed(3)
            o[...] = pltpu.prng_random_bits((8, 128))
            pl.delay(10)

        f = pl.pallas_call(kernel, jax.ShapeDtypeStruct((8, 128), jnp.int32), interpret=pltpu.InterpretParams())
        return jax.block_until_ready(f())

    compare.same(program)


def test_semaphores_that_are_left_over_are_printed(capfd):
    def kernel(o, semaphore):
        pl.semaphore_signal(semaphore, 2)

    scratch = [pltpu.SemaphoreType.REGULAR]
    jax.block_until_ready(pl.pallas_call(kernel, OUT, scratch_shapes=scratch, interpret=pltpu.InterpretParams())())
    assert "semaphore of device 0, core 0 has a non-zero count at kernel exit: 2" in capfd.readouterr().out


def test_events_that_are_printed(capfd):
    def kernel(x, o, semaphore):
        pl.semaphore_signal(semaphore, 2)
        pl.semaphore_wait(semaphore, 2)
        pl.semaphore_signal(pltpu.get_barrier_semaphore())
        pl.semaphore_wait(pltpu.get_barrier_semaphore())
        o[...] = x[...]

    want = {
        LoggingMode.SEMAPHORE: ["added 2 to semaphore of", "waited for semaphore of"],
        LoggingMode.BARRIER: ["added 1 to barrier semaphore 3 of", "waited for barrier semaphore 3 of"],
        LoggingMode.SHARED_MEMORY: ["read x (default", "wrote o (default"],
    }
    for mode in (*LoggingMode, LoggingMode.SEMAPHORE | LoggingMode.BARRIER):
        options = dict(scratch_shapes=[pltpu.SemaphoreType.REGULAR], interpret=pltpu.InterpretParams(logging_mode=mode))
        f = pl.pallas_call(kernel, OUT, compiler_params=pltpu.CompilerParams(collective_id=3), **options)
        jax.block_until_ready(f(X))
        printed = capfd.readouterr().out
        for kind, lines in want.items():
            assert all((f"device 0, core 0: {line}" in printed) == (kind in mode) for line in lines), printed


def test_the_next_call_after_an_error_needs_no_reset():
    with pytest.raises(jax.errors.JaxRuntimeError):
        scalars(read, 4)
    np.testing.assert_array_equal(scalars(read, 0), X)
