"""`shard_map`: jaxprs, texts and values under transforms, against jax."""

import importlib
import re
from types import SimpleNamespace

import compare
import numpy as np
import pytest
from compare import Case, sweep
from mesh_language import names_of, numbers, same
from transform_matrix import transformed

import minijax

pytestmark = pytest.mark.oracle

A, V = numbers(8, 8), numbers(8)


def mapped(line: str, check_vma: bool, args: tuple, name: str = "", sizes: tuple | None = None) -> Case:
    """The case of a line: specs of arguments -> specs of results: the function; by default on 4 by 2 devices."""
    ins, outs, body = re.fullmatch(r"(.*?) -> (.*?) : (.*)", line).groups()

    def program(jax):
        names = names_of(jax)
        specs = eval(f"dict(in_specs=({ins}), out_specs=({outs}))", names)
        mesh = names["m"] if sizes is None else names["grid"](sizes, ("x", "y"))
        return jax.shard_map(eval(body, names), mesh=mesh, check_vma=check_vma, **specs)

    return Case(f"{line} vma={check_vma} {name}", program, args)


# Linear and other collectives of one array of 8 by 8.
BODIES = """
P('x') -> P() : lambda v: lax.psum(v, 'x')
P('x', 'y') -> P() : lambda v: jnp.sin(lax.psum(v * v, ('x', 'y')))
P('x') -> P('x') : lambda v: lax.psum(v, 'x') * v
P('x') -> P('x') : lambda v: lax.all_gather(jnp.sin(v), 'x').sum(0)
P('x') -> P(None, 'x') : lambda v: lax.all_gather(v, 'x', axis=1, tiled=True)
P(None, 'y') -> P('x', 'y') : lambda v: lax.psum_scatter(v * v, 'x', tiled=True)
P('y', None) -> P(('y', 'x')) : lambda v: lax.psum_scatter(jnp.sin(v), 'x', scatter_dimension=0)[:, None]
P('x') -> P(None, 'x') : lambda v: lax.all_to_all(v * v, 'x', 1, 0, tiled=True)
P('x') -> P('x') : lambda v: lax.all_to_all(jnp.sin(v.reshape(2, 4, 2)), 'x', 1, 1).reshape(2, 8)
P('x') -> P('x') : lambda v: v * lax.ppermute(v, 'x', [(0, 1), (1, 2), (2, 3), (3, 0)])
P('x') -> P('x') : lambda v: lax.ppermute(jnp.sin(v), 'x', [(0, 1), (1, 2)])
P('x', 'y') -> P('x', 'y') : lambda v: v * lax.axis_index(('x', 'y')).astype(v.dtype)
P(('x', 'y')) -> P(('x', 'y')) : lambda v: jnp.cos(v)
P(('y', 'x')) -> P(None, ('x', 'y')) : lambda v: v.T
P(None, ('y', 'x')) -> P('y', 'x') : lambda v: lax.psum(v, 'x')[:4, :1] * v.sum()
P('x') -> P('x') : lambda v: v.sum()[None]
P('x') -> P(('y', 'x')) : lambda v: lax.psum(v.sum(1), 'x') * v[:, 0]
P('x') -> (P(), {'k': P('x')}) : lambda v: (lax.psum(v.sum(), 'x'), {'k': jnp.exp(v)})
"""
# Of these jax saves a number as a residual.
LITERALS = """
P('x', 'y') -> P(None, 'y') : lambda v: lax.pmean(jnp.sin(v), 'x')
P() -> P('x') : lambda v: v * 2
"""
CONTROL = """
P('x') -> (P(), P('x')) : lambda v: lax.scan(lambda c, t: (c + lax.psum(t, 'x'), jnp.sin(c) * t), jnp.zeros(8), v)
P('x') -> P('x') : lambda v: lax.fori_loop(0, 3, lambda i, c: c * v, v)
P('x') -> P('x') : lambda v: lax.cond(lax.axis_index('x') > 1, jnp.sin, jnp.cos, v)
P('x') -> P('x') : lambda v: jax.jit(lambda q: q * lax.psum(jnp.where(q > 0, q, 1.), 'x'))(v)
P('x') -> P('x') : lambda v: jax.checkpoint(lambda q: jnp.sin(lax.psum(q * q, 'x')) * q)(v)
P('x') -> P('x') : lambda v: jax.vmap(lambda q: lax.psum(q * q, 'x') / q, in_axes=1, out_axes=1)(v)
P('x') -> P('x') : lambda v: jax.nn.relu(v) * jax.nn.silu(v)
P('x') -> P('x') : lambda v: v + np.arange(8, dtype=np.float32)
P('x') -> P('x') : lambda v: custom(v) * lax.psum(bent(v), 'x')
"""


