"""Dead code inside functions with custom rules: what their results do not read is dropped with the jaxprs around them."""

import numpy as np
import pytest
from compare import Case, sweep


def _with_dead_code(jax, x, rows):
    """A loop that reads no rows, and a mask of ones."""
    ys = jax.lax.scan(lambda c, r: (c * 2, c), x, rows)[1]
    jax.numpy.sin(rows)
    return ys[0] + jax.numpy.trace(jax.lax.broadcasted_iota("float32", (2, 2), 0))


def _custom_jvp(jax):
    f = jax.custom_jvp(lambda x, rows: _with_dead_code(jax, x, rows))
    f.defjvp(lambda p, t: (f(*p), t[0] * 3))
    return f


def _custom_vjp(jax):
    f = jax.custom_vjp(lambda x, rows: _with_dead_code(jax, x, rows))
    f.defvjp(lambda x, rows: (f(x, rows), None), lambda _, ct: (ct * 3, None))
    return f


RULES = {"custom_jvp": _custom_jvp, "custom_vjp": _custom_vjp}
AROUND = {
    "jit": lambda jax, f: jax.jit(f),
    "linearize of jit": lambda jax, f: lambda x, r: jax.linearize(jax.jit(lambda x: f(x, r)), x)[0],
    "vjp of jit": lambda jax, f: lambda x, r: jax.vjp(jax.jit(lambda x: f(x, r)), x)[0],
    "grad of checkpoint": lambda jax, f: lambda x, r: jax.grad(lambda x: jax.checkpoint(f)(x, r).sum())(x),
    "loop": lambda jax, f: lambda x, r: jax.lax.fori_loop(0, 2, lambda i, c: f(c, r), x),
    "vmap of loop": lambda jax, f: jax.vmap(lambda x, r: jax.lax.map(lambda y: f(x, r), r), (0, None)),
}


@pytest.mark.parametrize("rule", RULES)
def test_jaxprs_and_modules_have_no_dead_code_in_rules(rule):
    x, rows = np.ones(3, np.float32), np.arange(3, dtype=np.float32)
    sweep([Case(f"{rule} in {a}", lambda jax, a=a: AROUND[a](jax, RULES[rule](jax)), (x, rows)) for a in AROUND])
