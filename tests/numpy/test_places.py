"""Where new arrays go: devices and shardings as arguments of functions that make arrays, and what is refused."""

import numpy as np
import pytest
from compare import same, same_jaxpr, same_refusal

pytestmark = pytest.mark.oracle

MAKERS = {
    "full": lambda jnp, lax, x, place: jnp.full((2,), 1.0, device=place),
    "full_like": lambda jnp, lax, x, place: jnp.full_like(x, 1.0, device=place),
    "zeros": lambda jnp, lax, x, place: jnp.zeros(2, device=place),
    "arange": lambda jnp, lax, x, place: jnp.arange(3, device=place),
    "eye": lambda jnp, lax, x, place: jnp.eye(2, device=place),
    "lax.full": lambda jnp, lax, x, place: lax.full((2,), 1.0, sharding=place),
    "lax.full_like": lambda jnp, lax, x, place: lax.full_like(x, 1.0, sharding=place),
    "asarray": lambda jnp, lax, x, place: jnp.asarray(x, device=place),
    "array": lambda jnp, lax, x, place: jnp.array(x, device=place),
    "array of a list": lambda jnp, lax, x, place: jnp.array([x, 1], dtype="int8", device=place),
    "asarray of a dtype": lambda jnp, lax, x, place: jnp.asarray(x, dtype="float32", device=place),
    "astype": lambda jnp, lax, x, place: jnp.astype(jnp.asarray(x), "float32", copy=True, device=place),
}
PLACES = {
    "device": lambda jax: jax.devices()[0],
    "sharding": lambda jax: jax.sharding.SingleDeviceSharding(jax.devices()[0]),
}
REFUSED = {"name": "cpu", "number": 3, "object": object}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("maker", [m for m in MAKERS if not m.startswith("lax")])
@pytest.mark.parametrize("x", [2.0, np.float32(2)])
def test_a_place_in_a_jaxpr(maker, place, x):
    def program(jax, jnp, lax):
        return lambda x: MAKERS[maker](jnp, lax, x, PLACES[place](jax))

    same_jaxpr(program, x)
    same(lambda jax, jnp, lax: MAKERS[maker](jnp, lax, x, PLACES[place](jax)))


@pytest.mark.parametrize("place", REFUSED)
@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("maker", [m for m in MAKERS if m not in ("eye", "astype")])
def test_what_is_neither_a_device_nor_a_sharding_is_refused(maker, place, jitted):
    def program(jax, jnp, lax):
        def make():
            return MAKERS[maker](jnp, lax, 2.0, REFUSED[place])

        return jax.jit(make) if jitted else make

    same_refusal(program)


def test_a_message_names_the_function_and_what_was_given():
    import minijax.numpy as jnp

    with pytest.raises(AttributeError, match=r"jnp.zeros: a place must be .* got 'cpu'"):
        jnp.zeros(3, device="cpu")


@pytest.mark.parametrize("value", [True, 1.0, 3, np.float32(1), np.int8(1)])
def test_full_like_takes_the_dtype_of_a_value(value):
    same(lambda lax: lax.full_like(np.ones(2, np.float32), 1, dtype=value))


def test_derivatives_of_integers_are_not_stopped_but_kept():
    same(lambda jax, lax: str(lax.stop_gradient(np.zeros(2, jax.dtypes.float0)).dtype.names))


@pytest.mark.parametrize("name", ["uniform", "normal"])
def test_numbers_of_four_bits_are_not_drawn(name):
    def program(jax, random):
        return lambda: getattr(random, name)(jax.random.key(0), (2,), "float4_e2m1fn")

    same_refusal(program, ["uniform only accepts 8-, 16-, 32-, or 64-bit dtypes"])
