"""Programs that threads compile while Python goes on: their results wait, and nobody can tell."""

import ctypes
import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest
from processes import run_python, together

import minijax as jax
import minijax.numpy as jnp
from minijax.experimental import transfer
from minijax.run.arrays import pending
from minijax.run.programs import ahead, compile

X = np.linspace(0, 1, 16, dtype=np.float32).reshape(4, 4)


@pytest.fixture(autouse=True)
def slow_compiler(monkeypatch):
    """The option is on, nothing is loaded from disk, and XLA waits for `release`."""
    monkeypatch.setattr(ahead, "_processors", lambda: 2)
    monkeypatch.setattr(ahead, "_is_over", [False])
    build, release = compile._build, threading.Event()

    def build_later(*args):
        if threading.current_thread().name == "compiling ahead":
            assert release.wait(60)
        return build(*args)

    monkeypatch.setattr(compile, "_build", build_later)
    before = jax.config.minijax_compile_ahead
    jax.config.update("minijax_compile_ahead", True)
    yield release
    release.set()
    compile.finish()
    jax.config.update("minijax_compile_ahead", before)


_numbers = iter(range(1 << 30))


def new(fun):
    """A jitted function whose program no other one shares."""
    number = next(_numbers)
    return jax.jit(lambda *args: jax.tree.map(lambda x: x * (1 + number / 4096) + number, fun(*args))), number


def expected(value, number):
    return value * np.float32(1 + number / 4096) + np.float32(number)


def rows_on_devices():
    return jax.NamedSharding(jax.make_mesh((4,), ("i",), devices=jax.devices()[:4]), jax.P("i"))


def memory_at(address):
    return np.ctypeslib.as_array((ctypes.c_float * X.size).from_address(address)).reshape(X.shape).copy()


def pulled(x):
    """The array as another client of the transfer server gets it."""
    servers = [
        transfer.start_transfer_server(jax.devices()[0].client, "127.0.0.1:0", ["127.0.0.1:0"]) for _ in range(2)
    ]
    servers[0].await_pull(1, x)
    wanted = jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding)
    return np.asarray(servers[1].connect(servers[0].address()).pull(1, wanted))


def is_pending(x):
    return type(x._raw) is pending.Pending


def test_the_first_call_returns_before_its_program_is_compiled(slow_compiler):
    f, number = new(lambda x: x)
    y = f(X)
    assert is_pending(y) and not y.is_ready() and not y.is_deleted()
    assert (y.shape, y.dtype, y.weak_type, y.sharding) == ((4, 4), np.float32, False, jnp.ones(1).sharding)
    assert y.devices() == {jax.devices()[0]}
    slow_compiler.set()
    np.testing.assert_allclose(y, expected(X, number))
    assert not is_pending(y) and y.is_ready()
    assert not is_pending(f(y))


def test_polling_ends(slow_compiler):
    y = new(lambda x: x)[0](new(lambda x: x)[0](X))
    assert not y.is_ready()
    slow_compiler.set()
    end = time.monotonic() + 60
    while not y.is_ready():
        assert time.monotonic() < end
        time.sleep(0.01)
    assert not is_pending(y)


def test_calls_follow_one_another_without_waiting(slow_compiler):
    (f, a), (g, b), (h, c) = new(lambda x: x), new(lambda x: [x, x.sum()]), new(lambda x, y: x @ x + y)
    y = f(X)
    z, total = g(y)
    w = h(z, total)
    assert all(map(is_pending, (y, z, total, w)))
    slow_compiler.set()
    y_ = expected(X, a)
    z_, t_ = expected(y_, b), expected(y_.sum(), b)
    np.testing.assert_allclose(w, expected(z_ @ z_ + t_, c), rtol=1e-5)
    assert not any(map(is_pending, (y, z, total, w)))


def test_a_second_call_waits(slow_compiler):
    f, number = new(lambda x: x)
    y = f(X)
    threading.Timer(0.2, slow_compiler.set).start()
    z = f(y)
    assert not is_pending(z)
    np.testing.assert_allclose(z, expected(expected(X, number), number), rtol=1e-6)


