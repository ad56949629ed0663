"""Effects of branches and loops inside functions with rules and checkpoints: how often they take place, and in what order."""

import compare
import pytest

KINDS = ["plain", "jit", "cond", "fori", "scan"]


def _function(jax, kind, say):
    jnp, lax = jax.numpy, jax.lax

    def tell(x):
        say(x)
        return x * 2

    return {
        "plain": tell,
        "jit": jax.jit(tell),
        "cond": lambda x: lax.cond(x > 0, tell, lambda x: x, x),
        "fori": lambda x: lax.fori_loop(0, 2, lambda i, c: tell(c), x),
        "scan": lambda x: lax.scan(lambda c, _: (tell(c), None), x, None, length=2)[0],
    }[kind], jnp.sin


def _wrapped(jax, kind, wrap, say):
    inner, sin = _function(jax, kind, say)
    if wrap == "checkpoint":
        return jax.checkpoint(lambda x: sin(inner(x)))
    if wrap == "custom_jvp":
        f = jax.custom_jvp(inner)
        f.defjvp(lambda primals, tangents: (inner(primals[0]), tangents[0] * 3))
        return f
    f = jax.custom_vjp(inner)
    f.defvjp(lambda x: (inner(x), x), lambda x, ct: (inner(ct) * x,))
    return f


CALLS = {
    "call": lambda jax, f, x: f(x),
    "jit": lambda jax, f, x: jax.jit(f)(x),
    "grad": lambda jax, f, x: jax.grad(f)(x),
    "jit of grad": lambda jax, f, x: jax.jit(jax.grad(f))(x),
    "grad of jit": lambda jax, f, x: jax.grad(jax.jit(f))(x),
    "twice": lambda jax, f, x: jax.value_and_grad(lambda x: f(f(x)))(x),
    "scan": lambda jax, f, x: jax.grad(lambda x: jax.lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0])(x),
    "cond": lambda jax, f, x: jax.grad(lambda x: jax.lax.cond(x > 0, f, lambda x: x, x))(x),
    "vjp": lambda jax, f, x: jax.vjp(f, x)[1](x),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("wrap", ["checkpoint", "custom_jvp", "custom_vjp"])
@pytest.mark.parametrize("kind", KINDS)
def test_ordered_callbacks(kind, wrap, call):
    def program(jax, jnp):
        told = []

        def say(x):
            jax.debug.callback(lambda v: told.append(round(float(v), 3)), x, ordered=True)

        result = CALLS[call](jax, _wrapped(jax, kind, wrap, say), jnp.float32(1.5))
        jax.effects_barrier()
        return result, told

    compare.same(program, rtol=1e-6, why="programs are cut in other places")
