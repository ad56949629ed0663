"""Types of values over a mesh know it where they are split nowhere, too; constants in rules lie over it, as in jax."""

import importlib

import pytest
from compare import normal
from mesh_language import numbers, same, same_errors, unwrapped

pytestmark = pytest.mark.oracle


def placed(shape, *spec):
    return lambda s: s.put(numbers(*shape) / 9 + 0.1, *spec, mesh=s.explicit)


GIVEN = {"v": placed((8,), "x"), "w": placed((8,)), "k": placed(()), "z": lambda s: numbers(8)}
GIVEN["plain"] = lambda s: lambda f, *args: unwrapped(normal(s.jaxpr(f, *args)))
SETTINGS = pytest.mark.parametrize("setting", ["explicit", ""])
CONTEXTS = [("v", "explicit"), ("v", ""), ("w", "explicit"), ("w", "")]

RULES = "abs acosh asinh atanh erf expm1 log1p logistic tanh cbrt sqrt rsqrt tan asin digamma lgamma square".split()


@pytest.mark.parametrize("x, setting", CONTEXTS)
def test_constants_in_rules(x, setting):
    lines = [f"jaxpr(lambda x: jax.jvp(lax.{name}, (x,), (x,)), {x})" for name in RULES]
    lines += [f"jaxpr(jax.vmap(jax.grad(lax.{name})), {x})" for name in RULES]
    same("\n".join(lines), setting=setting, **GIVEN)


@pytest.mark.parametrize("x, setting", CONTEXTS)
def test_programs(x, setting):
    programs = """
        jnp.ones_like(a.sum())
        lax.full_like(a, 1.0)
        jnp.where(a > 0, a, 0.0)
        a + z
        lax.scan(lambda c, _: (c * 2, c.sum()), a, None, length=3)
        lax.fori_loop(0, 3, lambda i, c: c + a.sum(), 0.0)
        lax.while_loop(lambda c: c.sum() < 9.0, lambda c: c * 2, a)
        lax.cond(a.sum() > 0, lambda b: b + 1, lambda b: jnp.zeros_like(b), a)
        lax.cond(a.sum() > 0, lambda b: b.sum(), lambda b: 0.0, a)
        jax.grad(lambda b: (jnp.tanh(b) * z).sum())(a)
        jax.grad(lambda b: lax.scan(lambda c, _: (jnp.sin(c) * b, None), b, None, length=2)[0].sum())(a)
        jax.grad(lambda b: jax.checkpoint(lambda c: jnp.sin(jnp.cos(c)).sum())(b))(a)
        jax.vmap(jax.grad(lambda b: lax.max(b, jnp.abs(b))))(a)
        jax.grad(jax.nn.logsumexp)(a)
        jax.grad(jnp.linalg.norm)(a)
        jax.grad(lambda b: jax.scipy.special.erf(b).sum())(a)
        jax.vmap(jax.nn.relu)(a)
        jax.jvp(jax.nn.softmax, (a,), (a,))
        jax.jvp(jax.nn.gelu, (a,), (a,))
        jax.jvp(jnp.var, (a,), (a,))
    """
    lines = [f"jaxpr(lambda a: {line.strip()}, {x})" for line in programs.strip().splitlines()]
    same("\n".join(lines), setting=setting, **GIVEN)


@SETTINGS
def test_programs_of_what_all_devices_have(setting):
    same(
        """
        [jax.typeof(x).sharding for x in (w, k, v)]
        [jax.typeof(x).sharding.mesh.empty for x in (w + 1, w.sum(), jnp.sin(w), w[None], w.reshape(2, 4))]
        run(lambda a, b: a * b + 1, w, v)
        run(lambda a: jnp.concatenate([a, a]), w)
        run(lambda a: [jnp.cumsum(a.reshape(2, 4)), jnp.stack([a, z])], w)
        jaxpr(lambda a: lax.scan(lambda c, b: (c + b, c), 0.0, a), w)
        jaxpr(jax.vmap(lambda b: lax.scan(lambda c, _: (c + b, None), 0.0, None, length=2)[0]), w)
        jaxpr(jax.shard_map(lambda a: jax.jvp(jnp.tanh, (a,), (a,)), mesh=explicit, in_specs=P('x'), out_specs=P('x')), v)
        """,
        setting=setting,
        **GIVEN,
    )