def test_a_long_chain_is_no_deep_recursion(slow_compiler):
    x, value = jnp.ones(()), np.float32(1)
    for _ in range(400):
        f, number = new(lambda x: x / 4096)
        x, value = f(x), expected(value / np.float32(4096), number)
    assert is_pending(x)
    slow_compiler.set()
    np.testing.assert_allclose(x, value, rtol=1e-4)


def test_eager_operations(slow_compiler):
    shape = 3, next(_numbers) + 50  # with which nothing was compiled
    x = jax.random.normal(jax.random.key(0), shape)
    y = jnp.sin(x) * 2 + 1
    assert is_pending(x) and is_pending(y)
    slow_compiler.set()
    np.testing.assert_allclose(y, np.sin(np.asarray(x)) * 2 + 1, rtol=1e-5)


@pytest.mark.parametrize(
    "read",
    [
        lambda x: np.asarray(x),
        lambda x: np.asarray(memoryview(x)),
        lambda x: np.asarray(pickle.loads(pickle.dumps(x))),
        lambda x: np.asarray(x.copy()),
        lambda x: np.asarray(jax.device_put(x)),
        lambda x: np.asarray(jax.device_put(x, jax.devices()[1])),
        lambda x: np.asarray(jnp.asarray(x)),
        lambda x: np.asarray(x.addressable_shards[0].data),
        lambda x: np.asarray(jax.device_get(x)),
        lambda x: np.from_dlpack(x),
        lambda x: np.array(x.tolist(), np.float32),
        lambda x: np.asarray(jax.block_until_ready(x)),
        lambda x: np.asarray(jax.jit(lambda: x)()),
        lambda x: np.asarray(jax.new_ref(x)[...]),
        lambda x: np.asarray(jax.jit(jax.grad(lambda x: (x * x).sum() / 2))(x)),
        lambda x: np.asarray([[float(v) for v in row] for row in x], np.float32),
        lambda x: np.asarray(jax.device_put(x, rows_on_devices())),
        lambda x: np.asarray(jax.device_put(x, jax.memory.Space.Host)),
        lambda x: np.asarray(jax.jit(lambda x: x, out_shardings=rows_on_devices())(x)),
        lambda x: np.asarray(jax.pmap(lambda x: x)(x)),
        lambda x: np.asarray(jax.make_array_from_single_device_arrays(x.shape, x.sharding, [x])),
        lambda x: memory_at(x.unsafe_buffer_pointer()),
        lambda x: pulled(x),
    ],
)
def test_whoever_reads_waits(slow_compiler, read):
    f, number = new(lambda x: x)
    x = f(X)
    assert is_pending(x)
    slow_compiler.set()
    np.testing.assert_allclose(read(x), expected(X, number), rtol=1e-6)


def test_buffers_that_numpy_does_not_have(slow_compiler):
    f, _ = new(lambda x: x)
    x = f(jnp.ones(3, jnp.bfloat16))
    slow_compiler.set()
    with pytest.raises((SystemError, TypeError, ValueError, BufferError, NotImplementedError)):
        memoryview(x)
    assert np.asarray(x).shape == (3,)


def test_keys(slow_compiler):
    slow_compiler.set()
    key = jax.block_until_ready(jax.random.key(0))
    slow_compiler.clear()
    number = np.uint32(next(_numbers))  # so that no program is loaded already
    keys = jax.jit(lambda key: jax.random.split(jax.random.fold_in(key, number), 3))(key)
    data = jax.jit(lambda keys: jax.random.key_data(keys) + number)(keys)
    first = jax.jit(lambda keys: jax.random.wrap_key_data(jax.random.key_data(keys)[0] + number))(keys)
    assert is_pending(keys) and is_pending(first)
    slow_compiler.set()
    assert data.shape == (3, 2)
    np.testing.assert_array_equal(jax.random.key_data(first), data[0])


