"""Jaxprs with the same equations share an executable, and jitted calls of plain arguments a trace: only if all agrees."""

import threading

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.ir.structure import structure_of

X = np.arange(3, dtype=np.float32)


def structure(function, *args):
    return structure_of(jax.make_jaxpr(function)(*args))


def loop(factor, start=1.0, **options):
    """A loop whose body is a new function."""
    return lambda x: lax.scan(lambda c, a: (c * factor + a, c), start, x, **options)[0]


def test_new_functions_with_the_same_equations_have_one_structure():
    assert structure(loop(2.0), X) == structure(loop(2.0), X) is not None


@pytest.mark.parametrize(
    "one, other",
    [
        (loop(0.0), loop(-0.0)),
        (loop(2.0), loop(3.0)),
        (loop(2.0), loop(np.float32(2))),
        (loop(2.0), loop(2.0, reverse=True)),
        (loop(2.0), loop(2.0, unroll=2)),
        (lambda x: x + np.nan, lambda x: x + np.inf),
        (lambda x: x - x[::-1], lambda x: x[::-1] - x),
        (lambda x: (x, x + 1), lambda x: (x + 1, x)),
        (lambda x: jnp.sum(x, 0), lambda x: jnp.prod(x, 0)),
        (lambda x: x == 1, lambda x: x == 2),
        (lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x), lambda x: lax.cond(x[0] > 0, jnp.cos, jnp.sin, x)),
    ],
)
def test_what_differs_has_another_structure_and_result(one, other):
    assert structure(one, X) != structure(other, X)
    for _ in range(2):
        for function in (one, other):
            wanted = [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(jax.jit(function)(X))]
            with jax.disable_jit():
                found = [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(function(jnp.asarray(X)))]
            assert wanted == found


def test_programs_with_effects_constants_or_rules_have_none():
    @jax.custom_jvp
    def rule(x):
        return x * 2

    rule.defjvps(lambda t, y, x: t)
    large = np.arange(100.0, dtype=np.float32)
    assert structure(lambda x: rule(x), X) is None
    assert structure(lambda x: x[0] + large, X) is None
    assert structure(lambda x: jax.debug.print("{}", x) or x, X) is None


def test_a_shared_program_follows_its_options_and_types():
    run = lambda x: jax.jit(lambda a: a * 2 + 1)(x)  # noqa: E731
    assert run(X).dtype == np.float32
    with jax.enable_x64(True):
        assert run(X.astype(np.float64)).dtype == np.float64
    assert run(jnp.float32(1)).weak_type is False and run(1.0).weak_type is True
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        jax.jit(lambda a: a / 0 * 0)(jnp.asarray(X))
    assert np.isnan(jax.jit(lambda a: a / 0 * 0)(jnp.asarray(X))).all()


def test_a_shared_program_runs_on_the_device_of_its_arguments():
    first, second = jax.devices()[:2]
    for device in (first, second, first):
        assert jax.jit(lambda a: a * 3 + 1)(jax.device_put(X, device)).devices() == {device}


def test_a_donated_argument_is_not_taken_by_a_program_that_does_not_donate():
    kept, given = jnp.arange(3.0), jnp.arange(3.0)
    assert jax.jit(lambda a: a * 5 + 1)(kept).tolist() == jax.jit(lambda a: a * 5 + 1, donate_argnums=0)(given).tolist()
    assert not kept.is_deleted() and given.is_deleted()


def test_threads_that_make_equal_functions_get_equal_results():
    results = []

    def work():
        for i in range(20):
            results.append((i % 3, float(jax.jit(loop(float(i % 3)))(X))))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 80
    assert set(results) == {(i, float(jax.jit(loop(float(i)))(X))) for i in range(3)}


# Jitted calls under a trace, looked up by the types of plain arguments


inner = jax.jit(lambda x, n: x * n)
static = jax.jit(lambda x, n: x * n, static_argnums=1)


