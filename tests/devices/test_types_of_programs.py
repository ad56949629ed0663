"""Explicit axes: types in programs: a case for each difference that random ones have shown (tests/fuzz), and the mesh of
replicated values, of constants of rules and of operands beside those without a mesh.
"""

import importlib
from functools import partial

import numpy as np
import pytest
from compare import normal
from mesh_language import numbers, same, same_errors, unwrapped

pytestmark = pytest.mark.oracle


def made(shape, *spec, dtype=np.float32):
    return lambda s: s.shard(numbers(*shape, dtype=dtype), *spec, mesh=s.explicit_mesh)


def placed(shape, *spec):
    return lambda s: s.shard(numbers(*shape) / 9 + 0.1, *spec, mesh=s.explicit_mesh)


GIVEN = {
    "single_column": made((8, 1), "x"),
    "batch": made((8, 4, 4), "x"),
    "sharded_middle": made((8, 4, 4), None, "y"),
    "replicated_batch": made((8, 4, 4)),
    "scalar": made(()),
    "uint8_vector": made((8,), "x", dtype=np.uint8),
    "sharded_vector": placed((8,), "x"),
    "replicated_vector": placed((8,)),
    "replicated_scalar": placed(()),
    "numpy_vector": lambda s: numbers(8),
    "plain_jaxpr": lambda s: lambda f, *args: unwrapped(normal(s.jaxpr(f, *args))),
}


