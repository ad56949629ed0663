"""Tracers that outlive their transformation are refused wherever they turn up, and found on request."""

import gc
import weakref

import compare
import numpy as np
import pytest

import minijax
from minijax import lax
from minijax.errors import UnexpectedTracerError

pytestmark = [pytest.mark.oracle, pytest.mark.usefixtures("few_objects")]


# Transformations that leak a tracer: each takes the modules and a function that stores the tracer


def _stores(store, x):
    store(x * 2)
    return x


MAKERS = {
    "jit": lambda jax, store: jax.jit(lambda x: _stores(store, x))(1.0),
    "jit's argument": lambda jax, store: jax.jit(lambda x: store(x) or x)(1.0),
    "grad": lambda jax, store: jax.grad(lambda x: _stores(store, x))(1.0),
    "jvp": lambda jax, store: jax.jvp(lambda x: _stores(store, x), (1.0,), (1.0,)),
    "linearize": lambda jax, store: jax.linearize(lambda x: _stores(store, x), 1.0),
    "vmap": lambda jax, store: jax.vmap(lambda x: _stores(store, x))(np.ones(2, np.float32)),
    "scan": lambda jax, store: jax.lax.scan(lambda c, x: (_stores(store, c), x), 0.0, np.ones(3)),
    "while": lambda jax, store: jax.lax.while_loop(lambda c: c < 3, lambda c: _stores(store, c) + 1, 0.0),
    "cond": lambda jax, store: jax.lax.cond(True, lambda c: _stores(store, c), lambda c: c, 0.0),
    "fori": lambda jax, store: jax.lax.fori_loop(0, 3, lambda i, c: _stores(store, c) + 1, 0.0),
    "checkpoint": lambda jax, store: jax.checkpoint(lambda x: _stores(store, x))(1.0),
    "make_jaxpr": lambda jax, store: jax.make_jaxpr(lambda x: _stores(store, x))(1.0),
    "eval_shape": lambda jax, store: jax.eval_shape(lambda x: _stores(store, x), 1.0),
    "grad of jit": lambda jax, store: jax.grad(jax.jit(lambda x: _stores(store, x)))(1.0),
    "vmap of grad": lambda jax, store: jax.vmap(jax.grad(lambda x: _stores(store, x)))(np.ones(2)),
}

# Uses of a tracer afterwards

USES = {
    "an operator": lambda jax, jnp, t: t + 1,
    "a function": lambda jax, jnp, t: jnp.sin(t),
    "an argument of jit": lambda jax, jnp, t: jax.jit(lambda x: x)(t),
    "captured by jit": lambda jax, jnp, t: jax.jit(lambda x: x + t)(1.0),
    "captured by grad": lambda jax, jnp, t: jax.grad(lambda x: x * t)(1.0),
    "captured by vmap": lambda jax, jnp, t: jax.vmap(lambda x: x * t)(jnp.ones(2)),
    "captured by scan": lambda jax, jnp, t: jax.lax.scan(lambda c, x: (c + t, x), 0.0, jnp.ones(2)),
    "returned by jit": lambda jax, jnp, t: jax.jit(lambda x: t)(1.0),
    "returned by vmap": lambda jax, jnp, t: jax.vmap(lambda x: t)(jnp.ones(2)),
    "in an array": lambda jax, jnp, t: jnp.array([t, 1.0]),
    "if": lambda jax, jnp, t: 1 if t > 0 else 2,
}
EVERYWHERE = ("an operator", "captured by jit", "if")
PAIRS = [(maker, use) for maker in MAKERS for use in USES if maker in ("jit", "grad", "vmap") or use in EVERYWHERE]


def used_later(maker, use):
    def program(jax, jnp):
        kept = []
        MAKERS[maker](jax, kept.append)
        return USES[use](jax, jnp, kept[0])

    return program


@pytest.mark.parametrize(("maker", "use"), PAIRS, ids=[f"{maker}: {use}" for maker, use in PAIRS])
def test_an_escaped_tracer_is_refused(maker, use):
    program = used_later(maker, use)
    compare.same_error(
        lambda: compare.run_on(compare.ours(), program),
        lambda: compare.run_on(compare.theirs(), program),
        ["Encountered an unexpected tracer", "side effect"],
    )


def _to_an_outer_jit(jax):
    kept = []

    @jax.jit
    def outer(x):
        jax.jit(lambda y: kept.append(y) or y)(x)
        return kept[0] + 1

    return outer(1.0)


def _from_vmap_to_jit(jax):
    def outer(x):
        kept = []
        jax.vmap(lambda y: kept.append(y) or y)(x)
        return kept[0] + 1

    return jax.jit(outer)(np.ones(3))


