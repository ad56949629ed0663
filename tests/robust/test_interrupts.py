"""Ctrl-C at any point: raised, nothing half done is kept, and the next call works."""

import _thread
import contextlib
import inspect
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from processes import left_behind, thread_state, together

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.base import cache

# An interrupt that comes while something is collected is lost: Python cannot raise there.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

LIBRARY = str(Path(minijax.__file__).parent)
X = np.arange(1, 4, dtype=np.float32)


# At each point where Python looks for signals: where a function starts, and where a C function has returned


def _interrupted_at(k, work):
    """Runs `work` with an interrupt at its k-th point inside the library; how many points it passed."""
    passed = 0

    def point(frame, event, arg):
        nonlocal passed
        if event not in ("call", "c_return"):
            return
        code, outer = frame.f_code, frame.f_back
        # Code that runs during garbage collection cannot raise.
        if code.co_flags & inspect.CO_GENERATOR or code.co_name in ("remove", "_remove", "__del__"):
            return
        if code.co_filename.startswith(LIBRARY) or outer.f_code.co_filename.startswith(LIBRARY):
            passed += 1
            if passed == k:
                sys.setprofile(None)
                raise KeyboardInterrupt

    sys.setprofile(point)
    try:
        work()
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
    return passed


def _function():
    """A new function that uses a little of everything."""

    @minijax.jit
    def f(x):
        with minijax.named_scope("scope"), minijax.default_matmul_precision("highest"):
            y = lax.scan(lambda c, a: (jnp.sin(c) * a, c), 1.0, x)[0] + x @ x
        z = lax.cond(y > 0, lambda v: v * 2, lambda v: v, y)
        return lax.while_loop(lambda v: v < 3, lambda v: v + 1, lax.stop_gradient(z)) + minijax.checkpoint(jnp.tanh)(y)

    return f


MATRIX = np.outer(np.ones(2, np.float32), X)
WORKS = {
    "tracing": lambda: str(minijax.make_jaxpr(minijax.vmap(minijax.grad(_function()), axis_name="i"))(MATRIX)),
    "running": lambda: np.asarray(minijax.vmap(minijax.grad(_function()))(MATRIX)).tolist(),
    "eager": lambda: np.asarray(minijax.grad(lambda x: jnp.sum(jnp.sin(x)[::-1] * x.at[0].set(2)))(X)).tolist(),
    "random": lambda: np.asarray(minijax.random.normal(minijax.random.key(0), (2,))).tolist(),
}


