"""cond and switch: types, jaxprs, texts and values against jax; errors, effects, concrete predicates."""

import numpy as np
import pytest
from compare import Case, check, check_eager, ours, run_on, same, same_error, sweep, theirs
from transform_matrix import matrix

import minijax
from minijax import lax as our_lax, numpy as our_jnp
from minijax.run.programs.compile import compile_count

X = np.linspace(0.5, 1.5, 3, dtype=np.float32)
ROWS = np.linspace(0.5, 1.5, 12, dtype=np.float32).reshape(4, 3)
YES, FLAGS = np.True_, np.array([True, False, True, False])
NUMBERS = np.arange(-1, 3, dtype=np.int32)
CONST = np.arange(3, dtype=np.float32)


def plain(jax, jnp, lax):
    return lambda x: lax.cond(x[0] > 1, jnp.sin, lambda y: y + 1, x)


def captured(jax, jnp, lax):
    return lambda x, y: lax.cond(x[0] > y[0], lambda z: z * y + CONST, lambda z: z * x, x)


def three(jax, jnp, lax):
    return lambda x: lax.switch(x[0].astype(int), [jnp.sin, lambda y: y.sum() * y, jnp.exp], x)


def unlike_results(jax, jnp, lax):
    return lambda x: lax.cond(x[0] > 1, lambda y: (jnp.zeros(3), jnp.sin(y)), lambda y: (y * 2, jnp.zeros(3)), x)


def nested(jax, jnp, lax):
    def inner(y):
        return lax.cond(y[1] > 1, jnp.tanh, jax.jit(lambda z: z * jnp.cos(z)), y)

    return lambda x: lax.cond(x[0] > 1, inner, lambda y: y * y, x)


def in_a_loop(jax, jnp, lax):
    return lambda x: lax.fori_loop(0, 3, lambda i, y: lax.cond(i > 1, jnp.sin, lambda z: z * x, y), x)


MATRIX = [
    Case("plain", plain, (X,)),
    Case("captured", captured, (X, X * 2)),
    Case("unlike_results", unlike_results, (X,)),
]
MANY = ("jit", "grad", "jvp", "vjp", "linearize", "vmap", "vmap_of_grad", "grad_of_vmap", "jit_of_vmap_of_jvp")
NESTED = [Case("three", three, (X,)), Case("nested", nested, (X,)), Case("in_a_loop", in_a_loop, (X,))]


@pytest.mark.oracle
@pytest.mark.parametrize("case", matrix(MATRIX, MANY) + matrix(NESTED, ("jit", "grad", "vmap", "vmap_of_grad")))
def test_programs_under_transformations_are_those_of_jax(case):
    check(case)


