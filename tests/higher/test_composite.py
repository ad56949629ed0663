"""Composite operations and code that depends on the platform, against jax."""

import numpy as np
import pytest
from compare import Case, ours, run_on, same, same_error, same_jaxpr, same_text, sweep, theirs
from transform_matrix import transformed

pytestmark = pytest.mark.oracle

X, Y = np.arange(3, dtype=np.float32) + 1, np.arange(6, dtype=np.float32).reshape(2, 3)


def scaled(jnp, lax):
    return lax.composite(lambda x, k=1, **_: jnp.sin(x) * k, name="my.scaled", version=2)


def two(lax):
    table = np.arange(3000, dtype=np.float32).reshape(1000, 3)
    return lax.composite(lambda x, y: (x["a"] + y, {"b": y * table}), name="my.two")


COMPOSITES = [
    Case("plain", lambda jnp, lax: scaled(jnp, lax), (X,)),
    Case("int", lambda jnp, lax: lambda x: scaled(jnp, lax)(x, k=3), (X,)),
    Case("float", lambda jnp, lax: lambda x: scaled(jnp, lax)(x, k=3.5), (X,)),
    Case("others", lambda jnp, lax: lambda x: scaled(jnp, lax)(x, flag=True, name="a"), (X,)),
    Case("array", lambda jnp, lax: lambda x: scaled(jnp, lax)(x, sizes=np.arange(2)), (X,)),
    Case("tree", lambda lax: lambda x: two(lax)({"a": x}, x), (X,)),
    Case("twice", lambda jnp, lax: lambda x: scaled(jnp, lax)(scaled(jnp, lax)(x)), (X,)),
]


def test_composites_equal_jax_s(tier):
    sweep(COMPOSITES, tier)


@pytest.mark.parametrize("transform", ["jvp", "grad", "vmap"])
def test_composites_have_no_rules_as_in_jax(transform, tier):
    sweep([transformed(COMPOSITES[0], transform)], tier)


def test_composites_run_eagerly():
    same(lambda jnp, lax: scaled(jnp, lax)(jnp.asarray(X), k=2))
    same(lambda lax: lax.composite(lambda x: x, name="my.id").__name__)


def chosen(**functions):
    return lambda lax: lambda x: lax.platform_dependent(x, **functions)


def twice(x):
    return x * 2


PLATFORMS = [
    Case("three", chosen(cpu=lambda x: x + 1, tpu=lambda x: x + 2, default=lambda x: x * 3), (X,)),
    Case("shared", chosen(cpu=twice, tpu=twice, default=lambda x: x), (X,)),
    Case("default", chosen(tpu=lambda x: x + 1, cuda=lambda x: x, default=lambda x: x * x), (X,)),
    Case("only-default", chosen(default=twice), (X,)),
    Case("cpu", chosen(cpu=twice), (X,)),
    Case("handed-on", chosen(tpu=lambda x: x, default=lambda x: x), (X,)),
]


CAPTURES = {
    "closed over": lambda lax: lambda x: lax.composite(lambda y: y + x, "my.sum")(x),
    "attribute": lambda lax: lambda x: lax.composite(lambda y, a: y, "my.same")(x, a=x),
}


@pytest.mark.parametrize("name", CAPTURES)
@pytest.mark.parametrize("transform", ["jit", "grad", "vmap"])
def test_composites_refuse_captured_tracers(name, transform):
    case = transformed(Case(name, CAPTURES[name], (X,)), transform)
    sides = [lambda s=s: run_on(s, case.program)(*case.args) for s in (ours(), theirs())]
    same_error(*sides, phrases=["Found a JAX Tracer as a"])


@pytest.mark.parametrize("transform", ["plain", "jvp", "grad", "vmap", "vmap_of_grad", "hessian"])
def test_code_for_platforms_equals_jax_s(transform, tier):
    sweep([transformed(case, transform) for case in PLATFORMS], tier)


WRONG = {
    "missing": {"tpu": twice},
    "gpu": {"gpu": twice, "default": twice},
    "nothing": {},
    "types": {"cpu": twice, "default": lambda x: x.sum()},
}


@pytest.mark.parametrize("name", WRONG)
def test_misuse_raises_as_in_jax(name):
    same(
        lambda jax, jnp, lax: jax.jit(lambda x: lax.platform_dependent(x, **WRONG[name])).lower(jnp.asarray(X)),
        raises=True,
    )


def test_other_platforms_choose_other_branches():
    def text(jax, jnp, lax):
        traced = jax.jit(lambda x: lax.platform_dependent(x, cpu=twice, default=jnp.sin)).trace(jnp.asarray(X))
        return ["sine" in traced.lower(lowering_platforms=(p,)).as_text() for p in ("cpu", "tpu", "cuda")]

    same(text)
    same(lambda jnp, lax: lax.platform_dependent(jnp.asarray(X), cpu=twice, default=jnp.sin))


@pytest.mark.parametrize("which", range(3))
def test_eager_calls_need_the_functions_of_other_platforms_not(which):
    def program(jax, jnp, lax):
        __import__(f"{jax.__name__}.extend.core")
        ruleless = jax.extend.core.Primitive("ruleless")
        ruleless.def_abstract_eval(lambda x: x)
        functions = [
            dict(cpu=jnp.sin, tpu=ruleless.bind),
            dict(cpu=jnp.sin, default=ruleless.bind),
            dict(cuda=ruleless.bind, default=jnp.sin),
        ][which]
        f = lambda x: lax.platform_dependent(x, **functions)  # noqa: E731
        return f(X[0]), jax.vmap(f)(X), jax.jvp(f, (X[0],), (X[0],)), jax.grad(lambda x: f(x).sum())(X[0])

    same(program)


@pytest.mark.parametrize("kind", ["numpy", "array", "scalar"])
def test_constants_that_the_function_captures_are_operands(kind):
    def function(jax, jnp, lax):
        constant = {"numpy": np.arange(3.0, dtype="float32"), "array": jnp.arange(3.0), "scalar": np.float32(3)}[kind]
        f = lax.composite(lambda x: (x + constant, x * constant), name="my.captures", version=2)
        return lambda x: f(x)

    same_jaxpr(function, np.ones(3, np.float32))
    same_text(function, np.ones(3, np.float32))


@pytest.mark.parametrize("scale", [np.array(2.0, "float32"), np.arange(3), [np.ones(2), 1], np.float32(3)])
def test_attributes_may_be_numpy_arrays(scale):
    def program(jax, jnp, lax):
        f = lax.composite(lambda x, scale: x * 2, name="library.scaled")
        eager = [f(jnp.ones(2), scale=scale) for _ in range(2)]
        return eager, str(jax.make_jaxpr(lambda x: f(x, scale=scale))(jnp.ones(2)))

    same(program)
