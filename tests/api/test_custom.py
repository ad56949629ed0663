"""Functions with derivative rules of their own, under each transformation, and what the rules may not do."""

import functools
import pickle

import compare
import numpy as np
import pytest

import minijax

X = np.array([0.5, -1.5, 2.0], np.float32)


def jaxpr(jax, f, *args):
    return compare._unwrapped(compare.normal(str(jax.make_jaxpr(f)(*args))))


def sine_jvp(jax, jnp):
    f = jax.custom_jvp(lambda x, y: jnp.sin(x) * y)

    @f.defjvp
    def f_jvp(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        return f(x, y), jnp.cos(x) * dx * y * 3.0 + dy

    return f


def sine_vjp(jax, jnp):
    f = jax.custom_vjp(lambda x, y: jnp.sin(x) * y)
    f.defvjp(lambda x, y: (f(x, y), {"c": jnp.cos(x), "y": y}), lambda r, ct: (r["c"] * ct * r["y"] * 3.0, None))
    return f


def transformed(make):
    """A function of two arguments under every transformation: values and jaxprs."""

    def program(jax, jnp):
        f = make(jax, jnp)
        x, y = jnp.asarray(X), jnp.asarray(X[::-1].copy())
        loss = lambda x, y: jnp.sum(f(x, y))  # noqa: E731
        made = {
            "plain": (f, (x, y)),
            "jit": (jax.jit(f), (x, y)),
            "grad": (jax.grad(loss, (0, 1)), (x, y)),
            "grad of jit": (jax.grad(jax.jit(loss)), (x, y)),
            "jit of grad": (jax.jit(jax.grad(loss, 1)), (x, y)),
            "vmap": (jax.vmap(f), (x, y)),
            "vmap of grad": (jax.vmap(jax.grad(f)), (x, y)),
            "half vmap of grad": (jax.vmap(jax.grad(f), (0, None)), (x, 2.0)),
            "grad of vmap": (jax.grad(lambda x, y: jnp.sum(jax.vmap(f)(x, y))), (x, y)),
            "scan": (lambda x, y: jax.lax.scan(lambda c, v: (f(c, v), c), 1.0, x), (x, y)),
        }
        return {k: (g(*args), jaxpr(jax, g, *args)) for k, (g, args) in made.items()}

    return program


def forward(make):
    def program(jax, jnp):
        f = make(jax, jnp)
        x, y = jnp.asarray(X), jnp.asarray(X[::-1].copy())
        made = {
            "jvp": (lambda x, y: jax.jvp(f, (x, y), (y, x)), (x, y)),
            "vmap of jvp": (jax.vmap(lambda x, y: jax.jvp(f, (x, y), (1.0, 2.0))), (x, y)),
            "linearize": (lambda x, y: jax.linearize(f, x, y)[1](y, x), (x, y)),
            "jacfwd": (jax.jacfwd(f), (x, y)),
            "hessian": (jax.hessian(f), (0.5, 2.0)),
            "jvp of jit": (lambda x, y: jax.jvp(jax.jit(f), (x, y), (y, x)), (x, y)),
        }
        return {k: (g(*args), jaxpr(jax, g, *args)) for k, (g, args) in made.items()}

    return program


def _control_flow_in_rules(jax, jnp):
    f = jax.custom_jvp(lambda x: x * 2 if x > 0 else x * 1.0)

    @f.defjvp
    def f_jvp(primals, tangents):
        (x,), (dx,) = primals, tangents
        return f(x), dx * (10.0 if x > 0 else 20.0)

    g = jax.custom_vjp(lambda x: x * 2 if x > 0 else x * 1.0)
    g.defvjp(lambda x: (g(x), bool(x > 0)), lambda pos, ct: (ct * (10.0 if pos else 20.0),))
    return [(h(1.0), h(-1.0), jax.grad(h)(1.0), jax.grad(h)(-1.0)) for h in (f, g)], jax.jvp(f, (-1.0,), (1.0,))


def _defjvps(jax, jnp):
    f = jax.custom_jvp(lambda x, y, z: jnp.sin(x) * y + z)
    f.defjvps(lambda dx, out, x, y, z: out * dx, None, lambda dz, out, x, y, z: 5.0 * dz)
    args = 0.5, 2.0, 3.0
    return jax.grad(f, (0, 1, 2))(*args), jaxpr(jax, jax.grad(f, (0, 1)), *args)


def _nondiff(jax, jnp):
    @functools.partial(jax.custom_jvp, nondiff_argnums=(0, 2))
    def apply(f, x, n):
        return f(x) * n

    @apply.defjvp
    def apply_jvp(f, n, primals, tangents):
        (x,), (dx,) = primals, tangents
        return f(x) * n, 7.0 * n * dx

    return (
        apply(jnp.sin, 2.0, 3),
        jax.grad(apply, 1)(jnp.sin, 2.0, 3),
        jax.jit(lambda x: apply(jnp.cos, x, 2))(1.0),
        jaxpr(jax, jax.grad(lambda x: apply(jnp.sin, x, 3)), 2.0),
    )


def _nondiff_names(jax, jnp):
    @functools.partial(jax.custom_jvp, nondiff_argnames=("mode",))
    def f(x, mode="a"):
        return x * (2 if mode == "a" else 3)

    @f.defjvp
    def f_jvp(mode, primals, tangents):
        return f(primals[0], mode), tangents[0] * (20 if mode == "a" else 30)

    return (f(1.0), f(1.0, mode="b"), jax.grad(f)(1.0), jax.grad(f)(1.0, "b"), jax.grad(lambda x: f(x, mode="b"))(1.0))


def _nondiff_vjp(jax, jnp):
    @functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
    def apply(f, x, y):
        return f(x) * y

    apply.defvjp(lambda f, x, y: (f(x) * y, (x, y)), lambda f, r, ct: (f(r[0]) * ct * 7.0, r[1] * 1.0))

    @functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
    def clip(x, limit):
        return x

    clip.defvjp(lambda x, limit: (x, None), lambda limit, _, ct: (jnp.clip(ct, -limit, limit),))
    return (
        jax.grad(apply, (1, 2))(jnp.sin, 2.0, 3.0),
        jax.grad(lambda x: clip(x, 0.5) * 3)(1.0),
        jax.grad(lambda x: clip(x, limit=0.25) * 3)(1.0),
        jax.jit(jax.vmap(jax.grad(lambda x: clip(x, 0.5) * x)))(X),
    )


def _keywords(jax, jnp):
    @jax.custom_jvp
    def f(x, y=2.0):
        return x * y

    f.defjvp(lambda primals, tangents: (f(*primals), 7.0 * tangents[0] + tangents[1]))

    @jax.custom_vjp
    def g(x, y=2.0):
        return x * y

    g.defvjp(lambda x, y: (x * y, None), lambda _, ct: (ct * 7.0, ct))
    return [(h(3.0), h(y=1.0, x=2.0), jax.grad(h)(3.0), jax.grad(lambda x, h=h: h(y=x, x=1.0))(3.0)) for h in (f, g)]


def _symbolic_jvp(jax, jnp):
    seen = []
    f = jax.custom_jvp(lambda x, y: (x * y, y))

    def f_jvp(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        zero = jax.custom_derivatives.SymbolicZero
        seen.append([type(t) is zero for t in tangents] + [np.shape(dx)])
        out = x * dy if type(dx) is zero else dx * y
        return f(x, y), (out, zero.from_primal_value(y))

    f.defjvp(f_jvp, symbolic_zeros=True)
    out = (
        jax.jvp(lambda x: f(x, jnp.float32(2)), (3.0,), (1.0,)),
        jax.grad(lambda y: f(2.0, y)[0])(3.0),
        jax.jit(jax.grad(lambda y: f(2.0, y)[0]))(3.0),
        jax.vmap(jax.grad(lambda x: f(x, 2.0)[0]))(X),
        jaxpr(jax, jax.grad(lambda x: f(x, 2.0)[0]), 1.0),
    )
    return out, seen


def _symbolic_vjp(jax, jnp):
    seen = []
    f = jax.custom_vjp(lambda x, t: (x * t["y"], t["n"] * 1.0))

    def fwd(x, t):
        seen.append((type(x).__name__, x.perturbed, t["y"].perturbed, t["n"].perturbed))
        return f(x.value, {k: v.value for k, v in t.items()}), t["y"].value

    def bwd(y, cts):
        seen.append([type(ct) is jax.custom_derivatives.SymbolicZero for ct in cts])
        return cts[0] * y * 5.0, None

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    t = {"y": 2.0, "n": 3}
    return jax.grad(lambda x: f(x, t)[0])(3.0), jax.jit(jax.grad(lambda x: f(x, t)[0]))(3.0), seen


def _integers(jax, jnp):
    f = jax.custom_vjp(lambda x, n: x * n)
    f.defvjp(lambda x, n: (f(x, n), n), lambda n, ct: (ct * n * 2.0, None))
    g = jax.custom_jvp(lambda x, n: x * n)
    g.defjvp(lambda p, t: (g(*p), t[0] * p[1] * 2.0))
    h = jax.custom_vjp(lambda x, n: (x, n + 1))
    h.defvjp(lambda x, n: (h(x, n), None), lambda _, cts: (cts[0] * 3.0, np.zeros(cts[1].shape, cts[1].dtype)))
    return (
        jax.grad(f)(2.0, 3),
        jax.grad(g)(2.0, 3),
        jax.grad(f, allow_int=True, argnums=1)(2.0, 3),
        jax.grad(lambda x: h(x, 1)[0])(2.0),
    )


def _trees(jax, jnp):
    f = jax.custom_vjp(lambda t, u: {"o": t["a"] * u[0], "p": (t["b"], None)})
    f.defvjp(lambda t, u: (f(t, u), (t, [u])), lambda r, ct: ({"a": ct["o"] * 3.0, "b": None}, (r[0]["a"] * ct["o"],)))
    t, u = {"a": jnp.asarray(X), "b": 2.0}, (jnp.asarray(X),)
    return jax.vjp(f, t, u)[1]({"o": jnp.ones(3), "p": (1.0, None)}), jax.vmap(f, ({"a": 0, "b": None}, (0,)))(t, u)


def _residuals(jax, jnp):
    f = jax.custom_vjp(lambda x: x * 2)
    f.defvjp(
        lambda x: (x * 2, (x, None, 3, "no value" and (), {"k": np.ones(3, np.float32)})),
        lambda r, ct: (r[0] * ct * r[2] + r[4]["k"][0],),
    )
    return (jax.grad(lambda x: f(x).sum())(X), jax.grad(f)(2.0), jax.vmap(jax.grad(f))(X), jax.jit(jax.grad(f))(2.0))


def _closures(jax, jnp):
    def outer(x, y):
        f = jax.custom_jvp(lambda z: z * y)
        f.defjvp(lambda p, t: (f(*p), 11.0 * t[0]))
        return f(x) * y

    def outer_vjp(x, y):
        f = jax.custom_vjp(lambda z: z * z)
        f.defvjp(lambda z: (f(z), z), lambda z, ct: (ct * 11.0,))
        return f(x) * y

    return (
        jax.grad(outer)(2.0, 3.0),
        jax.vmap(outer)(X, X),
        jax.jit(jax.grad(outer))(2.0, 3.0),
        jax.grad(outer_vjp, (0, 1))(2.0, 3.0),
        jax.jit(jax.vmap(jax.grad(outer_vjp, (0, 1))))(X, X),
        jaxpr(jax, jax.vmap(outer), X, X),
    )


def _gradient(jax, jnp):
    @jax.custom_gradient
    def f(x):
        return x**2, lambda g: (g * x * 100.0,)

    @jax.custom_gradient
    def g(x, y):
        return {"a": x * y}, lambda ct: (ct["a"] * y, ct["a"] * 5.0)

    return (
        f(3.0),
        jax.grad(f)(3.0),
        jax.jit(jax.grad(f))(3.0),
        jax.vmap(jax.grad(f))(X),
        g(1.0, 2.0),
        jax.grad(lambda x, y: g(x, y)["a"], (0, 1))(2.0, 3.0),
        jax.grad(lambda x: f(x) * x)(2.0),
    )


def _other_dtypes(jax, jnp):
    f = jax.custom_vjp(lambda x: x * 2)
    f.defvjp(lambda x: (x * 2, None), lambda _, ct: (jnp.float16(3),))
    return jax.grad(f)(1.0), jax.jit(jax.grad(f))(1.0)


def _attributes(jax, jnp):
    def f(x):
        """doc"""
        return x

    j, v = jax.custom_jvp(f), jax.custom_vjp(f)
    rule = lambda p, t: (p[0], t[0])  # noqa: E731
    return j.__name__, j.__doc__, v.__name__, v.__doc__, j.defjvp(rule) is rule, j.__wrapped__ is f


def _higher(jax, jnp):
    f, g = sine_jvp(jax, jnp), sine_vjp(jax, jnp)
    return [jax.grad(jax.grad(h))(0.5, 2.0) for h in (f, g)], jax.grad(jax.grad(jax.grad(g)))(0.5, 2.0)


def _in_scan(jax, jnp):
    return [
        jax.grad(lambda x, f=f: jax.lax.scan(lambda c, v: (f(c, v), c), jnp.float32(1), x)[0])(jnp.asarray(X))
        for f in (sine_jvp(jax, jnp), sine_vjp(jax, jnp))
    ]


def _jitted_twice(jax, jnp):
    f = jax.jit(sine_vjp(jax, jnp))
    x = jnp.asarray(X)
    return f(x, x), jax.grad(lambda x: f(x, x).sum())(x), jax.grad(lambda x: f(f(x, x), x).sum())(x)


def _in_cond(jax, jnp):
    return [
        jax.grad(lambda x, y, f=f: jax.lax.cond(y > 0, f, lambda x, y: x, x, y), (0, 1))(0.5, y)
        for f in (sine_jvp(jax, jnp), sine_vjp(jax, jnp))
        for y in (2.0, -2.0)
    ]


def _without_cotangents(jax, jnp):
    """Rules run although no cotangent reaches the function, since they may have side effects."""
    seen = []

    def rule(symbolic_zeros):
        f = jax.custom_vjp(lambda x, s: (x.astype("float16"), s * 2))
        value = (lambda x: x.value) if symbolic_zeros else lambda x: x
        f.defvjp(
            lambda x, s: (f(value(x), value(s)), value(s)),
            lambda s, cts: (seen.append(str(cts[0].dtype)), (None, s * 7))[1],
            symbolic_zeros=symbolic_zeros,
        )
        return f

    dead = jax.custom_vjp(lambda x, q, s: q.astype(x.dtype) * s + x)
    dead.defvjp(lambda x, q, s: (dead(x, q, s), None), lambda _, ct: (ct, None, None))

    def functions(f):
        yield lambda x, s: dead(x, *f(x, s)).sum()
        yield lambda x, s: dead(x, *(y * 2 for y in f(x, s))).sum()
        yield lambda x, s: dead(x, *f(x, f(x, s)[1])).sum()
        yield lambda x, s: dead(x, *jax.jit(f)(x, s)).sum()
        yield lambda x, s: jax.checkpoint(lambda x, s: dead(x, *f(x, s)))(x, s).sum()
        yield lambda x, s: jax.lax.scan(lambda c, _: (dead(c, *f(c, s)), None), x, None, 2)[0].sum()
        yield lambda x, s: jax.vmap(lambda x: dead(x, *f(x, s)))(x).sum()
        yield lambda x, s: (f(x, s), x.sum())[1]

    losses = [loss for f in (rule(False), rule(True)) for loss in functions(f)]
    grads = [jax.grad(f, (0, 1)) for loss in losses for f in (loss, jax.jit(loss))]
    first = jax.make_jaxpr(grads[0])(X, 2.0)
    return [grad(jnp.asarray(X), 2.0) for grad in grads], seen, str(first).count("mul")


VALUES = {
    "no cotangents": _without_cotangents,
    "custom_jvp transformed": transformed(sine_jvp),
    "custom_jvp forward": forward(sine_jvp),
    "custom_vjp transformed": transformed(sine_vjp),
    "Python control flow in rules": _control_flow_in_rules,
    "defjvps": _defjvps,
    "nondiff_argnums": _nondiff,
    "nondiff_argnames": _nondiff_names,
    "nondiff_argnums of custom_vjp": _nondiff_vjp,
    "keywords and defaults": _keywords,
    "symbolic zeros of custom_jvp": _symbolic_jvp,
    "symbolic zeros of custom_vjp": _symbolic_vjp,
    "integer arguments": _integers,
    "trees": _trees,
    "residuals": _residuals,
    "closures": _closures,
    "custom_gradient": _gradient,
    "cotangents of other dtypes": _other_dtypes,
    "attributes": _attributes,
    "higher orders": _higher,
    "inside cond": _in_cond,
    "inside scan": _in_scan,
    "inside jit": _jitted_twice,
}


def jvp_rule(rule, f=lambda x: x * 2.0, transform=lambda jax, f: jax.grad(f)):
    def program(jax, jnp):
        g = jax.custom_jvp(f)
        g.defjvp(rule)
        return transform(jax, g)(1.0)

    return program


def vjp_rules(fwd, bwd, f=lambda x: x * 2.0, transform=lambda jax, f: jax.grad(f)):
    def program(jax, jnp):
        g = jax.custom_vjp(f)
        g.defvjp(fwd, bwd)
        return transform(jax, g)(1.0)

    return program


def _with_two(fwd, bwd):
    def program(jax, jnp):
        g = jax.custom_vjp(lambda x, y: x * y)
        g.defvjp(fwd, bwd)
        return jax.grad(g)(1.0, 2.0)

    return program


def ok(x):
    return x * 2.0, x


ERRORS = {
    "no jvp": (
        lambda jax: jax.custom_jvp(lambda x: x)(1.0),
        "No JVP defined for custom_jvp function <lambda> using defjvp",
    ),
    "no vjp": (
        lambda jax: jax.custom_vjp(lambda x: x)(1.0),
        "No VJP defined for custom_vjp function <lambda> using defvjp",
    ),
    "jvp rule gives no pair": (
        jvp_rule(lambda p, t: p[0]),
        "must produce a pair (list or tuple of length two) representing primal and tangent outputs",
    ),
    "jvp rule gives three": (
        jvp_rule(lambda p, t: (p[0], t[0], 1)),
        "must produce a pair (list or tuple of length two)",
    ),
    "jvp rule gives other trees": (
        jvp_rule(lambda p, t: (p[0], (t[0],))),
        "must produce primal and tangent outputs with equal container (pytree) structures",
    ),
    "jvp rule gives another primal tree": (
        jvp_rule(lambda p, t: ((p[0],), (t[0],)), transform=lambda jax, f: jax.grad(lambda x: jax.jit(f)(x))),
        "Custom JVP rule <lambda>",
    ),
    "jvp rule gives another shape": (
        jvp_rule(lambda p, t: (p[0] * 2.0, np.ones(3, np.float32))),
        "tangent",
        "float32[3]",
    ),
    "jvp rule gives another dtype": (jvp_rule(lambda p, t: (p[0] * 2.0, np.float16(1))), "tangent", "float16[]"),
    "defjvps beside nondiff_argnums": (
        lambda jax: jax.custom_jvp(lambda f, x: x, nondiff_argnums=(0,)).defjvps(None),
        "Can't use ``defjvps`` with ``nondiff_argnums``",
    ),
    "jvp of custom_vjp": (
        vjp_rules(ok, lambda r, ct: (ct,), transform=lambda jax, f: lambda x: jax.jvp(f, (x,), (x,))),
        "can't apply forward-mode autodiff (jvp) to a custom_vjp function.",
    ),
    "jacfwd of custom_vjp": (
        vjp_rules(ok, lambda r, ct: (ct,), transform=lambda jax, f: jax.jacfwd(f)),
        "can't apply forward-mode autodiff (jvp) to a custom_vjp function.",
    ),
    "fwd gives no pair": (
        vjp_rules(lambda x: x * 2.0, lambda r, ct: (ct,)),
        "must produce a pair (list or tuple of length two)",
    ),
    "fwd gives another tree": (
        vjp_rules(lambda x: ((x,), x), lambda r, ct: (ct,), transform=lambda jax, f: jax.grad(lambda x: jax.jit(f)(x))),
        "Custom VJP fwd rule <lambda>",
    ),
    "bwd gives no tuple": (
        vjp_rules(ok, lambda r, ct: ct),
        "Custom VJP bwd rule must produce an output with the same container (pytree) structure",
    ),
    "bwd gives too many": (
        vjp_rules(ok, lambda r, ct: (ct, ct)),
        "Custom VJP bwd rule must produce an output with the same container (pytree) structure",
    ),
    "bwd gives too few": (
        _with_two(lambda x, y: (x * y, x), lambda r, ct: (ct,)),
        "Custom VJP bwd rule must produce an output with the same container (pytree) structure",
    ),
    "bwd gives another tree": (
        vjp_rules(ok, lambda r, ct: ({"a": ct},)),
        "Custom VJP bwd rule must produce an output with the same container (pytree) structure",
    ),
    "bwd gives another shape": (
        vjp_rules(ok, lambda r, ct: (np.ones(3, np.float32),)),
        "Custom VJP bwd rule must produce an output with the same type",
        "float32[3]",
    ),
    "bwd gives a symbolic zero of another shape": (
        lambda jax: _swapped_zeros(jax),
        "Consider just returning a None here",
    ),
    "fwd gives another type in a loop": (lambda jax: _in_a_loop(jax, jax.numpy), "Custom VJP fwd rule", "float32[3]"),
    "bwd takes other arguments": vjp_rules(ok, lambda ct: (ct,)),
    "fwd takes other arguments": vjp_rules(lambda x, y: (x, y), lambda r, ct: (ct,)),
    "unknown keyword": (
        lambda jax: sine_jvp(jax, jax.numpy)(1.0, z=2.0),
        "could not be resolved to positional-only arguments",
    ),
    "missing argument": (lambda jax: sine_vjp(jax, jax.numpy)(1.0), "missing a required argument: 'y'"),
    "no value": (lambda jax: sine_jvp(jax, jax.numpy)("text", 1.0), "str"),
    "no function": lambda jax: jax.grad(jax.custom_jvp(3))(1.0),
    "a tracer as a nondiff argument of custom_vjp": (
        lambda jax: jax.grad(lambda x: _nondiff_tracer(jax)(x, 1.0))(2.0),
        "nondiff_argnums",
    ),
}


def _swapped_zeros(jax):
    f = jax.custom_vjp(lambda x, y, z: (x, y, z))
    f.defvjp(lambda *xs: ([x.value for x in xs], None), lambda _, ct: (ct[1], ct[0], ct[2]), symbolic_zeros=True)
    f.fun = lambda x, y, z: [x, y, z]
    return jax.grad(lambda x, y, z: f(x, y, z)[2].sum())(*[np.ones(n, np.float32) for n in (1, 2, 3)])


def _in_a_loop(jax, jnp):
    f = jax.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (jnp.zeros((3, *x.shape)), None), lambda _, ct: (ct,))
    return jax.grad(lambda x: jax.lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0])(1.0)


