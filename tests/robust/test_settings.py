"""Options changed by one thread while others work: seen where jax's are seen, and never a wrong cached result."""

import sys
import threading

import compare
import numpy as np
import pytest
from processes import left_behind, together

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.base import config

X = np.arange(4, dtype=np.float32)

# Name, another value than the default
GLOBALS = {
    "jax_enable_x64": True,
    "jax_default_matmul_precision": "highest",
    "jax_numpy_dtype_promotion": "strict",
    "jax_numpy_rank_promotion": "raise",
    "jax_disable_jit": True,
    "jax_debug_nans": True,
    "jax_threefry_partitionable": False,
    "jax_default_prng_impl": "rbg",
    "jax_log_compiles": False,
    "jax_check_tracer_leaks": True,
}
CONTEXTS = {
    "enable_x64": True,
    "default_matmul_precision": "highest",
    "numpy_dtype_promotion": "strict",
    "numpy_rank_promotion": "raise",
    "disable_jit": True,
    "debug_nans": True,
    "threefry_partitionable": False,
    "default_prng_impl": "rbg",
}


def _seen(jax, name):
    """The value of a changed option in this thread, in one that runs already, and in one that starts later."""

    def program(change, undo):
        asked, answered, found = threading.Semaphore(0), threading.Semaphore(0), []

        def running():
            for _ in range(2):
                asked.acquire()
                found.append(getattr(jax.config, name))
                answered.release()

        thread = threading.Thread(target=running)
        thread.start()
        try:
            change()
            asked.release()
            answered.acquire()
            found.append(getattr(jax.config, name))
            found.extend(together(lambda i: getattr(jax.config, name), 1))
        finally:
            undo()
            asked.release()
            thread.join()
        return found

    return program


@pytest.mark.oracle
@pytest.mark.parametrize("name", GLOBALS)
def test_a_global_change_is_seen_by_all_threads(name):
    results = []
    for jax in (compare.ours(), compare.theirs()):
        before = getattr(jax.config, name)
        change = lambda jax=jax: jax.config.update(name, GLOBALS[name])  # noqa: E731
        undo = lambda jax=jax, before=before: jax.config.update(name, before)  # noqa: E731
        results.append([str(v) for v in _seen(jax, name)(change, undo)])
    assert results[0] == results[1] == [str(GLOBALS[name])] * 3 + [str(results[0][3])]


@pytest.mark.oracle
@pytest.mark.parametrize("name", CONTEXTS)
def test_a_context_is_seen_by_its_thread_alone(name):
    results = []
    for jax in (compare.ours(), compare.theirs()):
        context = getattr(jax, name)(CONTEXTS[name])
        undo = lambda context=context: context.__exit__(None, None, None)  # noqa: E731
        results.append([str(v) for v in _seen(jax, f"jax_{name}")(context.__enter__, undo)])
    default = str(getattr(minijax.config, f"jax_{name}"))
    assert results[0] == results[1] == [default, str(CONTEXTS[name]), default, default]


@pytest.mark.oracle
@pytest.mark.parametrize("name", CONTEXTS)
def test_a_global_change_does_not_reach_a_thread_that_has_its_own_value(name):
    results = []
    for jax in (compare.ours(), compare.theirs()):
        before = getattr(jax.config, f"jax_{name}")
        try:
            with getattr(jax, name)(before):
                together(lambda i, jax=jax: jax.config.update(f"jax_{name}", CONTEXTS[name]), 1)
                inside = (
                    getattr(jax.config, f"jax_{name}"),
                    together(lambda i, jax=jax: getattr(jax.config, f"jax_{name}"), 1),
                )
        finally:
            jax.config.update(f"jax_{name}", before)
        results.append(str(inside))
    assert results[0] == results[1]


