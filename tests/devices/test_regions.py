"""Regions of `shard_map`: over Explicit axes, and with unreduced and reduced values: casts, collectives, transposes and
refusals.
"""

import numpy as np
import pytest
from mesh_language import numbers, same, same_errors, side

pytestmark = pytest.mark.oracle


def value(*spec, shape=(8,), **sums):
    return lambda s: s.jax.reshard(s.jnp.asarray(numbers(*shape)), s.P(*spec, **sums))


def shards(s):
    """Returns a function: the sharding and shards of what a compiled and an eager call return."""

    def of(x):
        return str(x.sharding), [s.np.asarray(shard.data).tolist() for shard in x.addressable_shards]

    return lambda f, *xs: s.jax.tree.map(of, [s.jax.jit(f)(*xs), f(*xs)])


def made(shape, *spec, dtype=np.float32):
    return lambda s: s.shard(numbers(*shape, dtype=dtype), *spec, mesh=s.explicit_mesh)


GIVEN = {
    "unreduced_spec": lambda s: s.P(unreduced={"x"}),
    "reduced_spec": lambda s: s.P(reduced={"x"}),
    "x_spec": lambda s: s.P("x"),
    "unreduced": value(unreduced={"x"}),
    "reduced": value(reduced={"x"}),
    "replicated_vector": value(),
    "over_x": value("x"),
    "over_y": value("y", shape=(16,)),
    "reduced_matrix": value(shape=(4, 8), reduced={"x"}),
    "matrix_over_x": value("x", shape=(8, 4)),
    "shard_map": lambda s: lambda f, ins, outs, **how: s.jax.shard_map(f, in_specs=ins, out_specs=outs, **how),
    "pullback": lambda s: lambda f, *xs: lambda ct: s.jax.vjp(f, *xs)[1](ct),
    "pcast": lambda s: s.lax.pcast,
    "shards": shards,
    "sharded_vector": made((8,), "x"),
}


def test_casts_and_collectives():
    same(
        [
            lambda s: s.shards(s.shard_map(lambda a: s.lax.psum(a, "x"), s.unreduced_spec, s.P()), s.unreduced),
            lambda s: s.shards(
                s.shard_map(lambda a: s.pcast(a, "x", to="unreduced"), s.x_spec, s.unreduced_spec), s.over_x
            ),
            lambda s: s.shards(
                s.shard_map(lambda a: s.pcast(a, "x", to="varying"), s.reduced_spec, s.x_spec), s.reduced
            ),
            lambda s: s.shards(
                s.shard_map(lambda a: s.pcast(a, "x", to="reduced"), s.P(), s.reduced_spec), s.replicated_vector
            ),
            lambda s: s.shards(
                s.shard_map(lambda a: s.lax.psum_scatter(a, "x", tiled=True), s.unreduced_spec, s.x_spec), s.unreduced
            ),
            lambda s: s.shards(
                s.shard_map(lambda a: s.lax.psum_scatter(a.reshape(4, 2), "x"), s.unreduced_spec, s.x_spec), s.unreduced
            ),
            lambda s: s.shards(
                s.shard_map(lambda a: s.lax.all_gather(a, "x", to="reduced"), s.x_spec, s.reduced_spec), s.over_x
            ),
            lambda s: s.shards(s.shard_map(lambda a: s.lax.pmean(a, "x"), s.unreduced_spec, s.P()), s.unreduced),
            lambda s: s.shards(s.shard_map(lambda a: a, s.x_spec, s.unreduced_spec), s.over_x),
            lambda s: s.shards(s.jax.shard_map(lambda a: a + a, out_specs=s.unreduced_spec), s.unreduced),
            lambda s: s.unwrapped_jaxpr(
                s.jax.shard_map(lambda a, b: a * b, out_specs=s.P(None, unreduced={"x"})), s.unreduced, s.reduced
            ),
            lambda s: s.unwrapped_jaxpr(
                s.shard_map(
                    lambda a: s.pcast(s.lax.psum_scatter(a, "x", tiled=True), "x", to="unreduced"),
                    s.unreduced_spec,
                    s.unreduced_spec,
                ),
                s.unreduced,
            ),
            lambda s: s.unwrapped_jaxpr(
                s.shard_map(lambda a: s.lax.all_gather(a, "x", tiled=True, to="reduced"), s.x_spec, s.reduced_spec),
                s.over_x,
            ),
            lambda s: s.unwrapped_jaxpr(
                s.shard_map(lambda a, b: a * b, (s.x_spec, s.reduced_spec), s.x_spec),
                s.jax.reshard(s.jnp.ones(32), s.x_spec),
                s.reduced,
            ),
            lambda s: s.unwrapped_jaxpr(
                s.shard_map(
                    lambda a, b: a + s.pcast(b, "x", to="reduced"), (s.reduced_spec, s.P("y")), s.P("y", reduced={"x"})
                ),
                s.reduced,
                s.over_y,
            ),
            lambda s: s.unwrapped_jaxpr(
                s.shard_map(lambda a: a * s.lax.axis_index("x"), s.reduced_spec, s.x_spec), s.reduced
            ),
            lambda s: s.unwrapped_jaxpr(
                s.shard_map(
                    lambda a: s.lax.psum(s.pcast(a, ("x", "y"), to="unreduced"), ("x", "y")), s.P(("x", "y")), s.P()
                ),
                s.over_both,
            ),
            lambda s: s.text(s.shard_map(lambda a: s.lax.psum(a, "x"), s.unreduced_spec, s.P()), s.unreduced),
            lambda s: s.text(
                s.shard_map(lambda a: s.pcast(a, "x", to="unreduced"), s.x_spec, s.unreduced_spec), s.over_x
            ),
            lambda s: s.text(
                s.shard_map(lambda a: s.lax.psum_scatter(a, "x", tiled=True), s.unreduced_spec, s.x_spec), s.unreduced
            ),
            lambda s: s.text(
                s.shard_map(lambda a: s.lax.all_gather(a, "x", tiled=True, to="reduced"), s.x_spec, s.reduced_spec),
                s.over_x,
            ),
        ],
        set_mesh="explicit_mesh",
        over_both=value(("x", "y")),
        **GIVEN,
    )


def test_types_of_shards_and_programs_without_check_vma():
    same(
        [
            lambda s: (
                s.unwrapped_jaxpr(
                    s.shard_map(
                        lambda a: (s.seen.append((str(a.aval), a.aval.mat.unreduced, a.aval.mat.reduced)), a)[1],
                        s.unreduced_spec,
                        s.unreduced_spec,
                    ),
                    s.unreduced,
                ),
                s.seen,
            ),
            lambda s: (
                s.unwrapped_jaxpr(
                    s.shard_map(
                        lambda a: (s.seen.append((str(a.aval), a.aval.mat.unreduced, a.aval.mat.reduced)), a)[1],
                        s.P("y", reduced={"x"}),
                        s.P("y", reduced={"x"}),
                    ),
                    s.reduced_over_y,
                ),
                s.seen,
            ),
            lambda s: s.unwrapped_jaxpr(
                s.shard_map(lambda a: s.lax.psum(a, "x"), s.unreduced_spec, s.P(), check_vma=False), s.unreduced
            ),
            lambda s: s.unwrapped_jaxpr(
                s.shard_map(
                    lambda a: s.lax.psum_scatter(a, "x", tiled=True), s.unreduced_spec, s.x_spec, check_vma=False
                ),
                s.unreduced,
            ),
            lambda s: s.shards(s.shard_map(lambda a: a, s.x_spec, s.unreduced_spec, check_vma=False), s.over_x),
            lambda s: s.shards(s.shard_map(lambda a: a, s.unreduced_spec, s.x_spec, check_vma=False), s.unreduced),
            lambda s: s.unwrapped_jaxpr(
                s.shard_map(
                    lambda a: s.pcast(s.pcast(a, "x", to="reduced"), "x", to="varying"),
                    s.P(),
                    s.x_spec,
                    axis_names={"x"},
                ),
                s.over_y,
            ),
            lambda s: s.unwrapped_jaxpr(
                s.shard_map(
                    lambda a: s.lax.psum(s.pcast(a, "x", to="unreduced"), "x"), s.x_spec, s.P(), axis_names={"x"}
                ),
                s.matrix_over_both,
            ),
        ],
        set_mesh="explicit_mesh",
        seen=lambda s: [],
        reduced_over_y=value("y", reduced={"x"}),
        matrix_over_both=value("x", "y", shape=(8, 8)),
        **GIVEN,
    )