TRACES = {
    "consts of both branches": (
        lambda jax, lax: lambda p, x: lax.cond(p, lambda: x + CONST, lambda: CONST * x),
        (YES, X),
    ),
    "integer predicate": (lambda jax, jnp, lax: lambda i, x: lax.cond(i, jnp.sin, jnp.cos, x), (np.int8(3), X)),
    "weak float predicate": (lambda jax, jnp, lax: lambda i, x: lax.cond(i, jnp.sin, jnp.cos, x), (0.5, X)),
    "constant predicate": (lambda jax, jnp, lax: lambda x: lax.cond(3, jnp.sin, jnp.cos, x), (X,)),
    "numpy predicate": (lambda jax, jnp, lax: lambda x: lax.cond(np.False_, jnp.sin, jnp.cos, x), (X,)),
    "two operands": (lambda jax, jnp, lax: lambda p, x: lax.cond(p, x, jnp.sin, x + 1, jnp.cos), (YES, X)),
    "operand": (lambda jax, jnp, lax: lambda p, x: lax.cond(p, jnp.sin, jnp.cos, operand=x), (YES, X)),
    "operand None": (lambda jax, lax: lambda p, x: lax.cond(p, lambda _: x, lambda _: x + 1, operand=None), (YES, X)),
    "weak and strong results": (lambda jax, lax: lambda p, x: lax.cond(p, lambda y: 1.0, lambda y: y[0], x), (YES, X)),
    "results handed on": (
        lambda jax, lax: (
            lambda p, x, y: lax.cond(
                p, lambda a, b: {"a": a, "b": (b, a + b)}, lambda a, b: {"a": a, "b": (a, a * b)}, x, y
            )
        ),
        (YES, X, X),
    ),
    "all handed on": (lambda jax, lax: lambda p, x: lax.cond(p, lambda a: a, lambda a: a, x), (YES, X)),
    "no results": (lambda jax, lax: lambda p, x: lax.cond(p, lambda a: None, lambda a: None, x), (YES, X)),
    "switch of one": (lambda jax, jnp, lax: lambda i, x: lax.switch(i, [jnp.sin], x), (2, X)),
    "switch on uint8": (lambda jax, jnp, lax: lambda i, x: lax.switch(i, [jnp.sin, jnp.cos], x), (np.uint8(9), X)),
    "switch on a constant": (lambda jax, jnp, lax: lambda x: lax.switch(-4, [jnp.sin, jnp.cos], operand=x), (X,)),
    "batched predicate": (
        lambda jax, jnp, lax: jax.vmap(
            lambda p, x, n: lax.cond(p, lambda x, n: (jnp.sin(x), n), lambda x, n: (x * 2, n + 1), x, n), (0, 1, None)
        ),
        (FLAGS, ROWS.T, 3),
    ),
    "batched operands": (
        lambda jax, jnp, lax: (
            lambda p, x, n: jax.vmap(
                lambda x, n: lax.cond(p, lambda x, n: (jnp.sin(x), n), lambda x, n: (x * 2, n + 1), x, n), (1, None)
            )(x, n)
        ),
        (YES, ROWS.T, 3),
    ),
    "batched numbers": (
        lambda jax, jnp, lax: jax.vmap(lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda y: y + CONST], x)),
        (NUMBERS, ROWS),
    ),
    "gradient of batched numbers": (
        lambda jax, jnp, lax: (
            lambda i, x: jax.grad(
                lambda x: jax.vmap(lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda y: y * y.sum()], x))(i, x).sum()
            )(x)
        ),
        (NUMBERS, ROWS),
    ),
    "named axis": (
        lambda jax, lax: (
            lambda p, x: jax.vmap(lambda x: lax.cond(p, lambda x: lax.psum(x, "i"), lambda x: x, x), axis_name="i")(x)
        ),
        (YES, X),
    ),
    "gradient of a zero": (
        lambda jax, jnp, lax: lambda p, x: jax.grad(lambda x: lax.cond(p, lambda x: 0.0, lambda x: x * 2, x))(x),
        (YES, np.float32(2)),
    ),
    "an integer result": (
        lambda jax, jnp, lax: (
            lambda p, x: jax.grad(lambda x: lax.cond(p, lambda x: (jnp.sin(x), 1), lambda x: (x * 2, 2), x)[0].sum())(x)
        ),
        (YES, X),
    ),
}


@pytest.mark.oracle
def test_jaxprs_and_texts_are_those_of_jax():
    sweep([Case(name, program, args) for name, (program, args) in TRACES.items()])


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["results handed on", "weak and strong results", "batched numbers"])
def test_calls_outside_jit_give_the_values_of_jax(name):
    program, args = TRACES[name]
    check_eager(Case(name, program, args))


def branches_differ(first, second):
    return lambda jax, lax: lax.cond(True, first, second, X)