MIXED = """
        lax.cond(True, lambda x, y: x, lambda x, y: y, {a}, {b})
        lax.while_loop(lambda c: False, lambda c: (c[1], c[0]), ({a}, {b}))
        lax.scan(lambda c, x: (c + x, c), {b}, jnp.stack([{a}, {a}]))
        lax.clamp({b}, {a}, {b})
        jax.vjp(lambda u, v: u * v, {a}, {b})[1]({a})
        jax.vjp(lambda u, v: u + v, {a}, {b})[1]({a})
        jax.vjp(lambda u: u - {a}, {b})[1]({a})
        jax.vjp(lambda u: u * {a}, k)[1]({a})
        jax.vjp(lambda u: u / {a}, np.float32(2))[1]({a})
        jax.jvp(lambda u: u + {a}, ({b},), ({b},))
        jax.jvp(lambda u: u + {a}, (np.float32(2),), (np.float32(3),))
        jax.grad(lambda u: jnp.concatenate([{a}, u]).sum())({b})
        jax.grad(lambda u: jax.jit(lambda v: jnp.sin(v * {a}))(u).sum())({b})
        jax.jvp(lambda u, v: jnp.concatenate([u, v]), ({a}, {b}), ({a}, {b}))
        jnp.where({a} > 0, {b}, 0.0)
        jnp.where({b} > 0, {a}, 0.0)
        jnp.where(jnp.arange(8) > 3, {a}, -1e9)
        jnp.select([{a} > 0, {b} > 0], [{a}, {a}], 0.0)
        jnp.broadcast_arrays({a}, {b}, 1.0)
        jax.grad(lambda u: jnp.where(u > 0.2, u, 0.0).sum() + (u * {b}).sum())({a})
"""


@SETTINGS
def test_what_knows_no_mesh_beside_what_does(setting):
    """Loops and branches take both for one type; a cotangent, or a tangent, is laid out where jax does it."""
    lines = [line.strip() for line in MIXED.strip().splitlines()]
    skipped = ("jnp.select", "lax.scan") if setting else ()
    lines = [line for line in lines if not line.startswith(skipped)]
    programs = [(line.format(a="a", b="b"), one, two) for line in lines for one, two in (("v", "z"), ("w", "z"))]
    programs += [(line.format(a="b", b="a"), "v", "z") for line in lines if "clamp" in line or "cond" in line]
    same("\n".join(f"plain(lambda a, b: {line}, {one}, {two})" for line, one, two in programs), setting, **GIVEN)


@pytest.mark.parametrize("x, setting", [*CONTEXTS, ("z", "explicit")])
def test_programs_of_one_value(x, setting):
    programs = """
        jax.hessian(lambda b: (b**3).sum())(a)
        jax.jacrev(lambda b: b * b)(a)
        jax.jacfwd(jnp.sin)(a)
        jax.jacrev(lambda b: b.sum())(k)
        jax.grad(lambda b: jnp.tile(b, (2, 1)).sum())(a[:, None].T)
        jax.vmap(lambda b: jnp.repeat(b, 2))(jnp.stack([a[:, None]] * 2, 1))
        jax.grad(lambda b: b.at[:, 0].set(1.0).sum())(a[:, None])
        jax.grad(lambda b: lax.reduce_window(b, 0.0, lax.add, (1, 2), (1, 2), 'VALID').sum())(jnp.stack([a, a], 1))
        jax.nn.one_hot(a.astype(int), 3)
        jax.nn.hard_tanh(a)
        jax.grad(lambda b: jnp.nanmean(b))(a)
        jax.grad(lambda b: 0.0 + jnp.sum(b * 2))(a)
        jax.vmap(jax.grad(lambda b: jnp.cumsum(b).sum() + 0.0))(jnp.stack([a, a], 1))
        jax.grad(lambda b: b.reshape(8, 1).sum() + 0.0)(a)
        jax.grad(lambda b: lax.cond(b.sum() > 0, lambda c: (c * b.sum()).sum(), lambda c: 0.0, b))(a)
    """
    lines = [f"plain(lambda a: {line.strip()}, {x})" for line in programs.strip().splitlines()]
    same("\n".join(lines), setting=setting, **GIVEN)


@SETTINGS
def test_values_that_know_no_mesh_are_not_constrained(setting):
    same(
        """
        text(lambda a: (jnp.sin(z), jnp.ones(3), lax.cumsum(z), a * 2), v)
        text(lambda a: jnp.split(a[None] * 2, 1)[0], v)
        text(lambda a: jnp.isfinite(a), v)
        text(lambda a: lax.stop_gradient(a * 2) + a, v)
        text(lambda a: lax.max(a, np.float32(0)) > 1, v)
        text(lambda a: jnp.logaddexp(z, 0.0) + a, v)
        jax.jit(lambda a: (jnp.sin(z), jnp.ones(3), lax.cumsum(z), a * 2))(v)
        plain(lambda a: jnp.searchsorted(a, a[:3]), w)
        jax.vjp(lambda q: v + q, z)[1](v)
        jax.vjp(lambda q: q * z, v)[1](z)
        """,
        setting=setting,
        **GIVEN,
    )


