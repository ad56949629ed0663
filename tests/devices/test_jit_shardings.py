"""Programs over several devices by `jit`: values, shardings, texts and collectives, against jax."""

import warnings

import numpy as np
import pytest
from mesh_language import numbers, same, same_errors

import minijax
from minijax.run.programs import compile as compiling

pytestmark = pytest.mark.oracle


def test_results_lie_as_jax_s():
    same("""
        [jnp.sin(a), a.sum(), a.T, a @ a, a[0], a[1:3], a.reshape(64), a > 2, jnp.zeros_like(a), a + 1]
        [a.at[0].set(1.), a.ravel(), jnp.concatenate([a, a]), a.sum(0), a.mean(1), jnp.cumsum(a, 0)]
        [a + np.ones(8, np.float32), a * v, v @ a, jnp.sort(a, axis=1), jnp.where(a > 3, a, 0)]
        jax.jit(lambda p: (p @ p.T, jnp.sin(p).sum(0), p[::2]))(a)
        jax.jit(lambda p: jax.lax.scan(lambda c, t: (c + t, c.sum()), p[0], p))(a)
        jax.jit(jax.grad(lambda p: jnp.sum(jnp.tanh(p @ p))))(a)
        jax.jit(jax.vmap(lambda p: jnp.sin(p) @ p))(a)
        jax.jit(lambda p: p.reshape(2, 4, 8))(a)
        jax.jit(lambda p: p.reshape(2, 2, 2))(put(numbers(8), 'i', mesh=m8)) + 1
        jax.jit(lambda p: (p, jnp.ones(3), 4, p.astype(jnp.int32)))(a)
        [jax.jit(lambda p: p * 2)(put(numbers(8).astype(t), 'x')) for t in ('int8', 'bool', 'complex64', 'float16')]
        jax.jit(lambda p: p * 2)(put(numbers(8, dtype='bfloat16'), 'x'))
        jax.jit(lambda p: p * 2)(put(np.zeros((8, 0), np.float32), 'x'))
        jax.jit(lambda p: p * 2)(put(np.zeros((1, 8), np.float32), None, 'y'))
        jax.jit(lambda p: p * 2)(put(np.float32(3)))
        jax.jit(lambda p, q: p + q)(a, 2), jax.jit(lambda p, q: p + q)(a, jnp.float32(2))
        jax.jit(lambda p, q: (p, q))(put(numbers(8), 'x', mesh=back), np.ones(8, np.float32))
    """)


def test_shardings_given_to_jit_are_kept():
    same("""
        jax.jit(lambda p: p * 2, in_shardings=on('y'))(numbers(8, 8))
        jax.jit(lambda p: p * 2, out_shardings=on(('x', 'y')))(numbers(8, 8))
        jax.jit(lambda p: p * 2, in_shardings=on('x', 'y'), out_shardings=on('y', None))(a)
        jax.jit(lambda p, q: (p, q), in_shardings=(on('x'), None), out_shardings=(None, on('y')))(v, numbers(8))
        jax.jit(lambda t: {'c': t['a'] + t['b']}, in_shardings=({'a': on('x'), 'b': on()},))({'a': v, 'b': numbers(8)})
        jax.jit(lambda t: t, in_shardings=({'a': on('x'), 'b': None},), out_shardings=on('y'))({'a': v, 'b': numbers(8)})
        jax.jit(lambda t: t, out_shardings={'a': on('x'), 'b': None})({'a': numbers(8), 'b': 2})
        jax.jit(lambda p: p, out_shardings=One(d[2]))(jnp.ones(3))
        jax.jit(lambda p: p, out_shardings=on())(jnp.ones(3))
        jax.jit(lambda: jnp.arange(8.), out_shardings=on('x'))()
        jax.jit(lambda k: jax.random.split(k, 8), out_shardings=on('x'))(jax.random.key(0))
        jax.jit(lambda k: jax.random.split(k, 8), out_shardings=on('x'))(jax.random.PRNGKey(0))
        jax.jit(lambda p: p + 1, in_shardings=on('x', mesh=back))(numbers(8))
        jax.jit(lambda p: (lax.with_sharding_constraint(p, on('x')), lax.with_sharding_constraint(p * 2, on('q', mesh=grid((2, 4), ('p', 'q'))))))(numbers(8))
        jax.jit(lambda p: p + 1, in_shardings=on('x'), out_shardings=on('y', mesh=grid((2, 4), ('x', 'y'))))(numbers(8))
        jax.jit(jax.jit(lambda p: p + 1, in_shardings=on('x'), out_shardings=on('y')))(numbers(8))
        jax.jit(lambda p: lax.with_sharding_constraint(p * 2, on('y')))(a)
        jax.jit(lambda p: lax.with_sharding_constraint({'k': p, 'l': p + 1}, {'k': on('y'), 'l': on()}))(a)
        jax.jit(lambda p: lax.with_sharding_constraint(p, on('y', P.UNCONSTRAINED)) * 2)(a)
        lax.with_sharding_constraint(numbers(8), on('x'))
        jax.vmap(lambda p: lax.with_sharding_constraint(p, on('y')), spmd_axis_name='x')(numbers(8, 8))
        jax.grad(lambda p: lax.with_sharding_constraint(p * p, on('y')).sum())(a)
        jax.jit(lambda p: jax.device_put(p, on('y')) + 1)(a)
    """)


