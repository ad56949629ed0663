"""Inside `shard_map`: values that are unreduced or reduced over manual axes, their casts and collectives, against jax."""

import compare
import numpy as np
import pytest
from mesh_language import numbers, same, same_errors, side

pytestmark = pytest.mark.oracle


def value(*spec, shape=(8,), **sums):
    return lambda s: s.jax.reshard(s.jnp.asarray(numbers(*shape)), s.P(*spec, **sums))


def parts(s):
    """What each device holds, and how the arrays lie: of the compiled function and of an eager call."""

    def of(x):
        return str(x.sharding), [s.np.asarray(shard.data).tolist() for shard in x.addressable_shards]

    return lambda f, *xs: s.jax.tree.map(of, [s.jax.jit(f)(*xs), f(*xs)])


GIVEN = {
    "U": lambda s: s.P(unreduced={"x"}),
    "R": lambda s: s.P(reduced={"x"}),
    "X": lambda s: s.P("x"),
    "u": value(unreduced={"x"}),
    "r": value(reduced={"x"}),
    "n": value(),
    "x": value("x"),
    "y": value("y", shape=(16,)),
    "w": value(shape=(4, 8), reduced={"x"}),
    "rows": value("x", shape=(8, 4)),
    "sm": lambda s: lambda f, ins, outs, **how: s.jax.shard_map(f, in_specs=ins, out_specs=outs, **how),
    "pull": lambda s: lambda f, *xs: lambda ct: s.jax.vjp(f, *xs)[1](ct),
    "cast": lambda s: s.lax.pcast,
    "parts": parts,
    "traced": lambda s: lambda f, *xs: compare._unwrapped(s.jaxpr(f, *xs)),
    "text": lambda s: lambda f, *xs: s.text(f, *xs),
}


def test_casts_and_collectives():
    same(
        """
        parts(sm(lambda a: lax.psum(a, 'x'), U, P()), u)
        parts(sm(lambda a: cast(a, 'x', to='unreduced'), X, U), x)
        parts(sm(lambda a: cast(a, 'x', to='varying'), R, X), r)
        parts(sm(lambda a: cast(a, 'x', to='reduced'), P(), R), n)
        parts(sm(lambda a: lax.psum_scatter(a, 'x', tiled=True), U, X), u)
        parts(sm(lambda a: lax.psum_scatter(a.reshape(4, 2), 'x'), U, X), u)
        parts(sm(lambda a: lax.all_gather(a, 'x', to='reduced'), X, R), x)
        parts(sm(lambda a: lax.pmean(a, 'x'), U, P()), u)
        parts(sm(lambda a: a, X, U), x)
        parts(jax.shard_map(lambda a: a + a, out_specs=U), u)
        traced(jax.shard_map(lambda a, b: a * b, out_specs=P(None, unreduced={'x'})), u, r)
        traced(sm(lambda a: cast(lax.psum_scatter(a, 'x', tiled=True), 'x', to='unreduced'), U, U), u)
        traced(sm(lambda a: lax.all_gather(a, 'x', tiled=True, to='reduced'), X, R), x)
        traced(sm(lambda a, b: a * b, (X, R), X), jax.reshard(jnp.ones(32), X), r)
        traced(sm(lambda a, b: a + cast(b, 'x', to='reduced'), (R, P('y')), P('y', reduced={'x'})), r, y)
        traced(sm(lambda a: a * lax.axis_index('x'), R, X), r)
        traced(sm(lambda a: lax.psum(cast(a, ('x', 'y'), to='unreduced'), ('x', 'y')), P(('x', 'y')), P()), n_xy)
        text(sm(lambda a: lax.psum(a, 'x'), U, P()), u)
        text(sm(lambda a: cast(a, 'x', to='unreduced'), X, U), x)
        text(sm(lambda a: lax.psum_scatter(a, 'x', tiled=True), U, X), u)
        text(sm(lambda a: lax.all_gather(a, 'x', tiled=True, to='reduced'), X, R), x)
        """,
        setting="explicit",
        n_xy=value(("x", "y")),
        **GIVEN,
    )


def test_types_say_it_of_parts_and_of_nothing_without_their_check():
    same(
        """
        traced(sm(lambda a: (seen.append((str(a.aval), a.aval.mat.unreduced, a.aval.mat.reduced)), a)[1], U, U), u), seen
        traced(sm(lambda a: (seen.append((str(a.aval), a.aval.mat.unreduced, a.aval.mat.reduced)), a)[1], P('y', reduced={'x'}), P('y', reduced={'x'})), ry), seen
        traced(sm(lambda a: lax.psum(a, 'x'), U, P(), check_vma=False), u)
        traced(sm(lambda a: lax.psum_scatter(a, 'x', tiled=True), U, X, check_vma=False), u)
        parts(sm(lambda a: a, X, U, check_vma=False), x)
        parts(sm(lambda a: a, U, X, check_vma=False), u)
        traced(sm(lambda a: cast(cast(a, 'x', to='reduced'), 'x', to='varying'), P(), X, axis_names={'x'}), y)
        traced(sm(lambda a: lax.psum(cast(a, 'x', to='unreduced'), 'x'), X, P(), axis_names={'x'}), xy)
        """,
        setting="explicit",
        seen=lambda s: [],
        ry=value("y", reduced={"x"}),
        xy=value("x", "y", shape=(8, 8)),
        **GIVEN,
    )  # fmt: skip