def test_constraints_after_a_part_with_other_axes():
    part = "jax.sharding.auto_axes(lambda y: y * 2, out_sharding=P('x'))(a)"
    same(f"text(lambda a: jnp.cos(jnp.sin(a) + {part}) * 3, v)", "explicit", **GIVEN)
    whole = part.replace("P('x')", "NS(explicit, P('x'))")
    same(f"text(lambda a: jnp.cos(jnp.sin(a) + {whole}) * 3, v)", **GIVEN)
    same("text(lambda a: (under_auto(), jnp.sin(a) * 3), v)", under_auto=_under_auto, **GIVEN)


def _under_auto(s):
    """A function that computes, where the mesh that is set has Auto axes, what no other equation takes."""
    auto = s.explicit.abstract_mesh.update_axis_types({"x": s.AxisType.Auto, "y": s.AxisType.Auto})

    def call():
        with s.jax.sharding.use_abstract_mesh(auto):
            return s.lax.cumsum(s.jnp.arange(4.0) * 2)

    return call


def test_zeros_of_what_knows_no_mesh_know_none():
    module = {"add": lambda s: importlib.import_module(f"{s.jax.__name__}.interpreters.ad").add_jaxvals}
    lines = """
        plain(lambda a, b, c: jax.vjp(lambda u: add(u, b), a)[1](c), z, z, v)
        plain(lambda a, b, c: jax.vjp(lambda u: add(a, u), b)[1](c), z, z, v)
        plain(lambda a, b, c: jax.jvp(lambda u: add(a, u), (b,), (c,)), z, v, v)
        plain(lambda a, b, c: jax.jvp(lambda u: add(a, u), (b,), (c,)), z, w, w)
    """
    same(lines, setting="explicit", **module, **GIVEN)


@SETTINGS
def test_values_of_several_shapes_broadcast_together(setting):
    same(
        """
        plain(lambda a, b: jnp.where(a[:, None] > 0, b[None], 0.0), w, z)
        plain(lambda a, b: jnp.where(a[:, None] > 0, b[None], 0.0), z, w)
        plain(lambda a, b: jnp.broadcast_arrays(a[:, None], b[None]), w, z)
        plain(lambda a, b: jnp.broadcast_arrays(a[:, None], b[None]), z, w)
        """,
        setting=setting,
        **GIVEN,
    )


def test_what_knows_no_mesh_lies_as_the_rest_does():
    same(
        """
        run(lambda a: [jnp.concatenate([a, z]), jnp.concatenate([z, a]), jnp.stack([z, a]), lax.select(a > 0, a, z)], v)
        jax.jit(lambda a: (a, jnp.ones(3)))(w)
        """,
        **GIVEN,
    )


def test_meshes_are_not_mixed():
    other = {"o": lambda s: s.put(numbers(8), mesh=s.jax.make_mesh((8,), ("n",)))}
    phrase = "Mesh for all inputs should be equal"
    same_errors([("w + o", phrase), ("jax.jit(lambda a, b: a * b)(w, o)", phrase)], **GIVEN, **other)
    cut = "jax.shard_map(lambda a: a, mesh=explicit, in_specs=P('x'), out_specs=P('x'))(w)"
    same_errors([(cut, "in_specs passed to shard_map")], **GIVEN)


def test_what_lies_over_the_mesh_that_is_set():
    lines = """
        x
        lax.sin(x)
        x + x
        x + 1
        x < 1
        x.sum()
        lax.broadcast_in_dim(x, (8, 2), (0,))
        x[None]
        lax.concatenate([x, x], 0)
        lax.select(x > 0, x, x)
        lax.clamp(x, x, x)
        lax.iota(np.int32, 8)
        jnp.zeros(8)
        jnp.zeros(())
        jax.random.uniform(jax.random.key(0), (8,))
        jax.grad(lambda b: lax.sin(b).sum())(x)
        jax.nn.relu(x)
    """
    given = {"over": lambda s: lambda f: _meshes(s, f), **GIVEN}
    same("\n".join(f"over(lambda x: {line.strip()})" for line in lines.strip().splitlines()), "explicit", **given)
    same("jaxpr(jax.vmap(lambda r: lax.select(r > 0, jnp.zeros(()), r)), v)", "explicit", **given)


def _meshes(s, f):
    """Whether the value of a function of a host array lies over no mesh, while it is traced."""
    known = []
    s.jax.make_jaxpr(lambda x: known.append(s.jax.typeof(f(x)).sharding.mesh.empty))(numbers(8))
    return known
