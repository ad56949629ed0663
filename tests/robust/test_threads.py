"""Many concurrent threads: each program traced and compiled once, right answers, no deadlocks."""

import random as python_random
import sys
import threading
import time

import numpy as np
import pytest
from processes import left_behind, thread_state, together

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.base import cache, config
from minijax.run.compile import compile_count

X = np.arange(4, dtype=np.float32)


# Simultaneous first calls


def _counted(body):
    """The function, and a list with an entry for each time it is traced."""
    traced = []

    def fun(*args):
        traced.append(threading.get_ident())
        time.sleep(0.01)  # others arrive while this one is being traced
        return body(*args)

    return fun, traced


def test_a_function_called_first_by_many_threads_is_traced_and_compiled_once():
    fun, traced = _counted(lambda x: jnp.sin(x) * 2.125)
    f, x, before = minijax.jit(fun), jnp.asarray(X), compile_count()
    results = together(lambda i: f(x))
    assert len(traced) == 1 and compile_count() - before == 1
    assert all(np.asarray(r).tolist() == (np.asarray(f(x))).tolist() for r in results)


def test_equal_jits_made_in_many_threads_share_trace_and_program():
    fun, traced = _counted(lambda x: jnp.cos(x) * 2.125)
    before = compile_count()
    results = together(lambda i: minijax.jit(fun)(X))
    assert len(traced) == 1 and compile_count() - before == 1
    assert len({np.asarray(r).tobytes() for r in results}) == 1


def test_different_arguments_are_traced_once_each():
    fun, traced = _counted(lambda x: x * 3.125)
    f = minijax.jit(fun)
    results = together(lambda i: f(np.ones(i % 4, np.float32)))
    assert len(traced) == 4
    assert [r.shape for r in results] == [(i % 4,) for i in range(8)]


def test_a_function_inside_others_is_traced_once():
    fun, traced = _counted(lambda x: jnp.tanh(x) * 1.125)
    inner = minijax.jit(fun)
    wrap = [minijax.jit, minijax.grad, minijax.vmap, lambda f: minijax.jit(minijax.grad(f))]
    uses = [lambda: minijax.jit(lambda x: inner(x) + 1)(2.0), lambda: inner(2.0)]
    uses += [lambda w=w: w(lambda x: inner(x))(jnp.float32(2)) for w in wrap if w is not minijax.vmap]
    together(lambda i: uses[i % len(uses)]())
    # `2.0` is weakly typed and `float32(2)` is not.
    assert len(traced) == 2


def test_an_eager_operation_is_compiled_once():
    x, before = jnp.ones((3, 1, 7)), compile_count()
    results = together(lambda i: lax.atan2(x, x))
    assert compile_count() - before == 1
    assert len({np.asarray(r).tobytes() for r in results}) == 1


def test_a_function_that_raises_in_all_threads_raises_in_each_and_works_later():
    tries = []

    @minijax.jit
    def f(x):
        tries.append(1)
        if len(tries) <= 8:
            raise ValueError("not yet")
        return x + 1

    results = together(lambda i: f(X))
    assert [type(r) for r in results] == [ValueError] * 8
    assert f(X).tolist() == [1, 2, 3, 4] and len(tries) == 9


def test_one_thread_that_raises_leaves_the_work_to_the_next():
    tries = []

    @minijax.jit
    def f(x):
        tries.append(1)
        time.sleep(0.02)
        if len(tries) == 1:
            raise ValueError("only once")
        return x + 1

    results = together(lambda i: f(X))
    assert sum(isinstance(r, ValueError) for r in results) == 1 and len(tries) == 2
    assert all(r.tolist() == [1, 2, 3, 4] for r in results if not isinstance(r, ValueError))


# Locks


def test_functions_that_call_each_other_in_two_threads_do_not_lock():
    here, both = threading.local(), threading.Barrier(2)

    def first(x):
        if getattr(here, "outer", None) != "first":
            return x + 1
        both.wait()
        return g(x) * 2

    def second(x):
        if getattr(here, "outer", None) != "second":
            return x + 3
        both.wait()
        return f(x) * 4

    f, g = minijax.jit(first), minijax.jit(second)

    def work(i):
        here.outer = ("first", "second")[i]
        return (f, g)[i](1.0)

    # Each waits for the other's function: one of them traces what the other is tracing.
    results = together(work, 2)
    assert float(results[0]) in (8, 16) and float(results[1]) in (8, 32)


def test_a_ring_of_caches_that_wait_for_each_other_does_not_lock():
    count = 5
    here, ready = threading.local(), threading.Barrier(count)
    calls = []

    def make(k):
        @cache.cache
        def compute(key):
            calls.append(k)
            if here.outer == k:
                ready.wait()
                here.outer = None
                return compute_of[(k + 1) % count](key) + 1
            return 0

        return compute

    compute_of = [make(k) for k in range(count)]

    def work(i):
        here.outer = i
        return compute_of[i]("key")

    results = together(work, count)
    assert all(type(r) is int and r <= count for r in results)
    assert len(calls) < 2 * count


def test_a_cached_function_may_call_itself_with_its_own_key():
    depth = []

    @cache.cache
    def compute(key):
        depth.append(key)
        return compute(key) + 1 if len(depth) < 3 else 0

    assert compute("a") == 0 + 2 and depth == ["a"] * 3


def test_a_thread_that_dies_while_it_traces_locks_nobody():
    tries = []

    @minijax.jit
    def f(x):
        tries.append(1)
        if len(tries) == 1:
            raise SystemExit
        return x + 1

    assert [type(r) for r in together(lambda i: f(X), 1)] == [SystemExit]
    assert together(lambda i: f(X).tolist(), 2) == [[1, 2, 3, 4]] * 2