@pytest.mark.parametrize("free", ["delete", "donate", "donate again", "jit that donates first"])
def test_what_is_freed_was_read(slow_compiler, monkeypatch, free):
    donating = jax.jit(lambda x: x * 2, donate_argnums=0)
    if free == "donate again":  # by its hot path
        slow_compiler.set()
        for _ in range(3):
            donating(jnp.ones((4, 4)))
        slow_compiler.clear()
    x = jnp.array(X)
    f, number = new(lambda x: x)
    y = f(x)
    assert is_pending(y)
    threading.Timer(0.1, slow_compiler.set).start()
    if free == "delete":
        x.delete()
    else:
        z = donating(x)
        np.testing.assert_allclose(z, 2 * X)
    assert x.is_deleted()
    np.testing.assert_allclose(y, expected(X, number), rtol=1e-6)
    waits = []
    monkeypatch.setattr(pending, "run_all", lambda: waits.append(free))
    counts = []
    for _ in range(5):
        assert donating(jnp.array(X)).shape == (4, 4)
        counts.append(len(waits))
    assert counts[-1] == counts[-2]  # calls by the hot path need not wait any more


def test_references(slow_compiler):
    ref = jax.new_ref(jnp.array(X))
    f, number = new(lambda x: x)
    y = f(ref[...])
    threading.Timer(0.1, slow_compiler.set).start()
    ref[...] = jnp.zeros((4, 4))
    np.testing.assert_allclose(y, expected(X, number), rtol=1e-6)


def test_numpy_may_write_into_its_arrays(slow_compiler):
    x = X.copy()
    f, number = new(lambda x, y: x + y)
    y = f(x, jnp.asarray(x))
    x[:] = 7
    slow_compiler.set()
    np.testing.assert_allclose(y, expected(2 * X, number), rtol=1e-6)


def test_memory_of_other_libraries(slow_compiler):
    base = np.zeros(64 + 16, np.float32)
    x = base[(-base.ctypes.data % 64) // 4 :][:64]
    slow_compiler.set()
    shared = jnp.from_dlpack(x)
    assert shared.unsafe_buffer_pointer() == x.ctypes.data
    f, number = new(lambda x: x)
    y = f(shared)
    x[:] = 7
    np.testing.assert_allclose(y, expected(np.zeros(64, np.float32), number))


def test_an_error_of_the_compiler_is_raised_where_a_value_is_needed(monkeypatch):
    def fail(*args):
        raise jax.errors.JaxRuntimeError("INTERNAL: no luck")

    f, g = new(lambda x: x)[0], new(lambda x: x)[0]
    with monkeypatch.context() as changed:
        changed.setattr(compile, "_build", fail)
        y = f(X)
        for _ in range(2):
            with pytest.raises(jax.errors.JaxRuntimeError, match="no luck"):
                np.asarray(y)
        assert y.is_deleted() is False
    with pytest.raises(jax.errors.JaxRuntimeError, match="no luck"):
        print(g(y))
    assert jax.live_arrays()


@pytest.mark.parametrize("dtype", [bool, np.complex64], ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("shape", [(), (3,)], ids=str)
def test_bounds_that_xla_refuses_are_refused_by_the_call(slow_compiler, dtype, shape):
    slow_compiler.set()
    x = np.ones(shape, dtype)
    for clamp in (jax.lax.clamp, jax.jit(jax.lax.clamp)):
        with pytest.raises(jax.errors.JaxRuntimeError, match="UNIMPLEMENTED"):
            clamp(x, x, x)


def test_deleted_arguments_are_refused_at_once(slow_compiler):
    slow_compiler.set()
    x = jnp.array(X)
    x.delete()
    with pytest.raises(RuntimeError, match="Array has been deleted"):
        new(lambda x: x)[0](x)


def test_results_that_nobody_reads_are_never_computed(slow_compiler):
    f, _ = new(lambda x: x)
    y = f(X)
    launch = y._raw.launch
    del y
    slow_compiler.set()
    compile.finish()
    assert launch.results is None
    assert f(X).shape == (4, 4)


def test_live_arrays_include_those_that_wait(slow_compiler):
    before = len(jax.live_arrays())
    kept = new(lambda x: [x, x + 1])[0](X)
    slow_compiler.set()
    assert len(jax.live_arrays()) == before + 2 and len(kept) == 2


def test_listeners_hear_of_each_program():
    heard = []

    def listen(name, seconds, **_):
        heard.append((name, threading.current_thread().name))

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        y = new(lambda x: x)[0](X)
    finally:
        jax.monitoring.clear_event_listeners()
    assert not is_pending(y)
    assert any("backend_compile" in name and thread == "MainThread" for name, thread in heard)


def test_options():
    with jax.enable_x64(True):
        assert is_pending(new(lambda x: x)[0](X))
    with jax.debug_nans(True):
        assert not is_pending(new(lambda x: x)[0](X))
    jax.config.update("minijax_compile_ahead", False)
    assert not is_pending(new(lambda x: x)[0](X))


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: jax.debug.print("{}", x[0, 0]) or x,
        lambda x: jax.pure_callback(lambda x: x, x, x),
        lambda x: x.astype(jnp.int4).astype(jnp.float32),
    ],
)
def test_programs_that_are_not_plain_are_compiled_at_once(fun):
    assert not is_pending(new(fun)[0](X))