def test_a_mesh_that_is_set_is_used():
    same(
        """
        [jax.jit(lambda p: lax.with_sharding_constraint(p, P('x')))(numbers(8)), jnp.ones(8), jnp.ones(8) + 1]
        [lax.with_sharding_constraint(jnp.ones(8), P('x')), jax.device_put(numbers(8), P('y')), v * 2, v.sum()]
        jax.jit(lambda p: p + 1, in_shardings=P('x'), out_shardings=P('y'))(numbers(8))
        jax.jit(lambda t: t, out_shardings={'a': P('x'), 'b': None})({'a': numbers(8), 'b': numbers(8)})
        jax.shard_map(lambda p: lax.psum(p, 'x'), in_specs=P('x'), out_specs=P())(numbers(8))
        [jax.random.normal(jax.random.key(0), (8,)), jnp.arange(4), jax.random.key(1)]
        [jax.sharding.get_mesh(), jax.sharding.get_abstract_mesh(), jax.jit(lambda p: p)(1)]
        jaxpr(lambda p: lax.with_sharding_constraint(p, P('x')), numbers(8))
        text(lambda p: lax.with_sharding_constraint(p, P(('x', 'y'))) + 1, numbers(8))
        text(jax.jit(lambda p: p + 1, in_shardings=P('x'), out_shardings=P()), SDS((8,), 'float32'))
        text(lambda p: p + 1, SDS((8,), 'float32', sharding=P('x')))
        jax.jit(lambda p: p + 1).lower(SDS((8,), 'float32', sharding=P('x'))).compile().output_shardings
    """,
        setting="m",
    )


def test_a_mesh_that_is_entered_serves_constraints_alone():
    def inside(s, call):
        with pytest.warns(DeprecationWarning, match="context manager has been deprecated"), s.m as entered:
            assert entered is s.m
            return call()

    same(
        """
        inside(lambda: lax.with_sharding_constraint(numbers(8), P('x')))
        inside(lambda: jax.jit(lambda p: lax.with_sharding_constraint(p + 1, P('y')))(numbers(8)))
        inside(lambda: [jax.sharding.get_mesh(), jax.sharding.get_abstract_mesh(), jnp.ones(8) + 1])
    """,
        inside=lambda s: lambda call: inside(s, call),
    )
    same_errors(
        [
            ("inside(lambda: jax.jit(lambda p: p, in_shardings=P('x'))(numbers(8)))", "requires a non-empty mesh"),
            ("inside(lambda: jax.device_put(numbers(8), P('x')))", "Please set a mesh via `jax.set_mesh`"),
            ("inside(lambda: jax.shard_map(sum, in_specs=P('x'), out_specs=P('x'))(v))", "The context mesh cannot be"),
        ],
        inside=lambda s: lambda call: inside(s, call),
    )