def test_operations_on_reduced_and_unreduced_shards():
    same(
        [
            lambda s: s.unwrapped_jaxpr(
                s.shard_map(
                    lambda a: s.jnp.sin(a).astype(s.jnp.bfloat16).T.reshape(2, 4).sum(0)[1:],
                    s.reduced_spec,
                    s.reduced_spec,
                ),
                s.reduced,
            ),
            lambda s: s.unwrapped_jaxpr(
                s.shard_map(lambda a: s.jnp.concatenate([a, a]), s.reduced_spec, s.reduced_spec), s.reduced
            ),
            lambda s: s.unwrapped_jaxpr(
                s.shard_map(lambda a: s.lax.dynamic_slice(a, (1,), (2,)), s.reduced_spec, s.reduced_spec), s.reduced
            ),
            lambda s: s.unwrapped_jaxpr(
                s.shard_map(lambda a: s.jnp.where(True, a, a), s.reduced_spec, s.reduced_spec), s.reduced
            ),
            lambda s: s.unwrapped_jaxpr(
                s.shard_map(
                    lambda a, b: s.lax.optimization_barrier((a, b)), (s.reduced_spec, s.P()), (s.reduced_spec, s.P())
                ),
                s.reduced,
                s.replicated_vector,
            ),
            lambda s: s.unwrapped_jaxpr(
                s.shard_map(lambda a: s.lax.scan(lambda c, b: (c * b, c), a[0], a), s.reduced_spec, s.reduced_spec),
                s.reduced,
            ),
            lambda s: s.unwrapped_jaxpr(
                s.shard_map(
                    lambda a: s.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + c[1]), (0, a))[1],
                    s.unreduced_spec,
                    s.unreduced_spec,
                ),
                s.unreduced,
            ),
            lambda s: s.unwrapped_jaxpr(
                s.shard_map(
                    lambda a: s.lax.cond(True, lambda c: c + c, lambda c: c, a), s.unreduced_spec, s.unreduced_spec
                ),
                s.unreduced,
            ),
            lambda s: s.unwrapped_jaxpr(
                s.shard_map(lambda a: s.jax.jit(lambda b: b * b)(a), s.reduced_spec, s.reduced_spec), s.reduced
            ),
            lambda s: s.unwrapped_jaxpr(
                s.shard_map(lambda a: (s.jax.debug.print("{}", a), a)[1], s.reduced_spec, s.reduced_spec), s.reduced
            ),
            lambda s: s.shards(
                s.shard_map(
                    lambda a: s.jax.pure_callback(lambda b: 2 * b, s.jax.ShapeDtypeStruct((8,), s.jnp.float32), a),
                    s.reduced_spec,
                    s.P(),
                ),
                s.reduced,
            ),
            lambda s: s.shards(
                s.shard_map(lambda a: s.lax.fori_loop(0, 2, lambda i, c: c + c, a), s.unreduced_spec, s.unreduced_spec),
                s.unreduced,
            ),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )


def test_transposes():
    same(
        [
            lambda s: s.unwrapped_jaxpr(
                s.pullback(s.shard_map(lambda a: s.lax.psum(a, "x"), s.unreduced_spec, s.P()), s.unreduced),
                s.replicated_vector,
            ),
            lambda s: s.unwrapped_jaxpr(
                s.pullback(
                    s.shard_map(lambda a: s.pcast(a, "x", to="reduced"), s.P(), s.reduced_spec), s.replicated_vector
                ),
                s.unreduced,
            ),
            lambda s: s.unwrapped_jaxpr(
                s.pullback(s.shard_map(lambda a: s.pcast(a, "x", to="varying"), s.reduced_spec, s.x_spec), s.reduced),
                s.jax.reshard(s.jnp.ones(32), s.x_spec),
            ),
            lambda s: s.unwrapped_jaxpr(
                s.pullback(
                    s.shard_map(lambda a: s.pcast(a, "x", to="unreduced"), s.x_spec, s.unreduced_spec), s.over_x
                ),
                s.jax.reshard(s.jnp.ones(2), s.P(reduced={"x"})),
            ),
            lambda s: s.unwrapped_jaxpr(
                s.pullback(
                    s.shard_map(lambda a: s.lax.psum_scatter(a, "x", tiled=True), s.unreduced_spec, s.x_spec),
                    s.unreduced,
                ),
                s.over_x,
            ),
            lambda s: s.unwrapped_jaxpr(
                s.pullback(
                    s.shard_map(lambda a: s.lax.all_gather(a, "x", tiled=True, to="reduced"), s.x_spec, s.reduced_spec),
                    s.over_x,
                ),
                s.unreduced,
            ),
            lambda s: s.unwrapped_jaxpr(
                s.pullback(
                    s.shard_map(lambda a, b: a * b, (s.unreduced_spec, s.reduced_spec), s.unreduced_spec),
                    s.unreduced,
                    s.reduced,
                ),
                s.reduced,
            ),
            lambda s: s.unwrapped_jaxpr(
                s.jax.grad(
                    lambda a: s.shard_map(lambda b: s.pcast(s.jnp.sin(b), "x", to="varying"), s.reduced_spec, s.x_spec)(
                        a
                    ).sum()
                ),
                s.reduced,
            ),
            lambda s: s.unwrapped_jaxpr(
                s.jax.grad(
                    lambda a, b: s.shard_map(
                        lambda c, d: s.lax.psum(c * s.jnp.sin(d), "x"), (s.unreduced_spec, s.reduced_spec), s.P()
                    )(a, b).sum(),
                    (0, 1),
                ),
                s.unreduced,
                s.reduced,
            ),
            lambda s: s.unwrapped_jaxpr(
                s.shard_map(
                    lambda a: s.jax.grad(lambda b: s.pcast(s.jnp.sin(b), "x", to="varying").sum())(a),
                    s.reduced_spec,
                    s.unreduced_spec,
                ),
                s.reduced,
            ),
            lambda s: s.unwrapped_jaxpr(
                s.shard_map(
                    lambda a: s.jax.grad(lambda b: s.lax.psum(b, "x").sum())(a), s.unreduced_spec, s.reduced_spec
                ),
                s.unreduced,
            ),
            lambda s: s.unwrapped_jaxpr(
                s.jax.grad(
                    lambda a: s.shard_map(
                        lambda b: s.pcast(s.jax.checkpoint(s.jnp.sin)(b), "x", to="varying"), s.reduced_spec, s.x_spec
                    )(a).sum()
                ),
                s.reduced,
            ),
            lambda s: s.unwrapped_jaxpr(
                s.jax.grad(
                    lambda a: s.jax.checkpoint(
                        s.shard_map(lambda b: s.pcast(s.jnp.sin(b), "x", to="varying"), s.reduced_spec, s.x_spec)
                    )(a).sum()
                ),
                s.reduced,
            ),
            lambda s: s.unwrapped_jaxpr(
                s.pullback(s.shard_map(lambda a: a, s.x_spec, s.unreduced_spec, check_vma=False), s.over_x),
                s.jax.reshard(s.jnp.ones(2), s.reduced_spec),
            ),
            lambda s: s.shards(
                s.jax.grad(
                    lambda a: s.shard_map(lambda b: s.pcast(b * b, "x", to="varying"), s.reduced_spec, s.x_spec)(
                        a
                    ).sum()
                ),
                s.reduced,
            ),
            lambda s: s.shards(
                s.jax.grad(
                    lambda a, b: (lambda c: (c * c).sum())(
                        s.shard_map(s.jnp.matmul, (s.x_spec, s.reduced_spec), s.x_spec)(a, b)
                    ),
                    (0, 1),
                ),
                s.matrix_over_x,
                s.reduced_matrix,
            ),
            lambda s: s.shards(
                lambda v: s.pullback(
                    s.shard_map(lambda a: s.lax.all_gather(a * a, "x", to="reduced"), s.x_spec, s.reduced_spec),
                    s.over_x,
                )(v)[0],
                s.jax.reshard(s.jnp.ones((4, 2)), s.unreduced_spec),
            ),
            lambda s: s.shards(
                s.jax.grad(lambda a: s.shard_map(lambda b: b, s.unreduced_spec, s.x_spec, check_vma=False)(a).sum()),
                s.unreduced,
            ),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )


def test_loops_stack_reduced_values():
    """jax types such programs, but cannot lower them."""
    s = side("minijax")
    jax, lax, P = s.jax, s.lax, s.P

    def last(a):
        return lax.scan(lambda c, b: (c * b, c), a[0], a)[0]

    with jax.set_mesh(s.explicit_mesh):
        a = jax.reshard(s.jnp.linspace(0.5, 1.5, 8), P(reduced={"x"}))
        mapped = jax.shard_map(lambda b: lax.pcast(last(b), "x", to="varying")[None], out_specs=P("x"))
        derivative = jax.jit(jax.grad(lambda b: mapped(b).sum()))(a)
        assert str(jax.typeof(derivative)) == "float32[8]{U:x}"
        np.testing.assert_allclose(jax.reshard(derivative, P()), 4 * jax.grad(last)(np.linspace(0.5, 1.5, 8)), 1e-5)


def test_zero_cotangents_have_the_types_of_their_primals():
    same(
        [
            lambda s: s.unwrapped_jaxpr(
                s.jax.grad(
                    lambda a: s.shard_map(lambda b: s.without_cotangent(b), s.reduced_spec, s.reduced_spec)(a).sum()
                ),
                s.reduced,
            ),
            lambda s: s.shards(
                s.jax.grad(
                    lambda a: s.shard_map(lambda b: s.without_cotangent(b), s.reduced_spec, s.reduced_spec)(a).sum()
                ),
                s.reduced,
            ),
        ],
        set_mesh="explicit_mesh",
        without_cotangent=lambda s: _unused(s.jax),
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
        [
            lambda s: s.shards(
                s.jax.grad(
                    lambda a: s.shard_map(lambda b: s.lax.cond(True, s.jnp.sin, lambda c: c, b), s.x_spec, s.x_spec)(
                        a
                    ).sum()
                ),
                s.over_x,
            ),
            lambda s: s.unwrapped_jaxpr(
                s.shard_map(
                    lambda a: s.jax.grad(
                        lambda b: s.lax.cond(s.lax.axis_index("x") > 1, s.jnp.sin, lambda c: c, b).sum()
                    )(a),
                    s.x_spec,
                    s.x_spec,
                ),
                s.over_x,
            ),
            lambda s: s.shards(
                s.jax.grad(
                    lambda a: s.shard_map(
                        lambda b: s.lax.cond(s.lax.axis_index("x") > 1, s.jnp.sin, lambda c: c, b), s.x_spec, s.x_spec
                    )(a).sum()
                ),
                s.over_x,
            ),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )


def test_casts_and_collectives_of_wrong_types_are_refused():
    same_errors(
        [
            (
                lambda s: s.shard_map(lambda a: s.pcast(a, "x", to="unreduced"), s.P(), s.unreduced_spec)(
                    s.replicated_vector
                ),
                "Unsupported pcast from=invarying, to='unreduced'",
            ),
            (
                lambda s: s.shard_map(lambda a: s.pcast(a, "x", to="reduced"), s.x_spec, s.reduced_spec)(s.over_x),
                "Unsupported pcast from=varying, to='reduced'",
            ),
            (
                lambda s: s.shard_map(lambda a: s.pcast(a, "x", to="varying"), s.unreduced_spec, s.x_spec)(s.unreduced),
                "Unsupported pcast from=unreduced, to='varying'",
            ),
            (
                lambda s: s.shard_map(lambda a: s.pcast(a, "x", to="varying"), s.x_spec, s.x_spec)(s.over_x),
                "Unsupported pcast from=varying, to='varying'",
            ),
            (
                lambda s: s.shard_map(lambda a: s.pcast(a, ("x", "y"), to="unreduced"), s.x_spec, s.unreduced_spec)(
                    s.over_x
                ),
                "jax.lax.pcast can only accept axis_name which",
            ),
            (
                lambda s: s.shard_map(lambda a: s.lax.psum(a, ("x", "y")), s.unreduced_spec, s.P())(s.unreduced),
                "jax.lax.psum can only accept axis_name which",
            ),
            (
                lambda s: s.shard_map(lambda a: s.lax.psum(a, "x"), s.reduced_spec, s.P())(s.reduced),
                "cannot accept args which are reduced",
            ),
            (
                lambda s: s.shard_map(lambda a: s.lax.ppermute(a, "x", [(0, 1)]), s.unreduced_spec, s.x_spec)(
                    s.unreduced
                ),
                "cannot accept args which are unreduced",
            ),
            (
                lambda s: s.shard_map(lambda a: s.lax.all_gather(a, "x", to="reduced"), s.P(), s.reduced_spec)(
                    s.replicated_vector
                ),
                "only accepts inputs that are varying",
            ),
            (
                lambda s: s.shard_map(
                    lambda a: s.lax.all_gather(a, "x", to="reduced", axis_index_groups=[[0, 1], [2, 3]]),
                    s.x_spec,
                    s.reduced_spec,
                )(s.over_x),
                "",
            ),
            (
                lambda s: s.shard_map(
                    lambda a: s.lax.psum_scatter(a, "x", tiled=True, axis_index_groups=[[0, 1], [2, 3]]),
                    s.unreduced_spec,
                    s.x_spec,
                )(s.unreduced),
                "",
            ),
            (
                lambda s: s.shard_map(lambda a, b: a + b, (s.unreduced_spec, s.x_spec), s.unreduced_spec)(
                    s.unreduced, s.jax.reshard(s.jnp.ones(32), s.x_spec)
                ),
                "cannot accept args which are unreduced",
            ),
            (
                lambda s: s.shard_map(lambda a: a + 1, s.reduced_spec, s.reduced_spec)(s.reduced),
                "Inputs cannot be replicated on the same axes",
            ),
            (
                lambda s: s.shard_map(lambda a: a * 2, s.unreduced_spec, s.unreduced_spec)(s.unreduced),
                "reduced along the same axes",
            ),
            (
                lambda s: s.shard_map(lambda a: a + 1, s.unreduced_spec, s.unreduced_spec)(s.unreduced),
                "lhs is unreduced while rhs is not",
            ),
            (
                lambda s: s.shard_map(s.jnp.sin, s.unreduced_spec, s.unreduced_spec)(s.unreduced),
                "unreduced rule for sin",
            ),
            (
                lambda s: s.shard_map(lambda a, b: a @ b, (s.unreduced_spec, s.reduced_spec), s.unreduced_spec)(
                    s.unreduced, s.reduced
                ),
                "lhs or rhs passed to dot_general cannot be unreduced",
            ),
            (lambda s: s.shard_map(lambda a: a, s.unreduced_spec, s.P())(s.unreduced), "require replication"),
            (lambda s: s.shard_map(lambda a: a, s.reduced_spec, s.P())(s.reduced), "require replication"),
            (
                lambda s: s.shard_map(lambda a: a, s.P(), s.unreduced_spec)(s.replicated_vector),
                "only accepts inputs that are varying",
            ),
            (
                lambda s: s.shard_map(lambda a: a, s.P(), s.reduced_spec)(s.replicated_vector),
                "out_specs passed to shard_map should be equal to the reduced",
            ),
            (
                lambda s: s.shard_map(lambda a: a, s.unreduced_spec, s.unreduced_spec)(s.replicated_vector),
                "does not match the specs of the input",
            ),
            (lambda s: s.shard_map(lambda a: a, s.P(), s.P())(s.unreduced), "does not match the specs of the input"),
            (
                lambda s: s.shard_map(lambda a: a, s.unreduced_spec, s.P(), axis_names={"x"})(s.unreduced),
                "can only be passed to in_specs when shard_map is in full",
            ),
            (
                lambda s: s.shard_map(lambda a: s.jax.grad(lambda b: b.sum())(a), s.reduced_spec, s.unreduced_spec)(
                    s.reduced
                ),
                "expected float32[]{U:x}",
            ),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )
    same_errors(
        [
            (
                lambda s: s.jax.shard_map(lambda a: a, mesh=s.mesh, in_specs=s.P(unreduced={"x"}), out_specs=s.P())(
                    np.ones(8)
                ),
                "axis names all of type `Explicit`",
            )
        ]
    )


@pytest.mark.parametrize("set_mesh", ["explicit_mesh", ""])
def test_shard_map(set_mesh):
    same(
        [
            lambda s: s.types(
                s.jax.shard_map(lambda x: s.lax.psum(x, "x"), mesh=s.explicit_mesh, in_specs=s.P("x"), out_specs=s.P()),
                s.sharded_vector,
            ),
            lambda s: s.types(
                s.jax.shard_map(
                    lambda x: s.jnp.sin(x) * 2, mesh=s.explicit_mesh, in_specs=s.P("x", "y"), out_specs=s.P("x", "y")
                ),
                s.sharded_both,
            ),
            lambda s: s.types(
                s.jax.jit(
                    s.jax.shard_map(
                        lambda x: x.T, mesh=s.explicit_mesh, in_specs=s.P("x", "y"), out_specs=s.P("y", "x")
                    )
                ),
                s.sharded_both,
            ),
        ],
        set_mesh=set_mesh,
        **GIVEN,
    )
    same(
        [
            lambda s: s.types(
                s.jax.grad(
                    lambda x: s.jax.shard_map(
                        lambda y: s.lax.psum(s.jnp.sin(y).sum(), "x"),
                        mesh=s.explicit_mesh,
                        in_specs=s.P("x"),
                        out_specs=s.P(),
                    )(x)
                ),
                s.sharded_vector,
            )
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )


def test_shard_map_infers_in_specs_from_types():
    same(
        [
            lambda s: s.types(s.jax.shard_map(lambda x: x * 2, out_specs=s.P("x", "y")), s.sharded_both),
            lambda s: s.types(
                s.jax.jit(s.jax.shard_map(lambda x, y: x + y["a"], out_specs=s.P("x", "y"))),
                s.sharded_both,
                {"a": s.sharded_both},
            ),
            lambda s: s.types(
                s.jax.shard_map(lambda x, y: x * y, in_specs=(s.P("x", "y"), s.P()), out_specs=s.P("x", "y")),
                s.sharded_both,
                2.0,
            ),
            lambda s: s.types(s.jax.shard_map(lambda x: s.lax.psum(x, "x"), out_specs=s.P(None, "y")), s.sharded_both),
            lambda s: s.types(
                s.jax.grad(
                    lambda x: s.jax.shard_map(lambda y: s.lax.psum((y**2).sum(), ("x", "y")), out_specs=s.P())(x)
                ),
                s.sharded_both,
            ),
            lambda s: s.types(s.jax.shard_map(lambda x: x * 2, out_specs=s.P("x")), np.ones(8, np.float32)),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )
    refused = "does not match the specs of the input"
    same_errors(
        [
            (lambda s: s.jax.shard_map(lambda x: x, in_specs=s.P("y"), out_specs=s.P("y"))(s.sharded_both), refused),
            (lambda s: s.jax.shard_map(lambda x: x, in_specs=s.P("x"), out_specs=s.P("x"))(s.jnp.ones(8)), refused),
            (
                lambda s: s.jax.shard_map(lambda x: x * s.sharded_vector.sum(), in_specs=s.P("x"), out_specs=s.P("x"))(
                    s.sharded_vector
                ),
                "Closing over inputs to shard_map",
            ),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )
    same_errors(
        [
            (
                lambda s: s.jax.shard_map(lambda x: x, out_specs=s.P("x"))(s.auto_matrix),
                "but it was `None` when axis_names",
            )
        ],
        set_mesh="mesh",
    )
