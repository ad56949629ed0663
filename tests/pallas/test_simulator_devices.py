"""Kernels that copy and signal between simulated devices, under `shard_map` over devices of the CPU."""

import re
import threading

import compare
import numpy as np
import pallas_kernels  # noqa: F401  the short names of Pallas' modules
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.experimental import pallas as pl
from minijax.experimental.pallas import tpu as pltpu

X = np.arange(32 * 128, dtype=np.float32).reshape(32, 128)
WHOLE = pl.BlockSpec(memory_space=pl.ANY)
P = jax.sharding.PartitionSpec


def sharded(jax, f, shape=(4,), names=("x",)):
    devices = np.array(jax.devices()[: int(np.prod(shape))]).reshape(shape)
    mesh, spec = jax.sharding.Mesh(devices, names), jax.sharding.PartitionSpec(names)
    return jax.jit(jax.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False))


def neighbours_are_ready(lax, pl, pltpu):
    own = lax.axis_index("x")
    barrier = pltpu.get_barrier_semaphore()
    for step in (1, 3):
        pl.semaphore_signal(barrier, device_id=(lax.rem(own + step, 4),))
    pl.semaphore_wait(barrier, 2)


def call_on(jax, jnp, pl, pltpu, kernel, p, shape, scratch):
    params = pltpu.CompilerParams(collective_id=0)
    whole = pl.BlockSpec(memory_space=pl.ANY)
    options = dict(in_specs=[whole], out_specs=whole, scratch_shapes=scratch, compiler_params=params, interpret=p)
    return pl.pallas_call(kernel, jax.ShapeDtypeStruct(shape, jnp.float32), **options)


# ---- values, compared with jax's simulator ---------------------------------------------------------------------


def permute(jax, jnp, lax, pl, pltpu):
    """Each device sends its rows to the right."""

    def kernel(x, o, sent, arrived):
        neighbours_are_ready(lax, pl, pltpu)
        right = lax.rem(lax.axis_index("x") + 1, 4)
        copy = pltpu.make_async_remote_copy(x, o, sent, arrived, (right,), pl.DeviceIdType.MESH)
        copy.start()
        copy.wait()

    scratch = [pltpu.SemaphoreType.DMA] * 2
    return lambda p: sharded(jax, call_on(jax, jnp, pl, pltpu, kernel, p, (8, 128), scratch))(X)


def gather(jax, jnp, lax, pl, pltpu):
    """Each device passes on what it got, until all have all rows."""

    def kernel(x, o, done, sent, arrived):
        own = lax.axis_index("x")
        neighbours_are_ready(lax, pl, pltpu)
        pltpu.async_copy(x, o.at[own], done).wait()
        for step in range(3):
            slot = lax.rem(own + 4 - step, 4)
            copy = pltpu.make_async_remote_copy(
                o.at[slot], o.at[slot], sent, arrived.at[step], lax.rem(own + 1, 4), pl.DeviceIdType.LOGICAL
            )
            copy.start()
            copy.wait()

    scratch = [pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.DMA((3,))]

    def run(p):
        f = call_on(jax, jnp, pl, pltpu, kernel, p, (4, 8, 128), scratch)
        return sharded(jax, lambda x: f(x).reshape(32, 128))(X)

    return run


def sums(jax, jnp, lax, pl, pltpu):
    """Adds the rows of all devices, in vector memory."""

    def kernel(x, o, buffers, sent, arrived):
        neighbours_are_ready(lax, pl, pltpu)
        right = lax.rem(lax.axis_index("x") + 1, 4)
        o[...] = x[...]
        buffers[0] = x[...]
        for step in range(3):
            copy = pltpu.make_async_remote_copy(
                buffers.at[step], buffers.at[step + 1], sent, arrived.at[step], (right,), pl.DeviceIdType.MESH
            )
            copy.start()
            copy.wait()
            o[...] += buffers[step + 1]

    def run(p):
        scratch = [pltpu.VMEM((4, 8, 128), jnp.float32), pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.DMA((3,))]
        params, out = pltpu.CompilerParams(collective_id=0), jax.ShapeDtypeStruct((8, 128), jnp.float32)
        f = pl.pallas_call(kernel, out, scratch_shapes=scratch, compiler_params=params, interpret=p)
        return sharded(jax, f)(X)

    return run


def numbers(jax, jnp, lax, pl, pltpu):
    """Devices that do not meet have numbers of their own."""

    def kernel(x, o):
        o[...] = x[...] + lax.axis_index("x").astype(jnp.float32)

    def run(p):
        return sharded(jax, pl.pallas_call(kernel, jax.ShapeDtypeStruct((8, 128), jnp.float32), interpret=p))(X)

    return run


