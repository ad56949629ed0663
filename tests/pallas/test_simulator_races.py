"""The simulator of TPUs finds races and deadlocks, and names the lines of the kernel."""

import re

import compare
import numpy as np
import pallas_kernels  # noqa: F401  the short names of Pallas' modules
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.experimental import pallas as pl
from minijax.experimental.pallas import tpu as pltpu

X = np.random.default_rng(0).normal(size=(16, 128)).astype(np.float32)
WHOLE = pl.BlockSpec(memory_space=pl.ANY)
OUT = jax.ShapeDtypeStruct((16, 128), jnp.float32)
VMEM, DMA, REGULAR = pltpu.VMEM((16, 128), jnp.float32), pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.REGULAR
TWO = pltpu.create_tensorcore_mesh("c", num_cores=2)


def run(kernel, *scratch, races=True, mode="on_wait", out_specs=WHOLE):
    p = pltpu.InterpretParams(detect_races=races, dma_execution_mode=mode)
    f = pl.pallas_call(kernel, OUT, in_specs=[WHOLE], out_specs=out_specs, scratch_shapes=scratch, interpret=p)
    return jax.block_until_ready(f(X))


def on_cores(kernel, *scratch, races=True, **options):
    p = pltpu.InterpretParams(detect_races=races, **options)
    return jax.block_until_ready(pl.kernel(kernel, OUT, mesh=TWO, scratch_types=scratch, interpret=p)(X))


def line_of(function, text):
    """The line of this file on which a function has a text."""
    code = function.__code__
    with open(__file__) as file:
        lines = file.read().splitlines()
    return next(i for i in range(code.co_firstlineno, len(lines) + 1) if text in lines[i - 1])


def message(call, *args, **kwargs):
    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        call(*args, **kwargs)
    return str(caught.value)


# ---- races of copies -------------------------------------------------------------------------------------------


def read_too_early(x, o, buffer, done):
    copy = pltpu.make_async_copy(x, buffer, done)
    copy.start()
    o[...] = buffer[...] + 1.0
    copy.wait()


def write_too_early(x, o, buffer, done):
    copy = pltpu.make_async_copy(buffer, o, done)
    copy.start()
    buffer[...] = jnp.ones((16, 128))
    copy.wait()


def copy_twice(x, o, buffer, done):
    first = pltpu.make_async_copy(x, buffer, done)
    second = pltpu.make_async_copy(x.at[pl.ds(0, 8)], buffer.at[pl.ds(8, 8)], done)
    first.start()
    second.start()
    first.wait()
    second.wait()


def copy_twice_in_turn(x, o, buffer, done):
    first = pltpu.make_async_copy(x, buffer, done)
    second = pltpu.make_async_copy(x.at[pl.ds(0, 8)], buffer.at[pl.ds(8, 8)], done)
    first.start()
    first.wait()
    second.start()
    second.wait()
    pltpu.sync_copy(buffer, o)


def other_half(x, o, buffer, done):
    copy = pltpu.make_async_copy(x.at[pl.ds(0, 8)], buffer.at[pl.ds(0, 8)], done)
    copy.start()
    buffer[pl.ds(8, 8)] = jnp.ones((8, 128))
    copy.wait()
    pltpu.sync_copy(buffer, o)


@pytest.mark.parametrize("mode", ["on_wait", "eager"])
@pytest.mark.parametrize(
    ("kernel", "near", "first", "second"),
    [
        (read_too_early, True, ("write", "copy.start()"), ("read", "buffer[...] + 1.0")),
        (write_too_early, False, ("read", "copy.start()"), ("write", "buffer[...] = jnp")),
        (copy_twice, False, ("write", "first.start()"), ("write", "second.start()")),
    ],
)
def test_races_name_both_lines(kernel, near, first, second, mode):
    spec = pl.BlockSpec(memory_space=pltpu.VMEM) if near else WHOLE
    text = message(run, kernel, VMEM, DMA, mode=mode, out_specs=spec)
    assert "RACE DETECTED in buffer (vmem, device 0, core 0):" in text
    pattern = rf"  {first[0]} by the copy started by device 0, core 0 at {__file__}:{line_of(kernel, first[1])} "
    assert re.search(pattern, text), text
    assert re.search(rf"  {second[0]} by .*device 0, core 0 at {__file__}:{line_of(kernel, second[1])} ", text), text
    run(kernel, VMEM, DMA, races=False, mode=mode, out_specs=spec)


