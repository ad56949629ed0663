"""Meshes whose axes are of several types, or change theirs in a part of a program, against jax."""

import pytest
from mesh_language import collectives, numbers, same, same_errors, side

pytestmark = pytest.mark.oracle


def mesh(sizes, names, *kinds):
    """A mesh on each side, and what is evaluated with it set."""
    return lambda s: s.jax.make_mesh(sizes, names, axis_types=tuple(getattr(s.AxisType, k) for k in kinds))


GIVEN = {
    "mixed": mesh((4, 2), ("x", "y"), "Explicit", "Auto"),
    "turned": mesh((4, 2), ("x", "y"), "Auto", "Explicit"),
    "thin": mesh((1, 2), ("x", "y"), "Explicit", "Auto"),
    "auto": mesh((4, 2), ("x", "y"), "Auto", "Auto"),
    "within": lambda s: lambda m, f: _within(s.jax.set_mesh(m), f),
    "inside": lambda s: lambda m, f: _within(s.jax.sharding.use_abstract_mesh(m), f),
    "split": lambda s: lambda *spec: s.jax.device_put(numbers(8, 8), s.P(*spec)),
    "abstract": lambda s: lambda *sizes: s.jax.sharding.AbstractMesh(sizes, ("x", "y"), (s.AxisType.Explicit,) * 2),
    "like": lambda s: lambda m: s.SDS((8, 8), "float32", sharding=s.NS(m, s.P("x"))),
    "wsc": lambda s: s.lax.with_sharding_constraint,
    "lines": lambda s: lambda f, *xs: s.jax.jit(f).trace(*xs).lower(lowering_platforms=("tpu",)).as_text()[:99],
}


def _within(scope, function):
    with scope:
        return function()


def test_constraints_and_results_over_axes_of_several_types():
    same(
        """
        within(mixed, lambda: [jax.jit(lambda a: wsc(a, P(*p)))(split('x')) for p in (('y',), (None, 'y'), ())])
        within(mixed, lambda: text(lambda a: wsc(a, P('y')), split('x')))
        within(turned, lambda: jax.jit(lambda a: wsc(a + 1, P('x')))(split('y')))
        within(turned, lambda: [jax.jit(lambda a: a + 1)(split(*p)) for p in ((), ('y',), (None, 'y'))])
        within(turned, lambda: jax.jit(lambda a, b: jnp.sin(a * 2) @ b)(split('x'), split(None, 'x')))
        within(thin, lambda: jax.jit(lambda: jnp.ones((2, 2), out_sharding=P('x', None)))())
        within(thin, lambda: [jax.typeof(x) for x in (jnp.ones(2, out_sharding=P('x')), jax.jit(lambda: jnp.ones(2, out_sharding=P('x')))())])
        within(auto, lambda: wsc(numbers(8, 8), P('x', 'y')))
        within(auto, lambda: jax.sharding.explicit_axes(lambda a: a * 2, in_sharding=P('x'))(numbers(8, 8)))
        within(explicit, lambda: jax.jit(jnp.sin, in_shardings=P('x')).lower(numbers(8, 8)).in_avals)
        within(explicit, lambda: jax.jit(jnp.sin, in_shardings=P('x')).lower(numbers(8, 8)).compile().in_avals)
        """,
        **GIVEN,
    )  # fmt: skip


def test_a_mesh_without_devices_is_the_programs_where_none_with_devices_is():
    same(
        """
        inside(abstract(4, 2), lambda: lines(lambda a: a * 2, SDS((8, 8), 'float32')))
        inside(abstract(4, 2), lambda: lines(lambda: jnp.arange(8.)))
        inside(abstract(4, 2), lambda: jax.jit(lambda: jnp.zeros_like(like(abstract(4, 2)))).trace().out_info.sharding)
        inside(abstract(4, 2), lambda: jax.jit(lambda: jnp.full_like(like(abstract(4, 2)), 2)).trace().jaxpr)
        """,
        **GIVEN,
    )


