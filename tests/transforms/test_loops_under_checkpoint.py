"""The known part of a loop under `jax.checkpoint`: a call, with residuals in jax's order, that derivatives keep."""

import pytest
from compare import same, same_jaxpr

pytestmark = pytest.mark.oracle

LOOPS = {
    "fori": lambda jax, jnp, lax: lambda a: lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) * 2, a),
    "carried alone": lambda jax, jnp, lax: lambda a: lax.scan(lambda c, x: (c * 2, jnp.sin(x)), a, jnp.ones(3))[0],
    "slices": lambda jax, jnp, lax: lambda a: lax.scan(lambda c, x: (c * x, jnp.sin(x)), a, jnp.ones(3))[0],
    "known carry": lambda jax, jnp, lax: (
        lambda a: lax.scan(lambda c, x: ((c[0] * 2, c[1] * c[0]), x), (1.0, a), jnp.ones(3))[0][1]
    ),
    "all known": lambda jax, jnp, lax: lambda a: a * lax.scan(lambda c, x: (c * 2, jnp.sin(x)), 1.0, jnp.ones(3))[0],
}
AROUND = {
    "alone": lambda jax, jnp, lax, f, policies: jax.checkpoint(f),
    "saved": lambda jax, jnp, lax, f, policies: jax.checkpoint(f, policy=policies.everything_saveable),
    "dots saved": lambda jax, jnp, lax, f, policies: jax.checkpoint(f, policy=policies.dots_saveable),
    "jit": lambda jax, jnp, lax, f, policies: jax.checkpoint(jax.jit(f)),
    "between": lambda jax, jnp, lax, f, policies: jax.checkpoint(lambda x: jnp.sin(f(jnp.sin(x)))),
    "in a branch": lambda jax, jnp, lax, f, policies: jax.checkpoint(lambda x: lax.cond(x > 0, f, jnp.sin, x)),
    "nested": lambda jax, jnp, lax, f, policies: jax.checkpoint(lambda x: jax.checkpoint(f)(x)),
}
DERIVATIVES = {
    "grad": lambda jax, f: jax.grad(f),
    "second": lambda jax, f: jax.grad(jax.grad(f)),
    "value": lambda jax, f: jax.value_and_grad(f),
    "batched": lambda jax, f: lambda x: jax.vmap(jax.grad(f))(jax.numpy.stack([x, x])),
}


def made(loop, around, derivative):
    def program(jax, jnp, lax):
        f = AROUND[around](jax, jnp, lax, LOOPS[loop](jax, jnp, lax), jax.checkpoint_policies)
        return DERIVATIVES[derivative](jax, f)

    return program


@pytest.mark.parametrize("derivative", DERIVATIVES)
@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("loop", LOOPS)
def test_jaxprs(loop, around, derivative):
    if loop == "all known" and derivative == "batched":
        pytest.skip("jax names a call without batched operands too")
    if loop == "all known" and derivative == "second" and around == "nested":
        pytest.skip("jax keeps a dead call")
    same_jaxpr(made(loop, around, derivative), 0.5)


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("loop", LOOPS)
def test_values(loop, around):
    same(lambda jax, jnp, lax: [made(loop, around, d)(jax, jnp, lax)(0.5) for d in ("value", "second", "batched")])


def test_a_saved_value_that_no_step_changes_is_computed_before_the_loop():
    def program(jax, jnp, lax):
        f = lambda a: lax.fori_loop(0, 3, lambda i, c: c * jnp.cos(2.0 * jnp.ones(())), a)  # noqa: E731
        return jax.grad(jax.checkpoint(f, policy=jax.checkpoint_policies.everything_saveable))

    same_jaxpr(program, 0.5)
