"""`shard_map`: jaxprs, texts and values under transforms, against jax."""

import importlib
import re
from collections.abc import Callable
from functools import partial

import compare
import numpy as np
import pytest
from compare import Case, sweep
from mesh_language import expression, numbers, same, side
from transform_matrix import transformed

import minijax

pytestmark = pytest.mark.oracle

A, V = numbers(8, 8), numbers(8)


def mapped(row: Callable, check_vma: bool, args: tuple, name: str = "", sizes: tuple | None = None) -> Case:
    """The case of a row, which returns `in_specs`, `out_specs` and a function; on 4 by 2 devices."""

    def program(jax):
        s = side(jax.__name__)
        in_specs, out_specs, function = row(s)
        mesh = s.mesh if sizes is None else s.auto_mesh(sizes, ("x", "y"))
        return jax.shard_map(function, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_vma)

    return Case(f"{expression(row)} vma={check_vma} {name}", program, args)


# Linear and other collectives of one array of 8 by 8.
BODIES = [
    lambda s: (s.P("x"), s.P(), lambda v: s.lax.psum(v, "x")),
    lambda s: (s.P("x", "y"), s.P(), lambda v: s.jnp.sin(s.lax.psum(v * v, ("x", "y")))),
    lambda s: (s.P("x"), s.P("x"), lambda v: s.lax.psum(v, "x") * v),
    lambda s: (s.P("x"), s.P("x"), lambda v: s.lax.all_gather(s.jnp.sin(v), "x").sum(0)),
    lambda s: (s.P("x"), s.P(None, "x"), lambda v: s.lax.all_gather(v, "x", axis=1, tiled=True)),
    lambda s: (s.P(None, "y"), s.P("x", "y"), lambda v: s.lax.psum_scatter(v * v, "x", tiled=True)),
    lambda s: (
        s.P("y", None),
        s.P(("y", "x")),
        lambda v: s.lax.psum_scatter(s.jnp.sin(v), "x", scatter_dimension=0)[:, None],
    ),
    lambda s: (s.P("x"), s.P(None, "x"), lambda v: s.lax.all_to_all(v * v, "x", 1, 0, tiled=True)),
    lambda s: (s.P("x"), s.P("x"), lambda v: s.lax.all_to_all(s.jnp.sin(v.reshape(2, 4, 2)), "x", 1, 1).reshape(2, 8)),
    lambda s: (s.P("x"), s.P("x"), lambda v: v * s.lax.ppermute(v, "x", [(0, 1), (1, 2), (2, 3), (3, 0)])),
    lambda s: (s.P("x"), s.P("x"), lambda v: s.lax.ppermute(s.jnp.sin(v), "x", [(0, 1), (1, 2)])),
    lambda s: (s.P("x", "y"), s.P("x", "y"), lambda v: v * s.lax.axis_index(("x", "y")).astype(v.dtype)),
    lambda s: (s.P(("x", "y")), s.P(("x", "y")), lambda v: s.jnp.cos(v)),
    lambda s: (s.P(("y", "x")), s.P(None, ("x", "y")), lambda v: v.T),
    lambda s: (s.P(None, ("y", "x")), s.P("y", "x"), lambda v: s.lax.psum(v, "x")[:4, :1] * v.sum()),
    lambda s: (s.P("x"), s.P("x"), lambda v: v.sum()[None]),
    lambda s: (s.P("x"), s.P(("y", "x")), lambda v: s.lax.psum(v.sum(1), "x") * v[:, 0]),
    lambda s: (s.P("x"), (s.P(), {"k": s.P("x")}), lambda v: (s.lax.psum(v.sum(), "x"), {"k": s.jnp.exp(v)})),
]
# jax saves a number as a residual of these.
LITERALS = [
    lambda s: (s.P("x", "y"), s.P(None, "y"), lambda v: s.lax.pmean(s.jnp.sin(v), "x")),
    lambda s: (s.P(), s.P("x"), lambda v: v * 2),
]
CONTROL = [
    lambda s: (
        s.P("x"),
        (s.P(), s.P("x")),
        lambda v: s.lax.scan(lambda c, t: (c + s.lax.psum(t, "x"), s.jnp.sin(c) * t), s.jnp.zeros(8), v),
    ),
    lambda s: (s.P("x"), s.P("x"), lambda v: s.lax.fori_loop(0, 3, lambda i, c: c * v, v)),
    lambda s: (s.P("x"), s.P("x"), lambda v: s.lax.cond(s.lax.axis_index("x") > 1, s.jnp.sin, s.jnp.cos, v)),
    lambda s: (s.P("x"), s.P("x"), lambda v: s.jax.jit(lambda q: q * s.lax.psum(s.jnp.where(q > 0, q, 1.0), "x"))(v)),
    lambda s: (s.P("x"), s.P("x"), lambda v: s.jax.checkpoint(lambda q: s.jnp.sin(s.lax.psum(q * q, "x")) * q)(v)),
    lambda s: (
        s.P("x"),
        s.P("x"),
        lambda v: s.jax.vmap(lambda q: s.lax.psum(q * q, "x") / q, in_axes=1, out_axes=1)(v),
    ),
    lambda s: (s.P("x"), s.P("x"), lambda v: s.jax.nn.relu(v) * s.jax.nn.silu(v)),
    lambda s: (s.P("x"), s.P("x"), lambda v: v + np.arange(8, dtype=np.float32)),
    lambda s: (s.P("x"), s.P("x"), lambda v: s.with_custom_jvp(v) * s.lax.psum(s.with_custom_vjp(v), "x")),
]
OF_ANY_DTYPE = [
    lambda s: (s.P("x"), (s.P(), s.P()), lambda v: (s.lax.psum(v, "x"), s.lax.psum(1, "x"))),
    lambda s: (s.P("x"), s.P("x"), lambda v: s.lax.all_gather(v, "x", tiled=True)[:2]),
    lambda s: (s.P("x"), s.P("x"), lambda v: s.lax.ppermute(v, "x", [(0, 3), (3, 0)])),
    lambda s: (s.P("x"), s.P(None, "x"), lambda v: s.lax.all_to_all(v, "x", 1, 0, tiled=True)),
]
OF_ORDERED_DTYPES = [lambda s: (s.P("x"), s.P(), lambda v: (s.lax.pmax(v, "x"), s.lax.pmin(v, "x")))]


