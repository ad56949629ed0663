"""Arrays made from shards, specs as objects, shardings of results without a request, and `pjit`, against jax."""

import importlib
import warnings

import numpy as np
import pytest
from mesh_language import numbers, same, same_errors

import minijax as jax

pytestmark = pytest.mark.oracle


def _arrays(s):
    if s.jax is jax:
        return importlib.import_module("minijax.run.array").ArrayImpl
    return importlib.import_module("jax._src.array").ArrayImpl


GIVEN = dict(
    ArrayImpl=_arrays,
    aval=lambda s: s.jax.core.ShapedArray((8, 2), np.dtype("float32")),
    shards=lambda s: [s.jax.device_put(np.full((2, 2), k, np.float32), s.devices[2 * k]) for k in range(4)],
    row_sharding=lambda s: s.NamedSharding(s.auto_mesh((4,), ("i",), s.devices[::2]), s.P("i")),
    mesh_of_1=lambda s: s.auto_mesh((1,), ("i",)),
    make_array=lambda s: s.jax.make_array_from_single_device_arrays,
    make_local_array=lambda s: s.jax.make_array_from_process_local_data,
)


def test_arrays_from_shards():
    same(
        [
            lambda s: [
                s.ArrayImpl(s.aval, s.row_sharding, s.shards, committed=True),
                s.ArrayImpl(s.aval, s.row_sharding, s.shards[::-1], committed=False),
                s.ArrayImpl(s.aval, s.row_sharding, s.shards, True),
            ],
            lambda s: s.ArrayImpl(
                s.jax.core.ShapedArray((), np.dtype("int32")),
                s.SingleDeviceSharding(s.devices[1]),
                [s.jax.device_put(s.jnp.int32(3), s.devices[1])],
                committed=True,
            ),
            lambda s: [
                s.make_array((8, 2), s.row_sharding, tuple(s.shards)),
                s.make_array((8, 2), s.row_sharding, s.shards[::-1]),
            ],
            lambda s: [
                s.make_local_array(s.row_sharding, numbers(8, 2)),
                s.make_local_array([s.row_sharding, s.row_sharding], [numbers(8, 2), numbers(4)]),
                s.make_local_array(s.row_sharding, {"a": numbers(8)}, (8,)),
            ],
        ],
        **GIVEN,
    )
    same_errors(
        [
            (
                lambda s: s.ArrayImpl(s.aval, s.row_sharding, s.shards[:3], committed=True),
                "Expected 4 per-device arrays",
            ),
            (lambda s: s.ArrayImpl(s.aval, s.sharding("x"), s.shards, committed=True), "Expected 8 per-device arrays"),
            (
                lambda s: s.ArrayImpl(s.aval, s.row_sharding, [p.astype("int32") for p in s.shards], committed=True),
                "must have matching dtypes",
            ),
            (
                lambda s: s.ArrayImpl(s.aval, s.row_sharding, [p[:1] for p in s.shards], committed=True),
                "Expected shard shape (2, 2) doesn't match",
            ),
            (
                lambda s: s.ArrayImpl(s.aval, s.row_sharding, [np.asarray(p) for p in s.shards], committed=True),
                "numpy.ndarray",
            ),
            (lambda s: s.make_array((8, 2), s.row_sharding, [s.shards[0]] * 4), "must be from distinct devices"),
            (
                lambda s: s.make_array((4, 2), s.NamedSharding(s.auto_mesh((2,), ("i",)), s.P("i")), s.shards[1:3]),
                "that are not present in per-device arrays",
            ),
            (
                lambda s: s.make_array((8, 2), s.row_sharding, [s.shards[0].astype("int32"), *s.shards[1:]]),
                "must have matching dtypes",
            ),
            (
                lambda s: s.jax.jit(lambda p: s.make_array((2, 2), s.SingleDeviceSharding(s.devices[0]), [p]))(
                    s.shards[0]
                ),
                "requires a list of concrete arrays",
            ),
            (
                lambda s: s.make_local_array(s.row_sharding, numbers(8, 2), (4, 2)),
                "global_shape should be None or equal to local_data.shape",
            ),
            (lambda s: s.make_local_array(s.P("i"), numbers(8, 2)), "Please set a mesh via `jax.set_mesh`"),
        ],
        **GIVEN,
    )


