"""Repeated calls of jitted functions, which are found by their arguments alone: attacks on what such a key sees."""

import gc
import itertools
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from compare import same
from jaxlib import _jax

import minijax
import minijax.numpy as jnp
from minijax.run.clients import guards
from minijax.run.programs import launch

ROOT = Path(minijax.__file__).parents[1]
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def described(x):
    """The types, weak types and bits of the leaves of a result, with its tree."""
    leaves, treedef = minijax.tree.flatten(x)
    return str(treedef), [(str(minijax.typeof(leaf)), np.asarray(leaf).tobytes()) for leaf in leaves]


class Pair:
    """A tree of two values, or an object without `_sig` if it has none."""

    def __init__(self, a, b):
        self.a, self.b = a, b


minijax.tree_util.register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda _, ab: Pair(*ab))

VALUES = [
    True, False, 1, 0, -1, 1.0, 0.0, -0.0, float("nan"), float("inf"), 2.0, 2, 1j, 2**20,
    np.float32(2), np.int8(2), np.bool_(True), np.float32(-0.0), X, X[0], X.astype(np.float16),
    *map(jnp.asarray, (X, X[0], X.astype(np.float16), np.float32(2), np.int32(2), 2)), jnp.float32(-0.0) * 1,
]  # fmt: skip


def test_arguments_of_all_kinds_in_any_order_give_the_results_of_first_calls():
    def by_itself(call):
        return described(minijax.jit(lambda a, b: (a * b, 1 / (a + 3.0)))(*call))

    calls = list(itertools.product(random.Random(0).sample(VALUES, 14), VALUES[:8] + VALUES[18:22]))
    calls = [call for call in calls if np.broadcast(*[np.asarray(x) for x in call]).ndim < 3]
    wanted = list(map(by_itself, calls))
    f = minijax.jit(lambda a, b: (a * b, 1 / (a + 3.0)))
    for seed in range(4):
        order = [*range(len(calls))] * 2
        random.Random(seed).shuffle(order)
        for i in order:
            assert described(f(*calls[i])) == wanted[i], calls[i]


WAYS = [
    lambda f, a, b, c: f(a, b, c), lambda f, a, b, c: f(a, b, c=c), lambda f, a, b, c: f(a, c=c, b=b),
    lambda f, a, b, c: f(a, b=b, c=c), lambda f, a, b, c: f(c=c, b=b, a=a),
]  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"static_argnames": "b"}, {"static_argnums": -1}, {"static_argnums": (1, 2)}])
def test_arguments_by_name_and_static_ones_are_told_apart(options):
    f = minijax.jit(lambda a, b, c: a - 2 * b + 3 * c if b is not None else a - c, **options)
    x, y = jnp.asarray(X), jnp.asarray(X + 1)
    many = [x, y, 2.0, 3, True, 1] if not options else [2, 3, True, 1, 4, 2.5]
    table = [(x, b, c) for b in [*many, None] for c in many if type(c) is not float or not options]
    for _ in range(3):
        for a, b, c in table:
            for way in WAYS[: 1 if options.get("static_argnums") == -1 else None]:
                want = np.asarray(a - 2 * b + 3 * c if b is not None else a - c)
                np.testing.assert_array_equal(way(f, a, b, c), want)


TREES = [
    [X, X + 1], (X, X + 1), {"a": X, "b": X + 1}, {"b": X, "a": X + 1}, {"a": X, "c": X + 1}, [X, (X, X + 1)], [X, [X, X + 1]],
    [X, None], [None, X], [X], Pair(X, X + 1), Pair(X + 1, X), Pair([X], X), [X, 2.0], [X, X.astype(np.float16)], [X, X[0]],
]  # fmt: skip


