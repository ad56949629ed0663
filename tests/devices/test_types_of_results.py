"""Explicit axes: the types of the results of each kind of operation and transformation, and ambiguous shardings.

Differences that programs have shown are in `test_types_of_programs`; requested shardings, unreduced values and
`shard_map` have files of their own.
"""

import itertools

import compare
import numpy as np
import pytest
from mesh_language import numbers, same, same_errors

pytestmark = pytest.mark.oracle


def made(shape, *spec, dtype=np.float32):
    return lambda s: s.shard(numbers(*shape, dtype=dtype), *spec, mesh=s.explicit_mesh)


GIVEN = {
    "transposed": made((4, 8), "y", "x"),
    "other_columns": made((4, 6), None, "y"),
    "square_rows": made((8, 8), "x"),
    "sharded_vector": made((8,), "x"),
    "batch_of_4": made((4, 8, 4), "x"),
    "with_unit_axis": made((8, 1, 4), "x", None, "y"),
    "batch": made((8, 4, 4), "x"),
    "images_over_both": lambda s: s.shard(numbers(8, 16, 8), "x", "y", mesh=s.explicit_mesh),
    "images": lambda s: s.shard(numbers(8, 16, 8), "x", mesh=s.explicit_mesh),
    "batch_of_images": lambda s: s.shard(numbers(8, 2, 16, 8), "x", mesh=s.explicit_mesh),
    "kernel": lambda s: s.shard(numbers(5, 8, 10), mesh=s.explicit_mesh),
    "conv": lambda s: (
        lambda x, k, strides=(1,), padding="SAME", **more: s.lax.conv_general_dilated(
            x, k, strides, padding, dimension_numbers=("NWC", "WIO", "NWC"), **more
        )
    ),
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
                    s.batch_of_4,
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
                lambda x, y: s.lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))),
                s.batch_of_4,
                s.batch_of_4.transpose(0, 2, 1),
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
            lambda s: s.run(s.jax.vmap(lambda x, y: x @ y), s.batch_of_4, s.batch_of_4.transpose(0, 2, 1)),
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


def test_updates_of_weak_arrays_by_plain_integers():
    same(
        [
            lambda s: s.jaxpr(lambda: s.jnp.full(8, 2).at[0].add(2)),
            lambda s: s.jaxpr(lambda: s.jnp.full(8, 2).at[s.jnp.array([0, 1])].multiply(True)),
            lambda s: s.jaxpr(lambda: s.jnp.full(8, 2).at[0].min(s.jnp.full((), 3))),
            lambda s: s.jaxpr(lambda: s.jnp.full(8, 2).at[0].set(np.int8(2))),
            lambda s: s.jaxpr(lambda: s.jnp.full(8, 2.0).at[0].set(2)),
            lambda s: s.jaxpr(lambda: s.jnp.full(8, 2).at[0].apply(lambda x: x * 2)),
            lambda s: [
                s.jnp.full(8, 2).at[0].add(2),
                s.jnp.full(8, 2).at[0].add(np.int8(2)),
                s.jnp.arange(4, dtype=np.uint8).at[0].add(300),
            ],
        ]
    )