def test_shards_are_cached():
    same(
        [
            lambda s: (
                lambda x: [a.data is b.data for a, b in zip(x.addressable_shards, x.addressable_shards, strict=True)]
            )(s.jax.device_put(numbers(8), s.sharding_of_4)),
            lambda s: (lambda x: x.addressable_data(1) is x.addressable_shards[1].data)(
                s.jax.device_put(numbers(8), s.sharding_of_4)
            ),
        ],
        sharding_of_4=lambda s: s.NamedSharding(s.auto_mesh((4,), ("i",), s.devices[:4]), s.P("i")),
        **GIVEN,
    )


def test_a_deleted_shard_is_read_again():
    mesh = jax.make_mesh((4,), ("i",))
    x = jax.device_put(np.arange(8.0), jax.NamedSharding(mesh, jax.P("i")))
    x.addressable_shards[1].data.delete()
    np.testing.assert_array_equal(x.addressable_shards[1].data, [2, 3])


def test_equal_specs_are_one_object():
    same(
        [
            lambda s: [
                s.P(None, "x") is s.P(None, ("x",)),
                s.P("x") is s.P("x", None),
                s.P(None, "x") + s.P("y") is s.P(None, "x", "y"),
            ],
            lambda s: [
                (None, "x") + s.P("y") is s.P(None, "x", "y"),
                s.P("x", unreduced={"y"}) is s.P("x", unreduced={"y"}),
                s.P() is s.P(()),
            ],
            lambda s: [
                s.P("x") == s.P("x", None),
                s.P("x") == s.P("x", unreduced={"y"}),
                len({s.P("x"), s.P(("x",)), s.P(["x"])}),
            ],
            lambda s: [
                s.explicit_mesh.abstract_mesh
                == s.NamedSharding(s.explicit_mesh, s.P(unreduced={"x"})).mesh.abstract_mesh
            ],
        ]
    )
    same_errors(
        [
            (
                lambda s: s.NamedSharding(s.mesh, s.P("x", unreduced={"y"})),
                "axes can only refer to mesh axes that is of type `Explicit`",
            ),
            (
                lambda s: s.NamedSharding(s.mesh.abstract_mesh, s.P(reduced={"y"})),
                "axes can only refer to mesh axes that is of type `Explicit`",
            ),
            (lambda s: s.NamedSharding(s.explicit_mesh, s.P("x", unreduced={"z"})), "is not found in mesh"),
            (lambda s: s.P("x", unreduced={"x"}), "partitions cannot overlap with unreduced axes"),
        ]
    )


def test_results_without_a_requested_sharding_take_the_mesh_of_the_first_argument():
    same(
        [
            lambda s: [
                s.jax.jit(lambda p: p * 2)(s.shard(numbers(8), "i", mesh=s.mesh_of_1)),
                s.shard(numbers(8), "i", mesh=s.mesh_of_1) + 1,
            ],
            lambda s: s.jax.jit(lambda p, q: (p * 2, q * 2, q.sum(), p.reshape(2, 4)))(
                s.shard(numbers(8), "i", mesh=s.mesh_of_1), s.shard(numbers(2, 4), None, "i", mesh=s.mesh_of_1)
            ),
            lambda s: s.jax.jit(lambda q, p: (p * 2, q * 2, q.sum(), p.reshape(2, 4)))(
                s.shard(numbers(2, 4), None, "i", mesh=s.mesh_of_1), s.shard(numbers(8), "i", mesh=s.mesh_of_1)
            ),
            lambda s: [
                p * 2
                for p in (
                    s.shard(numbers(8, 8), "x", None),
                    s.shard(numbers(8, 8), None, None),
                    s.shard(numbers(8, 8), "x"),
                )
            ],
            lambda s: [
                s.shard(numbers(8, 8), "x", None) @ s.auto_matrix,
                s.shard(numbers(8, 8), None, None) + s.auto_matrix,
                s.shard(numbers(8, 8), None, None).T,
            ],
        ],
        **GIVEN,
    )


