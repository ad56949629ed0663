"""Calls with attributes for XLA: jaxprs, modules and values under every transformation, compared with jax."""

import concurrent.futures
import importlib
import re
import threading

import compare
import numpy as np
import pytest
from compare import Case

import minijax
import minijax.numpy as jnp
from minijax.experimental import scheduling_groups
from minijax.experimental.compute_on import compute_on, compute_on2
from minijax.experimental.scheduling_groups import scheduling_group, xla_metadata_call

X = np.arange(3, dtype=np.float32)
Device, Host = minijax.memory.Space.Device, minijax.memory.Space.Host


def tagged(jax):
    """A decorator of calls with metadata."""
    return importlib.import_module(f"{jax.__name__}.experimental.scheduling_groups").xla_metadata_call(a="b")


def on(jax, spaces=lambda space: space.Device, compute_type="device_host", options=None):
    """A decorator of calls that are computed elsewhere."""
    module = importlib.import_module(f"{jax.__name__}.experimental.compute_on")
    spaces = spaces(jax.memory.Space)
    return module.compute_on2(compute_type=compute_type, out_memory_spaces=spaces, compiler_options=options)


# name -> a function of (jax, jnp, mark) and its arguments; `mark` makes calls of either kind
OF_BOTH = {
    "call": (lambda jax, jnp, mark: mark(lambda x: jnp.sin(x) * 2), X),
    "twice": (lambda jax, jnp, mark: (lambda f: lambda x: f(f(x)))(mark(jnp.sin)), X),
    "tree": (lambda jax, jnp, mark: mark(lambda t: {"k": t["a"] * 2, "n": None}), {"a": X, "b": X}),
    "no argument": (lambda jax, jnp, mark: mark(lambda: 1.0),),
    "no result": (lambda jax, jnp, mark: lambda x: (mark(lambda x: ())(x), x), X),
    "empty": (lambda jax, jnp, mark: mark(lambda x: x + 1), X[:0]),
    "array captured": (lambda jax, jnp, mark: mark(lambda x: x * np.array([4.0, 2.0, 9.0], np.float32)), X),
    "tracer captured": (lambda jax, jnp, mark: lambda y: mark(lambda x: x * y * np.float32(2))(jnp.sin(y)), X),
    "jit inside": (lambda jax, jnp, mark: mark(jax.jit(lambda x: jnp.sin(x) * 2)), X),
    "jit outside": (lambda jax, jnp, mark: jax.jit(mark(lambda x: jnp.sin(x) * 2)), X),
    "unused": (lambda jax, jnp, mark: lambda x: mark(lambda x, y: (x, jnp.sin(y)))(x, x)[0], X),
    "grad": (lambda jax, jnp, mark: jax.grad(lambda x: mark(lambda x: jnp.sin(x) * 2)(x).sum()), X),
    "grad of both": (lambda jax, jnp, mark: jax.grad(lambda x, y: mark(lambda x, y: x * y * x)(x, y).sum(), (0, 1)), X, X),
    "a result is a residual": (lambda jax, jnp, mark: jax.grad(lambda x: mark(jnp.exp)(x).sum()), X),
    "an argument is a result": (lambda jax, jnp, mark: lambda x: jax.vjp(mark(lambda x: (jnp.sin(x) * x, x)), x)[1]((x, x)), X),
    "custom rule": (lambda jax, jnp, mark: jax.grad(lambda x: mark(jax.nn.relu)(x).sum()), X),
    "jvp": (lambda jax, jnp, mark: lambda x: jax.jvp(mark(lambda x: (x, x * 2, 1.0)), (x,), (x,)), X),
    "jvp of grad": (lambda jax, jnp, mark: lambda x: jax.jvp(jax.grad(lambda x: mark(jnp.sin)(x).sum()), (x,), (x,)), X),
    "linearize": (lambda jax, jnp, mark: lambda x: jax.linearize(mark(lambda x: jnp.sin(x) * 2), x)[1](x), X),
    "transpose": (lambda jax, jnp, mark: lambda x: jax.linear_transpose(mark(lambda x: x * 3), x)(x), X),
    "integers": (lambda jax, jnp, mark: jax.grad(lambda x: mark(lambda x, i: (x * i, i))(x, np.int32(2))[0]), 1.0),
    "vmap": (lambda jax, jnp, mark: jax.vmap(mark(lambda x, y: (x.sum(), x * y, 3.0)), (0, None), (0, 0, None)), np.ones((2, 3), np.float32), 2.0),
    "vmap of grad": (lambda jax, jnp, mark: jax.vmap(jax.grad(mark(lambda x, y: x * y * x)), (0, None)), X, 2.0),
    "collective": (lambda jax, jnp, mark: jax.vmap(mark(lambda x: jax.lax.psum(x, "i")), axis_name="i"), X),
    "position": (lambda jax, jnp, mark: jax.vmap(mark(lambda x: jax.lax.axis_index("i")), axis_name="i"), X),
    "scan": (lambda jax, jnp, mark: jax.grad(lambda x: jax.lax.scan(lambda c, _: (mark(lambda c: jnp.sin(c) * c)(c), None), x, None, length=2)[0].sum()), X),
    "cond": (lambda jax, jnp, mark: mark(lambda x: jax.lax.cond(x[0] > 0, jnp.sin, jnp.cos, x)), X),
    "checkpoint": (lambda jax, jnp, mark: jax.grad(lambda x: jax.checkpoint(mark(lambda x: jnp.sin(x) * 2))(x).sum()), X),
    "policy": (lambda jax, jnp, mark: jax.grad(lambda x: jax.checkpoint(lambda x: mark(lambda c: jnp.sin(c @ c.T))(jnp.cos(x)), policy=jax.checkpoint_policies.dots_saveable)(x).sum()), np.ones((2, 2), np.float32)),
    "grad of jit": (lambda jax, jnp, mark: lambda x: jax.linearize(lambda x: jax.jit(lambda x, y: mark(lambda x, y: (jnp.sin(x), y * y))(x, y))(x, 3.0), x)[1](x), X),
}  # fmt: skip

