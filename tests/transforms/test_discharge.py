"""Discharging, shown: a program of references becomes one of values, with the last of each as a result."""

from inspect import cleandoc

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.transforms.discharge import discharge_jaxpr


def test_reads_and_writes_become_operations_and_a_reference_a_value_that_comes_and_goes():
    def add_to(ref, x):
        ref[...] = ref[...] + x
        return ref[0]

    closed = jax.make_jaxpr(add_to)(jax.new_ref(jnp.zeros(3)), np.float32(2))
    assert str(closed) == cleandoc("""
        { lambda ; a:Ref{f32[3]} b:f32[]. let
            c:f32[3] <- a[...]
            d:f32[3] = add c b
            a[...] <- d
            e:f32[] <- a[0]
          in (e,) }
    """)
    assert str(discharge_jaxpr(closed)) == cleandoc("""
        { lambda ; a:f32[3] b:f32[]. let
            c:f32[3] = add a b
            d:f32[1] = slice[limit_indices=(1,) start_indices=(0,) strides=None] c
            e:f32[] = squeeze[dimensions=(0,)] d
          in (e, c) }
    """)


def test_a_reference_that_the_program_makes_leaves_no_trace():
    def doubled(x):
        ref = jax.new_ref(x)
        ref[...] = ref[...] * 2
        return ref[...]

    closed = jax.make_jaxpr(doubled)(np.float32(1))
    assert str(closed) == cleandoc("""
        { lambda ; a:f32[]. let
            b:Ref{f32[]} = new_ref[kind=None memory_space=None] a
            c:f32[] <- b[...]
            d:f32[] = mul c 2.0:f32[]
            b[...] <- d
            e:f32[] <- b[...]
          in (e,) }
    """)
    assert str(discharge_jaxpr(closed)) == cleandoc("""
        { lambda ; a:f32[]. let b:f32[] = mul a 2.0:f32[] in (b,) }
    """)


def test_a_reference_that_a_loop_writes_becomes_a_carry():
    def total(xs):
        ref = jax.new_ref(np.float32(0))

        def add(_, x):
            ref[...] += x
            return None, None

        lax.scan(add, None, xs)
        return ref[...]

    closed = jax.make_jaxpr(total)(np.ones(3, np.float32))
    assert str(closed) == cleandoc("""
        { lambda ; a:f32[3]. let
            b:Ref{f32[]} = new_ref[kind=None memory_space=None] 0.0:f32[]
            scan[
              jaxpr={ lambda ; c:Ref{f32[]} d:f32[]. let
                  e:f32[] <- c[...]
                  f:f32[] = add e d
                  g:f32[], c[...] <- c[...], f
                in () }
              length=3
              num_carry=0
              num_consts=1
              reverse=False
              unroll=1
            ] b a
            h:f32[] <- b[...]
          in (h,) }
    """)
    assert str(discharge_jaxpr(closed)) == cleandoc("""
        { lambda ; a:f32[3]. let
            b:f32[] = scan[
              jaxpr={ lambda ; c:f32[] d:f32[]. let e:f32[] = add c d in (e,) }
              length=3
              num_carry=1
              num_consts=0
              reverse=False
              unroll=1
            ] 0.0:f32[] a
          in (b,) }
    """)


def test_each_of_several_references_comes_back_with_its_own_value():
    def count_and_add(count, total, x):
        total[...] = total[...] + x
        count[...] = count[...] + 1
        return x

    count, total = jax.new_ref(np.int32(0)), jax.new_ref(jnp.zeros(2))
    for x in (1.0, 2.0):
        jax.jit(count_and_add)(count, total, jnp.full(2, x))
    assert count[...] == 2
    assert total[...].tolist() == [3.0, 3.0]
