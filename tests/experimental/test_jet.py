"""jax.experimental.jet: the jaxprs of the rules and their values, against jax and against nested jvp."""

import importlib
import math

import compare
import numpy as np
import pytest

pytestmark = pytest.mark.oracle

S = np.float32(0.5)
V = np.array([0.3, 0.7], np.float32)
M = np.array([[1, 2, 3], [4, 5, 3]], np.float32)
I = np.array([3, 5], np.int32)  # noqa: E741
NAMES = (
    "exp expm1 log log1p tanh sqrt rsqrt sin cos sinh cosh asinh atanh erf erfc erf_inv square sign floor ceil round "
    "is_finite logistic abs neg stop_gradient"
).split()
PROGRAMS = {
    **{name: (lambda lax, name=name: getattr(lax, name), V) for name in NAMES},
    "acosh": (lambda lax: lambda x: lax.acosh(x + 2), V),
    "pow": (lambda lax: lax.pow, V, V),
    "pow by a constant": (lambda lax: lambda x: lax.pow(x, 2.5), V),
    **{f"integer_pow {n}": (lambda lax, n=n: lambda x: lax.integer_pow(x, n), V) for n in (0, 1, 2, 3, 5, -1, -2)},
    "div": (lambda lax: lax.div, V, V),
    "div by a constant": (lambda jax: lambda x: (x / 2, 2 / x), V),
    "rem": (lambda lax: lax.rem, V, V[::-1]),
    "atan2": (lambda lax: lax.atan2, V, V),
    "max, min": (lambda lax: lambda x, y: lax.max(x, y) - lax.min(x, y), V, V[::-1]),
    "clamp": (lambda lax: lax.clamp, S, V[0], V[1]),
    "select": (lambda lax: lambda x, y: lax.select_n(x > y, x, y), V, V[::-1]),
    "dot": (lambda jax: lambda x, y: x @ y, M, M.T),
    "conv": (lambda lax: lambda x, y: lax.conv(x, y, (1, 1), "SAME"), M[None, None], M[None, None, :, :2]),
    "sums": (lambda jax: lambda x: (x.sum(0), x.max(0), x.min(1), x.cumsum(1)), M),
    "cumprod": (lambda lax: lambda x: (lax.cumprod(x), lax.cummax(x, reverse=True), lax.cummin(x)), V),
    "slices": (
        lambda lax: lambda x, y: (lax.dynamic_slice(x, (1,), (1,)), lax.dynamic_update_slice(x, y, (1,))),
        V,
        V[:1],
    ),
    "indices": (lambda jax: lambda x: (x[I % 2], x.at[I % 2].add(x)), V),
    "joining": (
        lambda jax, lax: lambda x, y: (lax.concatenate([x, V], 0), lax.pad(x, y, [(1, 1, 0)]), jax.numpy.stack([x, x])),
        V,
        S,
    ),
    "split": (lambda lax: lambda x: (lax.split(x, [1, 1]), lax.unstack(x), x[::-1], x.reshape(1, 2).T), V),
    "complex": (
        lambda lax: lambda x, y: lax.real(lax.conj(lax.complex(x, y)) ** 2) + lax.imag(lax.complex(y, x)),
        V,
        V,
    ),
    "fft": (lambda jnp: jnp.fft.rfft, V),
    "types": (lambda jnp: lambda x: (x.astype(jnp.int32) * 2, x > 0, jnp.array(x), x.astype(jnp.float16)), V),
    "integers": (lambda jnp: lambda x: (x & 1, x << 1, x * x, ~x), I),
    "constants": (lambda jax: lambda x: (x, 2.0, np.floor(V), {"a": None}), V),
    "jit": (lambda jax: lambda x, y: jax.jit(lambda x, y: (x * y, y))(x, 3.0 * y), V, V),
    "jit of a constant": (lambda jax: lambda x: jax.jit(lambda y: x * y)(2.0), V),
    "reduce_window_sum": (lambda lax: lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 1), "VALID"), M),
    "gradient": (lambda jax, jnp: jax.grad(lambda x: jnp.sum(jnp.sin(x) * x)), V),
    "mapped": (lambda jax, jnp: jax.vmap(lambda x: jnp.exp(x) * x), V),
    "tree": (lambda jnp: lambda x: {"a": [jnp.sin(x)], "b": x * x}, V),
}
GROUPS = 6


def module(jax):
    return importlib.import_module(f"{jax.__name__}.experimental.jet")


def jetted(program, order, **options):
    """The program of the function (arguments, coefficients of each) -> what jet gives."""

    def pushed(jax):
        fun, jet = compare.run_on(jax, program), module(jax).jet
        return lambda primals, series: jet(fun, primals, series, **options)

    return pushed


def coefficients(args, order):
    """Arrays of the arguments' types, other ones for each order."""
    return tuple([np.asarray(x * (k + 1) / 2).astype(x.dtype) for k in range(order)] for x in args)


@pytest.mark.parametrize("group", range(GROUPS))
def test_rules(group, tier):
    cases = [
        compare.Case(name, jetted(program, 3, factorial_scaled=False), (args, coefficients(args, 3)))
        for name, (program, *args) in list(PROGRAMS.items())[group::GROUPS]
        for args in [tuple(args)]
    ]
    compare.sweep(cases, tier)


