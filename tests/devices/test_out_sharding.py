"""Arguments `out_sharding`: what they accept, what they refuse, and where results lie, against jax."""

import numpy as np
import pytest
from mesh_language import numbers, same, same_errors

pytestmark = pytest.mark.oracle

CALLS = """
    jnp.zeros(8, out_sharding={s})
    jnp.ones_like(x, out_sharding={s})
    jnp.full((8,), 2, out_sharding={s})
    jnp.arange(8, out_sharding={s})
    jnp.broadcast_to(x[0], (8, 4), out_sharding={s})
    jnp.reshape(x, (4, 8), out_sharding={s})
    x.ravel(out_sharding={s})
    x.at[i].get(out_sharding={s})
    jnp.einsum('ij,kj->ik', x, x, out_sharding={s})
    jnp.matmul(x, x.T, out_sharding={s})
    lax.dot(x, x.T, out_sharding={s})
    lax.reshape(x, (4, 8), out_sharding={s})
    lax.broadcast_in_dim(x, (8, 4, 2), (0, 1), out_sharding={s})
    lax.reshape(x[:, 0], (8,), out_sharding={s})
    lax.broadcast_in_dim(x[:, 0], (8,), (0,), out_sharding={s})
    lax.broadcasted_iota('int32', (8,), 0, out_sharding={s})
    lax.reduce_sum(x, (1,), out_sharding={s})
"""
AUTO = """
    x.at[0].set(1., out_sharding={s})
    x.at[0].power(2., out_sharding={s})
    jnp.repeat(x, 2, axis=0, out_sharding={s})
    jnp.percentile(x, jnp.arange(8.), out_sharding={s})
    jnp.bincount(i, length=8, out_sharding={s})
    lax.reduce(x, 0., lax.add, (1,), out_sharding={s})
    lax.empty((8,), 'int32', out_sharding={s}).shape
    lax.rng_bit_generator(jnp.zeros(4, 'uint32'), (8,), out_sharding={s})[1].sharding
    lax.conv_general_dilated(image, image, (1, 1), 'SAME', out_sharding={s})
    jax.ops.segment_sum(x, i, 4, out_sharding={s})
    random.normal(key, (8,), out_sharding={s})
    random.permutation(key, 8, out_sharding={s})
    jax.nn.initializers.glorot_normal()(key, (8, 4), out_sharding={s})
"""
GIVEN = {
    "x": lambda s: s.jnp.asarray(numbers(8, 4)),
    "i": lambda s: s.jnp.asarray(np.arange(8) % 4),
    "image": lambda s: s.jnp.asarray(numbers(1, 1, 4, 4)),
    "key": lambda s: s.random.key(0),
}


def lines(*tables):
    return [line.strip() for table in tables for line in table.strip().splitlines()]


def test_specs_that_name_no_axis_are_accepted():
    for sharding in ("on()", "on(None)"):
        allowed = [line for line in lines(CALLS, AUTO) if "bincount" not in line or sharding == "on()"]
        same("\n".join(allowed).format(s=sharding), **GIVEN)
    same("\n".join(lines(CALLS, AUTO)).format(s="P()"), "m", **GIVEN)


def test_the_sharding_of_a_type_without_mesh_says_nothing():
    nothing = "jax.sharding.NamedSharding(jax.sharding.AbstractMesh((), ()), P(None))"
    for call in ("jnp.zeros(8, {o})", "jnp.matmul(x, x.T, {o})", "random.bernoulli(key, 0.5, (8,), {o})"):
        same(call.format(o=f"out_sharding={nothing}"), "m", **GIVEN)


def test_axes_of_automatic_meshes_may_not_be_named():
    calls = [line.removesuffix(".shape").removesuffix(".sharding") for line in lines(CALLS, AUTO)]
    same_errors(
        [(c.format(s="on('x')"), "cannot contain axis names that are of type Auto or Manual") for c in calls], **GIVEN
    )
    same_errors([(c.format(s="P('x')"), "when you are not under a mesh context") for c in calls], **GIVEN)
    # jax asserts there that it is a sharding.
    calls = [c for c in calls if ".at[" not in c and "percentile" not in c]
    same_errors([(c.format(s="'x'"), "NamedSharding") for c in calls], **GIVEN)


def test_results_lie_over_explicit_axes_as_asked():
    same("\n".join(lines(CALLS)).format(s="P('x')"), "explicit", **GIVEN)
    same("\n".join(f"jax.jit(lambda x, i: {c})(x, i)" for c in lines(CALLS)).format(s="P('x')"), "explicit", **GIVEN)


def test_a_sharding_of_filled_arrays_is_a_place():
    same(
        """
        [lax.full((8,), 2, sharding=s) for s in (on('x'), on(), One(d[3]), None)]
        [lax.full_like(x, 2, sharding=s) for s in (on('x'), on(), One(d[3]), None)], lax.full((), 2, sharding=on())
        jax.jit(lambda: lax.full((8,), 2, sharding=on('x')))()
        jaxpr(lambda: lax.full((8,), 2, sharding=on('x')))
    """,
        **GIVEN,
    )
