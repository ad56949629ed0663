"""Gamma numbers, and those made of them, from keys of every generator: each element has bits of its own."""

import compare
import pytest

DRAWS = {
    "gamma": lambda random, key: random.gamma(key, 2.0, (3,)),
    "loggamma": lambda random, key: random.loggamma(key, 0.5, (3,)),
    "beta": lambda random, key: random.beta(key, 2.0, 0.5, (2,)),
    "t": lambda random, key: random.t(key, 2.0, (3,)),
}


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg", "unsafe_rbg"])
def test_samples_are_those_of_jax(impl):
    def samples(jax):
        key = jax.random.key(3, impl=impl)
        one = {name: draw(jax.random, key) for name, draw in DRAWS.items()}
        return one, jax.jit(jax.vmap(lambda key: DRAWS["gamma"](jax.random, key)))(jax.random.split(key, 2))

    compare.same(samples)