def test_systems_and_gathers_over_mapped_axes_that_are_split():
    same(
        """
        jax.make_jaxpr(lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True))(jnp.eye(8), split(None, 'x'))
        jax.make_jaxpr(lambda a, b: lax.linalg.triangular_solve(a, b))(jnp.eye(8), split('x'))
        jax.make_jaxpr(lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True))(split('x'), jnp.eye(8))
        jax.make_jaxpr(lambda a, b: lax.linalg.triangular_solve(a, b))(split(None, 'x'), jnp.eye(8))
        jax.make_jaxpr(lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, transpose_a=True))(split(None, 'x'), jnp.eye(8))
        [x.sharding for x in jax.tree.leaves(jax.jit(jax.vmap(jnp.linalg.solve, in_axes=(None, 0)))(jnp.eye(8), split('x')))]
        jax.jit(jax.vmap(jax.value_and_grad(lambda t, i: jnp.mean(t.at[i].get(out_sharding=P('y'))))))(split('x'), split('x').astype(int) % 8)
        jax.jit(jax.vmap(jax.grad(lambda t: jnp.mean(t.at[jnp.arange(4)].get(out_sharding=P('y')) ** 2))))(split('x'))
        """,
        setting="explicit",
        **GIVEN,
    )  # fmt: skip


def test_without_a_mesh_that_is_set_loops_and_branches_lay_values_out_alike():
    """jax leaves their types in disagreement."""
    same(
        """
        jax.jit(lambda a: lax.scan(lambda c, b: (c + b, c * 2), jnp.zeros(8), a.T))(far)
        jax.jit(lambda a: lax.fori_loop(0, 3, lambda i, c: c + a, jnp.zeros((8, 8))))(far)
        jax.jit(lambda a: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * a), (0, jnp.ones((8, 8)))))(far)
        [jax.jit(lambda a: lax.cond(a.sum() > n, lambda: jnp.zeros((8, 8)), lambda: a))(far) for n in (-1e9, 1e9)]
        np.asarray(jax.jit(lambda a: lax.switch(a.ndim - 1, [lambda: jnp.zeros((8, 8)), lambda: a, lambda: a + 1]))(far))
        jax.jit(jax.grad(lambda a: lax.scan(lambda c, b: (jnp.tanh(c + b), None), jnp.zeros(8), a.T)[0].sum()))(far)
        """,
        far=lambda s: s.put(numbers(8, 8), "x", mesh=s.explicit),
    )


def test_draws_are_made_where_they_lie():
    s = side("minijax")
    with s.jax.set_mesh(s.explicit):
        draws = (s.random.normal, s.random.bits, s.random.uniform)
        programs = [s.jax.jit(lambda k, f=f: f(k, (512, 64), out_sharding=s.P("x"))) for f in draws]
        texts = [program.lower(s.random.key(0)).compile().as_text() for program in programs]
    assert not any("[512,64]" in text or collectives(text) for text in texts)


def test_other_meshes_than_the_one_that_is_set_are_refused():
    same_errors(
        [
            ("inside(explicit.abstract_mesh.update_axis_types({'x': AxisType.Auto}), lambda: jnp.sin(split('x')))", ""),
            ("jax.jit(lambda a: inside(explicit.abstract_mesh.update_axis_types({'x': AxisType.Auto}), lambda: jnp.sin(a)))(within(explicit, lambda: split('x')))", "For primitive sin, context mesh"),
            ("within(mixed, lambda: within(explicit, lambda: split('x')) + 1)", "For primitive add, context mesh"),
            ("within(mixed, lambda: wsc(split('x'), P('x')))", "can only refer to Auto axes of the mesh"),
            ("within(explicit, lambda: inside(abstract(2, 2), lambda: jnp.arange(8)))", "use_abstract_mesh cannot change the size"),
            ("inside(abstract(4, 2), lambda: lines(lambda a: a * 2, like(abstract(2, 2))))", "For primitive mul, context mesh"),
            ("within(explicit, lambda: lax.linalg.triangular_solve(jnp.eye(8), split('x'), left_side=True))", "`b` must be unsharded on the contracting axis"),
            ("within(explicit, lambda: lax.linalg.triangular_solve(split('x'), jnp.eye(8)))", "`a` must be unsharded on the contracting axis"),
            ("within(auto, lambda: jax.shard_map(jax.sharding.auto_axes(lambda a: a, out_sharding=P()), in_specs=P('x'), out_specs=P('x'))(numbers(8)))", "Going from `Manual`"),
            ("within(auto, lambda: jax.shard_map(jax.sharding.explicit_axes(lambda a: a, in_sharding=P()), in_specs=P('x'), out_specs=P('x'))(numbers(8)))", "Going from `Manual`"),
            ("jax.jit(lambda k: random.normal(k, (8, 8), out_sharding=NS(explicit, P('x'))))(random.key(1))", "Length of device assignment 1 is not equal to the size of the mesh"),
        ],
        **GIVEN,
    )  # fmt: skip
