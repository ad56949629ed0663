"""Explicit axes: one case for each difference from jax that random programs (tests/fuzz) have found."""

import numpy as np
import pytest
from mesh_language import numbers, same, same_errors

pytestmark = pytest.mark.oracle


def made(shape, *spec, dtype=np.float32):
    return lambda s: s.shard(numbers(*shape, dtype=dtype), *spec, mesh=s.explicit_mesh)


GIVEN = {
    "single_column": made((8, 1), "x"),
    "batch": made((8, 4, 4), "x"),
    "sharded_middle": made((8, 4, 4), None, "y"),
    "replicated_batch": made((8, 4, 4)),
    "scalar": made(()),
    "uint8_vector": made((8,), "x", dtype=np.uint8),
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


def test_reduced_values():
    same(
        [
            lambda s: s.jaxpr(
                lambda x: s.lax.reduce_sum(
                    s.jax.reshard(x, s.P(None, "y", reduced={"x"})), (1,), out_sharding=s.P(None)
                ),
                s.sharded_columns,
            ),
            lambda s: s.jaxpr(lambda k: s.jax.vjp(lambda i: s.jax.reshard(i, s.P(reduced={"x"})), k)[0], np.arange(4)),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )
    same_errors(
        [
            (
                lambda s: s.jax.jit(lambda x: s.lax.complex(x, x))(s.jax.reshard(s.replicated, s.P(unreduced={"x"}))),
                "unreduced rule for complex",
            )
        ],
        set_mesh="explicit_mesh",
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


def test_padding_of_reduced_values_is_reduced():
    same(
        [
            lambda s: s.jaxpr(
                lambda x, y: s.lax.pad(s.jax.reshard(x, s.P(reduced={"x"})), y, [(0, 1, 0), (0, 0, 0)]),
                s.replicated,
                1.0,
            ),
            lambda s: s.jaxpr(
                lambda x, y: s.lax.pad(s.jax.reshard(x, s.P("y", reduced={"x"})), y, [(1, 1, 0), (0, 0, 0)]),
                s.replicated,
                1.0,
            ),
        ],
        set_mesh="explicit_mesh",
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
