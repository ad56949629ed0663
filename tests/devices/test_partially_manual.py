"""`shard_map` that is manual over some axes of a mesh, and nested `shard_map`: jaxprs, modules, types and values."""

import compare
import numpy as np
import pytest
from compare import Case, sweep
from mesh_language import expression, numbers, same, same_errors, side
from transform_matrix import transformed

import minijax

pytestmark = pytest.mark.oracle

A = numbers(8, 8)


def over_some_axes(jax, f, ins, outs, axes=("x",), **options):
    """`f` under `shard_map` that is manual over `axes` of the mesh of 4 by 2 devices."""
    mesh = options.pop("mesh", side(jax.__name__).mesh)
    return jax.shard_map(f, mesh=mesh, in_specs=ins, out_specs=outs, axis_names=set(axes), **options)


def nested(jax, f, ins, outs, **options):
    """`f` under nested `shard_map` over "x" and then "y", with the specs of the inner one."""
    P = jax.sharding.PartitionSpec
    inner = lambda v: jax.shard_map(f, in_specs=ins, out_specs=outs, axis_names={"y"})(v)  # noqa: E731
    return over_some_axes(jax, inner, P("x"), P("x"), **options)


BODIES = [
    lambda s: lambda v: v * 2 + s.jnp.sin(v).sum(1, keepdims=True),
    lambda s: lambda v: s.lax.psum(v * v, "x") * v,
    lambda s: lambda v: s.lax.all_gather(v, "x", tiled=True)[:2] * s.lax.axis_index("x"),
    lambda s: lambda v: s.lax.ppermute(v, "x", [(0, 1), (1, 2), (2, 3), (3, 0)]) @ s.jnp.ones((8, 8)),
    lambda s: lambda v: s.lax.psum_scatter(s.jnp.tile(v, (4, 1)), "x", tiled=True),
    lambda s: lambda v: s.lax.scan(lambda c, t: (c + t, c * t), s.lax.psum(v, "x")[0] + v[0], v)[1],
    lambda s: lambda v: s.lax.cond(s.lax.axis_index("x") > 1, s.jnp.sin, s.jnp.cos, v),
    lambda s: lambda v: s.lax.fori_loop(0, 3, lambda i, c: c * v, v),
    lambda s: lambda v: s.jax.checkpoint(lambda q: s.jnp.sin(s.lax.psum(q * q, "x")) * q)(v),
    lambda s: lambda v: s.jax.vmap(lambda q: s.lax.psum(q * q, "x") / q, in_axes=1, out_axes=1)(v),
    lambda s: lambda v: s.with_custom_jvp(v) * s.lax.psum(s.with_custom_vjp(v), "x"),
]


def partial_cases(transform: str, check_vma: bool) -> list[Case]:
    def case(body):
        def program(jax):
            s = side(jax.__name__)
            return over_some_axes(jax, body(s), s.P("x"), s.P("x"), check_vma=check_vma)

        return transformed(Case(f"{expression(body)} {check_vma}", program, (A,)), transform)

    return [case(body) for body in BODIES]


@pytest.mark.parametrize("transform", ["plain", "vjp"])
def test_partially_manual_programs_under_transforms_equal_jax_s(transform, tier):
    plain = transform == "plain"
    sweep([c for check_vma in (True, False) for c in partial_cases(transform, check_vma)], tier, jaxpr=plain)


def programs(jax):
    """Nestings, and meshes of three axes of several types: name -> function of an array of 8 by 8."""
    s = side(jax.__name__)
    P, lax, jnp, kinds = s.P, s.lax, s.jnp, s.AxisType
    cube = jax.make_mesh((2, 2, 2), ("x", "y", "z"), axis_types=(kinds.Auto,) * 3, devices=s.devices)
    both = lambda f, *specs, **how: nested(jax, f, *specs, **how)  # noqa: E731
    deep = lambda v: jax.shard_map(  # noqa: E731
        lambda u: jax.shard_map(lambda w: w * lax.psum(w, ("x", "z")), in_specs=P("z"), out_specs=P("z"))(jnp.sin(u)),
        in_specs=P(None, "y"),
        out_specs=P(None, "y"),
        axis_names={"y"},
    )(v)
    return {
        "a product": both(lambda v: jnp.sin(v) * lax.axis_index("y"), P(None, "y"), P(None, "y")),
        "a sum over the outer": both(lambda v: lax.psum(v, "x") * v, P(None, "y"), P(None, "y")),
        "a sum over both": both(lambda v: lax.psum(v, ("x", "y"))[:, :1] * v, P(None, "y"), P(None, "y")),
        "an outer type": lambda v: both(lambda u: lax.psum(u, "y"), P(None, "y"), P())(v) * 2,
        "in scan": lambda v: lax.scan(lambda c, t: (both(jnp.sin, P(None, "y"), P(None, "y"))(c) + t, None), v, v)[0],
        "in checkpoint": jax.checkpoint(both(lambda u: jnp.sin(u) * u, P("y"), P("y"))),
        "three": over_some_axes(jax, deep, P("x"), P("x"), mesh=cube),
        "two of three": over_some_axes(
            jax, lambda v: lax.psum(v, "z") + v, P("x", "z"), P("x", "z"), ("x", "z"), mesh=cube
        ),
        "under vmap": lambda v: jax.vmap(over_some_axes(jax, lambda u: lax.psum(u, "x") * u, P("x"), P("x")))(
            v.reshape(2, 8, 4)
        ),
        "spread": lambda v: jax.vmap(
            jax.grad(lambda u: over_some_axes(jax, lambda w: jnp.sin(w.sum()), P("y"), P(), "xy", check_vma=False)(u)),
            spmd_axis_name="x",
        )(v),
        "spread checked": lambda v: jax.vmap(
            jax.grad(lambda u: over_some_axes(jax, lambda w: jnp.sin(lax.psum(w.sum(), "y")), P("y"), P(), "xy")(u)),
            spmd_axis_name="x",
        )(v),
    }


PLACES = tuple(programs(minijax))


def _at(place):
    return lambda jax: programs(jax)[place]


def test_nestings_equal_jax_s(tier):
    cases = [Case(place, _at(place), (A,)) for place in PLACES]
    sweep([case for case in cases if not case.name.startswith("spread")], tier)
    sweep([case for case in cases if case.name.startswith("spread")], tier, jaxpr=False)
    # jax cannot join residuals of the inner `shard_map` that vary over the outer axis: the test below covers those.
    able = ("under vmap", "two of three", "an outer type")
    sweep([transformed(case, "grad") for case in cases if case.name in able], tier, jaxpr=False)


def test_gradients_of_nestings_are_those_of_one_shard_map():
    s = side("minijax")
    P, lax, jnp = s.P, s.lax, s.jnp
    body = lambda v: jnp.sin(v) * lax.psum(jnp.cos(v), ("x", "y")) * (1 + lax.axis_index("y"))  # noqa: E731
    twice = nested(minijax, body, P(None, "y"), P(None, "y"))
    once = minijax.shard_map(body, mesh=s.mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))
    a = jnp.asarray(A)
    # jax cannot transpose the nested one: its residuals are joined over the outer axis too.
    for how in (minijax.jit, minijax.checkpoint):
        grads = [minijax.grad(lambda x, f=f: (f(x) ** 2).sum())(a) for f in map(how, (twice, once))]
        np.testing.assert_allclose(*grads, rtol=1e-5, atol=1e-5)


EXPLICIT = {
    "rows_over_both": lambda s: s.shard(numbers(8, 4), ("x", "y"), mesh=s.explicit_mesh),
    "mixed_mesh": lambda s: s.jax.make_mesh(
        (2, 2, 2), ("x", "y", "z"), axis_types=(s.AxisType.Auto, s.AxisType.Explicit, s.AxisType.Auto)
    ),
    "shard_map": lambda s: (
        lambda f, ins, outs, axes, mesh=None: s.jax.shard_map(
            f, mesh=mesh or s.explicit_mesh, in_specs=ins, out_specs=outs, axis_names=set(axes)
        )
    ),
    "shard_map_of_types": lambda s: (
        lambda f, outs, axes: s.jax.shard_map(f, mesh=s.explicit_mesh, out_specs=outs, axis_names=set(axes))
    ),
    # The jaxpr, and the type and the sharding of the result.
    "run_compiled": lambda s: (
        lambda f, x: [compare._unwrapped(s.jaxpr(f, x)), *(lambda y: [str(s.jax.typeof(y)), y])(s.jax.jit(f)(x))]
    ),
}


def test_over_explicit_axes():
    same(
        [
            lambda s: s.run_compiled(s.shard_map(lambda v: v * 2, s.P("x"), s.P("x"), "x"), s.sharded_both),
            lambda s: s.run_compiled(
                s.shard_map(lambda v: s.lax.psum(v * 2, "x"), s.P("x"), s.P(), "x"), s.sharded_both
            ),
            lambda s: s.run_compiled(s.shard_map(lambda v: v.sum(1), s.P("x", None), s.P("x"), "x"), s.sharded_both),
            lambda s: s.run_compiled(
                s.shard_map(lambda v: s.jnp.sin(v) @ s.jnp.ones((4, 2)), s.P("x"), s.P("x"), "x"), s.sharded_rows
            ),
            lambda s: s.run_compiled(s.shard_map_of_types(lambda v: v + 1, s.P("x"), "x"), s.sharded_both),
            lambda s: s.run_compiled(s.shard_map_of_types(lambda v: v + 1, s.P("x"), "x"), s.rows_over_both),
            lambda s: s.run_compiled(s.shard_map_of_types(lambda v: v * 2, s.P(None, "y"), "y"), s.sharded_both),
            lambda s: s.run_compiled(
                s.jax.vmap(s.shard_map(lambda v: s.lax.psum(v, "y") + v, s.P("y"), s.P("y"), "")), s.sharded_both
            ),
            lambda s: s.run_compiled(s.jax.vmap(s.shard_map(lambda v: v * 2, s.P("y"), s.P("y"), "y")), s.sharded_both),
            lambda s: s.run_compiled(
                s.shard_map(
                    lambda v: s.jax.shard_map(
                        lambda u: u * s.lax.axis_index("y"), out_specs=s.P(None, "y"), axis_names={"y"}
                    )(v),
                    s.P("x"),
                    s.P("x"),
                    "x",
                ),
                s.sharded_both,
            ),
            lambda s: s.jaxpr(
                s.shard_map(lambda v: v + 1, s.P("x"), s.P("x"), "x", s.mixed_mesh),
                s.jax.device_put(numbers(8, 4), s.NamedSharding(s.mixed_mesh, s.P(None, "y"))),
            ),
            lambda s: s.text(
                s.shard_map(lambda v: v + 1, s.P("y"), s.P("y"), "y", s.mixed_mesh),
                s.jax.device_put(numbers(8, 4), s.NamedSharding(s.mixed_mesh, s.P("y"))),
            ),
            lambda s: [
                s.shard_map(
                    lambda v: print(s.jax.typeof(v), s.jax.sharding.get_abstract_mesh().axis_types) or v,
                    s.P("x"),
                    s.P("x"),
                    "x",
                )(s.sharded_both)
            ],
        ],
        **EXPLICIT,
    )


def test_smap_and_shard_map_over_the_set_mesh():
    same(
        [
            lambda s: [
                s.jax.smap(lambda v: v * 2, in_axes=a, out_axes=a, axis_name=n)(x)
                for a, n, x in ((0, "x", s.sharded_both), (1, "y", s.sharded_both))
            ],
            lambda s: [
                s.jax.smap(lambda v: v * 2, out_axes=1, axis_name="y")(s.sharded_both),
                s.jax.jit(s.jax.smap(s.jnp.sin, out_axes=0, axis_name="x"))(s.sharded_both),
            ],
            lambda s: s.jaxpr(
                s.jax.smap(
                    s.jax.smap(lambda v: s.lax.psum(v, ("x", "y")), in_axes=1, out_axes=None, axis_name="y"),
                    in_axes=0,
                    out_axes=None,
                    axis_name="x",
                ),
                s.sharded_both,
            ),
            lambda s: s.jaxpr(
                s.jax.smap(s.jax.smap(lambda v: v * 2, out_axes=1, axis_name="y"), out_axes=0, axis_name="x"),
                s.sharded_both,
            ),
            lambda s: s.jaxpr(s.jax.shard_map(lambda v: v * 2, out_specs=s.P("x", "y")), s.sharded_both),
            lambda s: s.jaxpr(
                s.jax.shard_map(lambda v: v * 2, mesh=s.jax.sharding.get_abstract_mesh(), out_specs=s.P("x", "y")),
                s.sharded_both,
            ),
            lambda s: s.jax.vmap(s.jax.shard_map(lambda v: s.lax.psum(v, "y"), in_specs=s.P("y"), out_specs=s.P(None)))(
                s.sharded_both
            ),
        ],
        "explicit_mesh",
        **EXPLICIT,
    )


def test_callbacks_and_constraints_inside(capfd):
    s = side("minijax")
    P, jnp, lax = s.P, s.jnp, s.lax

    def shown(v):
        minijax.debug.print("{}", v[0, 0] * 0)
        return lax.with_sharding_constraint(v, P(None, "y")) * lax.axis_index("x")

    f = minijax.jit(over_some_axes(minijax, shown, P("x"), P("x")))
    np.testing.assert_array_equal(f(jnp.asarray(A)), A * (np.arange(8)[:, None] // 2))
    minijax.effects_barrier()
    assert capfd.readouterr().out.split("\n") == ["0.0"] * 4 + [""]  # one of the devices along `y` prints
    same(
        [
            lambda s: s.text(
                s.shard_map(lambda v: s.lax.with_sharding_constraint(v, s.P(None, "y")), s.P("x"), s.P("x")),
                s.auto_matrix,
            ),
            lambda s: s.text(s.shard_map(lambda v: v * s.lax.axis_index("x"), s.P("x"), s.P("x")), s.auto_matrix),
            lambda s: s.jax.jit(
                lambda v: s.lax.with_sharding_constraint(v, s.NamedSharding(s.mesh_of_8, s.P("i"))) * 2
            )(np.arange(3.0)).tolist(),
        ],
        shard_map=lambda s: lambda f, ins, outs: over_some_axes(s.jax, f, ins, outs),
    )


def test_wrong_axes_are_refused():
    same_errors(
        [
            (
                lambda s: s.shard_map(lambda v: v, s.P("x", "y"), s.P("x"))(s.auto_matrix),
                "refer to an axis marked as manual",
            ),
            (
                lambda s: s.shard_map(lambda v: v, s.P("x"), s.P("x", "y"))(s.auto_matrix),
                "refer to an axis marked as manual",
            ),
            (
                lambda s: s.shard_map(lambda v: s.lax.psum(v, "y"), s.P("x"), s.P("x"))(s.auto_matrix),
                "Found an unbound axis name",
            ),
            (
                lambda s: s.shard_map(lambda v: v, s.P("x"), s.P("x"), "q")(s.auto_matrix),
                "to be a subset of mesh.axis_names",
            ),
            (
                lambda s: s.shard_map(
                    lambda v: s.jax.shard_map(lambda u: u, mesh=s.mesh, in_specs=s.P(), out_specs=s.P())(v),
                    s.P("x"),
                    s.P("x"),
                )(s.auto_matrix),
                "should match",
            ),
            (
                lambda s: s.shard_map(
                    lambda v: s.jax.shard_map(lambda u: u, in_specs=s.P("x"), out_specs=s.P(), axis_names={"y"})(v),
                    s.P("x"),
                    s.P("x"),
                )(s.auto_matrix),
                "manual",
            ),
            (
                lambda s: s.jax.vmap(s.shard_map(lambda v: v, s.P("x"), s.P("x")), spmd_axis_name="x")(s.auto_matrix),
                "spmd_axis_name cannot appear in",
            ),
            (
                lambda s: s.jax.jit(s.shard_map(lambda v: s.jax.pure_callback(np.sin, v, v), s.P("x"), s.P("x")))(
                    s.auto_matrix
                ),
                "callbacks are only supported",
            ),
            (
                lambda s: s.shard_map(lambda v: s.lax.with_sharding_constraint(v, s.P("x")), s.P("x"), s.P("x"))(
                    s.auto_matrix
                ),
                "can only refer to Auto axes of the mesh",
            ),
            (
                lambda s: s.jax.shard_map(
                    lambda v: v, mesh=s.mesh.abstract_mesh, in_specs=s.P("x"), out_specs=s.P("x")
                )(np.ones(8)),
                "`NamedSharding` as input to",
            ),
            (
                lambda s: s.jax.shard_map(
                    lambda v: v, mesh=s.mesh_of_8.abstract_mesh, in_specs=s.P("i"), out_specs=s.P("i")
                )(s.auto_matrix),
                "does not match the mesh shape passed to",
            ),
        ],
        shard_map=lambda s: lambda f, ins, outs, axes=("x",): over_some_axes(s.jax, f, ins, outs, axes),
    )


def test_arguments_without_a_spec_are_forwarded():
    same(
        [
            lambda s: [
                s.jax.shard_map(
                    lambda v, n: v * s.jnp.ones(n), mesh=s.mesh, in_specs=(s.P("x"), None), out_specs=s.P("x")
                )(s.auto_vector, (2,))
            ],
            lambda s: s.jaxpr(
                lambda x, w: s.jax.shard_map(
                    lambda v, w: v + w, mesh=s.mesh, in_specs=(s.P("x"), None), out_specs=s.P("x")
                )(x, w),
                s.auto_vector,
                2.0,
            ),
            lambda s: s.jax.shard_map(
                lambda d, x: [type(d["k"]).__name__ == "object"] and x,
                mesh=s.mesh,
                in_specs=(None, s.P()),
                out_specs=s.P(),
            )({"k": object()}, s.auto_vector),
        ]
    )