WITHOUT_RULES = {
    "tan": lambda lax: lax.tan,
    "lgamma": lambda lax: lax.lgamma,
    "sort": lambda lax: lax.sort,
    "scan": lambda lax: lambda x: lax.scan(lambda c, _: (c * 2, c), x, None, length=2),
    "cond": lambda lax: lambda x: lax.cond(x[0] < 3, lax.sin, lax.cos, x),
    "checkpoint": lambda jax: jax.checkpoint(jax.numpy.sin),
}


@pytest.mark.parametrize("name", WITHOUT_RULES)
def test_operations_without_a_rule(name):
    def call(jax):
        return module(jax).jet(compare.run_on(jax, WITHOUT_RULES[name]), (V,), ([V],))

    compare.same_error(lambda: call(compare.ours()), lambda: call(compare.theirs()))


MISUSES = {
    "lengths": lambda jet: jet.jet(lambda x, y: x, (S, S), ([1.0], [1.0, 2.0])),
    "no arguments": lambda jet: jet.jet(lambda: S, (), ()),
    "no list": lambda jet: jet.jet(lambda x: x, (S,), (1.0,)),
    "tree": lambda jet: jet.jet(lambda x: x, ({"a": S},), ([1.0],)),
    "tree of terms": lambda jet: jet.jet2(lambda x: x, (S,), ([[1.0], 1.0],)),
    "text": lambda jet: jet.jet2(lambda x: x, ("a",), ([1.0],)),
    "zero_series": lambda jet: jet.jet(lambda x: x, (S,), (jet.zero_series,)),
}


@pytest.mark.parametrize("name", MISUSES)
def test_misuse(name):
    ours, theirs = compare.ours(), compare.theirs()
    compare.same_error(lambda: MISUSES[name](module(ours)), lambda: MISUSES[name](module(theirs)))


@pytest.mark.parametrize("scaled", [True, False])
def test_factorials_and_zeros(scaled):
    def values(jax, jnp):
        jet = module(jax)
        out = jet.jet(jnp.sin, (1.0,), ((1.0, 0.0),), factorial_scaled=scaled, ignored=0)
        mixed = jet.jet2(jnp.multiply, (S, S), ([jet.zero_term] * 2, [1.0, 2.0]))
        return out, mixed, jet.jet2(jnp.sin, [S], [[jet.zero_term, 1.0]])

    compare.same(values, rtol=1e-6, why="lgamma and fused products round differently")


def test_jaxpr_with_factorials():
    compare.same_jaxpr(jetted(lambda jnp: jnp.sin, 3), (V,), coefficients((V,), 3))


def test_derivatives_are_those_of_nested_jvp():
    jax = compare.ours()
    jnp = importlib.import_module("minijax.numpy")

    def f(x):
        return jnp.tanh(x) / (2 + jnp.sin(x))

    def derivative(g):
        return lambda x: jax.jvp(g, (x,), (jnp.ones_like(x),))[1]

    with jax.enable_x64(True):
        x = jnp.asarray([0.3, 0.7], jnp.float64)
        out, terms = module(jax).jet(f, (x,), ([jnp.ones_like(x)] + [jnp.zeros_like(x)] * 3,))
        assert out.dtype == np.float64
        derivatives = [f]
        for _ in terms:
            derivatives.append(derivative(derivatives[-1]))
        want = jax.jit(lambda x: [g(x) for g in derivatives])(x)
        np.testing.assert_allclose([out, *terms], want, rtol=1e-9)


def test_transforms_and_nesting():
    def values(jax, jnp):
        jet2 = module(jax).jet2
        second = lambda x: jet2(lambda x: jnp.sin(x) * x, (x,), ((1.0, 0.0),))[1][1]  # noqa: E731
        nested = jet2(second, (S,), ((S, S),))
        return jax.grad(second)(S), jax.vmap(second)(V), jax.jvp(second, (S,), (S,)), nested

    compare.same(values, rtol=1e-5, why="sums of fused products")


def test_custom_rules_are_not_used():
    jax = compare.ours()
    jnp = importlib.import_module("minijax.numpy")
    sin = jax.custom_vjp(jnp.sin)
    sin.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (ct * 9,))
    cos = jax.custom_jvp(jnp.cos)
    cos.defjvp(lambda xs, ts: (jnp.cos(*xs), ts[0] * 9))
    series = (S, [S] * 3)
    for custom, plain in ((sin, jnp.sin), (cos, jnp.cos)):
        for wrap in (lambda f: f, jax.jit):
            got, want = (module(jax).jet(wrap(f), (S,), (series[1],)) for f in (custom, plain))
            np.testing.assert_allclose(np.hstack([got[0], *got[1]]), np.hstack([want[0], *want[1]]), rtol=1e-5)


def test_users_rules():
    def values(jax, lax):
        jet = module(jax)
        core = importlib.import_module(f"{jax.__name__}.extend.core")
        results = []
        for register in (jet.deflinear, jet.defzero, lambda p: jet.def_deriv(p, lax.cos)):
            double = core.Primitive("double")
            double.def_impl(lambda x: x + x)
            double.def_abstract_eval(lambda x: x)
            register(double)
            results.append(jet.jet2(double.bind, (S,), ((S, S),)))
        jet.def_comp(double, lambda x: lax.mul(x, x))
        results.append(jet.jet2(double.bind, (S,), ((S, S),)))
        return results

    compare.same(values)


def test_factorial():
    fact = module(compare.ours()).fact
    assert float(fact(4)) == pytest.approx(math.factorial(4), rel=1e-5)
    compare.same(lambda jax: (str(module(jax).fact(3).dtype), module(jax).fact(3).weak_type))
