"""Callbacks of programs on several devices: which devices call, with which shards, and the shardings of results."""

import threading

import compare
import numpy as np
import pytest
from compare import same, same_error

import minijax
import minijax.numpy as jnp

X = np.arange(8, dtype=np.float32)


def sharded(jax, x=X, axes=("i",)):
    mesh = jax.make_mesh((8,), axes, axis_types=(jax.sharding.AxisType.Auto,))
    return mesh, jax.device_put(x, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("i")))


def mapped(jax, f, **how):
    mesh, x = sharded(jax)
    spec = jax.sharding.PartitionSpec("i")
    return jax.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec, **how), x


def recorded(program):
    """The result of the program, and the sorted arguments of its callbacks."""

    def run(jax):
        calls, lock = [], threading.Lock()

        def note(x):
            with lock:
                calls.append(np.asarray(x).tolist())
            return np.asarray(x) * 2

        result = np.asarray(program(jax, note))
        jax.effects_barrier()
        return result, sorted(calls, key=str)

    return run


def pure(jax, note):
    return lambda x: jax.pure_callback(note, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def io(jax, note, ordered=False):
    return lambda x: jax.experimental.io_callback(note, jax.ShapeDtypeStruct(x.shape, x.dtype), x, ordered=ordered)


def shown(jax, note, **how):
    return lambda x: (jax.debug.callback(note, x, **how), x)[1]


def run_mapped(jax, f, jitted=True):
    f, x = mapped(jax, f)
    return (jax.jit(f) if jitted else f)(x)


PROGRAMS = {
    "pure": lambda jax, note: jax.jit(pure(jax, note))(sharded(jax)[1]),
    "pure eager": lambda jax, note: pure(jax, note)(sharded(jax)[1]),
    "io": lambda jax, note: jax.jit(io(jax, note))(sharded(jax)[1]),
    "io ordered": lambda jax, note: jax.jit(io(jax, note, True))(sharded(jax)[1]),
    "debug": lambda jax, note: jax.jit(shown(jax, note))(sharded(jax)[1]),
    "debug eager": lambda jax, note: shown(jax, note)(sharded(jax)[1]),
    "partitioned": lambda jax, note: jax.jit(shown(jax, note, partitioned=True))(sharded(jax)[1]),
    "pure in shard_map": lambda jax, note: run_mapped(jax, pure(jax, note)),
    "io in shard_map": lambda jax, note: run_mapped(jax, io(jax, note), jitted=False),
    "io ordered in shard_map": lambda jax, note: run_mapped(jax, io(jax, note, True)),
    "debug in shard_map": lambda jax, note: run_mapped(jax, shown(jax, note)),
    "pure in pmap": lambda jax, note: jax.pmap(pure(jax, note))(X),
    "debug in pmap": lambda jax, note: jax.pmap(shown(jax, note))(X.reshape(4, 2)),
    "debug in grad of shard_map": lambda jax, note: jax.grad(
        lambda x: mapped(jax, lambda x: shown(jax, note)(x) ** 2)[0](x).sum()
    )(sharded(jax)[1]),
    "on another device": lambda jax, note: [
        jax.jit(io(jax, note, True))(jax.device_put(float(i), d)) for i, d in enumerate(jax.devices()[:3])
    ],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_and_calls_are_those_of_jax(name):
    same(recorded(PROGRAMS[name]))


def test_every_device_gets_its_shard_of_the_result():
    result = minijax.jit(pure(minijax, lambda x: np.asarray(x) + 1))(sharded(minijax)[1])
    for shard in result.addressable_shards:
        np.testing.assert_array_equal(shard.data, (X + 1)[shard.index])


def test_the_callback_runs_on_the_device_of_its_sharding():
    device = minijax.devices()[5]
    sharding = minijax.sharding.SingleDeviceSharding(device)
    f = minijax.jit(lambda x: minijax.pure_callback(lambda x: np.asarray(x) + 1, x, x, sharding=sharding))
    x = sharded(minijax)[1]
    np.testing.assert_array_equal(f(x), X + 1)
    assert "maximal_mesh_5" in f.lower(x).as_text()
    with pytest.raises(ValueError, match="not among the devices"):
        f(minijax.device_put(X, minijax.devices()[0])).block_until_ready()


@pytest.mark.parametrize("where", ["jit", "shard_map"])
def test_ordered_prints_of_several_devices_are_refused(where):
    def run(jax):
        show = lambda x: (jax.debug.print("{}", x, ordered=True), x)[1]  # noqa: E731
        return run_mapped(jax, show) if where == "shard_map" else jax.jit(show)(sharded(jax)[1])

    same_error(
        lambda: run(compare.ours()),
        lambda: run(compare.theirs()),
        ["ordered effects are not supported for more than 1 device"],
    )


def test_unordered_callbacks_of_two_devices_run_concurrently():
    meeting = threading.Barrier(2, timeout=20)

    def meet(x):
        meeting.wait()
        return np.asarray(x)

    mesh = minijax.sharding.Mesh(np.array(minijax.devices()[:2]), ("i",))
    spec = minijax.sharding.PartitionSpec("i")
    f = minijax.shard_map(lambda x: io(minijax, meet)(x), mesh=mesh, in_specs=spec, out_specs=spec)
    np.testing.assert_array_equal(minijax.jit(f)(jnp.arange(4.0)), np.arange(4))


def test_a_host_error_on_one_device_is_raised_and_the_next_call_works():
    fail = [True]

    def boom(x):
        if fail[0] and np.asarray(x)[0] == 6:
            raise KeyError("sixth")
        return np.asarray(x)

    f, x = mapped(minijax, pure(minijax, boom))
    f = minijax.jit(f)
    with pytest.raises(minijax.errors.JaxRuntimeError, match="KeyError: .sixth"):
        minijax.block_until_ready(f(x))
    fail[0] = False
    np.testing.assert_array_equal(f(x), X)
