"""The known part of a loop under `jax.checkpoint`: a call, with residuals in jax's order, that derivatives keep."""

import numpy as np
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
    "pushed": lambda jax, f: lambda x: jax.linearize(f, x)[1](x),
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
    if around == "in a branch" and derivative == "pushed":
        pytest.skip("jax has new names for the variables of branches")
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


@pytest.mark.parametrize("policy", ["nothing_saveable", "everything_saveable", "dots_saveable"])
@pytest.mark.parametrize("kind", ["dots", "slices"])
@pytest.mark.parametrize("derivative", ["grad", "pushed"])
def test_the_policy_splits_the_body_which_computes_again_what_is_not_saved(kind, policy, derivative):
    def program(jax, jnp, lax):
        weights = jnp.eye(3) * 0.5

        def step(c, t):
            if kind == "dots":
                return jnp.sin(jnp.cos(c) @ weights) + t, None
            return jnp.sin(c) * jnp.cos(weights[0]) + t, (c, jnp.cos(t))

        f = jax.checkpoint(
            lambda x: lax.scan(step, x, jnp.arange(4.0))[0], policy=getattr(jax.checkpoint_policies, policy)
        )
        return DERIVATIVES[derivative](jax, f if derivative == "pushed" else lambda x: jnp.sum(f(x)))

    same_jaxpr(program, np.ones(3, np.float32))


@pytest.mark.parametrize("derivative", DERIVATIVES)
def test_jitted_loops_keep_constants_that_they_do_not_read(derivative):
    def program(jax, jnp, lax):
        unread = jnp.arange(3.0)

        def step(c, t):
            unread * 2
            return jnp.sin(c) + t, c

        f = jax.checkpoint(jax.jit(lambda x: lax.scan(step, x, jnp.arange(3.0))[0]))
        return DERIVATIVES[derivative](jax, f)

    same_jaxpr(program, 1.0)


@pytest.mark.parametrize("in_loop", [False, True])
def test_known_parts_of_equal_calls_are_one_jaxpr(in_loop):
    def program(jax, jnp, lax):
        h = jax.jit(lambda x: jnp.sin(x) * 2)
        step = lambda u: h(u) * h(u * 2) + jnp.pad(u, 1)[1:-1]  # noqa: E731
        return jax.grad(
            jax.checkpoint(lambda u: jnp.sum(lax.fori_loop(0, 3, lambda i, c: step(c), u) if in_loop else step(u)))
        )

    same_jaxpr(program, np.ones(3, np.float32))


@pytest.mark.parametrize("name", ["cholesky", "solve", "product"])
def test_a_residual_that_is_read_several_times_stands_at_its_first_read(name):
    def program(jax, jnp, lax):
        functions = {
            "cholesky": lambda x: jnp.linalg.cholesky(x),
            "solve": lambda x: jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(x), True), jnp.ones(3)),
            "product": lambda x: jnp.tanh(x) * jnp.exp(jnp.tanh(x)) * jnp.sin(x) * x,
        }
        return jax.grad(jax.checkpoint(lambda x: jnp.sum(functions[name](x))))

    same_jaxpr(program, np.eye(3, dtype=np.float32))
