"""`find_nan`: the operation, its line, its operands, and where it is: loops, branches, rules, forward or backward."""

import inspect
import linecache

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax


def line_of(finding):
    return linecache.getline(finding.file, finding.line)


def is_here(finding, text):
    return finding.file == __file__ and text in line_of(finding) and finding.source == line_of(finding).strip()


def test_a_logarithm_of_a_negative_number():
    def f(x):
        y = x - 3.0
        return jnp.log(y)  # bad

    found = jax.find_nan(f, jnp.array([4.0, 1.0]))
    assert (found.kind, found.operation, found.part) == ("nan", "log", "forward") and found.function.endswith(".f")
    assert is_here(found, "# bad") and found.line == inspect.getsourcelines(f)[1] + 2
    assert found.operands[0].type == "f32[2]" and (found.operands[0].low, found.operands[0].high) == (-2, 1)
    assert [step.operation for step in found.chain] == ["sub", "argument x"]
    assert found.results[0].nans == 1
    text = repr(found)
    assert "made by log, in the forward part" in text and "operand 0: f32[2] from -2 to 1" in text


def test_no_finding():
    assert jax.find_nan(lambda x: jnp.sqrt(x), 4.0) is None
    assert jax.find_nan(lambda x: x + 1, jnp.array(jnp.nan)) is None  # no operation makes it
    assert jax.find_nan(lambda x: jnp.where(x > 0, x, -jnp.inf), jnp.arange(3.0)) is None


def test_the_backward_part():
    def loss(x):
        return jnp.sum(x * jnp.sqrt(x))  # bad

    assert jax.find_nan(loss, jnp.array([0.0, 1.0])) is None
    found = jax.find_nan(jax.grad(loss), jnp.array([0.0, 1.0]))
    assert found.kind == "inf" and is_here(found, "# bad")
    found = jax.find_nan(jax.grad(loss), jnp.array([0.0, 1.0]), infinities=False)
    assert (found.kind, found.operation, found.part) == ("nan", "mul", "backward") and is_here(found, "# bad")
    assert "transpose" in found.name_stack


def test_the_third_iteration_of_a_scan():
    def body(total, x):
        return total + x / x, total  # bad

    found = jax.find_nan(lambda xs: lax.scan(body, 0.0, xs), jnp.array([1.0, 2.0, 0.0, 3.0]))
    assert found.operation == "div" and is_here(found, "# bad")
    (iteration,) = found.iterations
    assert (iteration.loop, iteration.number, iteration.length) == ("scan", 2, 4)
    assert "iteration 2 (of 4) of scan, test_nans.py" in repr(found)


def test_reversed_and_nested_loops():
    def inner(c, x):
        return c + jnp.log(x), c

    def outer(c, row):
        return lax.scan(inner, c, row, reverse=True)

    xs = jnp.array([[1.0, 2.0, 3.0], [-1.0, 1.0, 1.0]])
    found = jax.find_nan(lambda xs: lax.scan(outer, 0.0, xs), xs)
    assert [i.number for i in found.iterations] == [1, 0]
    fine = lambda xs: lax.scan(outer, 0.0, xs)  # noqa: E731
    assert jax.find_nan(fine, jnp.abs(xs)) is None
    assert jax.find_nan(lambda xs: jnp.log(fine(xs)[1] - 9), jnp.abs(xs)).operands[0].type == "f32[2,3]"


def test_a_branch():
    def f(i, x):
        return lax.switch(i, [jnp.exp, lambda x: jnp.sqrt(-x), jnp.cos], x)  # bad

    assert jax.find_nan(f, jnp.array(0), 1.0) is None
    found = jax.find_nan(f, jnp.array(1), 1.0)
    assert found.operation == "sqrt" and is_here(found, "# bad")


def test_a_while_loop():
    def f(x):
        return lax.while_loop(lambda x: x > -5, lambda x: x - jnp.sqrt(x) - 1, x)  # bad

    found = jax.find_nan(f, 0.5)
    assert found.operation == "sqrt" and is_here(found, "# bad")
    assert [(i.loop, i.number, i.length) for i in found.iterations] == [("while", 1, None)]


