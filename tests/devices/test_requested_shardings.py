"""`out_sharding`, and what is left to XLA to obey it: jaxprs and types are those of jax."""

import numpy as np
import pytest
from mesh_language import numbers, same, same_errors

pytestmark = pytest.mark.oracle


def over_mesh(*spec, shape=(8, 4), dtype=np.float32):
    return lambda s: s.put(numbers(*shape, dtype=dtype), *spec, mesh=s.explicit)


GIVEN = {
    "e": over_mesh("x", "y"),
    "r": over_mesh("x"),
    "c": over_mesh(None, "y"),
    "o": over_mesh(),
    "t": over_mesh("x", None, "y", shape=(4, 10, 8)),
    "ids": lambda s: s.jax.device_put(np.arange(8) % 4, s.NS(s.explicit, s.P("x"))),
    "four": over_mesh("x", shape=(4,), dtype=np.int32),
    "s": over_mesh("x", "y", shape=(4, 8)),
    "key": lambda s: s.jax.random.key(0),
}


def test_constructors():
    same(
        """
        jaxpr(lambda: [jnp.zeros((8, 4), out_sharding=P('x')), jnp.ones(8, 'bool', out_sharding=P('x')), jnp.zeros(3, out_sharding=P())])
        jaxpr(lambda: [jnp.full((8, 4), 2.0, out_sharding=P('x')), jnp.empty((8, 4), out_sharding=P('x', 'y'))])
        jaxpr(lambda x: [jnp.full((8, 4), x, out_sharding=P('x')), jnp.full((4,), x, out_sharding=P('x'))], jnp.ones(4))
        jaxpr(lambda: jnp.full((8,), jax.random.key(0), out_sharding=P('x')))
        jaxpr(lambda: [jnp.arange(8, out_sharding=P('x')), jnp.arange(2, 10, 2, out_sharding=P('x')), jnp.arange(2, 10.0, 2, 'bfloat16', out_sharding=P('x'))])
        jaxpr(lambda x: [jnp.zeros_like(x, out_sharding=P('y')), jnp.full_like(x, 2, out_sharding=P('y')), jnp.ones_like(x, int, (4,), out_sharding=P('y'))], e)
        jaxpr(lambda: jnp.zeros((8, 4), out_sharding=P(unreduced={'x'})))
        [jnp.zeros((8, 4), out_sharding=P('x')), jnp.arange(8, out_sharding=P('x')), jnp.full_like(e, 2, out_sharding=P('y'))]
        """,
        setting="explicit",
        **GIVEN,
    )


def test_einsum():
    same(
        """
        run(lambda x: jnp.einsum('ij,kj->ik', x, x, out_sharding=P('x')), e)
        run(lambda x: jnp.einsum('ij,kj->ki', x, x, out_sharding=P('x')), e)
        jaxpr(lambda x: jnp.einsum('ij,kj->ik', x, x, out_sharding=P(unreduced={'y'})), c)
        run(lambda x, y: jnp.einsum('ijk,jkl->ijl', x, y, out_sharding=P('x', 'y')), jnp.ones((8, 4, 4)), jnp.ones((4, 4, 8)))
        run(lambda x, y: jnp.einsum('bi,bij->jb', x, y, out_sharding=P(None, 'x')), e, jnp.ones((8, 4, 4)))
        jaxpr(lambda x: jnp.einsum('ij,ij->ij', x, x, out_sharding=P('x', 'y')), o)
        jaxpr(lambda x: [jnp.einsum('ij->i', x, out_sharding=P('y')), jnp.einsum('ij->ji', x, out_sharding=P('x'))], e)
        jaxpr(lambda x: [jnp.einsum('iij->ij', x, out_sharding=P('x', 'y')), jnp.einsum('ijk->kj', x, out_sharding=P('x', 'y'))], jnp.ones((8, 8, 4)))
        run(lambda x, y, z: jnp.einsum('ij,jk,kl->il', x, y, z, out_sharding=P('x')), e, jnp.ones((4, 8)), np.ones((8, 4), np.float32))
        run(jax.grad(lambda x, y: jnp.einsum('ij,jk->ki', x, y, out_sharding=P('x')).sum()), o, jnp.ones((4, 8)))
        jaxpr(lambda x: lax.reduce_sum(x, (0,), out_sharding=P('x')), e)
        """,
        setting="explicit",
        **GIVEN,
    )
    auto = "PartitionSpec passed to einsum cannot contain axis names that are of type Auto or Manual"
    f = "lambda x: jnp.einsum('ij,kj->ik', x, x, out_sharding=P('x', None))"
    same_errors([(f"jax.sharding.auto_axes({f}, out_sharding=P())(e)", auto)], setting="explicit", **GIVEN)


def test_draws():
    same(
        """
        run(lambda k: random.normal(k, (8, 4), out_sharding=P('x')), key)
        jaxpr(lambda k: random.normal(k, (40,), out_sharding=P('x')), random.PRNGKey(0))
        jaxpr(lambda k: random.uniform(k, (8, 4), minval=jnp.zeros(4), out_sharding=P('x')), key)
        jaxpr(lambda k: [random.bits(k, (8,), out_sharding=P('x')), random.randint(k, (8,), 0, 9, out_sharding=P('x'))], key)
        jaxpr(lambda k: [random.gamma(k, 2.0, (8,), out_sharding=P('x')), random.triangular(k, 0.0, 0.5, 1.0, (8,), out_sharding=P('x'))], key)
        jaxpr(lambda k, x: [random.categorical(k, x, out_sharding=P('x')), random.permutation(k, x, out_sharding=P('x'))], key, o)
        jaxpr(lambda k: random.permutation(k, 8, out_sharding=P('x')), key)
        """,
        setting="explicit",
        **GIVEN,
    )


