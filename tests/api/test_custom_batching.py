"""`custom_vmap` and `sequential_vmap` under each transformation, and what their rules may not give."""

import compare
import numpy as np
import pytest
from compare import Case

X = np.array([0.5, -1.5, 2.0], np.float32)
M = np.stack([X, X + 1])


def product(jax, jnp):
    """A function whose rule gives another result, so that it shows where the rule ran."""
    f = jax.custom_batching.custom_vmap(lambda x, y: jnp.sin(x) * y)

    @f.def_vmap
    def rule(size, in_batched, x, y):
        out = jnp.cos(x) * y + size if any(in_batched) else x
        return out, any(in_batched)

    return f


def of_trees(jax, jnp):
    f = jax.custom_batching.custom_vmap(lambda d, y: {"o": d["a"] * y, "p": (y,)})

    @f.def_vmap
    def rule(size, in_batched, d, y):
        return {"o": d["a"] * y * 2, "p": (y,)}, {"o": True, "p": (in_batched[1],)}

    return lambda x, y: f({"a": x}, y)


def sequential(jax, jnp):
    return jax.custom_batching.sequential_vmap(lambda x, y: jnp.sin(x) * y)


def with_captured_array(jax, jnp):
    a = jnp.arange(3.0)
    f = jax.custom_batching.custom_vmap(lambda x, y: x * a + y)
    f.def_vmap(lambda size, in_batched, x, y: (x * a * 2 + y, any(in_batched)))
    return f


def pushed(jax, f):
    return lambda x, y: jax.jvp(f, (x, y), (x * 0.5, y * 2.0))


# For each way: what becomes of the function, and the arguments.
WAYS = {
    "plain": (lambda jax, f: f, (0.5, 2.0)),
    "jit": (lambda jax, f: jax.jit(f), (0.5, 2.0)),
    "jvp": (pushed, (0.5, 2.0)),
    "half jvp": (lambda jax, f: lambda x, y: jax.jvp(lambda x: f(x, y), (x,), (x,)), (0.5, 2.0)),
    "jvp of jvp": (lambda jax, f: pushed(jax, lambda x, y: pushed(jax, f)(x, y)[1]), (0.5, 2.0)),
    "checkpoint": (lambda jax, f: jax.checkpoint(f), (0.5, 2.0)),
    "vmap": (lambda jax, f: jax.vmap(f), (X, X + 1)),
    "first": (lambda jax, f: jax.vmap(f, (0, None)), (X, 2.0)),
    "second": (lambda jax, f: jax.vmap(f, (None, 0)), (2.0, X)),
    "axis 1": (lambda jax, f: jax.vmap(f, (1, None), 1), (M, 2.0)),
    "vmap of vmap": (lambda jax, f: jax.vmap(jax.vmap(f)), (M, M + 1)),
    "crossed": (lambda jax, f: jax.vmap(jax.vmap(f, (0, None)), (None, 0)), (X, X + 1)),
    "vmap of jit": (lambda jax, f: jax.vmap(jax.jit(f)), (X, X + 1)),
    "jit of vmap": (lambda jax, f: jax.jit(jax.vmap(f)), (X, X + 1)),
    "vmap of jvp": (lambda jax, f: jax.vmap(pushed(jax, f)), (X, X + 1)),
    "half vmap of jvp": (lambda jax, f: jax.vmap(pushed(jax, f), (0, None)), (X, 2.0)),
    "jvp of vmap": (lambda jax, f: pushed(jax, jax.vmap(f)), (X, X + 1)),
    "scan": (lambda jax, f: lambda x, y: jax.lax.scan(lambda c, v: (v, f(x, v)), x, y), (0.5, X)),
    "vmap of scan": (lambda jax, f: jax.vmap(lambda x, y: jax.lax.scan(lambda c, v: (v, f(x, v)), x, y)), (X[:2], M)),
    "cond": (lambda jax, f: lambda x, y: jax.lax.cond(x > 0, lambda: f(x, y), lambda: f(y, x)), (0.5, 2.0)),
}
REVERSE = {
    "grad of vmap": lambda jax, f: jax.grad(lambda x, y: jax.vmap(f)(x, y).sum(), (0, 1)),
    "jit of grad of vmap": lambda jax, f: jax.jit(jax.grad(lambda x, y: jax.vmap(f)(x, y).sum())),
}


