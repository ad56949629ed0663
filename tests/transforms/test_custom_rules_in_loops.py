"""Functions with custom rules in loops: second derivatives use the rules, and references that they make are their own."""

import pytest
from compare import ended, same


def squares(jax):
    """By the rules the derivative of the square is 3 x, by which derivatives that do not use them are told."""
    by_vjp, by_jvp = (wrapped(lambda x: x**2) for wrapped in (jax.custom_vjp, jax.custom_jvp))
    by_vjp.defvjp(lambda x: (by_vjp(x), x), lambda x, ct: (ct * x * 3,))
    by_jvp.defjvp(lambda primals, tangents: (by_jvp(*primals), primals[0] * 3 * tangents[0]))
    return {"custom_vjp": by_vjp, "custom_jvp": by_jvp}


FUNCTIONS = {
    "carry": lambda jax, jnp, f: lambda x: jax.lax.scan(lambda c, _: (f(c), c), x, None, length=2)[0],
    "results": lambda jax, jnp, f: lambda x: jax.lax.scan(lambda c, _: (f(c), c), x, None, length=2)[1].sum(),
    "slices": lambda jax, jnp, f: (
        lambda x: jax.lax.scan(lambda c, y: (c + f(y) * x, f(x)), 0.0, jnp.arange(3.0) * x)[0]
    ),
    "map": lambda jax, jnp, f: lambda x: jax.lax.map(f, jnp.arange(2.0) * x).sum(),
    "cond": lambda jax, jnp, f: lambda x: jax.lax.cond(x > 0, f, jnp.sin, x),
    "switch": lambda jax, jnp, f: lambda x: jax.lax.switch(1, [jnp.sin, lambda x: f(x) * x], x),
    "jit": lambda jax, jnp, f: lambda x: jax.jit(f)(x) * x,
    "checkpoint": lambda jax, jnp, f: jax.checkpoint(f),
    "checkpointed loop": lambda jax, jnp, f: jax.checkpoint(
        lambda x: jax.lax.scan(lambda c, _: (f(c), c), x, None, length=2)[0]
    ),
    "loop of checkpoints": lambda jax, jnp, f: (
        lambda x: jax.lax.scan(lambda c, _: (jax.checkpoint(f)(c), c), x, None, length=2)[0]
    ),
    "fori_loop": lambda jax, jnp, f: lambda x: jax.lax.fori_loop(0, 2, lambda i, c: f(c) + f(x), x),
}


@pytest.mark.parametrize("rule", ["custom_vjp", "custom_jvp"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_second_derivatives_use_the_rules(name, rule):
    def program(jax, jnp):
        f = FUNCTIONS[name](jax, jnp, squares(jax)[rule])
        forms = (
            jax.grad(jax.grad(f)),
            jax.jit(jax.grad(jax.grad(f))),
            jax.grad(lambda x: jax.vjp(f, x)[0]),
            jax.grad(jax.grad(jax.grad(f))),
        )
        return [form(1.5) for form in forms], jax.vmap(jax.grad(jax.grad(f)))(jnp.ones(2))

    same(program)


LOOPS = {
    "while_loop": lambda jax, jnp, h: (
        lambda x: jax.lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, h(c[1])), (0, x))[1]
    ),
    "scan": lambda jax, jnp, h: lambda x: jax.lax.scan(lambda c, _: (h(c), None), x, None, length=3)[0],
    "cond": lambda jax, jnp, h: lambda x: jax.lax.cond(x > 0, h, jnp.cos, x),
    "call": lambda jax, jnp, h: h,
}


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("around", ["", "jit", "checkpoint"])
def test_references_that_a_function_with_rules_makes(name, around):
    def program(jax, jnp):
        def doubled(x):
            ref = jax.new_ref(x)
            ref[...] = ref[...] * 2
            return ref[...]

        h = jax.custom_vjp(doubled)
        h.defvjp(lambda x: (h(x), ()), lambda _, ct: (h(ct),))
        f = LOOPS[name](jax, jnp, h)
        f = getattr(jax, around)(f) if around else f
        result, _ = jax.linearize(f, jnp.float32(5))
        return result, [ended(lambda g=g: jax.grad(g)(jnp.float32(5))) for g in (f, LOOPS[name](jax, jnp, doubled))]

    same(program)


def test_what_has_derivatives_in_forward_mode_only_is_refused_in_loops():
    def program(jax, jnp):
        sine = jax.custom_batching.custom_vmap(jnp.sin)
        loops = [loop(jax, jnp, sine) for loop in LOOPS.values()]
        return [ended(lambda f=f: jax.grad(f)(1.0), ["Linearization failed"]) for f in loops]

    same(program)
