"""`custom_root`: roots and their derivatives under each transformation, and what does not fit."""

import compare
import numpy as np
import pytest
from compare import Case

X = np.array([2.0, 3.0, 5.0], np.float32)


def solved(has_aux=False):
    """The square root by Newton's method."""

    def program(jax, jnp, lax):
        def solve(f, x):
            for _ in range(3):
                y, slope = jax.jvp(f, (x,), (1.0,))
                x = x - y / slope
            return (x, {"left": f(x)}) if has_aux else x

        def root(a):
            return lax.custom_root(lambda y: y**2 - a, 1.0, solve, lambda g, y: y / g(1.0), has_aux)

        return root

    return program


def captured(jax, jnp, lax):
    def solve(f, x):
        return f(x) * x

    return lambda a, b, c: lax.custom_root(lambda y: y * a - b, c, solve, lambda g, y: y / g(1.0) * b)


def tree(jax, jnp, lax):
    def root(a):
        return lax.custom_root(
            lambda y: {"u": y["u"] - a, "v": jnp.sin(y["v"]) * a},
            {"u": a, "v": a * 2.0},
            lambda f, y: {"u": f(y)["u"] + 2.0, "v": y["v"]},
            lambda g, y: y,
        )

    return root


def linear_system(jax, jnp, lax):
    def root(a, b):
        def solve(f, x):
            return jnp.linalg.solve(jax.jacobian(f)(x), -f(x))

        def tangent_solve(g, y):
            return jnp.linalg.solve(jax.jacobian(g)(y), y)

        return lax.custom_root(lambda x: a @ x - b, jnp.zeros(3), solve, tangent_solve)

    return root


WAYS = {
    "plain": lambda jax, f, n: f,
    "jit": lambda jax, f, n: jax.jit(f),
    "jvp": lambda jax, f, n: lambda *xs: jax.jvp(f, xs, xs),
    "grad": lambda jax, f, n: jax.grad(f, tuple(range(n))),
    "jit of grad": lambda jax, f, n: jax.jit(jax.grad(f, tuple(range(n)))),
    "grad of jit": lambda jax, f, n: jax.grad(jax.jit(f), tuple(range(n))),
    "checkpoint": lambda jax, f, n: jax.value_and_grad(jax.checkpoint(f), tuple(range(n))),
    "vmap": lambda jax, f, n: jax.vmap(f),
    "half vmap": lambda jax, f, n: jax.vmap(f, (0, *(None,) * (n - 1))),
    "vmap of grad": lambda jax, f, n: jax.vmap(jax.grad(f, tuple(range(n)))),
    "grad of vmap": lambda jax, f, n: jax.grad(lambda *xs: jax.vmap(f)(*xs).sum(), tuple(range(n))),
    "scan": lambda jax, f, n: lambda *xs: jax.lax.scan(lambda c, x: (f(x, *xs[1:]), c), xs[0], X),
}


def under(way, program, n):
    def transformed(jax, jnp, lax):
        return WAYS[way](jax, program(jax, jnp, lax), n)

    return transformed


def case(way, name, program, n):
    args = [2.0, 3.0, 0.5][:n]
    if "vmap" in way:
        args[0] = X
        if not way.startswith("half"):
            args = [X, X + 1, X * 2][:n]
    return Case(f"{way} {name}", under(way, program, n), tuple(args))


def test_custom_root_under_transformations(tier):
    programs = [("sqrt", solved(), 1), ("captured", captured, 3)]
    compare.sweep([case(way, *program) for way in WAYS for program in programs], tier)


def test_custom_root_of_trees_and_matrices(tier):
    a = np.array([[3, 1, 0], [1, 4, 1], [0, 1, 5]], np.float32)

    def loss(jax, jnp, lax):
        f = linear_system(jax, jnp, lax)
        return lambda a, b: jax.value_and_grad(lambda a, b: f(a, b).sum(), 1)(a, b)

    cases = [
        Case("aux", solved(True), (2.0,)),
        Case("grad of aux", lambda jax, jnp, lax: jax.grad(solved(True)(jax, jnp, lax), has_aux=True), (2.0,)),
        Case("jvp of tree", under("jvp", tree, 1), (2.0,)),
        Case("vmap of tree", under("vmap", tree, 1), (X,)),
        Case("matrix", linear_system, (a, X)),
        Case(
            "vmap of matrix",
            lambda jax, jnp, lax: jax.vmap(linear_system(jax, jnp, lax), (None, 0)),
            (a, np.stack([X, X + 1])),
        ),
    ]
    compare.sweep(cases, tier)
    compare.sweep([Case("grad of matrix", loss, (a, X))], tier, jaxpr=False)  # jax keeps a dead negation


@pytest.mark.parametrize(
    "f, solve, tangent_solve, has_aux, phrase",
    [
        ("lambda y: (y, y)", "lambda f, x: x", "lambda g, y: y", False, "must match initial_guess"),
        ("lambda y: y", "lambda f, x: (x, x)", "lambda g, y: y", False, "must match initial_guess"),
        ("lambda y: y", "lambda f, x: x", "lambda g, y: (y,)", False, "must match x"),
        ("lambda y: y", "lambda f, x: x", "lambda g, y: y", True, "has_aux was set to True"),
        ("lambda y: y", "lambda f, x: f((x,))", "lambda g, y: y", False, ""),
        ("3", "lambda f, x: x", "lambda g, y: y", False, ""),
    ],
)
def test_custom_root_misuse(f, solve, tangent_solve, has_aux, phrase):
    text = f"jax.lax.custom_root({f}, 1.0, {solve}, {tangent_solve}, {has_aux})"
    compare.same_misuse(text, {}, phrase)


def test_the_tangent_must_fit_the_root():
    text = (
        "jax.grad(lambda a: jax.lax.custom_root(lambda y: y - a, 1.0, lambda f, x: x, lambda g, y: jnp.ones(3)))(2.0)"
    )
    compare.same_misuse(text, {}, "Custom JVP rule")


def test_linear_solve_p_is_the_operation_of_custom_linear_solve():
    def program(jax, lax):
        f = jax.jit(lambda b: lax.custom_linear_solve(lambda x: 2 * x, b, lambda g, b: b / 2, symmetric=True))
        eqn = jax.make_jaxpr(f)(1.0).eqns[0].params["jaxpr"].eqns[0]
        return eqn.primitive is lax.linear_solve_p, str(lax.linear_solve_p)

    compare.same(program)