def test_trees_in_any_order_give_the_results_of_first_calls():
    double = lambda t: minijax.tree.map(lambda x: x * 2, t)  # noqa: E731
    trees = [minijax.tree.map(lambda x: jnp.asarray(x) if type(x) is np.ndarray else x, t) for t in TREES]
    wanted = [described(minijax.jit(lambda t: double(t))(t)) for t in trees]
    for seed in range(6):
        f, order = minijax.jit(lambda t: double(t)), random.Random(seed).choices(range(len(trees)), k=60)
        for i in order:
            for _ in range(3):
                assert described(f(trees[i])) == wanted[i]


LEAVES = [
    X, X + 1, X.astype(np.float64), X.astype(np.int64), X.astype(np.float16), X[0], X[:0], X.T,
    jnp.asarray(X), jnp.asarray(X[0]), jnp.float32(2), 1, 0, True, False, 2.0, 0.0, -0.0, 1j, -0j, 2**20, float("nan"),
    np.float32(2), np.int8(2), np.bool_(True), np.float64(-0.0), jnp.asarray(2.0) * 1,
]  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_trees_with_numpy_arrays_and_numbers_give_the_results_of_first_calls(seed):
    draw = random.Random(seed)
    double = lambda t, y: minijax.tree.map(lambda x: (x * 2, 1 / (x + 3.0)), (t, y))  # noqa: E731
    calls = [({"w": [draw.choice(LEAVES), X], "b": draw.choice(LEAVES)}, draw.choice(LEAVES)) for _ in range(24)]
    wanted = [described(minijax.jit(lambda t, y: double(t, y))(*call)) for call in calls]
    f = minijax.jit(lambda t, y: double(t, y))
    for i in draw.choices(range(len(calls)), k=120):
        for _ in range(draw.randrange(1, 4)):
            assert described(f(*calls[i])) == wanted[i], calls[i]


def test_a_tree_with_a_numpy_array_is_found_without_a_key(monkeypatch):
    f, params = minijax.jit(lambda p, x, n: [p["w"] * n + x, p["b"]]), {"w": jnp.asarray(X), "b": jnp.ones(2)}
    f(params, X, 2), f(params, X, 2)
    on_device = jnp.asarray(X)
    monkeypatch.setattr(type(f._engine), "call_by_key", None)
    for n in (2, 3, 70000):
        x = X + n
        result = f(params, x, n)
        x[:] = 0
        np.testing.assert_array_equal(result[0], X * n + X + n)
    np.testing.assert_array_equal(f(params, on_device, 2)[0], X * 3)


def test_numbers_that_change_are_put_without_a_key(monkeypatch):
    f, g = minijax.jit(lambda x, i: x * i), minijax.jit(lambda t, key: (t["x"] * t["rate"], minijax.random.bits(key)))
    x, key = jnp.asarray(X), minijax.random.key(7)
    bits = np.asarray(minijax.random.bits(key))
    for i in range(80):
        f(x, i)
    g({"x": x, "rate": 1.5}, key), g({"x": x, "rate": 1.5}, key)
    monkeypatch.setattr(type(f._engine), "call_by_key", None)
    for i in (5, 80, -3, 100000):
        np.testing.assert_array_equal(f(x, i), X * i)
        scaled, drawn = g({"x": x, "rate": i / 7}, key)
        np.testing.assert_array_equal(scaled, X * np.float32(i / 7))
        np.testing.assert_array_equal(drawn, bits)


def test_results_that_are_numbers_of_the_call_belong_to_the_user():
    f, tree, number = minijax.jit(lambda t, i: (t["a"] * 2, i)), {"a": jnp.asarray(X)}, 12345
    results = [f(tree, number)[1] for _ in range(5)]
    results[-1].delete()
    minijax.jit(lambda i: i + 1, donate_argnums=0)(results[0])
    assert [int(x) for x in (*results[1:-1], f(tree, number)[1], f(tree, number + 1)[1])] == [number] * 4 + [number + 1]


