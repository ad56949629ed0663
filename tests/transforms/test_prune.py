"""Pruning: what nothing reads goes, and what stays as it is stays the same object."""

import gc
import weakref

import minijax as jax
import minijax.numpy as jnp
from minijax.transforms.prune import prune_closed, prune_jaxpr


def test_a_jaxpr_without_dead_equations_is_returned_itself_and_not_kept_alive():
    closed = jax.make_jaxpr(lambda x: jax.jit(jnp.sin)(x) * 2)(1.0)
    assert prune_jaxpr(closed.jaxpr, (True,))[0] is closed.jaxpr
    assert prune_closed(closed, (True,)) == (closed, (True,))
    alive = weakref.ref(closed.jaxpr)
    del closed
    gc.collect()
    assert alive() is None


def test_dead_equations_inputs_and_constants_go():
    captured = jnp.arange(20.0)
    closed = jax.make_jaxpr(lambda x, y: (jnp.sin(x), y + captured))(1.0, jnp.zeros(20))
    pruned, used = prune_closed(closed, (True, False))
    assert used == (True, False) and pruned.consts == [] and [e.primitive.name for e in pruned.eqns] == ["sin"]


def test_an_inner_call_keeps_only_the_results_that_are_read():
    def f(x):
        return jax.jit(lambda x: (jnp.sin(x), jnp.cos(x)))(x)[0]

    pruned, _ = prune_closed(jax.make_jaxpr(f)(1.0), (True,))
    assert [e.primitive.name for e in pruned.eqns[0].params["jaxpr"].eqns] == ["sin"]
