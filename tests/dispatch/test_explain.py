"""Why functions are traced: `cache_info`, `why`, and what keeps nothing alive."""

import gc
import weakref

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp

X = np.arange(3, dtype=np.float32)


def rows(f):
    return [tuple(d) for d in f.why().differences]


def test_a_function_that_was_not_called_has_no_explanation():
    f = minijax.jit(lambda x: x)
    assert f.why() is None
    assert f.cache_info() == (0, 0, 0)


def test_the_first_call_is_reported_with_its_line():
    f = minijax.jit(lambda x: x * 2)
    f(X)
    why = f.why()
    assert why.earlier is None and why.differences == () and why.traces == 1
    assert __file__ in why.line and "test_the_first_call" in why.line
    assert "no earlier call is known" in str(why)


# The last call, the differences from the nearest one before.
@pytest.mark.parametrize(
    "args, kwargs, expected",
    [
        ((X[:2],), {}, [("shape", "x", "(3,)", "(2,)")]),
        ((X.astype(np.int32),), {}, [("dtype", "x", "float32", "int32")]),
        ((X,), {"n": 3}, [("static value", "n", "absent", "3")]),
        ((X, X), {}, [("tree", "arguments", "PyTreeDef(((*,), {}))", "PyTreeDef(((*, *), {}))")]),
    ],
)
def test_a_difference_is_named_with_its_old_and_new_value(args, kwargs, expected):
    f = minijax.jit(lambda x, y=1.0, n=2: x * y * n, static_argnames="n")
    f(X)
    f(*args, **kwargs)
    assert rows(f) == expected
    assert f.cache_info().traces == 2
    assert all(text in str(f.why()) for text in expected[0])


def test_weak_types_paths_and_static_types():
    f = minijax.jit(lambda tree, n=1: tree["a"][0] * n, static_argnums=1)
    f({"a": [1.0, X]})
    f({"a": [np.float32(1.0), X]})
    assert rows(f) == [("weak type", "tree['a'][0]", "True", "False")]
    f({"a": [np.float32(1.0), X]}, 2)
    f({"a": [np.float32(1.0), X]}, 2.0)
    assert rows(f) == [("static value", "1", "2", "2.0")]


def test_the_nearest_of_several_is_chosen():
    f = minijax.jit(lambda x, y: x)
    f(X, X)
    f(X.astype(np.int32), X[:2])
    f(X.astype(np.int32), X[:1])
    assert rows(f) == [("shape", "y", "(2,)", "(1,)")]


def test_options_shardings_and_commitment():
    f = minijax.jit(lambda x: x)
    f(X)
    with minijax.numpy_rank_promotion("warn"):
        f(X)
    assert rows(f) == [("option", "jax_numpy_rank_promotion", "allow", "warn")]
    f(minijax.device_put(X, minijax.devices()[0]))
    assert rows(f) == [("committed", "x", "False", "True")]
    assert f.cache_info().traces == 2  # the program alone was missing


def test_functions_of_one_definition_share_cached_programs():
    def of(n):
        return minijax.jit(lambda x: x + n)

    of(1)(X)
    f = of(2)
    f(X)
    assert rows(f) == [("function", "of this definition", "another object", "a new object")]

    def g(x):
        return x

    minijax.jit(g)(X)
    kept = minijax.jit(g, keep_unused=True)
    kept(X)
    assert rows(kept) == [("jit option", "keep_unused", "False", "True")]


def test_calls_after_clear_cache_differ_in_nothing():
    f = minijax.jit(lambda x: x)
    f(X)
    f.clear_cache()
    f(X)
    assert rows(f) == [] and "nothing differs" in str(f.why())


def test_known_calls_leave_the_explanation():
    f = minijax.jit(lambda x: x)
    f(X)
    f(X[:1])
    before = f.why()
    f(X)
    assert f.why() == before


def test_traces_inside_others_are_explained_too():
    f = minijax.jit(lambda x: x * 2)
    minijax.jit(lambda x: f(x) + f(x[:1]))(X)
    assert rows(f) == [("shape", "x", "(3,)", "(1,)")]


def test_neither_arguments_nor_functions_nor_static_values_are_kept_alive():
    class Value:
        def __hash__(self):
            return 1

        def __repr__(self):
            raise ValueError("no text")

    def run():
        f = minijax.jit(lambda x, v: x * 2, static_argnums=1)
        value, x = Value(), jnp.array(X)
        f(x, value)
        return weakref.ref(f), weakref.ref(value), weakref.ref(x)

    references = run()
    gc.collect()
    assert [r() for r in references] == [None, None, None]


def test_memory_is_bounded():
    f = minijax.jit(lambda x, n: x, static_argnums=1)
    for n in range(70):
        f.lower(X, n)
    assert f.why().traces == 64
    assert f.cache_info().traces == 70


def test_a_long_static_value_is_shown_short():
    f = minijax.jit(lambda x, n: x, static_argnums=1)
    f(X, tuple(range(1000)))
    f(X, tuple(range(1001)))
    ((_, _, before, now),) = rows(f)
    assert before != now and max(len(before), len(now)) < 250