def test_operations_on_reduced_and_unreduced_parts():
    same(
        """
        traced(sm(lambda a: jnp.sin(a).astype(jnp.bfloat16).T.reshape(2, 4).sum(0)[1:], R, R), r)
        traced(sm(lambda a: jnp.concatenate([a, a]), R, R), r)
        traced(sm(lambda a: lax.dynamic_slice(a, (1,), (2,)), R, R), r)
        traced(sm(lambda a: jnp.where(True, a, a), R, R), r)
        traced(sm(lambda a, b: lax.optimization_barrier((a, b)), (R, P()), (R, P())), r, n)
        traced(sm(lambda a: lax.scan(lambda c, b: (c * b, c), a[0], a), R, R), r)
        traced(sm(lambda a: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + c[1]), (0, a))[1], U, U), u)
        traced(sm(lambda a: lax.cond(True, lambda c: c + c, lambda c: c, a), U, U), u)
        traced(sm(lambda a: jax.jit(lambda b: b * b)(a), R, R), r)
        traced(sm(lambda a: (jax.debug.print('{}', a), a)[1], R, R), r)
        parts(sm(lambda a: jax.pure_callback(lambda b: 2 * b, jax.ShapeDtypeStruct((8,), jnp.float32), a), R, P()), r)
        parts(sm(lambda a: lax.fori_loop(0, 2, lambda i, c: c + c, a), U, U), u)
        """,
        setting="explicit",
        **GIVEN,
    )


def test_transposes():
    same(
        """
        traced(pull(sm(lambda a: lax.psum(a, 'x'), U, P()), u), n)
        traced(pull(sm(lambda a: cast(a, 'x', to='reduced'), P(), R), n), u)
        traced(pull(sm(lambda a: cast(a, 'x', to='varying'), R, X), r), jax.reshard(jnp.ones(32), X))
        traced(pull(sm(lambda a: cast(a, 'x', to='unreduced'), X, U), x), jax.reshard(jnp.ones(2), P(reduced={'x'})))
        traced(pull(sm(lambda a: lax.psum_scatter(a, 'x', tiled=True), U, X), u), x)
        traced(pull(sm(lambda a: lax.all_gather(a, 'x', tiled=True, to='reduced'), X, R), x), u)
        traced(pull(sm(lambda a, b: a * b, (U, R), U), u, r), r)
        traced(jax.grad(lambda a: sm(lambda b: cast(jnp.sin(b), 'x', to='varying'), R, X)(a).sum()), r)
        traced(jax.grad(lambda a, b: sm(lambda c, d: lax.psum(c * jnp.sin(d), 'x'), (U, R), P())(a, b).sum(), (0, 1)), u, r)
        traced(sm(lambda a: jax.grad(lambda b: cast(jnp.sin(b), 'x', to='varying').sum())(a), R, U), r)
        traced(sm(lambda a: jax.grad(lambda b: lax.psum(b, 'x').sum())(a), U, R), u)
        traced(jax.grad(lambda a: sm(lambda b: cast(jax.checkpoint(jnp.sin)(b), 'x', to='varying'), R, X)(a).sum()), r)
        traced(jax.grad(lambda a: jax.checkpoint(sm(lambda b: cast(jnp.sin(b), 'x', to='varying'), R, X))(a).sum()), r)
        traced(pull(sm(lambda a: a, X, U, check_vma=False), x), jax.reshard(jnp.ones(2), R))
        parts(jax.grad(lambda a: sm(lambda b: cast(b * b, 'x', to='varying'), R, X)(a).sum()), r)
        parts(jax.grad(lambda a, b: (lambda c: (c * c).sum())(sm(jnp.matmul, (X, R), X)(a, b)), (0, 1)), rows, w)
        parts(lambda v: pull(sm(lambda a: lax.all_gather(a * a, 'x', to='reduced'), X, R), x)(v)[0], jax.reshard(jnp.ones((4, 2)), U))
        parts(jax.grad(lambda a: sm(lambda b: b, U, X, check_vma=False)(a).sum()), u)
        """,
        setting="explicit",
        **GIVEN,
    )  # fmt: skip


def test_loops_stack_reduced_values():
    """jax types such programs, but cannot lower them."""
    s = side("minijax")
    jax, lax, P = s.jax, s.lax, s.P

    def last(a):
        return lax.scan(lambda c, b: (c * b, c), a[0], a)[0]

    with jax.set_mesh(s.explicit):
        a = jax.reshard(s.jnp.linspace(0.5, 1.5, 8), P(reduced={"x"}))
        mapped = jax.shard_map(lambda b: lax.pcast(last(b), "x", to="varying")[None], out_specs=P("x"))
        derivative = jax.jit(jax.grad(lambda b: mapped(b).sum()))(a)
        assert str(jax.typeof(derivative)) == "float32[8]{U:x}"
        np.testing.assert_allclose(jax.reshard(derivative, P()), 4 * jax.grad(last)(np.linspace(0.5, 1.5, 8)), 1e-5)


