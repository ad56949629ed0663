"""The order in which XLA computes values: jaxprs and modules, compared with jax."""

import importlib

import compare
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.experimental.control_deps import control_dep, schedule

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def order(jax, *ops):
    importlib.import_module(f"{jax.__name__}.experimental.control_deps").schedule(ops)


def two(jax, jnp):
    def f(x):
        a, b = jnp.sin(x), jnp.cos(x)
        order(jax, a, b, 2.0)
        return a + b

    return f


def custom(jax, jnp):
    f = jax.custom_jvp(two(jax, jnp))
    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    return jax.grad(lambda x: f(x).sum())


PROGRAMS = {
    "two": two,
    "jit": lambda jax, jnp: lambda x: jax.jit(two(jax, jnp))(x) * 2,
    "loop": lambda jax, jnp: lambda x: jax.lax.fori_loop(0, 2, lambda i, c: two(jax, jnp)(c), x),
    "branch": lambda jax, jnp: lambda x: jax.lax.cond(x[0, 0] > 0, two(jax, jnp), jnp.sin, x),
    "checkpoint": lambda jax, jnp: jax.checkpoint(two(jax, jnp)),
    "custom rule": custom,
    "beside a derivative": lambda jax, jnp: jax.grad(lambda x: order(jax, 1, 2) or x.sum()),
    "beside a batch": lambda jax, jnp: jax.vmap(lambda x: order(jax, 1, 2) or x),
    "one": lambda jax, jnp: lambda x: order(jax, x) or x,
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", PROGRAMS)
def test_orders_are_traced_and_lowered_as_in_jax(name):
    # XLA for CPUs ends the process for such a call in a function that is called.
    compare.same_jaxpr(PROGRAMS[name], X)
    compare.same_text(PROGRAMS[name], X)
    text = minijax.jit(PROGRAMS[name](minijax, jnp)).lower(X).as_text()
    assert ("@control_dep" in text) == (name != "one")


def test_arrays_outside_of_programs_pass():
    x = jnp.ones(3)
    assert control_dep(x, x + 1) == () and schedule([]) is None and schedule([x, minijax.random.key(0)]) is None


def test_misuse_raises():
    f = two(minijax, jnp)
    with pytest.raises(ValueError, match="`control_dep` cannot be differentiated"):
        minijax.grad(lambda x: f(x).sum())(X)
    with pytest.raises(NotImplementedError, match="vmap is only supported for the ffi_call primitive"):
        minijax.vmap(f)(X)
    for wrong in ("text", None, {"a": X}):
        with pytest.raises(TypeError, match="valid JAX type"):
            control_dep(wrong, X)
    with pytest.raises(TypeError):
        schedule(3)


def itself(x):
    control_dep(x, x)


def two_of_each_other(x):
    a, b, c = jnp.sin(x), jnp.cos(x), x + 1
    schedule([a, b, c, a])


def inside_a_batch(x):
    minijax.vmap(lambda y: two_of_each_other(x), axis_size=2)(x)


def operand_after_result(x):
    control_dep(jnp.cos(jnp.sin(x)), x)
    return x


@pytest.mark.parametrize("f", [itself, two_of_each_other, inside_a_batch, operand_after_result])
def test_cycles_raise_where_xla_might_crash(f):
    with pytest.raises(minijax.errors.JaxRuntimeError, match="cycle"):
        minijax.jit(f)(X)