@pytest.mark.parametrize("mode", ["on_wait", "eager"])
@pytest.mark.parametrize("kernel", [copy_twice_in_turn, other_half])
def test_ordered_or_disjoint_copies_do_not_race(kernel, mode):
    np.testing.assert_array_equal(run(kernel, VMEM, DMA, mode=mode), run(kernel, VMEM, DMA, races=False))


def test_a_semaphore_waited_for_once_orders_one_of_two_copies():
    def kernel(x, o, buffer, done):
        for i in range(2):
            pltpu.make_async_copy(x.at[pl.ds(8 * i, 8)], buffer.at[pl.ds(8 * i, 8)], done).start()
        pltpu.make_async_copy(x.at[pl.ds(0, 8)], buffer.at[pl.ds(0, 8)], done).wait()
        o[...] = buffer[...]
        pltpu.make_async_copy(x.at[pl.ds(0, 8)], buffer.at[pl.ds(0, 8)], done).wait()

    assert "RACE DETECTED" in message(run, kernel, VMEM, DMA, out_specs=pl.BlockSpec(memory_space=pltpu.VMEM))


def test_views_that_do_not_meet_do_not_race():
    def kernel(x, o, buffer, done, index=0):
        copy = pltpu.make_async_copy(x.at[pl.ds(0, 8)], buffer.reshape(2, 8, 128).at[0], done)
        copy.start()
        buffer.reshape(2, 8, 128)[index] = jnp.ones((8, 128))
        copy.wait()

    run(lambda *refs: kernel(*refs, index=1), VMEM, DMA)
    assert "RACE DETECTED" in message(run, kernel, VMEM, DMA)


@pytest.mark.oracle
@pytest.mark.parametrize("mode", ["on_wait", "eager"])
def test_when_a_copy_takes_place(mode):
    """Without a wait, a copy has ended in one mode, and in the other has not begun."""

    def program(jax, jnp, lax, pl, pltpu):
        def kernel(x, o, buffer, done):
            pltpu.make_async_copy(x, buffer, done).start()
            o[...] = buffer[...]

        f = pl.pallas_call(
            kernel,
            jax.ShapeDtypeStruct((16, 128), jnp.float32),
            in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
            scratch_shapes=[pltpu.VMEM((16, 128), jnp.float32), pltpu.SemaphoreType.DMA],
            interpret=pltpu.InterpretParams(dma_execution_mode=mode),
        )
        return jax.block_until_ready(f(X))

    assert np.isnan(compare.same(program)).all() == (mode == "on_wait")


def test_a_source_may_be_written_once_it_was_sent():
    """A wait for the sender's semaphore reads the source; the destination is written for the receiver's."""

    def kernel(x, o, buffer, sent, arrived):
        pltpu.sync_copy(x, buffer)
        copy = pltpu.make_async_remote_copy(buffer, o, sent, arrived, 0, pl.DeviceIdType.LOGICAL)
        copy.start()
        copy.wait_send()
        buffer[...] = jnp.zeros((16, 128))
        copy.wait_recv()

    for mode in ("on_wait", "eager"):
        np.testing.assert_array_equal(run(kernel, VMEM, DMA, DMA, mode=mode), X)


@pytest.mark.oracle
def test_the_destination_is_written_when_the_receiver_waits():
    def program(jax, jnp, lax, pl, pltpu):
        def kernel(x, o, buffer, sent, arrived):
            copy = pltpu.make_async_remote_copy(x, buffer, sent, arrived, 0, pl.DeviceIdType.LOGICAL)
            copy.start()
            copy.wait_send()
            o[0] = buffer[...]
            copy.wait_recv()
            o[1] = buffer[...]

        f = pl.pallas_call(
            kernel,
            jax.ShapeDtypeStruct((2, 16, 128), jnp.float32),
            in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
            scratch_shapes=[pltpu.VMEM((16, 128), jnp.float32), *[pltpu.SemaphoreType.DMA] * 2],
            interpret=pltpu.InterpretParams(),
        )
        return jax.block_until_ready(f(X))

    y = compare.same(program)
    assert np.isnan(y[0]).all()
    np.testing.assert_array_equal(y[1], X)