def cases(table: list[Callable], transforms: str, check_vma: bool) -> list[Case]:
    return [transformed(mapped(row, check_vma, (A,)), name) for row in table for name in transforms.split()]


BOTH = pytest.mark.parametrize("check_vma", [True, False])


@BOTH
@pytest.mark.parametrize("transforms", ["plain vmap", "grad jvp", "linearize vjp", "vmap_of_grad grad_of_vmap"])
def test_collectives_under_transforms_equal_jax_s(transforms, check_vma, tier):
    sweep(cases(BODIES, transforms, check_vma), tier)


@BOTH
@pytest.mark.parametrize("transforms", ["plain vmap jvp checkpoint"])
def test_control_flow_under_transforms_equals_jax_s(transforms, check_vma, tier):
    sweep(cases(CONTROL, transforms, check_vma), tier)


# jax's jaxprs have unused equations: counters of loops, numbers as residuals.
@BOTH
@pytest.mark.parametrize("transforms", ["grad linearize", "vmap_of_grad grad_of_checkpoint"])
def test_derivatives_of_control_flow_equal_jax_s(transforms, check_vma, tier):
    sweep(cases(CONTROL + LITERALS, transforms, check_vma), tier, jaxpr=False)


def over_all_axes(jax, f, ins, outs, mesh=None, **options):
    """`f` under `shard_map` that is manual over all axes of the mesh."""
    return jax.shard_map(f, mesh=mesh or side(jax.__name__).mesh, in_specs=ins, out_specs=outs, **options)


