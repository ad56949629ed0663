"""Constants that the linear part of a body reads: their order, and which of them the primal part returns."""

import compare
import numpy as np
import pytest


def bodies(jax, jnp):
    lax, one, two, table = (
        jax.lax,
        np.arange(3.0, dtype=np.float32),
        jnp.arange(1.0, 4.0),
        jnp.arange(9.0).reshape(3, 3),
    )
    of_rule = jax.custom_jvp(lambda x: x * x)
    of_rule.defjvps(lambda t, ans, x: t * two)
    of_fwd = jax.custom_vjp(lambda x: x * x)
    of_fwd.defvjp(lambda x: (x * x, (x, None, two)), lambda res, t: (res[0] * t * res[2],))
    return {
        "own": lambda x: two * x + table @ x,
        "own_after_results": lambda x: table @ jnp.sin(x),
        "of_a_rule": lambda x: jnp.sin(of_rule(x) * one) * two,
        "own_and_of_a_rule": lambda x: two * of_rule(x),
        "of_a_forward_rule": lambda x: of_fwd(jnp.sin(x)),
        "nested": jax.jit(lambda x: table @ jnp.sin(x) * two),
        "nested_and_own": lambda x: jax.jit(lambda x: two * jnp.sin(x))(x) * two,
        "loop": lambda x: lax.fori_loop(0, 2, lambda i, c: jax.jit(of_fwd)(c) * one, x),
        "steps": lambda x: lax.scan(lambda c, y: (jax.jit(lambda c: table @ of_rule(c))(c) * one, c), x, table)[0],
        "recomputed": jax.checkpoint(lambda x: jax.jit(of_fwd)(x) * one),
        "recomputed_without_operands": jax.checkpoint(lambda x: jax.jit(lambda x: of_fwd(jnp.sin(x)))(x)),
        "saved": jax.checkpoint(jax.jit(lambda x: x * x * two), policy=jax.checkpoint_policies.everything_saveable),
        "branch": lambda x: lax.cond(x[0] > 0, of_fwd, jax.jit(lambda x: table @ jnp.sin(x) * two), x),
    }


DERIVATIVES = {
    "vjp": lambda jax, f: lambda x: jax.vjp(f, x)[1](x),
    "second": lambda jax, f: jax.grad(lambda x: jax.grad(lambda x: f(x).sum())(x).sum()),
}


@pytest.mark.parametrize("derivative", DERIVATIVES)
@pytest.mark.parametrize("called", ["itself", "jitted"])
@pytest.mark.parametrize("name", sorted(compare.run_on(compare.ours(), bodies)))
def test_constants_are_residuals_in_the_order_in_which_they_are_read(name, called, derivative):
    def program(jax, jnp):
        body = bodies(jax, jnp)[name]
        return DERIVATIVES[derivative](jax, jax.jit(body) if called == "jitted" else body)

    compare.same_jaxpr(program, np.ones(3, np.float32))
