"""Shardings in types: over Explicit axes types, values, layouts and jaxprs are those of jax, and so are refusals."""

import pytest
from mesh_language import numbers, same, same_errors

pytestmark = pytest.mark.oracle


def made(shape, *spec):
    return lambda s: s.put(numbers(*shape), *spec, mesh=s.explicit)


GIVEN = {
    "e": made((8, 4), "x", "y"),
    "r": made((8, 4), "x"),
    "c": made((8, 4), None, "y"),
    "f": made((4, 8), "y", "x"),
    "w": made((4, 6), None, "y"),
    "q": made((8, 8), "x"),
    "v": made((8,), "x"),
    "b": made((4, 8, 4), "x"),
    "u": made((8, 1, 4), "x", None, "y"),
}


def test_types_of_arrays():
    same(
        """
        [jax.typeof(x) for x in (e, r, c, f, w, v, b, u)]
        [repr(jax.typeof(e)), jax.typeof(e).str_short(True, True), jax.typeof(e).sharding.spec]
        jax.typeof(jax.device_put(numbers(8), NS(explicit, P(('x', 'y')))))
        [jax.typeof(jnp.ones((8, 4))), jnp.ones((8, 4)), jax.typeof(jnp.float32(1)).sharding, jnp.arange(3) + 1]
        [jax.eval_shape(lambda x: x.sum(0), e), jax.eval_shape(lambda x: x.T, SDS((8, 4), 'float32', sharding=NS(explicit, P('x'))))]
        jaxpr(lambda x: jnp.sin(x) + 1, SDS((8, 4), 'float32', sharding=NS(explicit, P(None, 'y'))))
        """,
        setting="explicit",
        **GIVEN,
    )


@pytest.mark.parametrize("setting", ["explicit", ""])
def test_operations_element_by_element(setting):
    same(
        """
        run(lambda x: jnp.sin(x) * 2 + 1, e)
        run(lambda x, y: x + y, r, c)
        run(lambda x, y: x + y[None], e, np.ones(4, np.float32))
        run(lambda x, y: x * y, u, np.ones((8, 3, 1), np.float32))
        run(lambda x: jnp.where(x > 0, x, 0.0), e)
        run(lambda x: x.astype('int32'), e)
        run(lambda x: jnp.clip(x, -1, 1), e)
        run(lambda x: [jnp.ones_like(x), jnp.zeros_like(x), jnp.isnan(x)], e)
        run(lambda x: lax.bitcast_convert_type(x, 'int8'), e)
        """,
        setting=setting,
        **GIVEN,
    )


@pytest.mark.parametrize("setting", ["explicit", ""])
def test_operations_that_move(setting):
    same(
        """
        run(lambda x: x.T, e)
        run(lambda x: [x.reshape(32), x.reshape(4, 2, 4), x.reshape(8, 2, 2), x.reshape(8, 1, 4), x.reshape(1, 8, 4, 1)], e)
        run(lambda x: lax.squeeze(x, (1,)), u)
        run(lambda x: jnp.broadcast_to(x, (2, 8, 4)), e)
        run(lambda x: lax.broadcast_in_dim(x, (8, 3, 4), (0, 2)), e)
        run(lambda x: jnp.flip(x, 0), e)
        run(lambda x: lax.slice(x, (0, 0), (4, 4)), e)
        run(lambda x: lax.dynamic_slice(x, (0, 0), (8, 2)), r)
        run(lambda x: lax.dynamic_update_slice(x, x, (0, 0)), e)
        run(lambda x: lax.pad(x, 0.0, ((4, 4, 0), (0, 2, 0))), e)
        run(lambda x: jnp.concatenate([x, x]), e)
        run(lambda x: jnp.concatenate([x, x], 1), r)
        run(lambda x: jnp.stack([x, x]), e)
        run(lambda x: jnp.split(x, 2), e)
        run(lambda x: jnp.tile(x, (1, 2)), r)
        run(lambda x: [jnp.sort(x, 1), lax.cumsum(x, 1), lax.top_k(x, 2)], r)
        types(lambda x: jnp.take(x, jnp.array([1, 2]), axis=0), c)
        """,
        setting=setting,
        **GIVEN,
    )