def test_under_vmap():
    found = jax.find_nan(jax.vmap(lambda x: jnp.log(x)), jnp.array([1.0, -1.0]))
    assert found.operation == "log" and found.operands[0].low == -1
    loop = jax.vmap(lambda x: lax.while_loop(lambda x: x < 9, lambda x: x * 2, x))
    assert jax.find_nan(loop, jnp.array([1.0, 3.0])) is None
    found = jax.find_nan(lambda x: jnp.log(loop(x) - 13), jnp.array([1.0, 3.0]))
    assert (found.operands[0].low, found.operands[0].high) == (-1, 3)


def test_the_backward_rule_of_a_custom_vjp():
    @jax.custom_vjp
    def f(x):
        return x * 2

    def backward(x, ct):
        return (ct / (x - x),)  # bad

    f.defvjp(lambda x: (f(x), x), backward)
    assert jax.find_nan(f, 1.0) is None
    found = jax.find_nan(jax.grad(f), 1.0)
    assert (found.kind, found.operation, found.part) == ("inf", "div", "backward") and is_here(found, "# bad")
    found = jax.find_nan(jax.grad(jax.jit(lambda x: f(x) + 1)), 1.0)
    assert found.part == "backward" and is_here(found, "# bad") and found.function.endswith("backward")


def test_the_rule_of_a_custom_jvp_inside_jit():
    @jax.custom_jvp
    def f(x):
        return x * 2

    @f.defjvp
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        return f(x), t * jnp.log(-x)  # bad

    found = jax.find_nan(jax.grad(jax.jit(lambda x: f(x) + 1)), 1.0)
    assert found.operation == "log" and is_here(found, "# bad") and found.function.endswith("rule")


def test_jit_in_jit():
    @jax.jit
    def inner(x):
        return x / (x - x)  # bad

    @jax.jit
    def outer(x):
        return inner(x + 1) * 2

    found = jax.find_nan(outer, 1.0)
    assert found.operation == "div" and is_here(found, "# bad") and found.function.endswith("inner")
    assert [s.operation for s in found.chain][-1] == "argument x"


def test_overflow():
    found = jax.find_nan(lambda x: jnp.exp(x), 100.0)
    assert (found.kind, found.operation, found.results[0].infinities) == ("inf", "exp", 1)
    assert jax.find_nan(lambda x: jnp.exp(x), 100.0, infinities=False) is None


def test_arguments_of_all_kinds():
    def f(params, n, mode, *, scale, key):
        noise = jax.random.normal(key, (n,))
        return getattr(jnp, mode)(params["w"] * scale + 0 * noise)

    arguments = {"w": np.array([-1.0, 2.0], np.float32)}, 2, "log"
    found = jax.find_nan(f, *arguments, scale=2.0, key=jax.random.key(0))
    assert found.operation == "log"
    assert any(step.operation in ("argument params['w']", "argument kwargs['scale']") for step in found.chain)


def test_types_of_few_bits_and_complex_numbers():
    found = jax.find_nan(lambda x: jnp.log(x), jnp.array([1, -2], jnp.bfloat16))
    assert (found.operands[0].type, found.operands[0].low) == ("bf16[2]", -2)
    found = jax.find_nan(lambda x: x / (x - x), jnp.array(3 + 4j))
    assert found.operands[0].low == 5 and found.operation == "div"


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match="must be callable"):
        jax.find_nan(3)


def test_the_rows_of_a_reversed_scan_are_in_order():
    def f(xs):
        rows = lax.scan(lambda c, x: (c + x, c * 0 + x), 0.0, xs, reverse=True)[1]
        return jnp.log(rows[0])

    assert jax.find_nan(f, jnp.array([1.0, 2.0, -1.0])) is None
    assert jax.find_nan(f, jnp.array([-1.0, 2.0, 1.0])).operands[0].low == -1
