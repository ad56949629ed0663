"""Constants as operands: which ones, that the results keep their bits, and that programs are shared."""

import numpy as np
import pytest
from compare import same

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.dispatch.executable import executable_for
from minijax.dispatch.lift import inlined, lift_constants
from minijax.dispatch.placement import ProgramOptions
from minijax.run.programs.compile import compile_count

X = np.linspace(-2, 3, 24, dtype=np.float32).reshape(4, 6)
N = np.arange(-4, 20, dtype=np.int32).reshape(4, 6)
CAPTURED = {
    "float": lambda k: 0.37 + k,
    "int": lambda k: 5 + k,
    "numpy scalar": lambda k: np.float32(0.61 + k),
    "numpy array": lambda k: np.float32([[k + 0.3], [1.7], [k + 2.2], [-0.7]]),
    "array": lambda k: jnp.float32(0.83 + k),
    "array of rank 2": lambda k: jnp.asarray(X) + k,
}
CONTROL_FLOW = {
    "scan": lambda c, x: lax.scan(lambda a, b: (a * c, a + b), x, jnp.arange(3.0))[1],
    "cond": lambda c, x: lax.cond(True, lambda v: v * c, lambda v: v - c, x),
    "switch": lambda c, x: lax.switch(2, [jnp.sin, lambda v: v + c, lambda v: jnp.maximum(v, c)], x),
    "while": lambda c, x: lax.while_loop(lambda s: jnp.sum(s) < 50, lambda s: abs(s) + abs(c), x),
    "fori": lambda c, x: lax.fori_loop(0, 3, lambda i, s: s * c + i, x),
    "map": lambda c, x: lax.map(lambda row: jnp.where(row > 0, row * c, row) - 1, jnp.stack([x, -x])),
}


def values_and_compiles(call, values):
    """The results of the calls with these values, and how many programs XLA compiled for each."""
    found, counts = [], []
    for value in values:
        jnp.asarray(value).block_until_ready()
        before = compile_count()
        found.append(call(value))
        counts.append(compile_count() - before)
    return found, counts


@pytest.mark.parametrize("kind", CAPTURED)
@pytest.mark.parametrize("name", CONTROL_FLOW)
def test_eager_control_flow_with_other_captured_values_does_not_compile_again(name, kind):
    x, program = jnp.asarray(X), CONTROL_FLOW[name]
    captured = [CAPTURED[kind](k) for k in (2, 4, 7)]
    jax.block_until_ready(program(CAPTURED[kind](9), x))
    found, counts = values_and_compiles(lambda c: program(c, x), captured)
    assert counts == [0, 0, 0]
    for value, c in zip(found, captured, strict=True):
        want = jax.jit(program)(c, x)
        np.testing.assert_allclose(np.asarray(value), np.asarray(want), rtol=1e-6)


def test_a_loop_to_another_captured_bound_does_not_compile_again():
    def count(n):
        return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 2, s[1] + s[0]), (0, 0))

    found, counts = values_and_compiles(count, [6, 40, 9])
    assert counts == [1, 0, 0]
    assert [(int(i), int(s)) for i, s in found] == [(6, 6), (40, 380), (10, 20)]


@pytest.mark.parametrize("kind", CAPTURED)
def test_jit_of_a_function_with_other_captured_values_compiles_at_most_twice(kind):
    def call(c):
        return jax.jit(lambda x: (jnp.tanh(x + c), jnp.where(x > c, x * c, c)))(X)

    captured = [CAPTURED[kind](k) for k in (2, 4, 7, 8)]
    found, counts = values_and_compiles(call, captured)
    assert sum(counts[:2]) <= 2 and counts[2:] == [0, 0]
    for (a, b), c in zip(found, captured, strict=True):
        value = np.asarray(c, np.float32)
        np.testing.assert_allclose(a, np.tanh(X + value), rtol=1e-6)
        np.testing.assert_array_equal(b, np.where(X > value, X * value, value))


def test_nested_functions_and_loops_share_their_programs():
    def call(c):
        inner = jax.jit(lambda v: jnp.where(v > c, v, c))
        step = lambda a, b: (inner(a), lax.cond(b > 1, lambda: a + c, lambda: a))  # noqa: E731
        return jax.jit(lambda x: lax.scan(step, x, jnp.arange(3.0))[1])(X)

    _, counts = values_and_compiles(call, [0.21, 0.43, 0.77, 0.93])
    assert counts == [1, 1, 0, 0]


def test_gradients_of_loops_share_their_programs():
    def call(c):
        return jax.grad(lambda x: lax.scan(lambda a, b: (jnp.sin(a * c) + b, a), x, jnp.arange(3.0))[0])(0.7)

    found, counts = values_and_compiles(call, [0.23, 0.47, 0.71])
    assert counts[1:] == [0, 0]
    exact = [jax.jit(jax.grad(lambda x, c=c: _looped(x, c)))(0.7) for c in (0.23, 0.47, 0.71)]
    np.testing.assert_allclose(found, exact, rtol=1e-6)