def test_repeat_along_a_sharded_axis_needs_out_sharding():
    same(
        [
            lambda s: s.run(lambda x: s.jnp.repeat(x, 2, axis=1), s.sharded_rows),
            lambda s: s.run(s.jax.vmap(lambda x: s.jnp.repeat(x, 2, axis=0)), s.sharded_rows),
            lambda s: s.jaxpr(
                lambda x, n: s.jnp.repeat(x, n, axis=1, total_repeat_length=6),
                s.sharded_rows,
                s.jnp.array([1, 2, 1, 0]),
            ),
            lambda s: s.unwrapped_jaxpr(s.jax.vmap(lambda x: s.jnp.pad(x, 1, mode="edge")), s.batch),
            lambda s: s.unwrapped_jaxpr(s.jax.vmap(lambda x: s.jnp.pad(x, ((1, 0), (2, 1)), mode="maximum")), s.batch),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )
    asked = "Please pass sharding to `jnp.repeat` via `out_sharding`"
    same_errors(
        [
            (lambda s: s.jnp.repeat(s.sharded_rows, 2, axis=0), asked),
            (lambda s: s.jnp.repeat(s.sharded_rows, 0, axis=0), asked),
            (lambda s: s.jnp.repeat(s.sharded_rows, 2), asked),
            (lambda s: s.jnp.repeat(s.sharded_rows, np.arange(8), axis=0), asked),
            (lambda s: s.jnp.repeat(s.sharded_rows, np.array([2]), axis=0), asked),
        ],
        set_mesh="explicit_mesh",
    )


def test_strided_slices():
    same(
        [
            lambda s: [
                s.sharded_rows[:, ::2],
                s.sharded_rows[:, ::-1],
                s.sharded_rows[:, 1:3],
                s.sharded_columns[::2],
                s.replicated[::3],
            ],
            lambda s: s.jax.jit(lambda x: x[::2])(s.sharded_both),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )
    same_errors(
        [
            (lambda s: s.sharded_both[::2], ".at[...].get(out_sharding=)"),
            (lambda s: s.sharded_both[:, 1::2], ".at[...].get(out_sharding=)"),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )


def test_batching_dimensions_take_the_sharding_of_any_operand():
    def read(s, x, i):
        numbers = s.lax.GatherDimensionNumbers((), (1,), (1,), (0,), (0,))
        return s.types(lambda x, i: s.lax.gather(x, i, numbers, (1, 1)), x, abs(i) % 4)

    def update(s, x, i, u):
        numbers = s.lax.ScatterDimensionNumbers((), (1,), (1,), (0,), (0,))
        return s.types(lambda x, i, u: s.lax.scatter_add(x, i, u, numbers), x, abs(i) % 4, u)

    given = {
        **GIVEN,
        "indices": made((8, 1, 1), dtype=np.int32),
        "indices_over_x": made((8, 1, 1), "x", dtype=np.int32),
        "indices_over_y": made((8, 1, 1), "y", dtype=np.int32),
        "updates": made((8, 1)),
        "updates_over_x": made((8, 1), "x"),
    }
    same(
        [
            lambda s: read(s, s.sharded_rows, s.indices),
            lambda s: read(s, s.sharded_rows, s.indices_over_x),
            lambda s: read(s, s.replicated, s.indices),
            lambda s: read(s, s.replicated, s.indices_over_x),
            lambda s: update(s, s.sharded_rows, s.indices, s.updates),
            lambda s: update(s, s.sharded_rows, s.indices, s.updates_over_x),
            lambda s: update(s, s.sharded_rows, s.indices_over_x, s.updates),
            lambda s: update(s, s.sharded_rows, s.indices_over_x, s.updates_over_x),
            lambda s: update(s, s.replicated, s.indices, s.updates),
            lambda s: update(s, s.replicated, s.indices, s.updates_over_x),
            lambda s: update(s, s.replicated, s.indices_over_x, s.updates),
            lambda s: update(s, s.replicated, s.indices_over_x, s.updates_over_x),
        ],
        set_mesh="explicit_mesh",
        **given,
    )
    same_errors(
        [
            (lambda s: read(s, s.sharded_rows, s.indices_over_y), "out_sharding"),
            (lambda s: update(s, s.sharded_rows, s.indices, s.indices_over_y[:, 0] * 1.0), "out_sharding"),
        ],
        set_mesh="explicit_mesh",
        **given,
    )
    same(
        [
            lambda s: s.run(lambda x: s.jnp.take_along_axis(x, s.jnp.zeros((8, 1), int), 1), s.sharded_rows),
            lambda s: s.types(lambda x: s.jnp.take_along_axis(x, s.jnp.zeros((2, 4), int), 0), s.sharded_columns),
            lambda s: s.types(
                s.jax.grad(lambda x: (s.jnp.take_along_axis(x, s.jnp.zeros((8, 1), int), 1) ** 2).sum()), s.sharded_rows
            ),
            lambda s: s.types(s.jax.vmap(lambda x: s.jnp.take_along_axis(x, s.jnp.zeros((4, 1), int), 1)), s.batch),
        ],
        set_mesh="explicit_mesh",
        **given,
    )


def test_argsort_and_powers_keep_the_sharding():
    same(
        [
            lambda s: s.run(lambda x: s.jnp.argsort(x, axis=1, descending=True), s.sharded_rows),
            lambda s: s.types(s.jax.vmap(s.jnp.argsort), s.batch),
            lambda s: s.jaxpr(s.jax.grad(lambda x: (x ** s.jnp.arange(4)).sum()), s.sharded_rows),
            lambda s: s.types(
                s.jax.grad(lambda x: s.jax.vmap(lambda y: s.lax.pow(y, s.jnp.ones(4, np.uint32)))(x).sum()),
                s.sharded_rows,
            ),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )


def test_convolutions():
    same(
        [
            lambda s: s.types(s.conv, s.images_over_both, s.kernel),
            lambda s: s.types(lambda x, k: s.conv(x, k, (2,), "VALID"), s.images_over_both, s.kernel),
            lambda s: s.types(
                lambda x: s.conv(x, np.ones((5, 2, 8), np.float32), feature_group_count=4), s.images_over_both
            ),
            lambda s: s.types(
                lambda x: s.conv(x, np.ones((5, 8, 8), np.float32), batch_group_count=4),
                s.jax.reshard(s.images, s.P(None, "x")),
            ),
            lambda s: s.run(s.jax.grad(lambda k, x: s.conv(x, k).sum(), (0, 1)), s.kernel, s.images),
            lambda s: s.run(
                s.jax.grad(lambda k, x: s.conv(x, k, out_sharding=s.P("x", None, None)).sum(), (0, 1)),
                s.kernel,
                s.images_over_both,
            ),
            lambda s: s.run(s.jax.vmap(s.conv, in_axes=(0, None)), s.batch_of_images, s.kernel),
            lambda s: s.types(
                s.jax.vmap(lambda x, k: s.conv(x, k, out_sharding=s.P(None, "y", None)), in_axes=(0, None)),
                s.batch_of_images,
                s.kernel,
            ),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )
    same_errors(
        [
            (
                lambda s: s.conv(s.jax.reshard(s.images_over_both, s.P(None, None, "x")), s.kernel),
                "specify the output sharding",
            ),
            (lambda s: s.conv(s.images, s.jax.reshard(s.kernel, s.P(None, None, "y"))), "specify the output sharding"),
            (
                lambda s: s.conv(s.images, np.ones((5, 8, 8), np.float32), batch_group_count=4),
                "out dim (2) is not divisible",
            ),
            (
                lambda s: s.jax.vmap(
                    lambda x: s.conv(x, np.ones((5, 8, 10), np.float32), out_sharding=s.P("y", None, None))
                )(s.batch_of_images),
                "",
            ),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )


def test_windows():
    same(
        [
            lambda s: s.types(
                lambda x: s.lax.reduce_window(x, -np.inf, s.lax.max, (1, 2, 1), (1, 2, 1), "SAME"), s.images_over_both
            ),
            lambda s: s.types(
                lambda x: s.lax.reduce_window(
                    x, 0.0, s.lax.add, (1, 3, 1), (1, 1, 1), "SAME", window_dilation=(1, 2, 1)
                ),
                s.images_over_both,
            ),
            lambda s: s.types(
                lambda x: s.lax.reduce_window(x, 1.0, s.lax.mul, (1, 2, 1), (1, 1, 1), "SAME"), s.images_over_both
            ),
            lambda s: s.types(
                lambda x: s.lax.reduce_window(x, -np.inf, s.lax.min, (1, 2, 1), (1, 1, 1), "VALID"), s.images
            ),
            lambda s: s.types(
                lambda x: s.jax.jvp(
                    lambda y: s.lax.reduce_window(y, -np.inf, s.lax.max, (1, 2, 1), (1, 2, 1), "SAME"), (x,), (x,)
                ),
                s.images_over_both,
            ),
            lambda s: s.types(
                s.jax.grad(lambda x: s.lax.reduce_window(x, -np.inf, s.lax.max, (1, 2, 1), (1, 2, 1), "SAME").sum()),
                s.images_over_both,
            ),
            lambda s: s.types(
                lambda x: s.lax.reduce((x, x), (1.0, 0.0), lambda a, b: (a[0] * b[0], a[1] + b[1]), (1,)),
                s.images_over_both,
            ),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )
    refused = "is not divisible by mesh axes (2)"
    same_errors(
        [
            (
                lambda s: s.lax.reduce_window(s.images_over_both, -np.inf, s.lax.max, (1, 2, 1), (1, 1, 1), "VALID"),
                refused,
            ),
            (
                lambda s: s.jax.grad(
                    lambda x: s.lax.reduce_window(x, 0.0, s.lax.add, (1, 2, 1), (1, 2, 1), "SAME").sum()
                )(s.images_over_both),
                refused,
            ),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )
