"""`shard_alike`: two values that the compiler lays out alike."""

import re

import numpy as np
import pytest
from compare import both
from mesh_language import same, same_errors, side

pytestmark = pytest.mark.oracle


def alike(s):
    return __import__(f"{s.jax.__name__}.experimental.shard_alike", fromlist=["shard_alike"]).shard_alike


def ones(s):
    return s.jnp.ones((8, 8))


def text(s):
    """The program's text, with the groups of values numbered from 0."""

    def lowered(f, *args):
        found = s.text(f, *args)
        numbers = {n: i for i, n in enumerate(dict.fromkeys(re.findall(r"group_id=(\d+)", found)))}
        return re.sub(r"group_id=(\d+)", lambda m: f"group_id={numbers[m[1]]}", found)

    return lowered


GIVEN = {"alike": alike, "ones": ones, "grouped": text}


def test_values_lie_alike():
    same("""
        alike(a, ones), alike(ones, a)
        jax.jit(alike)(a, ones)
        jax.jit(lambda x, y: alike(x * 2, y + 1))(a, ones)
        jax.jit(lambda x, y: alike(x, y)[1] @ y)(a, ones)
        jax.jit(alike)({'p': a, 'q': [v]}, {'p': ones, 'q': [jnp.zeros(8)]})
        alike(jnp.ones(3), np.zeros(3, np.float32)), alike(2., 3)
        alike(a.astype('bfloat16'), ones.astype('int8'))
        alike(random.key(0), random.key(1)), alike([None, v], [None, v])
        jax.jit(jax.shard_map(alike, mesh=m, in_specs=(P('x'), P('x')), out_specs=P('x')))(a, ones)
    """, **GIVEN)  # fmt: skip


def test_derivatives_and_batches_lie_alike():
    same("""
        jax.jvp(alike, (a, ones), (a, ones))
        jax.jvp(lambda x: alike(x, jnp.ones((8, 8), int)), (a,), (a,))[1][0]
        jax.grad(lambda x: alike(x, jnp.ones((8, 8), int))[0].sum())(a)
        jax.jit(jax.vmap(alike, (0, None)))(a, v)
    """, **GIVEN)  # fmt: skip


def test_jaxprs_and_texts_are_those_of_jax():
    same("""
        jaxpr(alike, a, ones), jaxpr(alike, 2., 3), jaxpr(alike, {'a': a, 'b': v}, {'a': ones, 'b': v})
        jaxpr(lambda x, y: jax.jvp(alike, (x, y), (x, y)), a, ones)
        jaxpr(lambda x, y: jax.jvp(lambda x: alike(x, y), (x,), (x,)), a, ones)
        jaxpr(lambda x, y, ct: jax.vjp(alike, x, y)[1](ct), a, ones, (a, a))
        jaxpr(lambda x, y: jax.linear_transpose(alike, x, y)((x, y)), a, ones)
        [jaxpr(jax.vmap(alike, axes), a, ones) for axes in ((0, 0), (1, 1), (0, 1), (1, 0))]
        jaxpr(jax.vmap(alike, (0, None)), a, v), jaxpr(jax.vmap(alike, (None, 1)), v, a)
        jaxpr(jax.vmap(lambda z: alike(v, v)), a)
        jaxpr(jax.shard_map(alike, mesh=m, in_specs=(P('x'), P()), out_specs=P('x')), a, a[:2])
        grouped(lambda x, y: alike(x * 2, y + 1), a, ones), grouped(alike, ones, ones)
        grouped(lambda x, y: alike(x, y)[0], a, ones)
        grouped(alike, random.split(random.key(0), 8), random.split(random.key(0), 8))
        grouped(jax.shard_map(alike, mesh=m, in_specs=(P('x'), P('x')), out_specs=P('x')), a, ones)
    """, **GIVEN)  # fmt: skip


def test_what_it_refuses():
    same_errors([
        ("alike(v, a)", "The leaves shapes of `x` and `y` should match"),
        ("alike(jnp.ones(3), jnp.ones((3, 1)))", "The leaves shapes of `x` and `y` should match"),
        ("alike((v,), [v])", "Trees should be equal"),
        ("alike('a', 'b')", "is not a valid JAX type"),
        ("alike(jax.device_put(1., d[1]), jax.device_put(1., d[2]))", "incompatible devices"),
    ], **GIVEN)  # fmt: skip


def test_gradients_lie_as_the_values():
    def run(jax):
        s = side(jax.__name__)
        f = jax.jit(jax.grad(lambda x, y: sum((z * z).sum() for z in alike(s)(x, y)), (0, 1)))
        return [(np.asarray(g).tolist(), g.sharding.spec) for g in f(s.a, ones(s))]

    found = both(run)
    assert [g for g, _ in found[0]] == [g for g, _ in found[1]]
    assert str([p for _, p in found[0]]) == str([p for _, p in found[1]])


def test_pairs_that_have_nothing_to_do_with_each_other_lie_as_they_do():
    s = side("minijax")
    on_y = s.put(np.ones((8, 8), np.float32), None, "y")
    pairs = s.jax.jit(lambda x, y, z: (alike(s)(x, z * 2), alike(s)(y, z * 3)))(s.a, on_y, ones(s))
    assert [[x.sharding.spec for x in pair] for pair in pairs] == [[s.P("x", "y")] * 2, [s.P(None, "y")] * 2]


def test_types_with_explicit_axes_stay_those_of_the_operands():
    same("""
        jaxpr(alike, split, put(numbers(8, 8), None, 'y', mesh=explicit)), jaxpr(alike, split, ones)
        jax.jit(alike)(split, split * 2), grouped(alike, split, split)
        jaxpr(lambda x, y, ct: jax.vjp(alike, x, y)[1](ct), split, split, (split, split))
    """, split=lambda s: s.put(s.numbers(8, 8), "x", "y", mesh=s.explicit), **GIVEN)  # fmt: skip
