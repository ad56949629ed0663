"""Unreduced values, of which each device holds a partial sum, and reduced values, outside of `shard_map`.

The same inside `shard_map` is in `test_regions`.
"""

from functools import partial

import compare
import numpy as np
import pytest
from mesh_language import numbers, same, same_errors, side

pytestmark = pytest.mark.oracle


def sharded(shape, *entries, **axes):
    return lambda s: s.jax.reshard(s.jnp.asarray(numbers(*shape)), s.P(*entries, **axes))


def shards(s):
    """Returns a function: the sharding and shards of what a compiled and an eager call return."""

    def of(x):
        return str(x.sharding), [s.np.asarray(shard.data).tolist() for shard in x.addressable_shards]

    return lambda f, *xs: s.jax.tree.map(of, [s.jax.jit(f)(*xs), f(*xs)])


def made(shape, *spec, dtype=np.float32):
    return lambda s: s.shard(numbers(*shape, dtype=dtype), *spec, mesh=s.explicit_mesh)


GIVEN = {
    "unreduced": sharded((8, 4), unreduced={"x"}),
    "unreduced_over_y": sharded((8, 4), "x", unreduced={"y"}),
    "reduced": sharded((8, 4), reduced={"x"}),
    "reduced_over_y": sharded((8, 4), "x", reduced={"y"}),
    "weights": sharded((4, 8), "y"),
    "shards": shards,
    "run_replicated": lambda s: lambda f, *xs: s.jax.tree.map(lambda y: s.jax.reshard(y, s.P()), s.jax.jit(f)(*xs)),
}