def _nondiff_tracer(jax):
    f = jax.custom_vjp(lambda n, x: x * n, nondiff_argnums=(0,))
    f.defvjp(lambda n, x: (x * n, None), lambda n, _, ct: (ct,))
    return f


@pytest.mark.oracle
@pytest.mark.parametrize("name", VALUES)
def test_custom_rules_give_the_results_of_jax(name):
    compare.same(VALUES[name])


@pytest.mark.oracle
@pytest.mark.parametrize("name", ERRORS)
def test_custom_rules_raise_as_in_jax(name):
    program, *phrases = entry if isinstance(entry := ERRORS[name], tuple) else (entry,)
    compare.same_error(
        lambda: compare.run_on(compare.ours(), program), lambda: compare.run_on(compare.theirs(), program), phrases
    )


@pytest.mark.oracle
def test_results_that_nobody_reads_are_not_computed():
    def program(jax, jnp):
        f = jax.custom_jvp(lambda x, y: (jnp.sin(x), x + jnp.cos(y)))
        f.defjvp(lambda p, t: (f(*p), (2.0 * jnp.cos(p[0]) * t[0], 1.5 * t[0] - jnp.sin(p[1]) * t[1])))
        g = jax.custom_vjp(lambda x, y: (jnp.sin(x), x + jnp.cos(y)))
        g.defvjp(lambda x, y: (g(x, y), jnp.tan(x)), lambda r, ct: (r * ct[0] * 2.0 + ct[1], ct[1] * 3.0))
        h = jax.custom_vjp(lambda x, y: (jnp.sin(x), x + jnp.cos(y)))
        h.defvjp(lambda *xs: (g(*[x.value for x in xs]), ()), lambda _, ct: (ct[0], None), symbolic_zeros=True)
        results = []
        for custom in (f, g, h):
            for i in range(2):
                one = lambda x, y, custom=custom, i=i: custom(x, y)[i]  # noqa: E731
                both = jax.value_and_grad(jax.jit(jax.checkpoint(jax.jit(one))), (0, 1))
                results += [compare.canonical(jax.jit(one).lower(0.5, 2.0).as_text()), both(0.5, 2.0)]
                results += [jax.vmap(jax.jit(one), (0, None))(jnp.asarray(X), 2.0)]
        return results

    compare.same(program)