def test_no_thread_gets_a_result_of_anothers_settings():
    f = minijax.jit(lambda x: jnp.arange(3) * x + jnp.zeros(()))
    g = minijax.jit(lambda a: a @ a)
    limit, rounds = sys.getrecursionlimit(), 12

    def work(i):
        for _ in range(rounds):
            with minijax.enable_x64(i % 2 == 0):
                assert f(2).dtype == (np.float64 if i % 2 == 0 else np.float32)
                assert (jnp.ones(2) * 2).dtype == (np.float64 if i % 2 == 0 else np.float32)
                scanned = lax.scan(lambda c, x: (c + x, c), 0.0, jnp.arange(3.0))[0]
                assert scanned.dtype == (np.float64 if i % 2 == 0 else np.float32)
            with minijax.default_matmul_precision(("default", "highest")[i % 2]):
                text = g.lower(np.eye(3, dtype=np.float32)).as_text()
                assert ("HIGHEST" in text) == bool(i % 2)
            with minijax.disable_jit(i % 4 == 3):
                seen = []
                minijax.jit(lambda x, seen=seen: seen.append(type(x).__name__) or x)(jnp.ones(2))
                assert seen == ["ArrayImpl" if i % 4 == 3 else "JitTracer"] or seen[0] != "ArrayImpl"
            with minijax.numpy_dtype_promotion(("standard", "strict")[i % 2]):
                mixed = compare.outcome(lambda: jnp.ones(2, jnp.float32) + jnp.ones(2, jnp.int32))
                assert (mixed.error is None) == (i % 2 == 0), mixed
        return "right"

    assert together(work) == ["right"] * 8
    assert left_behind(limit) == []


def test_a_global_change_during_calls_gives_results_of_one_setting_each():
    stop, limit = threading.Event(), sys.getrecursionlimit()
    f = minijax.jit(lambda x: (jnp.arange(3), jnp.ones(2) * x))
    one = jnp.ones((), jnp.float32)  # a Python number would become an array before the call settles

    def flip():
        while not stop.wait(0.001):
            value = not config.enable_x64.value
            config.enable_x64.set(value)
            config.default_matmul_precision.set("highest" if value else None)

    def call(i):
        seen = set()
        for n in range(12):
            # A function that is traced anew, so that the switch often moves in the middle.
            fresh = minijax.jit(lambda x, n=n: f(x) + (jnp.zeros(2) + n + minijax.grad(jnp.sin)(x),))
            seen.add(tuple([r.dtype.name for r in fresh(one)]))
            seen.add((*[r.dtype.name for r in f(one)], None))
        return seen

    flipping = threading.Thread(target=flip)
    flipping.start()
    try:
        results = together(call, 4)
    finally:
        stop.set()
        flipping.join()
        config.enable_x64.set(False)
        config.default_matmul_precision.set(None)
    whole = {("int32", "float32", "float32"), ("int64", "float64", "float64")}
    for seen in results:
        assert seen <= whole | {(*row[:2], None) for row in whole}
    # Programs cached under a setting are used only under it.
    assert f(1.0)[0].dtype == np.int32 and left_behind(limit) == []
    with minijax.enable_x64(True):
        assert f(1.0)[0].dtype == np.int64


def test_a_context_left_by_an_exception_in_a_thread_is_left():
    def work(i):
        with pytest.raises(ZeroDivisionError), minijax.enable_x64(True), minijax.disable_jit():
            raise ZeroDivisionError
        return minijax.config.jax_enable_x64, minijax.config.jax_disable_jit

    assert together(work, 4) == [(False, False)] * 4


def test_a_function_sees_one_setting_while_it_is_traced():
    seen, inside, flipped = [], threading.Event(), threading.Event()

    @minijax.jit
    def f(x):
        seen.append(minijax.config.jax_enable_x64)
        inside.set()
        assert flipped.wait(100)
        seen.append(minijax.config.jax_enable_x64)
        with minijax.enable_x64(False):
            seen.append(minijax.config.jax_enable_x64)
        seen.append(minijax.config.jax_enable_x64)
        return jnp.arange(3) + x

    def flip():
        assert inside.wait(100)
        minijax.config.update("jax_enable_x64", True)
        flipped.set()

    thread = threading.Thread(target=flip)
    thread.start()
    try:
        assert f(1).dtype == np.int32
        thread.join()
        assert seen == [False] * 4 and minijax.config.jax_enable_x64
        assert f(1).dtype == np.int64
        minijax.config.update("jax_enable_x64", False)
        assert f(1).dtype == np.int32 and len(seen) == 8
    finally:
        minijax.config.update("jax_enable_x64", False)


@pytest.mark.oracle
def test_a_function_that_changes_a_setting_while_it_is_traced_sees_its_change():
    results = []
    for jax in (compare.ours(), compare.theirs()):
        seen = []

        def f(x, jax=jax, seen=seen):
            jax.config.update("jax_enable_x64", True)
            seen.append(jax.config.jax_enable_x64)
            jax.config.update("jax_enable_x64", False)
            seen.append(jax.config.jax_enable_x64)
            return x

        jax.jit(f)(1.0)
        results.append((seen, jax.config.jax_enable_x64))
    assert results[0] == results[1] == ([True, False], False)