def cases(table: str, transforms: str, check_vma: bool) -> list[Case]:
    lines = table.strip().splitlines()
    return [transformed(mapped(line, check_vma, (A,)), name) for line in lines for name in transforms.split()]


BOTH = pytest.mark.parametrize("check_vma", [True, False])


@BOTH
@pytest.mark.parametrize("transforms", ["plain vmap", "grad jvp", "linearize vjp", "vmap_of_grad grad_of_vmap"])
def test_collectives_under_transforms_equal_jax_s(transforms, check_vma, tier):
    sweep(cases(BODIES, transforms, check_vma), tier)


@BOTH
@pytest.mark.parametrize("transforms", ["plain vmap jvp checkpoint"])
def test_control_flow_under_transforms_equals_jax_s(transforms, check_vma, tier):
    sweep(cases(CONTROL, transforms, check_vma), tier)


# jax's jaxprs hold what nothing reads: counters of loops, numbers as residuals.
@BOTH
@pytest.mark.parametrize("transforms", ["grad linearize", "vmap_of_grad grad_of_checkpoint"])
def test_derivatives_of_control_flow_equal_jax_s(transforms, check_vma, tier):
    sweep(cases(CONTROL.strip() + LITERALS, transforms, check_vma), tier, jaxpr=False)


def whole(jax, f, ins, outs, mesh=None, **options):
    """`f` under `shard_map` on the mesh of eight devices."""
    names = names_of(jax)
    return jax.shard_map(f, mesh=mesh or names["m"], in_specs=ins, out_specs=outs, **options)


