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
    "linspace": lambda jnp, lax, x, place: jnp.linspace(0, x, 3, device=place),
    "linspace of integers": lambda jnp, lax, x, place: jnp.linspace(0, x, 3, dtype="int32", retstep=True, device=place),
    "to_device": lambda jnp, lax, x, place: jnp.asarray(x).to_device(place),
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


@pytest.mark.parametrize("place", PLACES)
def test_a_known_array_is_placed_where_the_program_is_recorded(place):
    def program(jax, jnp):
        x = jnp.arange(3.0)
        copies = (False, None)
        makers = [lambda copy=copy: jnp.array(x, copy=copy, device=PLACES[place](jax)) for copy in copies]
        makers.append(lambda: jnp.astype(x, "float32", device=PLACES[place](jax)))
        makers.append(lambda: x.to_device(PLACES[place](jax)))
        return [str(jax.make_jaxpr(make)()) for make in makers]

    same(program)


def test_arrays_go_to_other_devices_under_jit():
    def program(jax, jnp):
        last = jax.devices()[-1]
        x = jnp.arange(4.0)
        axis = jax.make_mesh((jax.device_count(),), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
        places = last, jax.NamedSharding(axis, jax.P("i"))
        makers = [
            lambda place: jnp.linspace(0, 1, 4 * jax.device_count(), device=place),
            lambda place: jnp.arange(jax.device_count(), device=place),
            lambda place: (jnp.arange(jax.device_count()) + 1).to_device(place),
            lambda place: jax.grad(lambda x: (x.to_device(last) ** 2).sum())(x),
        ]
        return [str(jax.jit(make, static_argnums=0)(place).sharding) for place in places for make in makers]

    same(program)


@pytest.mark.parametrize("size", [1, 3])
def test_a_sharding_that_does_not_divide_is_refused_where_it_is_recorded(size):
    def program(jax, jnp):
        axis = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("i",))
        return lambda: jax.make_jaxpr(lambda: jnp.arange(size, device=jax.NamedSharding(axis, jax.P(None, "i"))))()

    same_refusal(program)


def test_a_stream_is_refused():
    same_refusal(lambda jax, jnp: lambda: jnp.ones(2).to_device(jax.devices()[0], stream=1), ["stream argument"])


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