# ---- races of cores --------------------------------------------------------------------------------------------


def both_copy(x, o):
    pltpu.sync_copy(x, o)


def in_turn(x, o, semaphore):
    own = jax.lax.axis_index("c")

    @pl.when(own == 1)
    def _():
        pl.semaphore_wait(semaphore)

    pltpu.sync_copy(x, o)

    @pl.when(own == 0)
    def _():
        pl.semaphore_signal(semaphore, core_index=1)


@pytest.mark.parametrize("mode", ["on_wait", "eager"])
def test_cores_that_write_one_array(mode):
    text = message(on_cores, both_copy, dma_execution_mode=mode)
    assert re.search(r"RACE DETECTED in o \(hbm, device 0\)|RACE DETECTED in memory 1 \(hbm, device 0\)", text)
    assert "by the copy started by device 0, core 0" in text
    assert "by the copy started by device 0, core 1" in text
    np.testing.assert_array_equal(on_cores(in_turn, REGULAR, dma_execution_mode=mode), X)
    np.testing.assert_array_equal(on_cores(both_copy, races=False, dma_execution_mode=mode), X)


def test_cores_share_main_memory_until_the_last_leaves_it():
    def kernel(x, o, semaphore, first):
        own = jax.lax.axis_index("c")

        @pl.when(own != first)
        def _():
            pl.semaphore_wait(semaphore)

        def scope(shared):
            @pl.when(own == first)
            def _():
                pltpu.sync_copy(x, shared)

            @pl.when(own != first)
            def _():
                pltpu.sync_copy(shared, o)

        pl.run_scoped(scope, pltpu.HBM((16, 128), jnp.float32))

        @pl.when(own == first)
        def _():
            pl.semaphore_signal(semaphore, core_index=1 - first)

    for first in (0, 1):
        y = on_cores(lambda *refs, first=first: kernel(*refs, first), REGULAR, allow_hbm_allocation_in_run_scoped=True)
        np.testing.assert_array_equal(y, X)


