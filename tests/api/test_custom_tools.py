"""Tools for custom derivatives: converted closures, linear calls, zeros, and rules that run only going back."""

import compare
import numpy as np
import pytest
from compare import Case

X = np.array([0.5, -1.5, 2.0], np.float32)

WAYS = {
    "plain": lambda jax, f: f,
    "jit": lambda jax, f: jax.jit(f),
    "jvp": lambda jax, f: lambda x, y: jax.jvp(f, (x, y), (x, y)),
    "half jvp": lambda jax, f: lambda x, y: jax.jvp(lambda x: f(x, y), (x,), (x,)),
    "linearize": lambda jax, f: lambda x, y: jax.linearize(f, x, y)[1](x, y),
    "grad": lambda jax, f: jax.grad(f),
    "both grads": lambda jax, f: jax.grad(f, (0, 1)),
    "grad of jit": lambda jax, f: jax.grad(jax.jit(f)),
    "jit of grad": lambda jax, f: jax.jit(jax.grad(f)),
    "vmap": lambda jax, f: jax.vmap(f),
    "half vmap": lambda jax, f: jax.vmap(f, (0, None)),
    "vmap of grad": lambda jax, f: jax.vmap(jax.grad(f)),
    "half vmap of grad": lambda jax, f: jax.vmap(jax.grad(f), (None, 0)),
    "grad of vmap": lambda jax, f: jax.grad(lambda x, y: jax.vmap(f)(x, y).sum()),
    "grad of checkpoint": lambda jax, f: jax.grad(jax.checkpoint(f)),
    "grad of scan": lambda jax, f: jax.grad(
        lambda x, y: jax.lax.scan(lambda c, v: (c * 0.5 + f(c, v), None), 1.0 * x[0], y)[0]
    ),
    "value of vjp": lambda jax, f: lambda x, y: jax.vjp(f, x, y)[0],
    "jvp of grad": lambda jax, f: lambda x, y: jax.jvp(lambda x: jax.grad(f)(x, y), (x,), (x,)),
}


def cases(program, ways):
    def case(way):
        x = X if "vmap" in way and way != "half vmap of grad" or "scan" in way else 0.5
        y = X + 1 if "vmap" in way and way != "half vmap" or "scan" in way else 2.0
        return Case(f"{program.__name__} {way}", lambda jax, jnp: WAYS[way](jax, program(jax, jnp)), (x, y))

    return [case(way) for way in ways]


def converted(jax, jnp):
    def f(x, y):
        z, n = jnp.sin(x), jnp.int32(3)
        g, consts = jax.closure_convert(lambda v: {"r": z * v + x * X.sum() * n}, y)
        return g(y, *consts)["r"]

    return f


def linear(jax, jnp):
    def f(x, y):
        apply = jax.custom_derivatives.linear_call
        return x + apply(lambda r, t: t / r + t / 3.0, lambda r, t: t / r + t / 3.0, y, x)

    return f


def linear_of_trees(jax, jnp):
    def f(x, y):
        apply = jax.custom_derivatives.linear_call
        made = apply(
            lambda r, t: (t["a"] * r[0] + t["b"], t["b"] * y),
            lambda r, ct: {"a": ct[0] * r[0], "b": ct[0] + ct[1] * y},
            (2.0, 3.0),
            {"a": x, "b": x},
        )
        return made[0] * 2.0

    return f


def test_closure_convert(tier):
    # The texts of scans differ in how equal constants of a body are shared.
    compare.sweep(cases(converted, [w for w in WAYS if w not in ("grad of scan", "linearize")]), tier)


def test_closure_convert_hoists_differentiable_values():
    def program(jax, jnp):
        counts = []

        def f(x):
            i, b = jnp.int32(x), x > 0
            g, consts = jax.custom_derivatives.closure_convert(lambda v: jnp.where(b, v * i + x, 1.0), 1.0)
            counts.append((len(consts), g.__name__))
            return g(1.0, *consts)

        results = (f(2.0), jax.grad(f)(2.0), jax.jit(f)(2.0), jax.vmap(f)(jnp.asarray(X)), jax.jvp(f, (2.0,), (1.0,)))
        return results, counts

    compare.same(program)


