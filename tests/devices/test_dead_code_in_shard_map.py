"""Dead operations in the body of `shard_map` stay in its primal part, and residuals stand where jax has them."""

import pytest
from compare import same

pytestmark = pytest.mark.oracle

BODIES = {
    "dead": lambda jax, jnp, lax: lambda a: (jnp.exp(a), jnp.sin(a))[1],
    "branch": lambda jax, jnp, lax: lambda a: lax.cond(a[0] > 0, lambda a: (a, jnp.sin(a)), lambda a: (a, a * 2), a)[1],
    "counter": lambda jax, jnp, lax: lambda a: lax.fori_loop(0, 5, lambda i, c: jnp.sin(c), a),
    "ring": lambda jax, jnp, lax: lambda a: lax.fori_loop(0, 3, lambda i, c: lax.ppermute(c, "x", [(0, 1), (1, 0)]), a),
    "stopped": lambda jax, jnp, lax: lambda a: a * lax.stop_gradient(jnp.sin(a)),
    "checkpoint": lambda jax, jnp, lax: lambda a: jax.checkpoint(lambda a: (jnp.sin(a), jnp.sin(jnp.cos(a))))(a)[1],
}
DERIVATIVES = {
    "grad": lambda jax, jnp, f: jax.grad(lambda a: f(a).sum()),
    "vjp": lambda jax, jnp, f: lambda a: jax.vjp(f, a)[0],
    "jvp": lambda jax, jnp, f: lambda a: jax.jvp(f, (a,), (a,))[1],
    "checkpoint": lambda jax, jnp, f: jax.grad(jax.checkpoint(lambda a: jnp.sin(f(jnp.sin(a))).sum())),
}


@pytest.mark.parametrize("derivative", DERIVATIVES)
@pytest.mark.parametrize("body", BODIES)
def test_jaxprs(body, derivative):
    def program(jax, jnp, lax):
        mesh, spec = jax.make_mesh((2,), ("x",)), jax.P("x")
        with jax.set_mesh(mesh):
            f = jax.shard_map(BODIES[body](jax, jnp, lax), in_specs=spec, out_specs=spec)
            x = jax.device_put(jnp.ones(4), spec)
            return str(jax.make_jaxpr(DERIVATIVES[derivative](jax, jnp, f))(x))

    same(program)
