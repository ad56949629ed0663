"""The order of axes in memory: formats of arrays, arguments and results, against jax."""

import copy
import importlib
import pickle

import compare
import numpy as np
import pytest
from mesh_language import numbers, same, same_errors

pytestmark = pytest.mark.oracle


def _layouts(s):
    return importlib.import_module(f"{s.jax.__name__}.experimental.layout")


GIVEN = dict(
    Layout=lambda s: _layouts(s).Layout,
    Format=lambda s: _layouts(s).Format,
    AUTO=lambda s: _layouts(s).Layout.AUTO,
    with_layout_constraint=lambda s: _layouts(s).with_layout_constraint,
    column_major=lambda s: _layouts(s).Format(_layouts(s).Layout((1, 0)), s.SingleDeviceSharding(s.devices[0])),
    row_major=lambda s: _layouts(s).Format(_layouts(s).Layout((0, 1)), s.SingleDeviceSharding(s.devices[0])),
    sharded_column_major=lambda s: _layouts(s).Format(_layouts(s).Layout((1, 0)), s.sharding("x", "y")),
    any_layout=lambda s: _layouts(s).Format(_layouts(s).Layout.AUTO),
    column_major_array=lambda s: s.jax.device_put(
        s.jnp.asarray(s.numbers(4, 8)),
        _layouts(s).Format(_layouts(s).Layout((1, 0)), s.SingleDeviceSharding(s.devices[0])),
    ),
    sharded_column_major_array=lambda s: s.jax.device_put(
        s.jnp.asarray(s.numbers(8, 8)), _layouts(s).Format(_layouts(s).Layout((1, 0)), s.sharding("x", "y"))
    ),
    with_format=lambda s: lambda x: [x, x.format],
)


def test_arrays_are_put_into_formats_and_read():
    same(
        [
            lambda s: [
                s.with_format(s.column_major_array),
                s.with_format(s.sharded_column_major_array),
                s.jax.device_put(s.column_major_array, s.SingleDeviceSharding(s.devices[1])),
                s.with_format(s.jax.device_put(s.sharded_column_major_array, s.sharding("y"))),
                s.with_format(s.jnp.ones(3)),
            ],
            lambda s: (
                [
                    s.with_format(s.jax.device_put(numbers(4, 8).astype(t), s.column_major))
                    for t in ("bfloat16", "int8", "bool", "complex64")
                ]
                + [s.jax.device_put(numbers(4, 8).astype("int4"), s.column_major)]
            ),
            lambda s: [s.with_format(s.jax.device_put(numbers(4, 8), s.sharded_column_major))],
            lambda s: [s.with_format(s.jax.device_put(numbers(8, 8).astype("bfloat16"), s.sharded_column_major))],
            lambda s: [
                s.with_format(s.column_major_array + 1),
                s.with_format(s.column_major_array.T),
                s.with_format(s.column_major_array @ s.column_major_array.T),
                s.column_major_array.sum(),
                s.column_major_array[1],
                s.column_major_array[1:3, ::2],
                s.jnp.concatenate([s.column_major_array, s.column_major_array]),
                s.sharded_column_major_array.sum(0),
                (s.sharded_column_major_array @ s.sharded_column_major_array),
            ],
            lambda s: [
                s.column_major_array.tolist(),
                np.asarray(s.column_major_array),
                np.asarray(s.sharded_column_major_array),
                np.asarray(s.column_major_array.addressable_shards[0].data),
                len(s.sharded_column_major_array.addressable_shards),
            ],
            lambda s: [np.asarray(shard.data) for shard in s.sharded_column_major_array.addressable_shards],
            lambda s: [
                copy.deepcopy(s.column_major_array),
                pickle.loads(pickle.dumps(s.column_major_array)),
                np.from_dlpack(s.column_major_array),
                s.column_major_array.at[0].set(1.0),
                s.jax.device_put(s.column_major_array),
            ],
            lambda s: [
                s.jax.jit(lambda p: p + s.column_major_array)(s.jnp.ones((4, 8))),
                s.jax.grad(lambda p: (p * s.column_major_array).sum())(s.column_major_array),
                s.jax.vmap(s.jnp.sin)(s.column_major_array),
            ],
            lambda s: s.lax.scan(lambda c, t: (c + t, c.sum()), s.jnp.zeros(8), s.column_major_array),
            lambda s: s.with_format(
                s.jax.make_array_from_callback((8, 8), s.sharded_column_major, lambda i: numbers(8, 8)[i])
            ),
            lambda s: [
                s.Format(),
                s.Format(None, s.SingleDeviceSharding(s.devices[0])),
                s.column_major,
                s.AUTO,
                s.Layout([1, 0], [[8]]),
                s.Layout((1, 0)) == s.Layout((1, 0), ()),
            ],
        ],
        **GIVEN,
    )
    same_errors(
        [
            (
                lambda s: s.jax.device_put(s.auto_vector, s.Format(s.AUTO, s.sharding("x"))),
                "sharding and layout in `Layout` instance should be concrete",
            ),
            (
                lambda s: s.jax.device_put(s.auto_vector, s.column_major),
                "Length of major_to_minor and the rank of the value should match",
            ),
            (lambda s: s.Format(s.Layout((1, 0))), "Sharding has to be concrete when layout is of type"),
            (lambda s: s.Format((1, 0), s.sharding("x")), "(1, 0) of type"),
            (lambda s: s.Format(s.Layout((1, 0)), s.P("x")), "P('x',) of type"),
            (
                lambda s: s.ShapeDtypeStruct((4, 8), "float32", sharding=s.Format(s.AUTO, s.sharding("x"))),
                "cannot be used in place of a device-local",
            ),
            (
                lambda s: s.jax.make_array_from_callback((8,), s.Format(s.AUTO, s.sharding("x")), lambda i: i),
                "`Layout.AUTO` cannot be used",
            ),
            (
                lambda s: s.jax.make_array_from_callback((8,), s.Format(), lambda i: i),
                "sharding should be an instance of",
            ),
        ],
        **GIVEN,
    )