def other_places(jax):
    """Programs with `shard_map` inside other higher-order functions, and the other way round: name -> function."""
    n = side(jax.__name__)
    P, lax, jnp = n.P, n.lax, n.jnp
    rows = over_all_axes(jax, lambda v: lax.psum(jnp.sin(v), "x") * v, P("x"), P("x"))
    plain = over_all_axes(jax, lambda v: jnp.cos(v) * 2, P("x"), P("x"))
    two = over_all_axes(jax, lambda v: lax.pmax(v, "y"), P("y"), P(), mesh=n.mesh_of_4)
    back = over_all_axes(jax, lambda v: lax.ppermute(v, "x", [(0, 1), (1, 0)]), P("x"), P("x"), mesh=n.reversed_mesh)
    return {
        "in scan": lambda v: lax.scan(lambda c, t: (rows(c) + t, c.sum()), v, jnp.ones((3, 8, 8))),
        "in cond": lambda v: lax.cond(v.sum() > 3, rows, plain, v),
        "in while": lambda v: lax.while_loop(lambda c: c.sum() < 100, lambda c: plain(c) + 1 + c, v),
        "in checkpoint": jax.checkpoint(lambda v: jnp.sin(rows(rows(v)))),
        "in custom_vjp": lambda v: n.with_custom_vjp(rows(v)),
        "in jit in jit": jax.jit(lambda v: jax.jit(lambda q: rows(q) + 1)(v) * 2),
        "in vmap over devices": lambda v: jax.vmap(
            over_all_axes(jax, lambda q: lax.psum(q, "x"), P("x"), P()), spmd_axis_name="y"
        )(v[:2]),
        "of a key": lambda v: over_all_axes(jax, lambda k, q: q * jax.random.normal(k, (2, 8)), (P(), P("x")), P("x"))(
            jax.random.key(3), v
        ),
        "with a closure": lambda v: over_all_axes(jax, lambda q: q + v, P("x"), P("x"))(jnp.ones((32, 8))),
        "of nothing": lambda v: over_all_axes(jax, lambda: lax.axis_index(("y", "x"))[None], (), P(("x", "y")))(),
        "of a tree": lambda v: over_all_axes(jax, lambda d: {"s": d["a"] + d["b"]}, ({"a": P("x"), "b": P()},), P("x"))(
            {"a": v, "b": 1.0}
        ),
        "of unsharded axes": lambda v: over_all_axes(jax, lambda q: q * 2, P(None, None), P(None, None))(v),
        "on four devices": lambda v: two(v),
        "on devices backwards": lambda v: back(v),
        "of empty shards": lambda v: over_all_axes(jax, lambda q: lax.psum(q, "x"), P("x"), P())(v[:, :0]),
        "of scalars": lambda v: over_all_axes(jax, lambda a, b: lax.psum(a * b, "y"), (P(), P()), P())(v[0, 0], 2),
    }


def _at(place):
    return lambda jax: other_places(jax)[place]


PLACES = tuple(other_places(importlib.import_module("minijax")))


@pytest.mark.parametrize("transform", ["plain", "grad", "vmap", "jvp"])
def test_shard_map_inside_other_functions_equals_jax_s(transform, tier):
    left_out = {"grad": ("of nothing", "in while"), "vmap": ("in vmap over devices",)}.get(transform, ())
    cases = [Case(place, _at(place), (A,)) for place in PLACES if place not in left_out]
    sweep([transformed(case, transform) for case in cases], tier, jaxpr=transform == "plain")


@BOTH
@pytest.mark.parametrize("dtype", ["int32", "bool", "complex64", "bfloat16", "float16", "uint8"])
def test_collectives_of_any_dtype_equal_jax_s(dtype, check_vma, tier):
    table = OF_ANY_DTYPE if dtype == "complex64" else OF_ANY_DTYPE + OF_ORDERED_DTYPES
    args = ((A > 2) if dtype == "bool" else A.astype(dtype),)
    cases = [mapped(row, check_vma, args, dtype) for row in table]
    sweep(cases, tier)


