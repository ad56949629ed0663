"""Meshes with axes of several types, and parts of programs that change the types of axes, against jax."""

import numpy as np
import pytest
from mesh_language import collectives, numbers, same, same_errors, side

pytestmark = pytest.mark.oracle


def mesh(sizes, names, *kinds):
    """Returns a function that makes a mesh on each side."""
    return lambda s: s.jax.make_mesh(sizes, names, axis_types=tuple(getattr(s.AxisType, k) for k in kinds))


GIVEN = {
    "explicit_auto_mesh": mesh((4, 2), ("x", "y"), "Explicit", "Auto"),
    "auto_explicit_mesh": mesh((4, 2), ("x", "y"), "Auto", "Explicit"),
    "thin_mesh": mesh((1, 2), ("x", "y"), "Explicit", "Auto"),
    "with_mesh": lambda s: lambda m, f: _within(s.jax.set_mesh(m), f),
    "with_abstract_mesh": lambda s: lambda m, f: _within(s.jax.sharding.use_abstract_mesh(m), f),
    "sharded": lambda s: lambda *spec: s.jax.device_put(numbers(8, 8), s.P(*spec)),
    "abstract_mesh": lambda s: (
        lambda *sizes: s.jax.sharding.AbstractMesh(sizes, ("x", "y"), (s.AxisType.Explicit,) * 2)
    ),
    "struct": lambda s: lambda m: s.ShapeDtypeStruct((8, 8), "float32", sharding=s.NamedSharding(m, s.P("x"))),
    "with_sharding_constraint": lambda s: s.lax.with_sharding_constraint,
    "tpu_text": lambda s: lambda f, *xs: s.jax.jit(f).trace(*xs).lower(lowering_platforms=("tpu",)).as_text()[:99],
}


def _within(scope, function):
    with scope:
        return function()


def test_constraints_and_results_over_axes_of_several_types():
    same(
        [
            lambda s: s.with_mesh(
                s.explicit_auto_mesh,
                lambda: [
                    s.jax.jit(lambda a, p=p: s.with_sharding_constraint(a, s.P(*p)))(s.sharded("x"))
                    for p in (("y",), (None, "y"), ())
                ],
            ),
            lambda s: s.with_mesh(
                s.explicit_auto_mesh, lambda: s.text(lambda a: s.with_sharding_constraint(a, s.P("y")), s.sharded("x"))
            ),
            lambda s: s.with_mesh(
                s.auto_explicit_mesh,
                lambda: s.jax.jit(lambda a: s.with_sharding_constraint(a + 1, s.P("x")))(s.sharded("y")),
            ),
            lambda s: s.with_mesh(
                s.auto_explicit_mesh,
                lambda: [s.jax.jit(lambda a: a + 1)(s.sharded(*p)) for p in ((), ("y",), (None, "y"))],
            ),
            lambda s: s.with_mesh(
                s.auto_explicit_mesh,
                lambda: s.jax.jit(lambda a, b: s.jnp.sin(a * 2) @ b)(s.sharded("x"), s.sharded(None, "x")),
            ),
            lambda s: s.with_mesh(
                s.thin_mesh, lambda: s.jax.jit(lambda: s.jnp.ones((2, 2), out_sharding=s.P("x", None)))()
            ),
            lambda s: s.with_mesh(
                s.thin_mesh,
                lambda: [
                    s.jax.typeof(x)
                    for x in (
                        s.jnp.ones(2, out_sharding=s.P("x")),
                        s.jax.jit(lambda: s.jnp.ones(2, out_sharding=s.P("x")))(),
                    )
                ],
            ),
            lambda s: s.with_mesh(s.mesh, lambda: s.with_sharding_constraint(numbers(8, 8), s.P("x", "y"))),
            lambda s: s.with_mesh(
                s.mesh, lambda: s.jax.sharding.explicit_axes(lambda a: a * 2, in_sharding=s.P("x"))(numbers(8, 8))
            ),
            lambda s: s.with_mesh(
                s.explicit_mesh, lambda: s.jax.jit(s.jnp.sin, in_shardings=s.P("x")).lower(numbers(8, 8)).in_avals
            ),
            lambda s: s.with_mesh(
                s.explicit_mesh,
                lambda: s.jax.jit(s.jnp.sin, in_shardings=s.P("x")).lower(numbers(8, 8)).compile().in_avals,
            ),
        ],
        **GIVEN,
    )


def test_an_abstract_mesh_is_the_mesh_of_a_program_without_devices():
    same(
        [
            lambda s: s.with_abstract_mesh(
                s.abstract_mesh(4, 2), lambda: s.tpu_text(lambda a: a * 2, s.ShapeDtypeStruct((8, 8), "float32"))
            ),
            lambda s: s.with_abstract_mesh(s.abstract_mesh(4, 2), lambda: s.tpu_text(lambda: s.jnp.arange(8.0))),
            lambda s: s.with_abstract_mesh(
                s.abstract_mesh(4, 2),
                lambda: s.jax.jit(lambda: s.jnp.zeros_like(s.struct(s.abstract_mesh(4, 2)))).trace().out_info.sharding,
            ),
            lambda s: s.with_abstract_mesh(
                s.abstract_mesh(4, 2),
                lambda: s.jax.jit(lambda: s.jnp.full_like(s.struct(s.abstract_mesh(4, 2)), 2)).trace().jaxpr,
            ),
        ],
        **GIVEN,
    )


def test_triangular_solves_and_gathers_over_sharded_batch_axes():
    same(
        [
            lambda s: s.jax.make_jaxpr(lambda a, b: s.lax.linalg.triangular_solve(a, b, left_side=True))(
                s.jnp.eye(8), s.sharded(None, "x")
            ),
            lambda s: s.jax.make_jaxpr(lambda a, b: s.lax.linalg.triangular_solve(a, b))(s.jnp.eye(8), s.sharded("x")),
            lambda s: s.jax.make_jaxpr(lambda a, b: s.lax.linalg.triangular_solve(a, b, left_side=True))(
                s.sharded("x"), s.jnp.eye(8)
            ),
            lambda s: s.jax.make_jaxpr(lambda a, b: s.lax.linalg.triangular_solve(a, b))(
                s.sharded(None, "x"), s.jnp.eye(8)
            ),
            lambda s: s.jax.make_jaxpr(
                lambda a, b: s.lax.linalg.triangular_solve(a, b, left_side=True, transpose_a=True)
            )(s.sharded(None, "x"), s.jnp.eye(8)),
            lambda s: [
                x.sharding
                for x in s.jax.tree.leaves(
                    s.jax.jit(s.jax.vmap(s.jnp.linalg.solve, in_axes=(None, 0)))(s.jnp.eye(8), s.sharded("x"))
                )
            ],
            lambda s: s.jax.jit(
                s.jax.vmap(s.jax.value_and_grad(lambda t, i: s.jnp.mean(t.at[i].get(out_sharding=s.P("y")))))
            )(s.sharded("x"), s.sharded("x").astype(int) % 8),
            lambda s: s.jax.jit(
                s.jax.vmap(s.jax.grad(lambda t: s.jnp.mean(t.at[s.jnp.arange(4)].get(out_sharding=s.P("y")) ** 2)))
            )(s.sharded("x")),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )


def test_loops_and_branches_agree_on_shardings_without_a_set_mesh():
    """jax leaves the types of their operands unequal."""
    same(
        [
            lambda s: s.jax.jit(lambda a: s.lax.scan(lambda c, b: (c + b, c * 2), s.jnp.zeros(8), a.T))(s.square_rows),
            lambda s: s.jax.jit(lambda a: s.lax.fori_loop(0, 3, lambda i, c: c + a, s.jnp.zeros((8, 8))))(
                s.square_rows
            ),
            lambda s: s.jax.jit(
                lambda a: s.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * a), (0, s.jnp.ones((8, 8))))
            )(s.square_rows),
            lambda s: [
                s.jax.jit(lambda a, n=n: s.lax.cond(a.sum() > n, lambda: s.jnp.zeros((8, 8)), lambda: a))(s.square_rows)
                for n in (-1e9, 1e9)
            ],
            lambda s: np.asarray(
                s.jax.jit(lambda a: s.lax.switch(a.ndim - 1, [lambda: s.jnp.zeros((8, 8)), lambda: a, lambda: a + 1]))(
                    s.square_rows
                )
            ),
            lambda s: s.jax.jit(
                s.jax.grad(lambda a: s.lax.scan(lambda c, b: (s.jnp.tanh(c + b), None), s.jnp.zeros(8), a.T)[0].sum())
            )(s.square_rows),
        ],
        square_rows=lambda s: s.shard(numbers(8, 8), "x", mesh=s.explicit_mesh),
    )


def test_random_values_are_computed_as_shards():
    s = side("minijax")
    with s.jax.set_mesh(s.explicit_mesh):
        draws = (s.random.normal, s.random.bits, s.random.uniform)
        programs = [s.jax.jit(lambda k, f=f: f(k, (512, 64), out_sharding=s.P("x"))) for f in draws]
        texts = [program.lower(s.random.key(0)).compile().as_text() for program in programs]
    assert not any("[512,64]" in text or collectives(text) for text in texts)


def test_meshes_other_than_the_set_one_are_refused():
    same_errors(
        [
            (
                lambda s: s.with_abstract_mesh(
                    s.explicit_mesh.abstract_mesh.update_axis_types({"x": s.AxisType.Auto}),
                    lambda: s.jnp.sin(s.sharded("x")),
                ),
                "",
            ),
            (
                lambda s: s.jax.jit(
                    lambda a: s.with_abstract_mesh(
                        s.explicit_mesh.abstract_mesh.update_axis_types({"x": s.AxisType.Auto}), lambda: s.jnp.sin(a)
                    )
                )(s.with_mesh(s.explicit_mesh, lambda: s.sharded("x"))),
                "For primitive sin, context mesh",
            ),
            (
                lambda s: s.with_mesh(
                    s.explicit_auto_mesh, lambda: s.with_mesh(s.explicit_mesh, lambda: s.sharded("x")) + 1
                ),
                "For primitive add, context mesh",
            ),
            (
                lambda s: s.with_mesh(
                    s.explicit_auto_mesh, lambda: s.with_sharding_constraint(s.sharded("x"), s.P("x"))
                ),
                "can only refer to Auto axes of the mesh",
            ),
            (
                lambda s: s.with_mesh(
                    s.explicit_mesh, lambda: s.with_abstract_mesh(s.abstract_mesh(2, 2), lambda: s.jnp.arange(8))
                ),
                "use_abstract_mesh cannot change the size",
            ),
            (
                lambda s: s.with_abstract_mesh(
                    s.abstract_mesh(4, 2), lambda: s.tpu_text(lambda a: a * 2, s.struct(s.abstract_mesh(2, 2)))
                ),
                "For primitive mul, context mesh",
            ),
            (
                lambda s: s.with_mesh(
                    s.explicit_mesh, lambda: s.lax.linalg.triangular_solve(s.jnp.eye(8), s.sharded("x"), left_side=True)
                ),
                "`b` must be unsharded on the contracting axis",
            ),
            (
                lambda s: s.with_mesh(
                    s.explicit_mesh, lambda: s.lax.linalg.triangular_solve(s.sharded("x"), s.jnp.eye(8))
                ),
                "`a` must be unsharded on the contracting axis",
            ),
            (
                lambda s: s.with_mesh(
                    s.mesh,
                    lambda: s.jax.shard_map(
                        s.jax.sharding.auto_axes(lambda a: a, out_sharding=s.P()), in_specs=s.P("x"), out_specs=s.P("x")
                    )(numbers(8)),
                ),
                "Going from `Manual`",
            ),
            (
                lambda s: s.with_mesh(
                    s.mesh,
                    lambda: s.jax.shard_map(
                        s.jax.sharding.explicit_axes(lambda a: a, in_sharding=s.P()),
                        in_specs=s.P("x"),
                        out_specs=s.P("x"),
                    )(numbers(8)),
                ),
                "Going from `Manual`",
            ),
            (
                lambda s: s.jax.jit(
                    lambda k: s.random.normal(k, (8, 8), out_sharding=s.NamedSharding(s.explicit_mesh, s.P("x")))
                )(s.random.key(1)),
                "Length of device assignment 1 is not equal to the size of the mesh",
            ),
        ],
        **GIVEN,
    )