def test_arrays_are_resharded_to_unreduced_and_back():
    same(
        [
            lambda s: [s.jax.typeof(a) for a in (s.unreduced, s.unreduced_over_y, s.reduced, s.reduced_over_y)],
            lambda s: [
                repr(s.unreduced),
                str(s.unreduced_over_y),
                f"{s.unreduced}",
                s.unreduced.is_fully_replicated,
                s.reduced.is_fully_replicated,
                s.reduced,
            ],
            lambda s: s.shards(lambda a: s.jax.reshard(a, s.P(unreduced={"x"})), s.replicated),
            lambda s: s.run_replicated(lambda a: s.jax.reshard(a, s.P(unreduced={"x", "y"})), s.sharded_rows),
            lambda s: s.shards(lambda a: s.jax.reshard(a, s.P("y", unreduced={"x"})), s.replicated),
            lambda s: s.shards(lambda a: s.jax.reshard(a, s.P()), s.unreduced),
            lambda s: s.shards(lambda a: s.jax.reshard(a, s.P("x", "y")), s.unreduced_over_y),
            lambda s: s.shards(lambda a: s.jax.reshard(a, s.P(reduced={"x"})), s.unreduced),
            lambda s: s.unwrapped_jaxpr(
                lambda a: s.jax.reshard(s.jax.reshard(a, s.P(unreduced={"y"})), s.P()), s.replicated
            ),
            lambda s: s.text(lambda a: s.jax.reshard(a + a, s.P()), s.unreduced),
            lambda s: s.jax.device_put(s.replicated, s.P(unreduced={"y"})).addressable_shards[1].data,
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )


def test_operations_on_unreduced_values():
    same(
        [
            lambda s: s.shards(lambda a: a + a, s.unreduced),
            lambda s: s.shards(lambda a, b: a * b, s.unreduced, s.reduced),
            lambda s: s.shards(lambda a: a.T, s.unreduced_over_y),
            lambda s: s.shards(lambda a: a.reshape(4, 2, 4), s.unreduced_over_y),
            lambda s: s.shards(lambda a: s.lax.reduce_sum(a, (0,)), s.unreduced),
            lambda s: s.shards(lambda a: s.jnp.concatenate([a, a], 1), s.unreduced_over_y),
            lambda s: s.shards(lambda a: s.jnp.split(a, 2, 1), s.unreduced),
            lambda s: s.run_replicated(lambda a: s.lax.slice(a, (0, 0), (4, 4)), s.unreduced),
            lambda s: s.shards(lambda a: s.lax.select(True, a, a), s.unreduced),
            lambda s: s.shards(lambda a: s.jnp.broadcast_to(a, (2, 8, 4)), s.unreduced),
            lambda s: s.shards(lambda a: s.lax.cond(True, lambda b: b + b, lambda b: b, a), s.unreduced),
            lambda s: s.shards(lambda a: s.lax.fori_loop(0, 2, lambda i, b: b + b, a), s.unreduced),
            lambda s: s.shards(
                lambda a, b: s.jnp.matmul(a, b, out_sharding=s.P(None, None, unreduced={"y"})),
                s.sharded_columns,
                s.weights,
            ),
            lambda s: s.shards(
                lambda a: s.lax.reduce_sum(a, (0,), out_sharding=s.P(None, unreduced={"x"})), s.sharded_rows
            ),
            lambda s: s.unwrapped_jaxpr(
                lambda a: s.lax.reduce_sum(a, (0,), out_sharding=s.P(None, unreduced={"x"})), s.sharded_rows
            ),
            lambda s: s.unwrapped_jaxpr(
                lambda a: s.lax.reshape(a, (4, 8), out_sharding=s.P(None, unreduced={"x"})), s.unreduced
            ),
            lambda s: s.shards(lambda a: s.jnp.sin(a) * 2 + 1, s.reduced_over_y),
            lambda s: s.unwrapped_jaxpr(lambda a: s.jnp.sin(a) * 2 + 1, s.reduced),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )


def test_cotangents_of_reduced_values_are_unreduced_and_the_other_way_round():
    same(
        [
            lambda s: s.unwrapped_jaxpr(s.jax.grad(lambda a: (s.jnp.sin(a) * a + 1).sum()), s.reduced),
            lambda s: s.unwrapped_jaxpr(s.jax.grad(lambda a: s.jax.reshard(a, s.P("x")).sum()), s.reduced),
            lambda s: s.unwrapped_jaxpr(s.jax.grad(lambda a: s.jax.reshard(a, s.P()).sum()), s.unreduced),
            lambda s: s.unwrapped_jaxpr(s.jax.grad(lambda a: s.jnp.concatenate([a, a]).sum()), s.reduced),
            lambda s: s.unwrapped_jaxpr(s.jax.grad(lambda a: a.reshape(4, 8).sum()), s.reduced),
            lambda s: s.unwrapped_jaxpr(s.jax.grad(lambda a: s.lax.dynamic_slice(a, (1, 0), (2, 2)).sum()), s.reduced),
            lambda s: s.unwrapped_jaxpr(s.jax.grad(lambda a: s.jax.checkpoint(s.jnp.sin)(a).sum()), s.reduced),
            lambda s: s.unwrapped_jaxpr(
                s.jax.grad(lambda a, b: (a @ b).sum(), (0, 1)),
                s.reduced,
                s.jax.reshard(np.ones((4, 8), np.float32), s.P(None, "x")),
            ),
            lambda s: s.unwrapped_jaxpr(
                s.jax.grad(lambda a: s.lax.broadcast_in_dim(a, (4, 8, 4), (1, 2), out_sharding=s.P("x")).sum()),
                s.reduced,
            ),
            lambda s: s.unwrapped_jaxpr(s.jax.vjp(lambda a: s.jax.jit(s.jnp.sin)(a), s.reduced)[1], s.unreduced),
            lambda s: s.run_replicated(s.jax.grad(lambda a: s.jax.reshard(a * 2, s.P("x")).sum()), s.reduced),
            lambda s: s.run_replicated(
                s.jax.grad(lambda a: (s.jax.reshard(a, s.P("x")) * s.replicated).sum()), s.reduced
            ),
            lambda s: s.run_replicated(
                s.jax.grad(
                    lambda a, b: s.jax.reshard(
                        s.jnp.matmul(a, b, out_sharding=s.P(None, None, unreduced={"y"})), s.P()
                    ).sum(),
                    (0, 1),
                ),
                s.sharded_columns,
                s.weights,
            ),
            lambda s: s.run_replicated(s.jax.grad(lambda a: s.jax.checkpoint(lambda b: b)(a).sum()), s.reduced),
            lambda s: s.run_replicated(s.jax.grad(lambda a: s.jnp.where(True, a, a * a).sum()), s.reduced),
            lambda s: s.unwrapped_jaxpr(
                s.jax.grad(
                    lambda a: s.lax.scan(
                        lambda c, b: (c + b, c * b), s.jax.reshard(s.jnp.zeros(4), s.P(reduced={"x"})), a
                    )[1].sum()
                ),
                s.reduced,
            ),
            lambda s: s.run_replicated(
                s.jax.grad(lambda a: a.at[np.array([1, 0, 1, 2])].get(out_sharding=s.P("x")).sum()), s.reduced
            ),
            lambda s: s.run_replicated(lambda a, b: s.jax.vjp(lambda c: c + c, a)[1](b)[0], s.reduced, s.unreduced),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )


def test_implicit_sums_over_devices_are_refused():
    same_errors(
        [
            (lambda s: s.unreduced * 2, "RHS should be reduced along the same axes LHS is unreduced on"),
            (lambda s: s.unreduced + 1, "lhs is unreduced while rhs is not"),
            (lambda s: s.unreduced + s.unreduced_over_y, "must be unreduced along the same mesh axes"),
            (lambda s: s.unreduced * s.unreduced, "cannot be unreduced"),
            (lambda s: s.jnp.sin(s.unreduced), "unreduced rule"),
            (lambda s: s.reduced + s.replicated, "Inputs cannot be replicated on the same axes"),
            (lambda s: s.reduced * s.sharded_rows, "Inputs cannot be sharded/varying on the same axes"),
            (lambda s: s.unreduced @ s.replicated.T, "lhs or rhs passed to dot_general cannot be unreduced"),
            (
                lambda s: s.jnp.reshape(s.replicated, (4, 8), out_sharding=s.P(unreduced={"x"})),
                "cannot contain unreduced",
            ),
            (
                lambda s: s.jnp.reshape(s.unreduced, (4, 8), out_sharding=s.P("x")),
                "must be unreduced over the same mesh axes as operand",
            ),
            (
                lambda s: s.lax.reduce_sum(s.replicated, (0,), out_sharding=s.P(None, unreduced={"x"})),
                "unreduced axes should be in operand's specs",
            ),
            (
                lambda s: s.jnp.matmul(s.sharded_columns, s.weights, out_sharding=s.P(None, None, unreduced={"x"})),
                "should be equal to the contracting specs",
            ),
            (
                lambda s: s.jnp.matmul(
                    s.sharded_columns,
                    s.weights + 0 * s.jax.reshard(s.weights, s.P()),
                    out_sharding=s.P(None, None, unreduced={"x"}),
                ),
                "contracting specs",
            ),
            (
                lambda s: s.jnp.matmul(
                    s.sharded_columns, s.jax.reshard(s.weights, s.P()), out_sharding=s.P(None, None, unreduced={"y"})
                ),
                "sharded identically",
            ),
            (lambda s: s.jax.vjp(lambda b: b + b, s.reduced)[1](s.reduced), "expected float32[8,4]{U:x}"),
            (lambda s: np.asarray(s.unreduced), ""),
            (lambda s: s.unreduced.tolist(), ""),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )


def test_donated_arguments_may_be_sharded_over_explicit_axes():
    same(
        [
            lambda s: s.jax.jit(lambda a: a + 1, donate_argnums=0)(s.jax.reshard(numbers(4, 4), s.P("x"))),
            lambda s: s.jax.jit(lambda a: a.sum(0), donate_argnums=0)(s.jax.reshard(numbers(4, 4), s.P("x", "y"))),
        ],
        set_mesh="explicit_mesh",
    )


def row(shape, *entries, **axes):
    return lambda s: s.jax.reshard(s.jnp.ones(shape, s.jnp.float32), s.P(*entries, **axes))


# Operations on a value `a` whose type has {R:x} or {U:x}. In other operations jax fails where it iterates over the
# spec: `gather`, `scatter`, `sort`, `reshape` without a request, most reductions.
OPERATIONS = [
    lambda s, a: s.lax.abs(a),
    lambda s, a: s.lax.neg(a),
    lambda s, a: s.lax.sin(a),
    lambda s, a: s.lax.sign(a),
    lambda s, a: s.lax.exp(a),
    lambda s, a: s.lax.is_finite(a),
    lambda s, a: s.lax.convert_element_type(a, s.jnp.bfloat16),
    lambda s, a: s.lax.bitcast_convert_type(a, s.jnp.int32),
    lambda s, a: s.lax.integer_pow(a, 2),
    lambda s, a: s.lax.reduce_precision(a, 5, 10),
    lambda s, a: s.lax.complex(a, a),
    lambda s, a: s.lax.real(s.lax.convert_element_type(a, s.jnp.complex64)),
    lambda s, a: s.lax.conj(a),
    lambda s, a: s.lax.add(a, a),
    lambda s, a: s.lax.sub(a, a),
    lambda s, a: s.lax.mul(a, a),
    lambda s, a: s.lax.div(a, a),
    lambda s, a: s.lax.rem(a, a),
    lambda s, a: s.lax.max(a, a),
    lambda s, a: s.lax.pow(a, a),
    lambda s, a: s.lax.pow(a, 2),
    lambda s, a: s.lax.atan2(a, a),
    lambda s, a: s.lax.eq(a, a),
    lambda s, a: s.lax.clamp(a, a, a),
    lambda s, a: s.lax.clamp(0.0, a, 1.0),
    lambda s, a: s.lax.select(True, a, a),
    lambda s, a: s.lax.select(a > 0, a, a),
    lambda s, a: s.lax.broadcast_in_dim(a, (2, 8, 8), (1, 2)),
    lambda s, a: s.lax.expand_dims(a, (0,)),
    lambda s, a: s.lax.squeeze(s.lax.expand_dims(a, (0,)), (0,)),
    lambda s, a: s.lax.transpose(a, (1, 0)),
    lambda s, a: s.lax.rev(a, (0,)),
    lambda s, a: s.lax.pad(a, 0.0, [(1, 1, 0), (0, 0, 0)]),
    lambda s, a: s.lax.concatenate([a, a], 0),
    lambda s, a: s.lax.split(a, (4, 4), 0),
    lambda s, a: s.lax.slice(a, (0, 0), (4, 8)),
    lambda s, a: s.lax.dynamic_slice(a, (0, 0), (4, 8)),
    lambda s, a: s.lax.dynamic_update_slice(a, a, (0, 0)),
    lambda s, a: s.lax.reduce_sum(a, (0,)),
    lambda s, a: s.lax.reduce_window(a, 0.0, s.lax.add, (2, 2), (1, 1), "SAME"),
    lambda s, a: s.lax.dot_general(a, a, (((1,), (0,)), ((), ()))),
    lambda s, a: s.lax.fft(s.lax.convert_element_type(a, s.jnp.complex64), "fft", (8,)),
    lambda s, a: s.lax.igamma(a, a),
    lambda s, a: s.lax.erf_inv(a),
    lambda s, a: s.lax.square(a),
    lambda s, a: s.lax.stop_gradient(a),
    lambda s, a: s.lax.optimization_barrier(a),
    lambda s, a: s.lax.rng_uniform(s.jnp.sum(a), s.jnp.sum(a), (4,)),
    lambda s, a: s.lax.map(lambda x: x + x, a),
    lambda s, a: s.lax.scan(lambda c, x: (c + x, x), s.lax.reduce_sum(a, (0,)), a),
    lambda s, a: s.lax.fori_loop(0, 2, lambda i, x: x + x, a),
    lambda s, a: s.lax.cond(True, lambda x: x, lambda x: x + x, a),
    lambda s, a: s.lax.full_like(a, 1.0),
    lambda s, a: s.jax.jit(lambda x: x + x)(a),
    lambda s, a: s.jax.checkpoint(lambda x: x + x)(a),
    lambda s, a: s.jnp.mean(a),
    lambda s, a: s.jnp.stack([a, a]),
    lambda s, a: s.jax.device_put(a, s.P()),
]


@pytest.mark.parametrize("kind", ["reduced", "unreduced"])
def test_every_operation_takes_or_refuses_reduced_and_unreduced_values_as_in_jax(kind):
    """The type of the result, or the error's class, with the operation that has no rule."""

    def taken(program, s):
        a = row((8, 8), **{kind: {"x"}})(s)
        got = compare.outcome(lambda: str(s.jax.make_jaxpr(lambda a: program(s, a))(a).out_avals))
        refused = str(got.error)[: str(got.error).find(" is not implemented")]
        return got.value or (type(got.error).__name__, refused if "rule for" in refused else "")

    same([partial(taken, program) for program in OPERATIONS], set_mesh="explicit_mesh")


def test_complex_unreduced_values_are_refused_where_xla_would_end_the_process():
    s = side("minijax")
    x = s.jnp.ones((8, 4), s.jnp.complex64)
    parts = s.P(unreduced={"x"})
    with s.jax.set_mesh(s.explicit_mesh):
        x = s.jax.reshard(x, s.P())
        for call in (s.jax.reshard, s.jax.device_put, lambda y, spec: s.jax.jit(lambda z: s.jax.reshard(z, spec))(y)):
            with pytest.raises(NotImplementedError, match="complex values unreduced"):
                call(x, parts)
        total = s.lax.reduce_sum(s.jax.reshard(x, s.P("x")), axes=(0,), out_sharding=s.P(None, unreduced={"x"}))
        assert s.jax.reshard(total, s.P()).tolist() == [8] * 4


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