def test_a_number_that_stays_the_same_is_put_once(monkeypatch):
    f, tree, rate = minijax.jit(lambda t, rate: t["a"] * rate), {"a": jnp.asarray(X)}, 0.1
    f(tree, rate), f(tree, rate), f(tree, rate)
    with monkeypatch.context() as patch:
        patch.setattr(_jax, "batched_device_put", None)
        np.testing.assert_array_equal(f(tree, rate), X * np.float32(0.1))
    np.testing.assert_array_equal(f(tree, 0.2), X * np.float32(0.2))
    np.testing.assert_array_equal(f(tree, rate), X * np.float32(0.1))


def test_the_sign_of_zero_in_a_tree_is_seen():
    f = minijax.jit(lambda t: minijax.lax.sign(1 / t["n"]))
    for n in (0.0, 0.0, -0.0, 0.0, -0.0, -0.0, np.float32(0), np.float32(-0.0), 0.0):
        assert f({"n": n}) == np.copysign(1, n)


def test_numbers_in_trees_that_are_too_large_raise_as_in_first_calls():
    f = minijax.jit(lambda t: t["n"] + t["x"])
    for n in (1, 2, 2**40, 3, -(2**31), -(2**31) - 1):
        t = {"n": n, "x": X}
        if abs(n) <= 2**31:
            np.testing.assert_array_equal(f(t), n + X)
        else:
            with pytest.raises(OverflowError, match="too large"):
                f(t)


def test_options_are_seen_by_calls_with_trees_of_numpy_arrays():
    f, t = minijax.jit(lambda t: t["a"] + t["b"]), {"a": np.ones(2), "b": 2.0}
    for _ in range(3):
        assert f(t).dtype == np.float32
        with minijax.enable_x64(True):
            assert f(t).dtype == np.float64
        device = minijax.devices()[-1]
        with minijax.default_device(device):
            assert f(t).devices() == {device}
        with minijax.transfer_guard("disallow"), pytest.raises(Exception, match="(?i)disallow"):
            f(t)


class Odd:
    """An object that has any attribute, or none."""

    def __init__(self, answers):
        self.__dict__["answers"] = answers

    def __getattr__(self, name):
        if self.answers and not name.startswith("__"):
            return self
        raise AttributeError(f"Odd has no {name}")


def test_objects_of_the_user_raise_what_they_raise_in_first_calls():
    f = minijax.jit(lambda t: t["a"])
    t = {"a": jnp.ones(3)}
    for _ in range(4):
        f(t)
    for odd in (Odd(True), Odd(False), object(), "text"):
        for _ in range(3):
            with pytest.raises(TypeError):
                f({"a": odd})
            np.testing.assert_array_equal(f(t), np.ones(3))


@pytest.mark.parametrize("error", [ValueError, AttributeError, TypeError, KeyError])
def test_errors_of_a_tree_of_the_user_are_raised(error):
    class Broken(Pair):
        is_broken = False

    def children(x):
        if x.is_broken:
            raise error("broken on purpose")
        return (x.a, x.b), None

    minijax.tree_util.register_pytree_node(Broken, children, lambda _, ab: Broken(*ab))
    f, x = minijax.jit(lambda p: p.a + p.b), Broken(jnp.ones(2), jnp.ones(2))
    for _ in range(4):
        f(x)
    x.is_broken = True
    with pytest.raises(error, match="broken on purpose"):
        f(x)
    x.is_broken = False
    np.testing.assert_array_equal(f(x), [2, 2])


def test_options_that_change_between_calls_are_seen():
    f, traced = minijax.jit(lambda x: traced.append(1) or x * 2), []
    numbers = [1.5, np.float64(2), jnp.ones(2)]
    for x in numbers * 3:
        f(x)
    del traced[:]
    for x in numbers * 2:
        with minijax.enable_x64(True):
            assert f(x).dtype == (np.float64 if not isinstance(x, minijax.Array) else np.float32)
        assert f(x).dtype == np.float32
    assert len(traced) == 3
    with minijax.disable_jit():
        f(jnp.ones(2))
        assert len(traced) == 4
    with minijax.debug_nans(True), pytest.raises(FloatingPointError):
        f(jnp.array([np.nan]))
    with minijax.transfer_guard("disallow"):
        np.testing.assert_array_equal(f(numbers[2]), [2, 2])
        with pytest.raises(Exception, match="(?i)disallow"):
            f(7.25)
    device = minijax.devices()[-1]
    with minijax.default_device(device):
        assert f(1.5).devices() == {device}
    assert f(1.5).devices() == {minijax.devices()[0]}


