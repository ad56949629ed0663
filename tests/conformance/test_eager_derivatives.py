"""Eager second derivatives, to the last bit: jax computes some functions operation by operation, some as one program."""

import numpy as np
import pytest
from compare import same

pytestmark = pytest.mark.oracle

FUNCTIONS = """
    x ** 2 | x ** 3 | x ** -1 | x ** -2 | jnp.power(x, 4) | jnp.square(x) | jnp.reciprocal(x) | 1 / x | x * x + x
    jax.nn.gelu(x) | jax.nn.gelu(x, approximate=False) | jax.nn.silu(x) | jax.nn.softplus(x) | jax.nn.softmax(x)
    jnp.sin(x) * jnp.cos(x) + x * x | jnp.where(x > 1, x * x, x ** 3) | jnp.abs(x + 1j * x ** 2) | jnp.hypot(x, 2.0)
    jnp.logaddexp(x, 1.0) | jnp.tanh(x) | jnp.sqrt(x) | jnp.linalg.norm(x) | jnp.var(x) | jnp.cumsum(x) | x / (x + 1)
"""
RANDOM = np.random.default_rng(3)
POINT, *DIRECTIONS = RANDOM.uniform(0.2, 2.0, (4, 53)).astype(np.float32)


@pytest.mark.parametrize("text", [text.strip() for text in FUNCTIONS.replace("\n", "|").split("|") if text.strip()])
def test_second_derivatives_have_the_bits_of_jax(text):
    def program(jax, jnp):
        x, s, t, u = map(jnp.asarray, (POINT, *DIRECTIONS))
        f = eval(f"lambda x: {text}", dict(jax=jax, jnp=jnp))
        both = jax.jvp(lambda x, t: jax.jvp(f, (x,), (t,)), (x, s), (t, u))
        of_gradient = jax.jvp(jax.grad(lambda x: jnp.sum(f(x))), (x,), (t,))
        return both, of_gradient

    same(program)


def test_first_derivatives_of_bessel_functions_have_the_bits_of_jax():
    def program(jax, jnp):
        special = jax.scipy.special
        x, t = jnp.asarray(POINT), jnp.asarray(DIRECTIONS[0])
        return [jax.jvp(f, (x,), (t,)) for f in (special.i0, special.i1, special.i0e, special.i1e)]

    same(program)