def test_cotangents_are_placed_on_the_devices_of_concrete_arguments():
    same(
        [
            lambda s: s.jax.grad(lambda p: (s.jax.device_put(p, s.devices[1]) ** 2).sum())(
                s.jax.device_put(numbers(4), s.devices[0])
            ),
            lambda s: s.jax.grad(lambda p: (s.jax.device_put(p * 2, s.devices[1]) ** 2).sum())(
                s.jax.device_put(numbers(4), s.devices[0])
            ),
            lambda s: s.jax.grad(
                lambda p: (s.jax.device_put(s.jax.device_put(p, s.devices[0]), s.devices[1]) ** 2).sum()
            )(s.jax.device_put(numbers(4), s.devices[2])),
            lambda s: s.jax.grad(lambda p: (s.jax.device_put(p, s.devices[1]) ** 2).sum())(s.jnp.arange(4.0)),
            lambda s: s.jaxpr(s.jax.grad(lambda p: (s.jax.device_put(p, s.devices[1]) ** 2).sum()), s.jnp.arange(4.0)),
        ]
    )


GROUPS = [[0, 1, 2], [3, 4, 5, 6, 7]]


def test_axis_index_groups_of_several_sizes():
    same(
        [
            lambda s: s.jax.pmap(lambda p: s.lax.psum(p, "i", axis_index_groups=GROUPS), "i")(numbers(8)),
            lambda s: s.jax.pmap(lambda p: s.lax.pmax(p, "i", axis_index_groups=GROUPS), "i")(numbers(8)),
            lambda s: s.jax.pmap(lambda p: s.lax.pmean(p, "i", axis_index_groups=GROUPS), "i")(numbers(8)),
            lambda s: s.jax.pmap(s.jax.grad(lambda p: s.lax.psum(p**2, "i", axis_index_groups=GROUPS)), "i")(
                numbers(8)
            ),
            lambda s: s.text(s.jax.pmap(lambda p: s.lax.psum(p, "i", axis_index_groups=GROUPS), "i"), numbers(8)),
        ]
    )
    same_errors(
        [(lambda s: s.jax.pmap(lambda p: p, devices=[])(numbers(8)), "'devices' argument to pmap must be non-empty")]
    )


def test_pjit_reads_the_entered_mesh():
    def inside(s, call):
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning), s.mesh:
            return call(importlib.import_module(f"{s.jax.__name__}.experimental.pjit").pjit)

    given = dict(inside=lambda s: lambda call: inside(s, call))
    same(
        [
            lambda s: s.inside(
                lambda pjit: pjit(lambda p: p * 2, in_shardings=s.P("x"), out_shardings=s.P("y"))(numbers(8))
            ),
            lambda s: s.inside(
                lambda pjit: s.text(pjit(lambda p: p * 2, in_shardings=s.P("x"), out_shardings=(s.P("y"))), numbers(8))
            ),
            lambda s: s.inside(
                lambda pjit: pjit(pjit(lambda p: p * 2, out_shardings=s.P("y")), in_shardings=s.P("x"))(numbers(8))
            ),
            lambda s: s.inside(lambda pjit: s.jaxpr(lambda p: s.lax.with_sharding_constraint(p, s.P("x")), numbers(8))),
        ],
        **given,
    )
    same_errors(
        [
            (
                lambda s: s.inside(lambda pjit: s.jax.jit(lambda p: p * 2, in_shardings=s.P("x"))(s.auto_vector)),
                "requires a non-empty mesh",
            ),
            (
                lambda s: s.inside(lambda pjit: pjit(lambda p: p * 2, in_shardings=s.P("x", "x"))),
                "A single in_shardings spec",
            ),
            (
                lambda s: s.inside(lambda pjit: s.lax.with_sharding_constraint(s.auto_matrix, s.P("x", "x"))),
                "A single shardings spec",
            ),
            (
                lambda s: s.lax.with_sharding_constraint(s.auto_vector, s.sharding("x", "y")),
                "One of with_sharding_constraint arguments",
            ),
        ],
        **given,
    )
