"""Values that devices hold in parts of a sum (unreduced), and values whose cotangents are such (reduced), against jax."""

import compare
import pytest
from mesh_language import numbers, same, same_errors, side

pytestmark = pytest.mark.oracle


def sharded(shape, *entries, **axes):
    return lambda s: s.jax.reshard(s.jnp.asarray(numbers(*shape)), s.P(*entries, **axes))


def parts(s):
    """What each device holds, and how the array lies."""

    def of(x):
        return str(x.sharding), [s.np.asarray(shard.data).tolist() for shard in x.addressable_shards]

    return lambda f, *xs: s.jax.tree.map(of, [s.jax.jit(f)(*xs), f(*xs)])


GIVEN = {
    "u": sharded((8, 4), unreduced={"x"}),
    "uy": sharded((8, 4), "x", unreduced={"y"}),
    "r": sharded((8, 4), reduced={"x"}),
    "ry": sharded((8, 4), "x", reduced={"y"}),
    "n": sharded((8, 4)),
    "x": sharded((8, 4), "x"),
    "k": sharded((8, 4), None, "y"),
    "w": sharded((4, 8), "y"),
    "parts": parts,
    "traced": lambda s: lambda f, *xs: compare._unwrapped(s.jaxpr(f, *xs)),
    "whole": lambda s: lambda f, *xs: s.jax.tree.map(lambda y: s.jax.reshard(y, s.P()), s.jax.jit(f)(*xs)),
}


def given(*names):
    """The values that a test reads, and the functions that look at them."""
    return {name: GIVEN[name] for name in (*names, "parts", "traced", "whole")}


def test_arrays_are_resharded_to_parts_of_a_sum_and_back():
    same(
        """
        [jax.typeof(a) for a in (u, uy, r, ry)]
        [repr(u), str(uy), f'{u}', u.is_fully_replicated, r.is_fully_replicated, r]
        parts(lambda a: jax.reshard(a, P(unreduced={'x'})), n)
        whole(lambda a: jax.reshard(a, P(unreduced={'x', 'y'})), x)
        parts(lambda a: jax.reshard(a, P('y', unreduced={'x'})), n)
        parts(lambda a: jax.reshard(a, P()), u)
        parts(lambda a: jax.reshard(a, P('x', 'y')), uy)
        parts(lambda a: jax.reshard(a, P(reduced={'x'})), u)
        traced(lambda a: jax.reshard(jax.reshard(a, P(unreduced={'y'})), P()), n)
        text(lambda a: jax.reshard(a + a, P()), u)
        jax.device_put(n, P(unreduced={'y'})).addressable_shards[1].data
        """,
        setting="explicit",
        **given("u", "uy", "r", "ry", "n", "x"),
    )


def test_operations_on_parts():
    same(
        """
        parts(lambda a: a + a, u)
        parts(lambda a, b: a * b, u, r)
        parts(lambda a: a.T, uy)
        parts(lambda a: a.reshape(4, 2, 4), uy)
        parts(lambda a: lax.reduce_sum(a, (0,)), u)
        parts(lambda a: jnp.concatenate([a, a], 1), uy)
        parts(lambda a: jnp.split(a, 2, 1), u)
        whole(lambda a: lax.slice(a, (0, 0), (4, 4)), u)
        parts(lambda a: lax.select(True, a, a), u)
        parts(lambda a: jnp.broadcast_to(a, (2, 8, 4)), u)
        parts(lambda a: lax.cond(True, lambda b: b + b, lambda b: b, a), u)
        parts(lambda a: lax.fori_loop(0, 2, lambda i, b: b + b, a), u)
        parts(lambda a, b: jnp.matmul(a, b, out_sharding=P(None, None, unreduced={'y'})), k, w)
        parts(lambda a: lax.reduce_sum(a, (0,), out_sharding=P(None, unreduced={'x'})), x)
        traced(lambda a: lax.reduce_sum(a, (0,), out_sharding=P(None, unreduced={'x'})), x)
        traced(lambda a: lax.reshape(a, (4, 8), out_sharding=P(None, unreduced={'x'})), u)
        parts(lambda a: jnp.sin(a) * 2 + 1, ry)
        traced(lambda a: jnp.sin(a) * 2 + 1, r)
        """,
        setting="explicit",
        **given("u", "uy", "r", "ry", "x", "k", "w"),
    )


def test_cotangents_of_reduced_values_are_unreduced_and_the_other_way_round():
    same(
        """
        traced(jax.grad(lambda a: (jnp.sin(a) * a + 1).sum()), r)
        traced(jax.grad(lambda a: jax.reshard(a, P('x')).sum()), r)
        traced(jax.grad(lambda a: jax.reshard(a, P()).sum()), u)
        traced(jax.grad(lambda a: jnp.concatenate([a, a]).sum()), r)
        traced(jax.grad(lambda a: a.reshape(4, 8).sum()), r)
        traced(jax.grad(lambda a: lax.dynamic_slice(a, (1, 0), (2, 2)).sum()), r)
        traced(jax.grad(lambda a: jax.checkpoint(jnp.sin)(a).sum()), r)
        traced(jax.grad(lambda a, b: (a @ b).sum(), (0, 1)), r, jax.reshard(np.ones((4, 8), np.float32), P(None, 'x')))
        traced(jax.grad(lambda a: lax.broadcast_in_dim(a, (4, 8, 4), (1, 2), out_sharding=P('x')).sum()), r)
        traced(jax.vjp(lambda a: jax.jit(jnp.sin)(a), r)[1], u)
        whole(jax.grad(lambda a: jax.reshard(a * 2, P('x')).sum()), r)
        whole(jax.grad(lambda a: (jax.reshard(a, P('x')) * n).sum()), r)
        whole(jax.grad(lambda a, b: jax.reshard(jnp.matmul(a, b, out_sharding=P(None, None, unreduced={'y'})), P()).sum(), (0, 1)), k, w)
        whole(jax.grad(lambda a: jax.checkpoint(lambda b: b)(a).sum()), r)
        whole(jax.grad(lambda a: jnp.where(True, a, a * a).sum()), r)
        traced(jax.grad(lambda a: lax.scan(lambda c, b: (c + b, c * b), jax.reshard(jnp.zeros(4), P(reduced={'x'})), a)[1].sum()), r)
        whole(jax.grad(lambda a: a.at[np.array([1, 0, 1, 2])].get(out_sharding=P('x')).sum()), r)
        whole(lambda a, b: jax.vjp(lambda c: c + c, a)[1](b)[0], r, u)
        """,
        setting="explicit",
        **given("u", "r", "n", "k", "w"),
    )


def test_what_would_imply_a_sum_over_devices_is_refused():
    same_errors(
        [
            ("u * 2", "RHS should be reduced along the same axes LHS is unreduced on"),
            ("u + 1", "lhs is unreduced while rhs is not"),
            ("u + uy", "must be unreduced along the same mesh axes"),
            ("u * u", "cannot be unreduced"),
            ("jnp.sin(u)", "unreduced rule"),
            ("r + n", "Inputs cannot be replicated on the same axes"),
            ("r * x", "Inputs cannot be sharded/varying on the same axes"),
            ("u @ n.T", "lhs or rhs passed to dot_general cannot be unreduced"),
            ("jnp.reshape(n, (4, 8), out_sharding=P(unreduced={'x'}))", "cannot contain unreduced"),
            ("jnp.reshape(u, (4, 8), out_sharding=P('x'))", "must be unreduced over the same mesh axes as operand"),
            ("lax.reduce_sum(n, (0,), out_sharding=P(None, unreduced={'x'}))", "unreduced axes should be in operand's specs"),
            ("jnp.matmul(k, w, out_sharding=P(None, None, unreduced={'x'}))", "should be equal to the contracting specs"),
            ("jnp.matmul(k, w + 0 * jax.reshard(w, P()), out_sharding=P(None, None, unreduced={'x'}))", "contracting specs"),
            ("jnp.matmul(k, jax.reshard(w, P()), out_sharding=P(None, None, unreduced={'y'}))", "sharded identically"),
            ("jax.vjp(lambda b: b + b, r)[1](r)", "expected float32[8,4]{U:x}"),
            ("np.asarray(u)", ""),
            ("u.tolist()", ""),
        ],
        setting="explicit",
        **given("u", "uy", "r", "n", "x", "k", "w"),
    )  # fmt: skip


def test_donated_arguments_may_lie_over_explicit_axes():
    same(
        """
        jax.jit(lambda a: a + 1, donate_argnums=0)(jax.reshard(numbers(4, 4), P('x')))
        jax.jit(lambda a: a.sum(0), donate_argnums=0)(jax.reshard(numbers(4, 4), P('x', 'y')))
        """,
        setting="explicit",
    )