OTHERS = {
    "in a context": (lambda jax, jnp: scoped(jax, "device_host", tagged(jax)(jnp.sin)), X),
    "elsewhere in a context": (lambda jax, jnp: scoped(jax, "device", on(jax)(jnp.sin)), X),
    "nested": (lambda jax, jnp: tagged(jax)(lambda x: tagged(jax)(on(jax)(jnp.sin))(x) + 1), X),
    "keywords": (lambda jax, jnp: lambda x: tagged(jax)(lambda a, b=1: a * b)(x, b=x), X),
    "device": (lambda jax, jnp: on(jax, compute_type="device")(jnp.sin), X),
    "sparsecore": (lambda jax, jnp: on(jax, compute_type="tpu_sparsecore", options={"b": 1, "a": [True]})(jnp.sin), X),
    "stream": (lambda jax, jnp: on(jax, compute_type="gpu_stream:1")(lambda x: x + 1), X),
    "host": (lambda jax, jnp: on(jax, lambda space: space.Host)(jnp.sin), X),
    "memories": (lambda jax, jnp: on(jax, lambda s: {"a": s.Device, "b": s.Host})(lambda x: {"a": x, "b": (x, 2.0)}), X),
    "jvp": (lambda jax, jnp: lambda x: jax.jvp(on(jax, lambda s: s.Host)(jnp.sin), (x,), (x,)), X),
    "vmap": (lambda jax, jnp: jax.vmap(on(jax, lambda s: s.Host)(jnp.sin)), X),
    "from the host": (lambda jax, jnp: lambda x: on(jax)(jnp.sin)(jax.device_put(x, jax.memory.Space.Host)), X),
}  # fmt: skip


def scoped(jax, compute_type, f):
    context = importlib.import_module(f"{jax.__name__}.experimental.compute_on").compute_on

    def within(x):
        with context(compute_type):
            return f(x)

    return within


def attributed(program, args):
    """The operations of the text that have attributes for XLA, and these."""

    def attributes(jax, jnp):
        text = jax.jit(program(jax, jnp)).lower(*args).as_text()
        pattern = r"(?:call @(\w+?)|(stablehlo\.\w+)|\}\))(?:_\d+)?\b.*(mhlo\.frontend_attributes = \{.*?\})"
        return sorted({found for found in re.findall(pattern, text) if found[1] != "stablehlo.convert"})

    return attributes


def check(name, program, args):
    compare.check(Case(name, program, args))
    compare.same(attributed(program, args))


@pytest.mark.oracle
@pytest.mark.parametrize("name", OF_BOTH)
def test_calls_with_metadata_are_traced_and_lowered_as_in_jax(name):
    program, *args = OF_BOTH[name]
    check(name, lambda jax, jnp: program(jax, jnp, tagged(jax)), tuple(args))


@pytest.mark.oracle
@pytest.mark.parametrize("name", sorted(OF_BOTH.keys() - {"transpose"}))  # where jax leaves a call of nothing behind
def test_calls_that_are_computed_elsewhere_are_traced_and_lowered_as_in_jax(name):
    program, *args = OF_BOTH[name]
    check(name, lambda jax, jnp: program(jax, jnp, on(jax)), tuple(args))


