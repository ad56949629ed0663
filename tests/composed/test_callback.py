"""Callbacks to the host: values, order, number, jaxprs and errors are those of jax, under every transformation."""

import gc
import subprocess
import sys
import threading
import weakref

import compare
import numpy as np
import pytest
from compare import require, same, same_error, same_jaxpr

import minijax
import minijax.numpy as jnp

X = np.arange(1, 4, dtype=np.float32)


def io(jax):
    return jax.experimental.io_callback


def recorded(program):
    """The program's result with the calls of its `note`, each with the values that it got."""

    def run(jax):
        calls = []

        def note(*args):
            calls.append(tuple(np.asarray(a).tolist() for a in args))
            return np.asarray(args[0]) * 2

        result = program(jax, note)
        jax.effects_barrier()
        return result, calls

    return run


def scalar(jax):
    return jax.ShapeDtypeStruct((), np.float32)


def like(jax, x):
    return jax.ShapeDtypeStruct(jax.numpy.shape(x), np.float32)


def double(jax, note, **how):
    return lambda x: jax.pure_callback(note, like(jax, x), x, **how)


def write(jax, note, **how):
    return lambda x: io(jax)(note, like(jax, x), x, **how)


def in_scan(jax, note, call):
    return jax.lax.scan(lambda c, x: (call(jax, note)(c + x), c), np.float32(0), X)


def in_while(jax, note, call):
    return jax.lax.while_loop(lambda c: c < 20, call(jax, note), np.float32(1))


def in_both_parts_of_while(jax, note):
    flag = jax.ShapeDtypeStruct((), np.bool_)
    test = lambda c: io(jax)(lambda x: (note(x), np.asarray(x < 5))[1], flag, c, ordered=True)  # noqa: E731
    return jax.lax.while_loop(test, lambda c: write(jax, note, ordered=True)(c), np.float32(1))


def in_cond(jax, note):
    branches = [lambda x: write(jax, note, ordered=True)(x), lambda x: x, lambda x: write(jax, note)(x + 1)]
    f = jax.jit(lambda i, x: jax.lax.switch(i, branches, x))
    return [f(i, X) for i in range(3)]


def in_custom_jvp(jax, note):
    f = jax.custom_jvp(lambda x: double(jax, note)(x))
    f.defjvp(lambda p, t: (f(*p), t[0] * jax.pure_callback(np.cos, scalar(jax), p[0])))
    return jax.value_and_grad(f)(np.float32(2)), jax.jit(jax.grad(f))(np.float32(2))


def in_custom_vjp(jax, note):
    f = jax.custom_vjp(lambda x: write(jax, note)(x))
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (write(jax, note)(ct * x),))
    return jax.grad(f)(np.float32(2)), jax.jit(jax.grad(f))(np.float32(3))


PROGRAMS = {
    "pure eager": lambda jax, note: double(jax, note)(X),
    "pure jit": lambda jax, note: jax.jit(double(jax, note))(X),
    "pure twice": lambda jax, note: jax.jit(lambda x: double(jax, note)(double(jax, note)(x)))(X),
    "pure of a number": lambda jax, note: jax.jit(double(jax, note))(3.0),
    "pure in scan": lambda jax, note: in_scan(jax, note, double),
    "pure in jitted scan": lambda jax, note: jax.jit(lambda: in_scan(jax, note, double))(),
    "pure in while": lambda jax, note: jax.jit(lambda: in_while(jax, note, double))(),
    "pure unread": lambda jax, note: jax.jit(lambda x: (double(jax, note)(x), x)[1])(X),
    "pure of a constant under grad": lambda jax, note: jax.grad(lambda x: x * double(jax, note)(2.0))(3.0),
    "pure under checkpoint": lambda jax, note: jax.grad(
        jax.checkpoint(lambda x: jax.numpy.sin(x) * double(jax, note)(2.0))
    )(3.0),
    "io eager": lambda jax, note: write(jax, note)(X),
    "io jit": lambda jax, note: jax.jit(write(jax, note))(X),
    "io unread": lambda jax, note: jax.jit(lambda x: (write(jax, note)(x), x)[1])(X),
    "io ordered": lambda jax, note: [jax.jit(write(jax, note, ordered=True))(X * i) for i in range(3)],
    "io ordered, eager and jitted": lambda jax, note: [
        write(jax, note, ordered=True)(X),
        jax.jit(write(jax, note, ordered=True))(X + 1),
        write(jax, note, ordered=True)(X + 2),
    ],
    "io ordered in scan": lambda jax, note: in_scan(jax, note, lambda *a: write(*a, ordered=True)),
    "io ordered in jitted scan": lambda jax, note: jax.jit(
        lambda: in_scan(jax, note, lambda *a: write(*a, ordered=True))
    )(),
    "io in scan": lambda jax, note: in_scan(jax, note, write),
    "io ordered in the predicate": lambda jax, note: jax.jit(lambda: in_both_parts_of_while(jax, note))(),
    "io in cond": in_cond,
    "io in vmap": lambda jax, note: jax.vmap(write(jax, note))(X),
    "io in jitted vmap": lambda jax, note: jax.jit(jax.vmap(write(jax, note)))(X),
    "io in nested jit, twice": lambda jax, note: jax.jit(
        lambda x: (lambda f: f(f(x)))(jax.jit(write(jax, note, ordered=True)))
    )(X),
    "io of a constant under grad": lambda jax, note: jax.grad(lambda x: x * write(jax, note)(2.0))(3.0),
    "io under linearize": lambda jax, note: jax.linearize(lambda x: x * write(jax, note)(2.0), 3.0)[1](1.0),
    "io under jvp of jit": lambda jax, note: jax.jvp(
        jax.jit(lambda x: x * write(jax, note, ordered=True)(2.0)), (3.0,), (1.0,)
    ),
    "io under checkpoint": lambda jax, note: jax.checkpoint(write(jax, note))(X),
    "custom_jvp": in_custom_jvp,
    "custom_vjp": in_custom_vjp,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_and_calls_are_those_of_jax(name):
    same(recorded(PROGRAMS[name]))


METHODS = ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized"]


@pytest.mark.parametrize("method", METHODS)
def test_vmap_calls_as_in_jax(method):
    def program(jax, note):
        jnp, array = jax.numpy, jax.ShapeDtypeStruct((2,), np.float32)

        def add(x, y):
            note(x, y)
            return np.asarray(x) + np.asarray(y)[..., None]

        def one(x, y):
            return jax.pure_callback(add, array, x, y, vmap_method=method)

        xs, ys = jnp.arange(6.0).reshape(3, 2), jnp.arange(3.0)
        rows = jax.vmap(one)(xs, ys), jax.jit(jax.vmap(one))(xs, ys), jax.vmap(one, (1, None))(xs[:2], ys[1])
        if method in ("expand_dims", "legacy_vectorized"):
            return rows  # of two mapped axes the function would see one at a time
        return *rows, jax.vmap(jax.vmap(one, (0, None)), (None, 0))(xs, ys)

    same(recorded(program))

    def single(jax):
        return lambda x, y: jax.pure_callback(np.add, scalar(jax), x, y, vmap_method=method)

    same_jaxpr(lambda jax: jax.vmap(single(jax), (0, None)), X, np.float32(1))
    compare.same_text(single, X[0], X[1])


def test_jaxprs_and_texts_are_those_of_jax():
    tree = lambda jax: {"a": scalar(jax), "b": (like(jax, X),)}  # noqa: E731
    programs = [
        lambda jax: lambda x: jax.pure_callback(np.sin, like(jax, X), x),
        lambda jax: lambda x: jax.pure_callback(print, tree(jax), x, k=(x, 2)),
        lambda jax: lambda x: jax.pure_callback(print, None, x),
        lambda jax: lambda x: io(jax)(np.sin, like(jax, X), x),
        lambda jax: lambda x: io(jax)(np.sin, like(jax, X), x, ordered=True),
        lambda jax: jax.vmap(lambda x: io(jax)(np.sin, scalar(jax), x)),
        lambda jax: jax.grad(lambda x: x[0] * io(jax)(np.sin, scalar(jax), 2.0)),
        lambda jax: lambda x: jax.lax.scan(lambda c, y: (io(jax)(np.sin, scalar(jax), y, ordered=True), c), x[0], x),
    ]
    for program in programs:
        same_jaxpr(program, X)
        compare.same_text(program, X)


def test_arguments_are_arrays_of_jax():
    def program(jax):
        seen = []

        def see(*args, **kwargs):
            seen.extend([isinstance(a, jax.Array) for a in args])
            seen.append([(a.shape, str(a.dtype), a.weak_type, a.committed) for a in (*args, *kwargs.values())])
            return np.float32(0)

        key = jax.random.key(0)
        jax.pure_callback(see, scalar(jax), X, 1, k=np.int8(3))
        jax.jit(lambda x, k: jax.pure_callback(see, scalar(jax), x, 1, k=np.int8(3), key=k))(X, key)
        io(jax)(see, scalar(jax), True, 2.0)
        return seen

    same(program)


@pytest.mark.parametrize(
    "dtype", ["bool", "int4", "uint8", "int32", "bfloat16", "float8_e4m3fn", "complex64", "float16"]
)
def test_every_dtype_passes(dtype):
    def program(jax):
        x = jax.numpy.arange(3).astype(dtype)
        f = lambda x: jax.pure_callback(lambda y: y, jax.ShapeDtypeStruct(x.shape, x.dtype), x)  # noqa: E731
        return f(x), jax.jit(f)(x)

    same(program)


def test_64_bits_pass_with_x64():
    def program(jax):
        with jax.enable_x64(True):
            f = jax.jit(lambda x: jax.pure_callback(lambda y: y * 2, jax.ShapeDtypeStruct((3,), np.float64), x))
            return f(X.astype(np.float64)), f(np.arange(3.0) ** 2)

    same(program)


def test_empty_arrays_and_trees_pass():
    def program(jax):
        results = {"a": jax.ShapeDtypeStruct((0, 2), np.float32), "b": [jax.ShapeDtypeStruct((2,), np.int32), None]}
        f = lambda x, y: jax.pure_callback(  # noqa: E731
            lambda x, y: {"a": x, "b": [np.asarray(y[0]) + 1, None]}, results, x, y
        )
        x, y = np.zeros((0, 2), np.float32), (np.arange(2, dtype=np.int32), None)
        return f(x, y), jax.jit(f)(x, y), jax.jit(lambda: io(jax)(lambda: None, None, ordered=True))()

    same(program)


def test_ordered_calls_in_a_while_loop_take_place_once():
    # In jax XLA never leaves this loop, whose state begins as a constant and is what one operation gives.
    calls = []
    call = lambda x: io(minijax)(  # noqa: E731
        lambda x: (calls.append(float(x)), x * 2)[1], minijax.ShapeDtypeStruct((), np.float32), x, ordered=True
    )
    result = minijax.jit(lambda: minijax.lax.while_loop(lambda c: c < 20, call, np.float32(1)))()
    assert (float(result), calls) == (32.0, [1.0, 2.0, 4.0, 8.0, 16.0])


# ---- errors -----------------------------------------------------------------------------------------


class Unexpected(ValueError):
    """An error of the user's, with more than a text."""

    def __init__(self, text, detail):
        super().__init__(text, detail)
        self.detail = detail


CALLS = {
    "pure": lambda f: minijax.pure_callback(f, minijax.ShapeDtypeStruct((3,), np.float32), X),
    "io": lambda f: io(minijax)(f, minijax.ShapeDtypeStruct((3,), np.float32), X),
    "ordered": lambda f: io(minijax)(f, minijax.ShapeDtypeStruct((3,), np.float32), X, ordered=True),
    "debug": lambda f: minijax.debug.callback(f, X),
    "debug ordered": lambda f: minijax.debug.callback(f, X, ordered=True),
    "in scan": lambda f: minijax.lax.scan(lambda c, _: (minijax.pure_callback(f, c, c), None), jnp.asarray(X), None, 3),
    "in cond": lambda f: minijax.lax.cond(
        jnp.asarray(True), lambda x: io(minijax)(f, x, x, ordered=True), lambda x: x, jnp.asarray(X)
    ),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("jitted", [False, True])
def test_a_host_error_comes_out_with_its_class_and_traceback(name, jitted):
    fail = [True]

    def boom(x):
        if fail[0]:
            raise Unexpected("boom", 7)
        return x

    run = minijax.jit(lambda: CALLS[name](boom)) if jitted else lambda: CALLS[name](boom)
    kind = minijax.errors.JaxRuntimeError if jitted or "debug" not in name else Unexpected  # as in jax
    with pytest.raises(kind, match="boom") as caught:
        minijax.block_until_ready(run())
        minijax.effects_barrier()
    assert type(caught.value) is kind
    assert caught.traceback[-1].name == "boom"
    if kind is not Unexpected:
        assert "in boom\n    raise Unexpected" in str(caught.value)
        assert str(caught.value).splitlines()[-1].endswith("Unexpected: ('boom', 7)")
    fail[0] = False
    minijax.block_until_ready(run())
    minijax.effects_barrier()


@pytest.mark.parametrize(
    "error", [KeyError("k"), OSError(2, "no"), UnicodeDecodeError("a", b"", 0, 1, "r"), StopIteration()]
)
def test_errors_of_awkward_classes_come_out(error):
    def boom(x):
        raise error

    def run(namespace):
        f = namespace.jit(lambda x: namespace.pure_callback(boom, x, x))
        with pytest.raises(namespace.errors.JaxRuntimeError) as caught:
            namespace.block_until_ready(f(X))
        assert type(caught.value) is namespace.errors.JaxRuntimeError
        return str(caught.value).splitlines()[-1].removesuffix(": ")

    assert run(compare.ours()) == run(compare.theirs())


RETURNS = {
    "shape": (lambda x: np.zeros(2, np.float32), "Incorrect output shape for return value"),
    "dtype": (lambda x: np.zeros(3, np.int32), "Incorrect output dtype for return value"),
    "tree": (lambda x: (x, x), "Mismatched number of outputs from callback"),
    "nothing": (lambda x: None, "Mismatched number of outputs from callback"),
    "a text": (lambda x: "abc", "not a valid JAX array type"),
}


@pytest.mark.parametrize("name", RETURNS)
def test_values_that_cannot_be_results_raise(name):
    function, phrase = RETURNS[name]
    for jitted in (False, True):
        for call in ("pure", "io"):

            def run(namespace, jitted=jitted, call=call):
                result = namespace.ShapeDtypeStruct((3,), np.float32)
                f = namespace.pure_callback if call == "pure" else io(namespace)
                g = lambda x: f(function, result, x)  # noqa: E731
                return namespace.block_until_ready((namespace.jit(g) if jitted else g)(X))

            with pytest.raises(minijax.errors.JaxRuntimeError, match=phrase):
                run(compare.ours())
            with pytest.raises(compare.theirs().errors.JaxRuntimeError, match=phrase):
                run(compare.theirs())


def grad_of(f):
    return lambda jax: jax.grad(lambda x: f(jax, x))(2.0)


MISUSES = {
    "pure jvp": (grad_of(lambda jax, x: jax.pure_callback(np.sin, scalar(jax), x)), "Pure callbacks do not support JVP"),
    "io jvp": (grad_of(lambda jax, x: io(jax)(np.sin, scalar(jax), x)), "IO callbacks do not support JVP"),
    "io transpose": (
        lambda jax: jax.linear_transpose(lambda x: io(jax)(np.sin, scalar(jax), x), 1.0)(1.0), "do not support transpose"),
    "no vmap_method": (
        lambda jax: jax.vmap(lambda x: jax.pure_callback(np.sin, scalar(jax), x))(X), "vmap is only supported"),
    "unknown vmap_method": (
        lambda jax: jax.pure_callback(np.sin, scalar(jax), 1.0, vmap_method="all"), "must be on of the allowed methods"),
    "ordered vmap": (
        lambda jax: jax.vmap(lambda x: io(jax)(np.sin, scalar(jax), x, ordered=True))(X), "Cannot `vmap` ordered"),
    "64 bits": (
        lambda jax: jax.pure_callback(np.sin, jax.ShapeDtypeStruct((), np.float64), 1.0), "64-bit types"),
    "no value": (lambda jax: jax.pure_callback(np.sin, scalar(jax), "a"), "as a JAX value"),
    "sharding": (lambda jax: jax.pure_callback(np.sin, scalar(jax), 1.0, sharding=3), "only supports SingleDeviceSharding"),
    "io under checkpoint": (
        grad_of(lambda jax, x: jax.checkpoint(lambda x: x * io(jax)(np.sin, scalar(jax), 2.0))(x)),
        "Effects not supported in partial-eval of `checkpoint`"),
    "io in vmap of cond": (
        lambda jax: jax.vmap(lambda p, x: jax.lax.cond(p, lambda x: io(jax)(np.sin, scalar(jax), x), lambda x: x, x))(
            np.array([True, False]), X[:2]), "not supported in vmap-of-cond"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISUSES)
def test_misuses_raise_as_in_jax(name):
    run, phrase = MISUSES[name]
    same_error(lambda: run(compare.ours()), lambda: run(compare.theirs()), [phrase])


# ---- life and threads -------------------------------------------------------------------------------


def test_programs_live_as_long_as_their_callers():
    def make():
        def callback(x):
            return x

        f = minijax.jit(lambda x: minijax.pure_callback(callback, x, x))
        minijax.block_until_ready(f(X))
        return f, weakref.ref(callback)

    f, alive = make()
    gc.collect()
    minijax.block_until_ready(f(X))
    assert alive() is not None
    del f
    gc.collect()
    minijax.jit(lambda x: x + 1)(X)  # frees what jaxlib has put by
    gc.collect()
    assert alive() is None


def test_functions_that_differ_in_their_callback_alone_call_their_own():
    make = lambda function: minijax.jit(lambda x: minijax.pure_callback(function, x, x))  # noqa: E731
    for function in (np.sin, np.cos, np.tan):
        np.testing.assert_allclose(make(function)(X), function(X), rtol=1e-5)


def test_a_callback_may_run_programs():
    inner = minijax.jit(lambda x: jnp.sin(x) + 1)

    def callback(x):
        return np.asarray(inner(x) * 2 + minijax.pure_callback(np.cos, x, x))

    f = minijax.jit(lambda x: minijax.pure_callback(callback, x, x) * 3)
    np.testing.assert_allclose(f(X), ((np.sin(X) + 1) * 2 + np.cos(X)) * 3, rtol=1e-5)


def test_a_callback_is_not_traced_by_the_enclosing_trace():
    def callback(x):
        return np.asarray(jnp.asarray(x) + 1)

    def f(x):
        y = minijax.pure_callback(callback, x, np.asarray(X))  # an eager call amid a trace
        with minijax.ensure_compile_time_eval():
            z = minijax.pure_callback(callback, minijax.ShapeDtypeStruct((3,), np.float32), X)
        return x + y + z

    np.testing.assert_array_equal(minijax.jit(f)(X), X * 3 + 2)


def test_ordered_calls_wait_for_those_of_programs_that_still_run():
    calls = []
    note = minijax.jit(lambda x: io(minijax)(lambda x: calls.append(float(x)), None, x, ordered=True))
    show = minijax.jit(lambda x: minijax.debug.callback(lambda x: calls.append(float(x)), x, ordered=True))
    slow = minijax.jit(lambda x: minijax.lax.fori_loop(0, 100, lambda i, c: jnp.tanh(c @ c), x)[0, 0] * 0 + 1)
    for f in (note, show):
        f(np.float32(0))
        minijax.effects_barrier()
        calls.clear()
        f(slow(np.ones((300, 300), np.float32)))
        f(np.float32(2))
        minijax.effects_barrier()
        assert calls == [1.0, 2.0]


def test_threads_order_their_own_effects():
    calls = {}

    def work(name):
        f = minijax.jit(lambda i: io(minijax)(lambda i: calls[name].append(int(i)), None, i, ordered=True))
        for i in range(20):
            f(i)
        minijax.effects_barrier()

    names = ["a", "b", "c"]
    calls.update((name, []) for name in names)
    threads = [threading.Thread(target=work, args=(name,)) for name in names]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    require(all(calls[name] == list(range(20)) for name in names), "order", calls, "0 to 19 each")


@pytest.mark.oracle
@pytest.mark.parametrize("platform", ["tpu", "cuda"])
def test_calls_are_refused_in_programs_for_other_platforms_than_their_backends(platform):
    def program(jax, jnp, lax):
        x = jnp.arange(3.0)

        def call(x):
            return jax.pure_callback(lambda x: x, jax.ShapeDtypeStruct((3,), jnp.float32), x)

        def show(x):
            jax.debug.print("{}", x, ordered=True)

        def elsewhere(x):
            return lax.platform_dependent(x, cpu=call, default=lambda x: x)

        def lower(f):
            return lambda: jax.jit(f).trace(x).lower(lowering_platforms=(platform,)).as_text()

        return lower(call), lower(show), lower(elsewhere)

    of_jax, own = compare.both(program)
    for first, second in zip(of_jax[:2], own[:2], strict=True):
        same_error(first, second, phrases=[f"specified backend cpu is different from the lowering platform {platform}"])
    assert "custom_call" not in of_jax[2]() + own[2]()


AT_THE_END = """
import os, time
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
import minijax as jax, numpy as np

def slow(x):
    for _ in range(10):
        time.sleep(0.01)
    return np.asarray(x)

f = jax.jit(lambda x: jax.pure_callback(slow, jax.ShapeDtypeStruct(x.shape, x.dtype), x))
mesh = jax.sharding.Mesh(np.array(jax.devices()), ("x",))
y = f(jax.device_put(np.ones((2, 2), np.float32), jax.NamedSharding(mesh, jax.P("x"))))
"""


def test_a_process_ends_after_what_it_has_called():
    done = subprocess.run([sys.executable, "-c", AT_THE_END], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