def test_cotangents_of_broadcasts_have_the_sharding_of_the_operand():
    same(
        [
            lambda s: s.run(s.jax.grad(lambda x: s.jnp.broadcast_to(x, (2, 8, 4)).sum()), s.sharded_rows),
            lambda s: s.run(s.jax.grad(lambda x: s.lax.broadcast_in_dim(x, (8, 4), (0, 1)).sum()), s.single_column),
            lambda s: s.run(
                s.jax.grad(lambda x: s.lax.broadcast_in_dim(x, (8, 4, 2), (0, 1), out_sharding=s.P("x", "y")).sum()),
                s.sharded_rows,
            ),
            lambda s: s.types(
                s.jax.grad(lambda x: s.lax.reduce_sum(x, (1,), out_sharding=s.P("x")).sum()), s.replicated
            ),
            lambda s: s.types(s.jax.vmap(s.jax.grad(lambda x: s.jnp.broadcast_to(x, (2, 4, 4)).sum())), s.batch),
            lambda s: s.types(s.jax.grad(lambda x: (x * s.sharded_rows).sum()), s.replicated),
            lambda s: s.types(s.jax.grad(lambda x: (x + s.sharded_rows).sum()), s.replicated),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )


def test_broadcasts_have_the_requested_sharding():
    same(
        [
            lambda s: s.run(lambda x: s.jnp.broadcast_to(x, (2,), out_sharding=s.P("y")), s.scalar),
            lambda s: s.run(
                lambda x: s.jnp.broadcast_to(x, (2, 8, 4), out_sharding=s.P(None, "x", "y")), s.sharded_rows
            ),
            lambda s: s.run(lambda x: s.jnp.broadcast_to(x, (8, 4), out_sharding=s.P("x", "y")), s.sharded_rows),
            lambda s: s.types(
                lambda x: s.jax.vjp(lambda y: s.lax.cond(True, s.jnp.sin, lambda z: z, y), x)[1](x), s.sharded_rows
            ),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )


def test_specs_may_have_trailing_nones():
    same(
        [
            lambda s: [s.jnp.arange(8, out_sharding=s.P("x", None)), s.jnp.zeros(8, out_sharding=s.P("x", None))],
            lambda s: s.run(lambda x: s.jnp.reshape(x, 32, out_sharding=s.P("x", None)), s.sharded_rows),
            lambda s: s.run(lambda x: s.jax.reshard(x, s.P(None, "x", None)), s.sharded_rows),
            lambda s: s.types(lambda x: s.jnp.dot(x, x.T, out_sharding=s.P("x", None, None)), s.sharded_rows),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )
    same_errors(
        [
            (lambda s: s.jax.reshard(s.jnp.ones((6, 4)), s.P("x")), "evenly divide"),
            (lambda s: s.jax.reshard(s.jnp.ones((8, 8)), s.P("x", "x")), "duplicate entries"),
        ],
        set_mesh="explicit_mesh",
    )


def test_device_put_over_explicit_axes():
    same(
        [
            lambda s: s.run(lambda x: s.jax.device_put(x, s.P(None, "x")), s.sharded_rows),
            lambda s: s.run(lambda x: s.jax.device_put(x, s.P(None, None)), s.sharded_rows),
            lambda s: s.run(
                lambda x: s.jax.device_put(x, s.jax.devices()[0]) if False else s.jax.device_put(x), s.sharded_rows
            ),
            lambda s: s.run(s.jax.grad(lambda x: s.jax.device_put(x, s.P(None, "x")).sum()), s.sharded_rows),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )


def test_map_with_a_batch_size():
    same(
        [
            lambda s: s.jaxpr(lambda x: s.lax.map(lambda a: a * 2, x, batch_size=2), s.sharded_columns),
            lambda s: s.jaxpr(lambda x: s.lax.map(lambda a: a * 2, x, batch_size=3), s.sharded_columns),
            lambda s: s.jaxpr(s.jax.vmap(lambda x: s.lax.map(lambda a: a * 2, x, batch_size=2)), s.sharded_rows),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )
    same_errors(
        [
            (lambda s: s.lax.map(lambda a: a * 2, s.sharded_rows, batch_size=2), "0th dimension"),
            (lambda s: s.lax.map(lambda a: a * 2, s.sharded_rows, batch_size=3), "0th dimension"),
        ],
        set_mesh="explicit_mesh",
    )


def test_updates_by_index_have_the_sharding_of_the_operand():
    same(
        [
            lambda s: s.jaxpr(lambda x: x.at[0].set(1.0), s.sharded_columns),
            lambda s: s.jaxpr(lambda x: x.at[:2].add(1.0), s.sharded_columns),
            lambda s: s.jaxpr(lambda x: x.at[::2].set(1.0), s.sharded_columns),
            lambda s: s.jaxpr(lambda x: x.at[s.jnp.array([1, 2])].set(s.jnp.ones(4)), s.sharded_columns),
            lambda s: s.jaxpr(lambda x: x.at[0, :, s.jnp.array([1, 2])].set(1.0), s.sharded_middle),
            lambda s: s.jaxpr(lambda x: x.at[None, s.jnp.array([1, 2])].set(1.0), s.sharded_middle),
            lambda s: s.jaxpr(lambda x: x.at[..., 1:3].add(1.0), s.sharded_middle),
            lambda s: s.jaxpr(s.jax.vmap(lambda x: x.at[0].add(1.0)), s.batch),
            lambda s: s.jaxpr(lambda x: x.at[0].add(2, out_sharding=s.P("x")), s.uint8_vector),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )


def test_constants_have_the_sharding_of_the_other_operand():
    same(
        [
            lambda s: s.jaxpr(s.jnp.triu, s.sharded_rows),
            lambda s: s.jaxpr(s.jnp.tril, s.batch),
            lambda s: s.jaxpr(s.jnp.angle, s.sharded_rows),
            lambda s: s.jaxpr(s.jax.grad(lambda x, y: (x**y).sum()), s.sharded_rows, s.sharded_rows),
            lambda s: s.jaxpr(s.jax.grad(lambda x: s.jnp.logaddexp(x, 0.0).sum()), s.sharded_rows),
            lambda s: s.types(s.jax.grad(lambda x: s.jax.nn.softplus(x).sum()), s.sharded_both),
            lambda s: s.types(s.jax.jacfwd(lambda x: x.sum()), s.sharded_rows),
            lambda s: s.types(s.jax.jacrev(lambda x: x.sum(0)), s.sharded_rows),
            lambda s: s.types(s.jax.hessian(lambda x: (x**2).sum()), s.sharded_rows),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )


def test_products_of_a_sharded_and_a_replicated_batch():
    def product(s, x, y):
        return s.run(lambda x, y: s.lax.dot_general(x, y, (((1,), (1,)), ((0,), (0,)))), x, y)

    same(
        [lambda s: product(s, s.batch, s.replicated_batch), lambda s: product(s, s.replicated_batch, s.batch)],
        set_mesh="explicit_mesh",
        **GIVEN,
    )


def test_cotangents_of_several_uses_are_added_over_their_mesh():
    same(
        [
            lambda s: s.types(
                s.jax.grad(lambda x: (x * x.at[0].multiply(2.0, out_sharding=s.P(None, "y"))).sum()), s.sharded_columns
            ),
            lambda s: s.types(
                s.jax.grad(lambda x: x.at[0].set(2.0, out_sharding=s.P(None, "y")).sum() + x.sum()), s.sharded_rows
            ),
            lambda s: s.types(
                s.jax.grad(lambda x: (s.jax.sharding.auto_axes(lambda y: y * y, out_sharding=s.P("x"))(x) + x).sum()),
                s.sharded_rows,
            ),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )


def test_reshapes_whose_cotangents_are_sharded():
    same(
        [
            lambda s: s.types(
                s.jax.grad(lambda x: s.jnp.reshape(x, (8, 2, 2), out_sharding=s.P("x", "y")).sum()), s.sharded_rows
            ),
            lambda s: s.types(
                s.jax.grad(lambda x: (s.jnp.reshape(x, (8, 1, 4), out_sharding=s.P(None, None, "y")) * 2).sum()),
                s.replicated,
            ),
            lambda s: s.jaxpr(
                s.jax.grad(lambda x: s.jnp.reshape(x, (8, 1, 4), out_sharding=s.P(None, None, "y")).sum()),
                s.sharded_columns,
            ),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )


def over_mixed_axes(s):
    """Returns a function that calls another with an array over three axes, of which one is Auto."""
    kinds = (s.AxisType.Explicit, s.AxisType.Auto, s.AxisType.Explicit)
    mesh = s.jax.make_mesh((2, 2, 2), ("x", "y", "z"), kinds, devices=s.devices)

    def run(f):
        with s.jax.set_mesh(mesh):
            x = s.shard(numbers(2, 4, 2), "z", "y", "x", mesh=mesh)
            return s.jax.jit(f)(x)

    return run


def test_shardings_over_auto_axes_are_left_to_xla():
    def gathered(s, x):
        gather = lambda y: s.lax.all_gather(y, "x", tiled=True)  # noqa: E731
        return s.jax.shard_map(gather, in_specs=s.P("x"), out_specs=s.P("x"))(x)

    same(
        [
            lambda s: s.run_mixed(lambda x: (lambda y: [y, gathered(s, y)])(s.jnp.fft.fft2(x))),
            lambda s: s.run_mixed(s.jnp.fft.fft2),
            lambda s: s.run_mixed(lambda x: s.jnp.fft.fft(x, axis=1)),
            lambda s: s.run_mixed(lambda x: x * 2),
            lambda s: s.run_mixed(lambda x: gathered(s, x)),
        ],
        run_mixed=over_mixed_axes,
    )


def test_specs_that_do_not_fit_the_operand_are_refused():
    same_errors(
        [
            (
                lambda s: s.jnp.broadcast_to(s.sharded_rows, (2, 8, 4), out_sharding=s.P(None, None, "y")),
                "Incompatible types for broadcasting",
            ),
            (
                lambda s: s.jnp.broadcast_to(s.sharded_rows, (8, 4), out_sharding=s.P(None, None)),
                "requested type=float32[8,4]",
            ),
            (
                lambda s: s.jnp.broadcast_to(s.sharded_rows, (8, 4), out_sharding=s.P(("x", "y"), None)),
                "input type=float32[8@x,4]",
            ),
            (
                lambda s: s.lax.with_sharding_constraint(s.sharded_rows, s.P("x", None, None)),
                "One of with_sharding_constraint arguments is",
            ),
            (
                lambda s: s.jax.jit(lambda x: s.lax.with_sharding_constraint(x, s.P(None, None, None)))(s.replicated),
                "incompatible with its shar",
            ),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )


SET_MESH = pytest.mark.parametrize("set_mesh", ["explicit_mesh", ""])


CONTEXTS = [
    ("sharded_vector", "explicit_mesh"),
    ("sharded_vector", ""),
    ("replicated_vector", "explicit_mesh"),
    ("replicated_vector", ""),
]


def jaxpr_of(program, array, s):
    """The jaxpr of a program of the side and of an array, which is given by its name."""
    return s.jaxpr(lambda a: program(s, a), getattr(s, array))


def plain_jaxpr_of(program, one, two, s):
    """The jaxpr of a program of the side and of two arrays, on one line."""
    return s.plain_jaxpr(lambda a, b: program(s, a, b), getattr(s, one), getattr(s, two))


def swapped(program, one, two, s):
    return s.plain_jaxpr(lambda a, b: program(s, b, a), getattr(s, one), getattr(s, two))


RULES = "abs acosh asinh atanh erf expm1 log1p logistic tanh cbrt sqrt rsqrt tan asin digamma lgamma square".split()


@pytest.mark.parametrize("array, set_mesh", CONTEXTS)
def test_constants_in_rules(array, set_mesh):
    def tangent(rule, s):
        return s.jaxpr(lambda x: s.jax.jvp(getattr(s.lax, rule), (x,), (x,)), getattr(s, array))

    def gradient(rule, s):
        return s.jaxpr(s.jax.vmap(s.jax.grad(getattr(s.lax, rule))), getattr(s, array))

    given = {array: GIVEN[array]}
    same([partial(derivative, rule) for derivative in (tangent, gradient) for rule in RULES], set_mesh, **given)


PROGRAMS = [
    lambda s, a: s.jnp.ones_like(a.sum()),
    lambda s, a: s.lax.full_like(a, 1.0),
    lambda s, a: s.jnp.where(a > 0, a, 0.0),
    lambda s, a: a + s.numpy_vector,
    lambda s, a: s.lax.scan(lambda c, _: (c * 2, c.sum()), a, None, length=3),
    lambda s, a: s.lax.fori_loop(0, 3, lambda i, c: c + a.sum(), 0.0),
    lambda s, a: s.lax.while_loop(lambda c: c.sum() < 9.0, lambda c: c * 2, a),
    lambda s, a: s.lax.cond(a.sum() > 0, lambda b: b + 1, lambda b: s.jnp.zeros_like(b), a),
    lambda s, a: s.lax.cond(a.sum() > 0, lambda b: b.sum(), lambda b: 0.0, a),
    lambda s, a: s.jax.grad(lambda b: (s.jnp.tanh(b) * s.numpy_vector).sum())(a),
    lambda s, a: s.jax.grad(lambda b: s.lax.scan(lambda c, _: (s.jnp.sin(c) * b, None), b, None, length=2)[0].sum())(a),
    lambda s, a: s.jax.grad(lambda b: s.jax.checkpoint(lambda c: s.jnp.sin(s.jnp.cos(c)).sum())(b))(a),
    lambda s, a: s.jax.vmap(s.jax.grad(lambda b: s.lax.max(b, s.jnp.abs(b))))(a),
    lambda s, a: s.jax.grad(s.jax.nn.logsumexp)(a),
    lambda s, a: s.jax.grad(s.jnp.linalg.norm)(a),
    lambda s, a: s.jax.grad(lambda b: s.jax.scipy.special.erf(b).sum())(a),
    lambda s, a: s.jax.vmap(s.jax.nn.relu)(a),
    lambda s, a: s.jax.jvp(s.jax.nn.softmax, (a,), (a,)),
    lambda s, a: s.jax.jvp(s.jax.nn.gelu, (a,), (a,)),
    lambda s, a: s.jax.jvp(s.jnp.var, (a,), (a,)),
]


@pytest.mark.parametrize("array, set_mesh", CONTEXTS)
def test_programs(array, set_mesh):
    same([partial(jaxpr_of, program, array) for program in PROGRAMS], set_mesh, **GIVEN)


@SET_MESH
def test_programs_of_replicated_values(set_mesh):
    same(
        [
            lambda s: [s.jax.typeof(x).sharding for x in (s.replicated_vector, s.replicated_scalar, s.sharded_vector)],
            lambda s: [
                s.jax.typeof(x).sharding.mesh.empty
                for x in (
                    s.replicated_vector + 1,
                    s.replicated_vector.sum(),
                    s.jnp.sin(s.replicated_vector),
                    s.replicated_vector[None],
                    s.replicated_vector.reshape(2, 4),
                )
            ],
            lambda s: s.run(lambda a, b: a * b + 1, s.replicated_vector, s.sharded_vector),
            lambda s: s.run(lambda a: s.jnp.concatenate([a, a]), s.replicated_vector),
            lambda s: s.run(
                lambda a: [s.jnp.cumsum(a.reshape(2, 4)), s.jnp.stack([a, s.numpy_vector])], s.replicated_vector
            ),
            lambda s: s.jaxpr(lambda a: s.lax.scan(lambda c, b: (c + b, c), 0.0, a), s.replicated_vector),
            lambda s: s.jaxpr(
                s.jax.vmap(lambda b: s.lax.scan(lambda c, _: (c + b, None), 0.0, None, length=2)[0]),
                s.replicated_vector,
            ),
            lambda s: s.jaxpr(
                s.jax.shard_map(
                    lambda a: s.jax.jvp(s.jnp.tanh, (a,), (a,)),
                    mesh=s.explicit_mesh,
                    in_specs=s.P("x"),
                    out_specs=s.P("x"),
                ),
                s.sharded_vector,
            ),
        ],
        set_mesh=set_mesh,
        **GIVEN,
    )


MIXED = [
    lambda s, a, b: s.lax.while_loop(lambda c: False, lambda c: (c[1], c[0]), (a, b)),
    lambda s, a, b: s.jax.vjp(lambda u, v: u * v, a, b)[1](a),
    lambda s, a, b: s.jax.vjp(lambda u, v: u + v, a, b)[1](a),
    lambda s, a, b: s.jax.vjp(lambda u: u - a, b)[1](a),
    lambda s, a, b: s.jax.vjp(lambda u: u * a, s.replicated_scalar)[1](a),
    lambda s, a, b: s.jax.vjp(lambda u: u / a, np.float32(2))[1](a),
    lambda s, a, b: s.jax.jvp(lambda u: u + a, (b,), (b,)),
    lambda s, a, b: s.jax.jvp(lambda u: u + a, (np.float32(2),), (np.float32(3),)),
    lambda s, a, b: s.jax.grad(lambda u: s.jnp.concatenate([a, u]).sum())(b),
    lambda s, a, b: s.jax.grad(lambda u: s.jax.jit(lambda v: s.jnp.sin(v * a))(u).sum())(b),
    lambda s, a, b: s.jax.jvp(lambda u, v: s.jnp.concatenate([u, v]), (a, b), (a, b)),
    lambda s, a, b: s.jnp.where(a > 0, b, 0.0),
    lambda s, a, b: s.jnp.where(b > 0, a, 0.0),
    lambda s, a, b: s.jnp.where(s.jnp.arange(8) > 3, a, -1e9),
    lambda s, a, b: s.jnp.broadcast_arrays(a, b, 1.0),
    lambda s, a, b: s.jax.grad(lambda u: s.jnp.where(u > 0.2, u, 0.0).sum() + (u * b).sum())(a),
]


# These are compared in the other order too.
MIXED_BOTH_WAYS = [
    lambda s, a, b: s.lax.cond(True, lambda x, y: x, lambda x, y: y, a, b),
    lambda s, a, b: s.lax.clamp(b, a, b),
]


# Only where no mesh is set.
MIXED_WITHOUT_SET_MESH = [
    lambda s, a, b: s.lax.scan(lambda c, x: (c + x, c), b, s.jnp.stack([a, a])),
    lambda s, a, b: s.jnp.select([a > 0, b > 0], [a, a], 0.0),
]


@SET_MESH
def test_values_without_a_mesh_beside_values_with_one(set_mesh):
    """Loops and branches take both for one type; a cotangent, or a tangent, gets the sharding that jax gives it."""
    programs = [*MIXED, *MIXED_BOTH_WAYS, *([] if set_mesh else MIXED_WITHOUT_SET_MESH)]
    arrays = [("sharded_vector", "numpy_vector"), ("replicated_vector", "numpy_vector")]
    cases = [partial(plain_jaxpr_of, program, *both) for program in programs for both in arrays]
    cases += [partial(swapped, program, "sharded_vector", "numpy_vector") for program in MIXED_BOTH_WAYS]
    same(cases, set_mesh, **GIVEN)


PROGRAMS_OF_ONE_VALUE = [
    lambda s, a: s.jax.hessian(lambda b: (b**3).sum())(a),
    lambda s, a: s.jax.jacrev(lambda b: b * b)(a),
    lambda s, a: s.jax.jacfwd(s.jnp.sin)(a),
    lambda s, a: s.jax.jacrev(lambda b: b.sum())(s.replicated_scalar),
    lambda s, a: s.jax.grad(lambda b: s.jnp.tile(b, (2, 1)).sum())(a[:, None].T),
    lambda s, a: s.jax.vmap(lambda b: s.jnp.repeat(b, 2))(s.jnp.stack([a[:, None]] * 2, 1)),
    lambda s, a: s.jax.grad(lambda b: b.at[:, 0].set(1.0).sum())(a[:, None]),
    lambda s, a: s.jax.grad(lambda b: s.lax.reduce_window(b, 0.0, s.lax.add, (1, 2), (1, 2), "VALID").sum())(
        s.jnp.stack([a, a], 1)
    ),
    lambda s, a: s.jax.nn.one_hot(a.astype(int), 3),
    lambda s, a: s.jax.nn.hard_tanh(a),
    lambda s, a: s.jax.grad(lambda b: s.jnp.nanmean(b))(a),
    lambda s, a: s.jax.grad(lambda b: 0.0 + s.jnp.sum(b * 2))(a),
    lambda s, a: s.jax.vmap(s.jax.grad(lambda b: s.jnp.cumsum(b).sum() + 0.0))(s.jnp.stack([a, a], 1)),
    lambda s, a: s.jax.grad(lambda b: b.reshape(8, 1).sum() + 0.0)(a),
    lambda s, a: s.jax.grad(lambda b: s.lax.cond(b.sum() > 0, lambda c: (c * b.sum()).sum(), lambda c: 0.0, b))(a),
]


@pytest.mark.parametrize("array, set_mesh", [*CONTEXTS, ("numpy_vector", "explicit_mesh")])
def test_programs_of_one_value(array, set_mesh):
    def plain(program, array, s):
        return s.plain_jaxpr(lambda a: program(s, a), getattr(s, array))

    same([partial(plain, program, array) for program in PROGRAMS_OF_ONE_VALUE], set_mesh, **GIVEN)


@SET_MESH
def test_values_without_a_mesh_are_not_constrained(set_mesh):
    same(
        [
            lambda s: s.text(
                lambda a: (s.jnp.sin(s.numpy_vector), s.jnp.ones(3), s.lax.cumsum(s.numpy_vector), a * 2),
                s.sharded_vector,
            ),
            lambda s: s.text(lambda a: s.jnp.split(a[None] * 2, 1)[0], s.sharded_vector),
            lambda s: s.text(lambda a: s.jnp.isfinite(a), s.sharded_vector),
            lambda s: s.text(lambda a: s.lax.stop_gradient(a * 2) + a, s.sharded_vector),
            lambda s: s.text(lambda a: s.lax.max(a, np.float32(0)) > 1, s.sharded_vector),
            lambda s: s.text(lambda a: s.jnp.logaddexp(s.numpy_vector, 0.0) + a, s.sharded_vector),
            lambda s: s.jax.jit(
                lambda a: (s.jnp.sin(s.numpy_vector), s.jnp.ones(3), s.lax.cumsum(s.numpy_vector), a * 2)
            )(s.sharded_vector),
            lambda s: s.plain_jaxpr(lambda a: s.jnp.searchsorted(a, a[:3]), s.replicated_vector),
            lambda s: s.jax.vjp(lambda q: s.sharded_vector + q, s.numpy_vector)[1](s.sharded_vector),
            lambda s: s.jax.vjp(lambda q: q * s.numpy_vector, s.sharded_vector)[1](s.numpy_vector),
        ],
        set_mesh=set_mesh,
        **GIVEN,
    )


def test_constraints_after_auto_axes():
    def doubled(s, a, sharding):
        return s.jnp.cos(s.jnp.sin(a) + s.jax.sharding.auto_axes(lambda y: y * 2, out_sharding=sharding)(a)) * 3

    same([lambda s: s.text(lambda a: doubled(s, a, s.P("x")), s.sharded_vector)], "explicit_mesh", **GIVEN)
    same(
        [
            lambda s: s.text(lambda a: doubled(s, a, s.NamedSharding(s.explicit_mesh, s.P("x"))), s.sharded_vector),
            lambda s: s.text(lambda a: (s.under_auto(), s.jnp.sin(a) * 3), s.sharded_vector),
        ],
        under_auto=_under_auto,
        **GIVEN,
    )


def _under_auto(s):
    """A function whose unused result is computed where the set mesh has Auto axes."""
    auto = s.explicit_mesh.abstract_mesh.update_axis_types({"x": s.AxisType.Auto, "y": s.AxisType.Auto})

    def call():
        with s.jax.sharding.use_abstract_mesh(auto):
            return s.lax.cumsum(s.jnp.arange(4.0) * 2)

    return call


def test_zero_cotangents_of_values_without_a_mesh_have_none():
    module = {"add_jaxvals": lambda s: importlib.import_module(f"{s.jax.__name__}.interpreters.ad").add_jaxvals}
    same(
        [
            lambda s: s.plain_jaxpr(
                lambda a, b, c: s.jax.vjp(lambda u: s.add_jaxvals(u, b), a)[1](c),
                s.numpy_vector,
                s.numpy_vector,
                s.sharded_vector,
            ),
            lambda s: s.plain_jaxpr(
                lambda a, b, c: s.jax.vjp(lambda u: s.add_jaxvals(a, u), b)[1](c),
                s.numpy_vector,
                s.numpy_vector,
                s.sharded_vector,
            ),
            lambda s: s.plain_jaxpr(
                lambda a, b, c: s.jax.jvp(lambda u: s.add_jaxvals(a, u), (b,), (c,)),
                s.numpy_vector,
                s.sharded_vector,
                s.sharded_vector,
            ),
            lambda s: s.plain_jaxpr(
                lambda a, b, c: s.jax.jvp(lambda u: s.add_jaxvals(a, u), (b,), (c,)),
                s.numpy_vector,
                s.replicated_vector,
                s.replicated_vector,
            ),
        ],
        set_mesh="explicit_mesh",
        **module,
        **GIVEN,
    )


@SET_MESH
def test_values_of_several_shapes_broadcast_together(set_mesh):
    same(
        [
            lambda s: s.plain_jaxpr(
                lambda a, b: s.jnp.where(a[:, None] > 0, b[None], 0.0), s.replicated_vector, s.numpy_vector
            ),
            lambda s: s.plain_jaxpr(
                lambda a, b: s.jnp.where(a[:, None] > 0, b[None], 0.0), s.numpy_vector, s.replicated_vector
            ),
            lambda s: s.plain_jaxpr(
                lambda a, b: s.jnp.broadcast_arrays(a[:, None], b[None]), s.replicated_vector, s.numpy_vector
            ),
            lambda s: s.plain_jaxpr(
                lambda a, b: s.jnp.broadcast_arrays(a[:, None], b[None]), s.numpy_vector, s.replicated_vector
            ),
        ],
        set_mesh=set_mesh,
        **GIVEN,
    )


def test_values_without_a_mesh_take_the_sharding_of_the_other_operands():
    same(
        [
            lambda s: s.run(
                lambda a: [
                    s.jnp.concatenate([a, s.numpy_vector]),
                    s.jnp.concatenate([s.numpy_vector, a]),
                    s.jnp.stack([s.numpy_vector, a]),
                    s.lax.select(a > 0, a, s.numpy_vector),
                ],
                s.sharded_vector,
            ),
            lambda s: s.jax.jit(lambda a: (a, s.jnp.ones(3)))(s.replicated_vector),
        ],
        **GIVEN,
    )


def test_two_meshes_in_one_operation_are_refused():
    other = {"vector_over_other_mesh": lambda s: s.shard(numbers(8), mesh=s.jax.make_mesh((8,), ("n",)))}
    phrase = "Mesh for all inputs should be equal"
    same_errors(
        [
            (lambda s: s.replicated_vector + s.vector_over_other_mesh, phrase),
            (lambda s: s.jax.jit(lambda a, b: a * b)(s.replicated_vector, s.vector_over_other_mesh), phrase),
        ],
        **GIVEN,
        **other,
    )
    same_errors(
        [
            (
                lambda s: s.jax.shard_map(lambda a: a, mesh=s.explicit_mesh, in_specs=s.P("x"), out_specs=s.P("x"))(
                    s.replicated_vector
                ),
                "in_specs passed to shard_map",
            )
        ],
        **GIVEN,
    )


VALUES_OF_A_HOST_ARRAY = [
    lambda s, x: x,
    lambda s, x: s.lax.sin(x),
    lambda s, x: x + x,
    lambda s, x: x + 1,
    lambda s, x: x < 1,
    lambda s, x: x.sum(),
    lambda s, x: s.lax.broadcast_in_dim(x, (8, 2), (0,)),
    lambda s, x: x[None],
    lambda s, x: s.lax.concatenate([x, x], 0),
    lambda s, x: s.lax.select(x > 0, x, x),
    lambda s, x: s.lax.clamp(x, x, x),
    lambda s, x: s.lax.iota(np.int32, 8),
    lambda s, x: s.jnp.zeros(8),
    lambda s, x: s.jnp.zeros(()),
    lambda s, x: s.jax.random.uniform(s.jax.random.key(0), (8,)),
    lambda s, x: s.jax.grad(lambda b: s.lax.sin(b).sum())(x),
    lambda s, x: s.jax.nn.relu(x),
]


def test_values_over_the_mesh_that_is_set():
    def has_no_mesh(program, s):
        """Whether the type of the value has no mesh, while the function of a host array is traced."""
        known = []
        s.jax.make_jaxpr(lambda x: known.append(s.jax.typeof(program(s, x)).sharding.mesh.empty))(numbers(8))
        return known

    same([partial(has_no_mesh, program) for program in VALUES_OF_A_HOST_ARRAY], "explicit_mesh")
    same(
        [lambda s: s.jaxpr(s.jax.vmap(lambda r: s.lax.select(r > 0, s.jnp.zeros(()), r)), s.sharded_vector)],
        "explicit_mesh",
        **GIVEN,
    )