def test_arguments_and_results_have_formats():
    same(
        [
            lambda s: s.with_format(s.jax.jit(lambda p: p * 2, in_shardings=s.column_major)(s.column_major_array)),
            lambda s: s.with_format(
                s.jax.jit(lambda p: p * 2, in_shardings=s.column_major, out_shardings=s.column_major)(numbers(4, 8))
            ),
            lambda s: s.with_format(
                s.jax.jit(lambda p: p * 2, in_shardings=s.sharded_column_major, out_shardings=s.sharded_column_major)(
                    s.sharded_column_major_array
                )
            ),
            lambda s: s.with_format(s.jax.jit(lambda p: p.T, out_shardings=s.any_layout)(s.jnp.asarray(numbers(4, 8)))),
            lambda s: [
                s.with_format(q)
                for q in s.jax.jit(lambda p: (p, {"k": p + 1}), out_shardings=(s.column_major, {"k": None}))(
                    s.column_major_array
                )[:1]
            ],
            lambda s: s.jaxpr(
                s.jax.jit(lambda p: p * 2, in_shardings=s.column_major, out_shardings=s.column_major), numbers(4, 8)
            ),
            lambda s: s.text(
                s.jax.jit(lambda p: p.T @ p, in_shardings=s.any_layout, out_shardings=s.any_layout),
                s.ShapeDtypeStruct((4, 8), "float32"),
            ),
            lambda s: s.text(
                s.jax.jit(
                    lambda p: p * 2,
                    in_shardings=s.sharded_column_major,
                    out_shardings=s.Format(s.AUTO, s.sharding("x")),
                ),
                s.ShapeDtypeStruct((8, 8), "float32"),
            ),
            lambda s: [
                s.jax.jit(lambda p: p * 2).lower(s.column_major_array).compile().input_formats,
                s.jax.jit(lambda p: p * 2).lower(s.sharded_column_major_array).compile().output_formats,
            ],
            lambda s: (
                s.jax.jit(lambda p: p.T @ p, in_shardings=s.any_layout, out_shardings=s.any_layout)
                .lower(s.ShapeDtypeStruct((4, 8), "float32"))
                .compile()
                .input_formats
            ),
            lambda s: (
                s.jax.jit(lambda p: p * 2)
                .lower(s.ShapeDtypeStruct((4, 8), "float32", sharding=s.column_major))
                .compile()
                .input_formats
            ),
            lambda s: s.with_format(
                s.jax.jit(lambda p: p * 2)
                .lower(s.ShapeDtypeStruct((4, 8), "float32", sharding=s.column_major))
                .compile()(s.column_major_array)
            ),
            lambda s: s.with_format(
                s.jax.jit(lambda p: p * 2, in_shardings=s.column_major)
                .lower(s.ShapeDtypeStruct((4, 8), "float32"))
                .compile()(s.jnp.asarray(numbers(4, 8)))
            ),
            lambda s: (
                s.jax.jit(lambda p: p * 2, out_shardings=s.sharded_column_major)
                .eval_shape(s.ShapeDtypeStruct((8, 8), "float32"))
                .format
            ),
        ],
        **GIVEN,
    )
    same_errors(
        [
            (
                lambda s: s.jax.jit(lambda p: p, in_shardings=s.row_major)(s.column_major_array),
                "Layout passed to jit does not match the layout on the",
            ),
            (
                lambda s: s.jax.jit(lambda p: p, in_shardings=s.column_major)(
                    s.jax.device_put(numbers(4, 8), s.devices[0])
                ),
                "Layout passed to jit",
            ),
            (
                lambda s: s.jax.jit(lambda p: p * 2, in_shardings=s.column_major)(s.jnp.ones(3)),
                "major_to_minor and the rank of the value should match",
            ),
            (
                lambda s: s.jax.jit(lambda p: p * 2, out_shardings=s.column_major)(s.jnp.ones(3)),
                "major_to_minor and the rank of the value should match",
            ),
            (
                lambda s: s.jax.jit(lambda p: p, out_shardings=s.Layout((1, 0))),
                "does not accept device-local layouts directly",
            ),
            (lambda s: s.jax.jit(lambda p: p, in_shardings=s.AUTO), "does not accept device-local layouts directly"),
            (
                lambda s: (
                    s.jax.jit(lambda p: p * 2)
                    .lower(s.ShapeDtypeStruct((4, 8), "float32"))
                    .compile()(s.column_major_array)
                ),
                "Computation was compiled for input layouts that disagree with the layouts of arguments",
            ),
        ],
        **GIVEN,
    )


