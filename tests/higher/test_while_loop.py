"""while_loop and fori_loop: types, jaxprs, texts and values against jax; carries, errors, disabled jit."""

import numpy as np
import pytest
from compare import Case, check, check_eager, ours, run_on, same, same_error, sweep, theirs
from transform_matrix import matrix

import minijax
from minijax import lax as our_lax
from minijax.run.programs.compile import compile_count

X = np.linspace(0.5, 1.5, 3, dtype=np.float32)
ROWS = np.linspace(0.5, 1.5, 12, dtype=np.float32).reshape(4, 3)
COUNTS = np.arange(4, dtype=np.int32)
CONST = np.arange(3, dtype=np.float32)


def doubling(jax, jnp, lax):
    return lambda x: lax.while_loop(lambda s: s[0] < 10, lambda s: s * 2 + jnp.sin(s), x)


def several(jax, jnp, lax):
    def f(x, y):
        def body(s):
            return s[0] + 1, s[1] * y * CONST, s[3], s[1]

        return lax.while_loop(lambda s: s[0] < y[0] + 3, body, (0, x, jnp.zeros(3), jnp.ones(3)))

    return f


def captured(jax, jnp, lax):
    return lambda x, y, z: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * z, s[2] + s[1]), (0, x, y))


def counted(jax, jnp, lax):
    return lambda x, y: lax.fori_loop(1, 4, lambda i, s: jnp.sin(s) * i + y, x)


def counted_nest(jax, jnp, lax):
    def inner(i, s):
        return lax.fori_loop(0, 2, lambda j, t: jnp.cos(t) * j + s, s)

    return lambda x: lax.fori_loop(0, 3, inner, x)


FORWARD = ("jit", "jvp", "linearize", "vmap", "vmap_of_vmap", "jit_of_vmap_of_jvp")
BACKWARD = ("grad", "vjp", "vmap_of_grad", "grad_of_vmap", "hessian")
WHILES = [
    Case("doubling", doubling, (X,)),
    Case("several", several, (X, X + 1)),
    Case("captured", captured, (X, X + 1, X * 3)),
]
COUNTED = [Case("counted", counted, (X, X * 2))]


@pytest.mark.oracle
@pytest.mark.parametrize(
    "case",
    matrix(WHILES, FORWARD) + matrix(COUNTED, FORWARD + BACKWARD)
    + matrix([Case("counted_nest", counted_nest, (X,))], ("jit", "grad", "vmap_of_grad")),
)  # fmt: skip
def test_programs_under_transformations_are_those_of_jax(case):
    check(case)


TRACES = {
    "captured by both": (
        lambda jax, lax: lambda x, y, z: lax.while_loop(lambda s: s[0] < y[0] + CONST[0], lambda s: s * z * y, x),
        (X, X, X),
    ),
    "weak carry made strong": (
        lambda jax, lax: lambda y: lax.while_loop(lambda s: s < 3, lambda s: s + y[0], 0.0),
        (X,),
    ),
    "weak carry converted": (
        lambda jax, lax: lambda a: lax.while_loop(lambda s: s < 3, lambda s: s + np.float16(1), a),
        (1.0,),
    ),
    "weak carry that stays weak": (
        lambda jax, lax: lambda a: lax.while_loop(lambda s: s < 3, lambda s: s + 1, a),
        (1.0,),
    ),
    "carry that stays": (
        lambda jax, lax: (
            lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1], s[2] * s[1]), (0, x, 2 * x))
        ),
        (X,),
    ),
    "carry that the predicate reads": (
        lambda jax, lax: lambda n: lax.while_loop(lambda s: s[0] < s[1], lambda s: (s[0] + 1, s[1]), (0, n)),
        (np.int32(3),),
    ),
    "constant predicate": (lambda jax, lax: lambda x: lax.while_loop(lambda s: False, lambda s: s + 1, x), (X,)),
    "nothing carried": (lambda jax, lax: lambda x: lax.while_loop(lambda s: x[0] < 0, lambda s: None, None), (X,)),
    "predicate not batched": (
        lambda jax, lax: jax.vmap(
            lambda x, y: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * y, s[2]), (0, CONST, CONST)),
            (0, 1),
        ),
        (ROWS, ROWS.T),
    ),
    "predicate batched by a constant": (
        lambda jax, lax: jax.vmap(
            lambda x, y: lax.while_loop(lambda s: s[0] < y[0], lambda s: (s[0] + 1, s[1] * y, s[2]), (0, CONST, CONST)),
            (0, 1),
        ),
        (ROWS, ROWS.T),
    ),
    "predicate batched inside alone": (
        lambda jax, lax: jax.vmap(
            lambda y: jax.vmap(
                lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * y + x), (x, y))
            )(CONST)
        ),
        (X,),
    ),
    "flag carried": (
        lambda jax, lax: jax.vmap(lambda x: lax.while_loop(lambda s: s[1], lambda s: (s[0] + 1, s[0] < 1), (x, True))),
        (COUNTS,),
    ),
    "named axis": (
        lambda jax, lax: jax.vmap(
            lambda x: lax.while_loop(lambda s: s < 3, lambda s: s + 1 + lax.axis_index("i"), 1), axis_name="i"
        ),
        (COUNTS,),
    ),
    "no gradient needed": (
        lambda jax, lax: jax.grad(
            lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * x), (0.0, 1.0))[0] * x
        ),
        (np.float32(2),),
    ),
    "jacobian": (
        lambda jax, jnp, lax: jax.jacfwd(lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: s * 2 + jnp.sin(s), x)),
        (X,),
    ),
    "bounds as arrays": (
        lambda jax, jnp, lax: lambda n, x: lax.fori_loop(0, n, lambda i, s: s * i, x),
        (np.int16(3), X),
    ),
    "lower bound computed": (
        lambda jax, lax: lambda n, x: lax.fori_loop(n, n + 4, lambda i, s: s * i, x),
        (np.uint16(3), X),
    ),
    "bounds batched": (
        lambda jax, lax: jax.vmap(lambda n, x: lax.fori_loop(0, n, lambda i, s: s * i, x)),
        (COUNTS, ROWS),
    ),
    "no trips": (lambda jax, lax: lambda x: lax.fori_loop(3, 0, lambda i, s: s * i, x, unroll=True), (X,)),
    "unrolled": (
        lambda jax, lax: lambda x: lax.fori_loop(-2, 3, lambda i, s: (s[0] * i, s[1]), (x, 1.0), unroll=2),
        (X,),
    ),
    "float bounds": (lambda jax, lax: lambda x: lax.fori_loop(0.5, 3.2, lambda i, s: s * 2, x), (X,)),
    "int8 bounds": (lambda jax, lax: lambda x: lax.fori_loop(np.int8(0), np.int8(3), lambda i, s: s * i, x), (X,)),
}