@pytest.fixture(autouse=True)
def interrupts_are_heard():
    """A shell that starts a process in its background makes it deaf to them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def _check_clean(limit, where=None):
    assert thread_state() == [], where
    # A raised recursion limit may wait for the end of the next trace.
    minijax.make_jaxpr(lambda x: x)(1.0)
    assert left_behind(limit) == [], where


def _interrupted_everywhere(name, step, clear):
    work, limit = WORKS[name], sys.getrecursionlimit()
    wanted = work()
    points = _interrupted_at(0, work)
    assert points > 100
    for n, k in enumerate(range(1, points, step)):
        if clear:
            cache.clear_caches()
        _interrupted_at(k, work)
        _check_clean(limit, k)
        if n % 8 == 0:
            assert work() == wanted, k
    assert work() == wanted


@pytest.mark.parametrize(("name", "step"), [("tracing", 401), ("running", 797), ("eager", 199), ("random", 97)])
def test_an_interrupt_leaves_nothing_behind(name, step):
    _interrupted_everywhere(name, step, clear=False)


def test_an_interrupt_before_anything_is_remembered_leaves_nothing_behind():
    _interrupted_everywhere("tracing", 2003, clear=True)


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.parametrize(("name", "clear"), [("tracing", True), ("running", False), ("eager", False)])
def test_an_interrupt_at_many_more_points_leaves_nothing_behind(name, clear):
    _interrupted_everywhere(name, 31, clear)


# Signals


@contextlib.contextmanager
def _alarm(seconds):
    """Has the main thread interrupted after a while, unless it is done before.

    Again each second, for an interrupt inside a callback of the garbage collector is lost.
    """
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_signal_during_a_trace_ends_it():
    limit, traced = sys.getrecursionlimit(), []

    @minijax.jit
    def f(x):
        traced.append(1)
        while len(traced) == 1:
            x = jnp.sin(x)
        return x * 2

    with pytest.raises(KeyboardInterrupt), _alarm(0.2):
        f(X)
    _check_clean(limit)
    assert f(X).tolist() == [2, 4, 6] and f(X).tolist() == [2, 4, 6]
    assert len(traced) == 2


def _long_program(x):
    for i in range(12):
        x = jnp.sin(x) @ jnp.full((8, 8), float(i)) + jnp.cos(x)
    return x


@pytest.mark.parametrize("delay", [0.002, 0.015, 0.04, 0.08])
def test_a_signal_while_a_program_is_made_is_raised_and_the_next_call_works(delay):
    limit, x = sys.getrecursionlimit(), jnp.ones((8, 8))
    f = minijax.jit(lambda x: _long_program(x) * delay)
    with contextlib.suppress(KeyboardInterrupt), _alarm(delay):
        f(x)
        time.sleep(delay)  # compiled before the alarm: it comes here
    _check_clean(limit)
    assert f(x).shape == (8, 8) and f._cache_size() == 1


def test_another_thread_may_interrupt_the_main_one():
    limit = sys.getrecursionlimit()

    @minijax.jit
    def f(x, go_on):
        if not go_on:
            for i in range(10_000):
                if i % 1000 == 0:  # one that comes while something is collected is lost
                    _thread.interrupt_main()
                x = x + 1
        return x

    f = minijax.jit(f.__wrapped__, static_argnums=1)
    with pytest.raises(KeyboardInterrupt):
        f(X, False)
    _check_clean(limit)
    assert f(X, True).tolist() == X.tolist()


def test_an_interrupt_of_a_thread_that_waits_leaves_the_other_one_alone():
    limit, inside, go_on = sys.getrecursionlimit(), threading.Event(), threading.Event()
    traced = []

    @minijax.jit
    def f(x):
        traced.append(1)
        inside.set()
        assert go_on.wait(100)
        return x * 2

    found = []
    other = threading.Thread(target=lambda: found.append(f(X)))
    other.start()
    assert inside.wait(100)
    with pytest.raises(KeyboardInterrupt), _alarm(0.1):
        f(X)
    assert cache._waiting == {}
    go_on.set()
    other.join()
    assert found[0].tolist() == [2, 4, 6] == f(X).tolist()
    assert len(traced) == 1
    _check_clean(limit)


def test_a_stale_mark_of_an_interrupted_computation_locks_nobody():
    @cache.cache
    def compute(key):
        return [key]

    # As an interrupt between two lines would leave it: a mark whose owner is gone.
    stale = cache._Running()
    compute.store._begin()._running[("key",)] = stale
    assert together(lambda i: compute("key"), 3) == [["key"]] * 3
    assert compute.store._begin()._running == {}
    with stale.lock:
        compute.store._begin()._running[("other",)] = stale
        assert compute("other") == ["other"]
    assert compute("other") == ["other"] and compute.cache_size() == 2
    compute.store._begin()._running[("never again",)] = stale
    assert compute("new") == ["new"] and compute.store._begin()._running == {}


def test_calls_survive_a_storm_of_signals():
    limit, count = sys.getrecursionlimit(), 0
    x = jnp.asarray(X)
    for i in range(150):
        with contextlib.suppress(KeyboardInterrupt), _alarm(0.0005 + 0.0007 * (i % 13)):
            ends = time.monotonic() + 1
            while time.monotonic() < ends:
                minijax.jit(lambda y: jnp.sin(y) * 2 + 1)(x)
                minijax.vmap(lambda y: y + lax.psum(y, "i"), axis_name="i")(x)
            count -= 1
        count += 1
        _check_clean(limit)
    assert count > 100
    assert minijax.jit(lambda y: y + 1)(x).tolist() == [2, 3, 4]