def _looped(x, c):
    for b in range(3):
        x = jnp.sin(x * c) + b
    return x


def test_the_text_that_users_see_holds_the_constants():
    for c in (1.25, 1.5, 1.75):
        function = jax.jit(lambda x, c=c: x - c)
        before = function.lower(X).as_text()
        function(X)
        assert before == function.lower(X).as_text()
        assert f"dense<{c:.6e}>" in before and "%arg1" not in before


# ---- which constants --------------------------------------------------------------------------------

ALONE = {
    "scaled": lambda x: jnp.sin(x * 2.5),
    "shifted": lambda x: (jnp.exp(x) + 2.5) / x,
    "scaled and shifted": lambda x: jnp.sin(x) * 2.5 + 3.5,
    "compared": lambda x: jnp.where(x * x[0, 0] > 2.5, x, -x),
    "clipped": lambda x: jnp.clip(x, -2.5, 3.5),
    "summed": lambda x: jnp.sum(x * 2.5),
    "multiplied with": lambda x: (x * 2.5) @ (x * 3.5).T,
    "vector": lambda x: jnp.cos(x * np.float32([[2], [3], [4], [5]])),
    "two branches": lambda x: x * 2.5 + jnp.sin(x) * 3.5,
    "inside jit": lambda x: jax.jit(lambda y: jnp.tanh(y - 2.5))(x),
    "loop": lambda x: lax.fori_loop(0, 4, lambda i, s: s * 2.5, x),
    "branch": lambda x: lax.cond(x[0, 0] > 0, lambda y: y * 2.5, lambda y: y - 3.5, x),
}
TOGETHER = {
    "scaled twice": lambda x: x * 2.5 * 3.5,
    "shifted twice": lambda x: 2.5 - (x + 3.5),
    "scaled and divided": lambda x: x * 2.5 / 3.5,
    "divisor": lambda x: x / 2.5,
    "exponent": lambda x: abs(x) ** 2.5,
    "across a transpose": lambda x: (x * 2.5).T * 3.5,
    "across jit": lambda x: jax.jit(lambda y: y * 2.5)(x) * 3.5,
    "across a choice": lambda x: jnp.where(x > x[0, 0], x * 2.5, x) * 3.5,
    "a constant chosen, then scaled": lambda x: jnp.where(x > x[0, 0], x, 2.5) * 3.5,
    "scaled by a sum": lambda x: (x * 2.5) * jnp.sum(x * x, 1, keepdims=True),
    "unrolled": lambda x: lax.scan(lambda s, _: (s * 2.5, None), x, None, 4, unroll=2)[0],
    "one step": lambda x: lax.scan(lambda s, _: (s * 2.5, None), x * 3.5, None, 1)[0],
    "zero, one, minus one": lambda x: jnp.maximum(x, 0.0) + 1.0 * (-1.0 - x),
    "hidden in a function": lambda x: jax.scipy.special.gammaln(x + 2.5) if hasattr(jax, "scipy") else x / 2.5,
    "constant result": lambda x: (x, 2.5),
    "large": lambda x: x - np.arange(24, dtype=np.float32).reshape(4, 6) - 2.5,
}


# Expressions that are rounded once if the compiler contracts them to one instruction.
CONTRACTIBLE = {
    "scaled, then shifted": lambda x: x * 2.5 + x[:1],
    "product, then shifted": lambda x: x * x - 2.5,
    "product, chosen, then shifted": lambda x: jnp.where(x > x[0, 0], x * x, x) - 2.5,
    "shifted, then scaled by another": lambda x: (x + 2.5) / 2.0,
    "scaled, then summed": lambda x: jnp.sum(x * 2.5, 0),
    "scaled, then contracted": lambda x: (x * 2.5) @ x.T,
    "scaled in a loop": lambda x: lax.fori_loop(0, 4, lambda i, s: s * 2.5 - x, x),
}


def lifted_of(program, *args, exactly=False):
    return list(lift_constants(jax.make_jaxpr(program)(*args), exactly).values.values())


@pytest.mark.parametrize("name", TOGETHER)
def test_constants_that_xla_may_put_together_stay(name):
    assert [v for v in lifted_of(TOGETHER[name], X) if np.size(v) == 1] == []


