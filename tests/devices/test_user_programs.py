"""Differences from jax that programs of users have shown: keys, cotangents, meshes and permutations."""

import numpy as np
import pytest
from mesh_language import numbers, same, same_errors

pytestmark = pytest.mark.oracle

GIVEN = dict(
    key_array=lambda s: s.jax.reshard(s.random.split(s.random.key(0), 8), s.P("x")),
    key_matrix=lambda s: s.jax.reshard(s.random.split(s.random.key(0), (4, 2)), s.P("x", "y")),
    sharded_integers=lambda s: s.jnp.arange(8, out_sharding=s.P("x")),
)
OUTSIDE = dict(
    sharded_vector=lambda s: s.shard(numbers(8), "x", mesh=s.explicit_mesh),
    vector_over_y=lambda s: s.shard(numbers(8), "y", mesh=s.explicit_mesh),
    shard_map=lambda s: lambda f, **k: s.jax.shard_map(f, mesh=s.mesh, in_specs=s.P("x"), out_specs=s.P("x"), **k),
)


def test_random_values_have_the_sharding_of_the_keys():
    same(
        [
            lambda s: s.types(s.jax.vmap(lambda k: s.random.normal(k, (2,))), s.key_array),
            lambda s: s.types(s.jax.jit(s.jax.vmap(s.random.uniform)), s.key_array),
            lambda s: s.types(s.jax.vmap(lambda k: s.random.split(k, 3)), s.key_array),
            lambda s: s.types(s.jax.vmap(s.random.fold_in), s.key_array, s.sharded_integers),
            lambda s: s.types(s.jax.vmap(s.random.fold_in, in_axes=(0, None)), s.key_array, 3),
            lambda s: s.types(s.jax.vmap(lambda i: s.random.fold_in(s.random.key(0), i)), s.sharded_integers),
            lambda s: s.types(s.jax.vmap(s.random.key), s.sharded_integers),
            lambda s: s.types(s.jax.vmap(s.jax.vmap(lambda k: s.random.bits(k, (3,)))), s.key_matrix),
            lambda s: s.types(s.jax.vmap(s.jax.vmap(lambda k: s.random.bits(k, (3,))), in_axes=1), s.key_matrix),
            lambda s: s.types(s.jax.vmap(s.random.gamma, in_axes=(0, None)), s.key_array, 2.0),
            lambda s: s.types(s.random.wrap_key_data, s.jnp.zeros((8, 2), "uint32", out_sharding=s.P("x"))),
            lambda s: s.random.wrap_key_data(s.jnp.zeros((8, 2), "uint32", out_sharding=s.P("x"))).sharding.spec,
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )


def test_cotangents_may_have_no_mesh_but_no_other_sharding():
    same(
        [
            lambda s: s.jax.vjp(s.jnp.sin, s.sharded_vector)[1](s.jnp.ones(8)),
            lambda s: s.jax.vjp(s.jnp.sin, s.sharded_vector)[1](np.ones(8, np.float32)),
            lambda s: s.jax.vjp(lambda a: (s.jnp.sin(a), a * 3), s.sharded_vector)[1]((s.jnp.ones(8), s.jnp.ones(8))),
            lambda s: s.jax.vjp(lambda a: a.sum() * 2, s.sharded_vector)[1](s.jnp.float32(3)),
            lambda s: s.jax.linear_transpose(lambda a: a * 2, s.sharded_vector)(s.jnp.ones(8)),
            lambda s: s.jax.linearize(s.jnp.sin, s.sharded_vector)[1](s.jnp.ones(8)),
        ],
        **OUTSIDE,
    )
    same_errors(
        [
            (
                lambda s: s.jax.vjp(s.jnp.sin, s.sharded_vector)[1](s.vector_over_y),
                "got float32[8@y], but expected float32[8@x]",
            ),
            (
                lambda s: s.jax.linearize(s.jnp.sin, s.sharded_vector)[1](s.vector_over_y),
                "inconsistent with the original primal values",
            ),
            (
                lambda s: s.jax.linear_transpose(lambda a: a * 2, s.sharded_vector)(s.vector_over_y),
                "cotangent type does not match function output",
            ),
        ],
        **OUTSIDE,
    )


def test_impossible_meshes_and_permutations_are_refused():
    def permuted(s, pairs):
        return s.jax.jit(s.shard_map(lambda a: s.lax.ppermute(a, "x", pairs)))(numbers(8))

    same_errors(
        [
            (lambda s: s.jax.jit(lambda: [s.jax.set_mesh(s.mesh), 1][1])(), "can only be used outside of `jax.jit`"),
            (
                lambda s: s.jax.grad(lambda a: [s.jax.set_mesh(s.mesh), a][1])(1.0),
                "can only be used outside of `jax.jit`",
            ),
            (lambda s: s.jax.make_mesh((2, -1), ("x", "y")), "must equal the product of mesh_shape (2, -1)"),
            (lambda s: permuted(s, [(0, 1), (0, 2)]), "sources and destinations must be unique"),
            (lambda s: permuted(s, [(0, 1), (2, 1)]), "sources and destinations must be unique"),
            (lambda s: s.jax.pmap(lambda a: a, in_axes=[0])(numbers(8)), "pmap in_axes"),
        ],
        **OUTSIDE,
    )
    same_errors(
        [(lambda s: s.jax.sharding.auto_axes(lambda a: a, axes="z", out_sharding=s.P("x"))(s.jnp.ones(8)), "z")],
        set_mesh="explicit_mesh",
    )


def test_an_abstract_mesh_is_replaced_by_the_mesh_of_the_operands():
    same(
        [
            lambda s: s.jax.shard_map(lambda a: a * 2, mesh=s.abstract_mesh, in_specs=s.P("x"), out_specs=s.P("x"))(
                s.auto_vector
            ),
            lambda s: type(s.P("x")).__name__,
        ],
        abstract_mesh=lambda s: s.jax.sharding.AbstractMesh((4, 2), ("x", "y")),
    )
