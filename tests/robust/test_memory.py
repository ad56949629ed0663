"""Dropped objects are freed: functions, traces, programs; memory does not grow with the number of functions."""

import gc
import weakref

import memory
import numpy as np
import pytest
from processes import run_python

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.base import cache
from minijax.run.arrays import pending
from minijax.run.clients import client
from minijax.run.programs import compile
from minijax.run.programs.compile import compile_count

X = np.arange(1, 4, dtype=np.float32)


def executables():
    compile.finish()  # a thread that compiles a program holds it, and so does an array that nobody has read
    pending.run_all()
    gc.collect()
    return len(client.default_client().live_executables())


# Growth, in a separate process

LAMBDAS = """
def work(i):
    minijax.jit(lambda x: x * 2 + 1)(x)
"""
GRADIENTS = """
def work(i):
    def loss(w, y):
        return jnp.sum(jnp.tanh(w * (i + 0.5)) * y + w**2 * float(i))

    minijax.jit(minijax.grad(loss))(x, x)
"""
EAGER = """
def work(i):
    def loss(w):
        return lax.scan(lambda c, a: (jnp.sin(c) * a, c), 1.0, w)[0] + lax.cond(w[0] > i, jnp.sum, jnp.max, w)

    minijax.vmap(minijax.grad(loss))(x[None])
    x.at[0].set(i)[1:]
"""
METHODS = """
class Model:
    def __init__(self, scale):
        self.scale = jnp.full((50_000,), scale)
        self.step = minijax.jit(lambda x: x + self.scale[0])
        self.jitted = minijax.jit(self.method)

    def method(self, x):
        return x * self.scale[1]

def work(i):
    model = Model(float(i % 2))
    model.step(x), model.jitted(x)
"""
KINDS = {
    "lambdas": (LAMBDAS, 1000, 10_000),
    "gradients": (GRADIENTS, 100, 1000),
    "eager": (EAGER, 100, 2000),
    "methods": (METHODS, 100, 1000),
}
MEASURED = """
import gc, sys
import minijax, minijax.numpy as jnp
from minijax import lax

x = jnp.arange(3.0)
def resident():
    gc.collect()
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS"))
{work}
count = int(sys.argv[1])
for i in range(count):
    work(i)
    if i == count // 5:
        early = resident()
print(resident() - early, len(minijax.devices()[0].client.live_executables()))
"""


def _bounded(kind, count):
    growth, live = map(float, run_python(MEASURED.format(work=KINDS[kind][0]), count).split())
    assert growth < 30, f"{growth} MiB for {count} {kind}"
    assert live < 150


@pytest.mark.parametrize("kind", KINDS)
def test_memory_does_not_grow_with_the_number_of_functions(kind):
    _bounded(kind, KINDS[kind][1])


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_memory_does_not_grow_with_a_large_number_of_functions(kind):
    _bounded(kind, KINDS[kind][2])


# Each launch leaves the traceback of its call in jaxlib, as long as the stack is deep.
CALLS = """
import gc
import minijax, minijax.numpy as jnp
from minijax import lax
from minijax.sharding import NamedSharding, PartitionSpec

minijax.config.update("jax_num_cpu_devices", 2)
x, pair = jnp.arange(4.0), minijax.jit(lambda x: (x, x * 2))
over_two = minijax.device_put(x, NamedSharding(minijax.make_mesh((2,), ("i",)), PartitionSpec("i")))
one, two, tree = minijax.jit(lambda x: x * 2), minijax.jit(lambda x, y: x * y), minijax.jit(lambda p: p["a"])
calls = {
    "one": lambda: one(x), "two": lambda: two(x, y=x), "pair": lambda: pair(x), "tree": lambda: tree({"a": x}),
    "compiled": lambda f=one.lower(x).compile(): f(x),
    "operator": lambda: x + x, "lax": lambda: lax.add(x, x), "moved": lambda: x.reshape(2, 2),
    "polled": lambda: x.is_ready(), "several devices": lambda: one(over_two), "collective": lambda: jnp.sum(over_two),
}
def resident():
    with open("/proc/self/statm") as status:
        return int(status.read().split()[1]) / 256

def repeat(call, depth=60):
    if depth:
        return repeat(call, depth - 1)
    for _ in range(1000):
        call()
    before = resident()
    for _ in range(8000):
        call()
    return resident() - before

gc.disable()
print({name: grown for name, call in calls.items() if (grown := repeat(call)) > 4})
"""