def test_donated_arguments_alias_results_of_the_same_layout():
    same(
        [
            lambda s: s.text(
                s.jax.jit(
                    lambda p: p * 2,
                    in_shardings=s.sharded_column_major,
                    out_shardings=s.sharded_column_major,
                    donate_argnums=0,
                ),
                s.ShapeDtypeStruct((8, 8), "float32"),
            ),
            lambda s: s.text(
                s.jax.jit(
                    lambda p: p * 2,
                    in_shardings=s.sharded_column_major,
                    out_shardings=s.sharding("x", "y"),
                    donate_argnums=0,
                ),
                s.ShapeDtypeStruct((8, 8), "float32"),
            ),
            lambda s: s.text(
                s.jax.jit(lambda p: p * 2, in_shardings=s.any_layout, out_shardings=s.any_layout, donate_argnums=0),
                s.ShapeDtypeStruct((4, 8), "float32"),
            ),
        ],
        **GIVEN,
    )
    same_errors(
        [
            (
                lambda s: s.jax.jit(
                    lambda p: p, in_shardings=s.any_layout, out_shardings=s.column_major, donate_argnums=0
                ).lower(numbers(4, 8)),
                "Layout.AUTO",
            ),
            (
                lambda s: s.jax.jit(
                    lambda p: p, in_shardings=s.column_major, out_shardings=s.any_layout, donate_argnums=0
                ).lower(numbers(4, 8)),
                "Layout.AUTO",
            ),
        ],
        **GIVEN,
    )


