"""`out_sharding`: every function that has it takes and refuses the shardings that jax does, and over Explicit axes the
jaxprs, types and results are jax's.
"""

from functools import partial

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
    "matrix": lambda s: s.jnp.asarray(numbers(8, 4)),
    "indices": lambda s: s.jnp.asarray(np.arange(8) % 4),
    "image": lambda s: s.jnp.asarray(numbers(1, 1, 4, 4)),
    "sharded_vector": over_mesh("x", shape=(8,)),
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


# Of the side, an array, indices and the argument `out_sharding`.
CALLS = [
    lambda s, x, i, out: s.jnp.zeros(8, out_sharding=out),
    lambda s, x, i, out: s.jnp.ones_like(x, out_sharding=out),
    lambda s, x, i, out: s.jnp.full((8,), 2, out_sharding=out),
    lambda s, x, i, out: s.jnp.arange(8, out_sharding=out),
    lambda s, x, i, out: s.jnp.broadcast_to(x[0], (8, 4), out_sharding=out),
    lambda s, x, i, out: s.jnp.reshape(x, (4, 8), out_sharding=out),
    lambda s, x, i, out: x.ravel(out_sharding=out),
    lambda s, x, i, out: s.jnp.einsum("ij,kj->ik", x, x, out_sharding=out),
    lambda s, x, i, out: s.jnp.matmul(x, x.T, out_sharding=out),
    lambda s, x, i, out: s.lax.dot(x, x.T, out_sharding=out),
    lambda s, x, i, out: s.lax.reshape(x, (4, 8), out_sharding=out),
    lambda s, x, i, out: s.lax.broadcast_in_dim(x, (8, 4, 2), (0, 1), out_sharding=out),
    lambda s, x, i, out: s.lax.reshape(x[:, 0], (8,), out_sharding=out),
    lambda s, x, i, out: s.lax.broadcast_in_dim(x[:, 0], (8,), (0,), out_sharding=out),
    lambda s, x, i, out: s.lax.broadcasted_iota("int32", (8,), 0, out_sharding=out),
    lambda s, x, i, out: s.lax.reduce_sum(x, (1,), out_sharding=out),
]


INDEXING = [lambda s, x, i, out: x.at[i].get(out_sharding=out)]


# jax refuses them over Explicit axes, or leaves them to the compiler.
CALLS_OVER_AUTO_AXES = [
    lambda s, x, i, out: s.jnp.repeat(x, 2, axis=0, out_sharding=out),
    lambda s, x, i, out: s.lax.reduce(x, 0.0, s.lax.add, (1,), out_sharding=out),
    lambda s, x, i, out: s.lax.empty((8,), "int32", out_sharding=out).shape,
    lambda s, x, i, out: s.lax.rng_bit_generator(s.jnp.zeros(4, "uint32"), (8,), out_sharding=out)[1].sharding,
    lambda s, x, i, out: s.lax.conv_general_dilated(s.image, s.image, (1, 1), "SAME", out_sharding=out),
    lambda s, x, i, out: s.jax.ops.segment_sum(x, i, 4, out_sharding=out),
    lambda s, x, i, out: s.random.normal(s.key, (8,), out_sharding=out),
    lambda s, x, i, out: s.random.permutation(s.key, 8, out_sharding=out),
    lambda s, x, i, out: s.jax.nn.initializers.glorot_normal()(s.key, (8, 4), out_sharding=out),
]


INDEXING_OVER_AUTO_AXES = [
    lambda s, x, i, out: x.at[0].set(1.0, out_sharding=out),
    lambda s, x, i, out: x.at[0].power(2.0, out_sharding=out),
    lambda s, x, i, out: s.jnp.percentile(x, s.jnp.arange(8.0), out_sharding=out),
]


BINCOUNT = [lambda s, x, i, out: s.jnp.bincount(i, length=8, out_sharding=out)]


ALL = CALLS + INDEXING + CALLS_OVER_AUTO_AXES + INDEXING_OVER_AUTO_AXES + BINCOUNT


def called(call, sharding, s):
    return call(s, s.matrix, s.indices, sharding(s))


def test_specs_that_name_no_axis_are_accepted():
    same([partial(called, call, lambda s: s.sharding()) for call in ALL], **GIVEN)
    same([partial(called, call, lambda s: s.sharding(None)) for call in ALL if call not in BINCOUNT], **GIVEN)
    same([partial(called, call, lambda s: s.P()) for call in ALL], "mesh", **GIVEN)