def test_threads(slow_compiler):
    slow_compiler.set()
    made = [new(lambda x: x) for _ in range(8)]
    shared = [f(X) for f, _ in made[:4]]

    def work(i):
        f, _ = made[i]
        y = f(shared[i % 4])
        z = made[(i + 1) % 8][0](y)
        return np.asarray(z), np.asarray(shared[(i + 1) % 4])

    for i, result in enumerate(together(work)):
        assert not isinstance(result, BaseException), result
        z, other = result
        first = expected(X, made[i % 4][1])
        wanted = expected(expected(first, made[i][1]), made[(i + 1) % 8][1])
        np.testing.assert_allclose(z, wanted, rtol=1e-5)
        np.testing.assert_allclose(other, expected(X, made[(i + 1) % 4][1]), rtol=1e-6)


@pytest.fixture
def interrupts():
    """SIGINT raises KeyboardInterrupt, also in a process that was started in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_while_waiting(slow_compiler):
    f, number = new(lambda x: x)
    y = f(X)
    threading.Timer(0.2, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        np.asarray(y)
    slow_compiler.set()
    np.testing.assert_allclose(y, expected(X, number), rtol=1e-6)


PROCESS = """
import os, sys
import numpy as np
import minijax as jax, minijax.numpy as jnp
x = jnp.linspace(0, 1, 16).reshape(4, 4)
for i in range(5):
    x = jax.jit(lambda x: jnp.sin(x) @ x + i)(x)
if sys.argv[1] == "fork":
    y = jax.jit(lambda x: jnp.cos(x) @ x + 7)(x)
    child = os.fork()
    if not child:
        z = jax.jit(lambda x: jnp.cos(x) @ x + 7)(x)  # compiled by the parent
        os._exit(0 if np.array_equal(y, z) and np.isfinite(y).all() else 3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
if sys.argv[1] != "drop":
    print(float(x.sum()))
"""


def test_processes_end_and_fork(monkeypatch):
    monkeypatch.setenv("JAX_ENABLE_COMPILATION_CACHE", "0")
    assert run_python(PROCESS, "drop") == ""
    values = [run_python(PROCESS, "read")]
    if hasattr(os, "fork"):
        values.append(run_python("import warnings; warnings.simplefilter('ignore')\n" + PROCESS, "fork"))
    monkeypatch.setenv("MINIJAX_COMPILE_AHEAD", "0")
    values.append(run_python(PROCESS, "read"))
    assert len(set(values)) == 1