def test_memory_does_not_grow_with_the_number_of_calls():
    assert run_python(CALLS).strip() == "{}"


# Functions


class Bag:
    """Something that a function holds, and that can be watched."""


def _uses():
    """Ways to use a function that holds a bag; each returns what must die with the function."""
    rule = lambda f: minijax.custom_jvp(f)  # noqa: E731

    def with_rule(f):
        g = rule(f)
        g.defjvp(lambda primals, tangents: (g(primals[0]), f(tangents[0])))
        return minijax.jit(minijax.grad(lambda x: g(x).sum()))(X)

    def with_vjp(f):
        g = minijax.custom_vjp(f)
        g.defvjp(lambda x: (f(x), x), lambda x, ct: (f(ct),))
        return minijax.jit(minijax.grad(lambda x: g(x).sum()))(X)

    return {
        "jit": lambda f: minijax.jit(f)(X),
        "jit, several shapes": lambda f: [minijax.jit(f)(np.ones(n)) for n in range(3)],
        "jit of grad": lambda f: minijax.jit(minijax.grad(lambda x: f(x).sum()))(X),
        "grad": lambda f: minijax.grad(lambda x: f(x).sum())(X),
        "grad of jit": lambda f: minijax.grad(lambda x: minijax.jit(f)(x).sum())(X),
        "vmap of jit": lambda f: minijax.vmap(minijax.jit(f))(X),
        "vjp": lambda f: minijax.vjp(f, X)[1](X),
        "linearize": lambda f: minijax.linearize(f, X)[1](X),
        "scan": lambda f: lax.scan(lambda c, x: (f(c), x), X, X),
        "grad of scan": lambda f: minijax.grad(lambda x: lax.scan(lambda c, a: (f(c), a), x, X)[0].sum())(X),
        "scan by itself": lambda f: lax.scan((lambda c, x, f=f: (f(c), x)), X, X),
        "cond": lambda f: lax.cond(True, f, lambda x: x, X),
        "switch": lambda f: lax.switch(1, [lambda x: x, f, f], X),
        "while": lambda f: lax.while_loop(lambda x: x.sum() < 50, f, X),
        "fori": lambda f: lax.fori_loop(0, 3, lambda i, x: f(x), X),
        "checkpoint": lambda f: minijax.grad(lambda x: minijax.checkpoint(f)(x).sum())(X),
        "checkpoint in jit": lambda f: minijax.jit(minijax.grad(lambda x: minijax.checkpoint(f)(x).sum()))(X),
        "custom_jvp": with_rule,
        "custom_vjp": with_vjp,
        "make_jaxpr": lambda f: minijax.make_jaxpr(f)(X),
        "eval_shape": lambda f: minijax.eval_shape(f, X),
        "lower": lambda f: minijax.jit(f).lower(X).compile(),
        "jit in jit": lambda f: minijax.jit(lambda x: minijax.jit(f)(x) + 1)(X),
        "jit in vmap of grad": lambda f: minijax.vmap(minijax.grad(minijax.jit(lambda x: f(x).sum())))(X),
        "jit in scan in jit": lambda f: minijax.jit(lambda x: lax.scan(lambda c, a: (minijax.jit(f)(c), a), x, x)[0])(
            X
        ),
        "cond in grad in jit": lambda f: minijax.jit(minijax.grad(lambda x: lax.cond(x[0] > 0, f, jnp.sin, x).sum()))(
            X
        ),
        "while in jit": lambda f: minijax.jit(lambda x: lax.while_loop(lambda y: f(y)[0] < 9, f, x))(X),
        "map": lambda f: lax.map(f, X),
        "associative_scan": lambda f: lax.associative_scan(lambda a, b: f(a) + b, X),
        "linear solve": lambda f: lax.custom_linear_solve(lambda x: x * 2, X, lambda g, b: f(b), symmetric=True),
        "hessian": lambda f: minijax.hessian(lambda x: (f(x) ** 3).sum())(X),
        "a static argument": lambda f: minijax.jit(lambda g, x: g(x), static_argnums=0)(f, X),
        "a partial": lambda f: minijax.jit(minijax.tree_util.Partial(f))(X),
        "an argument": lambda f: minijax.jit(lambda p, x: p(x))(minijax.tree_util.Partial(f), X),
        "a failing jit": _failing,
    }


