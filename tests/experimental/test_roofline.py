"""Costs of programs (operations, bytes read and sent), compared with jax: lifetimes, collectives, derivatives."""

import dataclasses
import functools
import importlib

import mesh_language


def _module(s):
    return importlib.import_module(f"{s.jax.__name__}.experimental.roofline")


def _counts(result):
    fields = dataclasses.asdict(result)
    return {k: dict(sorted(v.items())) if isinstance(v, dict) else int(v) for k, v in fields.items()}


def counted(s):
    """The costs of a call, and its results."""

    def of(f, *args, **options):
        out, result = _module(s).roofline(f, **options)(*args)
        return [_counts(result), out]

    return of


@functools.cache
def _mesh(package, sizes):
    jax = mesh_language.side(package).jax
    kinds = (jax.sharding.AxisType.Auto,) * len(sizes)
    count = int(mesh_language.np.prod(sizes))
    return jax.make_mesh(sizes, tuple("xyz"[: len(sizes)]), devices=jax.devices()[:count], axis_types=kinds)


def sent(s):
    """The costs of a function under shard_map on meshes of several sizes; its arguments are the mesh axes."""

    def of(f, shape=(8, 24), out=None):
        results = []
        for sizes in ((2,), (4,), (8,), (2, 2), (2, 4), (4, 2), (2, 2, 2), (1, 2), (1,)):
            mesh = _mesh(s.jax.__name__, sizes)
            spec = s.P(mesh.axis_names)
            x = s.SDS(shape, s.np.float32, sharding=s.NS(mesh, spec))
            how = dict(mesh=mesh, in_specs=(spec,), out_specs=spec if out is None else out)
            results.append(_counts(_module(s).roofline(lambda a, n=mesh.axis_names: f(a, n), **how)(x)[1]))
        return results

    return of


def derived(s):
    """The costs of a function and its derivative on a mesh of four by two."""

    def of(f, *specs, out, dtype="float32"):
        mesh = _mesh(s.jax.__name__, (4, 2))
        args = [s.SDS((8, 8), dtype, sharding=s.NS(mesh, spec)) for spec in specs]
        return [_counts(r) for r in _module(s).roofline_and_grad(f, mesh, specs, out)(*args)[1:]]

    return of


GIVEN = {"counted": counted, "sent": sent, "derived": derived, "roofline": _module, "counts": lambda s: _counts}

ELEMENTWISE = (
    "abs acos asin atan cbrt ceil conj cos cosh exp expm1 floor imag is_finite log log1p logistic neg real round rsqrt "
    "sign sin sinh sqrt square tan bessel_i0e bessel_i1e digamma erf_inv erf erfc lgamma tanh exp2"
).split()
BINARY = "add sub mul div rem max min eq ne lt le gt ge pow atan2".split()

OPERATIONS = """
counted(lambda x: x + 1, numbers(0, 3))
counted(lambda x: lax.select_n(x > 0, x, x), numbers(3, 5))
counted(lambda x: lax.cumsum(x, 1), numbers(3, 5))
counted(lambda x: lax.cumlogsumexp(x, 0), numbers(3, 5))
counted(lambda x: x.sum(0), numbers(3, 5))
counted(lambda x: x.max(), numbers(3, 5))
counted(lambda x, y: x @ y, numbers(3, 5), numbers(5, 7))
counted(lambda x, y: x @ y, numbers(3, 5), numbers(5, 7), pin_lhs_in_vmem=True)
counted(lambda x, y: x @ y, numbers(3, 5), numbers(5, 7), pin_rhs_in_vmem=True)
counted(lambda x: jnp.einsum("bij,bjk->bik", x, x), numbers(2, 3, 3))
counted(lambda x: x[jnp.array([0, 1])], numbers(3, 5))
counted(lambda x: jnp.take(x, jnp.array([0, 1]), axis=0), numbers(3, 5))
counted(lambda x: x.at[jnp.array([0, 1])].add(2.0), numbers(3, 5))
counted(lambda x: x.at[jnp.array([0, 1])].apply(lambda x: jnp.sin(x) + x), numbers(3, 5))
counted(lambda x, w: lax.conv(x, w, (1, 1), "SAME"), numbers(2, 3, 8, 8), numbers(4, 3, 3, 3))
counted(lambda x, w: lax.conv(x, w, (2, 3), "VALID"), numbers(2, 3, 8, 8), numbers(4, 3, 3, 3))
counted(lambda x, w: lax.conv_general_dilated(x, w, (2,), [(3, 1)], (3,), (2,)), numbers(2, 3, 9), numbers(4, 3, 4))
counted(lambda x, w: lax.conv_general_dilated(x, w, (1,), [(0, 5)], (4,), (6,)), numbers(2, 3, 9), numbers(4, 3, 4))
counted(lambda x, w: lax.conv_general_dilated(x, w, (1,), "SAME", feature_group_count=3), numbers(2, 3, 9), numbers(6, 1, 4))
counted(lambda x: jax.pure_callback(np.sin, x, x), numbers(3, 5))
counted(lambda x: (jax.debug.callback(print, x), x)[1], numbers(3, 5))
counted(jax.nn.softmax, numbers(3, 5))
counted(lambda x: lax.scan(lambda c, y: (c * 2 + y, jnp.sin(c)), x[0], x), numbers(3, 5))
counted(lambda x: lax.while_loop(lambda x: x.sum() < 3, lambda x: x * 2, x), numbers(3, 5))
counted(lambda x: jax.jit(lambda x: jnp.sin(x) * x)(x) + x, numbers(3, 5))
counted(jax.checkpoint(lambda x: jnp.sin(x) * x), numbers(3, 5))
counted(jax.nn.relu, numbers(3, 5))
counted(lambda x: lax.reduce(x, np.float32(0), lambda a, b: a + b, (0,)), numbers(3, 5))
counted(lambda x: lax.concatenate([x, x], 0), numbers(3, 5))
counted(lambda x: (lax.broadcast(x, (10,)), x), numbers(3, 5))
counted(lambda x, y: (jnp.sin(y), x)[1], numbers(3, 5), numbers(7))
counted(lambda x: jax.random.normal(jax.random.key(0), (4,)) + x, 2.0)
counted(lambda d: d["a"] * 2, {"a": jax.ShapeDtypeStruct((3, 4), "bfloat16")})
counted(jnp.sin, numbers(3, dtype="float16"))
counted(lambda x: x * x, jnp.ones((3, 4), "bfloat16"), vjp=True)
counts(roofline.RooflineResult(flops=1, ici_bytes={"x": 1}) + roofline.RooflineResult(flops=2, peak_hbm_bytes=3))
counts(roofline.RooflineResult(flops=1, ici_bytes={"x": 1}, peak_hbm_bytes=2) * 3)
[roofline.RooflineShape(shape=(2, 3), dtype=np.dtype("int8")).bytes, roofline.RooflineShape.from_aval(jax.typeof(1.0)).size]
"""

