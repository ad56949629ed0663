"""Linearizing, shown: what depends on the primals alone is computed once, and a program of tangents alone is left."""

from inspect import cleandoc

import minijax as jax
import minijax.numpy as jnp
from minijax import lax


def f(x, y):
    return jnp.sin(x) * y


def test_the_linear_program_reads_tangents_and_residuals():
    _, push = jax.linearize(f, 1.0, 2.0)
    # Before the semicolon are the residuals cos(x), y and sin(x); those that are plain numbers are literals.
    assert str(jax.make_jaxpr(push)(1.0, 1.0)) == cleandoc("""
        { lambda a:f32[] b:f32[]; c:f32[] d:f32[]. let
            e:f32[] = mul c a
            f:f32[] = mul e 2.0:f32[]
            g:f32[] = mul b d
            h:f32[] = add_any f g
          in (h,) }
    """)


def test_the_primal_program_comes_first_and_holds_all_that_is_not_linear():
    def linearized(x, y, dx, dy):
        result, push = jax.linearize(f, x, y)
        return result, push(dx, dy)

    assert str(jax.make_jaxpr(linearized)(1.0, 2.0, 1.0, 1.0)) == cleandoc("""
        { lambda ; a:f32[] b:f32[] c:f32[] d:f32[]. let
            e:f32[] = sin a
            f:f32[] = cos a
            g:f32[] = mul e b
            h:f32[] = mul c f
            i:f32[] = mul h b
            j:f32[] = mul e d
            k:f32[] = add_any i j
          in (g, k) }
    """)


def test_a_loop_becomes_a_loop_of_primals_that_stacks_residuals_and_a_linear_loop():
    def thrice(x):
        return lax.scan(lambda y, _: (jnp.sin(y), None), x, None, length=3)[0]

    def linearized(x, dx):
        return jax.linearize(thrice, x)[1](dx)

    assert str(jax.make_jaxpr(linearized)(2.0, 1.0)) == cleandoc("""
        { lambda ; a:f32[] b:f32[]. let
            _:f32[] c:f32[3] = scan[
              jaxpr={ lambda ; d:f32[]. let e:f32[] = sin d; f:f32[] = cos d in (e, f) }
              length=3
              num_carry=1
              num_consts=0
              reverse=False
              unroll=1
            ] a
            g:f32[] = scan[
              jaxpr={ lambda ; h:f32[] i:f32[]. let j:f32[] = mul h i in (j,) }
              length=3
              num_carry=1
              num_consts=0
              reverse=False
              unroll=1
            ] b c
          in (g,) }
    """)