@pytest.mark.parametrize("f", [inner, static])
@pytest.mark.parametrize("values", [(1, True), (1, 1.0), (0.0, -0.0), (2, 3), (1, 2**40)])
def test_plain_arguments_of_other_kinds_have_another_trace(f, values):
    def outcome(n):
        try:
            return str(jax.make_jaxpr(lambda x: f(x, n))(X))
        except OverflowError as error:
            return type(error).__name__

    once = [outcome(n) for n in values]
    assert once == [outcome(n) for n in values] == [outcome(n) for n in values]
    alone = []
    for n in values:
        jax.clear_caches()
        alone.append(outcome(n))
    assert once == alone


def test_a_call_that_captured_a_tracer_is_traced_each_time():
    def outer(x):
        return jax.jit(lambda y: y * x)(1.0)

    for value in (2.0, 3.0):
        assert float(jax.grad(outer)(value)) == 1.0
        assert float(jax.jit(outer)(value)) == value

    def twice(x):
        f = jax.jit(lambda y: y * x)
        return f(1.0) + f(2.0)

    assert float(jax.jit(twice)(3.0)) == 9.0
    assert float(jax.grad(twice)(3.0)) == 3.0


def test_options_and_axes_are_part_of_the_key_of_a_plain_call():
    mean = jax.jit(lambda x: lax.pmean(x, "i"))
    assert jax.vmap(mean, axis_name="i")(jnp.arange(4.0)).tolist() == [1.5] * 4
    with pytest.raises(NameError):
        jax.make_jaxpr(mean)(1.0)
    sized = jax.jit(lambda x: x * lax.axis_size("i"))
    for size in (4, 2, 4):
        assert jax.vmap(sized, axis_name="i")(jnp.ones(size)).tolist() == [size] * size
    product = jax.jit(lambda x: x @ x)
    plain = str(jax.make_jaxpr(lambda x: product(x))(jnp.ones((2, 2))))
    with jax.default_matmul_precision("highest"):
        assert "HIGHEST" in str(jax.make_jaxpr(lambda x: product(x))(jnp.ones((2, 2))))
    assert str(jax.make_jaxpr(lambda x: product(x))(jnp.ones((2, 2)))) == plain


def test_a_parameter_may_have_the_name_of_a_parameter_of_the_library():
    p = jax.extend.core.Primitive("named")
    p.def_abstract_eval(lambda x, *, trace, fun: x)
    jax.interpreters.batching.primitive_batchers[p] = lambda args, dims, *, trace, fun: (
        p.bind(*args, trace=trace, fun=fun),
        0,
    )
    jax.interpreters.ad.primitive_jvps[p] = lambda primals, tangents, *, trace, fun: (primals[0], tangents[0])
    call = lambda x: p.bind(x, trace=1, fun=2)  # noqa: E731
    assert "named[fun=2 trace=1]" in str(jax.make_jaxpr(jax.vmap(call))(X))
    assert float(jax.grad(call)(1.0)) == 1.0


# Python numbers under a trace, whose literals are remembered


@pytest.mark.parametrize("one, other", [(0.0, -0.0), (2.0, -2.0), (1.0, True), (2.0, 2), (0.5, 0.25)])
def test_numbers_keep_their_signs_and_kinds(one, other):
    def text(n):
        return str(jax.make_jaxpr(lambda x: (x * n, jnp.where(x > 0, x, n), jnp.full(3, n)))(X))

    assert text(one) != text(other)
    assert text(one) == text(one) and text(other) == text(other)


def test_numbers_follow_the_widths_of_the_options():
    wide = np.float64(1.5)
    for _ in range(2):
        assert "f32" in str(jax.make_jaxpr(lambda: lax.sin(wide))())
        with jax.enable_x64(True):
            assert "f64" in str(jax.make_jaxpr(lambda: lax.sin(wide))())
        halves = str(jax.make_jaxpr(lambda x: x * 1.5)(X.astype(np.float16)))
        assert "1.5:f16[]" in halves and "f32" not in halves
