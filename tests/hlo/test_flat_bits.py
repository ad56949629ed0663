"""Random bits of matrices are compiled as those of vectors; numbers and the texts that users see stay the same."""

import re

import numpy as np
import pytest
from compare import same

import minijax
import minijax.numpy as jnp
from minijax.hlo.flat_bits import with_flat_bits

SHAPES = [(3, 4), (2, 3, 1, 5), (640, 10), (1, 1), (7, 1), (0, 3), (5,), ()]


def lowered(fun, *args):
    return minijax.jit(fun).lower(*args).as_text()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_numbers_are_those_of_jax(shape):
    def program(jax, jnp):
        @jax.jit
        def draw(key):
            random, keys = jax.random, jax.random.split(key, 6)
            more = jax.vmap(lambda key: random.uniform(key, shape))(keys[:2])
            looped = jax.lax.fori_loop(0, 3, lambda i, x: x + random.normal(random.fold_in(key, i), shape), more[0])
            return [
                random.bits(keys[0], shape, "uint8"),
                random.bits(keys[1], shape),
                random.normal(keys[2], shape, jnp.bfloat16),
                random.randint(keys[3], shape, -5, 1 << 30),
                random.bernoulli(keys[4], 0.3, shape, mode="high"),
                random.truncated_normal(keys[5], -1.0, 2.0, shape),
                more,
                looped,
            ]

        return draw(jax.random.key(3))

    same(program)


def test_wide_numbers_are_those_of_jax():
    def program(jax, jnp):
        with jax.enable_x64(True):
            return jax.jit(lambda key: (jax.random.bits(key, (3, 5), "uint64"), jax.random.normal(key, (3, 5))))(
                jax.random.key(3)
            )

    same(program)


def test_only_what_is_compiled_is_flat():
    key = minijax.random.key(0)
    text = lowered(lambda key: minijax.random.normal(key, (32, 4)), key)
    flat = with_flat_bits(text)
    assert "tensor<128xui32>" not in text
    loop = re.search(r"func private @threefry2x32\(.*?\n  }", flat, re.DOTALL)
    assert loop and "32x4" not in re.search(r"while.*?\n    }", loop[0], re.DOTALL)[0]
    assert flat.count("stablehlo.reshape") == text.count("stablehlo.reshape") + 4


def test_two_shapes_in_one_program():
    key = minijax.random.key(1)
    draws = [lambda key, s=s: minijax.random.bits(key, s) for s in ((4, 3), (3, 4), (2, 6))]
    together = minijax.jit(lambda key: [draw(key) for draw in draws])(key)
    for draw, got in zip(draws, together, strict=True):
        np.testing.assert_array_equal(got, draw(key))


def of_this_name(computed):
    """A jitted function of the name and the types of threefry's."""

    def threefry2x32(k1, k2, x, y):
        return computed(k1, k2, x, y)

    return minijax.jit(threefry2x32)


OTHERS = {
    "sums": lambda k1, k2, x, y: (x + jnp.cumsum(y, 1, "uint32"), y + k1),
    "transposes": lambda k1, k2, x, y: (x.T.reshape(x.shape) + k2, y + k1),
    "rows": lambda k1, k2, x, y: (x + jnp.arange(4, dtype="uint32")[None], y),
    "constants": lambda k1, k2, x, y: (x ^ np.arange(8, dtype=np.uint32).reshape(2, 4), y),
    "an argument is a result": lambda k1, k2, x, y: (y, (y ^ k2) + x),
    "one result twice": lambda k1, k2, x, y: ((y ^ k2) + x,) * 2,
    "a call of others": lambda k1, k2, x, y: (minijax.jit(lambda x: x[::-1] + k1)(x), y),
}


@pytest.mark.parametrize("name", OTHERS)
def test_functions_of_users_stay(name):
    computed = OTHERS[name]
    x = np.arange(8, dtype=np.uint32).reshape(2, 4)
    args = np.uint32(3), np.uint32(5), x, x * 7
    fun = lambda *args: of_this_name(computed)(*args)  # noqa: E731
    text = lowered(fun, *args)
    assert "func private @threefry2x32(" in text and with_flat_bits(text) == text
    for got, want in zip(minijax.jit(fun)(*args), computed(*args), strict=True):
        np.testing.assert_array_equal(got, want)


def test_bodies_that_others_call_stay():
    def tripled(x):
        return x ^ (x + x)

    @minijax.jit
    def closed_call(x):
        return tripled(x)

    def looped(k1, k2, x, y):
        return minijax.lax.fori_loop(0, 2, lambda i, x: closed_call(x), x) + k1, y ^ k2

    def fun(*args):
        return *of_this_name(looped)(*args), closed_call(args[2])

    x = np.arange(8, dtype=np.uint32).reshape(2, 4)
    args = np.uint32(3), np.uint32(5), x, x * 7
    assert "func.call @closed_call" in lowered(fun, *args)
    wanted = tripled(tripled(x)) + np.uint32(3), x * 7 ^ np.uint32(5), tripled(x)
    for got, want in zip(minijax.jit(fun)(*args), wanted, strict=True):
        np.testing.assert_array_equal(got, want)


def test_elementwise_functions_of_users_may_be_flat():
    computed = lambda k1, k2, x, y: (x + k1, (y ^ k2) + x)  # noqa: E731
    x = np.arange(8, dtype=np.uint32).reshape(2, 4)
    args = np.uint32(3), np.uint32(5), x, x * 7
    fun = lambda *args: of_this_name(computed)(*args)  # noqa: E731
    assert with_flat_bits(text := lowered(fun, *args)) != text
    for got, want in zip(minijax.jit(fun)(*args), computed(*args), strict=True):
        np.testing.assert_array_equal(got, want)