def test_reshard_moves_over_explicit_axes_alone():
    explicit = dict(
        e=lambda s: s.jax.make_mesh((4, 2), ("x", "y")),
        q=lambda s: s.put(numbers(8, 8), "x", "y", mesh=s.jax.make_mesh((4, 2), ("x", "y"))),
    )
    same(
        """
        [jax.reshard(q, on('y', mesh=e)), jax.reshard(numbers(8), on('x', mesh=e)), jax.reshard(a, on())]
        jax.reshard({'a': q, 'b': q}, {'a': on('y', mesh=e), 'b': on(mesh=e)})
        np.asarray(jax.jit(lambda p: jax.sharding.reshard(p, on('y', mesh=e)))(q))
        jax.sharding.auto_axes(lambda p: p + 1, out_sharding=on('y'))(a)
        [jax.sharding.make_single_device_sharding(d[1]), jax.sharding.make_single_device_sharding(d[1]) == One(d[1])]
    """,
        **explicit,
    )
    same_errors(
        [
            ("jax.reshard(a, on('y'))", "reshard cannot contain axis names that are of type Auto"),
            (
                "jax.jit(lambda p: jax.reshard(p, on('y')))(a)",
                "reshard cannot contain axis names that are of type Auto",
            ),
            ("jax.reshard(a, P('y'))", "Using PartitionSpec when you are not under a mesh context"),
            ("jax.reshard(q, None)", "Got sharding None"),
            ("jax.reshard(q, 3)", "NamedSharding"),
            ("jax.sharding.auto_axes(lambda p: p)(a)", "Missing required keyword argument: 'out_sharding'"),
        ],
        **explicit,
    )


def test_texts_equal_jax_s():
    same("""
        text(lambda p: jnp.sin(p) @ p, a)
        text(lambda p, q, r: p + q * r, a, numbers(8, 8), 2.)
        text(jax.jit(lambda p: p + 1, donate_argnums=0), a)
        text(jax.jit(lambda p: p + 1, donate_argnums=0, out_shardings=on('x', 'y')), a)
        text(jax.jit(lambda p, q: (p + 1, q.sum()), donate_argnums=(0, 1)), a, a)
        text(jax.jit(lambda p, q: p, in_shardings=(on('x', 'y'), None), out_shardings=on('y')), a, a)
        text(jax.jit(lambda p, q: p, in_shardings=(on('x', 'y'), None), keep_unused=True), a, a)
        text(lambda p: jax.jit(lambda q: q * 2, in_shardings=on('x'), out_shardings=on(None, 'y'))(jnp.sin(p)), numbers(8, 8))
        text(jax.grad(lambda p: jax.jit(lambda q: q * q, in_shardings=on('x'))(jnp.sin(p)).sum()), numbers(8, 8))
        text(jax.vmap(lambda p: jax.jit(lambda q: q * q, in_shardings=on('x'))(p), spmd_axis_name='y'), numbers(4, 8))
        text(lambda p: lax.with_sharding_constraint(p, on('y', P.UNCONSTRAINED)), a)
        text(jax.vmap(lambda p: lax.with_sharding_constraint(p, on('y')), in_axes=1), numbers(8, 3))
        text(lambda p: lax.scan(lambda c, t: (lax.with_sharding_constraint(c + t, on('x')), c.sum()), p[0], p), a)
        text(lambda p: jax.device_put(p, on('y')) + 1, a)
        text(lambda p: jax.device_put(p, d[0]) + 1, a)
        text(lambda k: jax.random.split(k, 8), jax.random.key(0))
        text(jax.jit(lambda k: jax.random.split(k, 8), out_shardings=on('x')), jax.random.key(0))
        text(lambda p: p, put(numbers(8), 'x', mesh=back))
        text(lambda p: p * 2, jax.jit(lambda p: p.reshape(2, 4))(put(numbers(8), 'i', mesh=m8)))
        text(lambda p: jnp.sin(p), SDS((8, 8), 'float32', sharding=on('x', 'y')))
        text(lambda p, q: p + lax.with_sharding_constraint(q, on(('a', 'b'), mesh=grid((2, 4), ('a', 'b')))), a, a)
        text(lambda p: p + np.arange(8, dtype=np.float32), a)
        jaxpr(jax.jit(lambda p: p, in_shardings=on('x'), donate_argnums=0, keep_unused=True), numbers(8))
        jaxpr(lambda p: jax.jvp(jax.jit(lambda q: q * q, in_shardings=on('x'), out_shardings=on()), (p,), (p,)), numbers(8))
        jaxpr(jax.vmap(jax.jit(lambda q: q * q, in_shardings=on('x')), spmd_axis_name='y'), numbers(4, 8))
        jaxpr(lambda p: jax.device_put(p, on('x')) + 1, numbers(8))
        jaxpr(jax.vmap(lambda p: lax.with_sharding_constraint(p, on('y')), in_axes=1), numbers(8, 3))
    """)