def _failing(f):
    with pytest.raises(ZeroDivisionError):
        minijax.jit(lambda x: f(x) / (1 // 0))(X)


@pytest.mark.parametrize("use", _uses())
def test_a_dropped_function_is_freed_with_its_captured_values(use):
    def make():
        bag, big = Bag(), jnp.ones(5000)

        def f(x):
            assert bag
            return x * 2.375 + big[0]

        _uses()[use](f)
        return weakref.ref(f), weakref.ref(bag), weakref.ref(big)

    make()
    before, refs = executables(), make()
    assert executables() <= before
    assert [ref() for ref in refs] == [None] * 3


def test_a_bound_method_that_is_jitted_dies_with_its_object():
    class Model:
        def __init__(self):
            self.weights = jnp.ones(1000)
            self.step = minijax.jit(self.run)

        def run(self, x):
            return x + self.weights[0]

    def make():
        model = Model()
        model.step(X)
        return weakref.ref(model), weakref.ref(model.weights)

    refs = make()
    gc.collect()
    assert [ref() for ref in refs] == [None] * 2


def test_a_static_argument_is_kept_no_longer_than_the_function():
    class Options:
        """Hashable, and can be watched."""

    def make():
        f = minijax.jit(lambda o, x: x + 1, static_argnums=0)
        options = Options()
        f(options, X)
        return f, weakref.ref(options)

    f, options = make()
    del f
    gc.collect()
    assert options() is None


# Programs


def _program(i):
    return minijax.jit(lambda x: x * (1.0 + i) - 0.123)


def test_programs_of_dropped_functions_are_freed():
    before = executables()
    functions = [_program(i) for i in range(100)]
    for f in functions:
        f(X)
    assert executables() >= 100
    del f, functions
    # The last ones are kept for functions that are made anew again and again.
    assert executables() <= before + compile._loaded._keep
    minijax.clear_caches()
    assert executables() <= before


def test_a_program_in_use_is_found_however_many_came_after_it():
    f = _program(1001)
    f(X)
    for i in range(compile._loaded._keep + 10):
        _program(2000 + i)(X)
    before = compile_count()
    assert _program(1001)(X).tolist() == f(X).tolist()
    assert compile_count() == before


def test_programs_that_are_made_anew_in_turn_are_not_compiled_anew():
    for i in range(20):
        _program(5000 + i)(X)
    before = compile_count()
    for _ in range(10):
        for i in range(20):
            _program(5000 + i)(X)
    assert compile_count() == before


def test_dropped_arguments_of_weak_caches_drop_their_jaxprs():
    def make():
        closed = minijax.make_jaxpr(lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x))(X)
        minijax.jit(minijax.grad(lambda x: minijax.extend.core.jaxpr_as_fun(closed)(x)[0].sum()))(X)
        return weakref.ref(closed)

    ref = make()
    gc.collect()
    assert ref() is None


def test_caches_hold_no_more_after_many_functions_than_after_a_few():
    def work(i):
        f = minijax.jit(lambda x: lax.scan(lambda c, a: (c * a + i, c), 1.0, x)[0])
        minijax.vmap(minijax.grad(f))(X[None])

    def entries():
        gc.collect()
        return sum(len(store) for store in list(cache._registry))

    for i in range(10):
        work(i)
    before = entries()
    for i in range(30):
        work(100 + i)
    # Three things grow, up to their bounds: the printed constants, the last executables, and the last structures of jaxprs.
    assert entries() - before <= 3 * 30


# The process that runs the tests


def test_programs_of_earlier_tests_are_dropped_once_the_process_has_grown(monkeypatch):
    f = _program(7001)
    f(X)
    monkeypatch.setattr(memory, "_floor", memory.resident())
    memory.drop_after_growth()
    assert f._cache_size() == 1
    monkeypatch.setattr(memory, "resident", lambda: memory._floor + memory.GROWTH + 1)
    memory.drop_after_growth()
    assert f._cache_size() == 0 == executables()