def test_indices():
    same(
        """
        run(lambda x, i: x.at[i].get(out_sharding=P('x')), e, jnp.arange(4))
        jaxpr(lambda x: [x.at[np.arange(2)].get(out_sharding=P(None, 'y')), x.at[[0, 1], 0].add(jnp.ones(2), out_sharding=P('x'))], e)
        run(lambda x: [x.at[0].set(1.0, out_sharding=P('x')), x.at[1:3].set(2, out_sharding=P('x'))], e)
        jaxpr(lambda x, i: [x.at[:, 0].get(out_sharding=P('x')), x.at[:, i].get(out_sharding=P('y'))], r, 1)
        run(lambda x, i: [x.at[i, 0].divide(jnp.full(3, 2.0), out_sharding=P('x')), x.at[i, 0].power(jnp.full(3, 2.0), out_sharding=P('x'))], r, jnp.arange(3))
        run(jax.vmap(lambda x, i: x.at[i].set(x.at[i].get(out_sharding=P()) + 1, out_sharding=P())), r, ids)
        types(jax.vmap(lambda x, i, y: lax.dynamic_update_slice_in_dim(x, y[None], i, axis=0)), t, four, s)
        types(jax.vmap(lambda x, i: lax.dynamic_slice_in_dim(x, i, 2, axis=0)), t, four)
        run(jax.vmap(jax.sharding.auto_axes(lambda x: x * 2, out_sharding=P('y'))), r)
        run(lambda x, i: [jax.ops.segment_sum(x, i, 4, out_sharding=P()), jax.ops.segment_max(x, i, 4, out_sharding=P())], r, ids)
        run(lambda x: jnp.bincount(x, length=4, out_sharding=P()), ids)
        run(lambda x: [jnp.repeat(x, 2, axis=0, out_sharding=P('x')), jnp.repeat(x, 3, axis=-1)], r)
        jaxpr(lambda x: jnp.repeat(x, np.array((2,) * 8), axis=0, out_sharding=P('x')), e)
        [jnp.repeat(np.eye(3), np.ones(3, int), axis=0), jnp.repeat(jnp.arange(4), 2)]
        run(lambda x: jnp.percentile(x, 50, axis=0, out_sharding=P()), r)
        jaxpr(jax.grad(jax.sharding.auto_axes(lambda x: (x * 2).sum(), out_sharding=P())), o)
        """,
        setting="explicit",
        **GIVEN,
    )
    same_errors(
        [
            ("o[ids]", "Use `.at[...].get(out_sharding=)`"),
            ("jax.vmap(lambda i: o[i])(ids)", "Use `.at[...].get(out_sharding=)`"),
            ("jnp.bincount(ids, length=4)", "Use `.at[...].set/add/mul/...(out_sharding=)`"),
            ("jnp.bincount(ids, length=4, out_sharding=P('x'))", "only be fully replicated or fully unreduced"),
            ("jax.ops.segment_max(r, ids, 4, out_sharding=P(unreduced={'x'}))", "unreduced"),
        ],
        setting="explicit",
        **GIVEN,
    )


def test_what_is_like_an_array_lies_as_it():
    same(
        """
        [lax.broadcast_like(np.arange(4), r), lax.broadcast_like(np.arange(4), e), lax.broadcast_like(jnp.float32(2), e)]
        jaxpr(lambda k: lax.rng_bit_generator(k, (4, 8), out_sharding=P('x')), np.arange(4, dtype=np.uint32))
        """,
        setting="explicit",
        **GIVEN,
    )


def test_refusals():
    away = "Mapped away dimension of inputs passed to vmap should be sharded the same"
    unmapped = "Unmapped values passed to vmap cannot be sharded"
    memory = "sharding with memory_kind is not allowed"
    same_errors(
        [
            ("jax.vmap(lambda x, y: (x, y))(r, o)", away),
            ("jax.jit(jax.vmap(lambda x, y: (x, y)))(r, np.ones((8, 4)))", away),
            ("jax.vmap(lambda x, y: x, in_axes=(0, None))(r, r)", unmapped),
            ("jax.vmap(lambda x, y: x, in_axes=(0, None))(jax.reshard(r, P(('x', 'y'))), c)", unmapped),
            ("jax.set_mesh(Mesh(d, 'x', (AxisType.Manual,)))", "contains manual axes"),
            ("NS(explicit, P(P.UNCONSTRAINED))", "cannot contain `P.UNCONSTRAINED`"),
            ("jnp.full((8,), 0, out_sharding=NS(explicit.abstract_mesh, P('x'), memory_kind='pinned_host'))", memory),
            ("jnp.cumsum(c)", "The input should be fully replicated"),
            ("jnp.unstack(e)", "unstack operand cannot be sharded on the unstacking axis"),
            ("lax.broadcast_like(jax.reshard(o[0], P('y')), r)", "Incompatible types for broadcasting"),
        ],
        setting="explicit",
        **GIVEN,
    )
