"""Partial evaluation, shown: what is known is computed ahead, what is not waits; checkpoints compute it again."""

from inspect import cleandoc

import minijax as jax
import minijax.numpy as jnp


def f(x):
    return jnp.sin(jnp.sin(x))


def test_without_a_checkpoint_residuals_are_kept_from_the_forward_pass():
    def pulled(x, ct):
        return jax.vjp(f, x)[1](ct)

    assert str(jax.make_jaxpr(pulled)(1.0, 1.0)) == cleandoc("""
        { lambda ; a:f32[] b:f32[]. let
            c:f32[] = sin a
            d:f32[] = cos a
            _:f32[] = sin c
            e:f32[] = cos c
            f:f32[] = mul b e
            g:f32[] = mul f d
          in (g,) }
    """)


def test_a_checkpoint_keeps_inputs_alone_and_computes_the_residuals_again():
    def pulled(x, ct):
        return jax.vjp(jax.checkpoint(f), x)[1](ct)

    assert str(jax.make_jaxpr(pulled)(1.0, 1.0)) == cleandoc("""
        { lambda ; a:f32[] b:f32[]. let
            c:f32[] = sin a
            _:f32[] = sin c
            d:f32[] = remat2[
              differentiated=True
              jaxpr={ lambda ; e:f32[] f:f32[]. let
                  g:f32[] = sin e
                  h:f32[] = cos e
                  i:f32[] = cos g
                  j:f32[] = mul f i
                  k:f32[] = mul j h
                in (k,) }
              policy=None
              prevent_cse=True
            ] a b
          in (d,) }
    """)


def test_a_policy_says_what_is_known_to_the_backward_pass_all_the_same():
    def pulled(x, ct):
        save_all = jax.checkpoint(f, policy=jax.checkpoint_policies.everything_saveable)
        return jax.vjp(save_all, x)[1](ct)

    assert str(jax.make_jaxpr(pulled)(1.0, 1.0)) == cleandoc("""
        { lambda ; a:f32[] b:f32[]. let
            c:f32[] = sin a
            d:f32[] = cos a
            _:f32[] = sin c
            e:f32[] = cos c
            f:f32[] = remat2[
              differentiated=True
              jaxpr={ lambda ; g:f32[] h:f32[] i:f32[]. let
                  j:f32[] = mul i h
                  k:f32[] = mul j g
                in (k,) }
              policy=<function everything_saveable at 0xXXXXXXXXXXXX>
              prevent_cse=True
            ] d e b
          in (f,) }
    """)


def test_a_call_is_cut_into_one_of_what_is_known_and_one_of_tangents():
    def call(x, y):
        return jax.jit(lambda x, y: jnp.sin(x) * jnp.exp(y))(x, y)

    def linearized(x, y, dx):
        result, push = jax.linearize(lambda x: call(x, y), x)
        return result, push(dx)

    assert str(jax.make_jaxpr(linearized)(1.0, 2.0, 1.0)) == cleandoc("""
        { lambda ; a:f32[] b:f32[] c:f32[]. let
            d:f32[] e:f32[] f:f32[] = jit[
              name=<lambda>
              jaxpr={ lambda ; a:f32[] b:f32[]. let
                  g:f32[] = sin a
                  e:f32[] = cos a
                  f:f32[] = exp b
                  d:f32[] = mul g f
                in (d, e, f) }
            ] a b
            h:f32[] = jit[
              name=<lambda>
              jaxpr={ lambda ; e:f32[] f:f32[] c:f32[]. let
                  i:f32[] = mul c e
                  h:f32[] = mul i f
                in (h,) }
            ] e f c
          in (d, h) }
    """)
