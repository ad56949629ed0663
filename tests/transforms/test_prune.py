"""Pruning: what nothing reads goes, and what stays as it is stays the same object."""

import gc
import weakref
from inspect import cleandoc

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


def test_a_pruned_program_as_text():
    closed = jax.make_jaxpr(lambda x, y: (jnp.sin(x) * 2, jnp.cos(jnp.exp(y))))(1.0, 2.0)
    assert str(closed) == cleandoc("""
        { lambda ; a:f32[] b:f32[]. let
            c:f32[] = sin a
            d:f32[] = mul c 2.0:f32[]
            e:f32[] = exp b
            f:f32[] = cos e
          in (d, f) }
    """)
    pruned, used = prune_closed(closed, (True, False))
    assert used == (True, False)
    assert str(pruned) == cleandoc("""
        { lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b 2.0:f32[] in (c,) }
    """)


def test_an_equation_with_an_effect_stays_though_nobody_reads_its_results():
    def write(ref, x):
        ref[...] = x
        jnp.sin(x)

    closed = jax.make_jaxpr(write)(jax.new_ref(jnp.zeros(2)), jnp.ones(2))
    pruned, used_inputs = prune_jaxpr(closed.jaxpr, ())
    assert [eqn.primitive.name for eqn in closed.eqns] == ["swap", "sin"]
    assert [eqn.primitive.name for eqn in pruned.eqns] == ["swap"]
    assert used_inputs == (True, True)
