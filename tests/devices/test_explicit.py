"""Explicit axes: one table of plain cases for each kind of operation and transformation, and for ambiguous shardings.

Cases that need an index, a window, a requested sharding or an unreduced value have files of their own, and differences
that random programs have found are in `test_explicit_programs`.
"""

import itertools

import compare
import numpy as np
import pytest
from mesh_language import numbers, same, same_errors

pytestmark = pytest.mark.oracle


def made(shape, *spec):
    return lambda s: s.shard(numbers(*shape), *spec, mesh=s.explicit_mesh)


GIVEN = {
    "transposed": made((4, 8), "y", "x"),
    "other_columns": made((4, 6), None, "y"),
    "square_rows": made((8, 8), "x"),
    "sharded_vector": made((8,), "x"),
    "batch": made((4, 8, 4), "x"),
    "with_unit_axis": made((8, 1, 4), "x", None, "y"),
}


def test_results_of_values_without_a_mesh_have_the_mesh_that_is_set_where_jax_gives_it():
    def meshes(s, *functions):
        found, x = [], np.ones((4, 8), np.float32)
        s.jax.make_jaxpr(lambda: found.extend(str(s.jax.typeof(f(x)).sharding.mesh.shape) for f in functions))()
        return found

    same(
        [
            lambda s: meshes(
                s,
                s.lax.sin,
                lambda x: s.lax.add(x, x),
                lambda x: s.lax.select(x > 0, x, x),
                lambda x: s.lax.convert_element_type(x, "int32"),
                lambda x: s.lax.clamp(0.0, x, 1.0),
                lambda x: s.lax.concatenate([x, x], 0),
            )
        ],
        set_mesh="explicit_mesh",
    )