@pytest.mark.parametrize("setting", ["explicit", ""])
def test_reductions_and_products(setting):
    same(
        """
        run(lambda x: [x.sum(0), x.sum(), x.max(1), jnp.argmax(x, 0), x.mean(1), jnp.var(x, 1)], e)
        types(lambda x: [jax.nn.softmax(x), jax.nn.logsumexp(x, 1)], r)
        run(lambda x, y: x @ y, r, w)
        run(lambda x, y: x @ y, c, np.ones((4, 3), np.float32))
        run(lambda x: jnp.outer(x, np.ones(3, np.float32)), v)
        run(lambda x, y: lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))), b, b.transpose(0, 2, 1))
        run(lambda x, y: jnp.einsum('ij,jk->ki', x, y), r, w)
        types(lambda x: lax.conv(x, np.ones((2, 3, 2, 2), np.float32), (1, 1), 'SAME'), jax.device_put(numbers(8, 3, 4, 4), NS(explicit, P('x'))))
        types(lambda x: jnp.fft.fft(x), r)
        types(lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2), (1, 1), 'SAME'), r)
        """,
        setting=setting,
        **GIVEN,
    )


def test_what_users_ask_for():
    same(
        """
        types(lambda x: jnp.dot(x, x.T, out_sharding=P('x', None)), e)
        types(lambda x: jnp.einsum('ij,kj->ik', x, x, out_sharding=P('x', None)), e)
        run(lambda x: jnp.reshape(x, (4, 8), out_sharding=P('x', None)), e)
        types(lambda x: x.at[jnp.array([0, 1])].get(out_sharding=P(None, 'x')), e)
        types(lambda x: x.at[0].set(1.0), c)
        types(lambda x: x.at[0].set(2.0, out_sharding=P('x', 'y')), e)
        types(lambda: [jnp.zeros((8, 4), out_sharding=P('x')), jnp.arange(8, out_sharding=P('x'))])
        types(lambda k: jax.random.normal(k, (8, 4), out_sharding=P('x')), jax.random.key(0))
        run(lambda x: jax.reshard(x, P('y')), e)
        run(lambda x: jax.reshard(x, P()), e)
        types(lambda x: lax.with_sharding_constraint(x, P('x', 'y')), e)
        types(jax.sharding.auto_axes(lambda x: x @ x.T, out_sharding=P('x', None)), e)
        jaxpr(jax.sharding.auto_axes(lambda x: x @ x.T, out_sharding=P('x', None)), e)
        types(jax.jit(jax.sharding.auto_axes(lambda x: x[0], out_sharding=P('y'))), e)
        types(jax.jit(jax.sharding.auto_axes(lambda x: x * 2, axes='y', out_sharding=P('x', 'y'))), e)
        types(lambda x: jax.ops.segment_sum(x, jnp.array([0, 0, 1, 1, 2, 2, 3, 3]), 4, out_sharding=P()), v)
        """,
        setting="explicit",
        **GIVEN,
    )


def test_transformations():
    same(
        """
        run(jax.grad(lambda x: jnp.sin(x).sum()), e)
        run(jax.grad(lambda x, y: jnp.sin(x @ y).sum(), (0, 1)), r, w)
        run(jax.grad(lambda x: (x.sum(0) ** 2).sum()), e)
        run(jax.grad(lambda x: (x.reshape(32) ** 2).sum()), e)
        run(jax.grad(lambda x: jnp.concatenate([x, 2 * x]).sum()), e)
        run(jax.grad(lambda x: jax.checkpoint(jnp.sin)(x).sum()), e)
        run(jax.grad(lambda x: jax.jit(jnp.sin)(x).sum()), e)
        types(jax.grad(lambda x: jax.nn.relu(x).sum()), e)
        types(lambda x: jax.jvp(jnp.sin, (x,), (x,)), e)
        types(lambda x: jax.vjp(lambda y: y.T, x)[1](x.T), e)
        run(jax.vmap(lambda x: x * 2), e)
        run(jax.vmap(lambda x, y: x @ y), b, b.transpose(0, 2, 1))
        run(jax.vmap(lambda x: x * 2, in_axes=1, out_axes=1), e)
        run(jax.vmap(jax.grad(lambda x: jnp.sin(x).sum())), e)
        run(jax.grad(lambda x: jax.vmap(lambda y: jnp.sin(y).sum())(x).sum()), e)
        run(lambda x: lax.scan(lambda c, y: (c + y, c * 2), jax.reshard(jnp.zeros(4), P('y')), x), c)
        run(lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x), e)
        types(lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 2), (0, x))[1], e)
        types(jax.grad(lambda x: lax.scan(lambda c, y: (c * y, None), jax.reshard(jnp.ones(4), P('y')), x)[0].sum()), c)
        types(jax.jit(jax.vmap(jax.jit(lambda x: jnp.sin(x).sum()))), e)
        """,
        setting="explicit",
        **GIVEN,
    )


