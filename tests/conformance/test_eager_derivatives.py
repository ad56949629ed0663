"""Eager second derivatives, to the last bit: jax computes some functions operation by operation, some as one program."""

import numpy as np
import pytest
from compare import same
from given import given

pytestmark = pytest.mark.oracle

FUNCTIONS = [
    lambda x: x**2,
    lambda x: x**3,
    lambda x: x**-1,
    lambda x: x**-2,
    lambda jnp, x: jnp.power(x, 4),
    lambda jnp, x: jnp.square(x),
    lambda jnp, x: jnp.reciprocal(x),
    lambda x: 1 / x,
    lambda x: x * x + x,
    lambda jax, x: jax.nn.gelu(x),
    lambda jax, x: jax.nn.gelu(x, approximate=False),
    lambda jax, x: jax.nn.silu(x),
    lambda jax, x: jax.nn.softplus(x),
    lambda jax, x: jax.nn.softmax(x),
    lambda jnp, x: jnp.sin(x) * jnp.cos(x) + x * x,
    lambda jnp, x: jnp.where(x > 1, x * x, x**3),
    lambda jnp, x: jnp.abs(x + 1j * x**2),
    lambda jnp, x: jnp.hypot(x, 2.0),
    lambda jnp, x: jnp.logaddexp(x, 1.0),
    lambda jnp, x: jnp.tanh(x),
    lambda jnp, x: jnp.sqrt(x),
    lambda jnp, x: jnp.linalg.norm(x),
    lambda jnp, x: jnp.var(x),
    lambda jnp, x: jnp.cumsum(x),
    lambda x: x / (x + 1),
]
RANDOM = np.random.default_rng(3)
POINT, *DIRECTIONS = RANDOM.uniform(0.2, 2.0, (4, 53)).astype(np.float32)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_second_derivatives_have_the_bits_of_jax(function):
    def program(jax, jnp):
        x, s, t, u = map(jnp.asarray, (POINT, *DIRECTIONS))
        f = lambda x: given(function, dict(jax=jax, jnp=jnp, x=x))  # noqa: E731
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