@pytest.mark.oracle
def test_rules_of_two_kinds_are_set_on_wrapped_functions():
    def program(jax, jnp):
        import importlib

        custom_vmap = importlib.import_module(f"{jax.__name__}.custom_batching").custom_vmap
        f = jax.custom_vjp(custom_vmap(lambda x, y: jnp.sin(x) * y))
        f.def_vmap(lambda size, batched, x, y: (jnp.cos(x) * y, True))
        f.defvjp(lambda x, y: (f(x, y), y), lambda y, ct: (ct * y, ct))
        g = custom_vmap(jax.custom_jvp(lambda x: 2.0 * x))
        g.def_vmap(lambda size, batched, x: (3.0 * x, True))
        g.defjvp(lambda p, t: (g(*p), 5.0 * t[0]))
        return jax.vmap(f)(X, X), jax.grad(f)(0.5, 2.0), jax.vmap(g)(X), g(1.0), hasattr(g, "defvjp")

    compare.same(program)


@pytest.mark.oracle
def test_tangents_without_numbers_are_made():
    def program(jax, jnp):
        zero = jnp.zeros((), jax.dtypes.float0)
        f = jax.custom_jvp(lambda x, y: (x, y))
        f.defjvp(lambda p, _: (tuple(p), (2.0, jax.custom_derivatives.zero_from_primal(p[1]))))
        loop = lambda x, y: jax.lax.scan(lambda c, _: (f(*c), None), (x, y), None, length=1)[0]  # noqa: E731
        made = [jnp.zeros((2, 0), jax.dtypes.float0), jnp.zeros_like(np.zeros(3, jax.dtypes.float0))]
        results = [jax.jvp(g, (2.0, 3), (1.0, zero)) for g in (f, loop)]
        return [(x.shape, x.dtype) for x in made], [(a, ct, t.dtype, t.shape) for ((a, _), (ct, t)) in results]

    compare.same(program)