def test_the_sharding_of_a_type_without_mesh_requests_nothing():
    def nothing(s):
        return s.jax.sharding.NamedSharding(s.jax.sharding.AbstractMesh((), ()), s.P(None))

    same(
        [
            lambda s: s.jnp.zeros(8, out_sharding=nothing(s)),
            lambda s: s.jnp.matmul(s.matrix, s.matrix.T, out_sharding=nothing(s)),
            lambda s: s.random.bernoulli(s.key, 0.5, (8,), out_sharding=nothing(s)),
        ],
        "mesh",
        **GIVEN,
    )


def test_specs_may_not_name_auto_axes():
    def refused(calls, sharding, phrase):
        same_errors([(partial(called, call, sharding), phrase) for call in calls], **GIVEN)

    refused(ALL, lambda s: s.sharding("x"), "cannot contain axis names that are of type Auto or Manual")
    refused(ALL, lambda s: s.P("x"), "when you are not under a mesh context")
    # Where an index is given, jax asserts that it is a sharding.
    refused(CALLS + CALLS_OVER_AUTO_AXES + BINCOUNT, lambda s: "x", "NamedSharding")


def test_results_have_the_requested_sharding_over_explicit_axes():
    def compiled(call, s):
        return s.jax.jit(lambda x, i: call(s, x, i, s.P("x")))(s.matrix, s.indices)

    same([partial(called, call, lambda s: s.P("x")) for call in CALLS + INDEXING], "explicit_mesh", **GIVEN)
    same([partial(compiled, call) for call in CALLS + INDEXING], "explicit_mesh", **GIVEN)


def test_the_argument_sharding_places_filled_arrays():
    same(
        [
            lambda s: [
                s.lax.full((8,), 2, sharding=sharding)
                for sharding in (s.sharding("x"), s.sharding(), s.SingleDeviceSharding(s.devices[3]), None)
            ],
            lambda s: (
                [
                    s.lax.full_like(s.matrix, 2, sharding=sharding)
                    for sharding in (s.sharding("x"), s.sharding(), s.SingleDeviceSharding(s.devices[3]), None)
                ],
                s.lax.full((), 2, sharding=s.sharding()),
            ),
            lambda s: s.jax.jit(lambda: s.lax.full((8,), 2, sharding=s.sharding("x")))(),
            lambda s: s.jaxpr(lambda: s.lax.full((8,), 2, sharding=s.sharding("x"))),
        ],
        **GIVEN,
    )


def test_requested_shardings():
    same(
        [
            lambda s: s.types(lambda x: s.jnp.dot(x, x.T, out_sharding=s.P("x", None)), s.sharded_both),
            lambda s: s.types(lambda x: s.jnp.einsum("ij,kj->ik", x, x, out_sharding=s.P("x", None)), s.sharded_both),
            lambda s: s.run(lambda x: s.jnp.reshape(x, (4, 8), out_sharding=s.P("x", None)), s.sharded_both),
            lambda s: s.types(lambda x: x.at[s.jnp.array([0, 1])].get(out_sharding=s.P(None, "x")), s.sharded_both),
            lambda s: s.types(lambda x: x.at[0].set(1.0), s.sharded_columns),
            lambda s: s.types(lambda x: x.at[0].set(2.0, out_sharding=s.P("x", "y")), s.sharded_both),
            lambda s: s.types(
                lambda: [s.jnp.zeros((8, 4), out_sharding=s.P("x")), s.jnp.arange(8, out_sharding=s.P("x"))]
            ),
            lambda s: s.types(lambda k: s.jax.random.normal(k, (8, 4), out_sharding=s.P("x")), s.jax.random.key(0)),
            lambda s: s.run(lambda x: s.jax.reshard(x, s.P("y")), s.sharded_both),
            lambda s: s.run(lambda x: s.jax.reshard(x, s.P()), s.sharded_both),
            lambda s: s.types(lambda x: s.lax.with_sharding_constraint(x, s.P("x", "y")), s.sharded_both),
            lambda s: s.types(s.jax.sharding.auto_axes(lambda x: x @ x.T, out_sharding=s.P("x", None)), s.sharded_both),
            lambda s: s.jaxpr(s.jax.sharding.auto_axes(lambda x: x @ x.T, out_sharding=s.P("x", None)), s.sharded_both),
            lambda s: s.types(
                s.jax.jit(s.jax.sharding.auto_axes(lambda x: x[0], out_sharding=s.P("y"))), s.sharded_both
            ),
            lambda s: s.types(
                s.jax.jit(s.jax.sharding.auto_axes(lambda x: x * 2, axes="y", out_sharding=s.P("x", "y"))),
                s.sharded_both,
            ),
            lambda s: s.types(
                lambda x: s.jax.ops.segment_sum(x, s.jnp.array([0, 0, 1, 1, 2, 2, 3, 3]), 4, out_sharding=s.P()),
                s.sharded_vector,
            ),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )
