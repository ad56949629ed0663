"""`jax.debug.print`, `callback` and `log`: texts, order and number are those of jax, under every transformation."""

import contextlib
import gc
import io
import logging
import weakref

import compare
import numpy as np
import pytest
from compare import require, same_error, same_jaxpr

import minijax

X = np.arange(1, 4, dtype=np.float32)


def printed(namespace, program) -> str:
    """The output of a program until its effects have taken place."""
    out = io.StringIO()

    def run(jax):
        with contextlib.redirect_stdout(out):
            jax.block_until_ready(program(jax))
            jax.effects_barrier()

    compare.run_on(namespace, run)
    return out.getvalue()


def shown(jax, **how):
    """The identity, which prints."""

    def f(x):
        jax.debug.print("x={x}", x=x, **how)
        return x

    return f


def squared(jax, **how):
    def f(x):
        y = jax.numpy.sin(x)
        jax.debug.print("{} {y}", x, y=y, **how)
        return y * y

    return f


def with_rules(jax):
    f = jax.custom_vjp(shown(jax))
    f.defvjp(lambda x: (shown(jax)(x), x), lambda x, ct: (shown(jax)(ct * x),))
    g = jax.custom_jvp(shown(jax))
    g.defjvp(lambda p, t: (shown(jax)(p[0] * 2), shown(jax)(t[0] * 3)))
    return jax.grad(f)(2.0), jax.jit(jax.grad(f))(3.0), jax.jvp(g, (2.0,), (1.0,)), jax.grad(g)(4.0)


def in_while(jax, **how):
    show = shown(jax, **how)
    return jax.lax.while_loop(lambda c: show(c) < 3, lambda c: show(c * 10) // 10 + 1, 0)


def in_cond(jax):
    f = jax.jit(lambda p, x: jax.lax.cond(p, lambda x: shown(jax)(x), lambda x: shown(jax)(-x), x))
    return f(True, 1.0), f(False, 1.0)


def twice_ordered(jax):
    f = jax.jit(lambda x: shown(jax, ordered=True)(shown(jax, ordered=True)(x) + 1))
    return [f(float(i)) for i in range(3)]


def rows(jax, f, **how):
    return jax.vmap(f, **how)(jax.numpy.arange(6.0).reshape(3, 2))


PROGRAMS = {
    "eager": lambda jax: shown(jax)(X),
    "jit": lambda jax: jax.jit(shown(jax))(X),
    "jit of jit": lambda jax: jax.jit(lambda x: jax.jit(shown(jax))(x) + jax.jit(shown(jax))(x))(X),
    "ordered": twice_ordered,
    "grad": lambda jax: jax.grad(squared(jax))(2.0),
    "jit of grad": lambda jax: jax.jit(jax.grad(squared(jax)))(2.0),
    "grad of jit": lambda jax: jax.grad(jax.jit(squared(jax)))(2.0),
    "value_and_grad, ordered": lambda jax: jax.value_and_grad(squared(jax, ordered=True))(2.0),
    "jvp": lambda jax: jax.jvp(squared(jax), (2.0,), (1.0,)),
    "linearize": lambda jax: [jax.linearize(squared(jax), 2.0)[1](t) for t in (1.0, 2.0)],
    "checkpoint": lambda jax: jax.grad(jax.checkpoint(squared(jax)))(2.0),
    "hessian": lambda jax: jax.hessian(squared(jax))(2.0),
    "vmap": lambda jax: rows(jax, shown(jax)),
    "vmap, ordered": lambda jax: jax.jit(lambda: rows(jax, shown(jax, ordered=True)))(),
    "vmap of grad": lambda jax: jax.vmap(jax.grad(squared(jax)))(X),
    "vmap along 1": lambda jax: rows(jax, shown(jax), in_axes=1),
    "vmap of vmap": lambda jax: rows(jax, jax.vmap(shown(jax))),
    "scan": lambda jax: jax.lax.scan(lambda c, x: (shown(jax)(c + x), c), 0.0, X),
    "jit of scan, ordered": lambda jax: jax.jit(
        lambda: jax.lax.scan(lambda c, x: (shown(jax, ordered=True)(c + x), c), np.float32(0), X)
    )(),
    "unrolled scan, ordered": lambda jax: jax.jit(
        lambda: jax.lax.scan(lambda c, x: (shown(jax, ordered=True)(c + x), c), np.float32(0), X, unroll=2)
    )(),
    "grad of scan": lambda jax: jax.grad(lambda x: jax.lax.scan(lambda c, y: (squared(jax)(c * y), c), x, X)[0])(0.5),
    "fori_loop": lambda jax: jax.lax.fori_loop(0, 3, lambda i, x: shown(jax)(x + i), 0.0),
    "while": in_while,
    "jit of while, ordered": lambda jax: jax.jit(lambda: in_while(jax, ordered=True))(),
    "cond": in_cond,
    "vmap of cond": lambda jax: jax.vmap(
        lambda p, x: jax.lax.cond(p, lambda x: shown(jax)(x), lambda x: shown(jax)(-x), x)
    )(np.array([True, False]), X[:2]),
    "rules": with_rules,
    "map": lambda jax: jax.lax.map(shown(jax), X),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_prints_are_those_of_jax(name):
    ours, theirs = (printed(namespace, PROGRAMS[name]) for namespace in (compare.ours(), compare.theirs()))
    require(theirs != "" and ours == theirs, "printed", ours, theirs)


def of_values(jax, fmt, *args, **kwargs):
    def f(x):
        jax.debug.print(fmt, x, *args, **kwargs)

    return jax.jit(f)(X), f(X)


FORMATS = {
    "numbers": ("{} {:d} {:.3f} {!r} {}", 3, 2.5, 1j, True),
    "a format of a format": ("{0} {1:{w}} {1:>{w}.1f}", 1.5),
    "named": ("{} {a} {b.shape}",),
    "items": ("{0[0]} {1[k]} {2[1]}", {"k": 3}, [1, 2]),
    "trees": ("{} {}", {"a": X, "b": (1, None, "text")}),
    "strings": ("{} {} {}", "text", None),
    "twice": ("{0} {0}",),
    "a long array": ("{} {}", np.arange(2000)),
    "a wide array": ("{}\n{}", np.linspace(0, 1, 30, dtype=np.float32)),
    "braces": ("{0}: {{0}}",),
}
NAMED = {"a format of a format": {"w": 8}, "named": {"a": 1, "b": X}}


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "braces"])
def test_formats_are_those_of_jax(name):
    fmt, *args = FORMATS[name]
    program = lambda jax: of_values(jax, fmt, *args, **NAMED.get(name, {}))  # noqa: E731
    ours, theirs = (printed(namespace, program) for namespace in (compare.ours(), compare.theirs()))
    require(theirs != "" and ours == theirs, "printed", ours, theirs)


