"""Arrays of random keys made by fills: `full`, `zeros`, `where` and their kin."""

import compare
import pytest

FILLS = {
    "full": lambda jnp, lax, k, ks: jnp.full((2,), k),
    "full of a dtype": lambda jnp, lax, k, ks: jnp.full((2,), k, dtype=k.dtype),
    "full of keys": lambda jnp, lax, k, ks: jnp.full((2, 3), ks),
    "full of nothing": lambda jnp, lax, k, ks: jnp.full((0,), k),
    "full of a number": lambda jnp, lax, k, ks: jnp.full((2,), 0, dtype=k.dtype),
    "full_like": lambda jnp, lax, k, ks: jnp.full_like(ks, k),
    "full_like a shape": lambda jnp, lax, k, ks: jnp.full_like(ks, k, shape=(2, 2)),
    "full_like a number": lambda jnp, lax, k, ks: jnp.full_like(ks, 7),
    "full_like numbers": lambda jnp, lax, k, ks: jnp.full_like(ks, 1.0, dtype="float32"),
    "zeros": lambda jnp, lax, k, ks: (jnp.zeros(3, k.dtype), jnp.ones(3, k.dtype), jnp.empty((0, 2), k.dtype)),
    "zeros_like": lambda jnp, lax, k, ks: (jnp.zeros_like(ks), jnp.ones_like(ks), jnp.empty_like(ks, shape=(2, 2))),
    "zeros_like numbers": lambda jnp, lax, k, ks: jnp.zeros_like(ks, dtype="float32"),
    "lax.full": lambda jnp, lax, k, ks: (lax.full((2,), k), lax.full((2,), k, k.dtype), lax.full((2,), 0, k.dtype)),
    "lax.full_like": lambda jnp, lax, k, ks: (lax.full_like(ks, k), lax.full_like(ks, 3)),
    "where": lambda jnp, lax, k, ks: (jnp.where(ks == k, ks, k), jnp.where(True, k, ks)),
    "select": lambda jnp, lax, k, ks: lax.select(ks == k, ks, ks[::-1]),
    "insert": lambda jnp, lax, k, ks: jnp.insert(ks, 1, k),
}


@pytest.mark.parametrize("name", FILLS)
def test_fills_of_keys(name):
    def program(jax, jnp, lax):
        k = jax.random.key(3)
        return FILLS[name](jnp, lax, k, jax.random.split(k, 3))

    def jaxpr(jax, jnp, lax):
        k = jax.random.key(3)
        return compare.normal(
            str(jax.make_jaxpr(lambda k, ks: FILLS[name](jnp, lax, k, ks))(k, jax.random.split(k, 3)))
        )

    compare.same(program)
    compare.same_printed("jaxpr", lambda side: compare.run_on(side, jaxpr), jaxpr)


def test_fills_of_keys_under_transforms():
    def program(jax, jnp):
        ks = jax.random.split(jax.random.key(3), 3)
        like = jax.eval_shape(lambda k: (jnp.zeros_like(k), jnp.full_like(k, 1)), ks)
        filled = jnp.empty_like(jax.ShapeDtypeStruct((2,), ks.dtype))
        return jax.vmap(jnp.zeros_like)(ks), jax.vmap(lambda k: jnp.full((2,), k))(ks), str(like), filled

    compare.same(program)


REFUSED = {
    "numbers full of a key": lambda jnp, lax, k: jnp.full_like(jnp.ones(3), k),
    "a key as numbers": lambda jnp, lax, k: jnp.full((2,), k, dtype="float32"),
    "a unit matrix": lambda jnp, lax, k: jnp.eye(3, dtype=k.dtype),
    "padding": lambda jnp, lax, k: jnp.pad(k[None], 1),
    "array of numbers": lambda jnp, lax, k: jnp.array(k, dtype="float32"),
    "where of a key and a number": lambda jnp, lax, k: jnp.where(True, k, 0),
    "a sum": lambda jnp, lax, k: jnp.sum(k),
}


@pytest.mark.parametrize("name", REFUSED)
def test_keys_and_numbers_do_not_mix(name):
    call = lambda jax, jnp, lax: lambda: REFUSED[name](jnp, lax, jax.random.key(3))  # noqa: E731
    compare.same_refusal(call)