def test_clear_caches_and_clear_cache_forget_repeated_calls():
    traced = []
    f = minijax.jit(lambda x, y: traced.append(1) or x + y)
    x = jnp.ones(3)
    for clear in (minijax.clear_caches, f.clear_cache):
        for _ in range(4):
            f(x, x)
            f([x], [x]) if False else f(x, 2.0)
        clear()
        before = len(traced)
        f(x, x)
        assert len(traced) == before + 1


def test_clear_caches_drops_the_program_of_a_call_with_a_tree():
    f = minijax.jit(lambda t: t["x"] * t["n"])
    for _ in range(3):
        f({"x": X, "n": 3})
    hot = f._engine.memory.hot
    assert len(hot) == 1
    minijax.clear_caches()
    assert len(hot) == 0 and hot._last is None
    np.testing.assert_array_equal(f({"x": X, "n": 3}), X * 3)


def test_a_counter_fills_no_table():
    f = minijax.jit(lambda x, i: x * i)
    x = jnp.ones(3)
    for i in range(1000):
        assert f(x, i)[0] == i
    assert len(f._engine.memory.hot._runs) < 100


def test_shapes_dtypes_and_keys_in_any_order_give_the_results_of_first_calls():
    dynamic = minijax.jit(lambda x, s: s[0] + x)
    static = minijax.jit(lambda x, s, d: jnp.full(s, 2, d) + x, static_argnums=(1, 2))
    drawn = minijax.jit(lambda key, s: minijax.random.bits(key, s), static_argnums=1)
    x, keys = jnp.float32(1), [minijax.random.key(0), minijax.random.key(1, impl="rbg")]
    calls = [(dynamic, x, s) for s in ((2,), (2.0,), (True,), (1,), [2], (np.int8(2),), (jnp.int8(2),), (x,))]
    calls += [(static, x, s, d) for s in ((2,), (1, 2), ()) for d in (np.dtype("int8"), np.int8, "int8", bool, None)]
    calls += [(drawn, key, s) for key in keys for s in ((), (1,), (2,))]
    first = []
    for f, *args in calls:
        f.clear_cache()
        first.append(f(*args))
    for n in random.Random(0).choices(range(len(calls)), k=400):
        f, *args = calls[n]
        result = f(*args)
        assert result.aval == first[n].aval
        np.testing.assert_array_equal(result, first[n])


def test_deleted_and_donated_arrays_are_refused_with_their_message():
    f, g = minijax.jit(lambda x, y: x + y), minijax.jit(lambda x: x + 1, donate_argnums=0)
    for _ in range(4):
        f(jnp.ones(3), jnp.ones(3))
        x = g(jnp.zeros(3))
        g(x)
    with pytest.raises(ValueError, match="deleted or donated"):
        f(x, x)
    with pytest.raises(ValueError, match="deleted or donated"):
        g(x)
    y = jnp.ones(3)
    y.delete()
    with pytest.raises(RuntimeError, match="Array has been deleted"):
        f(y, jnp.ones(3))
    np.testing.assert_array_equal(f(jnp.ones(3), jnp.ones(3)), np.full(3, 2))