def test_backward_results_of_other_shapes_are_accepted_if_the_option_allows_them():
    import minijax as jax

    f = jax.custom_vjp(lambda x, y: x)
    f.defvjp(lambda x, y: (x, None), lambda _, ct: (np.zeros(3, np.float32), np.zeros(3, np.float32)))
    grad = jax.grad(lambda x, y: f(x, y).sum(), 1)
    args = np.ones(3, np.float32), np.ones(4, np.float32)
    with pytest.raises(ValueError, match="Custom VJP bwd rule must produce an output with the same type"):
        grad(*args)
    jax.config.update("jax_disable_bwd_checks", True)
    try:
        assert grad(*args).shape == (3,)
    finally:
        jax.config.update("jax_disable_bwd_checks", False)


LINEARIZED = {
    "a constant tangent": lambda jax, jnp: lambda p, t: (p[0], jnp.full(3, 3.0, jnp.float32)),
    "a tangent of primals": lambda jax, jnp: lambda p, t: (p[0], jnp.sin(p[0])),
    "a jitted function of both": lambda jax, jnp: (
        lambda p, t: jax.jvp(lambda x: jax.jit(lambda y, z: y)(x, x)[1] * x, p, t)
    ),
    "an inlined function of both": lambda jax, jnp: lambda p, t: jax.jvp(jax.jit(lambda x: x * 2, inline=True), p, t),
    "a jitted choice": lambda jax, jnp: lambda p, t: jax.jvp(jnp.nan_to_num, p, t),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", LINEARIZED)
def test_rules_are_linearized_as_by_jax(name):
    def program(jax, jnp):
        def f(x):
            g = jax.custom_jvp(lambda x: x * 1.0)
            g.defjvp(LINEARIZED[name](jax, jnp))
            value, push = jax.linearize(lambda x: jnp.sum(jnp.sin(g(x))), x)
            return value, push(x), jax.grad(lambda x: jnp.sum(g(x)))(x)

        return f

    compare.check(compare.Case(name, program, (np.arange(3, dtype=np.float32),)), "full")


@pytest.mark.oracle
def test_constants_of_a_custom_function_are_its_operands():
    def program(jax):
        f = jax.custom_vjp(lambda x: jax.jit(lambda y: y[np.array([0, 1])] * x.sum())(x))
        f.defvjp(lambda x: (f(x), x), lambda x, ct: (x,))
        return f

    compare.same_jaxpr(program, np.arange(3, dtype=np.float32))


def _squared(jax, jnp):
    @jax.custom_gradient
    def f(x, *, k=2.0):
        return x**2 * k, lambda ct: ct * x * 7.0

    return f


def _made(way):
    return lambda jax, jnp: way(jax, jnp, _squared(jax, jnp))


@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
def test_operands_are_captured_before_what_the_function_captures(kind):
    w, table = np.arange(3, dtype=np.float32), np.arange(9, dtype=np.float32).reshape(3, 3)

    def program(jax, jnp):
        given, row = jnp.asarray(w), jnp.asarray(table)
        f = getattr(jax, kind)(lambda x: jnp.sum(row @ x))
        if kind == "custom_jvp":
            f.defjvp(lambda p, t: (f(*p), jnp.sum(t[0])))
        else:
            f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * x,))
        return lambda x: (f(given), jax.jit(lambda y: f(given) * y)(x), jax.grad(lambda y: f(y * given))(x))

    compare.same_jaxpr(program, w)


