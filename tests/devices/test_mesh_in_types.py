"""Types of values over a mesh know it where they are split nowhere, too; constants in rules lie over it, as in jax."""

import pytest
from sides import numbers, same, same_errors

pytestmark = pytest.mark.oracle


def placed(shape, *spec):
    return lambda s: s.put(numbers(*shape) / 9 + 0.1, *spec, mesh=s.explicit)


GIVEN = {"v": placed((8,), "x"), "w": placed((8,)), "k": placed(()), "z": lambda s: numbers(8)}
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


def test_constraints_after_a_part_with_other_axes():
    part = "jax.sharding.auto_axes(lambda y: y * 2, out_sharding=P('x'))(a)"
    same(f"text(lambda a: jnp.cos(jnp.sin(a) + {part}) * 3, v)", "explicit", **GIVEN)
    whole = part.replace("P('x')", "NS(explicit, P('x'))")
    same(f"text(lambda a: jnp.cos(jnp.sin(a) + {whole}) * 3, v)", **GIVEN)


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