@pytest.mark.parametrize("make", [product, of_trees, sequential, with_captured_array])
def test_custom_vmap_under_transformations(tier, make):
    def case(way, become, args):
        args = tuple(
            a[..., None] * np.ones(3, np.float32) if make is with_captured_array and np.ndim(a) else a for a in args
        )
        return Case(f"{make.__name__} {way}", lambda jax, jnp: become(jax, make(jax, jnp)), args)

    ways = {"plain", "jit", "jvp", "vmap", "first", "second", "jvp of vmap", "vmap of jvp"}
    chosen = ways if make in (of_trees, with_captured_array) else WAYS
    if make is with_captured_array:
        # Of a captured value's zero tangent jax makes no batch, and gets results of a wrong shape.
        chosen = ways - {"vmap of jvp"}
    compare.sweep([case(way, *WAYS[way]) for way in WAYS if way in chosen], tier)


@pytest.mark.parametrize("way", REVERSE)
def test_rules_have_reverse_derivatives(tier, way):
    compare.sweep([Case(way, lambda jax, jnp: REVERSE[way](jax, product(jax, jnp)), (X, X + 1))], tier)


@pytest.mark.parametrize(
    "call",
    [
        lambda jax, f, x: jax.grad(f)(1.0, 2.0),
        lambda jax, f, x: jax.linearize(f, 1.0, 2.0),
        lambda jax, f, x: jax.vmap(jax.grad(f))(x, x),
        lambda jax, f, x: jax.jit(jax.grad(f))(1.0, 2.0),
    ],
)
def test_the_function_itself_has_none(call):
    def run(jax, jnp):
        f = product(jax, jnp)
        return lambda: call(jax, f, jnp.ones(3))

    compare.same_refusal(run, phrases=["reverse-mode autodiff"])


def test_a_tangent_without_batch_axis():
    def program(jax, jnp):
        f = product(jax, jnp)
        return jax.vmap(lambda x, y: jax.jvp(lambda x: f(x, y), (x,), (1.0,)))(X, X + 1)

    compare.same(program)


def test_arguments_batched_with_and_without_their_tangents():
    # jax gives this a second batch axis.
    import minijax as jax

    f = product(jax, jax.numpy)
    out, tangent = jax.vmap(lambda x, y, t: jax.jvp(f, (x, y), (t, 1.0)))(X, X + 1, X)
    np.testing.assert_allclose(out, np.cos(X) * (X + 1) + 3, rtol=1e-6)
    np.testing.assert_allclose(tangent, -np.sin(X) * (X + 1) * X + np.cos(X), rtol=1e-6)


@pytest.mark.oracle
def test_a_rule_sees_no_batch_where_a_value_or_its_tangent_alone_has_one():
    def run(jax, jnp):
        seen = []

        def of(fun, rule):
            f = jax.custom_batching.custom_vmap(fun)
            f.def_vmap(lambda size, flags, x: (seen.append((size, flags)), (rule(x), flags[0]))[1])
            return lambda x, t: jax.jvp(f, (x,), (t,))

        sine, linear = of(jnp.sin, jnp.cos), of(lambda x: 7.0 * x, lambda x: 11.0 * x)
        return (
            jax.vmap(sine, (None, 0), (None, 0))(1.0, X),
            jax.vmap(sine, (0, None))(X, 4.0),
            jax.vmap(linear, (0, None), (0, None))(X, 4.0),
            jax.vmap(sine)(X, X),
            jax.jacfwd(lambda x: sine(x, x)[0])(jnp.asarray(X)),
            seen,
        )

    compare.same(run)


@pytest.mark.parametrize(
    "rule, phrase",
    [
        ("lambda s, b, x: x", "unpack"),
        ("lambda s, b, x: (x,)", "unpack"),
        ("lambda s, b, x: (x, True, 3)", "unpack"),
        ("lambda s, b, x: ((x, x), True)", "structure of output value and output batching specification"),
        ("lambda s, b, x: (x, (True,))", "structure of output value and output batching specification"),
        ("lambda s, b, x: (x, None)", "structure of output value and output batching specification"),
        ("lambda s, b, x: ([x], [True])", "does not match that of original custom-vmapped function"),
        ("lambda s, b, x: (x[0], True)", ""),
        ("lambda s, b, x: ('a', True)", ""),
        ("lambda s, b: (1.0, True)", "positional argument"),
        ("None", "No batching rule defined for custom_vmap function"),
    ],
)
def test_rule_misuse(rule, phrase):
    text = f"[f := jax.custom_batching.custom_vmap(lambda x: x * 2), f.def_vmap({rule}), jax.vmap(f)(x)]"
    compare.same_misuse(text, {"x": X}, phrase)


