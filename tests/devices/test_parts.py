"""Arrays made of parts by hand, specs as objects, and what programs call their results' shardings, against jax."""

import importlib
import warnings

import numpy as np
import pytest
from mesh_language import same, same_errors

import minijax as jax

pytestmark = pytest.mark.oracle


def _arrays(s):
    if s.jax is jax:
        return importlib.import_module("minijax.run.arrays.array").ArrayImpl
    return importlib.import_module("jax._src.array").ArrayImpl


GIVEN = dict(
    Impl=_arrays,
    kind=lambda s: s.jax.core.ShapedArray((8, 2), np.dtype("float32")),
    parts=lambda s: [s.jax.device_put(np.full((2, 2), k, np.float32), s.d[2 * k]) for k in range(4)],
    cut=lambda s: s.NS(s.grid((4,), ("i",), s.d[::2]), s.P("i")),
    one=lambda s: s.grid((1,), ("i",)),
    make=lambda s: s.jax.make_array_from_single_device_arrays,
    local=lambda s: s.jax.make_array_from_process_local_data,
)


def test_arrays_of_parts():
    same(
        """
        [Impl(kind, cut, parts, committed=True), Impl(kind, cut, parts[::-1], committed=False), Impl(kind, cut, parts, True)]
        Impl(jax.core.ShapedArray((), np.dtype('int32')), One(d[1]), [jax.device_put(jnp.int32(3), d[1])], committed=True)
        [make((8, 2), cut, tuple(parts)), make((8, 2), cut, parts[::-1])]
        [local(cut, numbers(8, 2)), local([cut, cut], [numbers(8, 2), numbers(4)]), local(cut, {'a': numbers(8)}, (8,))]
    """,
        **GIVEN,
    )
    same_errors(
        [
            ("Impl(kind, cut, parts[:3], committed=True)", "Expected 4 per-device arrays"),
            ("Impl(kind, on('x'), parts, committed=True)", "Expected 8 per-device arrays"),
            ("Impl(kind, cut, [p.astype('int32') for p in parts], committed=True)", "must have matching dtypes"),
            ("Impl(kind, cut, [p[:1] for p in parts], committed=True)", "Expected shard shape (2, 2) doesn't match"),
            ("Impl(kind, cut, [np.asarray(p) for p in parts], committed=True)", "numpy.ndarray"),
            ("make((8, 2), cut, [parts[0]] * 4)", "must be from distinct devices"),
            ("make((4, 2), NS(grid((2,), ('i',)), P('i')), parts[1:3])", "that are not present in per-device arrays"),
            ("make((8, 2), cut, [parts[0].astype('int32'), *parts[1:]])", "must have matching dtypes"),
            ("jax.jit(lambda p: make((2, 2), One(d[0]), [p]))(parts[0])", "requires a list of concrete arrays"),
            ("local(cut, numbers(8, 2), (4, 2))", "global_shape should be None or equal to local_data.shape"),
            ("local(P('i'), numbers(8, 2))", "Please set a mesh via `jax.set_mesh`"),
        ],
        **GIVEN,
    )


def test_small_parts_are_read_once():
    same(
        """
        (lambda x: [a.data is b.data for a, b in zip(x.addressable_shards, x.addressable_shards)])(jax.device_put(numbers(8), cut1))
        (lambda x: x.addressable_data(1) is x.addressable_shards[1].data)(jax.device_put(numbers(8), cut1))
    """,
        cut1=lambda s: s.NS(s.grid((4,), ("i",), s.d[:4]), s.P("i")),
        **GIVEN,
    )


def test_a_part_that_was_deleted_is_read_again():
    mesh = jax.make_mesh((4,), ("i",))
    x = jax.device_put(np.arange(8.0), jax.NamedSharding(mesh, jax.P("i")))
    x.addressable_shards[1].data.delete()
    np.testing.assert_array_equal(x.addressable_shards[1].data, [2, 3])


def test_equal_specs_are_one_object():
    same("""
        [P(None, 'x') is P(None, ('x',)), P('x') is P('x', None), P(None, 'x') + P('y') is P(None, 'x', 'y')]
        [(None, 'x') + P('y') is P(None, 'x', 'y'), P('x', unreduced={'y'}) is P('x', unreduced={'y'}), P() is P(())]
        [P('x') == P('x', None), P('x') == P('x', unreduced={'y'}), len({P('x'), P(('x',)), P(['x'])})]
        [explicit.abstract_mesh == NS(explicit, P(unreduced={'x'})).mesh.abstract_mesh]
    """)
    same_errors(
        [
            ("NS(m, P('x', unreduced={'y'}))", "axes can only refer to mesh axes that is of type `Explicit`"),
            ("NS(m.abstract_mesh, P(reduced={'y'}))", "axes can only refer to mesh axes that is of type `Explicit`"),
            ("NS(explicit, P('x', unreduced={'z'}))", "is not found in mesh"),
            ("P('x', unreduced={'x'})", "partitions cannot overlap with unreduced axes"),
        ]
    )


