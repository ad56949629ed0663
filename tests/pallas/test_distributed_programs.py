"""What a reader of a document on distributed TPU kernels writes, on four simulated devices beside plain operations."""

import functools

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.experimental import pallas as pl
from minijax.experimental.pallas import tpu as pltpu

N = 4
X = (np.random.default_rng(4).integers(-8, 9, size=(N * 8, 256)) / 4).astype(np.float32)
WHOLE = pl.BlockSpec(memory_space=pl.ANY)
P = jax.sharding.PartitionSpec
MODES = {
    "late copies": pltpu.InterpretParams(detect_races=True, dma_execution_mode="on_wait"),
    "early copies": pltpu.InterpretParams(detect_races=True, dma_execution_mode="eager"),
}


def on_devices(kernel, out, scratch, interpret, space=WHOLE):
    """Runs a kernel on each device of a ring, with its rows of X."""
    call = pl.pallas_call(
        kernel, jax.ShapeDtypeStruct(out, jnp.float32), in_specs=[space], out_specs=space, scratch_shapes=scratch,
        compiler_params=pltpu.CompilerParams(collective_id=0), interpret=interpret,
    )  # fmt: skip
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:N]), ("x",))
    return np.asarray(jax.jit(jax.shard_map(call, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False))(X))


def neighbours():
    own = lax.axis_index("x")
    return own, lax.rem(own + N - 1, N), lax.rem(own + 1, N)


def meet(*others):
    """Waits until the other devices have begun, so that their memory may be written."""
    barrier = pltpu.get_barrier_semaphore()
    for other in others:
        pl.semaphore_signal(barrier, device_id=(other,), device_id_type=pl.DeviceIdType.MESH)
    pl.semaphore_wait(barrier, len(others))


def remote(source, target, sent, arrived, device):
    return pltpu.make_async_remote_copy(source, target, sent, arrived, (device,), pl.DeviceIdType.MESH)


def right_permute(interpret):
    def kernel(x, o, sent, arrived):
        _, left, right = neighbours()
        meet(left, right)
        copy = remote(x, o, sent, arrived, right)
        copy.start()
        copy.wait()

    found = on_devices(kernel, (8, 256), [pltpu.SemaphoreType.DMA] * 2, interpret)
    return found, np.roll(X, 8, axis=0)


def all_gather(interpret):
    """What came last is passed on to the right, into its place in the result."""

    def kernel(x, o, done, sent, arrived):
        own, left, right = neighbours()
        meet(left, right)
        pltpu.async_copy(x, o.at[pl.ds(8 * own, 8)], done).wait()

        @pl.loop(0, N - 1)
        def _(step):
            rows = pl.ds(8 * lax.rem(own + N - step, N), 8)
            copy = remote(o.at[rows], o.at[rows], sent.at[step], arrived.at[step], right)
            copy.start()
            copy.wait()

    many = pltpu.SemaphoreType.DMA((N - 1,))
    found = on_devices(kernel, (N * 8, 256), [pltpu.SemaphoreType.DMA, many, many], interpret)
    return found, np.tile(X, (N, 1))


def all_gather_both_ways(interpret):
    """The upper half of the rows goes to the right and the lower half to the left, at the same time."""

    def kernel(x, o, done, sent, arrived):
        own, left, right = neighbours()
        meet(left, right)
        pltpu.async_copy(x, o.at[pl.ds(8 * own, 8)], done).wait()

        @pl.loop(0, N - 1)
        def _(step):
            copies = []
            for way, (device, shift) in enumerate([(right, N - step), (left, N + step)]):
                rows = pl.ds(8 * lax.rem(own + shift, N) + 4 * way, 4)
                copies.append(remote(o.at[rows], o.at[rows], sent.at[way, step], arrived.at[way, step], device))
            for copy in copies:
                copy.start()
            for copy in copies:
                copy.wait()

    many = pltpu.SemaphoreType.DMA((2, N - 1))
    found = on_devices(kernel, (N * 8, 256), [pltpu.SemaphoreType.DMA, many, many], interpret)
    return found, np.tile(X, (N, 1))


def psum(interpret):
    """A ring of two buffers: a device may send into one when its neighbour says that it has read it."""

    def kernel(x, o, buffers, sent, arrived, capacity):
        _, left, right = neighbours()
        meet(left, right)
        o[...] = x[...]
        buffers[0] = x[...]
        # The second buffer is free from the start.
        pl.semaphore_signal(capacity, 1, device_id=(left,), device_id_type=pl.DeviceIdType.MESH)

        @pl.loop(0, N - 1)
        def _(step):
            now, then = lax.rem(step, 2), lax.rem(step + 1, 2)
            pl.semaphore_wait(capacity, 1)
            copy = remote(buffers.at[now], buffers.at[then], sent.at[now], arrived.at[then], right)
            copy.start()
            copy.wait()

            @pl.when(step < N - 2)
            def _():
                pl.semaphore_signal(capacity, 1, device_id=(left,), device_id_type=pl.DeviceIdType.MESH)

            o[...] += buffers[then]

    both = pltpu.SemaphoreType.DMA((2,))
    scratch = [pltpu.VMEM((2, 8, 256), jnp.float32), both, both, pltpu.SemaphoreType.REGULAR]
    found = on_devices(kernel, (8, 256), scratch, interpret, pl.BlockSpec(memory_space=pltpu.VMEM))
    return found, np.tile(X.reshape(N, 8, 256).sum(0), (N, 1))