@pytest.mark.parametrize(
    "call, phrase",
    [
        ("jax.closure_convert(lambda x, y: x, 1.0, {'a': 2})[0](1.0)", "same Pytree structure as"),
        ("jax.closure_convert(lambda x, y: x, 1.0, {'a': 2})[0](1.0, {'b': 2})", "same Pytree structure as"),
        ("jax.closure_convert(lambda x, y: x, 1.0, {'a': 2})[0](1.0, {'a': 2}, 3.0)", "same Pytree structure"),
        ("jax.closure_convert(3, 1.0)", "callable"),
        ("jax.closure_convert(lambda x: x, 'a')", "not a valid JAX type"),
        ("linear_call(3, lambda r, t: t, 1.0, x)", "callable"),
        ("linear_call(lambda r, t: t, 3, 1.0, x)", "callable"),
        ("jax.grad(lambda r: linear_call(lambda r, t: t * r, lambda r, t: t * r, r, 2.0))(1.0)", ""),
        ("jax.jvp(lambda c: linear_call(lambda r, t: t * c, lambda r, t: t, 1.0, 2.0), (1.0,), (1.0,))", ""),
        ("jax.grad(lambda x: linear_call(lambda r, t: t, lambda r, t: (t, t), 1.0, x))(2.0)", "that of linear inputs"),
        ("jax.grad(lambda x: linear_call(lambda r, t: t, lambda r, t: None, 1.0, x))(2.0)", "that of linear inputs"),
        ("jax.grad(lambda x: linear_call(lambda r, t: t, lambda r, t: jnp.ones(3), 1.0, x))(2.0)", "Expected cotangent"),
        ("jax.vmap(lambda x: linear_call(lambda r, t: t, lambda r, t: t, 1.0, x))(x)", "Batching rule for 'linear_call'"),
        ("jax.custom_derivatives.custom_vjp_primal_tree_values({'a': 1.0})", "unexpected leaf type"),
        ("jax.custom_vjp(abs).defvjp(1, 2, symbolic_zeros=True, optimize_remat=True)", "symbolic zeros"),
    ],
)  # fmt: skip
def test_misuse(call, phrase):
    compare.same_misuse(
        call.replace("linear_call", "jax.custom_derivatives.linear_call").replace(
            "'jax.custom_derivatives.linear_call'", "'linear_call'"
        ),
        {"x": X},
        phrase.replace("jax.custom_derivatives.", ""),
    )


def test_linear_call(tier):
    known = ("plain", "jit", "half jvp", "grad", "grad of jit", "jit of grad", "grad of checkpoint")
    # A transpose that captures values of a jitted function finds them gone.
    open_ways = [w for w in known if "of jit" not in w and "checkpoint" not in w]
    compare.sweep([*cases(linear, known), *cases(linear_of_trees, open_ways)], tier)


def test_linear_call_transposed(tier):
    def program(jax, jnp):
        f = linear_of_trees(jax, jnp)
        return lambda x, y: jax.linear_transpose(lambda x: f(x, y), x)(1.0)

    def twice(jax, jnp):
        f = linear(jax, jnp)
        back = lambda y: lambda ct: jax.linear_transpose(lambda x: f(x, y), 1.0)(ct)[0]  # noqa: E731
        return lambda x, y: jax.linear_transpose(back(y), 1.0)(x)

    compare.sweep([Case("once", program, (1.0, 2.0)), Case("twice", twice, (1.0, 2.0))], tier)


def test_zeros_from_primals():
    def program(jax, jnp, custom_derivatives):
        made = custom_derivatives.zero_from_primal
        primals = [1.0, 2, True, jnp.ones(3), jnp.arange(3), 1j]
        symbolic = [made(x, symbolic_zeros=True) for x in primals]
        kinds = [(repr(z), z.shape, z.ndim, z.size) for z in symbolic]
        pair = custom_derivatives.CustomVJPPrimal
        values = custom_derivatives.custom_vjp_primal_tree_values({"a": pair(1.0, True), "b": [pair(2, False)]})
        return [made(x) for x in primals], kinds, values

    compare.same(program)


def optimized(jax, jnp):
    f = jax.custom_vjp(lambda x, y: jnp.sin(x) * y)

    def fwd(x, y):
        r = jnp.sin(x)
        return r * y, (jnp.cos(x), y, r)

    def bwd(saved, ct):
        c, y, r = saved
        return ct * c * y, ct * r

    f.defvjp(fwd, bwd, optimize_remat=True)
    return f


def test_optimize_remat(tier):
    ways = [w for w in WAYS if w not in ("jvp", "half jvp", "grad of checkpoint", "grad of scan", "linearize")]
    compare.sweep([*cases(optimized, ways), *cases(optimized, ["grad of scan"])], tier)
    # In the backward pass, jax keeps unread equations of a checkpointed rule.
    compare.sweep(cases(optimized, ["grad of checkpoint"]), tier, jaxpr=False)