def other_places(jax):
    """Programs with `shard_map` inside other higher-order functions, and the other way round: name -> function."""
    n = SimpleNamespace(**names_of(jax))
    P, lax, jnp = n.P, n.lax, n.jnp
    rows = whole(jax, lambda v: lax.psum(jnp.sin(v), "x") * v, P("x"), P("x"))
    plain = whole(jax, lambda v: jnp.cos(v) * 2, P("x"), P("x"))
    two = whole(jax, lambda v: lax.pmax(v, "y"), P("y"), P(), mesh=n.m4)
    back = whole(jax, lambda v: lax.ppermute(v, "x", [(0, 1), (1, 0)]), P("x"), P("x"), mesh=n.back)
    return {
        "in scan": lambda v: lax.scan(lambda c, t: (rows(c) + t, c.sum()), v, jnp.ones((3, 8, 8))),
        "in cond": lambda v: lax.cond(v.sum() > 3, rows, plain, v),
        "in while": lambda v: lax.while_loop(lambda c: c.sum() < 100, lambda c: plain(c) + 1 + c, v),
        "in checkpoint": jax.checkpoint(lambda v: jnp.sin(rows(rows(v)))),
        "in custom_vjp": lambda v: n.bent(rows(v)),
        "in jit in jit": jax.jit(lambda v: jax.jit(lambda q: rows(q) + 1)(v) * 2),
        "in vmap over devices": lambda v: jax.vmap(
            whole(jax, lambda q: lax.psum(q, "x"), P("x"), P()), spmd_axis_name="y"
        )(v[:2]),
        "of a key": lambda v: whole(jax, lambda k, q: q * jax.random.normal(k, (2, 8)), (P(), P("x")), P("x"))(
            jax.random.key(3), v
        ),
        "with a closure": lambda v: whole(jax, lambda q: q + v, P("x"), P("x"))(jnp.ones((32, 8))),
        "of nothing": lambda v: whole(jax, lambda: lax.axis_index(("y", "x"))[None], (), P(("x", "y")))(),
        "of a tree": lambda v: whole(jax, lambda d: {"s": d["a"] + d["b"]}, ({"a": P("x"), "b": P()},), P("x"))(
            {"a": v, "b": 1.0}
        ),
        "of whole axes": lambda v: whole(jax, lambda q: q * 2, P(None, None), P(None, None))(v),
        "on four devices": lambda v: two(v),
        "on devices backwards": lambda v: back(v),
        "of empty parts": lambda v: whole(jax, lambda q: lax.psum(q, "x"), P("x"), P())(v[:, :0]),
        "of scalars": lambda v: whole(jax, lambda a, b: lax.psum(a * b, "y"), (P(), P()), P())(v[0, 0], 2),
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
    cases = [
        mapped(line.strip(), check_vma, ((A > 2) if dtype == "bool" else A.astype(dtype),), dtype)
        for line in """
P('x') -> (P(), P()) : lambda v: (lax.psum(v, 'x'), lax.psum(1, 'x'))
P('x') -> P('x') : lambda v: lax.all_gather(v, 'x', tiled=True)[:2]
P('x') -> P('x') : lambda v: lax.ppermute(v, 'x', [(0, 3), (3, 0)])
P('x') -> P(None, 'x') : lambda v: lax.all_to_all(v, 'x', 1, 0, tiled=True)
""".strip().splitlines()
    ]
    if dtype not in ("complex64",):
        cases.append(
            mapped(
                "P('x') -> P() : lambda v: (lax.pmax(v, 'x'), lax.pmin(v, 'x'))", check_vma, (A.astype(dtype),), dtype
            )
        )
    sweep(cases, tier)


@pytest.mark.parametrize("check_vma", [False, True])
def test_on_one_device_nothing_is_cut(check_vma, tier):
    fitting = [line for line in BODIES.strip().splitlines() if not re.search("scatter_dim|all_to_all|ppermute", line)]
    lines = [*fitting, *CONTROL.strip().splitlines()]
    cases = [mapped(line, check_vma, (A,), "one", (1, 1)) for line in lines]
    for case in cases:
        assert "sdy." not in compare.lowered_text(minijax, case.program(minijax), case.args)
    sweep(cases, tier)
    sweep([transformed(case, name) for case in cases for name in ("vjp", "vmap")], tier, jaxpr=False)


def test_many_nestings_equal_jax_s():
    same(
        """
        jax.hessian(lambda p: sm(lambda q: lax.psum(jnp.sin(q).sum(), 'x'), P('x'), P())(p))(v)
        jax.jacfwd(jax.jacrev(sm(lambda q: jnp.sin(q) * lax.psum(q.sum(), 'x'), P('x'), P('x'))))(v)
        jax.grad(lambda p: kept(sm(lambda q: jnp.sin(lax.psum(jnp.sin(q), 'x')), P('x'), P()))(p).sum())(v)
        jax.grad(lambda p: kept(lambda p: jnp.sin(sm(lambda q: jnp.sin(q).sum()[None] * 2, P('x'), P('x'))(jnp.cos(p))))(p).sum())(v)
        jax.grad(lambda p: lax.scan(lambda c, _: (jax.checkpoint(sm(lambda q: jnp.sin(q) * lax.psum(q, 'x'), P('x'), P('x')))(c), None), p, None, length=3)[0].sum())(v)
        jax.vmap(jax.grad(lambda p: lax.cond(p.sum() > 0, sm(jnp.sin, P('x'), P('x')), jnp.cos, p).sum()))(numbers(3, 8))
        jax.vmap(jax.vmap(sm(lambda q: lax.ppermute(q, 'x', [(0, 1)]), P('x'), P('x'))), in_axes=2)(numbers(3, 8, 2))
        jax.vmap(lambda p: sm(lambda q: lax.psum(q, ('x', 'b')), P('x'), P(), check_vma=False)(p), axis_name='b')(numbers(3, 8))
        jax.linearize(sm(lambda q, r: q * r + lax.pmax(lax.stop_gradient(q).sum(), 'x'), (P('x'), P()), P('x')), v, 2.)[1](v, 1.)
        jax.vjp(sm(lambda q, r: {'a': q @ r, 'b': r}, (P('x'), P()), {'a': P('x'), 'b': P()}), a, a)[1]({'a': a, 'b': a})
        jax.grad(lambda p: jnp.abs(sm(lambda q: lax.psum(q * 1j, 'x'), P('x'), P())(p)).sum())(v + 0j)
        sm(lambda q: lax.while_loop(lambda c: c[0] < lax.psum(2, 'x'), lambda c: (c[0] + 1, c[1] * 2), (0, q))[1], P('x'), P('x'))(a)
        sm(lambda k, q: jax.random.uniform(jax.random.fold_in(k, lax.axis_index('x')), q.shape) + q, (P(), P('x')), P('x'))(jax.random.key(1), v)
        sm(lambda q: lax.switch(lax.axis_index('x'), [lambda r: r, lambda r: -r, jnp.sin, jnp.cos], q), P('x'), P('x'))(v)
        sm(lambda q: lax.pshuffle(q, 'x', [1, 0, 3, 2]) + lax.pswapaxes(jnp.broadcast_to(q, (4, 2)), 'x', 0).sum(0), P('x'), P('x'))(v)
        sm(lambda q: lax.all_gather(q, 'x', axis_index_groups=[[0, 1], [2, 3]]), P('x'), P(None, 'x'))(v)
        sm(lambda q: lax.ppermute(q, ('x', 'y'), [(i, 7 - i) for i in range(8)]), P(('x', 'y')), P(('x', 'y')), check_vma=False)(v)
        [sm(lambda: 3., (), P())(), sm(lambda q: None, P('x'), P())(v), sm(lambda q: np.ones(2, np.float32), P('x'), P('x'))(v)]
        [sm(lambda q: q, P(('x', 'y'), None), P(('x', 'y'), None))(a), sm(lambda p, q: p, (P('x'), None), P('x'))(v, 1)]
        [sm(lambda q: q + lax.axis_index('x'), P('x'), P('x'), mesh=t)(numbers(8)) for t in (m4, back, grid((1,), ('x',)))]
    """,
        # Compiled, for an eager one runs each operation as a program in jax.
        sm=lambda s: lambda f, ins, outs, **options: s.jax.jit(whole(s.jax, f, ins, outs, **options)),
        kept=lambda s: lambda f: s.jax.checkpoint(f, policy=s.jax.checkpoint_policies.everything_saveable),
    )


def test_smap_maps_along_one_axis_of_the_mesh_that_is_set():
    def program(jax, jnp):
        lax, x = jax.lax, jnp.arange(8.0)
        mesh = jax.make_mesh((4,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
        calls = {
            "a sum": lambda: jax.smap(lambda a: lax.psum(a, "i"), in_axes=0, out_axes=None, axis_name="i")(x),
            "another axis": lambda: jax.smap(
                lambda a: a * 2 + lax.axis_index("i"), in_axes=1, out_axes=0, axis_name="i"
            )(x.reshape(2, 4)),
            "not cut": lambda: jax.smap(lambda a, b: a + b, in_axes=(0, None), out_axes=0, axis_name="i")(x, 1.0),
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


def test_residuals_that_are_results_are_saved_as_in_jax():
    one, two, summed = "sm(jnp.exp, P('x'), P('x'))", "both(P('x'))", "both(P())"
    bodies = (
        f"{one}(p).sum()",
        f"{two}(p)[0].sum()",
        f"{two}(p)[1].sum()",
        f"sum(x.sum() for x in {two}(p))",
        f"jax.jit({one})(p).sum()",
        f"jnp.sin({one}({one}(p))).sum()",
        f"sum({summed}(p)[0]) * {summed}(p)[1].sum()",
    )
    grads = [f"jax.grad(kept(lambda p: {body}))" for body in bodies]
    nested = [f"jax.vmap({grads[3]})(numbers(3, 8))", f"jax.hessian(kept(lambda p: {bodies[3]}))(v)"]
    exps = [f"str(jax.make_jaxpr({grad})(v)).count('= exp ')" for grad in grads[:2]]
    same(
        "\n".join([*(f"[{g}(v), jax.jit({g})(v)]" for g in grads), *nested, *exps]),
        sm=lambda s: lambda f, ins, outs: whole(s.jax, f, ins, outs),
        both=lambda s: (
            lambda out: whole(
                s.jax,
                lambda q: (s.jnp.exp(s.lax.psum(q, "x")) if out == s.P() else s.jnp.exp(q), s.jnp.exp(q)),
                s.P("x"),
                (out, s.P("x")),
            )
        ),
        kept=lambda s: lambda f: s.jax.checkpoint(f, policy=s.jax.checkpoint_policies.everything_saveable),
    )