def test_custom_gradient_under_transformations(tier):
    ways = {
        "plain": lambda jax, jnp, f: f,
        "grad": lambda jax, jnp, f: jax.grad(f),
        "grad of jit": lambda jax, jnp, f: jax.grad(jax.jit(f)),
        "grad of checkpoint": lambda jax, jnp, f: jax.grad(jax.checkpoint(f)),
        "vmap of grad": lambda jax, jnp, f: jax.vmap(jax.grad(f)),
        "grad of scan": lambda jax, jnp, f: jax.grad(
            lambda x: jax.lax.scan(lambda c, v: (f(c) * v, None), x, jnp.ones(3))[0]
        ),
    }
    cases = [
        compare.Case(f"custom_gradient {name}", _made(way), (X if "vmap" in name else 3.0,))
        for name, way in ways.items()
    ]
    compare.sweep(cases, tier)


def test_arguments_by_keyword_only_are_defaults():
    def program(jax, jnp):
        f = _squared(jax, jnp)
        g = jax.custom_jvp(lambda x, y=2.0, *, k=3.0: x * y * k)
        g.defjvp(lambda primals, tangents: (g(*primals), tangents[0] * len(primals)))
        return f(1.0), jax.grad(f)(2.0), g(1.0), g(x=1.0), jax.jvp(g, (1.0,), (1.0,)), jax.grad(g)(2.0, 4.0)

    compare.same(program)
    text = "jax.custom_gradient(lambda x, *, k=1.0: (x * k, lambda ct: ct))(1.0, k=3.0)"
    compare.same_misuse(text, {}, "could not be resolved to positional-only arguments")