@pytest.mark.oracle
@pytest.mark.parametrize("name", OTHERS)
def test_contexts_options_and_memories_are_those_of_jax(name):
    program, *args = OTHERS[name]
    check(name, program, tuple(args))


@pytest.mark.oracle
@pytest.mark.parametrize("host", [False, True])
def test_results_have_the_requested_shardings(host):
    def where(jax, jnp):
        f = on(jax, lambda space: space.Host if host else space.Device)(jnp.sin)
        results = f(X), jax.jit(f)(X)
        return [(y.sharding.memory_kind, y.committed) for y in results]

    assert compare.same(where) == [("pinned_host" if host else "device", True)] * 2


def test_effects_take_place_inside_a_call(capsys):
    def f(x):
        xla_metadata_call(lambda x: minijax.debug.print("got {}", x), a="b")(x)
        return x

    minijax.jit(f)(2.0)
    minijax.effects_barrier()
    assert capsys.readouterr().out == "got 2.0\n"


@pytest.mark.parametrize(
    "mark", [xla_metadata_call(a="b"), compute_on2(compute_type="device_host", out_memory_spaces=None)]
)
def test_references_are_written_inside_a_call(mark):
    def f(x):
        r = minijax.new_ref(x)
        mark(lambda r: r.__setitem__(0, 5.0))(r)
        return r[...]

    for run in (f, minijax.jit(f)):
        assert run(jnp.arange(3.0)).tolist() == [5.0, 1.0, 2.0]


def test_a_group_is_an_attribute_of_its_call():
    text = minijax.jit(scheduling_group("g0")(lambda x: x + 1)).lower(X).as_text()
    assert text.count('{mhlo.frontend_attributes = {scheduling_group = "g0"}}') == 1
    assert scheduling_groups.xla_metadata_call_p.name == "xla_metadata_call"


def test_a_function_is_traced_once_for_equal_arguments():
    count = 0

    @xla_metadata_call(a="b")
    def f(x):
        nonlocal count
        count += 1
        return x

    minijax.jit(lambda x: f(f(x)))(X), f(X), f(X)
    assert count == 1


def misuses():
    space = Device
    yield TypeError, "callable", lambda: xla_metadata_call(3, a="b")
    yield TypeError, "jaxpr", lambda: xla_metadata_call(jnp.sin, jaxpr="b")(X)
    yield TypeError, "unhashable", lambda: xla_metadata_call(jnp.sin, a=[1])
    yield NotImplementedError, "a=1", lambda: xla_metadata_call(jnp.sin, a=1)(X)
    yield TypeError, "not a valid JAX type", lambda: xla_metadata_call(jnp.sin, a="b")("text")
    yield TypeError, "not a valid JAX type", lambda: xla_metadata_call(lambda x: "text", a="b")(X)
    for kind, error in (("gpu", ValueError), (3, TypeError)):
        yield error, "compute", lambda kind=kind: compute_on2(jnp.sin, compute_type=kind, out_memory_spaces=space)
    for spaces, error in ((None, TypeError), ("device", TypeError), ((space, space), ValueError)):
        f = compute_on2(jnp.sin, compute_type="device", out_memory_spaces=spaces)
        yield error, "out_memory_spaces", lambda f=f: f(X)
    inner = compute_on2(jnp.sin, compute_type="device", out_memory_spaces=space)
    outer = compute_on2(lambda x: inner(x), compute_type="device_host", out_memory_spaces=space)
    yield ValueError, "Nesting `compute_on`", lambda: outer(X)


@pytest.mark.parametrize("error, phrase, call", list(misuses()))
def test_misuse_raises(error, phrase, call):
    with pytest.raises(error, match=phrase):
        call()


def test_calls_of_one_compute_type_nest():
    inner = compute_on2(jnp.sin, compute_type="device_host", out_memory_spaces=Host)
    outer = compute_on2(lambda x: inner(x), compute_type="device_host", out_memory_spaces=Device)
    with compute_on("device_host"):
        assert np.allclose(outer(X), np.sin(X))


def test_threads_trace_the_same_call_simultaneously():
    both = threading.Barrier(2, timeout=20)

    @compute_on2(compute_type="device_host", out_memory_spaces=Device)
    def f(x):
        both.wait()
        return jnp.sin(x)

    def trace(size):
        closed = minijax.make_jaxpr(f)(np.ones(size, np.float32))
        outside = minijax.make_jaxpr(jnp.cos)(1.0).eqns[0].ctx.compute_type
        return closed.eqns[0].params["jaxpr"].eqns[0].ctx.compute_type, outside

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert list(pool.map(trace, (2, 3))) == [("device_host", None)] * 2