def _optimized_with_capture(jax, jnp, y):
    table = jnp.arange(3.0)
    f = jax.custom_vjp(lambda x: (x * table * y).sum())
    f.defvjp(lambda x: ((x * table * y).sum(), x), lambda saved, ct: (saved * ct,), optimize_remat=True)
    return f


DERIVATIVES = {
    "by the argument": lambda jax, value: lambda x, y: jax.jvp(lambda x: value(x, y), (x,), (x,)),
    "by what it captures": lambda jax, value: lambda x, y: jax.jvp(lambda y: value(x, y), (y,), (y,)),
    "by both": lambda jax, value: lambda x, y: jax.jvp(value, (x, y), (y, x)),
    "jacobian": lambda jax, value: jax.jacfwd(value),
    "last axes": lambda jax, value: lambda x, y: jax.vmap(value, (-1, 0))(jax.numpy.stack([x, y], -1), x[:2] * 2),
    "vmap of jvp": lambda jax, value: jax.vmap(lambda x, y: jax.jvp(lambda x: value(x, y), (x,), (x,)), (None, 0)),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", DERIVATIVES)
def test_optimize_remat_passes_the_tangents_that_are_not_zero(name):
    def program(jax, jnp):
        value = lambda x, y: jax.vjp(_optimized_with_capture(jax, jnp, y), x)[0]  # noqa: E731
        derivative = DERIVATIVES[name](jax, value)
        return lambda x, y: (derivative(x, y), jax.jit(derivative)(x, y))

    x = np.arange(3, dtype=np.float32)
    compare.same_jaxpr(program, x, x + 2)


def test_the_rule_runs_only_going_back_under_checkpoint():
    def program(jax, jnp):
        f = jax.checkpoint(lambda x, y: jnp.cos(optimized(jax, jnp)(x, y)))
        text = str(jax.make_jaxpr(jax.value_and_grad(f))(1.0, 2.0))
        return [text.count(name) for name in ("closed_call[", "remat_opt[", "remat2[")], jax.value_and_grad(f)(1.0, 2.0)

    compare.same(program)


def test_optimize_remat_has_no_second_reverse_derivative():
    def run(jax, jnp):
        return lambda: jax.grad(jax.grad(optimized(jax, jnp)))(1.0, 2.0)

    compare.same_refusal(run, phrases=["reverse-mode autodiff"])


def captures(jax, jnp, checkpointed, rule):
    """The gradient of a checkpointed or scanned function whose rules capture a traced value."""

    def made(z):
        if rule == "jvp":
            f = jax.custom_jvp(lambda x, y: jnp.sin(x) * y * z)
            f.defjvp(lambda p, t: (f(*p), t[0] * p[1] * z))
            return f
        f = jax.custom_vjp(lambda x, y: jnp.sin(x) * y * z)
        f.defvjp(lambda x, y: (f(x, y), (x, y)), lambda r, ct: (ct * r[1] * z, ct * r[0] * z))
        return f

    if checkpointed:
        return lambda x, y, z: jax.grad(jax.checkpoint(made(z)))(x, y)
    return lambda x, y, z: jax.grad(lambda x: jax.lax.scan(lambda c, v: (made(z)(c, v), None), x, X)[0])(x)


@pytest.mark.parametrize("checkpointed, rule", [(True, "jvp"), (True, "vjp"), (False, "jvp")])
def test_rules_that_capture_traced_values(tier, checkpointed, rule):
    case = Case(f"{checkpointed} {rule}", lambda jax, jnp: captures(jax, jnp, checkpointed, rule), (1.0, 2.0, 3.0))
    # In the backward pass, jax keeps unread equations; a scan's jaxpr has captured values in another order.
    compare.sweep([case], tier, jaxpr=checkpointed and rule == "jvp")


@pytest.mark.oracle
def test_types_and_trees_are_taken_in_place_of_values():
    def program(jax, jnp):
        typed, consts = jax.closure_convert(lambda x: {"y": x["a"] * 2}, {"a": jax.ShapeDtypeStruct((2,), jnp.float32)})
        zeros = jax.custom_derivatives.zero_from_primal({"a": jnp.ones(2), "b": [2.0, 1j]})
        symbolic = jax.custom_derivatives.zero_from_primal({"a": jnp.ones(2), "n": 3}, symbolic_zeros=True)
        return typed({"a": jnp.ones(2)}), consts, zeros, {name: str(zero.aval) for name, zero in symbolic.items()}

    compare.same(program)