@pytest.mark.oracle
def test_rules_of_constants_are_recorded_while_a_function_is_traced():
    def program(jax):
        rule, pair = jax.custom_jvp(lambda x: x * 2), jax.custom_vjp(lambda x: x * 3)
        rule.defjvps(lambda t, ans, x: t)
        pair.defvjp(lambda x: (x, None), lambda saved, ct: (ct,))
        fixed = jax.numpy.arange(3.0)
        return lambda x: (x + rule(fixed), x + pair(fixed), rule(2.0) * x)

    compare.same_jaxpr(program, np.arange(3, dtype=np.float32))


@pytest.mark.oracle
@pytest.mark.parametrize("value", [2**40, "a", object, [1, "a"], {"a": 2**40}, np.ones(2, "S1")], ids=str)
@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
def test_eager_arguments_and_results_are_values(kind, value):
    def called(jax, f, x):
        rule = getattr(jax, kind)(f)
        if kind == "custom_jvp":
            rule.defjvp(lambda primals, tangents: (primals[0], tangents[0]))
        else:
            rule.defvjp(lambda x: (x, None), lambda saved, ct: (ct,))
        return rule(x)

    def sides(f, x):
        return [lambda jax=jax: called(jax, f, x) for jax in (compare.ours(), compare.theirs())]

    compare.same_error(*sides(lambda x: x, value))
    compare.same_error(*sides(lambda x: value, 2.0))
    compare.same_error(*sides(lambda x: value, np.ones(2)))


