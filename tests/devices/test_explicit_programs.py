"""What random programs over Explicit axes have shown: one case for each way in which they once differed from jax."""

import numpy as np
import pytest
from mesh_language import numbers, same, same_errors

pytestmark = pytest.mark.oracle


def made(shape, *spec, dtype=np.float32):
    return lambda s: s.put(numbers(*shape, dtype=dtype), *spec, mesh=s.explicit)


GIVEN = {
    "e": made((8, 4), "x", "y"),
    "r": made((8, 4), "x"),
    "c": made((8, 4), None, "y"),
    "o": made((8, 4)),
    "one": made((8, 1), "x"),
    "b": made((8, 4, 4), "x"),
    "t": made((8, 4, 4), None, "y"),
    "w": made((8, 4, 4)),
    "s": made(()),
    "v": made((8,), "x", dtype=np.uint8),
}


def test_sums_that_undo_a_broadcast_lie_as_what_was_broadcast():
    same(
        """
        run(jax.grad(lambda x: jnp.broadcast_to(x, (2, 8, 4)).sum()), r)
        run(jax.grad(lambda x: lax.broadcast_in_dim(x, (8, 4), (0, 1)).sum()), one)
        run(jax.grad(lambda x: lax.broadcast_in_dim(x, (8, 4, 2), (0, 1), out_sharding=P('x', 'y')).sum()), r)
        types(jax.grad(lambda x: lax.reduce_sum(x, (1,), out_sharding=P('x')).sum()), o)
        types(jax.vmap(jax.grad(lambda x: jnp.broadcast_to(x, (2, 4, 4)).sum())), b)
        types(jax.grad(lambda x: (x * r).sum()), o)
        types(jax.grad(lambda x: (x + r).sum()), o)
        """,
        setting="explicit",
        **GIVEN,
    )


def test_what_is_broadcast_lies_as_requested_at_once():
    same(
        """
        run(lambda x: jnp.broadcast_to(x, (2,), out_sharding=P('y')), s)
        run(lambda x: jnp.broadcast_to(x, (2, 8, 4), out_sharding=P(None, 'x', 'y')), r)
        run(lambda x: jnp.broadcast_to(x, (8, 4), out_sharding=P('x', 'y')), r)
        types(lambda x: jax.vjp(lambda y: lax.cond(True, jnp.sin, lambda z: z, y), x)[1](x), r)
        """,
        setting="explicit",
        **GIVEN,
    )


def test_specs_may_have_more_entries_than_axes_that_say_nothing():
    same(
        """
        [jnp.arange(8, out_sharding=P('x', None)), jnp.zeros(8, out_sharding=P('x', None))]
        run(lambda x: jnp.reshape(x, 32, out_sharding=P('x', None)), r)
        run(lambda x: jax.reshard(x, P(None, 'x', None)), r)
        types(lambda x: jnp.dot(x, x.T, out_sharding=P('x', None, None)), r)
        """,
        setting="explicit",
        **GIVEN,
    )
    same_errors(
        [
            ("jax.reshard(jnp.ones((6, 4)), P('x'))", "evenly divide"),
            ("jax.reshard(jnp.ones((8, 8)), P('x', 'x'))", "duplicate entries"),
        ],
        setting="explicit",
    )


def test_values_are_placed_over_explicit_axes():
    same(
        """
        run(lambda x: jax.device_put(x, P(None, 'x')), r)
        run(lambda x: jax.device_put(x, P(None, None)), r)
        run(lambda x: jax.device_put(x, jax.devices()[0]) if False else jax.device_put(x), r)
        run(jax.grad(lambda x: jax.device_put(x, P(None, 'x')).sum()), r)
        """,
        setting="explicit",
        **GIVEN,
    )


def test_slices_are_mapped_a_few_at_once():
    same(
        """
        jaxpr(lambda x: lax.map(lambda a: a * 2, x, batch_size=2), c)
        jaxpr(lambda x: lax.map(lambda a: a * 2, x, batch_size=3), c)
        jaxpr(jax.vmap(lambda x: lax.map(lambda a: a * 2, x, batch_size=2)), r)
        """,
        setting="explicit",
        **GIVEN,
    )
    refused = [(f"lax.map(lambda a: a * 2, r, batch_size={n})", "0th dimension") for n in (2, 3)]
    same_errors(refused, setting="explicit", **GIVEN)


def test_values_that_indexes_update_lie_as_what_they_update():
    same(
        """
        jaxpr(lambda x: x.at[0].set(1.0), c)
        jaxpr(lambda x: x.at[:2].add(1.0), c)
        jaxpr(lambda x: x.at[::2].set(1.0), c)
        jaxpr(lambda x: x.at[jnp.array([1, 2])].set(jnp.ones(4)), c)
        jaxpr(lambda x: x.at[0, :, jnp.array([1, 2])].set(1.0), t)
        jaxpr(lambda x: x.at[None, jnp.array([1, 2])].set(1.0), t)
        jaxpr(lambda x: x.at[..., 1:3].add(1.0), t)
        jaxpr(jax.vmap(lambda x: x.at[0].add(1.0)), b)
        jaxpr(lambda x: x.at[0].add(2, out_sharding=P('x')), v)
        """,
        setting="explicit",
        **GIVEN,
    )