def test_doubled_braces_are_braces():
    # jax takes a format with doubled braces for one without fields.
    assert printed(minijax, lambda jax: of_values(jax, *FORMATS["braces"])) == "[1. 2. 3.]: {0}\n" * 2


def test_print_options_are_those_of_the_trace():
    def program(jax):
        f = jax.jit(lambda x: jax.debug.print("{}", x))
        with np.printoptions(precision=2):
            f(X / 3)
        f(X / 3)

    ours, theirs = (printed(namespace, program) for namespace in (compare.ours(), compare.theirs()))
    require(ours == theirs, "printed", ours, theirs)


def test_keys_print_as_in_jax():
    program = lambda jax: jax.jit(lambda k: jax.debug.print("{}", k))(jax.random.key(2))  # noqa: E731
    ours, theirs = (printed(namespace, program) for namespace in (compare.ours(), compare.theirs()))
    require(ours == theirs, "printed", ours, theirs)


MISUSES = {
    "too few": (lambda jax: jax.debug.print("{} {}", 1), "index"),
    "no name": (lambda jax: jax.debug.print("{x}", 1), "x"),
    "mixed": (lambda jax: jax.debug.print("{} {0}", 1), "cannot switch"),
    "too many": (lambda jax: jax.debug.print("{0}", 1, 2), "Unused positional arguments"),
    "unread name": (lambda jax: jax.debug.print("{x}", x=1, y=2), "Unused keyword arguments"),
    "an open brace": (lambda jax: jax.debug.print("{x", x=1), "expected '}'"),
    "no text": (lambda jax: jax.debug.print(3), "expected str, got int"),
    "no function": (lambda jax: jax.debug.callback(3), "must be callable"),
    "two calls": (lambda jax: jax.debug.print(None, 1, ordered=True)("{}"), "two-call form"),
    "options in the second call": (lambda jax: jax.debug.print(ordered=True)("{}", 1, partitioned=True), "Unused"),
}


