"""Transposing, shown: a linear program run backwards, where each read of a value becomes a term of its cotangent."""

from inspect import cleandoc

import numpy as np

import minijax as jax
import minijax.numpy as jnp

V = np.ones(3, np.float32)


def linear(x):
    return jnp.sum(x) * 3.0 + x[0]


def test_operations_come_in_reverse_and_cotangents_of_a_value_read_twice_are_added():
    assert str(jax.make_jaxpr(linear)(V)) == cleandoc("""
        { lambda ; a:f32[3]. let
            b:f32[] = reduce_sum[axes=(0,) out_sharding=None] a
            c:f32[] = mul b 3.0:f32[]
            d:f32[1] = slice[limit_indices=(1,) start_indices=(0,) strides=None] a
            e:f32[] = squeeze[dimensions=(0,)] d
            f:f32[] = add c e
          in (f,) }
    """)
    assert str(jax.make_jaxpr(jax.linear_transpose(linear, V))(1.0)) == cleandoc("""
        { lambda ; a:f32[]. let
            b:f32[1] = broadcast_in_dim a
            c:f32[3] = pad[padding_config=((0, 2, 0),)] b 0.0:f32[]
            d:f32[] = mul a 3.0:f32[]
            e:f32[3] = broadcast_in_dim d
            f:f32[3] = add_any c e
          in (f,) }
    """)


def test_reverse_mode_is_the_transpose_of_the_linear_program():
    def f(x, y):
        return jnp.sin(x) * y

    def pulled(x, y, ct):
        result, pull = jax.vjp(f, x, y)
        return result, pull(ct)

    # The primal program, as it is linearized, then mul and mul of the linear program from the last to the first.
    assert str(jax.make_jaxpr(pulled)(1.0, 2.0, 1.0)) == cleandoc("""
        { lambda ; a:f32[] b:f32[] c:f32[]. let
            d:f32[] = sin a
            e:f32[] = cos a
            f:f32[] = mul d b
            g:f32[] = mul d c
            h:f32[] = mul c b
            i:f32[] = mul h e
          in (f, i, g) }
    """)
