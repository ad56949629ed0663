"""Deep programs: long chains, many nested calls, and an end without harm where Python's means end."""

import gc
import subprocess
import sys
import threading

import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.ir.check import check_jaxpr

LONG, NESTED = 100_000, 200


def chain(x):
    for i in range(LONG):
        x = jnp.sin(x) if i % 2 else x * 1.5
    return x


def nest(depth):
    """x -> 2 x + depth, as so many jitted functions inside each other."""

    def f(x):
        return x * 2

    for _ in range(depth):
        f = jax.jit(lambda x, f=f: f(x) + 1)
    return f


def test_a_long_chain_is_traced_printed_checked_lowered_and_dropped():
    traced = jax.jit(chain).trace(1.0)
    jaxpr = traced.jaxpr
    assert len(jaxpr.eqns) == LONG
    assert str(jaxpr).count("= sin ") == str(jaxpr).count("= mul ") == LONG // 2
    check_jaxpr(jaxpr.jaxpr)
    text = traced.lower().as_text()
    assert text.count("stablehlo.sine") == text.count("stablehlo.multiply") == LONG // 2
    del traced, jaxpr
    gc.collect()


@pytest.mark.slow
def test_a_long_chain_is_differentiated():
    traced = jax.jit(jax.grad(chain)).trace(1.0)
    names = [eqn.primitive.name for eqn in traced.jaxpr.eqns]
    assert (names.count("sin"), names.count("cos"), names.count("mul")) == (LONG // 2, LONG // 2, LONG // 2 * 3)
    assert traced.lower().as_text().count("stablehlo.cosine") == LONG // 2


CALLS = {
    "call": (lambda f: f(3.0), 206.0),
    "grad": (lambda f: jax.grad(f)(3.0), 2.0),
    "jvp": (lambda f: jax.jvp(f, (3.0,), (1.0,))[1], 2.0),
    "linearize": (lambda f: jax.linearize(f, 3.0)[1](1.0), 2.0),
    "vmap": (lambda f: jax.vmap(f)(jnp.array([3.0]))[0], 206.0),
    "vmap of grad": (lambda f: jax.vmap(jax.grad(f))(jnp.array([3.0]))[0], 2.0),
    "grad of grad": (lambda f: jax.grad(jax.grad(lambda x: f(x) * x))(3.0), 4.0),
    "grad of checkpoint": (lambda f: jax.grad(jax.checkpoint(f))(3.0), 2.0),
    "jit of grad": (lambda f: jax.jit(jax.grad(f))(3.0), 2.0),
    "scan": (lambda f: jax.lax.scan(lambda c, _: (f(c), None), 3.0, None, length=2)[0], 612.0),
}


@pytest.mark.parametrize("how", CALLS)
def test_two_hundred_nested_jits(how):
    function, expected = CALLS[how]
    limit = sys.getrecursionlimit()
    assert function(nest(NESTED)) == expected
    assert sys.getrecursionlimit() == limit


def test_two_hundred_nested_jits_in_a_thread():
    found = []
    thread = threading.Thread(target=lambda: found.extend(CALLS[how][0](nest(NESTED)) for how in ("call", "grad")))
    thread.start()
    thread.join()
    assert found == [206.0, 2.0]


def test_nested_jits_are_pruned_once_each(monkeypatch):
    from minijax.transforms import prune

    counts = []
    inner = prune._prune_jaxpr
    monkeypatch.setattr(prune, "_prune_jaxpr", lambda *args: counts.append(1) or inner(*args))
    for depth in (10, 40):
        jax.linearize(nest(depth), 3.0)
        counts.append(None)
    short, long = counts.index(None), len(counts) - counts.index(None) - 2
    assert long <= 5 * short


ENDLESS = """
import sys, threading
import minijax as jax, minijax.numpy as jnp
from minijax.ir import state

def jitted(x):
    return jax.jit(lambda y: jitted(y) + 1)(x)

def scanned(x):
    return jax.lax.scan(lambda c, _: (scanned(c), None), x, None, length=2)[0]

def differentiated(x):
    return jax.grad(lambda y: differentiated(y) * y)(x)

def plain(x):
    return jnp.sin(plain(x))

def run(*functions):
    for function in functions:
        try:
            function(1.0)
        except RecursionError:
            assert state.is_eager() and sys.getrecursionlimit() == 1000
            print(jnp.sin(0.0) + jax.jit(lambda x: x + 1)(1.0))

run(jitted, scanned, differentiated, jax.jit(plain), jax.grad(plain))
thread = threading.Thread(target=run, args=(jitted, jax.jit(plain)))
thread.start()
thread.join()
"""


def test_endless_recursion_ends_in_an_error_that_leaves_no_trace_active():
    run = subprocess.run([sys.executable, "-c", ENDLESS], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["2.0"] * 7
