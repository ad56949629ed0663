"""Tangents of integers, of dtype float0, as results of calls of every kind."""

import importlib

import compare
import numpy as np
import pytest


def _pushed(jax, f, x):
    tangents = np.ones(2, np.float32), np.zeros(2, jax.dtypes.float0)
    return jax.vmap(jax.linearize(f, x, 2)[1])(*tangents)


TANGENTS_OF_INTEGERS = {
    "rows of a linear function": lambda jax, f, x: _pushed(jax, f, x)[1],
    "a pullback": lambda jax, f, x: jax.vjp(f, x, 2)[1]((1.5, np.zeros((), jax.dtypes.float0)))[1],
    "a pushforward": lambda jax, f, x: jax.jvp(f, (x, 2), (x, np.zeros((), jax.dtypes.float0)))[1][1],
}
CALLS = {
    "as a jaxpr": lambda jax, f: lambda x: jax.extend.core.jaxpr_as_fun(jax.make_jaxpr(f)(x))(x),
    "checkpoint": lambda jax, f: jax.checkpoint(f),
    "jit": lambda jax, f: jax.jit(f),
    "cond": lambda jax, f: lambda x: jax.lax.cond(True, f, f, x),
    "vmap": lambda jax, f: lambda x: jax.vmap(f, axis_size=2, in_axes=None)(x),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("tangent", TANGENTS_OF_INTEGERS)
def test_tangents_of_integers_leave_calls_that_run_at_once(call, tangent):
    def results(jax):
        importlib.import_module(f"{jax.__name__}.extend.core")
        made = CALLS[call](jax, lambda x: TANGENTS_OF_INTEGERS[tangent](jax, jax.jit(lambda a, b: (a, b)), x))(1.5)
        return jax.tree.map(lambda t: (type(np.asarray(t)).__name__, np.shape(t), t.dtype.names is not None), made)

    compare.same(results)


@pytest.mark.parametrize("make", ["zeros", "zeros_like", "ones", "full", "empty"])
def test_zeros_of_dtype_float0_are_recorded(make):
    def function(jax):
        jnp, dtype = jax.numpy, jax.dtypes.float0
        calls = {
            "zeros_like": lambda shape: jnp.zeros_like(np.zeros(shape, dtype)),
            "full": lambda shape: jnp.full(shape, 0, dtype),
        }
        call = calls.get(make, lambda shape: getattr(jnp, make)(shape, dtype))
        return lambda x: jax.lax.cond(x > 0, lambda: (call((3,)), call(())), lambda: (call((3,)), call(())))

    compare.same_jaxpr(function, 1.0)