def test_arguments_by_name():
    def program(jax, jnp, custom_batching):
        f = custom_batching.custom_vmap(lambda x, y=2.0, *, k=3.0: x * y * k)
        f.def_vmap(lambda s, b, x, y: (x + y, any(b)))
        x = jnp.asarray(X)
        return (f(x), f(x=x), f(y=x, x=1.0), jax.vmap(lambda x: f(y=x, x=1.0))(x), f.__name__, f.__wrapped__ is f.fun)

    compare.same(program)
    compare.same_misuse("jax.custom_batching.custom_vmap(lambda x, *, k=3: x)(1.0, k=2)", {}, "could not be resolved")


def test_captured_values_must_not_be_batched():
    text = (
        "jax.vmap(lambda z: [f := jax.custom_batching.custom_vmap(lambda x: x * z), "
        "f.def_vmap(lambda s, b, x: (x, b[0])), f(1.0)])(x)"
    )
    compare.same_misuse(text, {"x": X}, "")


_PARTS = {
    "primals": lambda jax, f, x: jax.vmap(lambda x, t: jax.jvp(f, [x], [t]), (0, None))(x, x[0]),
    "tangents": lambda jax, f, x: jax.vmap(lambda x, t: jax.jvp(f, [x], [t]), (None, 0))(x[0], x),
    "both": lambda jax, f, x: jax.vmap(lambda x, t: jax.jvp(f, [x], [t]))(x, x + 1),
    "jacfwd": lambda jax, f, x: jax.jacfwd(f)(x),
}


@pytest.mark.parametrize("part", _PARTS)
def test_rules_receive_which_arguments_are_batched_with_their_tangents(part):
    def program(jax, jnp):
        told = []

        @jax.custom_batching.custom_vmap
        def f(x):
            return jnp.sin(x) * x

        @f.def_vmap
        def rule(size, in_batched, x):
            told.append((size, list(in_batched)))
            return jnp.cos(x) * x, in_batched[0]

        return _PARTS[part](jax, f, jnp.arange(3.0) + 0.5), told[0]

    compare.same(program, rtol=1e-6, why="the order of products")


def test_linear_rules_keep_unbatched_tangents():
    def program(jax, jnp):
        f = jax.custom_batching.custom_vmap(lambda x: 7.0 * x)
        f.def_vmap(lambda size, in_batched, x: (11.0 * x, in_batched[0]))
        push = jax.vmap(lambda x, t: jax.jvp(f, [x], [t]), (0, None), (0, None))
        return push(jnp.arange(3.0), jnp.float32(4))

    compare.same(program)


def test_rules_of_other_kinds_are_set_through_the_outermost_function():
    def program(jax, jnp):
        f = jax.custom_batching.custom_vmap(jax.custom_jvp(lambda x: 2.0 * x))
        f.def_vmap(lambda size, in_batched, x: (3.0 * x, True))
        f.defjvp(lambda primals, tangents: (2.0 * primals[0], 5.0 * tangents[0]))
        g = jax.custom_vjp(jax.custom_batching.custom_vmap(lambda x: jnp.sin(x)))
        g.def_vmap(lambda size, in_batched, x: (jnp.cos(x), True))
        g.defvjp(lambda x: (g(x), x), lambda x, ct: (7.0 * ct * x,))
        xs = jnp.arange(3.0)
        return jax.vmap(f)(xs), jax.jvp(f, (1.0,), (1.0,)), jax.vmap(g)(xs), jax.grad(g)(2.0)

    compare.same(program)
    compare.same_refusal(lambda jax: lambda: jax.custom_jvp(lambda x: x).def_vmap)


def test_a_function_without_results_is_linearized():
    def program(jax, jnp):
        @jax.custom_batching.custom_vmap
        def f(x):
            return None

        f.def_vmap(lambda size, batched, x: (None, None))
        return lambda x: (
            jax.grad(lambda x: (f(x), jnp.sum(x * x))[1])(x),
            jax.vmap(jax.grad(lambda y: (f(y), y)[1]))(x),
        )

    compare.same_jaxpr(program, np.arange(3, dtype=np.float32))
    compare.same(lambda jax, jnp: program(jax, jnp)(jnp.arange(3.0)))


def test_errors_of_derivatives_come_before_that_of_reverse_mode():
    def run(jax, jnp):
        f = jax.custom_batching.custom_vmap(lambda x: x.at[0].apply(jnp.sin))
        f.def_vmap(lambda size, batched, x: (x, True))
        return lambda: jax.grad(lambda x: f(x).sum())(jnp.arange(3.0))

    compare.same_refusal(run, phrases=["JVP"])
