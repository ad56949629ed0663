"""The argument `out_sharding`: every function that has it takes and refuses the shardings that jax does.

The jaxprs and results of requests over Explicit axes are in `test_requested_shardings`.
"""

from functools import partial

import numpy as np
import pytest
from mesh_language import numbers, same, same_errors

pytestmark = pytest.mark.oracle

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
GIVEN = {
    "matrix": lambda s: s.jnp.asarray(numbers(8, 4)),
    "indices": lambda s: s.jnp.asarray(np.arange(8) % 4),
    "image": lambda s: s.jnp.asarray(numbers(1, 1, 4, 4)),
    "key": lambda s: s.random.key(0),
}


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