@pytest.mark.parametrize("check_vma", [False, True])
def test_on_one_device_nothing_is_sharded(check_vma, tier):
    fitting = [row for row in BODIES if not re.search("scatter_dim|all_to_all|ppermute", expression(row))]
    cases = [mapped(row, check_vma, (A,), "one", (1, 1)) for row in fitting + CONTROL]
    for case in cases:
        assert "sdy." not in compare.lowered_text(minijax, case.program(minijax), case.args)
    sweep(cases, tier)
    sweep([transformed(case, name) for case in cases for name in ("vjp", "vmap")], tier, jaxpr=False)


def test_many_nestings_equal_jax_s():
    same(
        [
            lambda s: s.jax.hessian(
                lambda p: s.shard_map(lambda q: s.lax.psum(s.jnp.sin(q).sum(), "x"), s.P("x"), s.P())(p)
            )(s.auto_vector),
            lambda s: s.jax.jacfwd(
                s.jax.jacrev(s.shard_map(lambda q: s.jnp.sin(q) * s.lax.psum(q.sum(), "x"), s.P("x"), s.P("x")))
            )(s.auto_vector),
            lambda s: s.jax.grad(
                lambda p: s.saving_everything(
                    s.shard_map(lambda q: s.jnp.sin(s.lax.psum(s.jnp.sin(q), "x")), s.P("x"), s.P())
                )(p).sum()
            )(s.auto_vector),
            lambda s: s.jax.grad(
                lambda p: s.saving_everything(
                    lambda p: s.jnp.sin(
                        s.shard_map(lambda q: s.jnp.sin(q).sum()[None] * 2, s.P("x"), s.P("x"))(s.jnp.cos(p))
                    )
                )(p).sum()
            )(s.auto_vector),
            lambda s: s.jax.grad(
                lambda p: s.lax.scan(
                    lambda c, _: (
                        s.jax.checkpoint(s.shard_map(lambda q: s.jnp.sin(q) * s.lax.psum(q, "x"), s.P("x"), s.P("x")))(
                            c
                        ),
                        None,
                    ),
                    p,
                    None,
                    length=3,
                )[0].sum()
            )(s.auto_vector),
            lambda s: s.jax.vmap(
                s.jax.grad(
                    lambda p: s.lax.cond(p.sum() > 0, s.shard_map(s.jnp.sin, s.P("x"), s.P("x")), s.jnp.cos, p).sum()
                )
            )(numbers(3, 8)),
            lambda s: s.jax.vmap(
                s.jax.vmap(s.shard_map(lambda q: s.lax.ppermute(q, "x", [(0, 1)]), s.P("x"), s.P("x"))), in_axes=2
            )(numbers(3, 8, 2)),
            lambda s: s.jax.vmap(
                lambda p: s.shard_map(lambda q: s.lax.psum(q, ("x", "b")), s.P("x"), s.P(), check_vma=False)(p),
                axis_name="b",
            )(numbers(3, 8)),
            lambda s: s.jax.linearize(
                s.shard_map(
                    lambda q, r: q * r + s.lax.pmax(s.lax.stop_gradient(q).sum(), "x"), (s.P("x"), s.P()), s.P("x")
                ),
                s.auto_vector,
                2.0,
            )[1](s.auto_vector, 1.0),
            lambda s: s.jax.vjp(
                s.shard_map(lambda q, r: {"a": q @ r, "b": r}, (s.P("x"), s.P()), {"a": s.P("x"), "b": s.P()}),
                s.auto_matrix,
                s.auto_matrix,
            )[1]({"a": s.auto_matrix, "b": s.auto_matrix}),
            lambda s: s.jax.grad(
                lambda p: s.jnp.abs(s.shard_map(lambda q: s.lax.psum(q * 1j, "x"), s.P("x"), s.P())(p)).sum()
            )(s.auto_vector + 0j),
            lambda s: s.shard_map(
                lambda q: s.lax.while_loop(lambda c: c[0] < s.lax.psum(2, "x"), lambda c: (c[0] + 1, c[1] * 2), (0, q))[
                    1
                ],
                s.P("x"),
                s.P("x"),
            )(s.auto_matrix),
            lambda s: s.shard_map(
                lambda k, q: s.jax.random.uniform(s.jax.random.fold_in(k, s.lax.axis_index("x")), q.shape) + q,
                (s.P(), s.P("x")),
                s.P("x"),
            )(s.jax.random.key(1), s.auto_vector),
            lambda s: s.shard_map(
                lambda q: s.lax.switch(s.lax.axis_index("x"), [lambda r: r, lambda r: -r, s.jnp.sin, s.jnp.cos], q),
                s.P("x"),
                s.P("x"),
            )(s.auto_vector),
            lambda s: s.shard_map(
                lambda q: (
                    s.lax.pshuffle(q, "x", [1, 0, 3, 2]) + s.lax.pswapaxes(s.jnp.broadcast_to(q, (4, 2)), "x", 0).sum(0)
                ),
                s.P("x"),
                s.P("x"),
            )(s.auto_vector),
            lambda s: s.shard_map(
                lambda q: s.lax.all_gather(q, "x", axis_index_groups=[[0, 1], [2, 3]]), s.P("x"), s.P(None, "x")
            )(s.auto_vector),
            lambda s: s.shard_map(
                lambda q: s.lax.ppermute(q, ("x", "y"), [(i, 7 - i) for i in range(8)]),
                s.P(("x", "y")),
                s.P(("x", "y")),
                check_vma=False,
            )(s.auto_vector),
            lambda s: [
                s.shard_map(lambda: 3.0, (), s.P())(),
                s.shard_map(lambda q: None, s.P("x"), s.P())(s.auto_vector),
                s.shard_map(lambda q: np.ones(2, np.float32), s.P("x"), s.P("x"))(s.auto_vector),
            ],
            lambda s: [
                s.shard_map(lambda q: q, s.P(("x", "y"), None), s.P(("x", "y"), None))(s.auto_matrix),
                s.shard_map(lambda p, q: p, (s.P("x"), None), s.P("x"))(s.auto_vector, 1),
            ],
            lambda s: [
                s.shard_map(lambda q: q + s.lax.axis_index("x"), s.P("x"), s.P("x"), mesh=t)(numbers(8))
                for t in (s.mesh_of_4, s.reversed_mesh, s.auto_mesh((1,), ("x",)))
            ],
        ],
        # Compiled, since jax runs each operation of an eager one as a program.
        shard_map=lambda s: lambda f, ins, outs, **options: s.jax.jit(over_all_axes(s.jax, f, ins, outs, **options)),
        saving_everything=lambda s: lambda f: s.jax.checkpoint(f, policy=s.jax.checkpoint_policies.everything_saveable),
    )


