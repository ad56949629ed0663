"""What programs as users write them have shown: keys, cotangents, meshes and permutations that once differed from jax."""

import pytest
from mesh_language import numbers, same, same_errors

pytestmark = pytest.mark.oracle

GIVEN = dict(
    keys=lambda s: s.jax.reshard(s.random.split(s.random.key(0), 8), s.P("x")),
    grid_of_keys=lambda s: s.jax.reshard(s.random.split(s.random.key(0), (4, 2)), s.P("x", "y")),
    ints=lambda s: s.jnp.arange(8, out_sharding=s.P("x")),
)
OUTSIDE = dict(
    x=lambda s: s.put(numbers(8), "x", mesh=s.explicit),
    other=lambda s: s.put(numbers(8), "y", mesh=s.explicit),
    lines=lambda s: lambda f, **k: s.jax.shard_map(f, mesh=s.m, in_specs=s.P("x"), out_specs=s.P("x"), **k),
)


def test_what_is_drawn_from_keys_lies_as_the_keys_do():
    same(
        """
        types(jax.vmap(lambda k: random.normal(k, (2,))), keys)
        types(jax.jit(jax.vmap(random.uniform)), keys)
        types(jax.vmap(lambda k: random.split(k, 3)), keys)
        types(jax.vmap(random.fold_in), keys, ints)
        types(jax.vmap(random.fold_in, in_axes=(0, None)), keys, 3)
        types(jax.vmap(lambda i: random.fold_in(random.key(0), i)), ints)
        types(jax.vmap(random.key), ints)
        types(jax.vmap(jax.vmap(lambda k: random.bits(k, (3,)))), grid_of_keys)
        types(jax.vmap(jax.vmap(lambda k: random.bits(k, (3,))), in_axes=1), grid_of_keys)
        types(jax.vmap(random.gamma, in_axes=(0, None)), keys, 2.)
        types(random.wrap_key_data, jnp.zeros((8, 2), 'uint32', out_sharding=P('x')))
        random.wrap_key_data(jnp.zeros((8, 2), 'uint32', out_sharding=P('x'))).sharding.spec
        """,
        setting="explicit",
        **GIVEN,
    )


def test_cotangents_may_know_no_mesh_but_lie_nowhere_else():
    same(
        """
        jax.vjp(jnp.sin, x)[1](jnp.ones(8))
        jax.vjp(jnp.sin, x)[1](np.ones(8, np.float32))
        jax.vjp(lambda a: (jnp.sin(a), a * 3), x)[1]((jnp.ones(8), jnp.ones(8)))
        jax.vjp(lambda a: a.sum() * 2, x)[1](jnp.float32(3))
        jax.linear_transpose(lambda a: a * 2, x)(jnp.ones(8))
        jax.linearize(jnp.sin, x)[1](jnp.ones(8))
        """,
        **OUTSIDE,
    )
    same_errors(
        [
            ("jax.vjp(jnp.sin, x)[1](other)", "got float32[8@y], but expected float32[8@x]"),
            ("jax.linearize(jnp.sin, x)[1](other)", "inconsistent with the original primal values"),
            ("jax.linear_transpose(lambda a: a * 2, x)(other)", "cotangent type does not match function output"),
        ],
        **OUTSIDE,
    )


def test_meshes_and_permutations_that_there_are_not():
    repeated = "jax.jit(lines(lambda a: lax.ppermute(a, 'x', {})))(numbers(8))"
    same_errors(
        [
            ("jax.jit(lambda: [jax.set_mesh(m), 1][1])()", "can only be used outside of `jax.jit`"),
            ("jax.grad(lambda a: [jax.set_mesh(m), a][1])(1.)", "can only be used outside of `jax.jit`"),
            ("jax.make_mesh((2, -1), ('x', 'y'))", "must equal the product of mesh_shape (2, -1)"),
            (repeated.format([(0, 1), (0, 2)]), "sources and destinations must be unique"),
            (repeated.format([(0, 1), (2, 1)]), "sources and destinations must be unique"),
            ("jax.pmap(lambda a: a, in_axes=[0])(numbers(8))", "pmap in_axes"),
        ],
        **OUTSIDE,
    )
    same_errors(
        [("jax.sharding.auto_axes(lambda a: a, axes='z', out_sharding=P('x'))(jnp.ones(8))", "z")], setting="explicit"
    )


def test_an_abstract_mesh_stands_for_that_of_the_operands():
    same(
        """
        jax.shard_map(lambda a: a * 2, mesh=abstract, in_specs=P("x"), out_specs=P("x"))(v)
        type(P('x')).__name__
        """,
        abstract=lambda s: s.jax.sharding.AbstractMesh((4, 2), ("x", "y")),
    )