def reduce_scatter(interpret, adds=None):
    """The part of a device goes once around the ring, and each device adds its own rows to it."""

    def plainly(part, near, own):
        pltpu.sync_copy(own, near)
        part[...] += near[...]

    add = adds or plainly

    def kernel(x, o, parts, near, sent, arrived, capacity):
        own, left, right = neighbours()
        meet(left, right)
        pl.semaphore_signal(capacity, 1, device_id=(left,), device_id_type=pl.DeviceIdType.MESH)
        rows = lambda step: x.at[pl.ds(2 * lax.rem(own + 2 * N - 1 - step, N), 2)]  # noqa: E731
        pltpu.sync_copy(rows(0), parts.at[0])

        @pl.loop(0, N - 1)
        def _(step):
            now, then = lax.rem(step, 2), lax.rem(step + 1, 2)
            pl.semaphore_wait(capacity, 1)
            copy = remote(parts.at[now], parts.at[then], sent.at[now], arrived.at[then], right)
            copy.start()
            copy.wait()

            @pl.when(step < N - 2)
            def _():
                pl.semaphore_signal(capacity, 1, device_id=(left,), device_id_type=pl.DeviceIdType.MESH)

            add(parts.at[then], near, rows(step + 1))

        pltpu.sync_copy(parts.at[(N - 1) % 2], o)

    both, near = pltpu.SemaphoreType.DMA((2,)), pltpu.VMEM((2, 256), jnp.float32)
    scratch = [pltpu.VMEM((2, 2, 256), jnp.float32), near, both, both, pltpu.SemaphoreType.REGULAR]
    found = on_devices(kernel, (2, 256), scratch, interpret)
    return found, X.reshape(N, 8, 256).sum(0)


def reduce_scatter_with_a_pipeline(interpret):
    """As `reduce_scatter`; the rows are added by a pipeline within the kernel."""

    def add(part, near, own):
        def body(own, part):
            at = pl.program_id(0)
            part[:, pl.ds(128 * at, 128)] += own[...]

        columns = pl.BlockSpec((2, 128), lambda j: (0, j))
        pltpu.emit_pipeline(functools.partial(lambda own: body(own, part)), grid=(2,), in_specs=[columns])(own)

    return reduce_scatter(interpret, add)


def all_to_all(interpret):
    """Each device sends two rows to each other one, without an order among them."""

    def kernel(x, o, done, sent, arrived):
        own = lax.axis_index("x")
        others = [lax.rem(own + k, N) for k in range(1, N)]
        meet(*others)
        copies = []
        for k, other in enumerate(others):
            target = o.at[pl.ds(2 * own, 2)]
            copies.append(remote(x.at[pl.ds(2 * other, 2)], target, sent.at[k], arrived.at[k], other))
        for copy in copies:
            copy.start()
        pltpu.async_copy(x.at[pl.ds(2 * own, 2)], o.at[pl.ds(2 * own, 2)], done).wait()
        for copy in copies:
            copy.wait()

    many = pltpu.SemaphoreType.DMA((N - 1,))
    found = on_devices(kernel, (8, 256), [pltpu.SemaphoreType.DMA, many, many], interpret)
    return found, X.reshape(N, N, 2, 256).transpose(1, 0, 2, 3).reshape(N * 8, 256)


PROGRAMS = [
    right_permute, all_gather, all_gather_both_ways, psum, reduce_scatter, reduce_scatter_with_a_pipeline, all_to_all,
]  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_values_are_those_of_plain_operations(program, mode):
    found, expected = program(MODES[mode])
    np.testing.assert_array_equal(found, expected)


def test_without_a_barrier_the_memory_of_a_device_that_has_not_begun_is_written():
    def kernel(x, o, sent, arrived):
        o[...] = x[...]
        _, _, right = neighbours()
        copy = remote(x, o, sent, arrived, right)
        copy.start()
        copy.wait()

    with pytest.raises(jax.errors.JaxRuntimeError, match="RACE DETECTED in o"):
        on_devices(
            kernel, (8, 256), [pltpu.SemaphoreType.DMA] * 2, MODES["late copies"], pl.BlockSpec(memory_space=pltpu.VMEM)
        )


def test_without_a_count_of_free_buffers_one_is_overwritten():
    def kernel(x, o, buffers, sent, arrived):
        _, left, right = neighbours()
        meet(left, right)
        o[...] = x[...]
        buffers[0] = x[...]
        for step in range(N - 1):
            now, then = step % 2, (step + 1) % 2
            copy = remote(buffers.at[now], buffers.at[then], sent.at[now], arrived.at[then], right)
            copy.start()
            copy.wait()
            o[...] += buffers[then]

    both = pltpu.SemaphoreType.DMA((2,))
    scratch = [pltpu.VMEM((2, 8, 256), jnp.float32), both, both]
    with pytest.raises(jax.errors.JaxRuntimeError, match="RACE DETECTED in buffers"):
        on_devices(kernel, (8, 256), scratch, MODES["late copies"], pl.BlockSpec(memory_space=pltpu.VMEM))