PROGRAMS = [permute, gather, sums, numbers]


@pytest.mark.oracle
@pytest.mark.parametrize("mode", ["on_wait", "eager"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_values(program, mode):
    compare.same(
        lambda jax, jnp, lax, pl, pltpu: np.asarray(
            program(jax, jnp, lax, pl, pltpu)(pltpu.InterpretParams(dma_execution_mode=mode))
        )
    )


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_programs_without_races_raise_none(program):
    run = program(jax, jnp, lax, pl, pltpu)
    for mode in ("on_wait", "eager"):
        watched = run(pltpu.InterpretParams(detect_races=True, dma_execution_mode=mode))
        np.testing.assert_array_equal(watched, run(pltpu.InterpretParams()))


def test_a_program_runs_often_and_among_others():
    f = sharded(jax, call_on(jax, jnp, pl, pltpu, _permutes, pltpu.InterpretParams(), (8, 128), DMAS))
    want = np.roll(X, 8, 0)
    for _ in range(20):
        np.testing.assert_array_equal(f(X), want)
    results = [f(X + i) for i in range(4)]
    for i, y in enumerate(results):
        np.testing.assert_array_equal(y, want + i)
    twice = jax.jit(lambda x: f(f(x) + 1))
    np.testing.assert_array_equal(twice(X), np.roll(X, 16, 0) + 1)


def test_calls_in_loops_transformations_and_threads():
    f = call_on(jax, jnp, pl, pltpu, _permutes, pltpu.InterpretParams(), (8, 128), DMAS)
    many = sharded(jax, lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=5)[0])
    np.testing.assert_array_equal(many(X), np.roll(X, 40, 0))
    mapped = sharded(jax, lambda x: jax.vmap(f)(jnp.stack([x, x + 1]))[1])
    np.testing.assert_array_equal(mapped(X), np.roll(X + 1, 8, 0))
    with_sum = sharded(jax, lambda x: lax.psum(jax.checkpoint(f)(x), "x"))
    np.testing.assert_array_equal(with_sum(X), np.tile(X.reshape(4, 8, 128).sum(0), (4, 1)))
    by_pmap = jax.pmap(f, axis_name="x", devices=jax.devices()[:4])(X.reshape(4, 8, 128))
    np.testing.assert_array_equal(np.asarray(by_pmap).reshape(32, 128), np.roll(X, 8, 0))

    g, found = sharded(jax, f), []

    def run(n):
        found.extend(np.array_equal(g(X + i), np.roll(X + i, 8, 0)) for i in range(n, n + 5))

    threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [True] * 20


DMAS = [pltpu.SemaphoreType.DMA] * 2


def _permutes(x, o, sent, arrived):
    neighbours_are_ready(lax, pl, pltpu)
    right = lax.rem(lax.axis_index("x") + 1, 4)
    copy = pltpu.make_async_remote_copy(x, o, sent, arrived, (right,), pl.DeviceIdType.MESH)
    copy.start()
    copy.wait()


# ---- names of devices ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["coordinates", "names", "some names", "number"])
def test_devices_of_a_mesh_of_two_axes(name):
    def kernel(x, o, sent, arrived):
        i, j = lax.axis_index("x"), lax.axis_index("y")
        right = lax.rem(j + 1, 2)
        device, kind = {
            "coordinates": ((i, right), pl.DeviceIdType.MESH),
            "names": ({"x": i, "y": right}, pl.DeviceIdType.MESH),
            "some names": ({"y": right}, pl.DeviceIdType.MESH),
            "number": (2 * i + right, pl.DeviceIdType.LOGICAL),
        }[name]
        pltpu.async_remote_copy(x, o, sent, arrived, device, kind).wait()

    f = call_on(jax, jnp, pl, pltpu, kernel, pltpu.InterpretParams(), (8, 128), DMAS)
    y = sharded(jax, f, (2, 2), ("x", "y"))(X)
    want = X.reshape(2, 2, 8, 128)[:, ::-1].reshape(32, 128)
    np.testing.assert_array_equal(y, want)


def message(kernel, scratch=(), p=None):
    f = sharded(jax, call_on(jax, jnp, pl, pltpu, kernel, p or pltpu.InterpretParams(), (8, 128), list(scratch)))
    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        jax.block_until_ready(f(X))
    return str(caught.value)


@pytest.mark.parametrize(
    ("device", "kind", "phrase"),
    [
        (lambda i: i + 1, pl.DeviceIdType.LOGICAL, "device_id 4 is beyond the 4 devices of the mesh"),
        (lambda i: (i + 1,), pl.DeviceIdType.MESH, "device_id {'x': 4} is beyond the mesh"),
        (lambda i: (i, i), pl.DeviceIdType.MESH, "Number of device ids must match the number of mesh axes, but got 2"),
        (lambda i: {"z": i}, pl.DeviceIdType.MESH, "device_id names axes ['z'] that the mesh of axes ['x'] does not"),
    ],
)
def test_devices_that_are_not_there(device, kind, phrase):
    def kernel(x, o, semaphore):
        pl.semaphore_signal(semaphore, device_id=device(lax.axis_index("x")), device_id_type=kind)

    assert phrase in message(kernel, [pltpu.SemaphoreType.REGULAR])


# ---- races and deadlocks ---------------------------------------------------------------------------------------


def test_a_deadlock_of_devices_names_each():
    def kernel(x, o, semaphore):
        own = lax.axis_index("x")

        @pl.when(own > 0)
        def _():
            pl.semaphore_signal(semaphore, device_id=(own - 1,))

        pl.semaphore_wait(semaphore, 2)

    text = message(kernel, [pltpu.SemaphoreType.REGULAR])
    for device, count in ((0, 1), (1, 1), (2, 1), (3, 0)):
        assert re.search(
            rf"device {device}, core 0 waits at {__file__}:\d+ \(.*kernel\) until semaphore of device {device}, core 0 is "
            rf"2; it is {count}",
            text,
        ), text


def test_a_copy_to_a_buffer_that_the_other_device_uses():
    """Without a barrier, rows arrive while the neighbour still works on its buffer."""

    def kernel(x, o, buffer, sent, arrived, ready=False):
        buffer[...] = jnp.zeros((8, 128))
        if ready:
            neighbours_are_ready(lax, pl, pltpu)
        right = lax.rem(lax.axis_index("x") + 1, 4)
        pltpu.async_remote_copy(x, buffer, sent, arrived, (right,), pl.DeviceIdType.MESH).wait()
        pltpu.sync_copy(buffer, o)

    scratch = [pltpu.VMEM((8, 128), jnp.float32), *DMAS]
    text = message(kernel, scratch, pltpu.InterpretParams(detect_races=True))
    assert re.search(r"RACE DETECTED in buffer \(vmem, device \d, core 0\)", text), text
    assert "by the copy started by device" in text
    p = pltpu.InterpretParams(detect_races=True)
    f = call_on(jax, jnp, pl, pltpu, lambda *refs: kernel(*refs, ready=True), p, (8, 128), scratch)
    np.testing.assert_array_equal(sharded(jax, f)(X), np.roll(X, 8, 0))


def test_what_follows_a_signal_is_not_ordered():
    """A device tells its neighbour that its buffer is ready, and then writes it once more."""

    def kernel(x, o, buffer, sent, arrived, late):
        own, barrier = lax.axis_index("x"), pltpu.get_barrier_semaphore()
        if not late:
            buffer[...] = jnp.zeros((8, 128))
        pl.semaphore_signal(barrier, device_id=(lax.rem(own + 3, 4),))
        if late:
            buffer[...] = jnp.zeros((8, 128))
        pl.semaphore_wait(barrier)
        pltpu.async_remote_copy(x, buffer, sent, arrived, (lax.rem(own + 1, 4),), pl.DeviceIdType.MESH).wait()
        pltpu.sync_copy(buffer, o)

    scratch, p = [pltpu.VMEM((8, 128), jnp.float32), *DMAS], pltpu.InterpretParams(detect_races=True)
    f = call_on(jax, jnp, pl, pltpu, lambda *refs: kernel(*refs, late=False), p, (8, 128), scratch)
    np.testing.assert_array_equal(sharded(jax, f)(X), np.roll(X, 8, 0))
    assert "RACE DETECTED in refs[2] (vmem, device" in message(lambda *refs: kernel(*refs, late=True), scratch, p)


def test_a_device_that_does_not_come(monkeypatch):
    from minijax.kernels.simulator import meeting

    monkeypatch.setattr(meeting, "PATIENCE", 1.0)
    f = call_on(jax, jnp, pl, pltpu, _permutes, pltpu.InterpretParams(), (8, 128), DMAS)
    some = sharded(jax, lambda x: lax.cond(lax.axis_index("x") < 3, f, lambda x: x, x))
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"devices \[3\] did not come to a kernel"):
        jax.block_until_ready(some(X))


def test_arrays_that_xla_partitions():
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:4]), ("x",))
    x = jax.device_put(X, jax.sharding.NamedSharding(mesh, P("x")))

    def double(x, o):
        o[...] = 2 * x[...]

    f = pl.pallas_call(double, jax.ShapeDtypeStruct((32, 128), jnp.float32), interpret=pltpu.InterpretParams())
    np.testing.assert_array_equal(jax.jit(f)(x), 2 * X)