def test_smap_maps_along_one_axis_of_the_set_mesh():
    def program(jax, jnp):
        lax, x = jax.lax, jnp.arange(8.0)
        mesh = jax.make_mesh((4,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
        calls = {
            "a sum": lambda: jax.smap(lambda a: lax.psum(a, "i"), in_axes=0, out_axes=None, axis_name="i")(x),
            "another axis": lambda: jax.smap(
                lambda a: a * 2 + lax.axis_index("i"), in_axes=1, out_axes=0, axis_name="i"
            )(x.reshape(2, 4)),
            "replicated": lambda: jax.smap(lambda a, b: a + b, in_axes=(0, None), out_axes=0, axis_name="i")(x, 1.0),
            "trees": lambda: jax.smap(lambda a: {"s": a}, in_axes=({"k": 0},), out_axes={"s": 0}, axis_name="i")(
                {"k": x}
            ),
            "as a decorator": lambda: jax.smap(in_axes=0, out_axes=0, axis_name="i")(jnp.sin)(x),
            "a gradient": lambda: jax.grad(
                lambda x: jax.smap(lambda a: a * lax.psum(a.sum(), "i"), in_axes=0, out_axes=0, axis_name="i")(x).sum()
            )(x),
            "of a tuple": lambda: jax.smap(jnp.sin, in_axes=0, out_axes=0, axis_name=("i",)),
            "of no axes": lambda: jax.smap(jnp.sin, out_axes=0, axis_name="i")(x),
            "by a name": lambda: jax.smap(jnp.sin, in_axes="i", out_axes=0, axis_name="i")(x),
            "to a name": lambda: jax.smap(jnp.sin, in_axes=0, out_axes="i", axis_name="i")(x),
            "of an unknown axis": lambda: jax.smap(jnp.sin, in_axes=0, out_axes=0, axis_name="j")(x),
            "indivisible": lambda: jax.smap(jnp.sin, in_axes=0, out_axes=0, axis_name="i")(x[:3]),
        }

        def said(call):
            try:
                return call()
            except (TypeError, ValueError) as error:
                return type(error).__name__

        with jax.set_mesh(mesh):
            return {name: said(call) for name, call in calls.items()}

    compare.same(program)
    with pytest.raises(ValueError, match="The context mesh cannot be empty"):
        minijax.smap(minijax.numpy.sin, in_axes=0, out_axes=0, axis_name="i")(np.arange(4.0))


def _exp(s, p):
    return s.shard_map(s.jnp.exp, s.P("x"), s.P("x"))(p)


# Functions of a vector, whose residuals are results of `shard_map` too.
SHARED_RESIDUALS = [
    lambda s, p: _exp(s, p).sum(),
    lambda s, p: s.two_exps(s.P("x"))(p)[0].sum(),
    lambda s, p: s.two_exps(s.P("x"))(p)[1].sum(),
    lambda s, p: sum(x.sum() for x in s.two_exps(s.P("x"))(p)),
    lambda s, p: s.jax.jit(s.shard_map(s.jnp.exp, s.P("x"), s.P("x")))(p).sum(),
    lambda s, p: s.jnp.sin(_exp(s, _exp(s, p))).sum(),
    lambda s, p: sum(s.two_exps(s.P())(p)[0]) * s.two_exps(s.P())(p)[1].sum(),
]


def test_residuals_that_are_results_are_saved_as_in_jax():
    def gradient(s, body):
        return s.jax.grad(s.saving_everything(lambda p: body(s, p)))

    def run(body, s):
        return [gradient(s, body)(s.auto_vector), s.jax.jit(gradient(s, body))(s.auto_vector)]

    def exps(body, s):
        return str(s.jax.make_jaxpr(gradient(s, body))(s.auto_vector)).count("= exp ")

    total = SHARED_RESIDUALS[3]
    same(
        [
            *(partial(run, body) for body in SHARED_RESIDUALS),
            lambda s: s.jax.vmap(gradient(s, total))(numbers(3, 8)),
            lambda s: s.jax.hessian(s.saving_everything(lambda p: total(s, p)))(s.auto_vector),
            *(partial(exps, body) for body in SHARED_RESIDUALS[:2]),
        ],
        shard_map=lambda s: lambda f, ins, outs: over_all_axes(s.jax, f, ins, outs),
        two_exps=lambda s: (
            lambda out: over_all_axes(
                s.jax,
                lambda q: (s.jnp.exp(s.lax.psum(q, "x")) if out == s.P() else s.jnp.exp(q), s.jnp.exp(q)),
                s.P("x"),
                (out, s.P("x")),
            )
        ),
        saving_everything=lambda s: lambda f: s.jax.checkpoint(f, policy=s.jax.checkpoint_policies.everything_saveable),
    )