def row(shape, *entries, **axes):
    return lambda s: s.jax.reshard(s.jnp.ones(shape, s.jnp.float32), s.P(*entries, **axes))


# What takes a value whose type says {R:x} or {U:x}, `a`. The oracle fails in other operations where it iterates over
# the spec: `gather`, `scatter`, `sort`, `reshape` without a request, most reductions.
OF_SUMS = """
lax.abs(a)
lax.neg(a)
lax.sin(a)
lax.sign(a)
lax.exp(a)
lax.is_finite(a)
lax.convert_element_type(a, jnp.bfloat16)
lax.bitcast_convert_type(a, jnp.int32)
lax.integer_pow(a, 2)
lax.reduce_precision(a, 5, 10)
lax.complex(a, a)
lax.real(lax.convert_element_type(a, jnp.complex64))
lax.conj(a)
lax.add(a, a)
lax.sub(a, a)
lax.mul(a, a)
lax.div(a, a)
lax.rem(a, a)
lax.max(a, a)
lax.pow(a, a)
lax.pow(a, 2)
lax.atan2(a, a)
lax.eq(a, a)
lax.clamp(a, a, a)
lax.clamp(0.0, a, 1.0)
lax.select(True, a, a)
lax.select(a > 0, a, a)
lax.broadcast_in_dim(a, (2, 8, 8), (1, 2))
lax.expand_dims(a, (0,))
lax.squeeze(lax.expand_dims(a, (0,)), (0,))
lax.transpose(a, (1, 0))
lax.rev(a, (0,))
lax.pad(a, 0.0, [(1, 1, 0), (0, 0, 0)])
lax.concatenate([a, a], 0)
lax.split(a, (4, 4), 0)
lax.slice(a, (0, 0), (4, 8))
lax.dynamic_slice(a, (0, 0), (4, 8))
lax.dynamic_update_slice(a, a, (0, 0))
lax.reduce_sum(a, (0,))
lax.reduce_window(a, 0.0, lax.add, (2, 2), (1, 1), 'SAME')
lax.dot_general(a, a, (((1,), (0,)), ((), ())))
lax.fft(lax.convert_element_type(a, jnp.complex64), 'fft', (8,))
lax.igamma(a, a)
lax.erf_inv(a)
lax.square(a)
lax.stop_gradient(a)
lax.optimization_barrier(a)
lax.rng_uniform(jnp.sum(a), jnp.sum(a), (4,))
lax.map(lambda x: x + x, a)
lax.scan(lambda c, x: (c + x, x), lax.reduce_sum(a, (0,)), a)
lax.fori_loop(0, 2, lambda i, x: x + x, a)
lax.cond(True, lambda x: x, lambda x: x + x, a)
lax.full_like(a, 1.0)
jax.jit(lambda x: x + x)(a)
jax.checkpoint(lambda x: x + x)(a)
jnp.mean(a)
jnp.stack([a, a])
jax.device_put(a, P())
"""


@pytest.mark.parametrize("kind", ["reduced", "unreduced"])
def test_every_operation_takes_or_refuses_values_of_sums_as_in_jax(kind):
    """The type of the result, or the error's class, with the operation that has no rule."""

    def taken(s):
        def of(function):
            got = compare.outcome(lambda: str(s.jax.make_jaxpr(function)(a).out_avals))
            refused = str(got.error)[: str(got.error).find(" is not implemented")]
            return got.value or (type(got.error).__name__, refused if "rule for" in refused else "")

        a = row((8, 8), **{kind: {"x"}})(s)
        return of

    same(
        "\n".join(f"taken(lambda a: {line})" for line in OF_SUMS.strip().splitlines()), setting="explicit", taken=taken
    )


def test_complex_parts_of_a_sum_are_refused_where_xla_would_end_the_process():
    s = side("minijax")
    x = s.jnp.ones((8, 4), s.jnp.complex64)
    parts = s.P(unreduced={"x"})
    with s.jax.set_mesh(s.explicit):
        x = s.jax.reshard(x, s.P())
        for call in (s.jax.reshard, s.jax.device_put, lambda y, spec: s.jax.jit(lambda z: s.jax.reshard(z, spec))(y)):
            with pytest.raises(NotImplementedError, match="complex values unreduced"):
                call(x, parts)
        total = s.lax.reduce_sum(s.jax.reshard(x, s.P("x")), axes=(0,), out_sharding=s.P(None, unreduced={"x"}))
        assert s.jax.reshard(total, s.P()).tolist() == [8] * 4