@pytest.mark.oracle
def test_jaxprs_and_texts_are_those_of_jax():
    sweep([Case(name, program, args) for name, (program, args) in TRACES.items()])


@pytest.mark.oracle
@pytest.mark.parametrize(
    "name", ["carry that stays", "predicate batched inside alone", "bounds batched", "flag carried"]
)
def test_calls_outside_jit_give_the_values_of_jax(name):
    program, args = TRACES[name]
    check_eager(Case(name, program, args))


def looped(cond, body, init):
    return lambda jax, lax: lax.while_loop(cond, body, init)


def counting(*bounds, body=lambda i, s: s, **options):
    return lambda jax, lax: lax.fori_loop(*bounds, body, X, **options)


ERRORS = {
    "structure": (looped(lambda s: s[0] < 3, lambda s: (s[0],), (1, 2)), "must have the same pytree structure"),
    "shape": (looped(lambda s: s[0] < 3, lambda s: s[:1], X), "the shapes do not match"),
    "dtype": (looped(lambda s: s < 3, lambda s: s + np.float32(1), np.float16(1)), "the dtypes do not match"),
    "component": (looped(lambda s: True, lambda s: {"a": s["a"][0]}, {"a": X}), "s['a'] has type float32[3]"),
    "no value": (looped(lambda s: True, lambda s: "a", 1), "not a valid JAX type"),
    "no functions": (looped(1, lambda s: s, 0), "arguments should be callable"),
    "predicate of rank 1": (looped(lambda s: s < 3, lambda s: s, X), "must return a boolean scalar"),
    "integer predicate": (looped(lambda s: s, lambda s: s, 0), "must return a boolean scalar"),
    "two predicates": (looped(lambda s: (s < 0, True), lambda s: s, 0), "but got pytree"),
    "no predicate": (looped(lambda s: None, lambda s: s, 0), "but got pytree"),
    "gradient": (
        lambda jax, lax: jax.grad(lambda x: lax.while_loop(lambda s: s < 3, lambda s: s * 2, x))(1.0),
        "Reverse-mode differentiation does not work for lax.while_loop",
    ),
    "gradient of a computed count": (
        lambda jax, lax: jax.jit(lambda n: jax.grad(lambda x: lax.fori_loop(0, n, lambda i, s: s * 2, x))(1.0))(3),
        "Try using lax.scan, or using fori_loop with static start/stop",
    ),
    "bounds of two types": (counting(np.uint8(0), 3), "must have equal types"),
    "float and int": (counting(0.0, 3), "must have equal types, got float32 and int32"),
    "no body": (counting(0, 3, body=3), "body_fun argument should be callable"),
    "negative unroll": (counting(0, 3, unroll=-1), "non-negative"),
    "carry": (counting(0, 3, body=lambda i, s: s + 1j), "loop_carry[1]"),
    "unroll of a computed count": (
        lambda jax, lax: jax.jit(lambda n: lax.fori_loop(0, n, lambda i, s: s, X, unroll=2))(3),
        "statically known",
    ),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_those_of_jax(name):
    program, phrase = ERRORS[name]
    same_error(lambda: run_on(ours(), program), lambda: run_on(theirs(), program), [phrase])


@pytest.mark.oracle
def test_loops_run_in_python_while_jit_is_disabled():
    def program(jax, lax):
        with jax.disable_jit():
            seen = []
            n = lax.fori_loop(0, 3, lambda i, s: seen.append(type(i) is int) or s * 2, 1)
            batched = jax.vmap(lambda y: lax.while_loop(lambda s: s < y, lambda s: s + 1, 0))(COUNTS)
            return n, seen, lax.fori_loop(3, 0, lambda i, s: s * 2, 1), batched

    same(program)


def test_a_fresh_body_does_not_compile_again():
    def call():
        return our_lax.while_loop(lambda s: s[0] < 3, lambda s: s * 2, X)

    first = np.asarray(call())
    before = compile_count()
    np.testing.assert_array_equal(np.asarray(call()), first)
    assert compile_count() == before


def test_tangents_of_a_loop_are_those_of_differences():
    def f(x):
        return our_lax.while_loop(lambda s: s[0] < 50, lambda s: s * s + 1, x)

    x, step = X.astype(np.float64), 2.0**-20
    with minijax.enable_x64(True):
        _, t = minijax.jvp(f, (x,), (np.ones_like(x),))
        slope = (np.asarray(f(x + step)) - np.asarray(f(x - step))) / (2 * step)
    np.testing.assert_allclose(np.asarray(t), slope, rtol=1e-9)


UNREAD = {
    "operations": lambda jax: lambda a, x: x * 2 - a.sum(),
    "a jitted function": lambda jax: lambda a, x: jax.numpy.searchsorted(a, x[0]),
    "a scan": lambda jax: lambda a, x: jax.lax.scan(lambda c, _: (c + x, c), x, None, length=2),
    "a custom function": lambda jax: lambda a, x: jax.nn.relu(x * a.sum()),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", UNREAD)
def test_a_predicate_may_compute_what_it_does_not_read(name):
    def program(jax):
        def f(a, x):
            def test(carry):
                UNREAD[name](jax)(a, carry[1])
                return carry[0] < 3

            return jax.lax.while_loop(test, lambda carry: (carry[0] + 1, carry[1]), (0, x))

        return f

    check(Case(name, program, (X, X)), "full")


@pytest.mark.oracle
@pytest.mark.parametrize("transform", ["linearize", "jvp"])
@pytest.mark.parametrize("call", ["plain", "library", "in_cond", "in_checkpoint", "in_custom_jvp", "in_loop"])
def test_calls_that_return_an_input_are_forwarded_as_by_jax(call, transform):
    """The known part of a loop's body calls a function of an integer, which returns it."""

    def program(jax, jnp, lax):
        identity = jax.jit(lambda n: n)
        rule = jax.custom_jvp(lambda n: (identity(n), n * 3))
        rule.defjvp(lambda primals, tangents: (rule(*primals), rule(*tangents)))
        step = {
            "plain": identity,
            "library": lambda n: jnp.round(n, 1),
            "in_cond": lambda n: lax.cond(n > 0, lambda: (identity(n), n), lambda: (n, identity(n)))[0],
            "in_checkpoint": lambda n: jax.checkpoint(lambda m: (identity(m), m * 3))(n)[0],
            "in_custom_jvp": lambda n: rule(n)[0],
            "in_loop": lambda n: lax.while_loop(lambda c: identity(c) < 2, lambda c: identity(c) + 1, n),
        }[call]

        def looped(x, n):
            return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, step(c[1]), c[2] * step(n)), (0, n, x))

        def scanned(x, n):
            return lax.scan(lambda c, _: ((c[0] * step(n), step(c[1])), step(n)), (x, n), None, length=3)

        made = {
            "linearize": lambda f: lambda x, n: jax.linearize(f, x, n)[0],
            "jvp": lambda f: lambda x, n: jax.jvp(lambda x: f(x, n), (x,), (x,)),
        }[transform]
        return [jax.make_jaxpr(made(f))(1.0, np.int16(3)).pretty_print(use_color=False) for f in (looped, scanned)]

    assert "while" in same(program)[0]


@pytest.mark.oracle
@pytest.mark.parametrize("call", ["plain", "library", "in_cond"])
def test_a_checkpointed_call_that_returns_its_input_is_recomputed_as_by_jax(call):
    def program(jax, jnp, lax):
        identity = jax.jit(lambda n: n)
        step = {
            "plain": identity,
            "library": lambda n: jnp.round(n, 1),
            "in_cond": lambda n: lax.cond(n > 0, lambda: (identity(n), n), lambda: (n, identity(n)))[0],
        }[call]
        f = jax.checkpoint(lambda x, n: jnp.sin(x) * step(n))
        return jax.make_jaxpr(jax.grad(f))(1.0, np.int16(3)).pretty_print(use_color=False)

    assert "remat2" in same(program)
