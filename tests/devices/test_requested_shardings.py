"""`out_sharding` over Explicit axes: jaxprs, types and results of constructors, einsum, random values and indices.

Which shardings each function takes or refuses is in `test_out_sharding`.
"""

import numpy as np
import pytest
from mesh_language import numbers, same, same_errors

pytestmark = pytest.mark.oracle


def over_mesh(*spec, shape=(8, 4), dtype=np.float32):
    return lambda s: s.shard(numbers(*shape, dtype=dtype), *spec, mesh=s.explicit_mesh)


GIVEN = {
    "batch": over_mesh("x", None, "y", shape=(4, 10, 8)),
    "sharded_indices": lambda s: s.jax.device_put(np.arange(8) % 4, s.NamedSharding(s.explicit_mesh, s.P("x"))),
    "sharded_integers": over_mesh("x", shape=(4,), dtype=np.int32),
    "rows": over_mesh("x", "y", shape=(4, 8)),
    "key": lambda s: s.jax.random.key(0),
}


def test_constructors():
    same(
        [
            lambda s: s.jaxpr(
                lambda: [
                    s.jnp.zeros((8, 4), out_sharding=s.P("x")),
                    s.jnp.ones(8, "bool", out_sharding=s.P("x")),
                    s.jnp.zeros(3, out_sharding=s.P()),
                ]
            ),
            lambda s: s.jaxpr(
                lambda: [
                    s.jnp.full((8, 4), 2.0, out_sharding=s.P("x")),
                    s.jnp.empty((8, 4), out_sharding=s.P("x", "y")),
                ]
            ),
            lambda s: s.jaxpr(
                lambda x: [s.jnp.full((8, 4), x, out_sharding=s.P("x")), s.jnp.full((4,), x, out_sharding=s.P("x"))],
                s.jnp.ones(4),
            ),
            lambda s: s.jaxpr(lambda: s.jnp.full((8,), s.jax.random.key(0), out_sharding=s.P("x"))),
            lambda s: s.jaxpr(
                lambda: [
                    s.jnp.arange(8, out_sharding=s.P("x")),
                    s.jnp.arange(2, 10, 2, out_sharding=s.P("x")),
                    s.jnp.arange(2, 10.0, 2, "bfloat16", out_sharding=s.P("x")),
                ]
            ),
            lambda s: s.jaxpr(
                lambda x: [
                    s.jnp.zeros_like(x, out_sharding=s.P("y")),
                    s.jnp.full_like(x, 2, out_sharding=s.P("y")),
                    s.jnp.ones_like(x, int, (4,), out_sharding=s.P("y")),
                ],
                s.sharded_both,
            ),
            lambda s: s.jaxpr(lambda: s.jnp.zeros((8, 4), out_sharding=s.P(unreduced={"x"}))),
            lambda s: [
                s.jnp.zeros((8, 4), out_sharding=s.P("x")),
                s.jnp.arange(8, out_sharding=s.P("x")),
                s.jnp.full_like(s.sharded_both, 2, out_sharding=s.P("y")),
            ],
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )


def test_einsum():
    same(
        [
            lambda s: s.run(lambda x: s.jnp.einsum("ij,kj->ik", x, x, out_sharding=s.P("x")), s.sharded_both),
            lambda s: s.run(lambda x: s.jnp.einsum("ij,kj->ki", x, x, out_sharding=s.P("x")), s.sharded_both),
            lambda s: s.jaxpr(
                lambda x: s.jnp.einsum("ij,kj->ik", x, x, out_sharding=s.P(unreduced={"y"})), s.sharded_columns
            ),
            lambda s: s.run(
                lambda x, y: s.jnp.einsum("ijk,jkl->ijl", x, y, out_sharding=s.P("x", "y")),
                s.jnp.ones((8, 4, 4)),
                s.jnp.ones((4, 4, 8)),
            ),
            lambda s: s.run(
                lambda x, y: s.jnp.einsum("bi,bij->jb", x, y, out_sharding=s.P(None, "x")),
                s.sharded_both,
                s.jnp.ones((8, 4, 4)),
            ),
            lambda s: s.jaxpr(lambda x: s.jnp.einsum("ij,ij->ij", x, x, out_sharding=s.P("x", "y")), s.replicated),
            lambda s: s.jaxpr(
                lambda x: [
                    s.jnp.einsum("ij->i", x, out_sharding=s.P("y")),
                    s.jnp.einsum("ij->ji", x, out_sharding=s.P("x")),
                ],
                s.sharded_both,
            ),
            lambda s: s.jaxpr(
                lambda x: [
                    s.jnp.einsum("iij->ij", x, out_sharding=s.P("x", "y")),
                    s.jnp.einsum("ijk->kj", x, out_sharding=s.P("x", "y")),
                ],
                s.jnp.ones((8, 8, 4)),
            ),
            lambda s: s.run(
                lambda x, y, z: s.jnp.einsum("ij,jk,kl->il", x, y, z, out_sharding=s.P("x")),
                s.sharded_both,
                s.jnp.ones((4, 8)),
                np.ones((8, 4), np.float32),
            ),
            lambda s: s.run(
                s.jax.grad(lambda x, y: s.jnp.einsum("ij,jk->ki", x, y, out_sharding=s.P("x")).sum()),
                s.replicated,
                s.jnp.ones((4, 8)),
            ),
            lambda s: s.jaxpr(lambda x: s.lax.reduce_sum(x, (0,), out_sharding=s.P("x")), s.sharded_both),
            lambda s: s.jaxpr(
                s.jax.vmap(lambda x: s.lax.reduce_sum(x, (0,), out_sharding=s.P("y"))), s.jnp.ones((3, 8, 4))
            ),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )
    auto = "PartitionSpec passed to einsum cannot contain axis names that are of type Auto or Manual"
    same_errors(
        [
            (
                lambda s: s.jax.sharding.auto_axes(
                    lambda x: s.jnp.einsum("ij,kj->ik", x, x, out_sharding=s.P("x", None)), out_sharding=s.P()
                )(s.sharded_both),
                auto,
            )
        ],
        set_mesh="explicit_mesh",
    )


def test_random_values():
    same(
        [
            lambda s: s.run(lambda k: s.random.normal(k, (8, 4), out_sharding=s.P("x")), s.key),
            lambda s: s.jaxpr(lambda k: s.random.normal(k, (40,), out_sharding=s.P("x")), s.random.PRNGKey(0)),
            lambda s: s.jaxpr(
                lambda k: s.random.uniform(k, (8, 4), minval=s.jnp.zeros(4), out_sharding=s.P("x")), s.key
            ),
            lambda s: s.jaxpr(
                lambda k: [
                    s.random.bits(k, (8,), out_sharding=s.P("x")),
                    s.random.randint(k, (8,), 0, 9, out_sharding=s.P("x")),
                ],
                s.key,
            ),
            lambda s: s.jaxpr(
                lambda k: [
                    s.random.gamma(k, 2.0, (8,), out_sharding=s.P("x")),
                    s.random.triangular(k, 0.0, 0.5, 1.0, (8,), out_sharding=s.P("x")),
                ],
                s.key,
            ),
            lambda s: s.jaxpr(
                lambda k, x: [
                    s.random.categorical(k, x, out_sharding=s.P("x")),
                    s.random.permutation(k, x, out_sharding=s.P("x")),
                ],
                s.key,
                s.replicated,
            ),
            lambda s: s.jaxpr(lambda k: s.random.permutation(k, 8, out_sharding=s.P("x")), s.key),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )


def test_indices():
    same(
        [
            lambda s: s.run(lambda x, i: x.at[i].get(out_sharding=s.P("x")), s.sharded_both, s.jnp.arange(4)),
            lambda s: s.jaxpr(
                lambda x: [
                    x.at[np.arange(2)].get(out_sharding=s.P(None, "y")),
                    x.at[[0, 1], 0].add(s.jnp.ones(2), out_sharding=s.P("x")),
                ],
                s.sharded_both,
            ),
            lambda s: s.run(
                lambda x: [x.at[0].set(1.0, out_sharding=s.P("x")), x.at[1:3].set(2, out_sharding=s.P("x"))],
                s.sharded_both,
            ),
            lambda s: s.jaxpr(
                lambda x, i: [x.at[:, 0].get(out_sharding=s.P("x")), x.at[:, i].get(out_sharding=s.P("y"))],
                s.sharded_rows,
                1,
            ),
            lambda s: s.run(
                lambda x, i: [
                    x.at[i, 0].divide(s.jnp.full(3, 2.0), out_sharding=s.P("x")),
                    x.at[i, 0].power(s.jnp.full(3, 2.0), out_sharding=s.P("x")),
                ],
                s.sharded_rows,
                s.jnp.arange(3),
            ),
            lambda s: s.run(
                s.jax.vmap(lambda x, i: x.at[i].set(x.at[i].get(out_sharding=s.P()) + 1, out_sharding=s.P())),
                s.sharded_rows,
                s.sharded_indices,
            ),
            lambda s: s.types(
                s.jax.vmap(lambda x, i, y: s.lax.dynamic_update_slice_in_dim(x, y[None], i, axis=0)),
                s.batch,
                s.sharded_integers,
                s.rows,
            ),
            lambda s: s.types(
                s.jax.vmap(lambda x, i: s.lax.dynamic_slice_in_dim(x, i, 2, axis=0)), s.batch, s.sharded_integers
            ),
            lambda s: s.run(
                s.jax.vmap(s.jax.sharding.auto_axes(lambda x: x * 2, out_sharding=s.P("y"))), s.sharded_rows
            ),
            lambda s: s.run(
                lambda x, i: [
                    s.jax.ops.segment_sum(x, i, 4, out_sharding=s.P()),
                    s.jax.ops.segment_max(x, i, 4, out_sharding=s.P()),
                ],
                s.sharded_rows,
                s.sharded_indices,
            ),
            lambda s: s.run(lambda x: s.jnp.bincount(x, length=4, out_sharding=s.P()), s.sharded_indices),
            lambda s: s.run(
                lambda x: [s.jnp.repeat(x, 2, axis=0, out_sharding=s.P("x")), s.jnp.repeat(x, 3, axis=-1)],
                s.sharded_rows,
            ),
            lambda s: s.jaxpr(
                lambda x: s.jnp.repeat(x, np.array((2,) * 8), axis=0, out_sharding=s.P("x")), s.sharded_both
            ),
            lambda s: [s.jnp.repeat(np.eye(3), np.ones(3, int), axis=0), s.jnp.repeat(s.jnp.arange(4), 2)],
            lambda s: s.run(lambda x: s.jnp.percentile(x, 50, axis=0, out_sharding=s.P()), s.sharded_rows),
            lambda s: s.jaxpr(
                s.jax.grad(s.jax.sharding.auto_axes(lambda x: (x * 2).sum(), out_sharding=s.P())), s.replicated
            ),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )
    same_errors(
        [
            (lambda s: s.replicated[s.sharded_indices], "Use `.at[...].get(out_sharding=)`"),
            (lambda s: s.jax.vmap(lambda i: s.replicated[i])(s.sharded_indices), "Use `.at[...].get(out_sharding=)`"),
            (lambda s: s.jnp.bincount(s.sharded_indices, length=4), "Use `.at[...].set/add/mul/...(out_sharding=)`"),
            (
                lambda s: s.jnp.bincount(s.sharded_indices, length=4, out_sharding=s.P("x")),
                "only be fully replicated or fully unreduced",
            ),
            (
                lambda s: s.jax.ops.segment_max(
                    s.sharded_rows, s.sharded_indices, 4, out_sharding=s.P(unreduced={"x"})
                ),
                "unreduced",
            ),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )


def test_values_like_an_array_have_its_sharding():
    same(
        [
            lambda s: [
                s.lax.broadcast_like(np.arange(4), s.sharded_rows),
                s.lax.broadcast_like(np.arange(4), s.sharded_both),
                s.lax.broadcast_like(s.jnp.float32(2), s.sharded_both),
            ],
            lambda s: s.jaxpr(
                lambda k: s.lax.rng_bit_generator(k, (4, 8), out_sharding=s.P("x")), np.arange(4, dtype=np.uint32)
            ),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )


def test_refusals():
    away = "Mapped away dimension of inputs passed to vmap should be sharded the same"
    unmapped = "Unmapped values passed to vmap cannot be sharded"
    memory = "sharding with memory_kind is not allowed"
    same_errors(
        [
            (lambda s: s.jax.vmap(lambda x, y: (x, y))(s.sharded_rows, s.replicated), away),
            (lambda s: s.jax.jit(s.jax.vmap(lambda x, y: (x, y)))(s.sharded_rows, np.ones((8, 4))), away),
            (lambda s: s.jax.vmap(lambda x, y: x, in_axes=(0, None))(s.sharded_rows, s.sharded_rows), unmapped),
            (
                lambda s: s.jax.vmap(lambda x, y: x, in_axes=(0, None))(
                    s.jax.reshard(s.sharded_rows, s.P(("x", "y"))), s.sharded_columns
                ),
                unmapped,
            ),
            (lambda s: s.jax.set_mesh(s.Mesh(s.devices, "x", (s.AxisType.Manual,))), "contains manual axes"),
            (lambda s: s.NamedSharding(s.explicit_mesh, s.P(s.P.UNCONSTRAINED)), "cannot contain `P.UNCONSTRAINED`"),
            (
                lambda s: s.jnp.full(
                    (8,),
                    0,
                    out_sharding=s.NamedSharding(s.explicit_mesh.abstract_mesh, s.P("x"), memory_kind="pinned_host"),
                ),
                memory,
            ),
            (lambda s: s.jnp.cumsum(s.sharded_columns), "The input should be fully replicated"),
            (lambda s: s.jnp.unstack(s.sharded_both), "unstack operand cannot be sharded on the unstacking axis"),
            (
                lambda s: s.lax.broadcast_like(s.jax.reshard(s.replicated[0], s.P("y")), s.sharded_rows),
                "Incompatible types for broadcasting",
            ),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )
