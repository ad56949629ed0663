"""`shard_map` over some axes of a mesh, and inside another one: jaxprs, texts, types and values are jax's."""

import compare
import numpy as np
import pytest
from compare import Case, sweep
from mesh_language import names_of, numbers, same, same_errors
from transform_matrix import transformed

import minijax

pytestmark = pytest.mark.oracle

A = numbers(8, 8)


def some(jax, f, ins, outs, axes=("x",), **options):
    """`f` under `shard_map` over the axes `axes` of the mesh of 4 by 2 devices."""
    mesh = options.pop("mesh", names_of(jax)["m"])
    return jax.shard_map(f, mesh=mesh, in_specs=ins, out_specs=outs, axis_names=set(axes), **options)


def nested(jax, f, ins, outs, **options):
    """`f` over both axes, one `shard_map` inside the other, from specs of the inner one."""
    P = names_of(jax)["P"]
    inner = lambda v: jax.shard_map(f, in_specs=ins, out_specs=outs, axis_names={"y"})(v)  # noqa: E731
    return some(jax, inner, P("x"), P("x"), **options)


BODIES = """
lambda v: v * 2 + jnp.sin(v).sum(1, keepdims=True)
lambda v: lax.psum(v * v, 'x') * v
lambda v: lax.all_gather(v, 'x', tiled=True)[:2] * lax.axis_index('x')
lambda v: lax.ppermute(v, 'x', [(0, 1), (1, 2), (2, 3), (3, 0)]) @ jnp.ones((8, 8))
lambda v: lax.psum_scatter(jnp.tile(v, (4, 1)), 'x', tiled=True)
lambda v: lax.scan(lambda c, t: (c + t, c * t), lax.psum(v, 'x')[0] + v[0], v)[1]
lambda v: lax.cond(lax.axis_index('x') > 1, jnp.sin, jnp.cos, v)
lambda v: lax.fori_loop(0, 3, lambda i, c: c * v, v)
lambda v: jax.checkpoint(lambda q: jnp.sin(lax.psum(q * q, 'x')) * q)(v)
lambda v: jax.vmap(lambda q: lax.psum(q * q, 'x') / q, in_axes=1, out_axes=1)(v)
lambda v: custom(v) * lax.psum(bent(v), 'x')
"""


def partial_cases(transform: str, check_vma: bool) -> list[Case]:
    def case(body):
        def program(jax):
            names = names_of(jax)
            P = names["P"]
            return some(jax, eval(body, names), P("x"), P("x"), check_vma=check_vma)

        return transformed(Case(f"{body} {check_vma}", program, (A,)), transform)

    return [case(body) for body in BODIES.strip().splitlines()]


@pytest.mark.parametrize("transform", ["plain", "vjp"])
def test_some_axes_under_transforms_equal_jax_s(transform, tier):
    plain = transform == "plain"
    sweep([c for check_vma in (True, False) for c in partial_cases(transform, check_vma)], tier, jaxpr=plain)


def programs(jax):
    """Nestings, and meshes of three axes of several types: name -> function of an array of 8 by 8."""
    n = names_of(jax)
    P, lax, jnp, kinds = n["P"], n["lax"], n["jnp"], jax.sharding.AxisType
    cube = jax.make_mesh((2, 2, 2), ("x", "y", "z"), axis_types=(kinds.Auto,) * 3, devices=n["d"])
    both = lambda f, *specs, **how: nested(jax, f, *specs, **how)  # noqa: E731
    deep = lambda v: jax.shard_map(  # noqa: E731
        lambda u: jax.shard_map(lambda w: w * lax.psum(w, ("x", "z")), in_specs=P("z"), out_specs=P("z"))(jnp.sin(u)),
        in_specs=P(None, "y"), out_specs=P(None, "y"), axis_names={"y"},
    )(v)  # fmt: skip
    return {
        "a product": both(lambda v: jnp.sin(v) * lax.axis_index("y"), P(None, "y"), P(None, "y")),
        "a sum over the outer": both(lambda v: lax.psum(v, "x") * v, P(None, "y"), P(None, "y")),
        "a sum over both": both(lambda v: lax.psum(v, ("x", "y"))[:, :1] * v, P(None, "y"), P(None, "y")),
        "an outer type": lambda v: both(lambda u: lax.psum(u, "y"), P(None, "y"), P())(v) * 2,
        "in scan": lambda v: lax.scan(lambda c, t: (both(jnp.sin, P(None, "y"), P(None, "y"))(c) + t, None), v, v)[0],
        "in checkpoint": jax.checkpoint(both(lambda u: jnp.sin(u) * u, P("y"), P("y"))),
        "three": some(jax, deep, P("x"), P("x"), mesh=cube),
        "two of three": some(jax, lambda v: lax.psum(v, "z") + v, P("x", "z"), P("x", "z"), ("x", "z"), mesh=cube),
        "under vmap": lambda v: jax.vmap(some(jax, lambda u: lax.psum(u, "x") * u, P("x"), P("x")))(v.reshape(2, 8, 4)),
        "spread": lambda v: jax.vmap(
            jax.grad(lambda u: some(jax, lambda w: jnp.sin(w.sum()), P("y"), P(), "xy", check_vma=False)(u)),
            spmd_axis_name="x",
        )(v),
        "spread checked": lambda v: jax.vmap(
            jax.grad(lambda u: some(jax, lambda w: jnp.sin(lax.psum(w.sum(), "y")), P("y"), P(), "xy")(u)),
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
    # jax cannot join residuals of the inner one that vary over the outer axis: those are compared with a whole one.
    able = ("under vmap", "two of three", "an outer type")
    sweep([transformed(case, "grad") for case in cases if case.name in able], tier, jaxpr=False)


def test_gradients_of_nestings_are_those_of_one_shard_map():
    n = names_of(minijax)
    P, lax, jnp = n["P"], n["lax"], n["jnp"]
    body = lambda v: jnp.sin(v) * lax.psum(jnp.cos(v), ("x", "y")) * (1 + lax.axis_index("y"))  # noqa: E731
    twice = nested(minijax, body, P(None, "y"), P(None, "y"))
    once = minijax.shard_map(body, mesh=n["m"], in_specs=P("x", "y"), out_specs=P("x", "y"))
    a = jnp.asarray(A)
    # jax cannot transpose the nested one: its residuals are joined over the outer axis too.
    for how in (minijax.jit, minijax.checkpoint):
        grads = [minijax.grad(lambda x, f=f: (f(x) ** 2).sum())(a) for f in map(how, (twice, once))]
        np.testing.assert_allclose(*grads, rtol=1e-5, atol=1e-5)


EXPLICIT = {
    "e": lambda s: s.put(numbers(8, 4), "x", "y", mesh=s.explicit),
    "r": lambda s: s.put(numbers(8, 4), "x", mesh=s.explicit),
    "both": lambda s: s.put(numbers(8, 4), ("x", "y"), mesh=s.explicit),
    "mixed": lambda s: s.jax.make_mesh(
        (2, 2, 2), ("x", "y", "z"), axis_types=(s.AxisType.Auto, s.AxisType.Explicit, s.AxisType.Auto)
    ),
    "sm": lambda s: lambda f, ins, outs, axes, mesh=None: s.jax.shard_map(
        f, mesh=mesh or s.explicit, in_specs=ins, out_specs=outs, axis_names=set(axes)
    ),
    "out": lambda s: lambda f, outs, axes: s.jax.shard_map(f, mesh=s.explicit, out_specs=outs, axis_names=set(axes)),
    # The jaxpr, and the type and the layout of the result.
    "run": lambda s: lambda f, x: [compare._unwrapped(s.jaxpr(f, x)), *(lambda y: [str(s.jax.typeof(y)), y])(s.jax.jit(f)(x))],
}  # fmt: skip


def test_over_explicit_axes():
    same(
        """
        run(sm(lambda v: v * 2, P('x'), P('x'), 'x'), e)
        run(sm(lambda v: lax.psum(v * 2, 'x'), P('x'), P(), 'x'), e)
        run(sm(lambda v: v.sum(1), P('x', None), P('x'), 'x'), e)
        run(sm(lambda v: jnp.sin(v) @ jnp.ones((4, 2)), P('x'), P('x'), 'x'), r)
        run(out(lambda v: v + 1, P('x'), 'x'), e)
        run(out(lambda v: v + 1, P('x'), 'x'), both)
        run(out(lambda v: v * 2, P(None, 'y'), 'y'), e)
        run(jax.vmap(sm(lambda v: lax.psum(v, 'y') + v, P('y'), P('y'), '')), e)
        run(jax.vmap(sm(lambda v: v * 2, P('y'), P('y'), 'y')), e)
        run(sm(lambda v: jax.shard_map(lambda u: u * lax.axis_index('y'), out_specs=P(None, 'y'), axis_names={'y'})(v), P('x'), P('x'), 'x'), e)
        jaxpr(sm(lambda v: v + 1, P('x'), P('x'), 'x', mixed), jax.device_put(numbers(8, 4), NS(mixed, P(None, 'y'))))
        text(sm(lambda v: v + 1, P('y'), P('y'), 'y', mixed), jax.device_put(numbers(8, 4), NS(mixed, P('y'))))
        [sm(lambda v: print(jax.typeof(v), jax.sharding.get_abstract_mesh().axis_types) or v, P('x'), P('x'), 'x')(e)]
        """,
        **EXPLICIT,
    )


def test_the_mesh_that_is_set():
    same(
        """
        [jax.smap(lambda v: v * 2, in_axes=a, out_axes=a, axis_name=n)(x) for a, n, x in ((0, 'x', e), (1, 'y', e))]
        [jax.smap(lambda v: v * 2, out_axes=1, axis_name='y')(e), jax.jit(jax.smap(jnp.sin, out_axes=0, axis_name='x'))(e)]
        jaxpr(jax.smap(jax.smap(lambda v: lax.psum(v, ('x', 'y')), in_axes=1, out_axes=None, axis_name='y'), in_axes=0, out_axes=None, axis_name='x'), e)
        jaxpr(jax.smap(jax.smap(lambda v: v * 2, out_axes=1, axis_name='y'), out_axes=0, axis_name='x'), e)
        jaxpr(jax.shard_map(lambda v: v * 2, out_specs=P('x', 'y')), e)
        jaxpr(jax.shard_map(lambda v: v * 2, mesh=jax.sharding.get_abstract_mesh(), out_specs=P('x', 'y')), e)
        jax.vmap(jax.shard_map(lambda v: lax.psum(v, 'y'), in_specs=P('y'), out_specs=P(None)))(e)
        """,
        "explicit",
        **EXPLICIT,
    )


def test_callbacks_and_constraints_inside(capfd):
    n = names_of(minijax)
    P, jnp, lax = n["P"], n["jnp"], n["lax"]

    def shown(v):
        minijax.debug.print("{}", v[0, 0] * 0)
        return lax.with_sharding_constraint(v, P(None, "y")) * lax.axis_index("x")

    f = minijax.jit(some(minijax, shown, P("x"), P("x")))
    np.testing.assert_array_equal(f(jnp.asarray(A)), A * (np.arange(8)[:, None] // 2))
    minijax.effects_barrier()
    assert capfd.readouterr().out.split("\n") == ["0.0"] * 4 + [""]  # one of the devices along `y` prints
    same(
        """
        text(sm(lambda v: lax.with_sharding_constraint(v, P(None, 'y')), P('x'), P('x')), a)
        text(sm(lambda v: v * lax.axis_index('x'), P('x'), P('x')), a)
        jax.jit(lambda v: lax.with_sharding_constraint(v, NS(m8, P('i'))) * 2)(np.arange(3.)).tolist()
        """,
        sm=lambda s: lambda f, ins, outs: some(s.jax, f, ins, outs),
    )


def test_what_is_refused():
    same_errors(
        [
            ("sm(lambda v: v, P('x', 'y'), P('x'))(a)", "refer to an axis marked as manual"),
            ("sm(lambda v: v, P('x'), P('x', 'y'))(a)", "refer to an axis marked as manual"),
            ("sm(lambda v: lax.psum(v, 'y'), P('x'), P('x'))(a)", "Found an unbound axis name"),
            ("sm(lambda v: v, P('x'), P('x'), 'q')(a)", "to be a subset of mesh.axis_names"),
            ("sm(lambda v: jax.shard_map(lambda u: u, mesh=m, in_specs=P(), out_specs=P())(v), P('x'), P('x'))(a)", "should match"),
            ("sm(lambda v: jax.shard_map(lambda u: u, in_specs=P('x'), out_specs=P(), axis_names={'y'})(v), P('x'), P('x'))(a)", "manual"),
            ("jax.vmap(sm(lambda v: v, P('x'), P('x')), spmd_axis_name='x')(a)", "spmd_axis_name cannot appear in"),
            ("jax.jit(sm(lambda v: jax.pure_callback(np.sin, v, v), P('x'), P('x')))(a)", "callbacks are only supported"),
            ("sm(lambda v: lax.with_sharding_constraint(v, P('x')), P('x'), P('x'))(a)", "can only refer to Auto axes of the mesh"),
            ("jax.shard_map(lambda v: v, mesh=m.abstract_mesh, in_specs=P('x'), out_specs=P('x'))(np.ones(8))", "`NamedSharding` as input to"),
            ("jax.shard_map(lambda v: v, mesh=m8.abstract_mesh, in_specs=P('i'), out_specs=P('i'))(a)", "does not match the mesh shape passed to"),
        ],
        sm=lambda s: lambda f, ins, outs, axes=("x",): some(s.jax, f, ins, outs, axes),
    )  # fmt: skip


def test_arguments_without_a_spec_are_handed_on():
    same(
        """
        [jax.shard_map(lambda v, n: v * jnp.ones(n), mesh=m, in_specs=(P('x'), None), out_specs=P('x'))(v, (2,))]
        jaxpr(lambda x, w: jax.shard_map(lambda v, w: v + w, mesh=m, in_specs=(P('x'), None), out_specs=P('x'))(x, w), v, 2.)
        jax.shard_map(lambda d, x: [type(d['k']).__name__ == 'object'] and x, mesh=m, in_specs=(None, P()), out_specs=P())({'k': object()}, v)
        """
    )