def test_zero_cotangents_lie_as_their_values_do():
    same(
        """
        traced(jax.grad(lambda a: sm(lambda b: unused(b), R, R)(a).sum()), r)
        parts(jax.grad(lambda a: sm(lambda b: unused(b), R, R)(a).sum()), r)
        """,
        setting="explicit",
        unused=lambda s: _unused(s.jax),
        **GIVEN,
    )


def _unused(jax):
    @jax.custom_vjp
    def same_value(x):
        return x

    same_value.defvjp(lambda x: (x, None), lambda _, ct: (None,))
    return same_value


def test_residuals_of_one_branch_vary_as_its_values_do():
    same(
        """
        parts(jax.grad(lambda a: sm(lambda b: lax.cond(True, jnp.sin, lambda c: c, b), X, X)(a).sum()), x)
        traced(sm(lambda a: jax.grad(lambda b: lax.cond(lax.axis_index('x') > 1, jnp.sin, lambda c: c, b).sum())(a), X, X), x)
        parts(jax.grad(lambda a: sm(lambda b: lax.cond(lax.axis_index('x') > 1, jnp.sin, lambda c: c, b), X, X)(a).sum()), x)
        """,
        setting="explicit",
        **GIVEN,
    )


def test_what_types_do_not_allow_is_refused():
    same_errors(
        [
            ("sm(lambda a: cast(a, 'x', to='unreduced'), P(), U)(n)", "Unsupported pcast from=invarying, to='unreduced'"),
            ("sm(lambda a: cast(a, 'x', to='reduced'), X, R)(x)", "Unsupported pcast from=varying, to='reduced'"),
            ("sm(lambda a: cast(a, 'x', to='varying'), U, X)(u)", "Unsupported pcast from=unreduced, to='varying'"),
            ("sm(lambda a: cast(a, 'x', to='varying'), X, X)(x)", "Unsupported pcast from=varying, to='varying'"),
            ("sm(lambda a: cast(a, ('x', 'y'), to='unreduced'), X, U)(x)", "jax.lax.pcast can only accept axis_name which"),
            ("sm(lambda a: lax.psum(a, ('x', 'y')), U, P())(u)", "jax.lax.psum can only accept axis_name which"),
            ("sm(lambda a: lax.psum(a, 'x'), R, P())(r)", "cannot accept args which are reduced"),
            ("sm(lambda a: lax.ppermute(a, 'x', [(0, 1)]), U, X)(u)", "cannot accept args which are unreduced"),
            ("sm(lambda a: lax.all_gather(a, 'x', to='reduced'), P(), R)(n)", "only accepts inputs that are varying"),
            ("sm(lambda a: lax.all_gather(a, 'x', to='reduced', axis_index_groups=[[0, 1], [2, 3]]), X, R)(x)", ""),
            ("sm(lambda a: lax.psum_scatter(a, 'x', tiled=True, axis_index_groups=[[0, 1], [2, 3]]), U, X)(u)", ""),
            ("sm(lambda a, b: a + b, (U, X), U)(u, jax.reshard(jnp.ones(32), X))", "cannot accept args which are unreduced"),
            ("sm(lambda a: a + 1, R, R)(r)", "Inputs cannot be replicated on the same axes"),
            ("sm(lambda a: a * 2, U, U)(u)", "reduced along the same axes"),
            ("sm(lambda a: a + 1, U, U)(u)", "lhs is unreduced while rhs is not"),
            ("sm(jnp.sin, U, U)(u)", "unreduced rule for sin"),
            ("sm(lambda a, b: a @ b, (U, R), U)(u, r)", "lhs or rhs passed to dot_general cannot be unreduced"),
            ("sm(lambda a: a, U, P())(u)", "require replication"),
            ("sm(lambda a: a, R, P())(r)", "require replication"),
            ("sm(lambda a: a, P(), U)(n)", "only accepts inputs that are varying"),
            ("sm(lambda a: a, P(), R)(n)", "out_specs passed to shard_map should be equal to the reduced"),
            ("sm(lambda a: a, U, U)(n)", "does not match the specs of the input"),
            ("sm(lambda a: a, P(), P())(u)", "does not match the specs of the input"),
            ("sm(lambda a: a, U, P(), axis_names={'x'})(u)", "can only be passed to in_specs when shard_map is in full"),
            ("sm(lambda a: jax.grad(lambda b: b.sum())(a), R, U)(r)", "expected float32[]{U:x}"),
        ],
        setting="explicit",
        **GIVEN,
    )  # fmt: skip
    over_auto = "jax.shard_map(lambda a: a, mesh=m, in_specs=P(unreduced={'x'}), out_specs=P())(np.ones(8))"
    same_errors([(over_auto, "axis names all of type `Explicit`")])
