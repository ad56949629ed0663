"""`ravel_pytree`: vectors of trees and trees of vectors, whatever their dtypes."""

import compare
import numpy as np
import pytest

TREES = {
    "weak": lambda jnp: {"a": jnp.ones((2, 3)), "b": 2.0},
    "mixed": lambda jnp: [jnp.arange(3), jnp.ones(2, jnp.float16)],
    "ints": lambda jnp: [jnp.arange(3), 2],
    "empty": lambda jnp: [],
    "none": lambda jnp: {"a": None},
    "one": lambda jnp: jnp.ones((2, 2)),
    "scalar": lambda jnp: 3.0,
    "bools": lambda jnp: [True, jnp.arange(2)],
    "halves": lambda jnp: (jnp.ones(2, jnp.bfloat16), jnp.ones(1, jnp.float16)),
    "numpy": lambda jnp: [np.arange(3), np.ones((2, 1)), 1.0],
    "complex": lambda jnp: [1j, jnp.ones(2)],
    "hollow": lambda jnp: [jnp.ones(0), jnp.zeros((2, 0))],
    "float16 and weak": lambda jnp: [jnp.float16(2), 3.0],
}


@pytest.mark.parametrize("name", TREES)
def test_ravel_pytree(name):
    def program(jax, jnp, flatten_util):
        tree = TREES[name](jnp)
        flat, unravel = flatten_util.ravel_pytree(tree)
        jaxprs = [
            compare._unwrapped(compare.normal(str(jax.make_jaxpr(f)(x))))
            for f, x in ((lambda t: flatten_util.ravel_pytree(t)[0], tree), (unravel, flat))
        ]
        # Equal for trees of equal types, so that it can be a static argument; jax's differs for no leaves.
        alike = not jax.tree_util.tree_leaves(tree) or unravel == flatten_util.ravel_pytree(tree)[1]
        return flat, unravel(flat), jaxprs, alike

    compare.same(program)


def test_ravel_pytree_under_transformations(tier):
    x, y = np.ones((2, 3), np.float32), np.float32(2)

    def loss(jax, jnp, flatten_util):
        def f(x, y):
            flat, unravel = flatten_util.ravel_pytree({"x": x, "y": y})
            return jnp.sum(jnp.sin(unravel(flat * 2)["x"])) * unravel(flat)["y"]

        return f

    def under(way):
        return lambda jax, jnp, flatten_util: way(jax, loss(jax, jnp, flatten_util))

    ways = {
        "plain": lambda jax, f: f,
        "grad": lambda jax, f: jax.grad(f, (0, 1)),
        "jvp": lambda jax, f: lambda x, y: jax.jvp(f, (x, y), (x, y)),
        "vmap": lambda jax, f: jax.vmap(f, (0, None)),
        "vmap of grad": lambda jax, f: jax.vmap(jax.grad(f), (0, None)),
    }
    compare.sweep([compare.Case(name, under(way), (x, y)) for name, way in ways.items()], tier)


@pytest.mark.parametrize(
    "call, phrase",
    [
        ("ravel([a, h])[1](jnp.ones(5, jnp.float16))", "unravel function given array of dtype float16"),
        ("ravel([a])[1](jnp.ones(4))", ""),
        ("ravel([a])[1]([1.0, 2.0, 3.0])", ""),
        ("ravel(object())", ""),
        ("ravel([a, object()])", ""),
    ],
)
def test_ravel_misuse(call, phrase):
    pytest.importorskip("jax.flatten_util")  # which `import jax` does not bring
    values = {"a": np.ones(3, np.float32), "h": np.ones(2, np.float16)}
    compare.same_misuse(call.replace("ravel(", "jax.flatten_util.ravel_pytree("), values, phrase)


def test_vectors_of_another_dtype_and_shape():
    def program(jnp, flatten_util):
        unravel = flatten_util.ravel_pytree([jnp.ones(3)])[1]
        return unravel(jnp.ones(3, jnp.int32)), unravel(jnp.ones((3, 1))), unravel(np.ones(3, np.float32))

    compare.same(program)
