"""A program of several processes, which prints what a user sees; `test_processes.py` starts it, with jax too.

Arguments: the library, the number of this process, their count, where the first listens, the names of cases.
"""

import importlib
import os
import sys

os.environ.setdefault("JAX_CPU_COLLECTIVES_IMPLEMENTATION", "gloo")
import ml_dtypes
import numpy as np

# Gloo's threads write to descriptor 1 in pieces, between the pieces of other lines.
sys.stdout = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

LIBRARY, PROCESS, COUNT, ADDRESS = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
jax = importlib.import_module(LIBRARY)
jnp = importlib.import_module(f"{LIBRARY}.numpy")
hosts = importlib.import_module(f"{LIBRARY}.experimental.multihost_utils")
P, Mesh = jax.sharding.PartitionSpec, jax.sharding.Mesh
jax.config.update("jax_num_cpu_devices", 2)
jax.distributed.initialize(ADDRESS, COUNT, PROCESS, initialization_timeout=60)
DEVICES = np.array(jax.devices())
N = len(DEVICES)
LINE = Mesh(DEVICES, ("x",))
GRID = Mesh(DEVICES.reshape(COUNT, 2), ("p", "d"))
TURNED = Mesh(DEVICES.reshape(COUNT, 2).T, ("d", "p"))
FIRST = Mesh(DEVICES[:2], ("x",))  # the first process's alone
WHOLE = np.arange(4 * N, dtype=np.float32).reshape(N, 4)
OWN = np.arange(8, dtype=np.float32).reshape(2, 4) + 100 * PROCESS
SOME = WHOLE[:2]


def on(mesh, *spec):
    return jax.sharding.NamedSharding(mesh, P(*spec))


def spread(*spec, mesh=LINE, value=WHOLE):
    return jax.make_array_from_callback(value.shape, on(mesh, *spec), lambda index: value[index])


def shown(value):
    if isinstance(value, jax.Array) and not value.is_fully_addressable:
        where = value.sharding.spec if hasattr(value.sharding, "spec") else type(value.sharding).__name__
        parts = [
            f"{s.device.id}:{[(i.start, i.stop) for i in s.index]}:{s.replica_id}={np.asarray(s.data).tolist()}"
            for s in value.addressable_shards
        ]
        return f"{value.aval.str_short()} {value.weak_type} {where} {' '.join(parts)}"
    if isinstance(value, jax.Array):
        return (
            f"{value.aval.str_short()} {type(value.sharding).__name__} {value.committed} {np.asarray(value).tolist()}"
        )
    if isinstance(value, np.ndarray):
        return f"numpy {value.dtype} {value.shape} {value.tolist()}"
    if isinstance(value, tuple | list):
        return "(" + ", ".join(map(shown, value)) + ")"
    return str({k: shown(v) for k, v in value.items()}) if isinstance(value, dict) else repr(value)


def raises(f, *args, **kwargs):
    try:
        return f"no error: {shown(f(*args, **kwargs))}"
    except Exception as error:
        return type(error).__name__


def mapped(f, ins, outs, mesh=LINE):
    return jax.jit(jax.shard_map(f, mesh=mesh, in_specs=ins, out_specs=outs))


def places():
    assert jax.process_count() == COUNT > 1 and jax.process_index() == PROCESS
    x = spread("x")
    assert not x.is_fully_addressable and len(x.addressable_shards) == 2 < len(x.global_shards)
    yield jax.process_indices(), jax.device_count(), jax.local_device_count(), jax.distributed.is_initialized()
    yield [(d.id, d.process_index) for d in jax.devices()], jax.devices()[-1].local_hardware_id
    yield jax.local_devices() == [d for d in jax.devices() if d.process_index == PROCESS]
    yield [d.id for d in jax.local_devices(COUNT - 1)], raises(jax.local_devices, COUNT)
    yield LINE.is_multi_process, [d.id for d in LINE.local_devices], GRID.local_mesh.shape, TURNED.local_mesh.shape
    yield x.sharding.is_fully_addressable, x.is_fully_replicated, len(x.devices()), x.committed, x.nbytes
    yield sorted(s.device.id for s in x.global_shards if s.data is None)
    yield repr(x), str(x), f"{x}", x, x.addressable_data(1), raises(x.addressable_data, 2)
    yield np.asarray(spread()), repr(spread())


def reads():
    import copy
    import pickle

    x = spread("x")
    for read in (np.asarray, pickle.dumps, jax.device_get, np.negative):
        yield raises(read, x)
    yield raises(x.tolist), raises(x.item), raises(x.tobytes), raises(lambda: x.unsafe_buffer_pointer())
    yield float(jnp.sum(x)), bool((x >= 0).all()), len(x), float(x[0, 1]), x[1:3], x.at[0].set(7.0)
    yield copy.deepcopy(x), copy.copy(x), spread("x", value=WHOLE.astype(ml_dtypes.bfloat16))
    gone = spread("x")
    gone.delete()
    yield raises(np.asarray, gone)


