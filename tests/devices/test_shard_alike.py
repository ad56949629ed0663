"""`shard_alike`: the compiler gives two values equal shardings."""

import re

import compare
import numpy as np
import pytest
from mesh_language import numbers, same, same_errors, side

pytestmark = pytest.mark.oracle


def alike(s):
    return __import__(f"{s.jax.__name__}.experimental.shard_alike", fromlist=["shard_alike"]).shard_alike


def ones(s):
    return s.jnp.ones((8, 8))


def grouped_text(s):
    """The module, with the ids of groups numbered from 0."""

    def lowered(f, *args):
        found = s.text(f, *args)
        numbers = {n: i for i, n in enumerate(dict.fromkeys(re.findall(r"group_id=(\d+)", found)))}
        return re.sub(r"group_id=(\d+)", lambda m: f"group_id={numbers[m[1]]}", found)

    return lowered


GIVEN = {"shard_alike": alike, "ones": ones, "grouped_text": grouped_text}


def test_values_get_equal_shardings():
    same(
        [
            lambda s: (s.shard_alike(s.auto_matrix, s.ones), s.shard_alike(s.ones, s.auto_matrix)),
            lambda s: s.jax.jit(s.shard_alike)(s.auto_matrix, s.ones),
            lambda s: s.jax.jit(lambda x, y: s.shard_alike(x * 2, y + 1))(s.auto_matrix, s.ones),
            lambda s: s.jax.jit(lambda x, y: s.shard_alike(x, y)[1] @ y)(s.auto_matrix, s.ones),
            lambda s: s.jax.jit(s.shard_alike)(
                {"p": s.auto_matrix, "q": [s.auto_vector]}, {"p": s.ones, "q": [s.jnp.zeros(8)]}
            ),
            lambda s: (s.shard_alike(s.jnp.ones(3), np.zeros(3, np.float32)), s.shard_alike(2.0, 3)),
            lambda s: s.shard_alike(s.auto_matrix.astype("bfloat16"), s.ones.astype("int8")),
            lambda s: (
                s.shard_alike(s.random.key(0), s.random.key(1)),
                s.shard_alike([None, s.auto_vector], [None, s.auto_vector]),
            ),
            lambda s: s.jax.jit(
                s.jax.shard_map(s.shard_alike, mesh=s.mesh, in_specs=(s.P("x"), s.P("x")), out_specs=s.P("x"))
            )(s.auto_matrix, s.ones),
        ],
        **GIVEN,
    )


def test_derivatives_and_batches():
    same(
        [
            lambda s: s.jax.jvp(s.shard_alike, (s.auto_matrix, s.ones), (s.auto_matrix, s.ones)),
            lambda s: s.jax.jvp(
                lambda x: s.shard_alike(x, s.jnp.ones((8, 8), int)), (s.auto_matrix,), (s.auto_matrix,)
            )[1][0],
            lambda s: s.jax.grad(lambda x: s.shard_alike(x, s.jnp.ones((8, 8), int))[0].sum())(s.auto_matrix),
            lambda s: s.jax.jit(s.jax.vmap(s.shard_alike, (0, None)))(s.auto_matrix, s.auto_vector),
        ],
        **GIVEN,
    )