@pytest.mark.oracle
def test_values_without_numbers_have_no_type():
    interpreted = "Error interpreting argument"
    for dtype in ("S1", "U1", object, "datetime64[s]", ">i4", np.longdouble, np.clongdouble):
        x = np.zeros(2, dtype)
        for use, phrase in (
            (lambda jax, x: jax.typeof(x), "is not a valid JAX array type"),
            (lambda jax, x: jax.eval_shape(lambda y: y, x), interpreted),
            (lambda jax, x: jax.make_jaxpr(lambda y: y)(x), interpreted),
            (lambda jax, x: jax.jit(lambda y: 1)(x), interpreted),
        ):
            calls = [lambda jax=jax, x=x, use=use: use(jax, x) for jax in (compare.ours(), compare.theirs())]
            compare.same_error(*calls, [phrase])


@pytest.mark.oracle
def test_symbolic_zeros_go_through_vmap_and_jit():
    a = np.arange(3.0, dtype=np.float32)

    def forward(jax):
        f = jax.custom_jvp(lambda x, y: (x * y, y))
        f.defjvp(lambda p, t: (f(*p), (t[0] * p[1], t[1])), symbolic_zeros=True)
        one = lambda x: jax.vmap(jax.jit(f), (0, None))(x, 2.0)  # noqa: E731
        pushed = lambda g: jax.jvp(g, (a,), (a,))  # noqa: E731
        return pushed(lambda x: jax.vmap(f)(x, a)), pushed(one), jax.jit(pushed, static_argnums=0)(jax.jit(one))

    def backward(jax):
        seen = []
        f = jax.custom_vjp(lambda x, y: (x * y, y))

        def fwd(x, y):
            seen.append((x.perturbed, y.perturbed))
            return (x.value * y.value, y.value), (x.value, y.value)

        def bwd(residuals, cts):
            seen.append([type(ct).__name__ == "SymbolicZero" for ct in cts])
            return cts[0] * residuals[1], None

        f.defvjp(fwd, bwd, symbolic_zeros=True)
        one = lambda x: jax.vmap(f, (0, None))(x, 2.0)[0].sum()  # noqa: E731
        return (jax.vmap(jax.grad(lambda x, y: f(x, y)[0]))(a, a), jax.grad(one)(a),
                jax.jit(jax.grad(jax.jit(one)))(a), seen)  # fmt: skip

    compare.same(forward)
    compare.same(backward)


def _in_scan(lax, f, x):
    return lax.scan(lambda x, _: (f(x), None), x, None, length=1)[0]


def _jvp_of(jax, lax, rule):
    f = jax.custom_jvp(lambda x: x)
    f.defjvp(rule)
    return lambda: jax.jvp(lambda x: _in_scan(lax, f, x), (np.float32(1),), (np.float32(1),))


def _grad_of(jax, lax, fwd, bwd=lambda _, ct: (ct,)):
    f = jax.custom_vjp(lambda x: x)
    f.defvjp(fwd, bwd)
    return lambda: jax.grad(lambda x: _in_scan(lax, f, x))(np.float32(1))


_MISFITS = {
    "jvp tree": (
        lambda jax, jnp, lax: _jvp_of(jax, lax, lambda p, t: (p * 2, t * 2)),
        "rule output's first element had container/pytree structure:\n    (float32[], float32[])\nwhile the custom_jvp",
    ),
    "jvp types": (
        lambda jax, jnp, lax: _jvp_of(jax, lax, lambda p, t: (jnp.zeros(3), t[0])),
        "rule output's first element had shapes/dtypes of:\n    float32[3]\nwhile the custom_jvp-decorated function",
    ),
    "jvp tangent": (
        lambda jax, jnp, lax: _jvp_of(jax, lax, lambda p, t: (p[0], jnp.zeros(3))),
        "Expected float32[] (tangent type of float32[]) but got float32[3].",
    ),
    "jvp alone": (lambda jax, jnp, lax: _jvp_of(jax, lax, lambda p, t: p[0]), "primal and tangent outputs, but got "),
    "fwd tree": (
        lambda jax, jnp, lax: _grad_of(jax, lax, lambda x: ((x, x), None)),
        "but instead the fwd rule output's first element had container/pytree structure:\n    (float32[], float32[])",
    ),
    "fwd types": (
        lambda jax, jnp, lax: _grad_of(jax, lax, lambda x: (jnp.zeros(3), None)),
        "first element had shapes/dtypes of:\n    float32[3]\nwhile the custom_vjp-decorated function",
    ),
    "bwd shape": (
        lambda jax, jnp, lax: _grad_of(jax, lax, lambda x: (x, None), lambda _, ct: (jnp.zeros(3),)),
        "at output[0] the bwd rule produced an output of type float32[3]",
    ),
}


@pytest.mark.parametrize("name", _MISFITS)
def test_rules_whose_results_do_not_fit_the_function(name):
    call, phrase = _MISFITS[name]
    compare.same_refusal(call, phrases=[phrase])


def test_symbolic_zeros_of_another_shape_are_refused():
    def call(jax, jnp):
        f = jax.custom_vjp(lambda x, y, z: (x, y, z))
        fwd = lambda x, y, z: ((x.value, y.value, z.value), None)  # noqa: E731
        f.defvjp(fwd, lambda _, cts: (cts[1], cts[0], cts[2]), symbolic_zeros=True)
        return lambda: jax.grad(lambda x, y, z: f(x, y, z)[2].sum())(jnp.ones(1), jnp.ones(2), jnp.ones(3))

    compare.same_refusal(call, phrases=["at output[0]", "Consider just returning a None here"])