ERRORS = {
    "structure": (branches_differ(lambda x: (x, x), lambda x: x), "must have the same pytree structure"),
    "nested structure": (branches_differ(lambda x: (None, x), lambda x: (x, None)), "at path [0]"),
    "dtype": (branches_differ(lambda x: x, lambda x: 1), "must have equal output types"),
    "shape": (branches_differ(lambda x: {"a": x}, lambda x: {"a": x[0]}), "the shapes do not match"),
    "no value": (branches_differ(lambda x: "a", lambda x: "b"), "not a valid JAX type"),
    "no functions": (branches_differ(1, 2), "arguments should be callable"),
    "predicate None": (lambda jax, jnp, lax: lax.cond(None, jnp.sin, jnp.cos, X), "predicate is None"),
    "predicate of rank 1": (lambda jax, jnp, lax: lax.cond(X > 1, jnp.sin, jnp.cos, X), "Pred must be a scalar"),
    "complex predicate": (lambda jax, jnp, lax: lax.cond(1j, jnp.sin, jnp.cos, X), "either boolean or number"),
    "text predicate": (lambda jax, jnp, lax: lax.cond("a", jnp.sin, jnp.cos, X), "Pred must be a scalar"),
    "both operands": (lambda jax, jnp, lax: lax.cond(True, jnp.sin, jnp.cos, X, operand=X), "'operand' keyword"),
    "float number": (lambda jax, jnp, lax: lax.switch(1.0, [jnp.sin, jnp.cos], X), "must be an integer"),
    "bool number": (lambda jax, jnp, lax: lax.switch(True, [jnp.sin, jnp.cos], X), "must be an integer"),
    "numbers": (lambda jax, jnp, lax: lax.switch(NUMBERS, [jnp.sin, jnp.cos], X), "must be scalar"),
    "no branches": (lambda jax, lax: lax.switch(0, [], X), "Empty branch sequence"),
    "switch types": (lambda jax, lax: lax.switch(0, [lambda x: x, lambda x: x[0]], X), "equal output types"),
    "linear": (lambda jax, jnp, lax: lax.cond(True, jnp.sin, jnp.cos, X, linear=(True,)), "linear"),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_those_of_jax(name):
    program, phrase = ERRORS[name]
    same_error(lambda: run_on(ours(), program), lambda: run_on(theirs(), program), [phrase])


@pytest.mark.oracle
def test_a_concrete_predicate_chooses_in_python_while_jit_is_disabled():
    def program(jax, lax):
        with jax.disable_jit():
            return lax.cond(True, lambda x: (x, 1), lambda x: x, X), lax.switch(7, [lambda x: x, lambda x: 2], X)

    same(program)


@pytest.mark.oracle
def test_a_predicate_that_derivatives_know_chooses_in_python_while_jit_is_disabled():
    def program(jax, lax):
        chosen = []

        def side(name, factor):
            return lambda x: chosen.append(name) or x * factor

        with jax.disable_jit():
            pushed = jax.grad(lambda x: lax.cond(x, side("then", 2.0), side("else", 3.0), x))(-1.0)
            picked = jax.grad(lambda x: lax.switch(x.astype(int), [side("0", 4.0), side("1", 5.0)], x))(1.0)
        return pushed, picked, chosen

    same(program)


def test_a_fresh_branch_does_not_compile_again():
    def call():
        return our_lax.cond(True, lambda y: our_jnp.sin(y), lambda y: our_jnp.cos(y), X)

    first = np.asarray(call())
    before = compile_count()
    np.testing.assert_array_equal(np.asarray(call()), first)
    assert compile_count() == before


def test_only_what_is_read_stays_in_the_branches():
    def f(p, x):
        return our_lax.cond(p, lambda y: (our_jnp.sin(y), y * 2), lambda y: (y, our_jnp.cos(y)), x)[0]

    _, pull = minijax.vjp(lambda x: f(YES, x), X)
    np.testing.assert_array_equal(np.asarray(pull(our_jnp.ones(3))[0]), np.asarray(our_jnp.cos(X)))


CAPTURING = {
    "equal arrays": lambda lax: (
        lambda x: lax.cond(x[0] > 0, lambda: x[np.array([0, 1])] + x[np.array([0, 1]) + 0], lambda: x[:2])
    ),
    "operands of an operator": lambda lax: lambda x, n: lax.cond(x[0] > 0, lambda: x + n, lambda: x * n),
    "one value twice": lambda jnp, lax: lambda x: lax.cond(x[0] > 0, lambda: jnp.conj(x) * x, lambda: x),
    "constants of a jitted function": lambda jax, lax: (
        lambda x, n: lax.cond(x[0] > 0, lambda: jax.jit(lambda y: y[np.array([0, 1])] * n)(x), lambda: x[:2])
    ),
    "stop_gradient": lambda lax: lambda n: lax.cond(n > 0, lambda: n, lambda: lax.stop_gradient(n)),
    "one array in both": lambda lax: lambda x: lax.cond(x[0] > 0, lambda: x + CONST, lambda: x * CONST),
    "one array of indices in both": lambda lax: lambda x: lax.cond(x[0] > 0, lambda: x[ORDER], lambda: x[ORDER] * 2),
    "equal arrays, one in each": lambda lax: (
        lambda x: lax.cond(x[0] > 0, lambda: x + np.arange(3.0), lambda: x * np.arange(3.0))
    ),
    "equal arrays made of lists": lambda jnp, lax: (
        lambda x: lax.switch(
            x[0].astype(int), [lambda: x[jnp.array([[0], [-1]])], lambda: x[jnp.array([[0], [-1]])] * 2]
        )
    ),
    "in a loop": lambda lax: (
        lambda x: lax.fori_loop(
            0, 2, lambda i, y: lax.cond(y[0] > 0, lambda: y + CONST, lambda: y * CONST) + CONST + np.arange(3.0), x
        )
    ),
    "what an inlined function does not read": lambda jax, jnp, lax: (
        lambda x, n: lax.cond(
            x[0] > 0,
            lambda: (jnp.isfinite(n), jnp.imag(x), jax.jit(lambda y, z: (y * 2, z), inline=True)(x, n)[0]),
            lambda: (jnp.isneginf(n), x, x),
        )
    ),
    "functions with options": lambda jnp, lax: (
        lambda x: lax.cond(
            x[0] > 0, lambda: (jnp.sum(x, axis=0), jnp.argmax(x, 0)), lambda: (jnp.max(x), jnp.argmin(x))
        )
    ),
    "in the order of an inlined function": lambda jax, lax: (
        lambda x, n: lax.cond(
            x[0] > 0, jax.jit(lambda: jax.jit(lambda y, z: (z * 2, y), inline=True)(x, n)), lambda: (n, x)
        )
    ),
    "an array of 64 bits": lambda jax, lax: (
        lambda x: lax.cond(x[0] > 0, lambda: x + WIDE, lambda: jax.grad(lambda y: (y * WIDE).sum())(x))
    ),
}
ORDER, WIDE = np.array([2, 0, 1]), np.linspace(0.0, 1.0, 3)


@pytest.mark.oracle
@pytest.mark.parametrize("name", CAPTURING)
def test_branches_capture_the_values_that_those_of_jax_capture(name):
    x = np.arange(3, dtype=np.float32)
    args = {"what an inlined function does not read": (x, 2), "in the order of an inlined function": (x, 2)}
    args |= {"operands of an operator": (x, 2), "constants of a jitted function": (x, 2), "stop_gradient": (2,)}
    check(Case(name, CAPTURING[name], args.get(name, (x,))), "full")


def test_an_array_that_changes_is_captured_anew():
    numbers = np.zeros(3, np.float32)
    branch = lambda y: y + numbers  # noqa: E731
    found = []
    for numbers[:] in (1, 1, 2):
        found.append(our_lax.cond(YES, lambda y: branch(y) * 1, branch, X))
    np.testing.assert_array_equal(np.stack(found) - X, np.repeat([[1], [1], [2]], 3, 1))


@pytest.mark.oracle
@pytest.mark.parametrize("value", [0.5 + 1j, 0.5])
def test_gradients_through_branches_have_the_weak_types_of_jax(value):
    def program(jax, jnp, lax):
        branches = {
            "swapped": lambda z: lax.cond(jnp.sum(z.real) > 0, lambda a, b: b, lambda a, b: a, z, z),
            "scaled": lambda z: lax.cond(jnp.sum(z.real) > 0, lambda a, b: b * 2, lambda a, b: a, z, z),
            "one": lambda z: lax.cond(True, lambda a: a, lambda a: a * 2, z),
            "sum": lambda z: z + z,
        }
        found = []
        for f in branches.values():
            for g in (jax.grad(lambda z: jnp.real(f(z))), jax.jit(jax.grad(lambda z: jnp.real(f(z))))):  # noqa: B023
                found.append(jax.typeof(g(value)).str_short())
        return found

    same(program)
