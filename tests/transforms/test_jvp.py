"""Forward mode, shown: next to each operation is another that computes its tangent."""

from inspect import cleandoc

import minijax as jax
import minijax.numpy as jnp
from minijax import lax


def f(x, y):
    return jnp.sin(x) * y


def test_the_function_itself():
    assert (
        str(jax.make_jaxpr(f)(1.0, 2.0))
        == "{ lambda ; a:f32[] b:f32[]. let c:f32[] = sin a; d:f32[] = mul c b in (d,) }"
    )


def test_each_operation_is_followed_by_that_of_its_tangent():
    def pushed(x, y, dx, dy):
        return jax.jvp(f, (x, y), (dx, dy))

    assert str(jax.make_jaxpr(pushed)(1.0, 2.0, 1.0, 1.0)) == cleandoc("""
        { lambda ; a:f32[] b:f32[] c:f32[] d:f32[]. let
            e:f32[] = sin a
            f:f32[] = cos a
            g:f32[] = mul c f
            h:f32[] = mul e b
            i:f32[] = mul g b
            j:f32[] = mul e d
            k:f32[] = add_any i j
          in (h, k) }
    """)


def test_values_without_tangents_add_no_operations():
    def pushed(x, dx):
        return jax.jvp(lambda x: f(x, 2.0), (x,), (dx,))

    assert str(jax.make_jaxpr(pushed)(1.0, 1.0)) == cleandoc("""
        { lambda ; a:f32[] b:f32[]. let
            c:f32[] = sin a
            d:f32[] = cos a
            e:f32[] = mul b d
            f:f32[] = mul c 2.0:f32[]
            g:f32[] = mul e 2.0:f32[]
          in (f, g) }
    """)


def test_a_loop_carries_the_tangent_as_one_more_value():
    def power(x):
        return lax.scan(lambda y, _: (y * x, None), 1.0, None, length=3)[0]

    def pushed(x, dx):
        return jax.jvp(power, (x,), (dx,))

    # (x, y) -> (x, dx, y, dy)
    assert str(jax.make_jaxpr(power)(2.0)) == cleandoc("""
        { lambda ; a:f32[]. let
            b:f32[] = scan[
              jaxpr={ lambda ; c:f32[] d:f32[]. let e:f32[] = mul d c in (e,) }
              length=3
              num_carry=1
              num_consts=1
              reverse=False
              unroll=1
            ] a 1.0:f32[]
          in (b,) }
    """)
    assert str(jax.make_jaxpr(pushed)(2.0, 1.0)) == cleandoc("""
        { lambda ; a:f32[] b:f32[]. let
            c:f32[] d:f32[] = scan[
              jaxpr={ lambda ; e:f32[] f:f32[] g:f32[] h:f32[]. let
                  i:f32[] = mul g e
                  j:f32[] = mul h e
                  k:f32[] = mul g f
                  l:f32[] = add_any j k
                in (i, l) }
              length=3
              num_carry=2
              num_consts=2
              reverse=False
              unroll=1
            ] a b 1.0:f32[] 0.0:f32[]
          in (c, d) }
    """)
