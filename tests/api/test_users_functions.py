"""Users' functions and their attributes: names that are not strings, attributes of functions under jit, inlining."""

import numpy as np
import pytest
from compare import same, same_jaxpr

pytestmark = pytest.mark.oracle

# Transformations of a callable `m`, at the vector `x`.
TRANSFORMATIONS = {
    "vmap": lambda jax, jnp, m, x: jax.vmap(m)(x),
    "grad": lambda jax, jnp, m, x: jax.grad(m)(1.0),
    "value_and_grad": lambda jax, jnp, m, x: jax.value_and_grad(m)(1.0),
    "jacfwd": lambda jax, jnp, m, x: jax.jacfwd(m)(x),
    "jacrev": lambda jax, jnp, m, x: jax.jacrev(m)(x),
    "hessian": lambda jax, jnp, m, x: jax.hessian(m)(1.0),
    "linearize": lambda jax, jnp, m, x: jax.linearize(m, x)[0],
    "vjp": lambda jax, jnp, m, x: jax.vjp(m, x)[0],
    "jvp": lambda jax, jnp, m, x: jax.jvp(m, (x,), (x,)),
    "linear_transpose": lambda jax, jnp, m, x: jax.linear_transpose(m, x)(x),
    "jit": lambda jax, jnp, m, x: jax.jit(m)(x),
    "checkpoint": lambda jax, jnp, m, x: jax.checkpoint(m)(x),
    "lax.map": lambda jax, jnp, m, x: jax.lax.map(m, x),
    "fori_loop": lambda jax, jnp, m, x: jax.lax.fori_loop(0, 2, lambda i, c: m(c), x),
    "cond": lambda jax, jnp, m, x: jax.lax.cond(True, m, m, x),
    "make_jaxpr": lambda jax, jnp, m, x: str(jax.make_jaxpr(m)(x)),
    "eval_shape": lambda jax, jnp, m, x: str(jax.eval_shape(m, x)),
    "pmap": lambda jax, jnp, m, x: jax.pmap(m)(x[None]),
    "shard_map": lambda jax, jnp, m, x: jax.shard_map(
        m, mesh=jax.make_mesh((1,), ("a",)), in_specs=jax.P(), out_specs=jax.P()
    )(x),
    "closure_convert": lambda jax, jnp, m, x: jax.closure_convert(m, x)[0](x),
    "pure_callback": lambda jax, jnp, m, x: jax.pure_callback(m, x, x),
}


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_a_callable_needs_no_name(name):
    class Module:
        def __init__(self, name):
            self.__name__ = self.__qualname__ = name

        def __call__(self, x):
            return x * 2

    same(lambda jax, jnp: [TRANSFORMATIONS[name](jax, jnp, Module(named), jnp.ones(2)) for named in (None, "good")])


NAMES = """
    fun name params options static signature memory donated layouts shardings flatten rebuild recall resolved purpose traced
    traced_for by_user has_static argument_names program_options lowered static_argnums
""".split()


def test_attributes_of_functions_are_theirs_under_jit():
    def program(jax, jnp):
        def f(x):
            return x * 2

        for name in NAMES:
            setattr(f, name, name)
        g = jax.jit(f)
        kept = [getattr(g, name, None) for name in NAMES]
        for name in NAMES:
            setattr(g, name, 0)
        bare = jax.jit(lambda x: x)
        return kept, [hasattr(bare, name) for name in NAMES], g(1.0), jax.jit(g)(2.0), jax.grad(g)(1.0)

    same(program)


INLINED = {
    "numbers": lambda jax, jnp, inline: (
        lambda x: (
            inline(lambda s, x: x * s.astype(x.dtype))(2.0, x) + inline(lambda n, x: n.astype("float32") * x)(3, x)
        )
    ),
    "a NumPy array": lambda jax, jnp, inline: lambda x: inline(lambda n: n.at[0].set(7.0))(np.ones(3, "float32")) + x,
    "nested": lambda jax, jnp, inline: lambda x: inline(lambda x: inline(lambda y, n: y * n)(x, 2) + x)(x),
    "a tree": lambda jax, jnp, inline: lambda x: inline(lambda t: {"a": t["b"][0], "c": (t, 1.0)})({"b": [x, 2]}),
    "the argument itself": lambda jax, jnp, inline: lambda x: inline(lambda a: a)(x),
    "a captured tracer": lambda jax, jnp, inline: lambda x: inline(lambda a: a * x)(x + 1),
    "static arguments": lambda jax, jnp, inline: lambda x: inline(lambda a, n: a * n, static_argnums=1)(x, 3),
    "in a loop": lambda jax, jnp, inline: lambda x: jax.lax.scan(lambda c, a: (inline(jnp.multiply)(c, a), c), x, x)[1],
}


@pytest.mark.parametrize("name", INLINED)
@pytest.mark.parametrize("around", ["", "grad", "vmap"])
def test_inlined_functions_are_traced_and_write_no_argument(name, around):
    def program(jax, jnp):
        f = INLINED[name](jax, jnp, lambda f, **options: jax.jit(f, inline=True, **options))
        if around == "grad":
            return jax.grad(lambda x: sum(jnp.sum(leaf) for leaf in jax.tree.leaves(f(x))))
        return jax.vmap(f) if around else f

    shape = {"in a loop": (3,), "a NumPy array": (3,)}.get(name, ())
    same_jaxpr(program, np.ones((3, *shape) if around == "vmap" else shape, np.float32))