def test_open_results_have_the_name_of_the_first_argument_s_sharding():
    same(
        """
        [jax.jit(lambda p: p * 2)(put(numbers(8), 'i', mesh=one)), put(numbers(8), 'i', mesh=one) + 1]
        jax.jit(lambda p, q: (p * 2, q * 2, q.sum(), p.reshape(2, 4)))(put(numbers(8), 'i', mesh=one), put(numbers(2, 4), None, 'i', mesh=one))
        jax.jit(lambda q, p: (p * 2, q * 2, q.sum(), p.reshape(2, 4)))(put(numbers(2, 4), None, 'i', mesh=one), put(numbers(8), 'i', mesh=one))
        [p * 2 for p in (put(numbers(8, 8), 'x', None), put(numbers(8, 8), None, None), put(numbers(8, 8), 'x'))]
        [put(numbers(8, 8), 'x', None) @ a, put(numbers(8, 8), None, None) + a, put(numbers(8, 8), None, None).T]
    """,
        **GIVEN,
    )


def test_cotangents_go_back_to_where_concrete_arguments_lie():
    same("""
        jax.grad(lambda p: (jax.device_put(p, d[1]) ** 2).sum())(jax.device_put(numbers(4), d[0]))
        jax.grad(lambda p: (jax.device_put(p * 2, d[1]) ** 2).sum())(jax.device_put(numbers(4), d[0]))
        jax.grad(lambda p: (jax.device_put(jax.device_put(p, d[0]), d[1]) ** 2).sum())(jax.device_put(numbers(4), d[2]))
        jax.grad(lambda p: (jax.device_put(p, d[1]) ** 2).sum())(jnp.arange(4.))
        jaxpr(jax.grad(lambda p: (jax.device_put(p, d[1]) ** 2).sum()), jnp.arange(4.))
    """)


def test_groups_of_several_sizes():
    same(
        """
        jax.pmap(lambda p: lax.psum(p, 'i', axis_index_groups=groups), 'i')(numbers(8))
        jax.pmap(lambda p: lax.pmax(p, 'i', axis_index_groups=groups), 'i')(numbers(8))
        jax.pmap(lambda p: lax.pmean(p, 'i', axis_index_groups=groups), 'i')(numbers(8))
        jax.pmap(jax.grad(lambda p: lax.psum(p ** 2, 'i', axis_index_groups=groups)), 'i')(numbers(8))
        text(jax.pmap(lambda p: lax.psum(p, 'i', axis_index_groups=groups), 'i'), numbers(8))
    """,
        groups=lambda s: [[0, 1, 2], [3, 4, 5, 6, 7]],
    )
    same_errors([("jax.pmap(lambda p: p, devices=[])(numbers(8))", "'devices' argument to pmap must be non-empty")])


def test_pjit_reads_the_mesh_that_is_entered():
    def inside(s, call):
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning), s.m:
            return call(importlib.import_module(f"{s.jax.__name__}.experimental.pjit").pjit)

    given = dict(inside=lambda s: lambda call: inside(s, call))
    same(
        """
        inside(lambda pjit: pjit(lambda p: p * 2, in_shardings=P('x'), out_shardings=P('y'))(numbers(8)))
        inside(lambda pjit: text(pjit(lambda p: p * 2, in_shardings=P('x'), out_shardings=(P('y'))), numbers(8)))
        inside(lambda pjit: pjit(pjit(lambda p: p * 2, out_shardings=P('y')), in_shardings=P('x'))(numbers(8)))
        inside(lambda pjit: jaxpr(lambda p: lax.with_sharding_constraint(p, P('x')), numbers(8)))
    """,
        **given,
    )
    same_errors(
        [
            ("inside(lambda pjit: jax.jit(lambda p: p * 2, in_shardings=P('x'))(v))", "requires a non-empty mesh"),
            ("inside(lambda pjit: pjit(lambda p: p * 2, in_shardings=P('x', 'x')))", "A single in_shardings spec"),
            ("inside(lambda pjit: lax.with_sharding_constraint(a, P('x', 'x')))", "A single shardings spec"),
            ("lax.with_sharding_constraint(v, on('x', 'y'))", "One of with_sharding_constraint arguments"),
        ],
        **given,
    )