def test_donated_arrays_that_xla_copies_are_deleted_as_by_jax():
    memory = np.zeros(1024 + 16, np.float32)
    aligned = memory[(-memory.ctypes.data // 4) % 16 :][:1024]

    def program(jax, jnp):
        def noted(x):
            jax.debug.callback(lambda x: None, x)
            return x + 1

        deleted = []
        for f in (lambda x: x + 1, lambda x: [x + 1, x * 2], noted):
            f = jax.jit(f, donate_argnums=0)
            for _ in range(3):
                borrowed, seen, own = jnp.from_dlpack(aligned), jnp.zeros(1024), jnp.zeros(1024)
                view = np.asarray(seen)
                for x in (borrowed, seen, own):
                    jax.block_until_ready(f(x))
                deleted.append((borrowed.is_deleted(), seen.is_deleted(), own.is_deleted()))
                assert not view.any() and not aligned.any()
        return deleted

    same(program)


@pytest.mark.filterwarnings("ignore:Some donated buffers")
def test_numbers_that_are_donated_are_not_kept():
    f = minijax.jit(lambda x, y: x + y, donate_argnums=(0, 1))
    for _ in range(6):
        np.testing.assert_array_equal(f(2.5, jnp.ones(())), 3.5)
    g = minijax.jit(lambda t: minijax.tree.map(lambda x: x + 1, t), donate_argnums=0)
    for _ in range(6):
        minijax.jit(lambda n: n)(2.5)  # which stores the number for all functions
        doubled = g({"a": 2.5, "b": X[0], "c": 2.5})
        assert doubled["a"] == doubled["c"] == 3.5


@pytest.mark.filterwarnings("ignore:Some donated buffers")
def test_a_number_that_another_function_donates_is_put_again():
    f, donating = minijax.jit(lambda t: t["a"] + t["x"]), minijax.jit(lambda n: n + 1, donate_argnums=0)
    for _ in range(4):
        np.testing.assert_array_equal(f({"a": 2.75, "x": X}), X + 2.75)
        assert donating(2.75) == 3.75


def test_guards_that_log_hear_of_each_numpy_array(monkeypatch):
    f, g, heard = minijax.jit(lambda t: t["x"] + 1), minijax.jit(lambda t: t["x"] + 1), []
    check = guards.check
    monkeypatch.setattr(guards, "check", lambda *args: heard.append(args[0]) or check(*args))
    with minijax.transfer_guard("log"):
        for _ in range(4):
            before = len(heard)
            f({"x": X})
            g({"x": 2.25})
            assert len(heard) >= before + 2


def test_a_captured_array_and_unread_arguments_are_where_they_belong():
    constant = jnp.arange(3.0)
    f = minijax.jit(lambda a, b, c: b * 2 + constant)
    for k in range(5):
        np.testing.assert_array_equal(f(jnp.zeros(2), jnp.full(3, k), 7.5), 2 * k + np.arange(3))
        np.testing.assert_array_equal(f(jnp.zeros(2), c=1, b=jnp.full(3, k)), 2 * k + np.arange(3))
        np.testing.assert_array_equal(f([jnp.zeros(2)], jnp.full(3, k), {"c": jnp.ones(1)}), 2 * k + np.arange(3))
        np.testing.assert_array_equal(minijax.jit(lambda x: x + constant)(constant), 2 * np.arange(3))


def test_traced_batched_and_mapped_arguments_are_traced():
    f = minijax.jit(lambda x, y: x * y + 1.0)
    x = jnp.ones(3)
    for _ in range(4):
        f(x, x), f(x, 2.0)
        assert minijax.grad(lambda a: f(a, x).sum())(x).tolist() == [1, 1, 1]
        assert minijax.vmap(f)(x, x).tolist() == [2, 2, 2]
        assert minijax.jit(lambda a: f(a, 2.0))(x).tolist() == [3, 3, 3]
        assert "jit" in str(minijax.make_jaxpr(lambda: f(x, x))())


# Threads, and what happens within a launch


def test_two_threads_share_a_function_under_other_options():
    f = minijax.jit(lambda x, y: x * y)
    x, failed, start = jnp.ones(3), [], threading.Barrier(2)

    def work(wide):
        try:
            start.wait()
            for i in range(300):
                if wide and i % 3:
                    with minijax.enable_x64(True):
                        assert f(2.5, i).dtype == np.float64
                else:
                    assert f(2.5, 1.5).dtype == np.float32
                assert f(x, x).tolist() == [1, 1, 1]
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(wide,)) for wide in (False, True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_a_thread_that_ends_leaves_launches_as_they_were():
    f = minijax.jit(lambda x: x * 2)
    for _ in range(40):
        results = []
        thread = threading.Thread(target=lambda: results.append(f(jnp.ones(2)).tolist()))  # noqa: B023
        thread.start()
        thread.join()
        assert results == [[2, 2]]


def test_launches_within_a_launch_work():
    f = minijax.jit(lambda x: x * 2)
    x = jnp.ones(2)
    for _ in range(4):
        f(x)
    seen = []

    def execute(raws):  # what a finalizer or a signal handler does while a program is launched
        seen.append(f(x).tolist())
        seen.append((x + 1).tolist())
        return _Results([1])

    assert launch.launching.send((execute, [], [])) == [1]
    assert seen == [[2, 2], [2, 2]]
    assert f(x).tolist() == [2, 2]


class _Results(list):
    def consume_with_handlers(self, _):
        return list(self)


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt, ValueError, RuntimeError, StopIteration, GeneratorExit, MemoryError]
)
def test_an_error_within_a_launch_is_raised_and_the_next_call_works(error):
    f = minijax.jit(lambda x: x * 2)
    x = jnp.ones(2)
    for _ in range(4):
        f(x)

    def execute(raws):
        raise error("on purpose")

    with pytest.raises(RuntimeError if error is StopIteration else error):
        launch.launching.send((execute, [], []))
    assert f(x).tolist() == [2, 2]
    launch.launching.generator.close()
    assert f(x).tolist() == [2, 2] and (x + 1).tolist() == [2, 2]