def test_steps_on_several_cores_that_store_one_block():
    def kernel(x, o, buffer):
        buffer[...] = x[...]
        o[...] = x[...] + buffer[...]

    def call(cores, rows):
        params = pltpu.CompilerParams(dimension_semantics=("parallel",))
        p = pltpu.InterpretParams(num_cores_or_threads=cores, detect_races=True)
        spec = pl.BlockSpec((rows, 128), lambda i: (i % (16 // rows), 0))
        scratch, options = [pltpu.VMEM((rows, 128), jnp.float32)], dict(compiler_params=params, interpret=p)
        f = pl.pallas_call(kernel, OUT, grid=2, in_specs=[spec], out_specs=spec, scratch_shapes=scratch, **options)
        return jax.block_until_ready(f(X))

    np.testing.assert_array_equal(call(1, 16), 2 * X)
    np.testing.assert_array_equal(call(2, 8), 2 * X)
    text = message(call, 2, 16)
    assert "RACE DETECTED in o (hbm, device 0)" in text
    assert f"the copy of a block by the index map of outputs, <lambda> at {__file__}:" in text


def test_what_follows_a_signal_is_not_ordered():
    def kernel(x, o, semaphore, late=True):
        own = jax.lax.axis_index("c")

        @pl.when(own == 0)
        def _():
            if not late:
                pltpu.sync_copy(x, o)
            pl.semaphore_signal(semaphore, core_index=1)
            if late:
                pltpu.sync_copy(x, o)

        @pl.when(own == 1)
        def _():
            pl.semaphore_wait(semaphore)
            pltpu.sync_copy(x, o)

    np.testing.assert_array_equal(on_cores(lambda *refs: kernel(*refs, late=False), REGULAR), X)
    assert "RACE DETECTED" in message(on_cores, kernel, REGULAR)


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("kernel", "near", "is_race"),
    [
        (read_too_early, True, True),
        (write_too_early, False, True),
        (copy_twice_in_turn, False, False),
        (other_half, False, False),
    ],
)
def test_races_that_jax_finds_too(kernel, near, is_race, capfd):
    """jax prints a race; here it is raised."""

    def program(jax, jnp, lax, pl, pltpu):
        spec = pl.BlockSpec(memory_space=pltpu.VMEM if near else pl.ANY)
        names = dict(pl=pl, pltpu=pltpu, jnp=jnp)
        body = type(kernel)(kernel.__code__, {**kernel.__globals__, **names}, kernel.__name__)
        f = pl.pallas_call(
            body,
            jax.ShapeDtypeStruct((16, 128), jnp.float32),
            in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
            out_specs=spec,
            scratch_shapes=[pltpu.VMEM((16, 128), jnp.float32), pltpu.SemaphoreType.DMA],
            interpret=pltpu.InterpretParams(detect_races=True),
        )
        capfd.readouterr()
        try:
            jax.block_until_ready(f(X))
        except jax.errors.JaxRuntimeError as error:
            return "RACE DETECTED" in str(error)
        return "RACE DETECTED" in capfd.readouterr().out

    assert compare.same(program) is is_race


# ---- deadlocks -------------------------------------------------------------------------------------------------


def test_a_wait_without_a_signal():
    def kernel(x, o, semaphores):
        pl.semaphore_signal(semaphores.at[0])
        pl.semaphore_wait(semaphores.at[1], 2)

    text = message(run, kernel, pltpu.SemaphoreType.REGULAR((2,)))
    assert "Deadlock: nothing will signal the semaphores" in text
    want = rf"device 0, core 0 waits at {__file__}:{line_of(kernel, 'semaphores.at[1], 2')} \(.*kernel\) until "
    assert re.search(want + r"semaphores\[1\] of device 0, core 0 is 2; it is 0", text), text


def test_a_copy_that_was_not_started():
    def kernel(x, o, done):
        pltpu.make_async_copy(x, o, done).wait()

    text = message(run, kernel, DMA)
    assert "until done of device 0, core 0 is 8192; it is 0" in text


def test_cores_that_wait_for_each_other():
    def kernel(x, o, semaphore):
        own = jax.lax.axis_index("c")
        pl.semaphore_wait(semaphore)
        pl.semaphore_signal(semaphore, core_index=1 - own)

    text = message(on_cores, kernel, REGULAR)
    assert "device 0, core 0 waits at" in text
    assert "device 0, core 1 waits at" in text


def test_an_error_of_one_core_ends_the_other():
    def kernel(i, x, o, buffer, semaphore):
        own = jax.lax.axis_index("c")

        @pl.when(own == 0)
        def _():
            pl.semaphore_wait(semaphore)

        @pl.when(own == 1)
        def _():
            buffer[pl.ds(own + 99, 1), :] = jnp.zeros((1, 128))

    text = message(on_cores, lambda x, o, *scratch: kernel(None, x, o, *scratch), VMEM, REGULAR)
    assert "Out-of-bounds write" in text
    assert "on device 0, core 1." in text


def test_waits_in_loops_and_branches():
    def kernel(x, o, semaphore):
        own = jax.lax.axis_index("c")

        def body(i, _):
            @pl.when(jax.lax.rem(i, 2) == own)
            def _():
                pl.semaphore_wait(semaphore)

            @pl.when(jax.lax.rem(i, 2) != own)
            def _():
                pl.semaphore_signal(semaphore, core_index=1 - own)

            return 0

        jax.lax.fori_loop(0, 6, body, 0)
        part = pl.ds(own * 8, 8)
        pltpu.sync_copy(x.at[part], o.at[part])

    np.testing.assert_array_equal(on_cores(kernel, REGULAR), X)


# ---- misuse of scopes and semaphores ---------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["on_wait"])
def test_a_copy_into_a_scope_that_ended(mode):
    def kernel(x, o, done):
        pl.run_scoped(lambda buffer: pltpu.make_async_copy(x, buffer, done).start(), VMEM)
        pltpu.make_async_copy(x, o, done).wait()

    assert "whose scope ended. Wait for copies before it ends." in message(run, kernel, DMA, mode=mode)


def test_semaphores_that_are_not_there():
    def beyond(x, o, semaphores):
        pl.semaphore_signal(semaphores.at[jax.lax.axis_index("c") + 1])

    def of_core(x, o, semaphore):
        pl.semaphore_signal(semaphore, core_index=jax.lax.axis_index("c") + 1)

    assert "Out-of-bounds" in message(on_cores, beyond, pltpu.SemaphoreType.REGULAR((2,)))
    assert "core 2 is beyond the 2 cores of a device" in message(on_cores, of_core, REGULAR)


def test_a_barrier_needs_a_number():
    def kernel(x, o):
        pl.semaphore_signal(pltpu.get_barrier_semaphore())

    assert "the kernel has no collective_id" in message(run, kernel)


# ---- random programs of two cores ------------------------------------------------------------------------------


def events_of(seed):
    """Copies of rows of 4, (core, source, rows, copy that is waited for later or None), and signals (core,)."""
    rng, events = np.random.default_rng(seed), []
    for _ in range(int(rng.integers(2, 8))):
        core = int(rng.integers(0, 2))
        if rng.random() < 0.3:
            events.append((core,))
        else:
            source = int(rng.integers(-4, 4))  # rows of the result, or of the operand if negative
            rows = [k for k in range(4) if k != source][int(rng.integers(0, 3))]
            events.append((core, source, rows, int(rng.integers(0, 3))))
    return events


def is_race(events):
    """Whether two copies meet that no path of waits orders: the nodes are events and copies, the edges what follows."""
    after, last, accesses, open_copies = {}, [None, None], [], []

    def follow(one, other):
        if one is not None:
            after.setdefault(one, set()).add(other)

    def advance(core, node):
        follow(last[core], node)
        last[core] = node

    for i, event in enumerate(events):
        if len(event) == 1:
            advance(event[0], ("signal", i))
            advance(1 - event[0], ("wait", i))
            follow(("signal", i), ("wait", i))
        else:
            core, source, rows, late = event
            advance(core, ("start", i))
            follow(("start", i), ("copy", i))
            accesses.append((("copy", i), {("o", source) if source >= 0 else ("x", -1 - source)}, ("o", rows)))
            open_copies.append([late, core, i])
        for copy in open_copies:
            if copy[0] == 0:
                advance(copy[1], ("end", copy[2]))
                follow(("copy", copy[2]), ("end", copy[2]))
            copy[0] -= 1

    def reaches(one, other, seen):
        return one == other or any(
            reaches(n, other, seen) for n in after.get(one, ()) if n not in seen and not seen.add(n)
        )

    def meet(a, b):
        return a[2] == b[2] or a[2] in b[1] or b[2] in a[1]

    pairs = [(a, b) for k, a in enumerate(accesses) for b in accesses[k + 1 :] if meet(a, b)]
    return any(not reaches(a[0], b[0], set()) and not reaches(b[0], a[0], set()) for a, b in pairs)


def program_of(events):
    def kernel(x, o, semaphore, done):
        own = jax.lax.axis_index("c")
        part = lambda k: pl.ds(4 * k, 4)  # noqa: E731

        def run(core):
            pending = []
            for i, event in enumerate(events):
                if len(event) == 1:
                    if event[0] == core:
                        pl.semaphore_signal(semaphore, core_index=1 - core)
                    else:
                        pl.semaphore_wait(semaphore)
                elif event[0] == core:
                    _, source, rows, late = event
                    src = o.at[part(source)] if source >= 0 else x.at[part(-1 - source)]
                    copy = pltpu.make_async_copy(src, o.at[part(rows)], done.at[i])
                    copy.start()
                    pending.append([late, copy])
                for copy in pending:
                    if copy[0] == 0:
                        copy[1].wait()
                    copy[0] -= 1
            for late, copy in pending:
                if late >= 0:
                    copy.wait()

        for core in (0, 1):
            pl.when(own == core)(lambda core=core: run(core))

    return kernel


@pytest.mark.parametrize("mode", ["on_wait", "eager"])
@pytest.mark.parametrize("seed", range(24))
def test_races_of_random_programs(seed, mode):
    events = events_of(seed)
    scratch = REGULAR, pltpu.SemaphoreType.DMA((len(events),))
    if is_race(events):
        assert "RACE DETECTED" in message(on_cores, program_of(events), *scratch, dma_execution_mode=mode)
    else:
        on_cores(program_of(events), *scratch, dma_execution_mode=mode)


def test_random_programs_are_of_both_kinds():
    assert 6 <= sum(is_race(events_of(seed)) for seed in range(24)) <= 18