@pytest.mark.parametrize("name", MISUSES)
def test_misuses_raise_as_in_jax(name):
    run, phrase = MISUSES[name]
    same_error(lambda: run(compare.ours()), lambda: run(compare.theirs()), [phrase])


def test_jaxprs_are_those_of_jax():
    programs = [
        lambda jax: lambda x: jax.debug.print("{} {y} {}", x, {"a": x}, y=3),
        lambda jax: lambda x: jax.debug.print("{} {x}", x, x="text", ordered=True),
        lambda jax: lambda x: jax.debug.print("plain", partitioned=True),
        lambda jax: lambda x: jax.debug.callback(print, x, ordered=True),
        lambda jax: jax.vmap(lambda x: jax.debug.callback(ordered=False)(print, x, end="")),
        lambda jax: jax.grad(lambda x: squared(jax)(x[0])),
        lambda jax: jax.grad(jax.checkpoint(lambda x: squared(jax)(x[0]))),
        lambda jax: jax.vmap(shown(jax)),
        lambda jax: lambda x: jax.lax.scan(lambda c, y: (shown(jax)(c + y), c), x[0], x),
        lambda jax: lambda x: jax.lax.cond(x[0] > 0, shown(jax), lambda x: x, x),
    ]
    for program in programs:
        same_jaxpr(program, X)
        compare.same_text(program, X)


def test_callbacks_receive_the_arguments_that_jax_passes():
    def program(jax):
        seen = []

        def see(*args, **kwargs):
            seen.append([np.asarray(a).tolist() if hasattr(a, "shape") else a for a in (*args, *kwargs.values())])

        def f(x):
            jax.debug.callback(see, x, "text", None, 1.5, k=(x * 2,)[0])
            jax.debug.callback(ordered=True)(see, x[0])
            return x

        jax.vmap(f)(jax.jit(f)(f(X))[:, None])
        jax.effects_barrier()
        return seen

    compare.same(program)


def test_log_hands_the_text_to_the_logger(caplog):
    f = minijax.jit(lambda x: minijax.debug.log("x={}", x))
    with caplog.at_level(logging.INFO, logger="jax._src.debugging"):
        f(X)
        minijax.effects_barrier()
    assert [(r.name, r.levelname, r.getMessage()) for r in caplog.records] == [
        ("jax._src.debugging", "INFO", "x=[1. 2. 3.]")
    ]
    assert caplog.records[0].pathname == __file__


def test_many_prints_leave_nothing():
    f = minijax.jit(lambda x: minijax.debug.print("{}", x))
    g = minijax.jit(lambda x: minijax.debug.print("{}", x, ordered=True))

    def program(jax):
        for _ in range(2000):
            f(1)
            g(2)

    text = printed(minijax, program)
    require(text.count("\n") == 4000, "lines", text.count("\n"), 4000)
    from minijax.run.programs import tokens

    assert not tokens._by_thread


@pytest.mark.parametrize(
    "make",
    [
        lambda call: minijax.jit(lambda x: minijax.debug.callback(call, x)),
        lambda call: minijax.jit(lambda x: (minijax.debug.callback(call, x, ordered=True), x)[1]),
        lambda call: minijax.jit(minijax.grad(lambda x: (minijax.debug.callback(call, x), x * x)[1])),
        lambda call: minijax.jit(lambda x: (minijax.debug.print("{}", x), call.__name__, x)[2]),
    ],
)
def test_functions_with_effects_die_with_their_last_user(make, capfd):
    def run():
        def call(x):
            pass

        f = make(call)
        f(2.0), f(3.0)
        minijax.effects_barrier()
        return weakref.ref(call)

    dead = run()
    gc.collect()
    minijax.jit(lambda x: x + 1)(2.0)  # frees what jaxlib has put by
    gc.collect()
    assert dead() is None