# jax's hook of the garbage collector may be interrupted, too.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interrupts_at_any_time_leave_calls_working():
    f, g = minijax.jit(lambda x: x * 2), minijax.jit(lambda x, y: [x, y * 2])
    x = jnp.ones(3)
    for _ in range(3):
        f(x), g(x, x)

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    interrupted = 0
    try:
        for k in range(60):
            signal.setitimer(signal.ITIMER_REAL, 1e-4 * (1 + k % 7))
            try:
                for _ in range(2000):
                    f(x), g(x, x)
            except KeyboardInterrupt:
                interrupted += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupted > 30
    assert f(x).tolist() == [2, 2, 2] and [v.tolist() for v in g(x, x)] == [[1, 1, 1], [2, 2, 2]]


def test_a_launch_keeps_no_input_and_no_result_alive():
    f, by_value = minijax.jit(lambda x: [x * 2, x + 1]), minijax.jit(lambda x, n: x * n)
    calls = [lambda x: f(x), lambda x: by_value(x, 2.0), lambda x: by_value(x, n=3), lambda x: by_value(2.0, n=x)]
    gc.collect()
    before = len(minijax.live_arrays())
    for call in calls * 4:
        call(jnp.ones(1 << 10))
    gc.collect()
    assert len(minijax.live_arrays()) == before


# Tracebacks of launches


RECORDING = """
import minijax, minijax.numpy as jnp
from minijax.run.clients import guards
from minijax.run.programs import launching
def user_function(f):
    for _ in range(3):
        y = f(jnp.ones(2))
    return [frame.function_name for frame in y.traceback.frames]
f = minijax.jit(lambda x: x * 2)
print(user_function(f))
launching.record_stacks()
print("user_function" in user_function(f))
"""


def test_launches_record_no_stack_unless_asked_to():
    run = subprocess.run([sys.executable, "-c", RECORDING], capture_output=True, text=True, cwd=ROOT)
    assert run.stdout.splitlines() == ["[]", "True"], run.stderr