def test_optimized_programs_hold_the_same_collectives():
    same("""
        collectives(lambda p: p @ p, a)
        collectives(lambda p: (p.sum(), p.sum(0), p.T), a)
        collectives(lambda p: lax.with_sharding_constraint(p, on('y', 'x')), a)
        collectives(jax.grad(lambda p: jnp.sum(jnp.tanh(p @ p))), a)
        collectives(jax.jit(lambda p: p, out_shardings=on()), a)
        collectives(lambda p: jax.shard_map(lambda q: lax.psum_scatter(q, 'x', tiled=True), mesh=m, in_specs=P(), out_specs=P('x'))(p), a)
        collectives(lambda p: jnp.sort(p, axis=0), a)
    """)


def test_stages_equal_jax_s():
    same(
        """
        [s.input_shardings, s.output_shardings, s(a), s(numbers(8, 8)), s.in_avals]
        jax.jit(lambda p, q: p).lower(a, a).compile().input_shardings
        jax.jit(lambda p: p.sum(0)).lower(SDS((8, 8), 'float32', sharding=on('x', 'y'))).compile()(a)
        jax.jit(lambda p: p).lower(a).compile().input_shardings
        jax.jit(lambda p: p, out_shardings=on('y')).lower(numbers(8)).compile().output_shardings
        jax.jit(lambda p: p, out_shardings=on('y')).eval_shape(numbers(8))
        jax.eval_shape(lambda p: p + 1, a)
        jax.eval_shape(jax.jit(lambda p: (p, p), out_shardings=(None, on())), a)
        jax.jit(lambda p: p, out_shardings=One(d[0])).lower(numbers(8)).out_info
        jax.jit(jax.shard_map(lambda p: lax.psum(p, 'x'), mesh=m, in_specs=P('x'), out_specs=P())).lower(a).compile()(a)
    """,
        s=lambda n: n.jax.jit(lambda p: (p + 1, p.sum(0))).lower(n.a).compile(),
    )


def test_donation_over_devices_frees_as_in_jax():
    def freed(s, **options):
        kept, given = s.put(numbers(8, 8), "x"), s.put(numbers(8, 8), "x")
        double = s.jax.jit(lambda p, q: (p + 1, q * 2), donate_argnums=1, **options)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            results = [np.asarray(r) for r in double(kept, given)]
        return kept.is_deleted(), given.is_deleted(), results, [str(w.message)[:35] for w in caught]

    same(
        """
        freed()
        freed(out_shardings=(on(), on('x', None)))
        freed(out_shardings=(on('x'), None))
        freed(out_shardings=(on(), on(None, 'x')))
        freed(out_shardings=on('y'))
        freed(in_shardings=(None, on('x')))
    """,
        freed=lambda s: lambda **options: freed(s, **options),
    )


def test_programs_are_compiled_once_for_each_layout():
    mesh = minijax.sharding.Mesh(np.array(minijax.devices()).reshape(4, 2), ("x", "y"))
    spec = minijax.sharding.PartitionSpec
    layouts = [minijax.sharding.NamedSharding(mesh, s) for s in (spec("x"), spec("y"), spec("x", None))]
    arrays = [minijax.device_put(numbers(8, 8), layout) for layout in layouts]
    double = minijax.jit(lambda p: p * 2 - 1)
    before = compiling.compile_count()
    for array in arrays * 2:
        assert np.array_equal(double(array), numbers(8, 8) * 2 - 1)
    assert compiling.compile_count() == before + 2


def test_gradients_over_devices_equal_numpy_s():
    rows = minijax.sharding.Mesh(np.array(minijax.devices()), ("i",))
    spec = minijax.sharding.PartitionSpec
    w, x = (numbers(*shape).astype(np.float64) / 8 for shape in ((8, 4), (16, 8)))
    with minijax.enable_x64(True):
        placed = minijax.device_put(x, minijax.sharding.NamedSharding(rows, spec("i")))
        found = minijax.jit(minijax.grad(lambda w, x: (minijax.numpy.tanh(x @ w) ** 2).sum()))(w, placed)
    t = np.tanh(x @ w)
    # The devices' sums are added in another order.
    assert np.allclose(found, x.T @ (2 * t * (1 - t**2)), rtol=1e-12, atol=1e-12)