def test_arrays_of_one_value_lie_as_those_beside_them():
    same(
        """
        jaxpr(jnp.triu, r)
        jaxpr(jnp.tril, b)
        jaxpr(jnp.angle, r)
        jaxpr(jax.grad(lambda x, y: (x**y).sum()), r, r)
        jaxpr(jax.grad(lambda x: jnp.logaddexp(x, 0.0).sum()), r)
        types(jax.grad(lambda x: jax.nn.softplus(x).sum()), e)
        types(jax.jacfwd(lambda x: x.sum()), r)
        types(jax.jacrev(lambda x: x.sum(0)), r)
        types(jax.hessian(lambda x: (x**2).sum()), r)
        """,
        setting="explicit",
        **GIVEN,
    )


def test_products_over_batches_of_which_one_lies_nowhere():
    product = "lambda x, y: lax.dot_general(x, y, (((1,), (1,)), ((0,), (0,))))"
    same(f"run({product}, b, w)\nrun({product}, w, b)", setting="explicit", **GIVEN)


def test_reduced_values():
    same(
        """
        jaxpr(lambda x: lax.reduce_sum(jax.reshard(x, P(None, 'y', reduced={'x'})), (1,), out_sharding=P(None)), c)
        jaxpr(lambda k: jax.vjp(lambda i: jax.reshard(i, P(reduced={'x'})), k)[0], np.arange(4))
        """,
        setting="explicit",
        **GIVEN,
    )
    refused = "unreduced rule for complex"
    unreduced = "jax.jit(lambda x: lax.complex(x, x))(jax.reshard(o, P(unreduced={'x'})))"
    same_errors([(unreduced, refused)], setting="explicit", **GIVEN)


def test_cotangents_are_added_up_over_the_mesh_that_they_lie_over():
    same(
        """
        types(jax.grad(lambda x: (x * x.at[0].multiply(2.0, out_sharding=P(None, 'y'))).sum()), c)
        types(jax.grad(lambda x: x.at[0].set(2.0, out_sharding=P(None, 'y')).sum() + x.sum()), r)
        types(jax.grad(lambda x: (jax.sharding.auto_axes(lambda y: y * y, out_sharding=P('x'))(x) + x).sum()), r)
        """,
        setting="explicit",
        **GIVEN,
    )


def test_reshapes_whose_cotangents_are_split():
    same(
        """
        types(jax.grad(lambda x: jnp.reshape(x, (8, 2, 2), out_sharding=P('x', 'y')).sum()), r)
        types(jax.grad(lambda x: (jnp.reshape(x, (8, 1, 4), out_sharding=P(None, None, 'y')) * 2).sum()), o)
        jaxpr(jax.grad(lambda x: jnp.reshape(x, (8, 1, 4), out_sharding=P(None, None, 'y')).sum()), c)
        """,
        setting="explicit",
        **GIVEN,
    )


def test_padding_of_reduced_values_is_reduced():
    traced = "jaxpr(lambda x, y: lax.pad({x}, y, [(0, 1, 0), (0, 0, 0)]), o, 1.0)"
    same(traced.format(x="jax.reshard(x, P(reduced={'x'}))"), setting="explicit", **GIVEN)
    same(
        traced.format(x="jax.reshard(x, P('y', reduced={'x'}))").replace("(0, 1", "(1, 1"), setting="explicit", **GIVEN
    )


def over_mixed_axes(s):
    """What a function of an array over three axes gives, of which one is left to XLA."""
    kinds = (s.AxisType.Explicit, s.AxisType.Auto, s.AxisType.Explicit)
    mesh = s.jax.make_mesh((2, 2, 2), ("x", "y", "z"), kinds, devices=s.d)

    def run(f):
        with s.jax.set_mesh(mesh):
            x = s.put(numbers(2, 4, 2), "z", "y", "x", mesh=mesh)
            return s.jax.jit(f)(x)

    return run


def test_what_no_constraint_says_lies_as_xla_leaves_it():
    gathered = (
        "lambda x: jax.shard_map(lambda y: lax.all_gather(y, 'x', tiled=True), in_specs=P('x'), out_specs=P('x'))(x)"
    )
    same(
        f"""
        run(lambda x: (lambda y: [y, ({gathered})(y)])(jnp.fft.fft2(x)))
        run(jnp.fft.fft2)
        run(lambda x: jnp.fft.fft(x, axis=1))
        run(lambda x: x * 2)
        run({gathered})
        """,
        run=over_mixed_axes,
    )


def test_specs_that_do_not_fit_what_they_are_for():
    same_errors(
        [
            ("jnp.broadcast_to(r, (2, 8, 4), out_sharding=P(None, None, 'y'))", "Incompatible types for broadcasting"),
            ("jnp.broadcast_to(r, (8, 4), out_sharding=P(None, None))", "requested type=float32[8,4]"),
            ("jnp.broadcast_to(r, (8, 4), out_sharding=P(('x', 'y'), None))", "input type=float32[8@x,4]"),
            ("lax.with_sharding_constraint(r, P('x', None, None))", "One of with_sharding_constraint arguments is"),
            (
                "jax.jit(lambda x: lax.with_sharding_constraint(x, P(None, None, None)))(o)",
                "incompatible with its shar",
            ),
        ],
        setting="explicit",
        **GIVEN,
    )
