"""`debug.inspect_array_sharding` of values that are being traced: the shardings that callbacks receive, and when."""

import gc
import weakref

import numpy as np
import pytest
from compare import same
from given import given
from mesh_language import side

import minijax

CASES = [
    lambda jit, seen, a: jit(seen)(a),
    lambda jit, seen, jnp: jit(seen)(jnp.ones((8, 8))),
    lambda jit, seen, a: jit(lambda x: seen(x @ x.T) * 2)(a),
    lambda jit, seen, a: jit(lambda x: seen(seen(x).sum(0)))(a),
    lambda jit, grad, seen, a: jit(grad(lambda x: seen(x).sum()))(a),
    lambda jit, vmap, seen, a: jit(vmap(seen))(a),
    lambda jit, seen, jax, a: jit(lambda x: jax.jvp(seen, (x,), (x,)))(a),
    lambda jit, seen, lax, a: jit(lambda x: lax.scan(lambda c, _: (seen(c), None), x, None, length=2))(a),
    lambda jit, seen, jnp, lax, a: jit(lambda x: lax.cond(x.sum() > 0, seen, jnp.sin, x))(a),
    lambda jit, seen, v, on: jit(seen, out_shardings=on("y"))(v),
    lambda jit, seen, jax, v, on: jit(lambda x: jax.lax.with_sharding_constraint(seen(x), on("y")))(v),
    lambda jit, seen, jax, a: jit(jax.checkpoint(seen))(a),
    lambda seen, a: seen(a),
    lambda seen, a, v: seen({"a": [a, v]}),
    lambda grad, seen, v: grad(lambda x: seen(x).sum())(v),
    lambda vmap, seen, a: vmap(seen)(a),
    lambda jit, seen, jnp: jit(seen)(jnp.ones(3)),
    lambda jit, seen, a: [jit(seen)(a), jit(seen)(a)],
    lambda seen, a, jaxpr: jaxpr(seen, a),
    lambda vmap, seen, jax, a, jaxpr: jaxpr(vmap(lambda x: jax.vjp(seen, x)[1](x)), a),
]


@pytest.mark.oracle
@pytest.mark.parametrize("case", CASES)
def test_shardings_are_those_of_jax(case):
    def program(jax):
        s, calls = side(jax.__name__), []

        def seen(x):
            jax.debug.inspect_array_sharding(x, callback=calls.append)
            return x

        found = given(case, {**vars(s), "jit": jax.jit, "grad": jax.grad, "vmap": jax.vmap, "seen": seen})
        text = found if isinstance(found, str) else [x.shape for x in jax.tree.leaves(found)]
        return [str(sharding) for sharding in calls], text

    shardings, text = same(program)
    assert shardings or isinstance(text, str)


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