@pytest.mark.parametrize("setting", ["explicit", ""])
def test_functions_of_parts(setting):
    same(
        """
        types(jax.shard_map(lambda x: lax.psum(x, 'x'), mesh=explicit, in_specs=P('x'), out_specs=P()), v)
        types(jax.shard_map(lambda x: jnp.sin(x) * 2, mesh=explicit, in_specs=P('x', 'y'), out_specs=P('x', 'y')), e)
        types(jax.jit(jax.shard_map(lambda x: x.T, mesh=explicit, in_specs=P('x', 'y'), out_specs=P('y', 'x'))), e)
        """,
        setting=setting,
        **GIVEN,
    )
    f = "lambda x: jax.shard_map(lambda y: lax.psum(jnp.sin(y).sum(), 'x'), mesh=explicit, in_specs=P('x'), out_specs=P())(x)"
    same(f"types(jax.grad({f}), v)", setting="explicit", **GIVEN)


def test_functions_of_parts_take_the_specs_of_types():
    same(
        """
        types(jax.shard_map(lambda x: x * 2, out_specs=P('x', 'y')), e)
        types(jax.jit(jax.shard_map(lambda x, y: x + y['a'], out_specs=P('x', 'y'))), e, {'a': e})
        types(jax.shard_map(lambda x, y: x * y, in_specs=(P('x', 'y'), P()), out_specs=P('x', 'y')), e, 2.0)
        types(jax.shard_map(lambda x: lax.psum(x, 'x'), out_specs=P(None, 'y')), e)
        types(jax.grad(lambda x: jax.shard_map(lambda y: lax.psum((y**2).sum(), ('x', 'y')), out_specs=P())(x)), e)
        types(jax.shard_map(lambda x: x * 2, out_specs=P('x')), np.ones(8, np.float32))
        """,
        setting="explicit",
        **GIVEN,
    )
    refused = "does not match the specs of the input"
    same_errors(
        [
            ("jax.shard_map(lambda x: x, in_specs=P('y'), out_specs=P('y'))(e)", refused),
            ("jax.shard_map(lambda x: x, in_specs=P('x'), out_specs=P('x'))(jnp.ones(8))", refused),
            (
                "jax.shard_map(lambda x: x * v.sum(), in_specs=P('x'), out_specs=P('x'))(v)",
                "Closing over inputs to shard_map",
            ),
        ],
        setting="explicit",
        **GIVEN,
    )
    same_errors([("jax.shard_map(lambda x: x, out_specs=P('x'))(a)", "but it was `None` when axis_names")], setting="m")


def test_texts():
    same(
        """
        text(lambda x: jnp.sin(x) * 2, e)
        text(lambda x: x.sum(0), e)
        text(lambda x: jnp.ones((8, 4)) + 1, e)
        text(lambda x: jax.reshard(x, P('y')), e)
        text(lambda x, y: x @ y, r, w)
        text(lambda x: jax.jit(jnp.sin)(x), e)
        text(jax.grad(lambda x: (x.sum(0) ** 2).sum()), e)
        text(jax.sharding.auto_axes(lambda x: x @ x.T, out_sharding=P('x', None)), e)
        text(jax.sharding.auto_axes(lambda x: jnp.where(x > 0, x, 0.0) * 2, out_sharding=P('x', 'y')), e)
        """,
        setting="explicit",
        **GIVEN,
    )


def test_what_is_not_batched_is_split_as_what_is():
    same(
        """
        types(jax.vmap(jax.grad(lambda x: lax.cumsum(x, 0).sum())), r)
        types(jax.vmap(jax.grad(lambda x: jnp.sort(x).sum())), r)
        types(jax.vmap(jax.grad(lambda x: (jnp.split(x, 2)[0] ** 2).sum())), r)
        types(jax.vmap(jax.grad(lambda x: lax.cond(True, lambda y: (y**2).sum(), lambda y: y.sum(), x))), e)
        types(jax.grad(lambda x: (lax.dynamic_slice(x, (0, 1), (8, 2)) ** 2).sum()), r)
        types(lambda x: jnp.argsort(x, 1), r)
        types(lambda x: jnp.broadcast_arrays(x, 1.0), e)
        types(lambda x: jnp.select([x > 1, x > 0], [x, -x], 0.0), e)
        types(lambda x: jnp.fft.fft(x), e)
        """,
        setting="explicit",
        **GIVEN,
    )