COLLECTIVES = """
sent(lambda a, n: lax.psum(a, n), out=P())
sent(lambda a, n: lax.pmax(a, n), out=P())
sent(lambda a, n: lax.all_gather(a, n, axis=1, tiled=True))
sent(lambda a, n: lax.psum_scatter(a, n, scatter_dimension=1, tiled=True))
sent(lambda a, n: lax.all_to_all(a, n, 1, 0, tiled=True))
sent(lambda a, n: lax.ppermute(a, n, [(i, (i + 1) % lax.axis_size(n)) for i in range(lax.axis_size(n))]))
sent(lambda a, n: lax.ppermute(a, n, [(i, lax.axis_size(n) - 1 - i) for i in range(lax.axis_size(n))]))
sent(lambda a, n: lax.ppermute(a, n, [(i, (i + 3) % lax.axis_size(n)) for i in range(lax.axis_size(n))]))
sent(lambda a, n: lax.ppermute(a, n, []))
derived(lambda a: a * a, P("x"), out=P("x"))
derived(jnp.sin, P("x"), out=P("x"))
derived(lambda a, b: lax.all_gather(a, "y", axis=1, tiled=True) @ b, P(None, "y"), P(), out=P("y"), dtype="int8")
derived(jax.checkpoint(lambda a, b: a @ lax.all_gather(b, "x", tiled=True)), P("x"), P("x"), out=P("x"))
"""


def test_operations_on_each_element():
    lines = [f"counted(lax.{name}, numbers(3, 5))" for name in ELEMENTWISE if name not in ("imag", "real", "conj")]
    lines += [f"counted(lax.{name}, numbers(3, 5, dtype='complex64'))" for name in ("imag", "real", "conj")]
    mesh_language.same(
        "\n".join(lines + [f"counted(lax.{name}, numbers(3, 5), numbers(3, 5))" for name in BINARY]), **GIVEN
    )


def test_operations():
    mesh_language.same(OPERATIONS, **GIVEN)


def test_collectives_and_derivatives():
    mesh_language.same(COLLECTIVES, **GIVEN)


def _by_own_rules(package):
    roofline, core = _module(s := mesh_language.side(package)), importlib.import_module(f"{package}.extend.core")
    mine, plain = core.Primitive("mine"), core.Primitive("plain")
    for p in (mine, plain):
        p.def_abstract_eval(lambda x: x)
    roofline.register_roofline(mine)(lambda ctx, x: roofline.RooflineResult(flops=x.size * len(ctx.avals_out)))
    roofline.register_standard_roofline(plain)
    return _counts(roofline.roofline(lambda x: mine.bind(plain.bind(x)))(s.numbers(3, 5))[1])


def test_rules_of_users():
    ours, theirs = map(_by_own_rules, ("minijax", "jax"))
    assert ours == theirs and (ours["flops"], ours["peak_hbm_bytes"]) == (15, 60)
