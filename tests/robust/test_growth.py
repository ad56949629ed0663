"""Work grows with the size of a program, not with its square: steps are counted, and memory is compared."""

import subprocess
import sys
import tracemalloc

import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax

NESTED = {
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c) + 1, None), x, None, length=2)[0],
    "checkpoint": lambda f: jax.checkpoint(lambda x: jnp.sin(f(x))),
    "jit": lambda f: jax.jit(lambda x: f(x) + 1),
    "custom_jvp": lambda f: _with_jvp(f),
}


def _with_jvp(f):
    g = jax.custom_jvp(lambda x: f(x) + 1)
    g.defjvp(lambda primals, tangents: (g(*primals), tangents[0]))
    return g


def nest(kind, depth):
    def f(x):
        return x * 2.0

    for _ in range(depth):
        f = NESTED[kind](f)
    return f


def calls_during(function):
    """How many functions of Python are called."""
    counts = [0]

    def count(frame, event, arg):
        counts[0] += event == "call"

    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return counts[0]


@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize("transform", [jax.grad, jax.vmap], ids=["grad", "vmap"])
def test_nested_programs_take_linear_work(kind, transform):
    x = 1.0 if transform is jax.grad else jnp.ones(2)
    _, first, second, third = (  # the first one fills caches
        calls_during(lambda depth=depth: jax.jit(transform(lambda x: nest(kind, depth)(x))).trace(x))
        for depth in (10, 10, 20, 40)
    )
    assert (third - second) < 2.5 * (second - first)


def test_equal_nested_conds_stay_the_same_object_when_nothing_is_dropped():
    def f(x):
        return lax.cond(x > 0, lambda y: lax.cond(y > 1, jnp.sin, jnp.cos, y), lambda y: y, x)

    from minijax.transforms.prune import prune_jaxpr

    jaxpr = jax.make_jaxpr(f)(1.0).jaxpr
    assert prune_jaxpr(jaxpr, (True,))[0] is jaxpr
    loop = jax.make_jaxpr(lambda x: lax.scan(lambda c, _: (jnp.sin(c), c), x, None, length=3))(1.0).jaxpr
    assert prune_jaxpr(loop, (True, True))[0] is loop


@pytest.mark.parametrize("transform", [lambda f: f, jax.grad], ids=["trace", "grad"])
def test_equal_tracebacks_of_a_loop_over_layers_are_one_object(transform):
    def loss(weights, x):
        for w in weights:
            x = jnp.tanh(x @ w)
        return x.sum()

    def tracebacks(layers):
        weights = [jnp.ones((4, 4))] * layers
        jaxpr = jax.jit(transform(loss)).trace(weights, jnp.ones(4)).jaxpr
        return len({id(eqn.traceback) for eqn in jaxpr.eqns}), len(jaxpr.eqns)

    (few, eqns), (many, more_eqns) = tracebacks(5), tracebacks(50)
    assert more_eqns > 5 * eqns and many <= few + 2


MEMORY = """
import gc, importlib, sys, tracemalloc
jax = importlib.import_module(sys.argv[1])
jnp = importlib.import_module(sys.argv[1] + ".numpy")

def trace(layers):
    weights = [(jnp.ones((8, 8)), jnp.ones(8)) for _ in range(layers)]

    def loss(weights, x):
        for w, b in weights:
            x = x + jax.nn.gelu(x @ w + b)
        return jnp.mean(x)

    gc.collect()
    tracemalloc.start()
    traced = jax.jit(loss).trace(weights, jnp.ones((2, 8)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak, traced

trace(3)
print(trace(1000)[0])
"""


def peak_of(implementation):
    command = [sys.executable, "-c", MEMORY, implementation]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.mark.oracle
def test_tracing_a_thousand_layers_takes_at_most_half_of_the_memory_that_jax_takes():
    assert peak_of("minijax") <= 0.5 * peak_of("jax")


def test_memory_of_a_trace_is_linear_in_its_operations():
    def peak(count):
        def f(x):
            for _ in range(count):
                x = jnp.sin(x)
            return x

        tracemalloc.start()
        traced = jax.make_jaxpr(f)(1.0)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(traced.eqns) == count
        return most

    peak(10)
    assert peak(4000) < 4.5 * peak(1000)


def test_marks_of_running_computations_are_not_searched_one_by_one():
    from minijax.base import cache

    pending, looked_at = cache._Pending(), [0]

    class Counted(dict):
        def items(self):
            for item in super().items():
                looked_at[0] += 1
                yield item

    pending._running = Counted()

    def compute(depth):
        return depth and pending.once(depth, lambda: cache._MISS, lambda: compute(depth - 1))

    compute(100)
    assert looked_at[0] <= 300 and not pending._running