def test_some_axes_are_explicit():
    mixed = lambda s: s.jax.make_mesh((4, 2), ("x", "y"), (s.AxisType.Explicit, s.AxisType.Auto), devices=s.d)  # noqa: E731
    given = {"e": lambda s: s.put(numbers(8, 4), "x", "y", mesh=mixed(s)), "mixed": mixed}
    same(
        """
        [jax.typeof(e), jax.typeof(jnp.sin(e)), jnp.sin(e) * 2]
        jax.jit(lambda x: x.sum(1))(e)
        text(lambda x: jnp.sin(x), e)
        text(lambda x: x.sum(0), e)
        """,
        **given,
    )


def test_what_is_ambiguous_is_refused():
    on_mesh = [
        ("e + e.T.reshape(8, 4)", "This reshape is not supported"),
        ("e + jax.reshard(e, P('y', 'x'))", "add got incompatible shardings for broadcasting"),
        ("r + jax.reshard(e, P(None, 'x'))", "produces an illegally sharded result"),
        ("e @ e.T", "Contracting dimensions are sharded and it is ambiguous"),
        ("q @ q.T", "illegally sharded"),
        ("e @ jax.reshard(e, P(None, 'x')).T", "requires contracting dimensions to have consistent sharding"),
        ("e.reshape(2, 4, 4)", "This reshape is not supported"),
        ("e[jnp.array([0, 1])]", "Use `.at[...].get(out_sharding=)`"),
        ("e.at[0].set(1.0)", "Use `.at[...].set/add/mul/...(out_sharding=)`"),
        ("lax.cumsum(e, 0)", "Input should be unsharded over the axis being reduced"),
        ("jnp.sort(e)", "must be unsharded over the sorting dimension"),
        ("lax.top_k(e, 2)", "should be unsharded over the axis"),
        ("jnp.tile(e, (2, 1))", "cannot be sharded on dimension 0"),
        ("jnp.concatenate([r, c])", "All operands should have the same sharding"),
        ("lax.slice(e, (0, 0), (6, 4))", "out dim (6) is not divisible by mesh axes (4)"),
        ("lax.dynamic_update_slice(e, jnp.ones((2, 2)), (0, 0))", "operand sharding must be equal to update sharding"),
        ("jnp.linalg.svd(e)", "must be unsharded on non-batch dimensions"),
        ("lax.conv(e[None, None], e[None, None], (1, 1), 'SAME')", "Please specify the output sharding"),
        ("lax.with_sharding_constraint(e, P('y'))", "acts as an assert"),
        ("lax.scan(lambda c, x: (c, x), 0.0, e)", "0th dimension of all xs should be replicated"),
        ("lax.scan(lambda c, _: (c + e, None), jnp.zeros((8, 4)), None, length=2)", "must have equal types"),
        ("lax.cond(True, lambda: e, lambda: jnp.zeros((8, 4)))", "must have equal output types"),
        ("jax.vmap(lambda x, y: x)(r, jax.reshard(r, P('y')))", "Mapped away dimension of inputs passed to vmap should be sharded the same"),
        ("SDS((5, 2), 'float32', sharding=P('x')) and jax.eval_shape(lambda x: x, SDS((5, 2), 'float32', sharding=P('x')))", "evenly divide"),
        ("lax.select(e > 0, e, jax.reshard(e, P('y', 'x')))", "select cases must have the same shardings"),
    ]  # fmt: skip
    same_errors(on_mesh, setting="explicit", **GIVEN)


@pytest.mark.parametrize("mesh", ["explicit", "m"])
def test_specs_with_nones_for_axes_that_there_are_not(mesh):
    given = {"x": lambda s: s.lax.full((8,), 1.0, sharding=s.NS(vars(s)[mesh], s.P("x", None)))}
    same(
        f"""
        [x, x.sharding.spec, x.sharding == NS({mesh}, P('x')), jax.typeof(x)]
        [(-x).sharding.spec, x + 1, jax.jit(lambda a: (a * 2, a.sum()))(x)]
        [jax.device_put(x, NS({mesh}, P())), x.copy(), [s.data for s in x.addressable_shards]]
        [jnp.zeros(8, device=x.sharding).sharding.spec, lax.full_like(x, 2.0).sharding.spec]
        jax.vmap(lambda a: a + 1)(x)
        jax.jit(jax.shard_map(lambda a: a + 1, mesh={mesh}, in_specs=P('x'), out_specs=P('x')))(x)
        [x.sharding.shard_shape((8,)), len(x.sharding.devices_indices_map((8,)))]
        """,
        **given,
    )
    for line in ("jax.device_put(numbers(8), x.sharding)", "jax.jit(lambda a: a, in_shardings=x.sharding)(numbers(8))"):
        same_errors([(line, "is incompatible with its sharding annotation")], **given)