def test_constraints_on_layouts():
    same(
        [
            lambda s: [
                s.with_format(s.with_layout_constraint(s.jnp.asarray(numbers(4, 8)), s.Layout((1, 0)))),
                s.with_layout_constraint({"k": s.column_major_array, "l": [s.column_major_array]}, s.Layout((0, 1))),
            ],
            lambda s: s.with_format(
                s.jax.jit(lambda p: s.with_layout_constraint(p * 2, s.Layout((1, 0))))(numbers(4, 8))
            ),
            lambda s: s.with_format(
                s.jax.jit(lambda p: s.lax.with_sharding_constraint(p, s.sharded_column_major))(numbers(8, 8))
            ),
            lambda s: s.with_format(s.lax.with_sharding_constraint(numbers(8, 8), s.sharded_column_major)),
            lambda s: s.with_format(
                s.jax.jit(lambda p: s.lax.with_sharding_constraint(p, s.Format(None, s.sharding("x"))))(numbers(8, 8))
            ),
            lambda s: s.jaxpr(
                s.jax.vmap(lambda p: s.with_layout_constraint(p, s.Layout((1, 0))), in_axes=1), numbers(4, 3, 8)
            ),
            lambda s: s.jaxpr(s.jax.grad(lambda p: s.with_layout_constraint(p, s.Layout((1, 0))).sum()), numbers(4, 8)),
            lambda s: s.jaxpr(lambda p: s.lax.with_sharding_constraint(p, s.sharded_column_major), numbers(8, 8)),
            lambda s: s.text(lambda p: s.with_layout_constraint(p * 2, s.Layout((1, 0))) + 1, numbers(4, 8)),
            lambda s: s.text(lambda p: s.lax.with_sharding_constraint(p, s.sharded_column_major) + 1, numbers(8, 8)),
        ],
        **GIVEN,
    )
    same_errors(
        [
            (
                lambda s: s.with_layout_constraint(s.auto_vector, s.AUTO),
                "layouts passed to `with_layout_constraint` must be of type `Layout`",
            ),
            (
                lambda s: s.with_layout_constraint(s.auto_vector, s.Layout((1, 0))),
                "One of with_layout_constraint arguments",
            ),
            (
                lambda s: s.lax.with_sharding_constraint(s.auto_vector, s.sharded_column_major),
                "One of with_sharding_constraint arguments",
            ),
        ],
        **GIVEN,
    )


COMPILED = {
    "an unused argument": (lambda jnp: lambda x, y: y * 2, np.ones((2, 3), np.float32), np.float32(1)),
    "four bits": (lambda jnp: lambda x: x.astype(jnp.int4), np.ones((2, 3), np.float32)),
    "a large constant": (lambda jnp: lambda x: x + jnp.arange(64.0) * np.arange(64, dtype=np.float32), np.float32(1)),
    "two results": (lambda jnp: lambda x: (x.T, x), np.ones((2, 3), np.float32)),
    "no results": (lambda jnp: lambda x: (), np.ones(3, np.float32)),
}


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_programs_tell_the_formats_that_xla_chose(name):
    make, *args = COMPILED[name]

    def program(jax, jnp):
        compiled = jax.jit(make(jnp)).lower(*args).compile()
        return str(compiled.input_formats), str(compiled.output_formats), str(compiled.out_info)

    compare.same(program)


def test_keys_have_the_formats_of_their_words():
    def program(jax):
        compiled = jax.jit(lambda key: jax.random.split(key, 2)).lower(jax.random.key(0)).compile()
        return str(compiled.input_formats), str(compiled.output_formats)

    compare.same(program)