def test_types_of_arrays():
    same(
        [
            lambda s: [
                s.jax.typeof(x)
                for x in (
                    s.sharded_both,
                    s.sharded_rows,
                    s.sharded_columns,
                    s.transposed,
                    s.other_columns,
                    s.sharded_vector,
                    s.batch,
                    s.with_unit_axis,
                )
            ],
            lambda s: [
                repr(s.jax.typeof(s.sharded_both)),
                s.jax.typeof(s.sharded_both).str_short(True, True),
                s.jax.typeof(s.sharded_both).sharding.spec,
            ],
            lambda s: s.jax.typeof(s.jax.device_put(numbers(8), s.NamedSharding(s.explicit_mesh, s.P(("x", "y"))))),
            lambda s: [
                s.jax.typeof(s.jnp.ones((8, 4))),
                s.jnp.ones((8, 4)),
                s.jax.typeof(s.jnp.float32(1)).sharding,
                s.jnp.arange(3) + 1,
            ],
            lambda s: [
                s.jax.eval_shape(lambda x: x.sum(0), s.sharded_both),
                s.jax.eval_shape(
                    lambda x: x.T,
                    s.ShapeDtypeStruct((8, 4), "float32", sharding=s.NamedSharding(s.explicit_mesh, s.P("x"))),
                ),
            ],
            lambda s: s.jaxpr(
                lambda x: s.jnp.sin(x) + 1,
                s.ShapeDtypeStruct((8, 4), "float32", sharding=s.NamedSharding(s.explicit_mesh, s.P(None, "y"))),
            ),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )


@pytest.mark.parametrize("set_mesh", ["explicit_mesh", ""])
def test_elementwise_operations(set_mesh):
    same(
        [
            lambda s: s.run(lambda x: s.jnp.sin(x) * 2 + 1, s.sharded_both),
            lambda s: s.run(lambda x, y: x + y, s.sharded_rows, s.sharded_columns),
            lambda s: s.run(lambda x, y: x + y[None], s.sharded_both, np.ones(4, np.float32)),
            lambda s: s.run(lambda x, y: x * y, s.with_unit_axis, np.ones((8, 3, 1), np.float32)),
            lambda s: s.run(lambda x: s.jnp.where(x > 0, x, 0.0), s.sharded_both),
            lambda s: s.run(lambda x: x.astype("int32"), s.sharded_both),
            lambda s: s.run(lambda x: s.jnp.clip(x, -1, 1), s.sharded_both),
            lambda s: s.run(lambda x: [s.jnp.ones_like(x), s.jnp.zeros_like(x), s.jnp.isnan(x)], s.sharded_both),
            lambda s: s.run(lambda x: s.lax.bitcast_convert_type(x, "int8"), s.sharded_both),
        ],
        set_mesh=set_mesh,
        **GIVEN,
    )


@pytest.mark.parametrize("set_mesh", ["explicit_mesh", ""])
def test_shape_operations(set_mesh):
    same(
        [
            lambda s: s.run(lambda x: x.T, s.sharded_both),
            lambda s: s.run(
                lambda x: [
                    x.reshape(32),
                    x.reshape(4, 2, 4),
                    x.reshape(8, 2, 2),
                    x.reshape(8, 1, 4),
                    x.reshape(1, 8, 4, 1),
                ],
                s.sharded_both,
            ),
            lambda s: s.run(lambda x: s.lax.squeeze(x, (1,)), s.with_unit_axis),
            lambda s: s.run(lambda x: s.jnp.broadcast_to(x, (2, 8, 4)), s.sharded_both),
            lambda s: s.run(lambda x: s.lax.broadcast_in_dim(x, (8, 3, 4), (0, 2)), s.sharded_both),
            lambda s: s.run(lambda x: s.jnp.flip(x, 0), s.sharded_both),
            lambda s: s.run(lambda x: s.lax.slice(x, (0, 0), (4, 4)), s.sharded_both),
            lambda s: s.run(lambda x: s.lax.dynamic_slice(x, (0, 0), (8, 2)), s.sharded_rows),
            lambda s: s.run(lambda x: s.lax.dynamic_update_slice(x, x, (0, 0)), s.sharded_both),
            lambda s: s.run(lambda x: s.lax.pad(x, 0.0, ((4, 4, 0), (0, 2, 0))), s.sharded_both),
            lambda s: s.run(lambda x: s.jnp.concatenate([x, x]), s.sharded_both),
            lambda s: s.run(lambda x: s.jnp.concatenate([x, x], 1), s.sharded_rows),
            lambda s: s.run(lambda x: s.jnp.stack([x, x]), s.sharded_both),
            lambda s: s.run(lambda x: s.jnp.split(x, 2), s.sharded_both),
            lambda s: s.run(lambda x: s.jnp.tile(x, (1, 2)), s.sharded_rows),
            lambda s: s.run(lambda x: [s.jnp.sort(x, 1), s.lax.cumsum(x, 1), s.lax.top_k(x, 2)], s.sharded_rows),
            lambda s: s.types(lambda x: s.jnp.take(x, s.jnp.array([1, 2]), axis=0), s.sharded_columns),
        ],
        set_mesh=set_mesh,
        **GIVEN,
    )


@pytest.mark.parametrize("set_mesh", ["explicit_mesh", ""])
def test_reductions_and_products(set_mesh):
    same(
        [
            lambda s: s.run(
                lambda x: [x.sum(0), x.sum(), x.max(1), s.jnp.argmax(x, 0), x.mean(1), s.jnp.var(x, 1)], s.sharded_both
            ),
            lambda s: s.types(lambda x: [s.jax.nn.softmax(x), s.jax.nn.logsumexp(x, 1)], s.sharded_rows),
            lambda s: s.run(lambda x, y: x @ y, s.sharded_rows, s.other_columns),
            lambda s: s.run(lambda x, y: x @ y, s.sharded_columns, np.ones((4, 3), np.float32)),
            lambda s: s.run(lambda x: s.jnp.outer(x, np.ones(3, np.float32)), s.sharded_vector),
            lambda s: s.run(
                lambda x, y: s.lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))), s.batch, s.batch.transpose(0, 2, 1)
            ),
            lambda s: s.run(lambda x, y: s.jnp.einsum("ij,jk->ki", x, y), s.sharded_rows, s.other_columns),
            lambda s: s.types(
                lambda x: s.lax.conv(x, np.ones((2, 3, 2, 2), np.float32), (1, 1), "SAME"),
                s.jax.device_put(numbers(8, 3, 4, 4), s.NamedSharding(s.explicit_mesh, s.P("x"))),
            ),
            lambda s: s.types(lambda x: s.jnp.fft.fft(x), s.sharded_rows),
            lambda s: s.types(lambda x: s.lax.reduce_window(x, 0.0, s.lax.add, (1, 2), (1, 1), "SAME"), s.sharded_rows),
        ],
        set_mesh=set_mesh,
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


