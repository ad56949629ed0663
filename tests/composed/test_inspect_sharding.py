"""`debug.inspect_array_sharding` of values that are being traced: the shardings that callbacks receive, and when."""

import gc
import weakref

import numpy as np
import pytest
from compare import same
from mesh_language import side

import minijax

CASES = """
jit(seen)(a)
jit(seen)(jnp.ones((8, 8)))
jit(lambda x: seen(x @ x.T) * 2)(a)
jit(lambda x: seen(seen(x).sum(0)))(a)
jit(grad(lambda x: seen(x).sum()))(a)
jit(vmap(seen))(a)
jit(lambda x: jax.jvp(seen, (x,), (x,)))(a)
jit(lambda x: lax.scan(lambda c, _: (seen(c), None), x, None, length=2))(a)
jit(lambda x: lax.cond(x.sum() > 0, seen, jnp.sin, x))(a)
jit(seen, out_shardings=on('y'))(v)
jit(lambda x: jax.lax.with_sharding_constraint(seen(x), on('y')))(v)
jit(jax.checkpoint(seen))(a)
seen(a)
seen({'a': [a, v]})
grad(lambda x: seen(x).sum())(v)
vmap(seen)(a)
jit(seen)(jnp.ones(3))
[jit(seen)(a), jit(seen)(a)]
jaxpr(seen, a)
jaxpr(vmap(lambda x: jax.vjp(seen, x)[1](x)), a)
""".strip().splitlines()


@pytest.mark.oracle
@pytest.mark.parametrize("case", CASES)
def test_shardings_are_those_of_jax(case):
    def program(jax):
        s, calls = side(jax.__name__), []

        def seen(x):
            jax.debug.inspect_array_sharding(x, callback=calls.append)
            return x

        found = eval(case, {**vars(s), "jit": jax.jit, "grad": jax.grad, "vmap": jax.vmap, "seen": seen})
        text = found if isinstance(found, str) else [x.shape for x in jax.tree.leaves(found)]
        return [str(sharding) for sharding in calls], text

    assert same(program)[0] or "jaxpr" in case


def test_it_is_reported_once_for_each_compilation():
    s, calls = side("minijax"), []

    def f(x):
        minijax.debug.inspect_array_sharding(x, callback=calls.append)
        return x * 2

    g = minijax.jit(f)
    g(s.a), g(s.a)
    assert [sharding.spec for sharding in calls] == [s.P("x", "y")]
    g(s.v)
    assert len(calls) == 2
    minijax.jit(lambda x: f(x))(s.v)  # another function of the same text
    assert len(calls) == 3


def test_its_errors_are_propagated_and_leave_nothing_behind():
    s = side("minijax")

    class Wrong(Exception):
        pass

    def fail(sharding):
        raise Wrong(str(sharding))

    f = minijax.jit(lambda x: minijax.debug.inspect_array_sharding(x, callback=fail))
    with pytest.raises(minijax.errors.JaxRuntimeError, match="Wrong: .*Sharding"):
        f(s.a)
    with pytest.raises(Wrong, match="Sharding"):
        f(np.ones(3, np.float32))
    with pytest.raises(minijax.errors.JaxRuntimeError):
        f(s.a)
    assert minijax.jit(lambda x: x + 1)(s.v).shape == (8,)


def test_the_callback_lives_no_longer_than_the_function():
    s = side("minijax")

    def run():
        callback = lambda sharding: None  # noqa: E731
        minijax.jit(lambda x: minijax.debug.inspect_array_sharding(x, callback=callback))(s.a)
        return weakref.ref(callback)

    dead = run()
    gc.collect()
    minijax.jit(lambda x: x + 1)(s.v)  # frees what jaxlib has put by
    gc.collect()
    assert dead() is None