# Traces are the thread's own


def test_tracing_in_one_thread_does_not_disturb_another():
    inside, done = threading.Event(), threading.Event()
    limit = sys.getrecursionlimit()

    @minijax.jit
    def slow(x):
        with minijax.named_scope("slow"), minijax.default_matmul_precision("highest"):
            y = x * 2
            inside.set()
            assert done.wait(100)
            return y + 1

    found = []
    thread = threading.Thread(target=lambda: found.append(slow(X)))
    thread.start()
    assert inside.wait(100)
    assert type(jnp.sin(X)).__name__ == "ArrayImpl"
    assert config.default_matmul_precision.value is None
    assert "slow" not in minijax.jit(lambda x: x + 1).lower(X).as_text(debug_info=True)
    assert minijax.grad(lambda x: x * x)(3.0) == 6
    assert minijax.vmap(lambda x: lax.psum(x, "i"), axis_name="i")(X).tolist() == [6] * 4
    with pytest.raises(NameError):
        minijax.jit(lambda x: lax.psum(x, "i"))(1.0)
    done.set()
    thread.join()
    assert found[0].tolist() == [1, 3, 5, 7]
    assert left_behind(limit) == []


def test_a_tracer_passed_to_another_thread_is_refused_or_recorded():
    found = []

    @minijax.jit
    def f(x):
        thread = threading.Thread(target=lambda: found.extend(together(lambda i: x + 1, 2)))
        thread.start()
        thread.join()
        return x * 2

    assert f(X).tolist() == [0, 2, 4, 6]
    assert [type(r).__name__ for r in found] == ["UnexpectedTracerError"] * 2


def test_threads_started_inside_a_trace_run_for_themselves():
    @minijax.jit
    def f(x):
        constants = together(lambda i: minijax.jit(lambda y: y * 2)(jnp.ones(2) * i), 4)
        return x + sum(c.sum() for c in constants)

    assert f(1.0) == 1 + 2 * 2 * (0 + 1 + 2 + 3)


# Anything at any time


def _scan(x):
    return lax.scan(lambda c, a: (jnp.sin(c) + a, c * a), x[0], x)


PROGRAMS = {
    "eager": lambda x: (x + 1) * jnp.sin(x) - x[::-1],
    "index": lambda x: x.at[1].set(7)[jnp.array([0, 1, 1])],
    "jit": lambda x: minijax.jit(lambda y: jnp.tanh(y) * 3)(x),
    "grad": lambda x: minijax.grad(lambda y: (jnp.sin(y) * y).sum())(x),
    "jit of grad": lambda x: minijax.jit(minijax.grad(lambda y: (y**3).sum()))(x),
    "vmap": lambda x: minijax.vmap(lambda y: y * lax.psum(y, "i"), axis_name="i")(x),
    "vmap of grad": lambda x: minijax.vmap(minijax.grad(lambda y: jnp.cos(y) * y))(x),
    "scan": _scan,
    "grad of scan": lambda x: minijax.grad(lambda y: _scan(y)[1].sum())(x),
    "cond": lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x),
    "while": lambda x: lax.while_loop(lambda c: c.sum() < 50, lambda c: c * 2 + 1, x),
    "checkpoint": lambda x: minijax.grad(lambda y: minijax.checkpoint(jnp.sin)(y).sum())(x),
    "random": lambda x: minijax.random.normal(minijax.random.key(3), x.shape) + x,
    "jvp": lambda x: minijax.jvp(jnp.sin, (x,), (x,)),
    "vjp": lambda x: minijax.vjp(lambda y: y * jnp.exp(y), x)[1](x),
    "linearize": lambda x: minijax.linearize(jnp.cos, x)[1](x),
    "jaxpr": lambda x: str(minijax.make_jaxpr(minijax.grad(lambda y: jnp.sum(y * y)))(x)),
    "text": lambda x: minijax.jit(lambda y: y @ y).lower(x).as_text(),
    "shapes": lambda x: repr(minijax.eval_shape(lambda y: y[None] * y[:, None], x)),
    "aot": lambda x: minijax.jit(lambda y: y - 5).lower(x).compile()(x),
    "x64": lambda x: minijax.enable_x64(True)(lambda: jnp.arange(3.0) * 2)(),
    "donated": lambda x: minijax.jit(lambda y: y + 1, donate_argnums=0)(x * 1),
    "copied": lambda x: np.asarray(minijax.device_put(np.asarray(x))) + 1,
}


def _answers(program, x):
    return [
        a if isinstance(a, str) else (str(a.dtype), np.asarray(a).tobytes())
        for a in minijax.tree.leaves(PROGRAMS[program](x))
    ]


def _hammered(seconds):
    x = jnp.asarray(np.linspace(0.5, 2, 5, dtype=np.float32))
    wanted = {name: _answers(name, x) for name in PROGRAMS}
    ends = time.monotonic() + seconds
    wrong, limit = [], sys.getrecursionlimit()

    def work(i):
        chosen, count = python_random.Random(i), 0
        while time.monotonic() < ends and not wrong or not count:
            name = chosen.choice(list(PROGRAMS))
            if _answers(name, x) != wanted[name]:
                wrong.append(name)
            if i == 0 and not count % 16:
                cache.clear_caches()
            count += 1
        return thread_state()

    results = together(work)
    assert results == [[]] * 8 and wrong == []
    assert left_behind(limit) == []


def test_threads_that_run_anything_get_the_results_of_one_thread():
    _hammered(4)


@pytest.mark.full
@pytest.mark.slow
def test_threads_that_run_anything_for_a_minute_get_the_results_of_one_thread():
    _hammered(60)