def test_transformations():
    same(
        [
            lambda s: s.run(s.jax.grad(lambda x: s.jnp.sin(x).sum()), s.sharded_both),
            lambda s: s.run(s.jax.grad(lambda x, y: s.jnp.sin(x @ y).sum(), (0, 1)), s.sharded_rows, s.other_columns),
            lambda s: s.run(s.jax.grad(lambda x: (x.sum(0) ** 2).sum()), s.sharded_both),
            lambda s: s.run(s.jax.grad(lambda x: (x.reshape(32) ** 2).sum()), s.sharded_both),
            lambda s: s.run(s.jax.grad(lambda x: s.jnp.concatenate([x, 2 * x]).sum()), s.sharded_both),
            lambda s: s.run(s.jax.grad(lambda x: s.jax.checkpoint(s.jnp.sin)(x).sum()), s.sharded_both),
            lambda s: s.run(s.jax.grad(lambda x: s.jax.jit(s.jnp.sin)(x).sum()), s.sharded_both),
            lambda s: s.types(s.jax.grad(lambda x: s.jax.nn.relu(x).sum()), s.sharded_both),
            lambda s: s.types(lambda x: s.jax.jvp(s.jnp.sin, (x,), (x,)), s.sharded_both),
            lambda s: s.types(lambda x: s.jax.vjp(lambda y: y.T, x)[1](x.T), s.sharded_both),
            lambda s: s.run(s.jax.vmap(lambda x: x * 2), s.sharded_both),
            lambda s: s.run(s.jax.vmap(lambda x, y: x @ y), s.batch, s.batch.transpose(0, 2, 1)),
            lambda s: s.run(s.jax.vmap(lambda x: x * 2, in_axes=1, out_axes=1), s.sharded_both),
            lambda s: s.run(s.jax.vmap(s.jax.grad(lambda x: s.jnp.sin(x).sum())), s.sharded_both),
            lambda s: s.run(s.jax.grad(lambda x: s.jax.vmap(lambda y: s.jnp.sin(y).sum())(x).sum()), s.sharded_both),
            lambda s: s.run(
                lambda x: s.lax.scan(lambda c, y: (c + y, c * 2), s.jax.reshard(s.jnp.zeros(4), s.P("y")), x),
                s.sharded_columns,
            ),
            lambda s: s.run(lambda x: s.lax.cond(x.sum() > 0, s.jnp.sin, s.jnp.cos, x), s.sharded_both),
            lambda s: s.types(
                lambda x: s.lax.while_loop(
                    lambda state: state[0] < 3, lambda state: (state[0] + 1, state[1] * 2), (0, x)
                )[1],
                s.sharded_both,
            ),
            lambda s: s.types(
                s.jax.grad(
                    lambda x: s.lax.scan(lambda c, y: (c * y, None), s.jax.reshard(s.jnp.ones(4), s.P("y")), x)[0].sum()
                ),
                s.sharded_columns,
            ),
            lambda s: s.types(s.jax.jit(s.jax.vmap(s.jax.jit(lambda x: s.jnp.sin(x).sum()))), s.sharded_both),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )


@pytest.mark.parametrize("set_mesh", ["explicit_mesh", ""])
def test_shard_map(set_mesh):
    same(
        [
            lambda s: s.types(
                s.jax.shard_map(lambda x: s.lax.psum(x, "x"), mesh=s.explicit_mesh, in_specs=s.P("x"), out_specs=s.P()),
                s.sharded_vector,
            ),
            lambda s: s.types(
                s.jax.shard_map(
                    lambda x: s.jnp.sin(x) * 2, mesh=s.explicit_mesh, in_specs=s.P("x", "y"), out_specs=s.P("x", "y")
                ),
                s.sharded_both,
            ),
            lambda s: s.types(
                s.jax.jit(
                    s.jax.shard_map(
                        lambda x: x.T, mesh=s.explicit_mesh, in_specs=s.P("x", "y"), out_specs=s.P("y", "x")
                    )
                ),
                s.sharded_both,
            ),
        ],
        set_mesh=set_mesh,
        **GIVEN,
    )
    same(
        [
            lambda s: s.types(
                s.jax.grad(
                    lambda x: s.jax.shard_map(
                        lambda y: s.lax.psum(s.jnp.sin(y).sum(), "x"),
                        mesh=s.explicit_mesh,
                        in_specs=s.P("x"),
                        out_specs=s.P(),
                    )(x)
                ),
                s.sharded_vector,
            )
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )


def test_shard_map_infers_in_specs_from_types():
    same(
        [
            lambda s: s.types(s.jax.shard_map(lambda x: x * 2, out_specs=s.P("x", "y")), s.sharded_both),
            lambda s: s.types(
                s.jax.jit(s.jax.shard_map(lambda x, y: x + y["a"], out_specs=s.P("x", "y"))),
                s.sharded_both,
                {"a": s.sharded_both},
            ),
            lambda s: s.types(
                s.jax.shard_map(lambda x, y: x * y, in_specs=(s.P("x", "y"), s.P()), out_specs=s.P("x", "y")),
                s.sharded_both,
                2.0,
            ),
            lambda s: s.types(s.jax.shard_map(lambda x: s.lax.psum(x, "x"), out_specs=s.P(None, "y")), s.sharded_both),
            lambda s: s.types(
                s.jax.grad(
                    lambda x: s.jax.shard_map(lambda y: s.lax.psum((y**2).sum(), ("x", "y")), out_specs=s.P())(x)
                ),
                s.sharded_both,
            ),
            lambda s: s.types(s.jax.shard_map(lambda x: x * 2, out_specs=s.P("x")), np.ones(8, np.float32)),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )
    refused = "does not match the specs of the input"
    same_errors(
        [
            (lambda s: s.jax.shard_map(lambda x: x, in_specs=s.P("y"), out_specs=s.P("y"))(s.sharded_both), refused),
            (lambda s: s.jax.shard_map(lambda x: x, in_specs=s.P("x"), out_specs=s.P("x"))(s.jnp.ones(8)), refused),
            (
                lambda s: s.jax.shard_map(lambda x: x * s.sharded_vector.sum(), in_specs=s.P("x"), out_specs=s.P("x"))(
                    s.sharded_vector
                ),
                "Closing over inputs to shard_map",
            ),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )
    same_errors(
        [
            (
                lambda s: s.jax.shard_map(lambda x: x, out_specs=s.P("x"))(s.auto_matrix),
                "but it was `None` when axis_names",
            )
        ],
        set_mesh="mesh",
    )


def test_texts():
    same(
        [
            lambda s: s.text(lambda x: s.jnp.sin(x) * 2, s.sharded_both),
            lambda s: s.text(lambda x: x.sum(0), s.sharded_both),
            lambda s: s.text(lambda x: s.jnp.ones((8, 4)) + 1, s.sharded_both),
            lambda s: s.text(lambda x: s.jax.reshard(x, s.P("y")), s.sharded_both),
            lambda s: s.text(lambda x, y: x @ y, s.sharded_rows, s.other_columns),
            lambda s: s.text(lambda x: s.jax.jit(s.jnp.sin)(x), s.sharded_both),
            lambda s: s.text(s.jax.grad(lambda x: (x.sum(0) ** 2).sum()), s.sharded_both),
            lambda s: s.text(s.jax.sharding.auto_axes(lambda x: x @ x.T, out_sharding=s.P("x", None)), s.sharded_both),
            lambda s: s.text(
                s.jax.sharding.auto_axes(lambda x: s.jnp.where(x > 0, x, 0.0) * 2, out_sharding=s.P("x", "y")),
                s.sharded_both,
            ),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )


def test_unbatched_operands_are_sharded_over_the_batch():
    same(
        [
            lambda s: s.types(s.jax.vmap(s.jax.grad(lambda x: s.lax.cumsum(x, 0).sum())), s.sharded_rows),
            lambda s: s.types(s.jax.vmap(s.jax.grad(lambda x: s.jnp.sort(x).sum())), s.sharded_rows),
            lambda s: s.types(s.jax.vmap(s.jax.grad(lambda x: (s.jnp.split(x, 2)[0] ** 2).sum())), s.sharded_rows),
            lambda s: s.types(
                s.jax.vmap(s.jax.grad(lambda x: s.lax.cond(True, lambda y: (y**2).sum(), lambda y: y.sum(), x))),
                s.sharded_both,
            ),
            lambda s: s.types(
                s.jax.grad(lambda x: (s.lax.dynamic_slice(x, (0, 1), (8, 2)) ** 2).sum()), s.sharded_rows
            ),
            lambda s: s.types(lambda x: s.jnp.argsort(x, 1), s.sharded_rows),
            lambda s: s.types(lambda x: s.jnp.broadcast_arrays(x, 1.0), s.sharded_both),
            lambda s: s.types(lambda x: s.jnp.select([x > 1, x > 0], [x, -x], 0.0), s.sharded_both),
            lambda s: s.types(lambda x: s.jnp.fft.fft(x), s.sharded_both),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )


def test_meshes_of_explicit_and_auto_axes():
    def over_mixed_axes(s):
        types = (s.AxisType.Explicit, s.AxisType.Auto)
        return s.shard(numbers(8, 4), "x", "y", mesh=s.jax.make_mesh((4, 2), ("x", "y"), types, devices=s.devices))

    same(
        [
            lambda s: [
                s.jax.typeof(s.over_mixed_axes),
                s.jax.typeof(s.jnp.sin(s.over_mixed_axes)),
                s.jnp.sin(s.over_mixed_axes) * 2,
            ],
            lambda s: s.jax.jit(lambda x: x.sum(1))(s.over_mixed_axes),
            lambda s: s.text(lambda x: s.jnp.sin(x), s.over_mixed_axes),
            lambda s: s.text(lambda x: x.sum(0), s.over_mixed_axes),
        ],
        over_mixed_axes=over_mixed_axes,
    )


def test_ambiguous_shardings_are_refused():
    cases = [
        (lambda s: s.sharded_both + s.sharded_both.T.reshape(8, 4), "This reshape is not supported"),
        (
            lambda s: s.sharded_both + s.jax.reshard(s.sharded_both, s.P("y", "x")),
            "add got incompatible shardings for broadcasting",
        ),
        (
            lambda s: s.sharded_rows + s.jax.reshard(s.sharded_both, s.P(None, "x")),
            "produces an illegally sharded result",
        ),
        (lambda s: s.sharded_both @ s.sharded_both.T, "Contracting dimensions are sharded and it is ambiguous"),
        (lambda s: s.square_rows @ s.square_rows.T, "illegally sharded"),
        (
            lambda s: s.sharded_both @ s.jax.reshard(s.sharded_both, s.P(None, "x")).T,
            "requires contracting dimensions to have consistent sharding",
        ),
        (lambda s: s.sharded_both.reshape(2, 4, 4), "This reshape is not supported"),
        (lambda s: s.sharded_both[s.jnp.array([0, 1])], "Use `.at[...].get(out_sharding=)`"),
        (lambda s: s.sharded_both.at[0].set(1.0), "Use `.at[...].set/add/mul/...(out_sharding=)`"),
        (lambda s: s.lax.cumsum(s.sharded_both, 0), "Input should be unsharded over the axis being reduced"),
        (lambda s: s.jnp.sort(s.sharded_both), "must be unsharded over the sorting dimension"),
        (lambda s: s.lax.top_k(s.sharded_both, 2), "should be unsharded over the axis"),
        (lambda s: s.jnp.tile(s.sharded_both, (2, 1)), "cannot be sharded on dimension 0"),
        (
            lambda s: s.jnp.concatenate([s.sharded_rows, s.sharded_columns]),
            "All operands should have the same sharding",
        ),
        (lambda s: s.lax.slice(s.sharded_both, (0, 0), (6, 4)), "out dim (6) is not divisible by mesh axes (4)"),
        (
            lambda s: s.lax.dynamic_update_slice(s.sharded_both, s.jnp.ones((2, 2)), (0, 0)),
            "operand sharding must be equal to update sharding",
        ),
        (lambda s: s.jnp.linalg.svd(s.sharded_both), "must be unsharded on non-batch dimensions"),
        (
            lambda s: s.lax.conv(s.sharded_both[None, None], s.sharded_both[None, None], (1, 1), "SAME"),
            "Please specify the output sharding",
        ),
        (lambda s: s.lax.with_sharding_constraint(s.sharded_both, s.P("y")), "acts as an assert"),
        (
            lambda s: s.lax.scan(lambda c, x: (c, x), 0.0, s.sharded_both),
            "0th dimension of all xs should be replicated",
        ),
        (
            lambda s: s.lax.scan(lambda c, _: (c + s.sharded_both, None), s.jnp.zeros((8, 4)), None, length=2),
            "must have equal types",
        ),
        (
            lambda s: s.lax.cond(True, lambda: s.sharded_both, lambda: s.jnp.zeros((8, 4))),
            "must have equal output types",
        ),
        (
            lambda s: s.jax.vmap(lambda x, y: x)(s.sharded_rows, s.jax.reshard(s.sharded_rows, s.P("y"))),
            "Mapped away dimension of inputs passed to vmap should be sharded the same",
        ),
        (
            lambda s: (
                s.ShapeDtypeStruct((5, 2), "float32", sharding=s.P("x"))
                and s.jax.eval_shape(lambda x: x, s.ShapeDtypeStruct((5, 2), "float32", sharding=s.P("x")))
            ),
            "evenly divide",
        ),
        (
            lambda s: s.lax.select(s.sharded_both > 0, s.sharded_both, s.jax.reshard(s.sharded_both, s.P("y", "x"))),
            "select cases must have the same shardings",
        ),
    ]
    same_errors(cases, set_mesh="explicit_mesh", **GIVEN)


@pytest.mark.parametrize("mesh", ["explicit_mesh", "mesh"])
def test_specs_longer_than_the_rank(mesh):
    given = {
        "mesh_of_spec": lambda s: getattr(s, mesh),
        "with_long_spec": lambda s: s.lax.full((8,), 1.0, sharding=s.NamedSharding(getattr(s, mesh), s.P("x", None))),
    }
    same(
        [
            lambda s: [
                s.with_long_spec,
                s.with_long_spec.sharding.spec,
                s.with_long_spec.sharding == s.NamedSharding(s.mesh_of_spec, s.P("x")),
                s.jax.typeof(s.with_long_spec),
            ],
            lambda s: [
                (-s.with_long_spec).sharding.spec,
                s.with_long_spec + 1,
                s.jax.jit(lambda a: (a * 2, a.sum()))(s.with_long_spec),
            ],
            lambda s: [
                s.jax.device_put(s.with_long_spec, s.NamedSharding(s.mesh_of_spec, s.P())),
                s.with_long_spec.copy(),
                [shard.data for shard in s.with_long_spec.addressable_shards],
            ],
            lambda s: [
                s.jnp.zeros(8, device=s.with_long_spec.sharding).sharding.spec,
                s.lax.full_like(s.with_long_spec, 2.0).sharding.spec,
            ],
            lambda s: s.jax.vmap(lambda a: a + 1)(s.with_long_spec),
            lambda s: s.jax.jit(
                s.jax.shard_map(lambda a: a + 1, mesh=s.mesh_of_spec, in_specs=s.P("x"), out_specs=s.P("x"))
            )(s.with_long_spec),
            lambda s: [
                s.with_long_spec.sharding.shard_shape((8,)),
                len(s.with_long_spec.sharding.devices_indices_map((8,))),
            ],
        ],
        **given,
    )
    phrase = "is incompatible with its sharding annotation"
    same_errors(
        [
            (lambda s: s.jax.device_put(numbers(8), s.with_long_spec.sharding), phrase),
            (lambda s: s.jax.jit(lambda a: a, in_shardings=s.with_long_spec.sharding)(numbers(8)), phrase),
        ],
        **given,
    )


RESHAPES = [
    ((8,), (4, 2)), ((8,), (2, 4)), ((8,), (8, 1)), ((8,), (2, 1, 4)), ((8, 4), (4, 2, 4)), ((16,), (2, 4, 2)),
    ((4, 2), (8,)), ((2, 2, 2), (8,)), ((4, 2, 4), (8, 4)), ((8, 4), (32,)), ((1, 8), (8,)), ((4, 1, 2), (8,)),
]  # fmt: skip


@pytest.mark.parametrize("sizes", [(2, 4), (1, 4), (4, 1), (2, 1), (1, 1)])
def test_reshapes_over_axes_of_every_size_are_sharded_as_by_jax(sizes):
    def program(jax, jnp, lax):
        kinds = jax.sharding.AxisType.Explicit
        mesh = jax.sharding.AbstractMesh(sizes, ("x", "y"), axis_types=(kinds, kinds))
        found = []
        for old, new in RESHAPES:
            for entries in itertools.product([None, "x", "y", ("x", "y"), ("y", "x")], repeat=len(old)):
                try:
                    sharding = jax.NamedSharding(mesh, jax.P(*entries))
                    x = jax.ShapeDtypeStruct(old, "float32", sharding=sharding)
                    result = str(jax.eval_shape(lambda x: lax.reshape(x, new), x).sharding.spec)  # noqa: B023
                except Exception as error:
                    result = type(error).__name__
                found.append((old, new, entries, result.removeprefix("PartitionSpec").removeprefix("P")))
        return repr(found)

    assert "ShardingTypeError" in compare.same(program)