@pytest.mark.parametrize("name", ALONE)
def test_constants_without_operations_are_lifted_and_results_keep_their_bits(name):
    x = jnp.asarray(X)
    closed = jax.make_jaxpr(ALONE[name])(x)
    assert lift_constants(closed, False).values
    options = ProgramOptions("program", keep_unused=True)
    plain, lifted = (executable_for(closed, options, [x], lift) for lift in (False, True))
    assert lifted.hidden and not plain.hidden
    for a, b in zip(plain([x]), lifted([x]), strict=True):
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("name", CONTRACTIBLE)
def test_constants_between_a_product_and_a_sum_stay_where_bits_count(name):
    assert lifted_of(CONTRACTIBLE[name], X) != []
    assert lifted_of(CONTRACTIBLE[name], X, exactly=True) == []


def test_constants_of_integer_arithmetic_are_lifted_at_any_position():
    assert len(lifted_of(lambda n: n * 3 + 5 - 7, N)) == 3


def test_inlining_keeps_the_program():
    inner = jax.jit(lambda a, b: (a + b, jnp.sin(a), b))
    closed = jax.make_jaxpr(lambda x: inner(*inner(x, x * 2.5)[:2])[::-1])(X)
    flat = inlined(closed)
    assert not any(eqn.primitive.name == "jit" for eqn in flat.eqns)
    for a, b in zip(jax.extend.core.jaxpr_as_fun(flat)(X), jax.extend.core.jaxpr_as_fun(closed)(X), strict=True):
        assert a.tobytes() == b.tobytes()


def test_captured_keys_stay():
    key = jax.random.key(3)
    found = [jax.jit(lambda k=k: jax.random.fold_in(key, k))() for k in (1, 2, 3)]
    assert [str(jax.random.key_data(k)) for k in found] == [
        str(jax.random.key_data(jax.random.fold_in(key, k))) for k in (1, 2, 3)
    ]


# name -> (function of a captured array and of an argument, whether XLA computes with the array when it compiles)
FOLDED = {
    "a divisor": (lambda jnp, c, v: v / c, True),
    "a dividend": (lambda jnp, c, v: c / v, False),
    "a factor": (lambda jnp, c, v: v * c, False),
    "two factors": (lambda jnp, c, v: v * c * (c + 1), True),
    "a sum": (lambda jnp, c, v: v - c, False),
    "a function of it": (lambda jnp, c, v: v * jnp.exp(c), True),
    "its third": (lambda jnp, c, v: v + c / 3, True),
    "its mean": (lambda jnp, c, v: (v - jnp.mean(c)) / jnp.std(c), True),
    "a comparison": (lambda jnp, c, v: jnp.where(v > c, v, -v), False),
    "a product of matrices": (lambda jnp, c, v: c.reshape(1, -1) @ v.reshape(-1, 1), False),
    "a divisor in a loop": (lambda jnp, c, v: lax.scan(lambda s, x: (s + x, x / c), 0.0, v)[1], True),
    "a factor in a loop": (lambda jnp, c, v: lax.scan(lambda s, x: (s + x, x * c), 0.0, v)[1], False),
    "a divisor in a branch": (lambda jnp, c, v: lax.cond(v[0] > 0, lambda: v / c, lambda: v), True),
    "a divisor in a call": (lambda jnp, c, v: jax.jit(lambda a, b: a / b)(v, c), True),
}


@pytest.mark.parametrize("name", FOLDED)
def test_a_large_constant_is_an_argument_unless_xla_computes_with_it(name):
    f, is_folded = FOLDED[name]
    c, v = jnp.arange(1.0, 38) * 1.1 + 2, jnp.linspace(0.1, 3, 37)
    compiled = jax.jit(lambda v: f(jnp, c, v)).lower(v).compile()
    entry = compiled.as_text().partition("ENTRY")[2]
    assert entry.count("parameter(") == (1 if is_folded else 2)
    huge = jax.jit(lambda v: v / jnp.zeros(300_000).at[:].set(7.0)).lower(v[:1]).compile()
    assert "parameter(" in huge.as_text()


@pytest.mark.oracle
@pytest.mark.parametrize("name", [name for name in FOLDED if "in a" not in name])
def test_programs_with_captured_arrays_have_the_bits_of_jax(name):
    f, _ = FOLDED[name]

    def program(jax, jnp):
        c, v = jnp.arange(1.0, 38) * 1.1 + 2, jnp.linspace(0.1, 3, 37)
        return np.asarray(jax.jit(lambda v: f(jnp, c, v))(v)).view(np.int32)

    same(program)


@pytest.mark.parametrize("through", ["carry", "constant"])
def test_a_carry_that_begins_as_a_constant_varies_in_the_body(through):
    def f():
        start, factor = jnp.float32(1.5), jnp.float32(0.25)
        if through == "carry":
            return lax.scan(lambda c, _: (c * 2.5, None), start, None, length=3)[0]
        return lax.scan(lambda c, _: (c + factor * 2.5, None), start, None, length=3)[0]

    lifted = [float(x) for x in lift_constants(jax.make_jaxpr(f)(), False).values.values()]
    assert (2.5 in lifted) is (through == "carry")