def _from_scan_to_grad(jax):
    def outer(x):
        kept = []
        jax.lax.scan(lambda c, y: (kept.append(c) or c, y), x, np.ones(2))
        return kept[0] + x

    return jax.grad(outer)(1.0)


@pytest.mark.parametrize("program", [_to_an_outer_jit, _from_vmap_to_jit, _from_scan_to_grad])
def test_a_tracer_that_escapes_to_an_outer_trace_is_refused(program):
    compare.same_error(
        lambda: program(compare.ours()), lambda: program(compare.theirs()), ["Encountered an unexpected tracer"]
    )


def test_the_message_names_the_function_and_the_line():
    with pytest.raises(UnexpectedTracerError) as found:
        used_later("jit", "an operator")(minijax, minijax.numpy)
    assert "The function being traced when the value leaked was <lambda> at " in str(found.value)
    assert "traced for jit" in str(found.value)
    assert "was created on line " in str(found.value) and "(_stores)" in str(found.value)


@pytest.mark.parametrize("maker", MAKERS)
def test_checking_leaks_finds_the_leaks_that_jax_finds(maker):
    def program(jax):
        kept = []
        with jax.checking_leaks():
            MAKERS[maker](jax, kept.append)

    found = compare.same(lambda jax: compare.ended(lambda: program(jax), ["Leaked"]))
    assert found == "returned" or "Leaked" in found


def test_a_leak_is_shown_with_the_line_that_made_it():
    kept = []
    with minijax.checking_leaks(), pytest.raises(Exception, match=r"Leaked trace .*") as found:
        MAKERS["jit"](minijax, kept.append)
    assert "test_leaks.py" in str(found.value) and "(_stores)" in str(found.value)


def test_checking_leaks_accepts_programs_that_leak_nothing():
    def layer(c, x):
        return lax.cond(x > 0, lambda v: v * 2, lambda v: v, c), c

    def loss(x):
        y, ys = lax.scan(layer, x, np.ones(3, np.float32))
        z = minijax.checkpoint(minijax.jit(lambda v: v * v))(y)
        return lax.fori_loop(0, 3, lambda i, c: c * 0.5, z).sum() + ys.sum()

    with minijax.checking_leaks():
        x = np.ones((2, 3), np.float32)
        got = minijax.jit(minijax.vmap(minijax.value_and_grad(loss)))(x)
        minijax.hessian(lambda v: (v**3).sum())(x[0])
        minijax.make_jaxpr(minijax.grad(loss))(x[0])
        minijax.vjp(loss, x[0])[1](np.float32(1))
        minijax.linearize(loss, x[0])[1](x[0])
    assert np.isfinite(got[0]).all()


KEPT_TRACES = {
    "jit": lambda jax, jnp, keep: jax.jit(keep)(1.0),
    "vmap": lambda jax, jnp, keep: jax.vmap(keep)(jnp.ones(2)),
    "grad": lambda jax, jnp, keep: jax.grad(keep)(1.0),
    "scan": lambda jax, jnp, keep: jax.lax.scan(lambda c, x: (keep(c), x), 1.0, jnp.ones(2)),
    "make_jaxpr": lambda jax, jnp, keep: str(jax.make_jaxpr(keep)(1.0)),
}


@pytest.mark.parametrize("maker", KEPT_TRACES)
def test_a_trace_may_be_kept_without_its_tracers(maker):
    def program(jax, jnp):
        kept = []
        with jax.checking_leaks():
            return KEPT_TRACES[maker](jax, jnp, lambda x: kept.append(x._trace) or x * 2)

    compare.same(program)


def test_finished_traces_and_their_arrays_are_freed():
    class Marked(dict):
        """A dict that can be watched."""

    def traced(x):
        held = Marked(x=x)
        watched.append(weakref.ref(held))
        return held["x"] * 2

    watched = []
    minijax.jit(traced)(1.0)
    minijax.grad(traced)(1.0)
    minijax.vmap(traced)(np.ones(2))
    lax.scan(lambda c, x: (traced(c), x), 1.0, np.ones(2))
    gc.collect()
    assert len(watched) >= 4 and not any(ref() for ref in watched)


def test_first_calls_leave_nothing_for_the_garbage_collector():
    jit, vmap = minijax.jit, minijax.vmap
    calls = [jit(lambda x: x * 2.5), jit(vmap(lambda x: x + 3.25)), vmap(lambda x: x * 4.5),
             jit(minijax.grad(lambda x: (lax.sin(x) * 7.5).sum())), jit(lambda x: lax.scan(lambda c, y: (c + y, c), 0.0, x)),
             jit(lambda x: lax.cond(x.sum() > 0, lambda x: x, lambda x: -x, x))]  # fmt: skip
    x = minijax.numpy.ones(5)
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for call in calls:
            call(x)
        gc.collect()
        assert [type(o) for o in gc.garbage] == []
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