def test_jaxprs_and_texts_are_those_of_jax():
    same(
        [
            lambda s: (
                s.jaxpr(s.shard_alike, s.auto_matrix, s.ones),
                s.jaxpr(s.shard_alike, 2.0, 3),
                s.jaxpr(s.shard_alike, {"a": s.auto_matrix, "b": s.auto_vector}, {"a": s.ones, "b": s.auto_vector}),
            ),
            lambda s: s.jaxpr(lambda x, y: s.jax.jvp(s.shard_alike, (x, y), (x, y)), s.auto_matrix, s.ones),
            lambda s: s.jaxpr(lambda x, y: s.jax.jvp(lambda x: s.shard_alike(x, y), (x,), (x,)), s.auto_matrix, s.ones),
            lambda s: s.jaxpr(
                lambda x, y, ct: s.jax.vjp(s.shard_alike, x, y)[1](ct),
                s.auto_matrix,
                s.ones,
                (s.auto_matrix, s.auto_matrix),
            ),
            lambda s: s.jaxpr(lambda x, y: s.jax.linear_transpose(s.shard_alike, x, y)((x, y)), s.auto_matrix, s.ones),
            lambda s: [
                s.jaxpr(s.jax.vmap(s.shard_alike, axes), s.auto_matrix, s.ones)
                for axes in ((0, 0), (1, 1), (0, 1), (1, 0))
            ],
            lambda s: (
                s.jaxpr(s.jax.vmap(s.shard_alike, (0, None)), s.auto_matrix, s.auto_vector),
                s.jaxpr(s.jax.vmap(s.shard_alike, (None, 1)), s.auto_vector, s.auto_matrix),
            ),
            lambda s: s.jaxpr(s.jax.vmap(lambda z: s.shard_alike(s.auto_vector, s.auto_vector)), s.auto_matrix),
            lambda s: s.jaxpr(
                s.jax.shard_map(s.shard_alike, mesh=s.mesh, in_specs=(s.P("x"), s.P()), out_specs=s.P("x")),
                s.auto_matrix,
                s.auto_matrix[:2],
            ),
            lambda s: (
                s.grouped_text(lambda x, y: s.shard_alike(x * 2, y + 1), s.auto_matrix, s.ones),
                s.grouped_text(s.shard_alike, s.ones, s.ones),
            ),
            lambda s: s.grouped_text(lambda x, y: s.shard_alike(x, y)[0], s.auto_matrix, s.ones),
            lambda s: s.grouped_text(
                s.shard_alike, s.random.split(s.random.key(0), 8), s.random.split(s.random.key(0), 8)
            ),
            lambda s: s.grouped_text(
                s.jax.shard_map(s.shard_alike, mesh=s.mesh, in_specs=(s.P("x"), s.P("x")), out_specs=s.P("x")),
                s.auto_matrix,
                s.ones,
            ),
        ],
        **GIVEN,
    )


def test_unequal_operands_are_refused():
    same_errors(
        [
            (lambda s: s.shard_alike(s.auto_vector, s.auto_matrix), "The leaves shapes of `x` and `y` should match"),
            (
                lambda s: s.shard_alike(s.jnp.ones(3), s.jnp.ones((3, 1))),
                "The leaves shapes of `x` and `y` should match",
            ),
            (lambda s: s.shard_alike((s.auto_vector,), [s.auto_vector]), "Trees should be equal"),
            (lambda s: s.shard_alike("a", "b"), "is not a valid JAX type"),
            (
                lambda s: s.shard_alike(s.jax.device_put(1.0, s.devices[1]), s.jax.device_put(1.0, s.devices[2])),
                "incompatible devices",
            ),
        ],
        **GIVEN,
    )


def test_gradients_have_the_sharding_of_the_values():
    def run(jax):
        s = side(jax.__name__)
        f = jax.jit(jax.grad(lambda x, y: sum((z * z).sum() for z in alike(s)(x, y)), (0, 1)))
        return [(np.asarray(g), str(g.sharding.spec)) for g in f(s.auto_matrix, ones(s))]

    compare.same(run)


def test_unrelated_pairs_keep_their_shardings():
    s = side("minijax")
    on_y = s.shard(np.ones((8, 8), np.float32), None, "y")
    pairs = s.jax.jit(lambda x, y, z: (alike(s)(x, z * 2), alike(s)(y, z * 3)))(s.auto_matrix, on_y, ones(s))
    assert [[x.sharding.spec for x in pair] for pair in pairs] == [[s.P("x", "y")] * 2, [s.P(None, "y")] * 2]


def test_types_with_explicit_axes_stay_those_of_the_operands():
    same(
        [
            lambda s: (
                s.jaxpr(s.shard_alike, s.square, s.shard(numbers(8, 8), None, "y", mesh=s.explicit_mesh)),
                s.jaxpr(s.shard_alike, s.square, s.ones),
            ),
            lambda s: (
                s.jax.jit(s.shard_alike)(s.square, s.square * 2),
                s.grouped_text(s.shard_alike, s.square, s.square),
            ),
            lambda s: s.jaxpr(
                lambda x, y, ct: s.jax.vjp(s.shard_alike, x, y)[1](ct), s.square, s.square, (s.square, s.square)
            ),
        ],
        square=lambda s: s.shard(s.numbers(8, 8), "x", "y", mesh=s.explicit_mesh),
        **GIVEN,
    )