def computing():
    x, y, here = spread("x"), spread("d", "p", mesh=GRID), jax.local_devices()[0]
    yield x + 1, jnp.sin(x).sum(), x @ x.T, x.T, jnp.concatenate([x, x]), x + np.ones((N, 4), np.float32)
    yield x + jnp.ones((N, 4)), raises(lambda: x + jax.device_put(jnp.ones((N, 4)), here)), jnp.sort(x, axis=0)
    yield jax.jit(lambda a: jnp.tanh(a) @ a.T, out_shardings=on(GRID, "p", "d"))(y), raises(jax.jit(lambda: x * 2))
    yield jax.value_and_grad(lambda a: jnp.sin(a).sum())(x), jax.vmap(jnp.sum)(x)
    yield jax.jit(lambda a: jax.lax.with_sharding_constraint(a * 2, on(GRID, None, "d")))(y)
    yield jax.jit(lambda a: jax.lax.scan(lambda c, r: (c + r, c.sum()), jnp.zeros(4), a))(x)
    yield jax.jit(lambda a: a + 1, in_shardings=on(LINE), out_shardings=on(LINE))(WHOLE)
    draw = jax.jit(lambda key: jax.random.normal(key, (N, 3)), out_shardings=on(LINE, "x"))
    yield draw(jax.random.key(3)), jax.random.uniform(jax.random.key(3), (2,))
    ring = [(i, (i + 1) % N) for i in range(N)]
    yield mapped(lambda a: jax.lax.psum(a, "x"), P("x"), P())(x)
    yield mapped(lambda a: jax.lax.ppermute(a, "x", ring), P("x"), P("x"))(x)
    yield mapped(lambda a: a * jax.lax.axis_index("x"), P("x"), P("x"))(x)
    yield mapped(lambda a: jax.lax.pmean(a, ("p", "d")), P(("p", "d")), P(), GRID)(x)
    yield jax.grad(lambda a: mapped(lambda b: jax.lax.psum(b * b, "x"), P("x"), P())(a).sum())(x)
    host = lambda a: jax.pure_callback(lambda v: np.asarray(v) * 2, jax.ShapeDtypeStruct(a.shape, a.dtype), a)  # noqa: E731
    yield mapped(host, P("x"), P("x"))(x)


def explicit():
    mesh = jax.make_mesh((COUNT, 2), ("p", "d"))
    with jax.set_mesh(mesh):
        y = jnp.sin(jax.device_put(WHOLE, P("p", "d"))) * 2
        yield str(jax.typeof(y)), y, y.sum(1), jax.reshard(y, P("d")), jnp.zeros((N, 2))


def putting():
    x, ones = spread("x"), jnp.arange(4.0)
    yield jax.device_put(WHOLE, on(LINE, "x")), jax.device_put(ones, on(LINE)), jax.device_put(1.5, on(LINE))
    yield jax.device_put(x, on(LINE)), jax.device_put(x, on(GRID, "d", "p")), jax.device_put(x, on(LINE, "x")) is x
    yield jax.device_put(x, on(Mesh(DEVICES[::-1], ("x",)), "x")), jax.device_put(WHOLE, jax.devices()[0]).shape
    yield raises(jax.device_put, WHOLE + PROCESS, on(LINE, "x")), raises(jax.device_put, ones + PROCESS, on(LINE))
    yield raises(jax.device_put, jax.device_put(ones, jax.local_devices()[1]), on(LINE))
    yield raises(jax.device_put, x, jax.local_devices()[0]), raises(jax.device_put, spread(), jax.local_devices()[0])


def parts():
    put = jax.make_array_from_process_local_data
    yield (
        put(on(LINE, "x"), OWN),
        put(on(LINE, "x"), OWN, (N, 4)),
        put(on(GRID, "p"), OWN),
        put(on(GRID, "d", "p"), OWN),
    )
    yield put(on(GRID, None, "d"), SOME), put(on(LINE), SOME, (2, 4)), put(on(LINE, "x"), WHOLE, WHOLE.shape)
    yield put(on(TURNED, ("d", "p")), OWN), put(on(Mesh(np.array(jax.local_devices()), ("l",)), "l"), OWN)
    yield put(on(LINE, "x"), np.zeros((0, 4), np.int8)), put(on(LINE, "x"), {"a": OWN}, {"a": (N, 4)})
    for shape in ((2, 4), (None, 4), (N,), (4 * N, 4)):
        yield raises(put, on(LINE, "x"), OWN, shape)
    yield raises(put, on(LINE, "x"), OWN[:1])
    where = on(LINE, "x").addressable_devices_indices_map(WHOLE.shape)
    pieces = [jax.device_put(WHOLE[index], d) for d, index in where.items()]
    join = jax.make_array_from_single_device_arrays
    yield join(WHOLE.shape, on(LINE, "x"), pieces[::-1]), raises(join, WHOLE.shape, on(LINE, "x"), pieces[:1])
    some = jax.make_array_from_callback((2, 4), on(FIRST, "x"), lambda index: SOME[index], dtype=np.float32)
    yield some.is_fully_addressable, some.shape, [shown(s.data) for s in some.addressable_shards]
    if PROCESS:
        yield raises(join, (2, 4), on(FIRST, "x"), []), raises(np.asarray, some), repr(some)
        yield raises(jax.make_array_from_callback, (2, 4), on(FIRST, "x"), lambda index: SOME[index])
    far = jnp.ones(3, device=jax.devices()[-1 if PROCESS == 0 else 0])
    yield far.addressable_shards, repr(far), far.device.process_index != PROCESS, raises(np.asarray, far)


def telling():
    x, own = spread("x"), OWN[0]
    yield hosts.process_allgather(own), hosts.process_allgather(own, tiled=True), hosts.process_allgather(PROCESS)
    yield hosts.process_allgather(x, tiled=True), raises(hosts.process_allgather, x)
    yield hosts.process_allgather({"a": jnp.asarray(own), "b": (np.float64(1.5) + PROCESS, True)})
    yield hosts.process_allgather(np.arange(3)), hosts.process_allgather(np.zeros((0, 2)))
    yield hosts.process_allgather(jnp.arange(3, dtype=jnp.bfloat16) + PROCESS), hosts.process_allgather(own * 1j)
    yield hosts.process_allgather(np.float32(PROCESS), tiled=True)
    yield hosts.process_allgather(spread(), tiled=True), raises(hosts.process_allgather, jax.random.key(0))
    yield (
        hosts.broadcast_one_to_all({"a": own, "b": PROCESS}),
        hosts.broadcast_one_to_all(np.array([PROCESS > 0, True])),
    )
    yield hosts.broadcast_one_to_all(own, is_source=PROCESS == COUNT - 1), raises(hosts.broadcast_one_to_all, x)
    yield hosts.sync_global_devices("here"), raises(hosts.sync_global_devices, f"{PROCESS}")
    yield hosts.assert_equal(np.ones(3)), raises(hosts.assert_equal, {"a": PROCESS})
    with hosts.live_devices(jax.devices()) as devices:
        yield [d.id for d in devices]
    yield hosts.reached_preemption_sync_point(1)


def local_and_global():
    whole, part = hosts.host_local_array_to_global_array, hosts.global_array_to_host_local_array
    a = whole(OWN, LINE, P("x"))
    b = whole({"a": OWN, "b": jnp.asarray(OWN)}, GRID, {"a": P("p", "d"), "b": P("p")})
    yield a, b, whole(SOME, GRID, P(None, "d")), whole(a, LINE, P("x")) is a, whole(np.float32(2.5), LINE, P())
    yield part(a, LINE, P("x")), part(b, GRID, P("p", "d")), part(a, LINE, P())
    yield raises(whole, OWN, LINE, None), raises(whole, OWN[:1], LINE, P("x"))
    yield jax.vmap(lambda x: whole(x, LINE, P("x")))(np.ones((3, 2, 4)))
    yield raises(jax.jit(lambda x: whole(x, LINE, P("x"))), OWN)


def pmapping():
    own = np.arange(6, dtype=np.float32).reshape(2, 3) + 10 * PROCESS
    total = jax.pmap(lambda a: jax.lax.psum(a, "i"), axis_name="i")
    yield total(own), total(total(own)), jax.pmap(lambda a: jax.lax.axis_index("i"), axis_name="i")(own)
    yield jax.pmap(lambda a, b: a + b, in_axes=(0, None))(own, 1.0), jax.pmap(jnp.sum, out_axes=None)(own * 0)
    yield jax.pmap(lambda a, n, *, b: (a * n + b, a.sum()), static_broadcasted_argnums=1, out_axes=(1, 0))(
        own, 3, b=own
    )
    yield jax.pmap(lambda a: a, devices=jax.local_devices())(own), raises(jax.pmap(lambda a: a), np.ones((N, 2)))
    yield jax.grad(lambda a: jax.pmap(lambda b: b * b)(a).sum())(own)


CASES = (places, reads, computing, explicit, putting, parts, telling, local_and_global, pmapping)
for case in CASES:
    if not sys.argv[5:] or case.__name__ in sys.argv[5:]:
        for n, result in enumerate(case()):
            print(f"{case.__name__} {n}: {shown(result)}", flush=True)