def test_checks_of_backward_results_can_be_disabled():
    def program(jax, jnp):
        f = jax.custom_vjp(lambda x, y: x)
        f.defvjp(lambda x, y: (x, None), lambda _, ct: (jnp.zeros(3), jnp.zeros(3)))
        jax.config.update("jax_disable_bwd_checks", True)
        try:
            return jax.grad(lambda x, y: f(x, y).sum(), 1)(jnp.ones(3), jnp.ones(4))
        finally:
            jax.config.update("jax_disable_bwd_checks", False)

    compare.same(program)


def _closing_over(jax, rules, x):
    """A function of constants that closes over `x`."""
    if rules == "jvp":
        g = jax.custom_jvp(lambda y: x + y)
        g.defjvp(lambda primals, tangents: (g(x), 2 * primals[0]))
    else:
        g = jax.custom_vjp(lambda y: x * y)
        g.defvjp(lambda y: (x * y, x), lambda r, ct: (r * ct,))
    return g(1.0)


@pytest.mark.parametrize("rules", ["jvp", "vjp"])
def test_functions_with_rules_do_not_close_over_values_being_differentiated(rules):
    for transformed in (
        lambda jax: jax.grad(lambda x: _closing_over(jax, rules, x)),
        lambda jax: jax.jit(jax.grad(lambda x: _closing_over(jax, rules, x))),
        lambda jax: lambda x: jax.jvp(lambda x: _closing_over(jax, rules, x), (x,), (x,)),
    ):
        compare.same_refusal(lambda jax, t=transformed: lambda: t(jax)(3.0))
    compare.same(lambda jax, jnp: jax.vmap(lambda x: _closing_over(jax, rules, x))(jnp.arange(3.0)))
    compare.same(lambda jax, jnp: jax.jit(lambda x: _closing_over(jax, rules, x))(3.0))


def test_arrays_of_float0_as_tangents_of_integers():
    def program(jax, jnp):
        zero = jnp.zeros((), jax.dtypes.float0)
        f = jax.custom_jvp(lambda x, y: (x, y))
        f.defjvp(lambda p, _: (p, (2.0, jax.custom_derivatives.zero_from_primal(p[1]))))
        return jax.jvp(f, (jnp.float32(2), jnp.int32(3)), (np.ones(()), zero))

    compare.same(program)


def product(jax, kind):
    if kind == "jvp":
        f = jax.custom_jvp(lambda x, n: x * n)
        f.defjvp(lambda p, t: (p[0] * p[1], t[0] * p[1].astype("float32")))
    else:
        f = jax.custom_vjp(lambda x, n: x * n)
        f.defvjp(lambda x, n: (x * n, (n, n.astype("int8"))), lambda r, ct: (ct * r[0], None))
    return f


@pytest.mark.oracle
@pytest.mark.parametrize("kind", ["jvp", "vjp"])
@pytest.mark.parametrize("number", [3, 2.5])
@pytest.mark.parametrize(
    "derivative",
    {
        "grad of jit": lambda jax, f: jax.grad(jax.jit(f)),
        "grad of a scan": lambda jax, f: jax.grad(lambda x: jax.lax.scan(lambda c, _: (f(c), None), x, None, 2)[0]),
        "grad of checkpoint": lambda jax, f: jax.grad(jax.checkpoint(f)),
        "grad of cond": lambda jax, f: jax.grad(lambda x: jax.lax.cond(x > 0, f, lambda x: x, x)),
        "vmap of grad of jit": lambda jax, f: lambda x: jax.vmap(jax.grad(jax.jit(f)))(x[None]),
        "jvp of jit": lambda jax, f: lambda x: jax.jvp(jax.jit(f), (x,), (x,)),
    }.items(),
    ids=lambda item: item[0],
)
def test_rules_get_numbers_of_a_jaxpr_as_tracers(kind, number, derivative):
    name, of = derivative
    if (kind, name) != ("vjp", "jvp of jit"):
        compare.same_jaxpr(lambda jax: of(jax, lambda x: product(jax, kind)(x, number)), np.float32(2))


def test_rules_get_python_numbers_that_have_a_dtype():
    def program(jax, jnp):
        seen = []

        def note(*values):
            seen.append([f"{type(v).__name__} {v!r} {getattr(v, 'dtype', None)}" for v in values])

        @jax.custom_vjp
        def times(x, n):
            note(x, n)
            return x * n

        def forward(x, n):
            note(n)
            return x * n, n

        times.defvjp(forward, lambda n, g: (g * n, None))
        power = jax.custom_jvp(lambda x, n: x**n)

        def push(primals, tangents):
            note(primals[1])
            return power(*primals), tangents[0] * primals[1]

        power.defjvp(push)
        for n in (3, 2.5, True):
            times(2.0, n)
            jax.grad(lambda x: times(x, n))(1.0)  # noqa: B023
            jax.jvp(lambda x: power(x, n), (1.0,), (1.0,))  # noqa: B023
        kept = jax.checkpoint(lambda t: t)({"a": 1, "b": 2.5, "c": 1j})
        note(*jax.tree.leaves(kept))
        return seen

    assert "TypedInt(3, dtype=int32)" in str(compare.same(program))


def test_a_typed_number_is_a_number_everywhere():
    number = minijax.checkpoint(lambda x: x)(2.5)
    assert repr(number) == "TypedFloat(2.5, dtype=float32)" and str(number) == "2.5" and number == 2.5
    copied = pickle.loads(pickle.dumps(number))
    assert type(copied) is type(number) and copied.dtype == np.float32
    assert minijax.typeof(number).str_short() == minijax.typeof(2.5).str_short()
    assert (minijax.jit(lambda x: x * 2)(number) == 5.0) and minijax.numpy.asarray(number).weak_type
    assert minijax.numpy.ones(2, "float16").dtype == (minijax.numpy.ones(2, "float16") * number).dtype
